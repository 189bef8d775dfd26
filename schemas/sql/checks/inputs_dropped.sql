-- check: inputs_dropped
-- grain: stack
-- Tasks that are verified on fewer inputs than the cap allows, because an output of the canonical solution is over a limit.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    '' AS condition,
    'info' AS severity,
    false AS blocks,
    'Stack ' || stack || ': ' || count(*) || CASE WHEN count(*) = 1 THEN ' task is' ELSE ' tasks are' END
    || ' verified without inputs whose output is over a limit ('
    || string_agg(task_id || ' without ' || n_dropped, ', ' ORDER BY position) || ').' AS sentence,
    count(*)::DOUBLE AS value
FROM preflight
WHERE study = $study AND protocol = $protocol AND outcome = 'pass' AND n_dropped > 0
GROUP BY stack;
