-- check: fixed_seed
-- grain: stack x condition
-- Fresh calls at a temperature above 0 that all send one seed: replicates then share their draws.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': every replicate sends the seed ' || left(seed, 40)
    || ', so its noise is what the server lets through, not that of fresh draws.' AS sentence,
    try_cast(seed AS DOUBLE) AS value
FROM (
    SELECT
        stack,
        condition,
        count(DISTINCT replicate) AS replicates,
        any_value(request) ->> '$.body.seed' AS seed,
        coalesce(try_cast(any_value(request) ->> '$.body.temperature' AS DOUBLE), 1.0) AS temperature
    FROM calls
    -- The oracle's seed draws every replicate apart.
    WHERE study = $study AND protocol = $protocol AND provider <> 'oracle'
    GROUP BY stack, condition
)
WHERE seed IS NOT NULL AND temperature > 0 AND replicates > 1;
