-- check: served_model
-- grain: stack x condition
-- More than one model answered under one condition.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'error' AS severity,
    true AS blocks,
    stack || ', ' || condition || ': several models answered: '
    || string_agg(served_model || ' (' || n || ')', ', ' ORDER BY served_model) || '.' AS sentence,
    count(*)::DOUBLE AS value
FROM (
    SELECT stack, condition, served_model, count(*) AS n
    FROM calls
    WHERE study = $study AND protocol = $protocol AND served_model <> ''
    GROUP BY stack, condition, served_model
)
GROUP BY stack, condition
HAVING count(*) > 1;
