-- macro: within_task_variance(passes, runs)
-- returns: DOUBLE
-- Sample variance of one task's outcomes, k (n-k) / (n (n-1)) for k passes of n measured runs: unbiased for p (1-p). Null for fewer than
-- 2 runs, which have no variance, so that `avg(within_task_variance(passes, runs))` over `task_counts` is w. An error for counts that
-- cannot be. Source: Noise Floor, equation 1.
-- arguments:
--   passes: Measured runs of the task that passed.
--   runs: Measured runs of the task.
CREATE MACRO within_task_variance(passes, runs) AS
[
  CASE
    WHEN x[1] IS NULL OR x[2] IS NULL THEN NULL
    WHEN NOT (x[1] BETWEEN 0 AND x[2] AND x[2] < 9e+7 AND x[1] = floor(x[1]) AND x[2] = floor(x[2]))
      THEN error('within_task_variance: ' || x[1] || ' passes of ' || x[2] || ' runs cannot be')
    WHEN x[2] >= 2 THEN x[1] * (x[2] - x[1]) / (x[2] * (x[2] - 1))
  END
  FOR x IN [[passes::DOUBLE, runs::DOUBLE]]
][1];
