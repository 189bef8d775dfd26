-- check: repeated_ids
-- grain: stack x condition
-- One answer that was given to several calls, as a cache does; such replicates are no replicates.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'error' AS severity,
    true AS blocks,
    stack || ', ' || condition || ': ' || sum(n) || ' calls share ' || count(*)
    || CASE WHEN count(*) = 1 THEN ' response id' ELSE ' response ids' END
    || ', so they were served from a cache and are no replicates.' AS sentence,
    sum(n)::DOUBLE AS value
FROM (
    SELECT stack, condition, response_id, count(*) AS n
    FROM calls
    WHERE study = $study AND protocol = $protocol AND response_id <> ''
    GROUP BY stack, condition, response_id
    HAVING count(*) > 1
)
GROUP BY stack, condition;
