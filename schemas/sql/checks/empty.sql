-- check: empty
-- grain: stack x condition
-- Empty answers; over half block.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    CASE WHEN n > 0.5 * n_answers THEN 'error' ELSE 'warning' END AS severity,
    n > 0.5 * n_answers AS blocks,
    stack || ', ' || condition || ': ' || n || ' of ' || n_answers || CASE WHEN n_answers = 1 THEN ' answer ' ELSE ' answers ' END
    || 'held nothing.' AS sentence,
    n::DOUBLE AS value
FROM (
    SELECT stack, condition, n_empty AS n, n_answers - n_infrastructure AS n_answers
    FROM answer_counts
    WHERE study = $study AND protocol = $protocol
)
WHERE n > 0;
