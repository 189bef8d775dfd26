-- macro: paired_noise(a, b)
-- grain: pair of arms: always one
-- The variance of one question's difference of scores between two arms on the same tasks, and its parts: prediction, which new runs
-- change, and data, which new tasks change; both are corrected for the number of runs, and total is their sum. A standard error is
-- sqrt(variance / n_tasks): that of `prediction` is for one run per arm on these tasks. Only tasks that both arms measured count. It takes
-- the runs of the two arms as independent. An error for an arm without outcomes. Source: Measuring all the noises, paired estimators.
-- arguments:
--   a: Minuend: STUDY/STACK/CONDITION; STUDY is a study's name or the first digits of one protocol, at least 4.
--   b: Subtrahend, the same way.
-- columns:
--   protocol_a: SHA-256 of the frozen protocol of a.
--   protocol_b: SHA-256 of the frozen protocol of b.
--   n_tasks: Tasks that both arms measured.
--   n_unmatched: Tasks that only one of them measured; they are in no number.
--   runs_a: Measured runs per task of a, the smallest if they differ.
--   runs_b: The same of b.
--   score_a: Mean over the tasks of a's mean score.
--   score_b: The same of b.
--   difference: score_a - score_b.
--   total: Variance of a difference of two single runs over tasks and runs; null: undefined.
--   data: Its part between tasks, corrected and untruncated: it may come out below 0; null: undefined.
--   prediction: Its part within tasks; null: undefined.
--   se_total: Standard error of a difference of two single runs, for new tasks and new runs (population).
--   se_data: The part of it that more runs cannot lessen; null also where data came out below 0.
--   se_prediction: Standard error of a difference of two single runs on these tasks (benchmark).
--   se_runs: Standard error of `difference` itself on these tasks (benchmark), with all runs of both arms.
--   undefined: Why data and prediction are null; empty otherwise.
CREATE MACRO paired_noise(a, b) AS TABLE
WITH tasks_a AS (
  SELECT *
  FROM arm_tasks(a)
  WHERE runs > 0
),

tasks_b AS (
  SELECT *
  FROM arm_tasks(b)
  WHERE runs > 0
),

named AS (
  SELECT
    (SELECT any_value(protocol) FROM tasks_a) AS protocol_a,
    (SELECT any_value(protocol) FROM tasks_b) AS protocol_b,
    (SELECT any_value(study || '/' || stack || '/' || condition || '/' || protocol) FROM tasks_a) AS name_a,
    (SELECT any_value(study || '/' || stack || '/' || condition || '/' || protocol) FROM tasks_b) AS name_b,
    (SELECT count(*) FROM tasks_a) + (SELECT count(*) FROM tasks_b) AS n_both
),

paired AS (
  SELECT
    x.runs AS runs_a,
    y.runs AS runs_b,
    x.total / x.runs AS mean_a,
    y.total / y.runs AS mean_b,
    x.squares / x.runs AS square_a,
    y.squares / y.runs AS square_b,
    x.variance + y.variance AS within,
    x.variance / x.runs + y.variance / y.runs AS within_means
  FROM tasks_a AS x
  JOIN tasks_b AS y ON y.benchmark = x.benchmark AND y.task_id = x.task_id
),

sums AS (
  SELECT
    count(*) AS n_tasks,
    min(runs_a) AS runs_a,
    min(runs_b) AS runs_b,
    avg(mean_a) AS score_a,
    avg(mean_b) AS score_b,
    -- var A + var B - 2 cov(mean A, mean B), each over all runs of the task, tasks with equal weight.
    avg(square_a) - avg(mean_a) * avg(mean_a) + avg(square_b) - avg(mean_b) * avg(mean_b) - 2 * covar_pop(mean_a, mean_b) AS total,
    var_pop(mean_a - mean_b) - avg(within_means) AS data,
    avg(within) AS prediction,
    sqrt(sum(within_means)) / count(*) AS se_runs
  FROM paired
),

defined AS (
  SELECT
    * EXCLUDE (data, prediction, se_runs),
    CASE WHEN runs_a >= 2 AND runs_b >= 2 THEN data END AS data,
    CASE WHEN runs_a >= 2 AND runs_b >= 2 THEN prediction END AS prediction,
    CASE WHEN runs_a >= 2 AND runs_b >= 2 THEN se_runs END AS se_runs
  FROM sums
)

SELECT
  CASE
    WHEN n.name_a IS NULL THEN error('paired_noise: no outcomes of ' || a || '; name an arm as STUDY/STACK/CONDITION')
    WHEN n.name_b IS NULL THEN error('paired_noise: no outcomes of ' || b || '; name an arm as STUDY/STACK/CONDITION')
    WHEN n.name_a = n.name_b THEN error('paired_noise: both arms are ' || a || ', whose runs are not independent of themselves')
    WHEN d.n_tasks = 0 THEN error('paired_noise: ' || a || ' and ' || b || ' have no task in common')
    ELSE n.protocol_a
  END AS protocol_a,
  n.protocol_b,
  d.n_tasks,
  n.n_both - 2 * d.n_tasks AS n_unmatched,
  d.runs_a,
  d.runs_b,
  d.score_a,
  d.score_b,
  d.score_a - d.score_b AS difference,
  d.total,
  d.data,
  d.prediction,
  sqrt(greatest(0, d.total) / d.n_tasks) AS se_total,
  CASE WHEN d.data >= 0 THEN sqrt(d.data / d.n_tasks) END AS se_data,
  sqrt(d.prediction / d.n_tasks) AS se_prediction,
  d.se_runs,
  CASE WHEN d.prediction IS NULL THEN 'a task has one run: its variance needs 2' ELSE '' END AS undefined
FROM defined AS d
CROSS JOIN named AS n;
