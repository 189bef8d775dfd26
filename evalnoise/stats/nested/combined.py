"""The generation's variance where no condition has repeats at both levels: fresh runs against grades of a frozen output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats.bootstrap import RESAMPLES, group_labels
from evalnoise.stats.clusters import ONE_CLUSTER, clusters_note
from evalnoise.stats.estimate import Estimate, Method
from evalnoise.stats.few import few_note
from evalnoise.stats.intervals import ONE_TASK
from evalnoise.stats.limits import largest_s2
from evalnoise.stats.nested.components import by_divisor
from evalnoise.stats.nested.draws import drawn_sums, exact_difference
from evalnoise.stats.nested.intervals import gaffke_mean, percentile_of
from evalnoise.stats.variance import ONE_RUN, Floats, Ints, checked_counts

_LARGEST = 1 << 53


def combined_generation(
    fresh: tuple[ArrayLike, ArrayLike],
    again: tuple[ArrayLike, ArrayLike],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    clusters: ArrayLike | None = None,
) -> Iterator[Estimate]:
    """Generation as generation+grader of fresh runs minus grader of repeated grades, with intervals over new tasks.

    Each is sum k (R-k)/R over sum (R-1), over its tasks with two runs. First the percentile interval of tasks resampled with both
    conditions, or of clusters of them; then, where every task has the same runs in a condition and there are no clusters,
    Gaffke's: the difference is then a mean of s2 - s2', which lie between minus the largest s2' and the largest s2.

    Args:
        fresh: Passes and runs of each task (N,), each run a generation with one grade.
        again: Passes and runs of the same tasks, each run a grade of one frozen output.
        seed: Seed of the resampling.
        resamples: Number of resamples.
        level: Confidence level.
        clusters: Cluster of each task (N,), of any type that sorts: whole clusters are resampled then.
    """
    sides = [checked_counts(*fresh), checked_counts(*again)]
    if sides[0][0].shape != sides[1][0].shape:
        raise ValueError(f"both conditions need one row per task: {sides[0][0].shape} and {sides[1][0].shape}")
    entered = (sides[0][1] > 1) | (sides[1][1] > 1)
    sides = [(passes[entered], runs[entered]) for passes, runs in sides]
    n = int(np.count_nonzero(entered))
    repeated = [runs[runs > 1] for _, runs in sides]
    base = Estimate(
        value=None,
        method=Method.PERCENTILE if clusters is None else Method.CLUSTER_BOOTSTRAP,
        n_tasks=n,
        n_replicates=min((int(runs.min()) for runs in repeated if runs.size), default=0),
    )
    if not all(runs.size for runs in repeated):
        yield base.lacking(ONE_RUN)
        return
    base = replace(base, value=float(_pooled(*sides[0]) - _pooled(*sides[1])))
    labels = None if clusters is None else group_labels(np.asarray(clusters)[entered], n, "clusters")
    refused = ONE_TASK if n < 2 else ONE_CLUSTER if labels is not None and labels.max() < 1 else ""
    if refused:
        yield base.lacking(refused)
        return
    base = replace(base, seed=seed, resamples=resamples)
    yield _resampled(base, sides, labels, level)
    if labels is None and all(len(np.unique(runs)) == 1 for _, runs in sides):
        yield _gaffke(base, sides, level)


def _pooled(passes: Ints, runs: Ints) -> Fraction:
    return by_divisor((passes * (runs - passes))[runs > 1], runs[runs > 1]) / int((runs[runs > 1] - 1).sum())


def _column(passes: Ints, runs: Ints) -> tuple[Floats, Floats, int]:
    """The k (R-k)/R and R-1 of each task, and what the first are multiplied by: they are integers while all sums are exact."""
    safe = np.maximum(runs, 1)
    within, common = passes * (runs - passes), lcm(*(int(size) for size in np.unique(safe)))
    free = np.maximum(runs - 1, 0).astype(np.float64)
    if common * int(within.max()) * len(runs) > _LARGEST:
        return within / safe, free, 1
    return (within * (common // safe)).astype(np.float64), free, common


def _resampled(base: Estimate, sides: list[tuple[Ints, Ints]], labels: Ints | None, level: float) -> Estimate:
    (first, df_first, by_first), (second, df_second, by_second) = (_column(*side) for side in sides)
    rows = np.column_stack([first, df_first, second, df_second])
    exact = bool((rows == np.rint(rows)).all())
    a, df_a, b, df_b = drawn_sums(rows, seed=base.seed or 0, resamples=base.resamples or RESAMPLES, clusters=labels).T
    df_a, df_b = (np.where(df > 0, df, np.nan) for df in (df_a, df_b))
    # Over common degrees of freedom, so that an equal difference in every task is the same in every resample.
    above = exact_difference(a, df_b * by_second, b, df_a * by_first, exact=exact)
    draws = above / (df_a * df_b * by_first * by_second)
    parts = first / (by_first * float(df_first.sum())) - second / (by_second * float(df_second.sum()))
    grouped = "" if labels is None else clusters_note(np.bincount(labels))
    return percentile_of(base, draws, few_note(parts), level=level, note=grouped)


def _gaffke(base: Estimate, sides: list[tuple[Ints, Ints]], level: float) -> Estimate:
    (fresh, m), (again, r) = ((passes, int(runs[0])) for passes, runs in sides)
    of_fresh, of_again = m * (m - 1), r * (r - 1)
    if of_fresh * of_again > _LARGEST:
        # Python's integers: products of four counts may not fit into 64 bits.
        fresh, again = fresh.astype(object), again.astype(object)
    differences = fresh * (m - fresh) * of_again - again * (r - again) * of_fresh
    parts, ends = differences / (of_fresh * of_again), (-largest_s2(r), largest_s2(m))
    return gaffke_mean(replace(base, method=Method.GAFFKE), np.asarray(parts, dtype=np.float64), ends, level=level)
