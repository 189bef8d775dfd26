-- view: verifier_noise
-- grain: stack x condition x task x candidate that was not always verified alike
-- One candidate, by its digest, verified by one stack more than once within a protocol, under whatever conditions: reverify, a replay,
-- or a model that gave the same answer again. It is listed where the reason was not the same every time, a row for each condition that
-- verified it, so that what differed can be set beside the CPU, the wall time and the load of each reason.
-- columns:
--   study: Name of the study.
--   protocol: SHA-256 of the frozen protocol.
--   benchmark: Name of the benchmark.
--   stack: Name of the stack.
--   condition: Name of the condition.
--   task_id: The benchmark's own id of the task.
--   position: Place in the benchmark's order, from 0.
--   candidate_sha256: SHA-256 of the candidate.
--   checker: Checker that compared.
--   verifications: Verifications of the candidate under this condition.
--   passes: Those that passed.
--   fails: Those that failed.
--   unmeasured: Those without a verdict.
--   reasons: How they ended, each reason with its number: pass 9, cpu-limit 1.
--   flipped: Whether it both passed and failed under this condition.
--   reason_changed: Whether its reason was not the same every time under this condition; true where it flipped.
--   flipped_anywhere: Whether it both passed and failed under the stack's conditions taken together.
--   cpu_min: Least CPU time, seconds.
--   cpu_max: Most CPU time, seconds.
--   cpu_limit: CPU limit in force, seconds; the largest, if they differ.
--   limit_share_min: Least CPU as a share of its limit.
--   limit_share_max: Most CPU as a share of its limit.
--   wall_min: Shortest wall time, seconds.
--   wall_max: Longest wall time, seconds.
--   load_min: Lowest one-minute load average of the host.
--   load_max: Highest one-minute load average of the host.
--   cpu_by_reason: CPU seconds of each reason, least to most: pass 9.1-9.9, cpu-limit 10.4.
--   wall_by_reason: Wall seconds of each reason.
--   load_by_reason: Load averages of each reason.
--   rechecks: Earlier runs that settled these verifications.
--   containers: Different containers that ran it.
CREATE VIEW verifier_noise AS
WITH unsteady AS (
  SELECT
    study,
    protocol,
    stack,
    task_id,
    candidate_sha256,
    checker,
    bool_or(outcome = 'pass') AND bool_or(outcome = 'fail') AS flipped_anywhere
  FROM executions
  GROUP BY study, protocol, stack, task_id, candidate_sha256, checker
  HAVING min(reason) <> max(reason)
),

by_reason AS (
  SELECT
    e.study,
    e.protocol,
    e.benchmark,
    e.stack,
    e.condition,
    e.task_id,
    e.position,
    e.candidate_sha256,
    e.checker,
    e.outcome,
    e.reason,
    u.flipped_anywhere,
    count(*) AS n,
    min(e.cpu_seconds) AS cpu_min,
    max(e.cpu_seconds) AS cpu_max,
    max(e.cpu_limit_seconds) AS cpu_limit,
    min(e.limit_share) AS limit_share_min,
    max(e.limit_share) AS limit_share_max,
    min(e.wall_seconds) AS wall_min,
    max(e.wall_seconds) AS wall_max,
    min(e.load) AS load_min,
    max(e.load) AS load_max,
    sum(coalesce(json_array_length(e.rechecks), 0)) AS rechecks,
    list(DISTINCT nullif(e.container, '')) AS containers
  FROM executions AS e
  JOIN unsteady AS u USING (study, protocol, stack, task_id, candidate_sha256, checker)
  GROUP BY ALL
),

in_words AS (
  SELECT
    *,
    round(cpu_min, 3) || CASE WHEN round(cpu_max, 3) > round(cpu_min, 3) THEN '-' || round(cpu_max, 3) ELSE '' END AS cpu,
    round(wall_min, 3) || CASE WHEN round(wall_max, 3) > round(wall_min, 3) THEN '-' || round(wall_max, 3) ELSE '' END AS wall,
    round(load_min, 2) || CASE WHEN round(load_max, 2) > round(load_min, 2) THEN '-' || round(load_max, 2) ELSE '' END AS loads
  FROM by_reason
)

SELECT
  study,
  protocol,
  benchmark,
  stack,
  condition,
  task_id,
  position,
  candidate_sha256,
  checker,
  sum(n)::BIGINT AS verifications,
  coalesce(sum(n) FILTER (WHERE outcome = 'pass'), 0)::BIGINT AS passes,
  coalesce(sum(n) FILTER (WHERE outcome = 'fail'), 0)::BIGINT AS fails,
  coalesce(sum(n) FILTER (WHERE outcome = 'unmeasured'), 0)::BIGINT AS unmeasured,
  string_agg(reason || ' ' || n, ', ' ORDER BY n DESC, reason) AS reasons,
  bool_or(outcome = 'pass') AND bool_or(outcome = 'fail') AS flipped,
  count(*) > 1 AS reason_changed,
  any_value(flipped_anywhere) AS flipped_anywhere,
  min(cpu_min) AS cpu_min,
  max(cpu_max) AS cpu_max,
  max(cpu_limit) AS cpu_limit,
  min(limit_share_min) AS limit_share_min,
  max(limit_share_max) AS limit_share_max,
  min(wall_min) AS wall_min,
  max(wall_max) AS wall_max,
  min(load_min) AS load_min,
  max(load_max) AS load_max,
  string_agg(reason || ' ' || cpu, ', ' ORDER BY n DESC, reason) AS cpu_by_reason,
  string_agg(reason || ' ' || wall, ', ' ORDER BY n DESC, reason) AS wall_by_reason,
  string_agg(reason || ' ' || loads, ', ' ORDER BY n DESC, reason) AS load_by_reason,
  sum(rechecks)::BIGINT AS rechecks,
  len(list_distinct(flatten(list(containers))))::BIGINT AS containers
FROM in_words
GROUP BY study, protocol, benchmark, stack, condition, task_id, position, candidate_sha256, checker;
