-- check: saturated
-- grain: stack x condition
-- Conditions in which every cell passed, or every cell failed: the score cannot move in one direction, and intervals have no width.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': every one of ' || cells || CASE WHEN passes = 0 THEN ' cells failed' ELSE ' cells passed' END
    || '. The tasks are too ' || CASE WHEN passes = 0 THEN 'hard, or the verifier is wrong' ELSE 'easy' END
    || ': intervals of no width prove nothing, and '
    || CASE WHEN passes = 0 THEN 'no loss' ELSE 'no gain' END || ' can show. Use other tasks.' AS sentence,
    passes::DOUBLE / cells AS value
FROM (
    SELECT stack, condition, sum(passes)::BIGINT AS passes, sum(runs)::BIGINT AS cells
    FROM task_counts
    WHERE study = $study AND protocol = $protocol
    GROUP BY stack, condition
)
WHERE cells >= 10 AND passes IN (0, cells);
