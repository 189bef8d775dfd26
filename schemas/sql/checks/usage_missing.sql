-- check: usage_missing
-- grain: stack x condition
-- Answers without a count of their tokens, which makes their cost unknown.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'info' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || count(*) || CASE WHEN count(*) = 1 THEN ' answer does' ELSE ' answers do' END
    || ' not say how many tokens were used.' AS sentence,
    count(*)::DOUBLE AS value
FROM calls
WHERE
    study = $study
    AND protocol = $protocol
    AND answered
    AND response_class NOT IN ('infrastructure', 'malformed')
    AND (input_tokens IS NULL OR output_tokens IS NULL)
GROUP BY stack, condition;
