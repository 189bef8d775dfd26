"""Components of resampled tasks, or of resampled clusters of tasks, from integer sums as far as these fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import lcm
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats.bootstrap import group_totals
from evalnoise.stats.nested.components import DEPTH, Components, Totals, solved
from evalnoise.stats.nested.sums import Nested, quotients
from evalnoise.stats.resampling import fixed_point, resampled_sums
from evalnoise.stats.variance import Floats, Ints

_LARGEST: Final = 1 << 53
"""Floats are exact integers up to here."""
_WIDEST: Final = 2.0**62
_BITS: Final = 1000
"""Larger integers are no floats."""

ByDepth = tuple[Floats, Floats, Floats]
"""One array for tasks, one for generations, one for grades."""


@dataclass(frozen=True, slots=True)
class PerTask:
    """What the estimates add up, one number per task, shape (n,): integers where all of their sums are exact as floats."""

    outputs: Floats
    grades: Floats
    grade_squares: Floats
    """Sum over outputs of G^2."""
    r: Floats
    """M^2."""
    k: Floats
    """Sum over outputs of G^2/M, times `whole`."""
    within: Floats
    """Sum of squares within outputs, times `unit`."""
    between: Floats
    """Sum of squares between outputs, times `unit`."""
    task: Floats
    """(Sum of scores less the origin)^2/M, times `unit`."""
    score: Floats
    """Sum of scores less the origin, times the root of unit/`of_mean`."""
    unit: int
    of_mean: int
    whole: int

    @property
    def exact(self) -> bool:
        """Whether these are integers, which all sums of n of them are exact for."""
        return self.whole > 0

    def columns(self) -> dict[str, Floats]:
        """The arrays by name."""
        names = ("outputs", "grades", "grade_squares", "r", "k", "within", "between", "task", "score")
        return {name: getattr(self, name) for name in names}


def per_task(data: Nested) -> PerTask:
    """The columns of each task: integers over the least common multiple of all M where that is small enough, else quotients."""
    squared, scale = data.sums * data.sums, data.denominator**2
    whole, floats = lcm(*(int(size) for size in np.unique(data.grades))), np.float64
    within = data.squares * data.common - data.output_squares
    between = data.output_squares * data.grades - data.common * squared
    counts: dict[str, Any] = {
        "outputs": data.outputs.astype(floats),
        "grades": data.grades.astype(floats),
        "grade_squares": data.grade_squares.astype(floats),
        "r": data.grades.astype(floats) ** 2,
    }
    peak = max((int(np.abs(column).max()) for column in (within, between, data.common * squared, data.grade_squares)), default=0)
    unit = data.common * whole * scale
    if peak * whole * data.n > _LARGEST or unit.bit_length() > _BITS:
        return PerTask(
            **counts,
            k=data.grade_squares / data.grades,
            within=quotients(within, scale * data.common),
            between=quotients(between, scale * data.common, data.grades),
            task=quotients(squared, scale, data.grades),
            score=quotients(data.sums, data.denominator),
            unit=1,
            of_mean=1,
            whole=0,
        )
    times = whole // data.grades
    return PerTask(
        **counts,
        k=(data.grade_squares * times).astype(floats),
        within=(within * whole).astype(floats),
        between=(between * times).astype(floats),
        task=(squared * data.common * times).astype(floats),
        score=data.sums.astype(floats),
        unit=unit,
        of_mean=data.common * whole,
        whole=whole,
    )


def drawn_components(
    data: Nested, found: Components, *, seed: int, resamples: int, clusters: Ints | None = None
) -> tuple[Floats, Floats, Floats]:
    """Task, generation and grader of each resample, shape (resamples,) each; not a number where it has no repeats.

    Clusters, labels from 0 on of each task (n,), are drawn whole. Drawing loses a part of the sum of squares between tasks, so it
    is taken times n/(n-1) again; of clusters times SS/(SS - sum over clusters of (sum of M (y - mean))^2/N), which is the same
    where each has one task.
    """
    columns = per_task(data)
    if all(bool((column == column[0]).all()) for column in columns.columns().values()):
        raw = {DEPTH[part.of]: part.raw or 0.0 for part in found.parts}
        task, generation, grader = (np.full(resamples, raw.get(depth, 0.0)) for depth in range(3))
        return task, generation, grader
    sums, tasks = _sums(columns, data.n, seed, resamples, clusters)
    n = data.n
    lost = n / (n - 1) if clusters is None else _lost(data, clusters)
    return _solved(columns, sums, tasks, data, lost)


def _sums(columns: PerTask, n: int, seed: int, resamples: int, clusters: Ints | None) -> tuple[dict[str, Floats], Floats | float]:
    """Sums of the columns over each resample, and how many tasks it has."""
    named = columns.columns() | ({} if clusters is None else {"tasks": np.ones(n)})
    drawn = drawn_sums(np.column_stack(list(named.values())), seed=seed, resamples=resamples, clusters=clusters)
    sums = {name: drawn[:, at] for at, name in enumerate(named)}
    return sums, sums.get("tasks", float(n))


def drawn_sums(rows: Floats, *, seed: int, resamples: int, clusters: Ints | None = None) -> Floats:
    """Sums of every column (n, M) over resampled tasks, or over resampled whole clusters of them, shape (resamples, M)."""
    whole, exponents = fixed_point(rows if clusters is None else group_totals(rows, clusters))
    return np.asarray(np.ldexp(resampled_sums(whole, resamples=resamples, seed=seed), -exponents))


def _lost(data: Nested, clusters: Ints) -> float:
    weights = data.grades.astype(np.float64)
    means = quotients(data.sums, data.denominator, data.grades)
    away = means - float(weights @ means) / float(weights.sum())
    whole = float(weights @ (away * away))
    totals = np.bincount(clusters, weights=weights * away)
    return whole / (whole - float(totals @ totals) / float(weights.sum())) if whole else 1.0


def _solved(
    columns: PerTask, sums: dict[str, Floats], tasks: Floats | float, data: Nested, lost: float
) -> tuple[Floats, Floats, Floats]:
    """The estimates of `components`, every difference of products exact before it is divided."""
    difference = partial(exact_difference, exact=columns.exact)
    spread = difference(sums["task"], sums["grades"], sums["score"], sums["score"], times=columns.of_mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        made = solved(
            Totals(
                n=tasks,
                outputs=_degrees(sums["outputs"], tasks, repeats=data.n_outputs > data.n),
                grades=_degrees(sums["grades"], sums["outputs"], repeats=data.n_grades > data.n_outputs),
                within_outputs=sums["within"],
                between_outputs=sums["between"],
                between_tasks=spread / sums["grades"] * lost,
                k=sums["k"] / max(1, columns.whole),
                q=sums["grade_squares"] / sums["grades"],
                r=sums["r"] / sums["grades"],
            ),
            difference,
        )
    task, generation, grader = (np.asarray(part / columns.unit) for part in made)
    return task, generation, grader


def _degrees(number: Floats, below: Floats | float, *, repeats: bool) -> Floats:
    """A count of resamples, lost (not a number) where the data have repeats and the resample has none."""
    return np.where(number > below, number, np.nan) if repeats else number


def exact_difference(a: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike, *, exact: bool, times: int = 1) -> Floats:
    """The difference a b - times c d, with one rounding where all are `exact` integers; not a number where one of them is not."""
    first, second, third, fourth = (np.asarray(x, dtype=np.float64) for x in (a, b, c, d))
    plain = np.asarray(first * second - times * (third * fourth))
    if not exact:
        return plain
    known = np.isfinite(plain)
    numbers = [np.where(known, x, 0).astype(np.int64) for x in (first, second, third, fourth)]
    peaks = [float(np.abs(x).max(initial=0)) for x in numbers]
    if max(peaks[0] * peaks[1], times * peaks[2] * peaks[3]) > _WIDEST:
        numbers = [x.astype(object) for x in numbers]
    made = numbers[0] * numbers[1] - times * (numbers[2] * numbers[3])
    return np.where(known, made.astype(np.float64), np.nan)


# --- what each task gives ------------------------------------------------------------------------------------------------


def parts_of_tasks(data: Nested) -> ByDepth:
    """What each task adds to the numerators of task, generation and grader, shape (n,) each; they add up to these numerators."""
    columns, n, outputs, grades = per_task(data), data.n, data.n_outputs, data.n_grades
    unit = columns.unit
    within, between = columns.within / unit, columns.between / unit
    weights = columns.grades
    means = quotients(data.sums, data.denominator, data.grades)
    away = means - float(weights @ means) / grades
    k = float(np.sum(data.grade_squares / data.grades))
    per_grade = (outputs - n) / (grades - outputs) if grades > outputs else 0.0
    shared = (k - float(data.grade_squares.sum()) / grades) / (grades - k) if outputs > n else 0.0
    graded = (n - 1) / (grades - outputs) if grades > outputs else 0.0
    generation = between - per_grade * within
    return weights * away * away - shared * generation - graded * within, generation, within


def values_of_tasks(data: Nested, generations: int, repeats: int) -> tuple[Floats, Floats]:
    """Each task's own unbiased generation and grader in a balanced design, shape (n,) each: the estimates are their means.

    Grader is the mean of its K sample variances of G grades; generation is the sample variance of its output means - grader/G.
    """
    columns, k, g = per_task(data), generations, repeats
    grader = columns.within / (columns.unit * k * (g - 1)) if g > 1 else np.zeros(data.n)
    if k < 2:
        return np.zeros(data.n), grader
    if g < 2:
        return columns.between / (columns.unit * (k - 1)), grader
    above = exact_difference(columns.between, k * (g - 1), columns.within, k - 1, exact=columns.exact)
    return above / (columns.unit * g * k * (k - 1) * (g - 1)), grader
