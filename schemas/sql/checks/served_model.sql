-- check: served_model
-- grain: stack x condition
-- More than one model answered under one condition, and when: its replicates are then not repeats of one measurement.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'error' AS severity,
    true AS blocks,
    stack || ', ' || condition || ': several models answered: '
    || array_to_string(list(told ORDER BY first_at, told)[1:4], ', ')
    || CASE WHEN count(*) > 4 THEN ' and ' || (count(*) - 4) || ' more' ELSE '' END || '.' AS sentence,
    count(*)::DOUBLE AS value
FROM (
    SELECT
        stack,
        condition,
        min(answered_at) AS first_at,
        left(served_model, 80) || ' (' || count(*)
        || coalesce(strftime(min(answered_at), ', %Y-%m-%d %H:%M:%S to ') || strftime(max(answered_at), '%Y-%m-%d %H:%M:%S'), '')
        || ')' AS told
    FROM calls
    WHERE study = $study AND protocol = $protocol AND served_model <> ''
    GROUP BY stack, condition, served_model
)
GROUP BY stack, condition
HAVING count(*) > 1;
