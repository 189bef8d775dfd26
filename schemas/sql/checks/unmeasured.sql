-- check: unmeasured
-- grain: stack x condition x reason
-- Cells without an outcome, apart from tasks that preflight left out; over a tenth of a condition blocks.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    CASE WHEN sum(n) > 0.1 * any_value(cells) OR reason = 'replay-miss' THEN 'error' ELSE 'warning' END AS severity,
    sum(n) > 0.1 * any_value(cells) OR reason = 'replay-miss' AS blocks,
    stack || ', ' || condition || ': ' || sum(n) || ' of ' || any_value(cells) || ' cells are unmeasured (' || reason
    || '); they are in no score, neither as passes nor as failures.' AS sentence,
    sum(n)::DOUBLE AS value
FROM (
    SELECT stack, condition, reason, outcome, count(*) AS n, sum(count(*)) OVER (PARTITION BY stack, condition) AS cells
    FROM outcomes
    WHERE study = $study AND protocol = $protocol AND reason <> 'reference-unusable'
    GROUP BY stack, condition, reason, outcome
)
WHERE outcome = 'unmeasured'
GROUP BY stack, condition, reason;
