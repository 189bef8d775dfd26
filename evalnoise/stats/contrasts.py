"""Differences between two conditions on the tasks that both have measured: estimate, interval and finding."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from evalnoise.stats.bootstrap import RESAMPLES, joint_task_bootstrap, percentile_interval
from evalnoise.stats.estimate import PROVES_NOTHING, Covers, Estimate, Method, alpha_of
from evalnoise.stats.few import few_note
from evalnoise.stats.intervals import (
    FEW_VARIABLE,
    ONE_TASK,
    PLUG_IN_VARIABLE,
    score_column,
    score_squared_error,
    variance_column,
    w_benchmark,
)
from evalnoise.stats.variance import Floats, Ints, checked_counts, same_difference, score, within_task_variance

NO_COMMON_TASK = "no task was measured in both conditions"
NO_COMMON_PAIR = "no task was measured twice in both conditions"
NONE_VARIED = PROVES_NOTHING + "no task varied in either condition"
_FEW_RUNS = 10
SMALL_STUDY = (
    "fewer than 10 replicates and 10 variable tasks: such an interval excludes 0 too often, by up to twice its error level"
)
FEW_VARIED = (
    "under 20 tasks varied in either condition: such an interval can be too narrow; the loss limit of `evalnoise gate` is not"
)
NO_DIFFERENCE = PROVES_NOTHING + "every task differs by the same amount"


class Finding(StrEnum):
    """What an interval for a difference says."""

    REAL = "real"
    """The interval excludes 0."""
    NOT_RESOLVED = "not resolved"
    """It includes 0."""
    PROVES_NOTHING = "proves nothing"
    """It does not exist, or its width is zero because the records hold no variation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One difference, first condition minus second."""

    result: Estimate
    """The difference, untruncated, over the tasks that both conditions have."""
    finding: Finding
    """What its interval says."""
    n_tasks_a: int
    """Tasks measured in the first condition."""
    n_tasks_b: int
    """Tasks measured in the second."""
    se: float | None = None
    """Standard error, where the interval is made of one; None also where it is 0 because nothing varied."""
    p_value: float | None = None
    """Two-sided p-value of no difference, by the same distribution as the interval; None without `se`."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two conditions on their common tasks."""

    a: tuple[Ints, Ints]
    b: tuple[Ints, Ints]
    n_tasks_a: int
    n_tasks_b: int

    @property
    def n(self) -> int:
        return len(self.a[0])

    @property
    def n_replicates(self) -> int:
        return int(min(self.a[1].min(), self.b[1].min())) if self.n else 0

    @property
    def variable(self) -> tuple[int, int]:
        return within_task_variance(*self.a).variable_tasks, within_task_variance(*self.b).variable_tasks


def _pair(passes_a: ArrayLike, runs_a: ArrayLike, passes_b: ArrayLike, runs_b: ArrayLike, least: int) -> _Pair:
    ka, na = checked_counts(passes_a, runs_a)
    kb, nb = checked_counts(passes_b, runs_b)
    if ka.shape != kb.shape:
        raise ValueError(f"the two conditions need one row per task, in one order: {ka.shape} and {kb.shape}")
    both = (na >= least) & (nb >= least)
    return _Pair((ka[both], na[both]), (kb[both], nb[both]), int(np.sum(na >= least)), int(np.sum(nb >= least)))


def classify(result: Estimate) -> Finding:
    """The finding of an interval for a difference."""
    if result.degenerate or result.lo is None or result.hi is None:
        return Finding.PROVES_NOTHING
    return Finding.REAL if result.lo > 0 or result.hi < 0 else Finding.NOT_RESOLVED


def _contrast(pair: _Pair, result: Estimate) -> Contrast:
    return Contrast(result=result, finding=classify(result), n_tasks_a=pair.n_tasks_a, n_tasks_b=pair.n_tasks_b)


def _start(pair: _Pair, value: float | None, method: str, undefined: str) -> Estimate:
    unequal = (
        ""
        if pair.n_tasks_a == pair.n_tasks_b == pair.n
        else (f"over the {pair.n} tasks that both have (of {pair.n_tasks_a} and {pair.n_tasks_b})")
    )
    return Estimate(value=value, method=method, n_tasks=pair.n, n_replicates=pair.n_replicates, undefined=undefined, note=unequal)


def _difference(pair: _Pair, mean: Callable[[Ints, Ints], float | None]) -> float | None:
    a, b = mean(*pair.a), mean(*pair.b)
    return None if a is None or b is None else a - b


def _w_of(passes: Ints, runs: Ints) -> float | None:
    return within_task_variance(passes, runs).w


def _score_of(passes: Ints, runs: Ints) -> float | None:
    return score(passes, runs).value


def _columns(pair: _Pair, column: Callable[[Ints, Ints], tuple[Floats, float]]) -> tuple[Floats, Floats]:
    a, by_a = column(*pair.a)
    b, by_b = column(*pair.b)
    return np.column_stack([a, b]), np.array([by_a, by_b])


def _percentile(
    base: Estimate, columns: tuple[Floats, Floats], note: str, *, seed: int, resamples: int, level: float, draws: ArrayLike | None
) -> Estimate:
    if draws is None:
        means = joint_task_bootstrap(columns[0], resamples=resamples, seed=seed) / columns[1]
        draws = means[:, 0] - means[:, 1]
    lo, hi = percentile_interval(draws, level=level)
    base = dataclasses.replace(base, seed=seed, resamples=len(np.asarray(draws)))
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=note)


def w_contrast(
    passes_a: ArrayLike,
    runs_a: ArrayLike,
    passes_b: ArrayLike,
    runs_b: ArrayLike,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    draws: ArrayLike | None = None,
) -> Contrast:
    """w_a - w_b with the paper's interval: percentiles of the joint task bootstrap. Covers new tasks.

    All arrays have shape (N,), row i being the same task; a task counts where both conditions have at least two runs. `draws`
    (resamples,) are bootstrap differences over the same tasks, when a joint bootstrap made them already. Source: Noise Floor,
    section 3.3 and table A2.
    """
    pair = _pair(passes_a, runs_a, passes_b, runs_b, 2)
    base = _start(pair, _difference(pair, _w_of), Method.PERCENTILE, "" if pair.n else NO_COMMON_PAIR)
    if pair.n < 2:
        return _contrast(pair, base if not pair.n else base.lacking(ONE_TASK))
    note = _w_note(pair)
    columns = _columns(pair, variance_column)
    return _contrast(pair, _percentile(base, columns, note, seed=seed, resamples=resamples, level=level, draws=draws))


def _w_note(pair: _Pair) -> str:
    """What the reader of an interval over tasks for a difference of w must know."""
    most = max(pair.variable)
    if most == 0:
        return NONE_VARIED
    if _constant(pair, "w"):
        return NO_DIFFERENCE
    tasks = "1 variable task" if most == 1 else f"{most} variable tasks"
    few = f"at most {tasks}: under {FEW_VARIABLE} the interval covers less often than it says"
    return few if most < FEW_VARIABLE else ""


def score_contrast(
    passes_a: ArrayLike,
    runs_a: ArrayLike,
    passes_b: ArrayLike,
    runs_b: ArrayLike,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    draws: ArrayLike | None = None,
) -> Contrast:
    """score_a - score_b with percentiles of the joint task bootstrap. Covers new tasks. Arguments as in `w_contrast`."""
    pair = _pair(passes_a, runs_a, passes_b, runs_b, 1)
    base = _start(pair, _difference(pair, _score_of), Method.PERCENTILE, "" if pair.n else NO_COMMON_TASK)
    if pair.n < 2:
        return _contrast(pair, base if not pair.n else base.lacking(ONE_TASK))
    note = NO_DIFFERENCE if _constant(pair, "score") else few_note(np.abs(_task_differences(pair, score_column)))
    columns = _columns(pair, score_column)
    return _contrast(pair, _percentile(base, columns, note, seed=seed, resamples=resamples, level=level, draws=draws))


def score_contrast_benchmark(
    passes_a: ArrayLike, runs_a: ArrayLike, passes_b: ArrayLike, runs_b: ArrayLike, *, level: float = 0.95
) -> Contrast:
    """score_a - score_b of these tasks +- z SE, SE^2 = (w_a + w_b)/(N R) at equal R. Covers new runs.

    Assumes independent runs in the two conditions. Source: Noise Floor, equation 2.
    """
    pair = _pair(passes_a, runs_a, passes_b, runs_b, 2)
    base = _start(pair, _difference(pair, _score_of), Method.PLUG_IN, "" if pair.n else NO_COMMON_PAIR)
    a, b = score_squared_error(*pair.a), score_squared_error(*pair.b)
    if base.value is None or a is None or b is None:
        return _contrast(pair, base)
    half = float(-ndtri(alpha_of(level) / 2)) * float(np.sqrt(a + b))
    note = NONE_VARIED if a + b == 0 else _few_note(pair)
    made = _contrast(pair, base.spanning(base.value - half, base.value + half, level=level, covers=Covers.BENCHMARK, note=note))
    se = float(np.sqrt(a + b))
    return dataclasses.replace(made, se=se, p_value=float(2 * ndtr(-abs(base.value) / se))) if se else made


def _few_note(pair: _Pair) -> str:
    most = max(pair.variable)
    if pair.n_replicates < _FEW_RUNS and most < _FEW_RUNS:
        return SMALL_STUDY
    return FEW_VARIED if most < PLUG_IN_VARIABLE else ""


def w_contrast_benchmark(
    passes_a: ArrayLike, runs_a: ArrayLike, passes_b: ArrayLike, runs_b: ArrayLike, *, level: float = 0.95
) -> Contrast:
    """w_a - w_b of these tasks, its interval recovered from the two benchmark intervals of w. Covers new runs.

    lo = d - sqrt((w_a - lo_a)^2 + (hi_b - w_b)^2), hi alike. Where nothing varied, the limit is taken at level (1+level)/2 so
    that each side keeps its share. Assumes independent runs in the two conditions. Source: Zou and Donner 2008 (MOVER).
    """
    pair = _pair(passes_a, runs_a, passes_b, runs_b, 2)
    base = _start(pair, _difference(pair, _w_of), Method.RECOVERED, "" if pair.n else NO_COMMON_PAIR)
    if base.value is None:
        return _contrast(pair, base)
    if max(pair.variable) == 0:
        return _contrast(pair, base.lacking(NONE_VARIED.removeprefix(PROVES_NOTHING)))
    sides = []
    for counts, variable in zip((pair.a, pair.b), pair.variable, strict=True):
        side = w_benchmark(*counts, level=level if variable else (1 + level) / 2)
        if side.value is None or side.lo is None or side.hi is None:
            return _contrast(pair, base.lacking(side.undefined))
        # w itself may lie above the largest variance that rates can have, and so above its own interval.
        sides.append((max(0.0, side.value - side.lo), max(0.0, side.hi - side.value)))
    (below_a, above_a), (below_b, above_b) = sides
    lo, hi = base.value - float(np.hypot(below_a, above_b)), base.value + float(np.hypot(above_a, below_b))
    return _contrast(pair, base.spanning(lo, hi, level=level, covers=Covers.BENCHMARK))


def paired_t(
    passes_a: ArrayLike, runs_a: ArrayLike, passes_b: ArrayLike, runs_b: ArrayLike, *, of: str = "score", level: float = 0.95
) -> Contrast:
    """The same differences with a paired t interval over tasks, mean +- t_(N-1) sd/sqrt(N). Covers new tasks.

    `of` is "score" or "w".
    """
    if of not in {"score", "w"}:
        raise ValueError(f'of is "score" or "w", not {of!r}')
    pair = _pair(passes_a, runs_a, passes_b, runs_b, 1 if of == "score" else 2)
    mean, column, missing = (_score_of, score_column, NO_COMMON_TASK) if of == "score" else (_w_of, variance_column, NO_COMMON_PAIR)
    base = _start(pair, _difference(pair, mean), Method.PAIRED_T, "" if pair.n else missing)
    if base.value is None or pair.n < 2:
        return _contrast(pair, base if not pair.n else base.lacking(ONE_TASK))
    differences = _task_differences(pair, column)
    constant = _constant(pair, of)
    spread = 0.0 if constant else float(differences.std(ddof=1)) / float(np.sqrt(pair.n))
    half = float(-stdtrit(pair.n - 1, alpha_of(level) / 2)) * spread
    note = _w_note(pair) if of == "w" else (NO_DIFFERENCE if constant else "")
    made = _contrast(pair, base.spanning(base.value - half, base.value + half, level=level, covers=Covers.POPULATION, note=note))
    if not spread:
        return made
    return dataclasses.replace(made, se=spread, p_value=float(2 * stdtr(pair.n - 1, -abs(base.value) / spread)))


def _task_differences(pair: _Pair, column: Callable[[Ints, Ints], tuple[Floats, float]]) -> Floats:
    values, divisors = _columns(pair, column)
    scaled = values / divisors
    return np.asarray(scaled[:, 0] - scaled[:, 1])


def _constant(pair: _Pair, of: str) -> bool:
    """Whether the difference of scores, or of w, is exactly the same in every task."""
    (ka, na), (kb, nb) = pair.a, pair.b
    if of == "score":
        return same_difference(ka, na, kb, nb)
    return same_difference(ka * (na - ka), na * (na - 1), kb * (nb - kb), nb * (nb - 1))


def sentence(contrast: Contrast, *, of: str, a: str, b: str) -> str:
    """The finding in words, for instance ``w, live - replay: real, +0.0301 [+0.0200, +0.0413], 95 % over new tasks (paired t)``."""
    result = contrast.result
    head = f"{of}, {a} - {b}: {contrast.finding}"
    if result.value is None:
        return f"{head}: {result.undefined}"
    shown = f"{head}, {result.value:+.4f}"
    if result.lo is None or result.hi is None or result.level is None:
        return f"{shown}: {result.undefined}"
    over = "new tasks" if result.covers == Covers.POPULATION else "new runs of these tasks"
    tail = f"; {result.note.removeprefix(PROVES_NOTHING)}" if result.note else ""
    return f"{shown} [{result.lo:+.4f}, {result.hi:+.4f}], {result.level * 100:.4g} % over {over} ({result.method}){tail}"
