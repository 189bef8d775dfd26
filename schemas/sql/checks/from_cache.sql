-- check: from_cache
-- grain: stack x condition
-- Answers of which the server says that it did not make them now but had them stored.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'error' AS severity,
    true AS blocks,
    stack || ', ' || condition || ': ' || count(*) || CASE WHEN count(*) = 1 THEN ' answer was' ELSE ' answers were' END
    || ' stored ones, as the server says; they are no replicates. Turn its cache off.' AS sentence,
    count(*)::DOUBLE AS value
FROM calls
WHERE study = $study AND protocol = $protocol AND from_cache
GROUP BY stack, condition;
