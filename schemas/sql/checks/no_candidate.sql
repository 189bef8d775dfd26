-- check: no_candidate
-- grain: stack x condition
-- Complete answers without anything to verify, mostly prose without a program. They count as failures.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || count(*) || CASE WHEN count(*) = 1 THEN ' answer' ELSE ' answers' END
    || ' held no candidate and failed.' AS sentence,
    count(*)::DOUBLE AS value
FROM generations
WHERE study = $study AND protocol = $protocol AND candidate_sha256 IS NULL AND response_class = 'complete'
GROUP BY stack, condition;
