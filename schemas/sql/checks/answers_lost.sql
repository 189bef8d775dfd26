-- check: answers_lost
-- grain: stack x condition
-- Requests that were sent when a run was killed, and whose answers nobody has. They were sent again.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || count(*) || CASE WHEN count(*) = 1 THEN ' request was' ELSE ' requests were' END
    || ' sent and the run killed before the answer came; the provider may have billed '
    || CASE WHEN count(*) = 1 THEN 'it.' ELSE 'them.' END AS sentence,
    count(*)::DOUBLE AS value
FROM calls
WHERE study = $study AND protocol = $protocol AND NOT answered
GROUP BY stack, condition;
