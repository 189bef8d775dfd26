-- check: replay_varied
-- grain: stack x condition
-- Tasks whose replayed candidate changed its outcome, which is noise of verification, or of the candidate itself.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    c.stack,
    c.condition,
    'warning' AS severity,
    false AS blocks,
    c.stack || ', ' || c.condition || ': the same candidate did not always get the same outcome on '
    || string_agg(c.task_id, ', ' ORDER BY c.position) || '; that is noise of the verifier, or a candidate that is random itself.' AS sentence,
    count(*)::DOUBLE AS value
FROM task_counts AS c
WHERE
    c.study = $study
    AND c.protocol = $protocol
    AND c.passes > 0
    AND c.passes < c.runs
    AND NOT EXISTS (
        SELECT 1
        FROM generations AS g
        WHERE
            (g.study, g.protocol, g.stack, g.condition, g.task_id) = (c.study, c.protocol, c.stack, c.condition, c.task_id)
        GROUP BY g.attempt
        HAVING count(DISTINCT coalesce(g.candidate_sha256, '')) > 1
    )
GROUP BY c.stack, c.condition;
