-- macro: paired_noise(a, b)
-- grain: pair of arms: always one
-- The variance of one question's difference of scores between two arms on the same tasks, and its parts: prediction, which new runs
-- change, and data, which new tasks change; both are corrected for the number of runs, and total is their sum. A standard error is
-- sqrt(variance / n_tasks): that of `prediction` is for one run per arm on these tasks. Only tasks that both arms measured count. It takes
-- the runs of the two arms as independent. Where samples are missing, n_twice is below n_tasks: data and prediction then stand on fewer
-- tasks than total, and do not add up to it. An error for an arm without outcomes or with one task id twice. Source: Measuring all the noises, paired estimators.
-- arguments:
--   a: Minuend: STUDY/STACK/CONDITION; STUDY is a study's name or the first digits of one protocol, at least 4.
--   b: Subtrahend, the same way.
-- columns:
--   protocol_a: SHA-256 of the frozen protocol of a.
--   protocol_b: SHA-256 of the frozen protocol of b.
--   n_tasks: Tasks that both arms measured.
--   n_twice: Of them, those that both measured twice or more: data and prediction stand on these.
--   n_unmatched: Tasks that only one of them measured; they are in no number.
--   runs_a: Measured runs per task of a, the smallest if they differ.
--   runs_b: The same of b.
--   score_a: Mean over the tasks of a's mean score.
--   score_b: The same of b.
--   difference: score_a - score_b.
--   total: Variance of a difference of two single runs over tasks and runs; null: undefined.
--   data: Its part between tasks, corrected and untruncated: it may come out below 0; null: undefined.
--   prediction: Its part within tasks, the sum of the two w; null: undefined.
--   se_total: Standard error of a difference of two single runs, for new tasks and new runs (population).
--   se_data: The part of it that more runs cannot lessen; null also where data came out below 0.
--   se_prediction: Standard error of a difference of two single runs on these tasks (benchmark).
--   se_mean: Standard error of `difference` itself, with all runs of both arms, for new tasks (population).
--   se_runs: The same for new runs of these tasks (benchmark). A task with one run in an arm has the arm's mean variance within tasks.
--   undefined: What is null and why; empty otherwise.
CREATE MACRO paired_noise(a, b) AS TABLE
-- Both hold tasks without a measured run too: an arm that measured nothing is an arm.
WITH tasks_a AS (
  SELECT *
  FROM arm_tasks(a)
),

tasks_b AS (
  SELECT *
  FROM arm_tasks(b)
),

named AS (
  SELECT
    (SELECT any_value(protocol) FROM tasks_a) AS protocol_a,
    (SELECT any_value(protocol) FROM tasks_b) AS protocol_b,
    (SELECT any_value(study || '/' || stack || '/' || condition || '/' || protocol) FROM tasks_a) AS name_a,
    (SELECT any_value(study || '/' || stack || '/' || condition || '/' || protocol) FROM tasks_b) AS name_b,
    (SELECT count(*) FROM tasks_a WHERE runs > 0) + (SELECT count(*) FROM tasks_b WHERE runs > 0) AS n_both
),

paired AS (
  SELECT
    x.runs AS runs_a,
    y.runs AS runs_b,
    x.runs >= 2 AND y.runs >= 2 AS twice,
    x.total / x.runs AS mean_a,
    y.total / y.runs AS mean_b,
    -- Variances of single runs with ddof 0, and those of ddof 1 alone and as parts of the means' variance.
    greatest(0, (x.squares * x.runs - x.total * x.total) / (x.runs * x.runs))
    + greatest(0, (y.squares * y.runs - y.total * y.total) / (y.runs * y.runs)) AS spread,
    x.variance + y.variance AS within,
    x.variance / x.runs + y.variance / y.runs AS within_means,
    coalesce(x.variance, avg(x.variance) OVER ()) / x.runs + coalesce(y.variance, avg(y.variance) OVER ()) / y.runs AS of_runs
  FROM tasks_a AS x
  JOIN tasks_b AS y ON y.benchmark = x.benchmark AND y.task_id = x.task_id
  WHERE x.runs > 0 AND y.runs > 0
),

sums AS (
  SELECT
    count(*) AS n_tasks,
    count(*) FILTER (WHERE twice) AS n_twice,
    min(runs_a) AS runs_a,
    min(runs_b) AS runs_b,
    avg(mean_a) AS score_a,
    avg(mean_b) AS score_b,
    CASE WHEN count(*) >= 2 THEN var_pop(mean_a - mean_b) END AS of_mean,
    avg(spread) AS spread,
    var_pop(mean_a - mean_b) FILTER (WHERE twice) AS of_mean_twice,
    avg(within) FILTER (WHERE twice) AS prediction,
    avg(within_means) FILTER (WHERE twice) AS of_runs_twice,
    avg(of_runs) AS of_runs
  FROM paired
),

defined AS (
  SELECT
    *,
    of_mean + spread AS total,
    CASE WHEN n_twice >= 2 THEN of_mean_twice - of_runs_twice END AS data
  FROM sums
)

SELECT
  CASE
    WHEN n.name_a = n.name_b THEN error('paired_noise: both arms are ' || a || ', whose runs are not independent of themselves')
    WHEN d.n_tasks = 0 THEN error('paired_noise: no task was measured in both ' || a || ' and ' || b)
    ELSE n.protocol_a
  END AS protocol_a,
  n.protocol_b,
  d.n_tasks,
  d.n_twice,
  n.n_both - 2 * d.n_tasks AS n_unmatched,
  d.runs_a,
  d.runs_b,
  d.score_a,
  d.score_b,
  d.score_a - d.score_b AS difference,
  d.total,
  d.data,
  d.prediction,
  sqrt(d.total / d.n_tasks) AS se_total,
  CASE WHEN d.data >= 0 THEN sqrt(d.data / d.n_tasks) END AS se_data,
  sqrt(d.prediction / d.n_tasks) AS se_prediction,
  sqrt(d.of_mean / d.n_tasks) AS se_mean,
  sqrt(d.of_runs / d.n_tasks) AS se_runs,
  concat_ws(
    '; ',
    CASE WHEN d.n_tasks = 1 THEN 'one task says nothing about other tasks' END,
    CASE
      WHEN d.n_twice = 0 THEN 'no task has two runs in both arms: data and prediction need them'
      WHEN d.n_twice = 1 AND d.n_tasks > 1 THEN 'one task has two runs in both arms: data needs two such tasks'
    END
  ) AS undefined
FROM defined AS d
CROSS JOIN named AS n;
