"""Nested variance components: how much of a score's spread comes from tasks, from generations and from grades.

Model: score = mean + task + generation within task + grade within generation, independent. Estimates are untruncated method of
moments (type-I nested analysis of variance) and may be negative; `clipped` holds them to 0 for use in a formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from evalnoise.stats.estimate import joined
from evalnoise.stats.nested.sums import Exact, Nested

NO_GRADE = "no grade"
ONE_TASK = "one task: a variance between tasks needs 2"
ONE_GENERATION = "no task has two generations, so generation is confounded with task: their sum is estimated as task+generation"
ONE_GRADE = "no generation has two grades, so grader is confounded with generation: their sum is estimated as generation+grader"
ONE_EACH = "no task has two generations and none two grades: only the sum task+generation+grader is estimated"
BELOW_ZERO = "negative: it is 0 or so small that this design cannot see it; take 0, and more data"
NOTHING_VARIES = "no score differs from another"


class Level(StrEnum):
    """What a component is of. Names with a plus are sums that the design cannot take apart."""

    TASK = "task"
    GENERATION = "generation"
    GRADER = "grader"
    TASK_GENERATION = "task+generation"
    GENERATION_GRADER = "generation+grader"
    ALL = "task+generation+grader"


DEPTH = {Level.TASK: 0, Level.TASK_GENERATION: 0, Level.ALL: 0, Level.GENERATION: 1, Level.GENERATION_GRADER: 1, Level.GRADER: 2}
"""Which of the three mean squares each is estimated from first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One variance component, in squared units of the score."""

    of: Level
    """What it is of."""
    raw: float | None
    """The estimate, untruncated; None when the design does not identify it."""
    clipped: float | None
    """The estimate, or 0 where it is negative."""
    share: float | None
    """Part of the sum of the clipped components; None when it is undefined, or that sum is 0."""
    df: int
    """Degrees of freedom of its mean square."""
    undefined: str = ""
    """Why it is None; empty otherwise."""
    note: str = ""
    """When not to trust it; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanSquares:
    """The nested analysis of variance, sums of squares exact before the last rounding."""

    task: float | None
    """Between tasks; None for one task."""
    generation: float | None
    """Between outputs of a task; None when no task has two."""
    grader: float | None
    """Between grades of an output; None when no output has two."""
    df: tuple[int, int, int]
    """Degrees of freedom of the three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """The three components, or what of them the design identifies."""

    task: Component
    """Between tasks."""
    generation: Component
    """Between generations of a task."""
    grader: Component
    """Between grades of a generation."""
    together: Component | None
    """The sum that stands in for components which the design cannot take apart; None when it can."""
    squares: MeanSquares
    """The analysis of variance that they come from."""
    total: float | None
    """Sum of the raw components: the variance of one grade of one generation of one task."""
    mean: float | None
    """Mean of the task means, each output and each task with weight one."""
    variance_of_mean: float | None
    """Sample variance of the task means over n: (task + generation/K + grader/(K G))/n in a balanced design. Over new tasks."""
    se: float | None
    """Its square root."""
    icc: float | None
    """1 - grader/total, raw: agreement of two grades of one generation. With K = 1 it is ICC(1,1)."""
    icc_undefined: str
    """Why it is None; empty otherwise."""
    balanced: bool
    """Whether all tasks have K generations and all generations G grades."""
    n_tasks: int
    """Tasks with a grade."""
    n_generations: tuple[int, int]
    """Fewest and most generations of a task."""
    n_grades: tuple[float, float]
    """Grades per generation: of the task where they are fewest, and of the one where they are most (means of a task)."""
    grades: int
    """Grades in all."""
    dropped: int
    """Tasks left out because they have no grade."""
    binary: bool
    """Whether every score is 0 or 1."""
    undefined: str
    """Why nothing is estimated; empty otherwise."""

    @property
    def parts(self) -> tuple[Component, ...]:
        """The identified components, from tasks down to grades; their sum is the total where there are two tasks."""
        named = (self.task, self.generation, self.grader, self.together)
        known = (part for part in named if part is not None and part.raw is not None)
        return tuple(sorted(known, key=lambda part: DEPTH[part.of]))


def components(data: Nested) -> Components:
    """Variance components of nested scores by the method of moments.

    With N grades, J outputs, n tasks, y_ij. and y_i.. sums, T = sum y^2, T_o = sum y_ij.^2/G_ij, T_t = sum y_i..^2/M_i and
    T_m = y...^2/N:

    ```
    grader     = (T - T_o)/(N - J)
    generation = (T_o - T_t - (J - n) grader)/(N - k)                     k = sum over outputs of G_ij^2/M_i
    task       = (T_t - T_m - (k - q) generation - (n - 1) grader)/(N - r)  q = sum G_ij^2/N, r = sum M_i^2/N
    ```

    (Henderson's method 1, sequential sums of squares.) In a balanced design this is grader = mean of the sample variances of
    grades, generation = mean of the sample variances of output means - grader/G, task = sample variance of task means -
    generation/K - grader/(K G); in SQL, over a table of one row per grade:

    ```
    o AS (SELECT task, generation, avg(score) AS m, var_samp(score) AS v, count(*) AS g FROM t GROUP BY ALL),
    s AS (SELECT task, avg(m) AS m, var_samp(m) AS b, avg(v) AS v, count(*) AS k, any_value(g) AS g FROM o GROUP BY task)
    SELECT var_samp(m) - avg(b)/any_value(k) AS task, avg(b) - avg(v)/any_value(g) AS generation, avg(v) AS grader FROM s
    ```

    (task: generation/K + grader/(K G) is avg(b)/K.) Where a level has no repeats its component is undefined, with the reason, and
    `together` holds the sum that is identified. Scores that are multiples of 1/L are integers up to the last rounding. Sources:
    Two Sources of Eval Noise, "Estimating the components"; Searle, Casella and McCulloch, Variance Components, chapter 5.
    """
    if not data.n:
        return _nothing(data)
    sums = _totals(data)
    df = (sums.n - 1, sums.outputs - sums.n, sums.grades - sums.outputs)
    task, generation, grader = solved(sums)
    named = _named(task, generation, grader, df)
    whole = sum((max(part, Fraction()) for part in named.values()), Fraction())
    made = {level: _component(level, raw, whole, df) for level, raw in named.items()}
    known = [float(raw) for raw in named.values()]
    total = float(sum(named.values(), Fraction())) if df[0] else None
    reasons = _reasons(df)
    mean = _mean(data)
    variance = float(_variance_of_mean(data, mean)) if df[0] else None
    icc, icc_undefined = _icc(named, df, known)
    per_task = data.grades / data.outputs
    return Components(
        task=made.get(Level.TASK) or _absent(Level.TASK, df[0], reasons),
        generation=made.get(Level.GENERATION) or _absent(Level.GENERATION, df[1], reasons),
        grader=made.get(Level.GRADER) or _absent(Level.GRADER, df[2], reasons),
        together=next((part for level, part in made.items() if "+" in level), None),
        squares=MeanSquares(
            task=_ratio(sums.between_tasks, df[0]),
            generation=_ratio(sums.between_outputs, df[1]),
            grader=_ratio(sums.within_outputs, df[2]),
            df=df,
        ),
        total=total,
        mean=float(mean + data.origin),
        variance_of_mean=variance,
        se=None if variance is None else float(np.sqrt(variance)),
        icc=icc,
        icc_undefined=icc_undefined,
        balanced=data.balanced,
        n_tasks=data.n,
        n_generations=(int(data.outputs.min()), int(data.outputs.max())),
        n_grades=(float(per_task.min()), float(per_task.max())),
        grades=data.n_grades,
        dropped=data.dropped,
        binary=data.binary,
        undefined="",
    )


# --- sums ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Totals:
    """What the estimates are made of: numbers, or arrays of them (a bootstrap's resamples)."""

    n: Any
    outputs: Any
    grades: Any
    within_outputs: Any
    """T - T_o."""
    between_outputs: Any
    """T_o - T_t."""
    between_tasks: Any
    """T_t - T_m."""
    k: Any
    q: Any
    r: Any


def minus(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The difference a b - c d."""
    return a * b - c * d


def solved(sums: Totals, difference: Callable[[Any, Any, Any, Any], Any] = minus) -> tuple[Any, Any, Any]:
    """Task, generation and grader from the sums of squares; a level without repeats has 0, and its variance is in the one above.

    With scalars (Fractions) a level without degrees of freedom is skipped; arrays must have them everywhere, or nowhere.
    `difference` is how arrays keep a b - c d exact.
    """
    df_task, df_generation, df_grader = sums.n - 1, sums.outputs - sums.n, sums.grades - sums.outputs
    zero = 0 * sums.within_outputs
    grader, generation = zero, zero
    if np.all(df_grader):
        grader = sums.within_outputs / df_grader
    if np.all(df_generation):
        generation = sums.between_outputs / (sums.grades - sums.k)
        if np.all(df_grader):
            above = difference(sums.between_outputs, df_grader, sums.within_outputs, df_generation)
            generation = above / (df_grader * (sums.grades - sums.k))
    if not np.all(df_task):
        return zero, generation, grader
    above = (sums.k - sums.q) * generation + df_task * grader
    return (sums.between_tasks - above) / (sums.grades - sums.r), generation, grader


def _totals(data: Nested) -> Totals:
    """Exact sums over all tasks."""
    scale = data.denominator**2
    squares, out = Fraction(_whole(data.squares)), Fraction(_whole(data.output_squares), data.common)
    tasks = by_divisor(np.asarray(data.sums * data.sums), data.grades)
    mean = Fraction(_whole(data.sums) ** 2, data.n_grades)
    return Totals(
        n=data.n,
        outputs=data.n_outputs,
        grades=data.n_grades,
        within_outputs=(squares - out) / scale,
        between_outputs=(out - tasks) / scale,
        between_tasks=(tasks - mean) / scale,
        k=by_divisor(data.grade_squares, data.grades),
        q=Fraction(_whole(data.grade_squares), data.n_grades),
        r=Fraction(_whole(data.grades * data.grades), data.n_grades),
    )


def _whole(values: Exact) -> int:
    return int(values.sum()) if values.size else 0


def by_divisor(values: Exact, divisors: Exact) -> Fraction:
    """Exact sum of integers over integers."""
    if np.all(divisors == divisors[0]):
        return Fraction(int(values.sum()), int(divisors[0]))
    order = np.argsort(divisors, kind="stable")
    numbers, sizes = values[order], divisors[order]
    starts = np.flatnonzero(np.append(True, sizes[1:] != sizes[:-1]))
    sums = np.add.reduceat(numbers, starts)
    return sum((Fraction(int(top), int(size)) for top, size in zip(sums, sizes[starts], strict=True)), Fraction())


# --- words ---------------------------------------------------------------------------------------------------------------


def _named(task: Fraction, generation: Fraction, grader: Fraction, df: tuple[int, int, int]) -> dict[Level, Fraction]:
    """The identified components by what they are of. `solved` leaves what cannot be taken apart in the upper of two levels."""
    tasks, generations, grades = (number > 0 for number in df)
    upper = Level.TASK if generations else (Level.TASK_GENERATION if grades else Level.ALL)
    found: dict[Level, Fraction] = {upper: task} if tasks else {}
    if generations:
        found[Level.GENERATION if grades else Level.GENERATION_GRADER] = generation
    if grades:
        found[Level.GRADER] = grader
    return found


def _reasons(df: tuple[int, int, int]) -> dict[Level, str]:
    tasks, generations, grades = (number > 0 for number in df)
    if not generations and not grades:
        return dict.fromkeys((Level.TASK, Level.GENERATION, Level.GRADER), ONE_EACH if tasks else ONE_TASK)
    return {
        Level.TASK: ONE_GENERATION if tasks else ONE_TASK,
        Level.GENERATION: ONE_GRADE if generations else ONE_GENERATION,
        Level.GRADER: ONE_GRADE,
    }


FEW_DEGREES = 10
"""Under so many degrees of freedom a component is hardly more than a guess."""


def _component(level: Level, raw: Fraction, whole: Fraction, df: tuple[int, int, int]) -> Component:
    clipped = max(raw, Fraction())
    degrees = df[DEPTH[level]]
    few = f"only {degrees} degrees of freedom" if degrees < FEW_DEGREES else ""
    return Component(
        of=level,
        raw=float(raw),
        clipped=float(clipped),
        share=float(clipped / whole) if whole else None,
        df=degrees,
        note=joined(BELOW_ZERO if raw < 0 else "", few),
    )


def _absent(level: Level, df: int, reasons: dict[Level, str]) -> Component:
    return Component(of=level, raw=None, clipped=None, share=None, df=df, undefined=reasons[level])


def _ratio(top: Fraction, df: int) -> float | None:
    return float(top / df) if df else None


def _mean(data: Nested) -> Fraction:
    """Mean of the task means less the origin, each output and each task with weight one; exact."""
    return by_divisor(data.output_means, data.outputs) / (data.n * data.denominator * data.common)


def _variance_of_mean(data: Nested, mean: Fraction) -> Fraction:
    """Sample variance of the task means over n, by their mean less the origin: exact, so it is 0 where they are equal."""
    totals = data.output_means
    if int(np.abs(totals).max()) ** 2 * data.n >= 1 << 63:
        totals = totals.astype(object)
    squares = by_divisor(totals * totals, data.outputs * data.outputs) / (data.denominator * data.common) ** 2
    return (squares / data.n - mean * mean) / (data.n - 1)


def _icc(named: dict[Level, Fraction], df: tuple[int, int, int], known: list[float]) -> tuple[float | None, str]:
    if Level.GRADER not in named:
        return None, ONE_GRADE if df[1] else ONE_EACH
    if not df[0]:
        return None, ONE_TASK
    total = sum(named.values(), Fraction())
    if total <= 0:
        return None, NOTHING_VARIES if not any(known) else "the components add up to nothing, or less"
    return float(1 - named[Level.GRADER] / total), ""


def _nothing(data: Nested) -> Components:
    absent = {
        level: Component(of=level, raw=None, clipped=None, share=None, df=0, undefined=NO_GRADE)
        for level in (Level.TASK, Level.GENERATION, Level.GRADER)
    }
    return Components(
        task=absent[Level.TASK],
        generation=absent[Level.GENERATION],
        grader=absent[Level.GRADER],
        together=None,
        squares=MeanSquares(task=None, generation=None, grader=None, df=(0, 0, 0)),
        total=None,
        mean=None,
        variance_of_mean=None,
        se=None,
        icc=None,
        icc_undefined=NO_GRADE,
        balanced=False,
        n_tasks=0,
        n_generations=(0, 0),
        n_grades=(0.0, 0.0),
        grades=0,
        dropped=data.dropped,
        binary=False,
        undefined=NO_GRADE,
    )
