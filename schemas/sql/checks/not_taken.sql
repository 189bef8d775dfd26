-- check: not_taken
-- grain: stack x condition
-- Requests that the server would not take, and that count as failures because the stack's policy says so.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || count(*) || CASE WHEN count(*) = 1 THEN ' cell' ELSE ' cells' END
    || ' failed because the server would not take the request (responses.infrastructure).' AS sentence,
    count(*)::DOUBLE AS value
FROM outcomes
WHERE study = $study AND protocol = $protocol AND reason = 'provider' AND outcome = 'fail'
GROUP BY stack, condition;
