-- check: few_tasks
-- grain: stack x condition
-- Conditions with so few measured tasks that intervals over tasks cover too seldom, and a gate can only be inconclusive.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': only ' || n || CASE WHEN n = 1 THEN ' task was' ELSE ' tasks were' END
    || ' measured. Under 20, quote no interval for new tasks and do not gate on it; add tasks rather than replicates.' AS sentence,
    n::DOUBLE AS value
FROM (
    SELECT stack, condition, count(*) AS n
    FROM task_counts
    WHERE study = $study AND protocol = $protocol AND runs > 0
    GROUP BY stack, condition
)
WHERE n < 20;
