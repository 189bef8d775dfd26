-- macro: variance_components(relation)
-- grain: relation: always one
-- Components of nested grades: tasks, K generations each, G grades of each generation, by the method of moments: sequential sums of
-- squares, which is the nested analysis of variance. Grades may be unbalanced; rows without one are left out. Raw components may come
-- out below 0; clipped ones do not. Intervals, and when not to trust it: `evalnoise components`. Source: Two sources of eval noise.
-- arguments:
--   relation: Name of a table or view, as text, with columns task, generation and grade, a row per grade.
-- columns:
--   n_tasks: Tasks n.
--   n_generations: Generations of a task, K; the fewest, if tasks differ.
--   n_grades: Grades of a generation, G; the fewest, if generations differ.
--   balanced: Whether all tasks have K generations and all generations G grades.
--   mean: Mean grade, each task and each of its generations with the same weight; null: no grade.
--   task: Variance between tasks, raw; null: undefined.
--   generation: Variance between the generations of a task, raw; null: undefined.
--   grader: Variance between the grades of a generation; null: undefined.
--   together: Variance of what the design cannot tell apart, raw; null: it can, or nothing is defined.
--   together_of: What that is: task+generation, generation+grader or task+generation+grader; else empty.
--   task_clipped: task, at least 0.
--   generation_clipped: generation, at least 0.
--   mean_variance: Sample variance of the task means over n, for new tasks; balanced, it is (task + generation/K + grader/(K G))/n.
--   undefined: What is null and why; empty otherwise.
CREATE MACRO variance_components(relation) AS TABLE
WITH lowest AS (
  SELECT min(grade::DOUBLE) AS base
  FROM query_table(relation)
),

-- Above the lowest grade: of numbers that are large next to their spread, sums of squares would lose digits.
generations AS (
  SELECT
    task,
    generation,
    count(*) AS n,
    avg(grade::DOUBLE - base) AS mean,
    var_pop(grade::DOUBLE - base) * count(*) AS within
  FROM query_table(relation)
  CROSS JOIN lowest
  WHERE grade IS NOT NULL
  GROUP BY task, generation
),

centred AS (
  SELECT
    *,
    sum(n * mean) OVER (PARTITION BY task) / sum(n) OVER (PARTITION BY task) AS centre
  FROM generations
),

tasks AS (
  SELECT
    task,
    count(*) AS outputs,
    sum(n) AS grades,
    sum(n * n) AS grade_squares,
    min(n) AS least,
    max(n) AS most,
    avg(mean) AS mean,
    any_value(centre) AS centre,
    sum(within) AS within,
    sum(n * (mean - centre) * (mean - centre)) AS between_outputs
  FROM centred
  GROUP BY task
),

grand AS (
  SELECT
    *,
    sum(grades * centre) OVER () / sum(grades) OVER () AS grand_mean
  FROM tasks
),

sums AS (
  SELECT
    count(*) AS n_tasks,
    min(outputs) AS least_outputs,
    min(least) AS least_grades,
    min(outputs) = max(outputs) AND min(least) = max(most) AS balanced,
    avg(mean) AS mean,
    CASE WHEN count(*) >= 2 THEN var_samp(mean) / count(*) END AS mean_variance,
    count(*) - 1 AS df_task,
    sum(outputs) - count(*) AS df_generation,
    sum(grades) - sum(outputs) AS df_grader,
    sum(grades)::DOUBLE AS grades,
    sum(within) AS within,
    sum(between_outputs) AS between_outputs,
    sum(grades * (centre - grand_mean) * (centre - grand_mean)) AS between_tasks,
    sum(grade_squares / grades) AS k,
    sum(grade_squares) / sum(grades) AS q,
    sum(grades * grades) / sum(grades) AS r
  FROM grand
),

-- A level without repeats leaves its variance in the one above: the upper of the two then stands for both.
graders AS (
  SELECT
    *,
    CASE WHEN df_grader > 0 THEN within / df_grader ELSE 0 END AS grader_part
  FROM sums
),

outputs AS (
  SELECT
    *,
    CASE WHEN df_generation > 0 THEN (between_outputs - df_generation * grader_part) / (grades - k) ELSE 0 END AS generation_part
  FROM graders
),

parts AS (
  SELECT
    *,
    CASE WHEN df_task > 0 THEN (between_tasks - (k - q) * generation_part - df_task * grader_part) / (grades - r) END AS task_part
  FROM outputs
),

components AS (
  SELECT
    *,
    CASE WHEN df_generation > 0 THEN task_part END AS task,
    CASE WHEN df_generation > 0 AND df_grader > 0 THEN generation_part END AS generation,
    CASE WHEN df_grader > 0 THEN grader_part END AS grader
  FROM parts
)

SELECT
  n_tasks,
  least_outputs AS n_generations,
  least_grades AS n_grades,
  balanced,
  base + mean AS mean,
  task,
  generation,
  grader,
  CASE
    WHEN df_generation > 0 AND df_grader = 0 THEN generation_part
    WHEN df_generation = 0 THEN task_part
  END AS together,
  CASE
    WHEN df_generation > 0 AND df_grader = 0 THEN 'generation+grader'
    WHEN df_generation = 0 AND df_grader > 0 AND df_task > 0 THEN 'task+generation'
    WHEN df_generation = 0 AND df_task > 0 THEN 'task+generation+grader'
    ELSE ''
  END AS together_of,
  CASE WHEN task IS NOT NULL THEN greatest(0, task) END AS task_clipped,
  CASE WHEN generation IS NOT NULL THEN greatest(0, generation) END AS generation_clipped,
  mean_variance,
  CASE
    WHEN n_tasks = 0 THEN 'no grade'
    ELSE concat_ws(
      '; ',
      CASE WHEN n_tasks = 1 THEN 'one task: a variance between tasks needs 2' END,
      CASE WHEN df_generation = 0 THEN 'no task has two generations: task and generation cannot be told apart' END,
      CASE WHEN df_grader = 0 THEN 'no generation has two grades: generation and grader cannot be told apart' END
    )
  END AS undefined
FROM components
CROSS JOIN lowest;
