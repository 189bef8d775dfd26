-- check: answers_unused
-- grain: stack x condition
-- Requests of a second attempt that no outcome stands on: the cell was made again after them, and its first answer, verified again,
-- came to another end. They were paid for; the first answer's candidate, or its verification, is not steady.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || count(*) || CASE WHEN count(*) = 1 THEN ' request' ELSE ' requests' END
    || ' of a second attempt'
    || CASE WHEN count(*) = 1 THEN ' was' ELSE ' were' END
    || ' paid for and not used: the first answer''s candidate, verified again after a kill or for a retry, came to another end than before, on '
    || string_agg(DISTINCT task_id, ', ' ORDER BY task_id) || '.' AS sentence,
    count(*)::DOUBLE AS value
FROM (
    SELECT DISTINCT c.stack, c.condition, c.replicate, c.task_id, c.attempt, c.request_key
    FROM calls AS c
    ANTI JOIN generations AS g
        ON (g.study, g.protocol, g.stack, g.condition, g.replicate, g.task_id, g.attempt, g.request_key)
        = (c.study, c.protocol, c.stack, c.condition, c.replicate, c.task_id, c.attempt, c.request_key)
    WHERE c.study = $study AND c.protocol = $protocol AND c.purpose = 'generate'
)
GROUP BY stack, condition;
