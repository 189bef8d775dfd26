-- macro: normal_quantile(p)
-- returns: DOUBLE
-- The z below which a standard normal variable lies with probability p: -1.959963984540054 for 0.025. Null for a null p; an error
-- unless 0 < p < 1. Wichura's algorithm AS 241 (PPND16), as in Python's `statistics.NormalDist`: about 16 digits.
-- arguments:
--   p: Probability.
CREATE MACRO normal_quantile(p) AS
-- A list of one element stands in for a variable. Numbers have an exponent, because without one they would be decimals.
[
  CASE
    WHEN q IS NULL THEN NULL
    WHEN NOT (q[1] > 0 AND q[1] < 1) THEN error('normal_quantile: p lies between 0 and 1, not ' || q[1])
    WHEN abs(q[2]) <= 4.25e-1
      THEN [
        q[2] * (
          (((((((2.5090809287301226727e+3 * r + 3.3430575583588128105e+4) * r + 6.7265770927008700853e+4) * r
          + 4.5921953931549871457e+4) * r + 1.3731693765509461125e+4) * r + 1.9715909503065514427e+3) * r
          + 1.3314166789178437745e+2) * r + 3.3871328727963666080e+0)
        ) / (
          (((((((5.2264952788528545610e+3 * r + 2.8729085735721942674e+4) * r + 3.9307895800092710610e+4) * r
          + 2.1213794301586595867e+4) * r + 5.3941960214247511077e+3) * r + 6.8718700749205790830e+2) * r
          + 4.2313330701600911252e+1) * r + 1.0e+0)
        )
        FOR r IN [1.80625e-1 - q[2] * q[2]]
      ][1]
    ELSE CASE WHEN q[2] < 0 THEN -1e+0 ELSE 1e+0 END * [
      CASE
        WHEN s <= 5e+0
          THEN [
            (
              (((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r + 2.41780725177450611770e-1) * r
              + 1.27045825245236838258e+0) * r + 3.64784832476320460504e+0) * r + 5.76949722146069140550e+0) * r
              + 4.63033784615654529590e+0) * r + 1.42343711074968357734e+0)
            ) / (
              (((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r + 1.51986665636164571966e-2) * r
              + 1.48103976427480074590e-1) * r + 6.89767334985100004550e-1) * r + 1.67638483018380384940e+0) * r
              + 2.05319162663775882187e+0) * r + 1.0e+0)
            )
            FOR r IN [s - 1.6e+0]
          ][1]
        ELSE [
          (
            (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 1.24266094738807843860e-3) * r
            + 2.65321895265761230930e-2) * r + 2.96560571828504891230e-1) * r + 1.78482653991729133580e+0) * r
            + 5.46378491116411436990e+0) * r + 6.65790464350110377720e+0)
          ) / (
            (((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r + 1.84631831751005468180e-5) * r
            + 7.86869131145613259100e-4) * r + 1.48753612908506148525e-2) * r + 1.36929880922735805310e-1) * r
            + 5.99832206555887937690e-1) * r + 1.0e+0)
          )
          FOR r IN [s - 5e+0]
        ][1]
      END
      FOR s IN [sqrt(-ln(CASE WHEN q[2] < 0 THEN q[1] ELSE 1 - q[1] END))]
    ][1]
  END
  FOR q IN [CASE WHEN p IS NOT NULL THEN [p::DOUBLE, p::DOUBLE - 5e-1] END]
][1];
