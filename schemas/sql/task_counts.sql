-- name: task_counts
-- grain: stack x condition x task of a protocol
-- columns: study, protocol, benchmark, stack, condition, task_id, position, passes (measured replicates that passed),
--   runs (measured replicates), unmeasured (replicates without an outcome)
SELECT
    study,
    protocol,
    benchmark,
    stack,
    condition,
    task_id,
    position,
    count(*) FILTER (WHERE outcome = 'pass') AS passes,
    count(*) FILTER (WHERE outcome IN ('pass', 'fail')) AS runs,
    count(*) FILTER (WHERE outcome = 'unmeasured') AS unmeasured
FROM outcomes
GROUP BY ALL
