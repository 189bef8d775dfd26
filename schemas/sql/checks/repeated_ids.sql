-- check: repeated_ids
-- grain: stack x condition
-- One answer that was given to several calls, as a cache does; such replicates are no replicates. Where an id stands for several
-- texts the server gives no ids: some local servers draw them from a thousand numbers. Then it is a warning, because a cache cannot be
-- told by them.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    CASE WHEN one_text > other THEN 'error' ELSE 'warning' END AS severity,
    one_text > other AS blocks,
    stack || ', ' || condition || ': '
    || CASE
        WHEN one_text > other
            THEN one_text || ' calls got an answer that another call got too (' || ids
                || CASE WHEN ids = 1 THEN ' response id' ELSE ' response ids' END || '): served from a cache, they are no replicates.'
        ELSE other || CASE WHEN other = 1 THEN ' call has' ELSE ' calls have' END
            || ' a response id that another answer has too: the server''s ids tell no answers apart, nor whether a cache served them.'
    END AS sentence,
    greatest(one_text, other)::DOUBLE AS value
FROM (
    SELECT
        stack,
        condition,
        count(*) FILTER (WHERE texts = 1) AS one_text,
        count(*) FILTER (WHERE texts > 1) AS other,
        count(DISTINCT response_id) FILTER (WHERE texts = 1) AS ids
    FROM (
        -- Over all conditions of a study: a cache does not know which of them asks.
        SELECT
            stack,
            condition,
            response_id,
            count(*) OVER (PARTITION BY provider, response_id) AS shared,
            count(DISTINCT text) OVER (PARTITION BY provider, response_id) AS texts
        FROM (
            -- A request that was sent again may get one answer twice: that is one call.
            SELECT DISTINCT
                c.stack, c.condition, c.replicate, c.task_id, c.attempt, c.provider, c.response_id,
                coalesce(g.text_sha256, v.text, '') AS text
            FROM calls AS c
            LEFT JOIN generations AS g
                ON (g.study, g.protocol, g.stack, g.condition, g.replicate, g.task_id, g.attempt, g.request_key)
                = (c.study, c.protocol, c.stack, c.condition, c.replicate, c.task_id, c.attempt, c.request_key)
            LEFT JOIN verdicts AS v
                ON (v.study, v.protocol, v.stack, v.condition, v.repeat, v.task_id)
                = (c.study, c.protocol, c.stack, c.condition, c.replicate, c.task_id)
            WHERE c.study = $study AND c.protocol = $protocol AND c.response_id <> ''
        )
    )
    WHERE shared > 1
    GROUP BY stack, condition
);
