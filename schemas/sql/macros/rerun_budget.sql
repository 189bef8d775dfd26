-- macro: rerun_budget(w, n, delta, alpha := 0.05, power := 0.8)
-- returns: BIGINT
-- Runs per arm that resolve a difference of scores between two arms on the same tasks: the smallest R >= 1 with
-- delta >= (z_(1-alpha/2) + z_power) sqrt(2 w / (n R)). It covers new runs of these tasks, not other tasks. For arms that differ, give
-- the mean of their two w. It is `evalnoise.stats.planning.budget.rerun_budget`, to the run. Null for a null w, n or delta; an error for what
-- cannot be. For a w of 0 it is 1, the formula's minimum: that nothing varied in the runs that were seen does not prove that nothing can.
-- A w above 1/4, which no true w is, gives more runs than any need. Source: Noise Floor, equations 2 and A3.
-- arguments:
--   w: Within-task variance of each arm, in [0, 1/2]; a true one is at most 1/4.
--   n: Tasks in the benchmark.
--   delta: Difference of scores to resolve, in (0, 1].
--   alpha: Two-sided error level.
--   power: Power, above alpha/2.
CREATE MACRO rerun_budget(w, n, delta, alpha := 0.05, power := 0.8) AS
-- Lists of one element stand in for variables.
[
  CASE
    WHEN x[1] IS NULL OR x[2] IS NULL OR x[3] IS NULL OR x[4] IS NULL OR x[5] IS NULL THEN NULL
    WHEN NOT x[1] BETWEEN 0 AND 5e-1
      THEN error('rerun_budget: w is a variance of outcomes between 0 and 1: it lies in [0, 0.5], not ' || x[1])
    WHEN NOT (x[2] >= 1 AND x[2] < 1e+18) THEN error('rerun_budget: a benchmark has at least 1 task, not ' || x[2])
    WHEN NOT (x[3] > 0 AND x[3] <= 1) THEN error('rerun_budget: delta is a difference of scores in (0, 1], not ' || x[3])
    WHEN NOT (x[4] > 0 AND x[4] < 1) THEN error('rerun_budget: alpha lies between 0 and 1, not ' || x[4])
    WHEN NOT (x[5] > x[4] / 2 AND x[5] < 1) THEN error('rerun_budget: power lies between alpha/2 and 1, not ' || x[5])
    ELSE [
      CASE
        WHEN needed < 9e+18 THEN greatest(1, ceil(needed)::BIGINT)
        ELSE error('rerun_budget: a difference of ' || x[3] || ' is too small to plan for')
      END
      -- A difference that R runs resolve exactly must not ask for R + 1 because of rounding.
      FOR needed IN [
        [z / x[3] * (z / x[3]) * (x[1] + x[1]) / x[2] * (1 - 1e-12) FOR z IN [normal_quantile(x[5]) - normal_quantile(x[4] / 2)]][1]
      ]
    ][1]
  END
  FOR x IN [[w::DOUBLE, n::DOUBLE, delta::DOUBLE, alpha::DOUBLE, power::DOUBLE]]
][1];
