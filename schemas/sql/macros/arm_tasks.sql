-- macro: arm_tasks(arm)
-- grain: task of one arm that has a cell
-- One stack under one condition, by task: what comparisons start from. A study's name means its newest complete protocol, or the newest
-- if none is complete. An error for an arm without outcomes, and for one that has two tasks of one id: they cannot be paired.
-- arguments:
--   arm: STUDY/STACK/CONDITION; STUDY is a study's name, or the first digits of one protocol, at least 4.
-- columns:
--   study: Name of the study.
--   protocol: SHA-256 of the frozen protocol.
--   benchmark: Name of the benchmark.
--   stack: Name of the stack.
--   condition: Name of the condition.
--   task_id: The benchmark's own id of the task.
--   position: Place in the benchmark's order, from 0.
--   runs: Measured replicates.
--   total: Sum of their scores.
--   squares: Sum of the squares of their scores.
--   variance: Sample variance of their scores; null for fewer than 2.
CREATE MACRO arm_tasks(arm) AS TABLE
WITH named AS (
  SELECT
    study,
    protocol,
    study = split_part(arm, '/', 1) AS by_name,
    status = 'complete' AS complete,
    frozen_at
  FROM protocols
  WHERE
    study = split_part(arm, '/', 1)
    OR (length(split_part(arm, '/', 1)) >= 4 AND starts_with(protocol, split_part(arm, '/', 1)))
),

chosen AS (
  SELECT study, protocol
  FROM named
  -- Digits that several protocols begin with name none of them.
  WHERE by_name OR (SELECT count(*) FROM named) = 1
  ORDER BY by_name DESC, complete DESC, frozen_at DESC, protocol
  LIMIT 1
),

tasks AS (
  SELECT
    o.study,
    o.protocol,
    o.benchmark,
    o.stack,
    o.condition,
    o.task_id,
    o.position,
    count(*) FILTER (WHERE o.outcome IN ('pass', 'fail')) AS runs,
    coalesce(sum(o.score) FILTER (WHERE o.outcome IN ('pass', 'fail')), 0) AS total,
    coalesce(sum(o.score * o.score) FILTER (WHERE o.outcome IN ('pass', 'fail')), 0) AS squares
  FROM outcomes AS o
  JOIN chosen AS c ON c.study = o.study AND c.protocol = o.protocol
  WHERE o.stack = split_part(arm, '/', 2) AND o.condition = split_part(arm, '/', 3) AND len(string_split(arm, '/')) = 3
  GROUP BY o.study, o.protocol, o.benchmark, o.stack, o.condition, o.task_id, o.position
),

checked AS (
  SELECT
    CASE
      WHEN count(*) = 0 THEN error('arm_tasks: no outcomes of ' || arm || '; name an arm as STUDY/STACK/CONDITION')
      WHEN count(*) > count(DISTINCT task_id) THEN error('arm_tasks: ' || arm || ' has two tasks of one id, which cannot be paired')
      ELSE true
    END AS sound
  FROM tasks
)

SELECT
  t.*,
  CASE WHEN t.runs >= 2 THEN greatest(0, (t.squares * t.runs - t.total * t.total) / (t.runs * (t.runs - 1))) END AS variance
FROM checked AS c
LEFT JOIN tasks AS t ON true
WHERE c.sound;
