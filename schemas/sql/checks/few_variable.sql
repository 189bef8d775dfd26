-- check: few_variable
-- grain: stack x condition
-- Conditions in which so few tasks varied that the percentile interval of w covers too seldom.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    CASE WHEN varied = 0 THEN 'info' ELSE 'warning' END AS severity,
    false AS blocks,
    CASE
        WHEN varied = 0
            THEN stack || ', ' || condition || ': no task varied in ' || runs
                || ' replicates; w = 0 then is no proof, and a budget of one run is the least that the formula gives.'
        ELSE stack || ', ' || condition || ': only ' || varied
            || CASE WHEN varied = 1 THEN ' task' ELSE ' tasks' END
            || ' varied; under 15 the percentile interval of w covers less often than it says.'
    END AS sentence,
    varied::DOUBLE AS value
FROM (
    SELECT stack, condition, count(*) FILTER (WHERE passes > 0 AND passes < runs) AS varied, max(runs) AS runs
    FROM task_counts
    WHERE study = $study AND protocol = $protocol
    GROUP BY stack, condition
)
WHERE varied < 15 AND runs >= 2;
