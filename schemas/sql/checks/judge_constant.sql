-- check: judge_constant
-- grain: stack x judge condition
-- A judge that said the same of every candidate, though execution did not: its agreement is undefined or worthless.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': all ' || n || ' verdicts are ' || said || ', of ' || good || ' candidates that passed and '
    || bad || ' that failed: the judge does not tell them apart. Look at its prompt and at a few of its answers.' AS sentence,
    n::DOUBLE AS value
FROM (
    SELECT
        stack,
        condition,
        count(*) AS n,
        any_value(verdict) AS said,
        count(DISTINCT position) FILTER (WHERE reference_outcome = 'pass') AS good,
        count(DISTINCT position) FILTER (WHERE reference_outcome = 'fail') AS bad
    FROM verdicts
    WHERE study = $study AND protocol = $protocol AND verdict <> 'unparsed'
    GROUP BY stack, condition
    HAVING min(verdict) = max(verdict)
)
WHERE good > 0 AND bad > 0 AND good + bad >= 5;
