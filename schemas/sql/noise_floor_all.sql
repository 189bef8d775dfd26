-- view: noise_floor_all
-- grain: protocol x stack x condition
-- Every protocol, complete or not. One row of `estimates` per number; the run budget is that for the study's first delta.
-- columns:
--   study: Name of the study.
--   protocol: SHA-256 of the frozen protocol.
--   benchmark: Name of the benchmark.
--   stack: Name of the stack.
--   condition: Name of the condition.
--   n_tasks: Tasks that entered w; where w is undefined, those that entered the score.
--   n_replicates: Replicates per such task (the smallest, if they differ).
--   n_unmeasured: Cells without an outcome; they are in no number.
--   score: Mean over tasks of the share of measured replicates that passed.
--   score_run_sd: Standard deviation of the score from run to run, sqrt(w / n_tasks).
--   w: Mean within-task sample variance of the outcome over replicates; null: undefined.
--   w_lo: Lower end for w, percentile task bootstrap; covers new tasks from the same source (population).
--   w_hi: Upper end of the same.
--   w_bench_lo: Lower end for w that covers new runs of these tasks (benchmark).
--   w_bench_hi: Upper end of the same.
--   variable_tasks: Tasks whose outcome was not the same in every replicate.
--   variable_share: Their share of the tasks.
--   variable_lo: Lower end for the share, Clopper-Pearson.
--   variable_hi: Upper end for the share, Clopper-Pearson.
--   near_limit: Tasks whose verdict may hang on the machine's speed, residual verification noise: near_limit_tasks has them.
--   delta: Difference of score that the budget is for.
--   runs: Runs per arm that resolve delta; null: undefined.
--   runs_lo: The same at the lower end of the interval of w to quote: Gaffke's under 20 variable tasks, else w_lo.
--   runs_hi: The same at its upper end.
--   w_gaffke_lo: Lower end of Gaffke's interval for w; population; the one to quote when fewer than 20 tasks varied.
--   w_gaffke_hi: Upper end of the same.
--   w_undefined: Why w, or its interval, is null; empty otherwise.
--   note: When not to trust w; empty otherwise.
--   n_passed: Cells that passed.
--   n_measured: Cells with an outcome.
--   n_missing: Cells without one, those of tasks that preflight left out aside.
--   score_missing_fail: The score if every missing cell had failed, passes of all cells: the least that it can be.
--   score_missing_pass: The score if every missing cell had passed: the most that it can be.
--   n_answers: Answers, second attempts too; replays have recorded ones.
--   n_truncated: Of them, those that ended at the token limit, or thinking that does not end.
--   n_refused: The model declined.
--   n_filtered: A filter of the provider took them away.
--   n_empty: Nothing, or white space.
--   n_malformed: No answer, but something else.
--   n_infrastructure: The server would not take the request.
--   runs_recommended: Runs per arm to plan with: runs, or after a small pilot the cautious budget; null: undefined.
CREATE VIEW noise_floor_all AS
WITH numbers AS (
  -- `first` with an order picks one row whole, so that two methods of the same estimate can neither double a row nor mix ends.
  SELECT
    study,
    protocol,
    benchmark,
    stack,
    condition,
    first(value ORDER BY n_tasks DESC, method) FILTER (WHERE estimate = 'score') AS score,
    first(n_tasks ORDER BY n_tasks DESC, method) FILTER (WHERE estimate = 'score') AS score_tasks,
    first(n_replicates ORDER BY n_tasks DESC, method) FILTER (WHERE estimate = 'score') AS score_replicates,
    first(value ORDER BY method) FILTER (WHERE estimate = 'score_run_sd') AS score_run_sd,
    first(value ORDER BY method) FILTER (WHERE estimate = 'n_unmeasured') AS n_unmeasured,
    first(value ORDER BY method <> 'percentile task bootstrap', method, covers) FILTER (WHERE estimate = 'w') AS w,
    first(n_tasks ORDER BY method <> 'percentile task bootstrap', method, covers) FILTER (WHERE estimate = 'w') AS w_tasks,
    first(n_replicates ORDER BY method <> 'percentile task bootstrap', method, covers) FILTER (WHERE estimate = 'w') AS w_replicates,
    coalesce(string_agg(DISTINCT undefined, '; ' ORDER BY undefined) FILTER (WHERE estimate = 'w' AND undefined <> ''), '')
      AS w_undefined,
    first(note ORDER BY method <> 'percentile task bootstrap', method, covers) FILTER (WHERE estimate = 'w') AS note,
    first(lo) FILTER (WHERE estimate = 'w' AND covers = 'population' AND method = 'percentile task bootstrap') AS w_lo,
    first(hi) FILTER (WHERE estimate = 'w' AND covers = 'population' AND method = 'percentile task bootstrap') AS w_hi,
    first(lo) FILTER (WHERE estimate = 'w' AND method = 'gaffke') AS w_gaffke_lo,
    first(hi) FILTER (WHERE estimate = 'w' AND method = 'gaffke') AS w_gaffke_hi,
    first(lo ORDER BY method) FILTER (WHERE estimate = 'w' AND covers = 'benchmark') AS w_bench_lo,
    first(hi ORDER BY method) FILTER (WHERE estimate = 'w' AND covers = 'benchmark') AS w_bench_hi,
    first(value ORDER BY method) FILTER (WHERE estimate = 'variable_tasks') AS variable_tasks,
    first(value ORDER BY method) FILTER (WHERE estimate = 'variable_share') AS variable_share,
    first(lo ORDER BY method) FILTER (WHERE estimate = 'variable_share') AS variable_lo,
    first(hi ORDER BY method) FILTER (WHERE estimate = 'variable_share') AS variable_hi
  FROM estimates
  GROUP BY study, protocol, benchmark, stack, condition
  HAVING count(*) FILTER (WHERE estimate = 'score') > 0
),

first_budget AS (
  SELECT
    study,
    protocol,
    stack,
    condition,
    first(delta ORDER BY delta, method) AS delta,
    first(runs ORDER BY delta, method) AS runs,
    first(runs_lo ORDER BY delta, method) AS runs_lo,
    first(runs_hi ORDER BY delta, method) AS runs_hi,
    first(recommended ORDER BY delta, method) AS recommended
  FROM budgets
  WHERE first_delta
  GROUP BY study, protocol, stack, condition
),

near_limit AS (
  -- From what was measured, not from a sealed estimate, which a repeat must reproduce.
  SELECT study, protocol, stack, condition, count(*) AS tasks
  FROM near_limit_tasks
  GROUP BY study, protocol, stack, condition
),

cells AS (
  SELECT
    study,
    protocol,
    stack,
    condition,
    count(*) AS n,
    count(*) FILTER (WHERE outcome = 'pass') AS passed,
    count(*) FILTER (WHERE outcome = 'unmeasured') AS missing
  FROM outcomes
  WHERE reason <> 'reference-unusable'
  GROUP BY study, protocol, stack, condition
)

SELECT
  n.study,
  n.protocol,
  n.benchmark,
  n.stack,
  n.condition,
  coalesce(nullif(n.w_tasks, 0), n.score_tasks) AS n_tasks,
  coalesce(nullif(n.w_replicates, 0), n.score_replicates) AS n_replicates,
  n.n_unmeasured::BIGINT AS n_unmeasured,
  n.score,
  n.score_run_sd,
  n.w,
  n.w_lo,
  n.w_hi,
  n.w_bench_lo,
  n.w_bench_hi,
  n.variable_tasks::BIGINT AS variable_tasks,
  n.variable_share,
  n.variable_lo,
  n.variable_hi,
  coalesce(l.tasks, 0) AS near_limit,
  b.delta,
  b.runs,
  b.runs_lo,
  b.runs_hi,
  n.w_gaffke_lo,
  n.w_gaffke_hi,
  n.w_undefined,
  n.note,
  coalesce(c.passed, 0) AS n_passed,
  coalesce(c.n - c.missing, 0) AS n_measured,
  coalesce(c.missing, 0) AS n_missing,
  c.passed / c.n AS score_missing_fail,
  (c.passed + c.missing) / c.n AS score_missing_pass,
  coalesce(a.n_answers, 0) AS n_answers,
  coalesce(a.n_truncated, 0) AS n_truncated,
  coalesce(a.n_refused, 0) AS n_refused,
  coalesce(a.n_filtered, 0) AS n_filtered,
  coalesce(a.n_empty, 0) AS n_empty,
  coalesce(a.n_malformed, 0) AS n_malformed,
  coalesce(a.n_infrastructure, 0) AS n_infrastructure,
  b.recommended AS runs_recommended
FROM numbers AS n
LEFT JOIN first_budget AS b
  ON b.study = n.study AND b.protocol = n.protocol AND b.stack = n.stack AND b.condition = n.condition
LEFT JOIN near_limit AS l
  ON l.study = n.study AND l.protocol = n.protocol AND l.stack = n.stack AND l.condition = n.condition
LEFT JOIN cells AS c
  ON c.study = n.study AND c.protocol = n.protocol AND c.stack = n.stack AND c.condition = n.condition
LEFT JOIN answer_counts AS a
  ON a.study = n.study AND a.protocol = n.protocol AND a.stack = n.stack AND a.condition = n.condition;
