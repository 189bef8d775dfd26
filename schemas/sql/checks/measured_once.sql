-- check: measured_once
-- grain: stack x condition
-- Tasks that kept one outcome of several replicates: they are in the score, but a variance needs two, so they are not in w.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || once || ' of ' || n || CASE WHEN n = 1 THEN ' task' ELSE ' tasks' END
    || ' kept one outcome only and ' || CASE WHEN once = 1 THEN 'is' ELSE 'are' END
    || ' in the score but not in w: measure the missing cells with `evalnoise retry`.' AS sentence,
    once::DOUBLE AS value
FROM (
    SELECT
        stack,
        condition,
        count(*) FILTER (WHERE runs > 0) AS n,
        count(*) FILTER (WHERE runs = 1) AS once,
        max(runs + unmeasured) AS replicates
    FROM task_counts
    WHERE study = $study AND protocol = $protocol
    GROUP BY stack, condition
)
WHERE once > 0 AND replicates >= 2;
