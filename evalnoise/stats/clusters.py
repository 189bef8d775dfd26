"""Clusters: standard errors and intervals for tasks that come in groups, such as several questions about one text.

Tasks of a cluster tend to pass and fail together, so N tasks tell less about new tasks than N that have nothing to do with each
other. What is new here is a new cluster with all of its tasks: every interval covers the population of clusters.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from evalnoise.stats.bootstrap import (
    RESAMPLES,
    finite_rows,
    group_labels,
    group_totals,
    joint_cluster_bootstrap,
    percentile_interval,
)
from evalnoise.stats.estimate import PROVES_NOTHING, Covers, Estimate, Method, alpha_of, joined
from evalnoise.stats.intervals import FEW_VARIABLE, score_column, variance_column
from evalnoise.stats.variance import Floats, Ints, checked_counts, score, within_task_variance

FEW_CLUSTERS = 10
"""Under so many clusters an interval over clusters covers less often than it says."""
ONE_CLUSTER = "an interval over clusters needs 2 of them"
SAME_MEAN = PROVES_NOTHING + "no cluster is off the mean of all"
NONE_VARIED = PROVES_NOTHING + "no task varied"
_SCORE, _W = "score", "w"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredMean:
    """A mean over tasks with its cluster-robust standard error."""

    result: Estimate
    """The mean, and mean +- t_(G-1) SE; covers new clusters (`population`)."""
    se: float | None
    """Cluster-robust standard error with the factor G/(G-1); None without two clusters."""
    se_cr0: float | None
    """The same without the factor: CR0, of Liang and Zeger."""
    se_plain: float | None
    """sd/sqrt(N), ddof 1: as if every task were a cluster of its own."""
    n_clusters: int
    """Clusters G with a task that entered."""
    largest: int
    """Tasks in the largest of them."""

    @property
    def design_effect(self) -> float | None:
        """How many times larger the variance is than for unrelated tasks: (se / se_plain)^2; None where that is 0/0."""
        return (self.se / self.se_plain) ** 2 if self.se is not None and self.se_plain else None


@dataclass(frozen=True, slots=True)
class _Column:
    """One number per task, as a column over a divisor, and the mean that is reported."""

    values: Floats
    divisor: float
    clusters: Ints
    value: float
    n_replicates: int
    note: str = ""

    @property
    def sizes(self) -> Ints:
        return np.bincount(self.clusters)

    def estimate(self, method: Method) -> Estimate:
        return Estimate(value=self.value, method=method, n_tasks=len(self.values), n_replicates=self.n_replicates)


def named_labels(clusters: Sequence[str]) -> Ints | None:
    """Cluster of each task, (N,), from its name; a task without one (an empty text) is one of its own. None where none has one."""
    if not any(clusters):
        return None
    names = [f"named {name}" if name else f"alone {place}" for place, name in enumerate(clusters)]
    return group_labels(names, len(names), "clusters")


def clustered_mean(values: ArrayLike, clusters: ArrayLike, *, level: float = 0.95) -> ClusteredMean:
    """Mean of one number per task, with the standard error that lets tasks of a cluster hang together.

    SE^2 = G/(G-1) sum_g (sum_(i in g) (x_i - mean))^2 / N^2. Source: Miller 2024, arXiv 2411.00640; Liang and Zeger
    1986. Without the factor it is CR0, whose residuals are too small because the mean was fitted to them; with it, clusters of one
    task each give sd/sqrt(N) exactly, and so do statsmodels and Stata for the mean. The interval has G-1 degrees of freedom.

    Args:
        values: One number per task, (N,); finite.
        clusters: Cluster of each task, (N,), of any type that sorts.
        level: Confidence level.

    Raises:
        ValueError: There are fewer than two clusters.
    """
    rows = finite_rows(np.asarray(values, dtype=np.float64)[:, None])[:, 0]
    column = _Column(rows, 1.0, group_labels(clusters, len(rows), "clusters"), math.fsum(rows) / len(rows), 1)
    return _robust(column, level)


def clustered_score(passes: ArrayLike, runs: ArrayLike, clusters: ArrayLike, *, level: float = 0.95) -> ClusteredMean:
    """The score, mean of k/n over the measured tasks, with its cluster-robust interval in [0, 1]. Raises as `clustered_mean`."""
    found = _robust(_condition(passes, runs, clusters, _SCORE), level)
    return dataclasses.replace(found, result=_held(found.result, 0.0, 1.0))


def clustered_w(passes: ArrayLike, runs: ArrayLike, clusters: ArrayLike, *, level: float = 0.95) -> ClusteredMean:
    """The estimate w over the tasks with two runs, with its cluster-robust interval, from 0 on. Raises as `clustered_mean`."""
    found = _robust(_condition(passes, runs, clusters, _W), level)
    return dataclasses.replace(found, result=_held(found.result, 0.0, math.inf))


def clustered_difference(
    passes_a: ArrayLike,
    runs_a: ArrayLike,
    passes_b: ArrayLike,
    runs_b: ArrayLike,
    clusters: ArrayLike,
    *,
    of: str = "score",
    level: float = 0.95,
) -> ClusteredMean:
    """score_a - score_b or w_a - w_b, paired by task, with its cluster-robust interval, untruncated.

    Arrays have shape (N,), row i being the same task; `of` is "score" or "w". Raises as `clustered_mean`. Source: Miller 2024,
    section 3 (paired differences, clustered).
    """
    return _robust(_difference((passes_a, runs_a), (passes_b, runs_b), clusters, of), level)


def cluster_bootstrap(
    passes: ArrayLike,
    runs: ArrayLike,
    clusters: ArrayLike,
    *,
    of: str = "score",
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """The score or w with the percentile interval over resampled clusters, each with all of its tasks. Covers new clusters.

    Raises:
        ValueError: There are fewer than two clusters.
    """
    return _resampled(_condition(passes, runs, clusters, of), seed=seed, resamples=resamples, level=level)


def cluster_bootstrap_difference(
    passes_a: ArrayLike,
    runs_a: ArrayLike,
    passes_b: ArrayLike,
    runs_b: ArrayLike,
    clusters: ArrayLike,
    *,
    of: str = "score",
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """score_a - score_b or w_a - w_b with percentiles over resampled clusters, the same ones for both conditions.

    Arguments as in `clustered_difference`, raises as `cluster_bootstrap`.
    """
    column = _difference((passes_a, runs_a), (passes_b, runs_b), clusters, of)
    return _resampled(column, seed=seed, resamples=resamples, level=level)


# --- columns -------------------------------------------------------------------------------------------------------------


def _kind(of: str) -> tuple[int, Callable[[Ints, Ints], tuple[Floats, float]], Callable[[Ints, Ints], float | None]]:
    """Least number of runs, column and mean of what is asked for."""
    if of == _SCORE:
        return 1, score_column, lambda k, n: score(k, n).value
    if of == _W:
        return 2, variance_column, lambda k, n: within_task_variance(k, n).w
    raise ValueError(f'of is "score" or "w", not {of!r}')


def _labels(clusters: ArrayLike, counts: Ints, entered: Ints) -> Ints:
    labels = group_labels(clusters, len(counts), "clusters")[entered]
    if len(np.unique(labels)) < 2:
        raise ValueError(f"{ONE_CLUSTER}, not {len(np.unique(labels))}: no two clusters have a task that counts")
    return group_labels(labels, len(labels), "clusters")


def _condition(passes: ArrayLike, runs: ArrayLike, clusters: ArrayLike, of: str) -> _Column:
    least, column, mean = _kind(of)
    k, n = checked_counts(passes, runs)
    entered = np.flatnonzero(n >= least)
    labels = _labels(clusters, n, entered)
    k, n = k[entered], n[entered]
    values, divisor = column(k, n)
    return _Column(values, divisor, labels, mean(k, n) or 0.0, int(n.min()), _variable_note(of, int(np.sum((k > 0) & (k < n)))))


def _difference(a: tuple[ArrayLike, ArrayLike], b: tuple[ArrayLike, ArrayLike], clusters: ArrayLike, of: str) -> _Column:
    least, column, mean = _kind(of)
    (ka, na), (kb, nb) = checked_counts(*a), checked_counts(*b)
    if ka.shape != kb.shape:
        raise ValueError(f"the two conditions need one row per task, in one order: {ka.shape} and {kb.shape}")
    entered = np.flatnonzero((na >= least) & (nb >= least))
    labels = _labels(clusters, na, entered)
    ka, na, kb, nb = (counts[entered] for counts in (ka, na, kb, nb))
    (first, by_first), (second, by_second) = column(ka, na), column(kb, nb)
    divisor = float(math.lcm(int(by_first), int(by_second)))
    values = first * (divisor / by_first) - second * (divisor / by_second)
    varied = max(int(np.sum((ka > 0) & (ka < na))), int(np.sum((kb > 0) & (kb < nb))))
    value = (mean(ka, na) or 0.0) - (mean(kb, nb) or 0.0)
    return _Column(values, divisor, labels, value, int(min(na.min(), nb.min())), _variable_note(of, varied))


def _variable_note(of: str, variable: int) -> str:
    """What the reader of an interval for w must know about the number of variable tasks."""
    if of != _W or variable >= FEW_VARIABLE:
        return ""
    few = "1 variable task" if variable == 1 else f"{variable} variable tasks"
    return f"only {few}: under {FEW_VARIABLE} the interval covers less often than it says" if variable else NONE_VARIED


def _held(result: Estimate, low: float, high: float) -> Estimate:
    if result.lo is None or result.hi is None:
        return result
    return dataclasses.replace(result, lo=max(low, result.lo), hi=min(high, result.hi))


# --- intervals -----------------------------------------------------------------------------------------------------------


def _robust(column: _Column, level: float) -> ClusteredMean:
    sizes, n = column.sizes, len(column.values)
    g = len(sizes)
    if g < 2:
        raise ValueError(f"{ONE_CLUSTER}, not {g}")
    squares = _sum_of_squares(column.values, column.clusters, column.divisor)
    plain = _sum_of_squares(column.values, np.arange(n), column.divisor)
    se = math.sqrt(squares * Fraction(g, (g - 1) * n * n))
    half = float(-stdtrit(g - 1, alpha_of(level) / 2)) * se
    base = column.estimate(Method.CLUSTER_ROBUST)
    note = joined(column.note or (SAME_MEAN if squares == 0 else ""), clusters_note(sizes))
    return ClusteredMean(
        result=base.spanning(column.value - half, column.value + half, level=level, covers=Covers.POPULATION, note=note),
        se=se,
        se_cr0=math.sqrt(squares / (n * n)),
        se_plain=math.sqrt(plain / (n * (n - 1))),
        n_clusters=g,
        largest=int(sizes.max()),
    )


def _sum_of_squares(values: Floats, groups: Ints, divisor: float) -> Fraction:
    """Sum over groups of (sum of x - mean)^2, x = values/divisor: exact for integers, otherwise of the sums as they round."""
    sums = group_totals(values[:, None], groups)[:, 0]
    sizes, n = np.bincount(groups), len(values)
    if bool((values == np.rint(values)).all()):
        total = sum(int(x) for x in sums.tolist())
        residuals = [n * int(s) - size * total for s, size in zip(sums.tolist(), sizes.tolist(), strict=True)]
        return Fraction(sum(x * x for x in residuals), n * n) / Fraction(divisor) ** 2
    mean = math.fsum(values) / n
    away = group_totals((values - mean)[:, None], groups)[:, 0]
    return Fraction(math.fsum(away * away)) / Fraction(divisor) ** 2


def _resampled(column: _Column, *, seed: int, resamples: int, level: float) -> Estimate:
    means = joint_cluster_bootstrap(column.values[:, None], column.clusters, resamples=resamples, seed=seed)[:, 0]
    lo, hi = percentile_interval(means / column.divisor, level=level)
    base = dataclasses.replace(column.estimate(Method.CLUSTER_BOOTSTRAP), seed=seed, resamples=resamples)
    same = SAME_MEAN if lo == hi else ""
    note = joined(column.note or same, clusters_note(column.sizes))
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=note)


def clusters_note(sizes: Ints) -> str:
    """The number of clusters, and a warning where they are few."""
    largest = int(sizes.max())
    said = f"{len(sizes)} clusters, the largest of {'1 task' if largest == 1 else f'{largest} tasks'}"
    if len(sizes) >= FEW_CLUSTERS:
        return said
    return f"only {said}: under {FEW_CLUSTERS} clusters the interval covers less often than it says"
