-- check: unmeasured_imbalance
-- grain: stack x condition
-- Conditions that lost another share of their cells than the one of the same stack that lost fewest: by two points or more, and by
-- more than chance gives (three standard errors). What is lost is seldom lost at random, so their contrast may be that of the losses.
-- columns: stack, condition, severity, blocks, sentence, value
WITH lost AS (
    SELECT
        stack,
        condition,
        sum(unmeasured)::BIGINT AS lost,
        sum(runs + unmeasured)::BIGINT AS cells
    FROM task_counts
    WHERE study = $study AND protocol = $protocol
    GROUP BY stack, condition
),

beside AS (
    SELECT
        *,
        first_value(condition) OVER least AS other,
        first_value(lost) OVER least AS other_lost,
        first_value(cells) OVER least AS other_cells
    FROM lost
    WINDOW least AS (PARTITION BY stack ORDER BY lost / cells, condition)
)

SELECT
    stack,
    condition,
    'warning' AS severity,
    false AS blocks,
    stack || ', ' || condition || ': ' || round(100 * lost / cells, 1) || ' % of its cells are unmeasured, and '
    || round(100 * other_lost / other_cells, 1) || ' % under ' || other
    || ': a difference between them may be that of what was lost. Measure the missing cells with `evalnoise retry`.' AS sentence,
    lost / cells - other_lost / other_cells AS value
FROM beside
WHERE
    lost / cells - other_lost / other_cells >= 0.02
    AND (lost / cells - other_lost / other_cells) ^ 2
    > 9 * ((lost + other_lost) / (cells + other_cells)) * (1 - (lost + other_lost) / (cells + other_cells))
    * (1 / cells + 1 / other_cells);
