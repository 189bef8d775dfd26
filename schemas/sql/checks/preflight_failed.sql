-- check: preflight_failed
-- grain: stack x reason
-- Tasks whose canonical solution cannot serve as the reference, and that are therefore measured under no condition: a few are a
-- warning; preflight_lost blocks over a tenth of them.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    '' AS condition,
    'warning' AS severity,
    false AS blocks,
    'Stack ' || stack || ': not measured, because the canonical solution cannot be a reference (' || reason || '): ' || string_agg(task_id, ', ' ORDER BY position) || '.' AS sentence,
    count(*)::DOUBLE AS value
FROM preflight
WHERE study = $study AND protocol = $protocol AND outcome <> 'pass'
GROUP BY stack, reason;
