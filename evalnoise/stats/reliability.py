"""Reliability across repeats: pass@k (at least one of k runs passes) and pass^k (all k pass), unbiased, and rates per task.

pass^k of c passes in n runs is C(c, k) / C(n, k); pass@k is 1 - C(n-c, k) / C(n, k), one minus pass^k of the failures. Both are
U-statistics, exact rationals until the last rounding. Source: Chen et al. 2021 (arXiv 2107.03374), equation 1; the same for
all k is the tau-bench's pass^k (Yao et al. 2024, arXiv 2406.12045).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from evalnoise.stats.bootstrap import RESAMPLES, joint_task_bootstrap, percentile_interval
from evalnoise.stats.estimate import PROVES_NOTHING, Covers, Estimate, Method, alpha_of, joined
from evalnoise.stats.intervals import ONE_TASK
from evalnoise.stats.limits import bisect, groups, mean_variance_bound
from evalnoise.stats.patterns import distinct_rows
from evalnoise.stats.variance import NO_TASK, Floats, Ints, checked_counts, clopper_pearson

KS: Final = (1, 2, 5, 10, 20, 50, 100)
"""Values of k that reports use, as far as there are runs."""
WIDEST: Final = "new runs: the widest interval that any rates of the tasks allow"
_TRUSTED: Final = ((4, 12), (2, 20))
"""From so many times k runs and so many times k open tasks on the plug-in interval misses about 0.05 a side; before, up to 0.4."""
_FEWEST_OPEN: Final = 20
"""With fewer open tasks it is not trusted at any k."""
SAME_VALUE: Final = PROVES_NOTHING + "every task has the same value"


class Of(StrEnum):
    """What k runs must do."""

    ANY = "pass@k"
    """At least one passes."""
    ALL = "pass^k"
    """All pass."""

    def at(self, k: int) -> str:
        """The name at one k, for instance ``pass@5``."""
        return f"{self.value[:-1]}{k}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRates:
    """The pass rate of each task with its exact interval. Arrays have one entry per task with a measured run, shape (M,)."""

    tasks: Ints
    """Rows of these tasks; the others have no rate."""
    rates: Floats
    """Passes by measured runs."""
    lo: Floats
    """Lower end, Clopper-Pearson."""
    hi: Floats
    """Upper end."""
    level: float
    """Confidence level of each interval by itself: of 100 tasks at 0.95 about 5 may lie outside theirs."""


def chosen_ks(runs: int) -> tuple[int, ...]:
    """The ks that a report of R runs shows: 2, 5, 10, 20, 50, 100 up to R, and R itself; k = 1 is the score."""
    return tuple(sorted({k for k in KS if 1 < k <= runs} | ({runs} if runs > 1 else set())))


def task_rates(passes: ArrayLike, runs: ArrayLike, *, level: float = 0.95) -> TaskRates:
    """Pass rates of tasks with Clopper-Pearson intervals, each task by itself.

    Args:
        passes: Passes of each task, shape (N,).
        runs: Measured runs of each task, shape (N,); 0: nothing is known of it.
        level: Confidence level.

    Raises:
        ValueError: The counts or the level cannot be.
    """
    k, n = checked_counts(passes, runs)
    alpha_of(level)
    tasks = np.flatnonzero(n >= 1)
    pairs, inverse, _ = distinct_rows(np.column_stack([k, n])[tasks])
    ends = np.array([clopper_pearson(int(c), int(m), level=level) for c, m in pairs]).reshape(-1, 2)
    spread = ends[inverse]
    return TaskRates(tasks=tasks, rates=k[tasks] / n[tasks], lo=spread[:, 0], hi=spread[:, 1], level=level)


def reliability(
    passes: ArrayLike,
    runs: ArrayLike,
    ks: Sequence[int],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> list[tuple[str, Estimate]]:
    """pass@k and pass^k for each k, the mean over tasks, each with its interval for new tasks and the one for new runs.

    `population`: percentiles of the task bootstrap, one for all of them. `benchmark`: the mean +- z SE with
    SE^2 = sum(U^2 - C(c,2k)/C(n,2k))/N^2, unbiased, because C(c,2k)/C(n,2k) is unbiased for p^(2k): from 4k runs and 12k open
    tasks on, or 2k runs and 20k, and never under 20 of them. A task is open when its U is neither 0 nor 1. With fewer it misses
    too often, and under 2k runs there is no unbiased variance. But Var U <= (k/n) theta (1-theta) for theta = p^k (Hoeffding
    1948: n Var U falls with n). V(m), the largest sum of these over all theta with mean m, over N^2, is m (1-m) k/(n N) at equal
    runs, and concave at any. All m with |U - m| <= z sqrt(V(m)) are an interval for which no rates have a larger variance.

    A k that is larger than the runs of some measured task is undefined. Tasks without any run do not enter, and are counted.

    Args:
        passes: Passes of each task, shape (N,).
        runs: Measured runs of each task, shape (N,).
        ks: Numbers of runs, each at least 1.
        seed: Seed of the bootstrap.
        resamples: Resamples.
        level: Confidence level.

    Raises:
        ValueError: Counts, ks or the level cannot be.
    """
    k_passes, n = checked_counts(passes, runs)
    if any(k < 1 for k in ks):
        raise ValueError(f"k is 1 or more, not {min(ks)}")
    alpha_of(level)
    entered = n >= 1
    skipped = int(np.count_nonzero(~entered))
    c, n = k_passes[entered], n[entered]
    named = [(of, k) for k in ks for of in Of]
    defined = [(of, k) for of, k in named if n.size and k <= int(n.min())]
    tasks = _patterns(c, n)
    values = {(of, k): _values(tasks, k, of) for of, k in defined}
    draws: dict[tuple[Of, int], Floats] = {}
    if n.size >= 2 and defined:
        means = joint_task_bootstrap(np.column_stack([values[key] for key in defined]), resamples=resamples, seed=seed)
        draws = {key: means[:, i] for i, key in enumerate(defined)}
    several = "1 task without a measured run is" if skipped == 1 else f"{skipped} tasks without a measured run are"
    note = f"{several} left out" if skipped else ""
    found: list[tuple[str, Estimate]] = []
    for of, k in named:
        if (of, k) not in values:
            found.append((of.at(k), _undefined(n, k, note)))
            continue
        base = Estimate(
            value=_mean(tasks, k, of), method=Method.PERCENTILE, n_tasks=len(n), n_replicates=int(n.min()), note=note
        )  # fmt: skip
        found.append((of.at(k), _population(base, values[of, k], draws.get((of, k)), seed=seed, level=level)))
        found.append((of.at(k), _benchmark(base, tasks, k, of, level=level)))
    return found


def task_values(passes: ArrayLike, runs: ArrayLike, k: int, *, of: Of | str) -> Floats:
    """pass@k or pass^k of each task, shape (N,); every task needs k runs. ValueError if one has fewer."""
    of = Of(of)
    c, n = checked_counts(passes, runs)
    if n.size and int(n.min()) < k:
        raise ValueError(f"task {int(np.argmin(n))}: {int(n.min())} runs say nothing about {k}")
    return _values(_patterns(c, n), k, of)


def _value(passes: int, runs: int, k: int, of: Of) -> Fraction:
    total = math.comb(runs, k)
    return Fraction(math.comb(passes, k), total) if of is Of.ALL else 1 - Fraction(math.comb(runs - passes, k), total)


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Tasks by what they have in common: the exact arithmetic is done once for each distinct pair of counts."""

    pairs: list[tuple[int, int, int]]
    """Passes, runs, and how many tasks have them."""
    of_task: Ints
    """Which of them each task is."""
    runs: Ints
    """Runs of each task."""

    def open(self, k: int, of: Of) -> int:
        """Tasks whose value is neither 0 nor 1: those that the variance is seen in."""
        return sum(count for c, n, count in self.pairs if 0 < _value(c, n, k, of) < 1)


def _patterns(passes: Ints, runs: Ints) -> _Patterns:
    pairs, inverse, counts = distinct_rows(np.column_stack([passes, runs]))
    return _Patterns([(int(c), int(n), int(count)) for (c, n), count in zip(pairs, counts, strict=True)], inverse, runs)


def _values(tasks: _Patterns, k: int, of: Of) -> Floats:
    return np.array([float(_value(c, n, k, of)) for c, n, _ in tasks.pairs])[tasks.of_task]


def _mean(tasks: _Patterns, k: int, of: Of) -> float:
    return float(sum((_value(c, n, k, of) * count for c, n, count in tasks.pairs), Fraction()) / len(tasks.runs))


def _undefined(runs: Ints, k: int, note: str) -> Estimate:
    if not runs.size:
        return Estimate(value=None, method=Method.PERCENTILE, n_tasks=0, n_replicates=0, undefined=NO_TASK, note=note)
    short = int(np.count_nonzero(runs < k))
    tasks = "1 task has" if short == 1 else f"{short} tasks have"
    reason = f"k = {k} needs {k} measured runs of every task: {tasks} fewer, of {len(runs)}"
    return Estimate(
        value=None, method=Method.PERCENTILE, n_tasks=len(runs), n_replicates=int(runs.min()), undefined=reason, note=note
    )


def _population(base: Estimate, values: Floats, draws: Floats | None, *, seed: int, level: float) -> Estimate:
    if draws is None:
        return base.lacking(ONE_TASK)
    lo, hi = percentile_interval(draws, level=level)
    same = SAME_VALUE if bool(np.all(values == values[0])) else ""
    return dataclasses.replace(base, seed=seed, resamples=len(draws)).spanning(
        lo, hi, level=level, covers=Covers.POPULATION, note=same
    )  # fmt: skip


def _benchmark(base: Estimate, tasks: _Patterns, k: int, of: Of, *, level: float) -> Estimate:
    z = float(-ndtri(alpha_of(level) / 2))
    squared = _squared_error(tasks, k, of)
    value = base.value if base.value is not None else 0.0
    if squared > 0:
        half = z * math.sqrt(squared)
        lo, hi = max(0.0, value - half), min(1.0, value + half)
        return dataclasses.replace(base, method=Method.PLUG_IN).spanning(lo, hi, level=level, covers=Covers.BENCHMARK)
    lo, hi = _widest(value, tasks.runs, k, z)
    return dataclasses.replace(base, method=Method.EQUAL_P, note=joined(base.note, WIDEST)).spanning(
        lo, hi, level=level, covers=Covers.BENCHMARK
    )  # fmt: skip


def _squared_error(tasks: _Patterns, k: int, of: Of) -> Fraction:
    """Unbiased squared standard error over new runs of these tasks; 0 or less where it is not to be trusted."""
    least, seen = min(n for _, n, _ in tasks.pairs), tasks.open(k, of)
    if seen < _FEWEST_OPEN or not any(least >= times * k and seen >= many * k for times, many in _TRUSTED):
        return Fraction()
    total = Fraction()
    for c, n, count in tasks.pairs:
        wins = c if of is Of.ALL else n - c
        total += (_value(wins, n, k, Of.ALL) ** 2 - _value(wins, n, 2 * k, Of.ALL)) * count
    return total / len(tasks.runs) ** 2


def _widest(value: float, runs: Ints, k: int, z: float) -> tuple[float, float]:
    """Both ends of {m in [0, 1] : (value - m)^2 <= z^2 V(m)}, V the largest variance; Wilson's interval at equal runs."""
    sizes, counts = groups(runs)
    factors = k / sizes
    if len(sizes) == 1:
        weight = z * z * float(factors[0]) / len(runs)
        middle = (value + weight / 2) / (1 + weight)
        half = math.sqrt(weight * (value * (1 - value) + weight / 4)) / (1 + weight)
        return max(0.0, middle - half), min(1.0, middle + half)

    def inside(m: float) -> float:
        return z * z * mean_variance_bound(m, factors, counts) - (value - m) ** 2

    # V is concave, so the set is an interval around the value, and each end a single crossing, or 0 or 1 itself.
    lo = bisect(lambda m: -inside(m), 0.0, value) if value > 0 else 0.0
    hi = bisect(inside, value, 1.0) if value < 1 else 1.0
    return lo, hi
