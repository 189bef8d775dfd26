-- view: task_counts
-- grain: stack x condition x task
-- What the statistics start from: integers, so that nothing is lost to rounding.
-- columns:
--   study: Name of the study.
--   protocol: SHA-256 of the frozen protocol.
--   benchmark: Name of the benchmark.
--   stack: Name of the stack.
--   condition: Name of the condition.
--   task_id: The benchmark's own id of the task.
--   position: Place in the benchmark's order, from 0.
--   passes: Measured replicates that passed.
--   runs: Measured replicates.
--   unmeasured: Replicates without an outcome.
CREATE VIEW task_counts AS
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
GROUP BY study, protocol, benchmark, stack, condition, task_id, position;
