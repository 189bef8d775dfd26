-- check: repeated_ids
-- grain: stack x condition
-- One answer that was given to several calls, as a cache does; such replicates are no replicates.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'error' AS severity,
    true AS blocks,
    stack || ', ' || condition || ': ' || count(*) || ' calls got an answer that another call got too (' || count(DISTINCT response_id)
    || CASE WHEN count(DISTINCT response_id) = 1 THEN ' response id' ELSE ' response ids' END
    || '): served from a cache, they are no replicates.' AS sentence,
    count(*)::DOUBLE AS value
FROM (
    -- Over all conditions of a study: a cache does not know which of them asks.
    SELECT stack, condition, response_id, count(*) OVER (PARTITION BY provider, response_id) AS shared
    FROM (
        -- A request that was sent again may get one answer twice: that is one call.
        SELECT DISTINCT stack, condition, replicate, task_id, attempt, provider, response_id
        FROM calls
        WHERE study = $study AND protocol = $protocol AND response_id <> ''
    )
)
WHERE shared > 1
GROUP BY stack, condition;
