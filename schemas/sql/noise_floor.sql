-- view: noise_floor
-- grain: stack x condition of each study
-- The rows of noise_floor_all for the newest complete protocol of each study, newest by the time of its freeze.
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
CREATE VIEW noise_floor AS
SELECT n.*
FROM noise_floor_all AS n
JOIN (
  SELECT study, protocol
  FROM protocols
  WHERE status = 'complete'
  QUALIFY row_number() OVER (PARTITION BY study ORDER BY frozen_at DESC, protocol) = 1
) AS newest ON newest.study = n.study AND newest.protocol = n.protocol;
