-- view: near_limit_tasks
-- grain: stack x condition x task with a verification that time may have decided
-- Residual verification noise: the verdict of such a task may hang on how fast the machine was, even after the re-checks. A
-- verification counts here when its CPU was half the limit or more, and under twice the limit, where a run is stopped and no load
-- explains it, and its reason is pass or cpu-limit; when its reason is wall-limit or idle; and when some of its runs ended at a limit
-- of time and others did not.
-- columns:
--   study: Name of the study.
--   protocol: SHA-256 of the frozen protocol.
--   benchmark: Name of the benchmark.
--   stack: Name of the stack.
--   condition: Name of the condition.
--   task_id: The benchmark's own id of the task.
--   position: Place in the benchmark's order, from 0.
--   verifications: Such verifications of the task under this condition.
--   reasons: How they ended, each reason with its number.
--   rechecks: Earlier runs that settled them.
--   limit_share_min: Least CPU of them, as a share of its limit.
--   limit_share_max: Most CPU of them, the same.
--   load_max: Highest one-minute load average among them.
CREATE VIEW near_limit_tasks AS
WITH settled AS (
  SELECT
    study,
    protocol,
    benchmark,
    stack,
    condition,
    task_id,
    position,
    reason,
    limit_share,
    load,
    rechecks,
    -- Almost no verification has an earlier run, so almost no text is parsed. What the sandbox failed to run is no run of the candidate.
    CASE
      WHEN rechecks <> '[]'
        THEN [r FOR r IN list_append(json_extract_string(rechecks, '$[*].reason'), reason) IF r <> 'infrastructure']
    END AS ends
  FROM executions
),

near_limit AS (
  SELECT
    * EXCLUDE (ends, rechecks),
    coalesce(json_array_length(rechecks), 0) AS rechecks
  FROM settled
  WHERE
    reason IN ('wall-limit', 'idle')
    OR (reason IN ('pass', 'cpu-limit') AND limit_share >= 0.5 AND limit_share < 2)
    OR len([r FOR r IN ends IF r IN ('cpu-limit', 'wall-limit', 'idle')]) BETWEEN 1 AND len(ends) - 1
),

by_reason AS (
  SELECT
    study,
    protocol,
    benchmark,
    stack,
    condition,
    task_id,
    position,
    reason,
    count(*) AS verifications,
    sum(rechecks) AS rechecks,
    min(limit_share) AS limit_share_min,
    max(limit_share) AS limit_share_max,
    max(load) AS load_max
  FROM near_limit
  GROUP BY study, protocol, benchmark, stack, condition, task_id, position, reason
)

SELECT
  study,
  protocol,
  benchmark,
  stack,
  condition,
  task_id,
  position,
  sum(verifications)::BIGINT AS verifications,
  string_agg(reason || ' ' || verifications, ', ' ORDER BY verifications DESC, reason) AS reasons,
  sum(rechecks)::BIGINT AS rechecks,
  min(limit_share_min) AS limit_share_min,
  max(limit_share_max) AS limit_share_max,
  max(load_max) AS load_max
FROM by_reason
GROUP BY study, protocol, benchmark, stack, condition, task_id, position;
