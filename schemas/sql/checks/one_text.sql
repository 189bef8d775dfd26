-- check: one_text
-- grain: stack x condition
-- Tasks whose replicates are one text, to the letter, though fresh calls at a temperature above 0 made them: a cache that does not
-- say so, or a server that does not draw. Four tasks of five are a warning; all of ten or more block. Answers under 80 characters
-- say nothing, because a short answer can be the same by itself; at temperature 0 one text is what one hopes for.
-- columns: stack, condition, severity, blocks, sentence, value
WITH fresh AS (
    SELECT stack, condition
    FROM calls
    WHERE study = $study AND protocol = $protocol AND purpose = 'generate'
    GROUP BY stack, condition
    -- A temperature that is not sent is the provider's default, which is above 0.
    HAVING coalesce(try_cast(any_value(request) ->> '$.body.temperature' AS DOUBLE), 1.0) > 0
),

tasks AS (
    SELECT g.stack, g.condition, g.task_id, count(DISTINCT g.text_sha256) AS texts
    FROM generations AS g
    JOIN fresh AS f ON f.stack = g.stack AND f.condition = g.condition
    WHERE
        g.study = $study
        AND g.protocol = $protocol
        AND g.attempt = 0
        AND g.response_class IN ('complete', 'truncated')
    GROUP BY g.stack, g.condition, g.task_id
    HAVING count(*) > 1 AND min(length(g.text)) >= 80
)

SELECT
    stack,
    condition,
    CASE WHEN same = n AND n >= 10 THEN 'error' ELSE 'warning' END AS severity,
    same = n AND n >= 10 AS blocks,
    stack || ', ' || condition || ': every replicate has the same text on ' || same || ' of ' || n
    || ' tasks with longer answers, at a temperature above 0: served from a cache, or not drawn at all.' AS sentence,
    same::DOUBLE AS value
FROM (
    SELECT stack, condition, count(*) AS n, count(*) FILTER (WHERE texts = 1) AS same
    FROM tasks
    GROUP BY stack, condition
)
WHERE n >= 5 AND same >= 0.8 * n;
