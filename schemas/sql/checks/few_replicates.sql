-- check: few_replicates
-- grain: stack x condition or judge condition
-- Two replicates or judge repeats: a variance is defined, but from one degree of freedom per task. One replicate is the check
-- one_replicate of the plan; one repeat of a judge is found here.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || most || ' ' || word || CASE WHEN most = 1 THEN '' ELSE 's' END
    || CASE
        WHEN most = 1 THEN ' cannot disagree with itself: its noise is unknown. Ask for 3 or more.'
        ELSE ' per task leave one degree of freedom each: a run budget from them is often far too low. Take 5 or more for a pilot.'
    END AS sentence,
    most::DOUBLE AS value
FROM (
    SELECT stack, condition, max(runs) AS most, 'replicate' AS word
    FROM task_counts
    WHERE study = $study AND protocol = $protocol
    GROUP BY stack, condition
    HAVING max(runs) = 2
    UNION ALL
    SELECT stack, condition, count(DISTINCT repeat) AS most, 'repeat' AS word
    FROM verdicts
    WHERE study = $study AND protocol = $protocol
    GROUP BY stack, condition
    HAVING count(DISTINCT repeat) <= 2
);
