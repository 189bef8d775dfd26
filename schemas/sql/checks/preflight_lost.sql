-- check: preflight_lost
-- grain: stack
-- More than a tenth of the benchmark's tasks were left out by preflight: what is left is another benchmark.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    '' AS condition,
    'error' AS severity,
    true AS blocks,
    'Stack ' || stack || ': ' || lost || ' of ' || tasks || CASE WHEN tasks = 1 THEN ' task' ELSE ' tasks' END
    || CASE WHEN lost = 1 THEN ' is' ELSE ' are' END
    || ' not measured, more than a tenth: numbers over the others must not be used as the benchmark''s.' AS sentence,
    lost::DOUBLE AS value
FROM (
    SELECT stack, count(*) FILTER (WHERE outcome <> 'pass') AS lost, count(*) AS tasks
    FROM preflight
    WHERE study = $study AND protocol = $protocol
    GROUP BY stack
)
WHERE 10 * lost > tasks;
