-- macro: pass_hat_k(n, c, k)
-- returns: DOUBLE
-- Chance that all of k runs pass, unbiased from c passes of n runs of one task: C(c, k) / C(n, k), as a product. Null where k is more
-- than n: so many runs were not made. Null for a null; an error for counts that cannot be. Average it over tasks.
-- arguments:
--   n: Measured runs of the task.
--   c: Of them, those that passed.
--   k: Runs that the chance is about.
CREATE MACRO pass_hat_k(n, c, k) AS
[
  CASE
    WHEN x[1] IS NULL OR x[2] IS NULL OR x[3] IS NULL THEN NULL
    WHEN NOT (x[2] BETWEEN 0 AND x[1] AND x[3] >= 1 AND x[1] < 9e+7 AND x[1] = floor(x[1]) AND x[2] = floor(x[2]) AND x[3] = floor(x[3]))
      THEN error('pass_hat_k: ' || x[2] || ' passes of ' || x[1] || ' runs at k = ' || x[3] || ' cannot be')
    WHEN x[3] <= x[1] THEN list_product([greatest(0, x[2] - i) / (x[1] - i) FOR i IN range(x[3]::BIGINT)])
  END
  FOR x IN [[n::DOUBLE, c::DOUBLE, k::DOUBLE]]
][1];
