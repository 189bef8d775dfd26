-- view: task_noise
-- grain: stack x condition x task with at least two measured replicates
-- What each task does to w: the tasks that carry the noise, and w without each of them.
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
--   s2: Sample variance of the task's outcomes, passes (runs - passes) / (runs (runs - 1)).
--   share: Its share of the sum of s2; null: nothing varied.
--   carried: Share of the tasks up to this one, from the largest s2 down, of equal ones in the benchmark's order; null: nothing varied.
--   w_without: w of the other tasks; null: there is no other.
--   z: s2 less w, in standard deviations of s2 over tasks; null: all tasks have the same s2.
CREATE VIEW task_noise AS
WITH tasks AS (
  SELECT
    study,
    protocol,
    benchmark,
    stack,
    condition,
    task_id,
    position,
    passes,
    runs,
    passes * (runs - passes) AS product,
    runs * (runs - 1) AS pairs
  FROM task_counts
  WHERE runs >= 2
),

-- Integers as far as they go: one sum for each number of runs, and one rounding where all tasks have the same.
by_runs AS (
  SELECT
    study,
    protocol,
    stack,
    condition,
    pairs,
    count(*) AS n,
    sum(product)::DOUBLE AS total,
    sum(product * product)::DOUBLE AS squares,
    min(product) AS least,
    max(product) AS most
  FROM tasks
  GROUP BY study, protocol, stack, condition, pairs
),

sums AS (
  SELECT
    study,
    protocol,
    stack,
    condition,
    sum(n)::DOUBLE AS n,
    count(*) = 1 AS balanced,
    max(pairs) AS pairs,
    sum(total) AS total,
    sum(total / pairs ORDER BY pairs) AS s2,
    sum(squares / pairs / pairs ORDER BY pairs) AS s2_squares,
    min(least / pairs) = max(most / pairs) AS same
  FROM by_runs
  GROUP BY study, protocol, stack, condition
)

SELECT
  t.study,
  t.protocol,
  t.benchmark,
  t.stack,
  t.condition,
  t.task_id,
  t.position,
  t.passes,
  t.runs,
  t.product / t.pairs AS s2,
  CASE WHEN s.total > 0 THEN CASE WHEN s.balanced THEN t.product / s.total ELSE t.product / t.pairs / s.s2 END END AS share,
  CASE
    WHEN s.total > 0
      THEN CASE
        WHEN s.balanced THEN sum(t.product) OVER largest_first / s.total
        ELSE sum(t.product / t.pairs) OVER largest_first / s.s2
      END
  END AS carried,
  CASE
    WHEN s.n > 1
      THEN CASE
        WHEN s.balanced THEN (s.total - t.product) / ((s.n - 1) * s.pairs)
        ELSE greatest(0, s.s2 - t.product / t.pairs) / (s.n - 1)
      END
  END AS w_without,
  CASE
    WHEN NOT s.same
      THEN (t.product / t.pairs - s.s2 / s.n) / sqrt((s.s2_squares - s.s2 * s.s2 / s.n) / (s.n - 1))
  END AS z
FROM tasks AS t
JOIN sums AS s
  ON s.study = t.study AND s.protocol = t.protocol AND s.stack = t.stack AND s.condition = t.condition
WINDOW largest_first AS (
  PARTITION BY t.study, t.protocol, t.stack, t.condition
  ORDER BY t.product / t.pairs DESC, t.position
  ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);
