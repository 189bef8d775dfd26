-- check: cost_unknown
-- grain: stack x condition
-- Requests, failed and lost ones too, of which nobody knows what they cost.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'info' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': the cost of ' || count(*) || if(count(*) = 1, ' request', ' requests') || ' is unknown and is in no sum.' AS sentence,
    count(*)::DOUBLE AS value
FROM calls
WHERE study = $study AND protocol = $protocol AND cost_usd IS NULL
GROUP BY stack, condition;
