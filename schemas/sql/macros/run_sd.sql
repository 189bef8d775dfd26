-- macro: run_sd(w, n)
-- returns: DOUBLE
-- Standard deviation of a score from run to run on the same tasks, sqrt(w / n). Null for a null; an error for what cannot be.
-- arguments:
--   w: Within-task variance, in [0, 1/2].
--   n: Tasks in the benchmark.
CREATE MACRO run_sd(w, n) AS
[
  CASE
    WHEN x[1] IS NULL OR x[2] IS NULL THEN NULL
    WHEN NOT x[1] BETWEEN 0 AND 5e-1 THEN error('run_sd: w lies in [0, 0.5], not ' || x[1])
    WHEN NOT x[2] >= 1 THEN error('run_sd: a benchmark has at least 1 task, not ' || x[2])
    ELSE sqrt(x[1] / x[2])
  END
  FOR x IN [[w::DOUBLE, n::DOUBLE]]
][1];
