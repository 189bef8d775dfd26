-- check: unmatched_tasks
-- grain: stack x condition
-- Tasks that another condition of the same stack measured and this one did not: each score then is about other tasks.
-- columns: stack, condition, severity, blocks, sentence, value
WITH measured AS (
    SELECT DISTINCT stack, position
    FROM task_counts
    WHERE study = $study AND protocol = $protocol AND runs > 0
),

conditions AS (
    SELECT stack, condition, count(*) FILTER (WHERE runs > 0) AS n
    FROM task_counts
    WHERE study = $study AND protocol = $protocol
    GROUP BY stack, condition
)

SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || missing || ' of ' || n_tasks || CASE WHEN n_tasks = 1 THEN ' task' ELSE ' tasks' END
    || CASE WHEN missing = 1 THEN ' was' ELSE ' were' END
    || ' measured under another condition and not under this one: compare paired numbers only, as `contrasts` does.' AS sentence,
    missing::DOUBLE AS value
FROM (
    SELECT
        c.stack,
        c.condition,
        t.n AS n_tasks,
        t.n - c.n AS missing
    FROM conditions AS c
    JOIN (SELECT stack, count(*) AS n FROM measured GROUP BY stack) AS t ON t.stack = c.stack
)
WHERE missing > 0;
