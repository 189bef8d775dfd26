-- check: refused
-- grain: stack x condition x class
-- Refusals and empty answers, which count as failures.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || count(*) || ' answers were of class ' || response_class
    || ' and count as failures.' AS sentence,
    count(*)::DOUBLE AS value
FROM generations
WHERE study = $study AND protocol = $protocol AND response_class IN ('refusal', 'empty')
GROUP BY stack, condition, response_class;
