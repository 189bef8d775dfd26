-- macro: minimum_detectable_effect(w_a, w_b, n, runs, alpha := 0.05, power := 0.8)
-- returns: DOUBLE
-- The smallest difference of scores that so many runs per arm resolve: (z_(1-alpha/2) + z_power) sqrt((w_a + w_b) / (n runs)). It covers
-- new runs of these tasks, not other tasks. A w of 0 gives 0, which proves nothing. Null for a null; an error for what cannot be.
-- arguments:
--   w_a: Within-task variance of one arm, in [0, 1/2].
--   w_b: Within-task variance of the other.
--   n: Tasks in the benchmark.
--   runs: Runs per arm.
--   alpha: Two-sided error level.
--   power: Power, above alpha/2.
CREATE MACRO minimum_detectable_effect(w_a, w_b, n, runs, alpha := 0.05, power := 0.8) AS
[
  CASE
    WHEN x[1] IS NULL OR x[2] IS NULL OR x[3] IS NULL OR x[4] IS NULL OR x[5] IS NULL OR x[6] IS NULL THEN NULL
    WHEN NOT (x[1] BETWEEN 0 AND 5e-1 AND x[2] BETWEEN 0 AND 5e-1)
      THEN error('minimum_detectable_effect: w lies in [0, 0.5], not ' || x[1] || ' and ' || x[2])
    WHEN NOT (x[3] >= 1) THEN error('minimum_detectable_effect: a benchmark has at least 1 task, not ' || x[3])
    WHEN NOT (x[4] >= 1) THEN error('minimum_detectable_effect: an arm has at least 1 run, not ' || x[4])
    WHEN NOT (x[5] > 0 AND x[5] < 1) THEN error('minimum_detectable_effect: alpha lies between 0 and 1, not ' || x[5])
    WHEN NOT (x[6] > x[5] / 2 AND x[6] < 1)
      THEN error('minimum_detectable_effect: power lies between alpha/2 and 1, not ' || x[6])
    ELSE (normal_quantile(x[6]) - normal_quantile(x[5] / 2)) * sqrt((x[1] + x[2]) / (x[3] * x[4]))
  END
  FOR x IN [[w_a::DOUBLE, w_b::DOUBLE, n::DOUBLE, runs::DOUBLE, alpha::DOUBLE, power::DOUBLE]]
][1];
