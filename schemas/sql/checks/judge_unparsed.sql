-- check: judge_unparsed
-- grain: stack x judge condition
-- Judge answers without a readable verdict; over a fifth blocks.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    CASE WHEN unparsed > 0.2 * n THEN 'error' ELSE 'warning' END AS severity,
    unparsed > 0.2 * n AS blocks,
    stack || ', ' || condition || ': ' || unparsed || ' of ' || n || ' verdicts could not be read.' AS sentence,
    unparsed::DOUBLE / n AS value
FROM (
    SELECT stack, condition, count(*) AS n, count(*) FILTER (WHERE verdict = 'unparsed') AS unparsed
    FROM verdicts
    WHERE study = $study AND protocol = $protocol
    GROUP BY stack, condition
)
WHERE unparsed > 0;
