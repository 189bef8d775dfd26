"""Intervals for w and for the score of one condition: for these tasks (`benchmark`) and for new tasks (`population`)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from evalnoise.stats.bootstrap import RESAMPLES, dirichlet_task_means, joint_task_bootstrap, percentile_interval
from evalnoise.stats.estimate import PROVES_NOTHING, Covers, Estimate, Method, alpha_of, joined
from evalnoise.stats.few import few_note
from evalnoise.stats.limits import (
    MAX_VARIANCE,
    bisect,
    curvature,
    groups,
    largest_s2,
    none_varied_benchmark,
    none_varied_population,
    variance_bound,
)
from evalnoise.stats.variance import (
    ONE_RUN,
    Floats,
    Ints,
    WithinTaskVariance,
    checked_counts,
    score,
    task_variances,
    within_task_variance,
)

FEW_VARIABLE = 15
"""Under so many variable tasks a percentile interval under-covers."""
GAFFKE_FIRST = 20
"""Under so many variable tasks Gaffke's interval is the one to quote."""
PLUG_IN_RUNS, PLUG_IN_VARIABLE = 10, 20
"""From so many runs and variable tasks on a plain standard error over new runs is good enough; of a score the tasks decide."""
_LARGEST_DIVISOR = 1 << 31
ABOVE_MAXIMUM = "w is above 1/4, which no true w is: too few replicates"
SAME_VARIANCE = PROVES_NOTHING + "every task has the same variance"
NOTHING_VARIED = PROVES_NOTHING + "no task varied, and an interval of width zero is what resampling makes of that"
ONE_TASK = "one task says nothing about other tasks"
TOO_FEW_RUNS = "too few runs to bound w"
NOT_INDEPENDENT = "w is larger than independent runs would give: the runs of a task seem to avoid each other"
GAFFKE_NOTE = "its validity is a conjecture (arXiv 1905.06208)"


def above_note(w: float | None) -> str:
    """What must be said of an estimate that no true w can have: s2 at R runs can be as large as 1/4 times R/(R-1)."""
    return ABOVE_MAXIMUM if w is not None and w > MAX_VARIANCE else ""


def twice_measured(passes: ArrayLike, runs: ArrayLike) -> tuple[Ints, Ints]:
    """The counts of the tasks with at least two runs."""
    k, n = checked_counts(passes, runs)
    return k[n >= 2], n[n >= 2]


def variance_column(passes: Ints, runs: Ints) -> tuple[Floats, float]:
    """Each task's s2 as a column for the bootstrap and what to divide by: integers k(R-k) and R(R-1) at equal R.

    At unequal R integers over the least common multiple of all R(R-1), or s2 and 1 where that is too large.
    """
    return _integer_column(passes * (runs - passes), runs * (runs - 1))


def score_column(passes: Ints, runs: Ints) -> tuple[Floats, float]:
    """Each task's mean as a column for the bootstrap and what to divide by: integers k and R at equal R.

    At unequal R integers over the least common multiple of all R, or k/n and 1 where that is too large.
    """
    return _integer_column(passes, runs)


def _integer_column(above: Ints, below: Ints) -> tuple[Floats, float]:
    common = math.lcm(*(int(size) for size in np.unique(below)))
    if common > _LARGEST_DIVISOR:
        return above / below, 1.0
    return (above * (common // below)).astype(np.float64), float(common)


def few_variable_note(variable: int) -> str:
    """What a percentile interval's reader must know about the number of variable tasks."""
    if variable == 0:
        return NOTHING_VARIED
    if variable < FEW_VARIABLE:
        tasks = "1 variable task" if variable == 1 else f"{variable} variable tasks"
        return f"only {tasks}: under 15 the interval covers less often than it says; quote Gaffke's"
    return "" if variable >= GAFFKE_FIRST else f"{variable} variable tasks: under 20 quote Gaffke's interval first"


def few_varied_note(variable: int) -> str:
    """What the reader of a score's plain interval for new runs must know about the number of variable tasks."""
    if variable >= PLUG_IN_VARIABLE:
        return ""
    tasks = {0: "no task", 1: "only 1 task"}.get(variable, f"only {variable} tasks")
    return f"{tasks} varied: under {PLUG_IN_VARIABLE} this interval is too narrow; quote the {Method.EQUAL_P}'s"


# --- w -------------------------------------------------------------------------------------------------------------------


def w_population(
    passes: ArrayLike,
    runs: ArrayLike,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    draws: ArrayLike | None = None,
) -> Estimate:
    """The estimate w with the percentile interval of the task bootstrap: the paper's interval.

    `draws` (resamples,) are bootstrap means of s2 over the same tasks, when a joint bootstrap made them already.
    """
    k, n = twice_measured(passes, runs)
    found = within_task_variance(k, n)
    base = _base(found.w, found.undefined, n, method=Method.PERCENTILE)
    if n.size < 2:
        return base if not n.size else base.lacking(ONE_TASK)
    if draws is None:
        column, divisor = variance_column(k, n)
        draws = joint_task_bootstrap(column[:, None], resamples=resamples, seed=seed)[:, 0] / divisor
    lo, hi = percentile_interval(draws, level=level)
    base = dataclasses.replace(base, seed=seed, resamples=len(np.asarray(draws)))
    variances = task_variances(k, n)
    same = SAME_VARIANCE if found.variable_tasks and bool(np.all(variances == variances[0])) else ""
    note = joined(same, above_note(found.w), few_variable_note(found.variable_tasks))
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=note)


def w_gaffke(passes: ArrayLike, runs: ArrayLike, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95) -> Estimate:
    """The estimate w with Gaffke's interval: Dirichlet weights over the tasks and one pseudo-task at the end of what s2 can be.

    The pseudo-task has the largest s2, floor(R/2) ceil(R/2) / (R (R-1)), for the upper end and 0 for the lower. With unequal
    runs R is the smallest, which has the largest s2.
    """
    k, n = twice_measured(passes, runs)
    found = within_task_variance(k, n)
    base = _base(found.w, found.undefined, n, method=Method.GAFFKE)
    if not n.size:
        return base
    s2, most = task_variances(k, n), largest_s2(int(n.min()))
    lo, hi = gaffke_ends(s2, (0.0, most), seed=seed, resamples=resamples, level=level)
    base = dataclasses.replace(base, seed=seed, resamples=resamples)
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=joined(above_note(found.w), GAFFKE_NOTE))


def gaffke_ends(values: Floats, between: tuple[float, float], *, seed: int, resamples: int, level: float) -> tuple[float, float]:
    """Ends of Gaffke's interval for the mean of values, (N,), that lie `between` two numbers: a pseudo-task has either."""
    alpha = alpha_of(level)
    low, high = (dirichlet_task_means(values, end, resamples=resamples, seed=seed) for end in between)
    return float(np.quantile(low, alpha / 2)), float(np.quantile(high, 1 - alpha / 2))


def w_quoted(passes: ArrayLike, runs: ArrayLike, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95) -> Estimate:
    """The interval of w for new tasks to quote: Gaffke's where fewer than 20 tasks varied, else the paper's."""
    few = within_task_variance(*twice_measured(passes, runs)).variable_tasks < GAFFKE_FIRST
    return (w_gaffke if few else w_population)(passes, runs, seed=seed, resamples=resamples, level=level)


def w_gaffke_limit(passes: ArrayLike, runs: ArrayLike, *, seed: int, resamples: int = RESAMPLES, level: float = 0.9) -> Estimate:
    """One-sided upper limit of w for new tasks: the `level` quantile of the weighted means behind the upper end of `w_gaffke`.

    Held to 1/4, which no true w is above. It is what a cautious budget plans with.
    """
    k, n = twice_measured(passes, runs)
    found = within_task_variance(k, n)
    base = _base(found.w, found.undefined, n, method=Method.GAFFKE)
    if not n.size:
        return base
    alpha_of(level)
    draws = dirichlet_task_means(task_variances(k, n), largest_s2(int(n.min())), resamples=resamples, seed=seed)
    hi = min(MAX_VARIANCE, float(np.quantile(draws, level)))
    base = dataclasses.replace(base, seed=seed, resamples=resamples)
    note = joined(above_note(found.w), _one_sided(level), GAFFKE_NOTE)
    return base.spanning(0.0, hi, level=level, covers=Covers.POPULATION, note=note)


def w_population_limit(passes: ArrayLike, runs: ArrayLike, *, level: float = 0.95) -> Estimate:
    """One-sided upper limit of w for new tasks when nothing varied: (1 - a^(1/N)) / (4 (1 - 2^(1-R))), at most 1/4."""
    k, n = twice_measured(passes, runs)
    found = within_task_variance(k, n)
    base = _base(found.w, found.undefined, n, method=Method.NONE_VARIED)
    if not n.size:
        return base
    if found.variable_tasks:
        return base.lacking("some task varied: this limit is for none")
    hi = none_varied_population(n.size, int(n.min()), alpha_of(level))
    return base.spanning(0.0, hi, level=level, covers=Covers.POPULATION, note=_one_sided(level))


def w_benchmark(passes: ArrayLike, runs: ArrayLike, *, level: float = 0.95) -> Estimate:
    """The estimate w of these tasks, with the interval that new runs of the same tasks would fall under.

    Nothing varied: a one-sided limit. At least 10 runs and 20 variable tasks: w +- z SE with
    SE^2 = sum[s2/R - v2 (4R-6)/(R(R-1))]/N^2, v2 = k(k-1)(R-k)(R-k-1)/(R(R-1)(R-2)(R-3)) unbiased for (p(1-p))^2. Otherwise
    all w in [0, 1/4] within z standard errors of the estimate, with the largest standard error that w allows. Source: notes on
    Noise Floor; the variance of a sample variance of Bernoulli outcomes.
    """
    k, n = twice_measured(passes, runs)
    found = within_task_variance(k, n)
    if found.w is None:
        return _base(None, found.undefined, n, method=Method.EQUAL_P)
    if found.variable_tasks == 0:
        return _none_varied(n, level)
    z = float(-ndtri(alpha_of(level) / 2))
    ends = _plug_in(found, k, n, z)
    method = Method.PLUG_IN if ends else Method.EQUAL_P
    ends = ends or equal_p_ends(found.w, n, z)
    # The interval is held to what w can be, so an estimate above that is outside it.
    base = dataclasses.replace(_base(found.w, "", n, method=method), note=above_note(found.w))
    if ends is None:
        return base.lacking(NOT_INDEPENDENT)
    return base.spanning(*ends, level=level, covers=Covers.BENCHMARK)


def _plug_in(found: WithinTaskVariance, passes: Ints, runs: Ints, z: float) -> tuple[float, float] | None:
    """Ends from the plug-in standard error; None where it is not to be trusted, or leads out of what w can be."""
    if found.w is None or found.n_replicates < PLUG_IN_RUNS or found.variable_tasks < PLUG_IN_VARIABLE:
        return None
    half = z * plug_in_se(passes, runs)
    if found.w - half > MAX_VARIANCE:
        return None
    return max(0.0, found.w - half), min(MAX_VARIANCE, found.w + half)


def plug_in_se(passes: Ints, runs: Ints) -> float:
    """Standard error of w over new runs of these tasks, each with at least 4 runs.

    The plug-in variance is unbiased, but near rates of 1/2 it can come out as nothing, or less. Whatever the rates, a task's
    s2 has a variance of at least p(1-p) / (2 R (R-1)): so that is the least here too.
    """
    k, n = passes.astype(np.float64), runs.astype(np.float64)
    s2 = k * (n - k) / (n * (n - 1))
    v2 = k * (k - 1) * (n - k) * (n - k - 1) / (n * (n - 1) * (n - 2) * (n - 3))
    plug_in = float(np.sum(s2 / n - v2 * curvature(runs)))
    least = float(np.sum(s2 / (2 * n * (n - 1))))
    return float(np.sqrt(max(plug_in, least))) / len(runs)


def _none_varied(n: Ints, level: float) -> Estimate:
    base = _base(0.0, "", n, method=Method.NONE_VARIED)
    hi = none_varied_benchmark(*groups(n), alpha_of(level))
    if hi is None:
        return base.lacking(TOO_FEW_RUNS)
    return base.spanning(0.0, hi, level=level, covers=Covers.BENCHMARK, note=_one_sided(level))


def _one_sided(level: float) -> str:
    return f"one-sided: an upper limit at {level:.4g}; assumes independent runs"


def equal_p_ends(w: float, runs: Ints, z: float) -> tuple[float, float] | None:
    """Both ends of {x in [0, 1/4] : |w - x| <= z sqrt(variance_bound(x))}; None when it is empty.

    The set is an interval, because the left side squared is convex and the bound is concave. It holds for scores in [0, 1] too: of
    all with variance v, outcomes of 0 and 1 have the largest fourth moment, v - 3 v^2, because no two scores differ by more than 1,
    so that E(x-y)^4 = 2 m4 + 6 v^2 is at most E(x-y)^2 = 2 v; and so the largest variance of s2. `runs` (N,) may differ.
    """
    sizes, counts = groups(runs)

    def inside(x: float) -> float:
        return z * z * variance_bound(x, sizes, counts) - (w - x) ** 2

    peak = min(w, MAX_VARIANCE)
    if inside(peak) < 0:
        peak = _highest(inside, 0.0, MAX_VARIANCE)
        if inside(peak) < 0:
            return None
    # An observed change rules w = 0 out, so the lower end is a crossing; the upper one may lie past 1/4.
    lo = bisect(lambda x: -inside(x), 0.0, peak)
    hi = MAX_VARIANCE if inside(MAX_VARIANCE) >= 0 else bisect(inside, peak, MAX_VARIANCE)
    return lo, hi


def _highest(concave: Callable[[float], float], low: float, high: float) -> float:
    """Where a concave function is largest."""
    for _ in range(200):
        third = (high - low) / 3
        if concave(low + third) < concave(high - third):
            low += third
        else:
            high -= third
    return (low + high) / 2


# --- score ---------------------------------------------------------------------------------------------------------------


def score_population(
    passes: ArrayLike,
    runs: ArrayLike,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    draws: ArrayLike | None = None,
) -> Estimate:
    """The score with the percentile interval of the task bootstrap; `draws` as in `w_population`."""
    k, n = checked_counts(passes, runs)
    k, n = k[n >= 1], n[n >= 1]
    found = score(k, n)
    base = _base(found.value, found.undefined, n, method=Method.PERCENTILE)
    if n.size < 2:
        return base if not n.size else base.lacking(ONE_TASK)
    column, divisor = score_column(k, n)
    if draws is None:
        draws = joint_task_bootstrap(column[:, None], resamples=resamples, seed=seed)[:, 0] / divisor
    lo, hi = percentile_interval(draws, level=level)
    same = bool(np.all(column == column[0]))
    base = dataclasses.replace(base, seed=seed, resamples=len(np.asarray(draws)))
    note = PROVES_NOTHING + "every task has the same mean" if same else few_note(k / n, 1 - k / n)
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=note)


def score_benchmark(passes: ArrayLike, runs: ArrayLike, *, level: float = 0.95) -> Estimate:
    """The score of these tasks +- z SE over new runs, SE^2 = sum(s2/R)/N^2, which is w/(N R) at equal R; held to [0, 1].

    A task with a single run gets w for its s2. With fewer than 20 variable tasks it misses too often: `score_cautious`.
    """
    k, n = checked_counts(passes, runs)
    k, n = k[n >= 1], n[n >= 1]
    squared = score_squared_error(k, n)
    few = few_varied_note(within_task_variance(k, n).variable_tasks)
    notes = joined(NOTHING_VARIED if squared == 0 else "", few, _some_single(n))
    return _score_within(k, n, squared, notes, method=Method.PLUG_IN, level=level)


def score_cautious(passes: ArrayLike, runs: ArrayLike, *, level: float = 0.95) -> Estimate:
    """The score of these tasks +- z SE, the upper end of w's benchmark interval in the place of w. For few variable tasks.

    SE^2 = [sum(s2/R) + (w' - w) sum(1/R)]/N^2, which is w'/(N R) at equal R; w' is 1/4 where the runs allow nothing less.
    """
    k, n = checked_counts(passes, runs)
    k, n = k[n >= 1], n[n >= 1]
    squared, found = score_squared_error(k, n), within_task_variance(k, n)
    if squared is not None and found.w is not None:
        # Where nothing varied the limit is one-sided: this level leaves it the share of one side.
        limit = w_benchmark(k, n, level=level if found.variable_tasks else (1 + level) / 2).hi
        upper = max(found.w, MAX_VARIANCE if limit is None else limit)
        squared += (upper - found.w) * float(np.sum(1 / n)) / len(n) ** 2
    return _score_within(k, n, squared, _some_single(n), method=Method.EQUAL_P, level=level)


def _score_within(k: Ints, n: Ints, squared: float | None, note: str, *, method: str, level: float) -> Estimate:
    """The score +- z times the root of its squared standard error, held to [0, 1]."""
    found = score(k, n)
    base = _base(found.value, found.undefined, n, method=method)
    if found.value is None or squared is None:
        return base.lacking(found.undefined or ONE_RUN)
    half = float(-ndtri(alpha_of(level) / 2)) * float(np.sqrt(squared))
    lo, hi = max(0.0, found.value - half), min(1.0, found.value + half)
    return base.spanning(lo, hi, level=level, covers=Covers.BENCHMARK, note=note)


def score_squared_error(passes: Ints, runs: Ints) -> float | None:
    """Squared standard error of the score over new runs of these tasks; None when no task has two runs."""
    found = within_task_variance(passes, runs)
    if found.w is None:
        return None
    twice = runs >= 2
    known = float(np.sum(task_variances(passes[twice], runs[twice]) / runs[twice]))
    return (known + found.w * int(np.count_nonzero(~twice))) / len(runs) ** 2


def score_run_sd(passes: ArrayLike, runs: ArrayLike, *, level: float = 0.95) -> Estimate:
    """sqrt(w/N), the standard deviation of the score from run to run, with the ends of w's benchmark interval put through it."""
    w = w_benchmark(passes, runs, level=level)

    def sd(value: float | None) -> float | None:
        return None if value is None else float(np.sqrt(value / w.n_tasks))

    return dataclasses.replace(w, value=sd(w.value), lo=sd(w.lo), hi=sd(w.hi))


def _some_single(runs: Ints) -> str:
    single = int(np.count_nonzero(runs == 1))
    return f"{single} tasks have one run: the mean variance stands in for theirs" if single else ""


def _base(value: float | None, undefined: str, runs: Ints, *, method: str) -> Estimate:
    return Estimate(
        value=value, method=method, n_tasks=len(runs), n_replicates=int(runs.min()) if len(runs) else 0, undefined=undefined
    )
