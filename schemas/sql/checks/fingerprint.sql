-- check: fingerprint
-- grain: stack x condition
-- More than one fingerprint of the provider's system under one condition, and when. Providers change it often, and mostly without effect.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': the provider changed its system in mid-study: '
    || array_to_string(list(told ORDER BY first_at, told)[1:4], ', ')
    || CASE WHEN count(*) > 4 THEN ' and ' || (count(*) - 4) || ' more' ELSE '' END || '.' AS sentence,
    count(*)::DOUBLE AS value
FROM (
    SELECT
        stack,
        condition,
        min(answered_at) AS first_at,
        left(fingerprint, 80) || ' (' || count(*)
        || coalesce(strftime(min(answered_at), ', %Y-%m-%d %H:%M:%S to ') || strftime(max(answered_at), '%Y-%m-%d %H:%M:%S'), '')
        || ')' AS told
    FROM calls
    WHERE study = $study AND protocol = $protocol AND fingerprint <> ''
    GROUP BY stack, condition, fingerprint
)
GROUP BY stack, condition
HAVING count(*) > 1;
