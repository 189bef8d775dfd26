-- check: every_value_passes
-- grain: stack
-- Tasks for which no plain wrong value fails: only a candidate that raises does, so a pass there says little.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    '' AS condition,
    'info' AS severity,
    false AS blocks,
    'Stack ' || stack || ': a value that no task asks for passes, and only a candidate that raises fails, on '
    || string_agg(task_id, ', ' ORDER BY position) || '.' AS sentence,
    count(*)::DOUBLE AS value
FROM preflight
WHERE study = $study AND protocol = $protocol AND outcome = 'pass' AND known_bad = 'raises'
GROUP BY stack;
