-- view: verifier_noise_summary
-- grain: stack x condition with a verification
-- How often a condition verified the same candidate more than once, and whether it always said the same: no row in verifier_noise is
-- then a number too. The variance that flips make under reverify, with its intervals, is w in noise_floor.
-- columns:
--   study: Name of the study.
--   protocol: SHA-256 of the frozen protocol.
--   benchmark: Name of the benchmark.
--   stack: Name of the stack.
--   condition: Name of the condition.
--   verifications: Verifications under this condition.
--   candidates: Different candidates of its tasks.
--   repeated: Those that were verified at least twice.
--   flipped: Those that both passed and failed.
--   reason_changed: Those whose reason was not the same every time; they include those that flipped.
--   unmeasured: Verifications without a verdict.
--   near_limit: Tasks near a limit of time, as in near_limit_tasks.
CREATE VIEW verifier_noise_summary AS
WITH candidates AS (
  SELECT
    study,
    protocol,
    benchmark,
    stack,
    condition,
    task_id,
    candidate_sha256,
    count(*) AS n,
    count(*) FILTER (WHERE outcome = 'unmeasured') AS unmeasured,
    bool_or(outcome = 'pass') AND bool_or(outcome = 'fail') AS flipped,
    min(reason) <> max(reason) AS reason_changed
  FROM executions
  GROUP BY study, protocol, benchmark, stack, condition, task_id, candidate_sha256
),

conditions AS (
  SELECT
    study,
    protocol,
    benchmark,
    stack,
    condition,
    sum(n)::BIGINT AS verifications,
    count(*) AS candidates,
    count(*) FILTER (WHERE n > 1) AS repeated,
    count(*) FILTER (WHERE flipped) AS flipped,
    count(*) FILTER (WHERE reason_changed) AS reason_changed,
    sum(unmeasured)::BIGINT AS unmeasured
  FROM candidates
  GROUP BY study, protocol, benchmark, stack, condition
),

near_limit AS (
  SELECT study, protocol, stack, condition, count(*) AS tasks
  FROM near_limit_tasks
  GROUP BY study, protocol, stack, condition
)

SELECT
  c.*,
  coalesce(n.tasks, 0) AS near_limit
FROM conditions AS c
LEFT JOIN near_limit AS n
  ON n.study = c.study AND n.protocol = c.protocol AND n.stack = c.stack AND n.condition = c.condition;
