-- check: truncated
-- grain: stack x condition
-- Answers that ended at the token limit.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    CASE WHEN truncated > 0.2 * n THEN 'error' ELSE 'warning' END AS severity,
    truncated > 0.2 * n AS blocks,
    stack || ', ' || condition || ': ' || truncated || ' of ' || n
    || ' answers ended at the token limit; raise max_tokens if that is not what you measure.' AS sentence,
    truncated::DOUBLE AS value
FROM (
    SELECT stack, condition, count(*) AS n, count(*) FILTER (WHERE response_class = 'truncated') AS truncated
    FROM calls
    WHERE study = $study AND protocol = $protocol
    GROUP BY stack, condition
)
WHERE truncated > 0;
