-- check: asked_again
-- grain: stack x condition
-- Calls whose request was sent more than once, after failures or a kill; over a tenth of them is a warning.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    CASE WHEN count(*) FILTER (WHERE sendings > 1) > 0.1 * count(*) THEN 'warning' ELSE 'info' END AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || count(*) FILTER (WHERE sendings > 1) || ' of ' || count(*)
    || CASE WHEN count(*) = 1 THEN ' call' ELSE ' calls' END || ' had to be sent more than once, ' || sum(sendings)
    || ' requests in all.' AS sentence,
    count(*) FILTER (WHERE sendings > 1)::DOUBLE AS value
FROM (
    SELECT stack, condition, count(*) AS sendings
    FROM calls
    WHERE study = $study AND protocol = $protocol
    GROUP BY stack, condition, replicate, task_id, attempt, request_key
)
GROUP BY stack, condition
HAVING count(*) FILTER (WHERE sendings > 1) > 0;
