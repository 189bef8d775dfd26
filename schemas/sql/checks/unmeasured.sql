-- check: unmeasured
-- grain: stack x condition x reason
-- Cells without an outcome, apart from tasks that preflight left out; over a tenth of a condition blocks.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    CASE WHEN lost > 0.1 * cells OR reason = 'replay-miss' THEN 'error' ELSE 'warning' END AS severity,
    lost > 0.1 * cells OR reason = 'replay-miss' AS blocks,
    stack || ', ' || condition || ': ' || n || ' of ' || cells || CASE WHEN n = 1 THEN ' cells is' ELSE ' cells are' END
    || ' unmeasured (' || reason || '); such cells are in no score, neither as passes nor as failures.' AS sentence,
    n::DOUBLE AS value
FROM (
    SELECT
        stack,
        condition,
        reason,
        outcome,
        count(*) AS n,
        sum(count(*)) OVER (PARTITION BY stack, condition) AS cells,
        sum(count(*) FILTER (WHERE outcome = 'unmeasured')) OVER (PARTITION BY stack, condition) AS lost
    FROM outcomes
    WHERE study = $study AND protocol = $protocol AND reason <> 'reference-unusable'
    GROUP BY stack, condition, reason, outcome
)
WHERE outcome = 'unmeasured';
