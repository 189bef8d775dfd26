-- check: malformed
-- grain: stack x condition
-- What came in the place of answers; over a fifth blocks.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    CASE WHEN n > 0.2 * n_answers THEN 'error' ELSE 'warning' END AS severity,
    n > 0.2 * n_answers AS blocks,
    stack || ', ' || condition || ': ' || n || ' of ' || n_answers || CASE WHEN n_answers = 1 THEN ' answer ' ELSE ' answers ' END
    || 'were none, but something else.' AS sentence,
    n::DOUBLE AS value
FROM (
    SELECT stack, condition, n_malformed AS n, n_answers - n_infrastructure AS n_answers
    FROM answer_counts
    WHERE study = $study AND protocol = $protocol
)
WHERE n > 0;
