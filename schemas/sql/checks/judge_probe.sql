-- check: judge_probe
-- grain: judge condition
-- Candidates whose verdict is known, on which the judge is wrong: its verdicts on others cannot be trusted. Blocks unless the study says
-- `judge.probes.required: false`.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'error' AS severity,
    bool_or(required) AS blocks,
    stack || ', ' || condition || ': the judge fails ' || count(*) || ' of ' || any_value(n) || ' probes: '
    || string_agg(
        probe || ' must ' || CASE expected WHEN 'pass' THEN 'pass' ELSE 'not pass' END || ' and is said to be ' || verdict,
        ', ' ORDER BY number
    )
    || '.' AS sentence,
    count(*)::DOUBLE AS value
FROM (
    SELECT *, count(*) OVER (PARTITION BY stack, condition) AS n
    FROM probes
    WHERE study = $study AND protocol = $protocol
)
WHERE NOT sound
GROUP BY stack, condition;
