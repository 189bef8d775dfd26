-- check: truncated
-- grain: stack x condition
-- Answers that ended at the token limit; over a fifth block. A run stops there, so that only replays of files get this far.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    CASE WHEN n > 0.2 * n_answers THEN 'error' ELSE 'warning' END AS severity,
    n > 0.2 * n_answers AS blocks,
    stack || ', ' || condition || ': ' || n || ' of ' || n_answers || CASE WHEN n_answers = 1 THEN ' answer ' ELSE ' answers ' END
    || 'ended at the token limit; raise max_tokens if that is not what you measure.' AS sentence,
    n::DOUBLE AS value
FROM (
    SELECT stack, condition, n_truncated AS n, n_answers - n_infrastructure AS n_answers
    FROM answer_counts
    WHERE study = $study AND protocol = $protocol
)
WHERE n > 0;
