-- check: judge_one_text
-- grain: stack x judge condition
-- Candidates whose repeated verdicts are one text, to the letter, though the judge was asked at a temperature above 0: served from a
-- cache, or not drawn at all. Four of five are a warning; all of ten or more block. Answers under 80 characters say nothing.
-- columns: stack, condition, severity, blocks, sentence, value
WITH fresh AS (
    SELECT stack, condition
    FROM calls
    WHERE study = $study AND protocol = $protocol AND purpose = 'judge'
    GROUP BY stack, condition
    -- A temperature that is not sent is the provider's default, which is above 0.
    HAVING coalesce(try_cast(any_value(request) ->> '$.body.temperature' AS DOUBLE), 1.0) > 0
),

candidates AS (
    SELECT v.stack, v.condition, v.position, min(v.text) = max(v.text) AS same
    FROM verdicts AS v
    JOIN fresh AS f ON f.stack = v.stack AND f.condition = v.condition
    WHERE v.study = $study AND v.protocol = $protocol AND v.response_class IN ('complete', 'truncated')
    GROUP BY v.stack, v.condition, v.position
    HAVING count(*) > 1 AND min(length(v.text)) >= 80
)

SELECT
    stack,
    condition,
    CASE WHEN same = n AND n >= 10 THEN 'error' ELSE 'warning' END AS severity,
    same = n AND n >= 10 AS blocks,
    stack || ', ' || condition || ': every repeat of the judge has the same text on ' || same || ' of ' || n
    || ' candidates, at a temperature above 0: served from a cache, or not drawn at all. Turn the cache off, or its noise is unknown.'
        AS sentence,
    same::DOUBLE AS value
FROM (
    SELECT stack, condition, count(*) AS n, count(*) FILTER (WHERE same) AS same
    FROM candidates
    GROUP BY stack, condition
)
WHERE n >= 5 AND same >= 0.8 * n;
