-- check: w_impossible
-- grain: stack x condition
-- An estimate of w above 1/4, the largest variance that an outcome can have. The estimate is unbiased, so few runs of unsteady tasks can
-- give it; with many tasks it says that replicates disagree more often than independent ones can.
-- columns: stack, condition, severity, blocks, sentence, value
SELECT
    stack,
    condition,
    CASE WHEN w > 0.25 + 3 * se THEN 'error' ELSE 'warning' END AS severity,
    w > 0.25 + 3 * se AS blocks,
    stack || ', ' || condition || ': w is ' || round(w, 4) || ', above 1/4, which no true w is'
    || CASE
        WHEN w > 0.25 + 3 * se
            THEN ', and by more than chance allows: the replicates are not independent. Look for a setting that alternates between them.'
        ELSE ': too few tasks or replicates. Measure more; budgets from it are too high.'
    END AS sentence,
    w AS value
FROM (
    SELECT
        stack,
        condition,
        avg(passes * (runs - passes) / (runs * (runs - 1))) AS w,
        -- Of a mean of sample variances at p = 1/2, where they vary by 1/(8 R (R-1)).
        sqrt(sum(1 / (8 * runs * (runs - 1)))) / count(*) AS se
    FROM task_counts
    WHERE study = $study AND protocol = $protocol AND runs >= 2
    GROUP BY stack, condition
)
WHERE w > 0.25;
