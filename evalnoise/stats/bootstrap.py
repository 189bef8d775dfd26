"""The bootstrap: tasks, or clusters of them, are resampled jointly for all columns, with their multiplicity kept.

`evalnoise.stats.resampling` draws and sums: exact, with streams keyed by blocks of resamples, so that the first m of n resamples
are the same numbers as m resamples, for any number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats.estimate import alpha_of
from evalnoise.stats.resampling import (
    BLOCK,
    Floats,
    Ints,
    Progress,
    check_draws,
    distinct,
    finite_rows,
    fixed_point,
    resampled_sums,
    stream,
)

__all__ = [
    "BLOCK",
    "RESAMPLES",
    "dirichlet_task_means",
    "finite_rows",
    "group_labels",
    "group_totals",
    "joint_cluster_bootstrap",
    "joint_stratified_bootstrap",
    "joint_task_bootstrap",
    "percentile_interval",
]

RESAMPLES = 20_000
"""Default number of resamples, the paper's."""

# The first part of the keys of streams; the engine's own are 0 and 2.
_WEIGHTS, _STRATUM = 1, 3
_MANTISSA = 53
_LARGEST_DRAW = 1 << 20


def joint_task_bootstrap(
    values: ArrayLike, *, resamples: int = RESAMPLES, seed: int, threads: int | None = None, progress: Progress | None = None
) -> Floats:
    """Means of every column over resampled tasks, shape (resamples, M), for values of shape (N, M).

    One resample is N tasks drawn with replacement, the same for all M columns. Integer values give exact sums. Source: Noise
    Floor, section 3.3 and appendix A.2.

    Args:
        values: One row per task, one column per condition and statistic; finite.
        resamples: Number of resamples.
        seed: Seed, 0 or more.
        threads: Threads; None: what the machine has, where it pays. No result depends on it.
        progress: Called with the resamples done and all of them, time and again, and at the end.
    """
    rows, exponents = fixed_point(finite_rows(values))
    sums = resampled_sums(rows, resamples=resamples, seed=seed, threads=threads, progress=progress)
    # Integers up to here; one rounding in the division, none in the scaling by a power of two.
    return np.asarray(np.ldexp(sums / len(rows), -exponents))


def joint_stratified_bootstrap(
    values: ArrayLike,
    strata: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    resamples: int = RESAMPLES,
    seed: int,
    threads: int | None = None,
) -> Floats:
    """Means of every column over tasks resampled within strata, shape (resamples, M), for values of shape (N, M).

    Each stratum keeps its number of tasks, or of clusters; one of a single task, or cluster, is the same in every resample. With
    one stratum these are the numbers of `joint_task_bootstrap`, or of `joint_cluster_bootstrap`.

    Args:
        values: One row per task, one column per condition and statistic; finite.
        strata: Stratum of each task, (N,), of any type that sorts.
        clusters: Cluster of each task, (N,): whole clusters are drawn then. A cluster lies in one stratum.
        resamples: Number of resamples.
        seed: Seed, 0 or more.
        threads: As in `joint_task_bootstrap`.
    """
    rows, exponents = fixed_point(finite_rows(values))
    of_task = group_labels(strata, len(rows), "strata")
    members = np.arange(len(rows)) if clusters is None else group_labels(clusters, len(rows), "clusters")
    totals, more = fixed_point(group_totals(np.column_stack([rows, np.ones(len(rows))]), members))
    of_cluster = _one_stratum_each(of_task, members)
    number = int(of_task.max()) + 1
    sums = np.zeros((resamples, totals.shape[1]))
    for h in range(number):
        # A single stratum has the streams of none.
        key = (_STRATUM, h) if number > 1 else ()
        sums += resampled_sums(totals[of_cluster == h], resamples=resamples, seed=seed, key=key, threads=threads)
    return np.asarray(np.ldexp(sums[:, :-1] / np.ldexp(sums[:, -1:], -more[-1]), -exponents - more[:-1]))


def joint_cluster_bootstrap(
    values: ArrayLike, clusters: ArrayLike, *, resamples: int = RESAMPLES, seed: int, threads: int | None = None
) -> Floats:
    """Means of every column over resampled clusters, shape (resamples, M), for values of shape (N, M).

    One resample is G of the G clusters drawn with replacement, each with all of its tasks, the same for all columns; its mean is
    the sum over its tasks by their number, which differs between resamples when clusters differ in size. With one task in each
    cluster these are the numbers of `joint_task_bootstrap`.

    Args:
        values: One row per task, one column per condition and statistic; finite.
        clusters: Cluster of each task, (N,), of any type that sorts; at least two.
        resamples: Number of resamples.
        seed: Seed, 0 or more.
        threads: As in `joint_task_bootstrap`.

    Raises:
        ValueError: There are fewer than two clusters.
    """
    rows = finite_rows(values)
    members = group_labels(clusters, len(rows), "clusters")
    if members.max() < 1:
        raise ValueError("a cluster bootstrap needs 2 clusters, not 1")
    one = np.zeros(len(rows), dtype=np.int64)
    return joint_stratified_bootstrap(rows, one, clusters=members, resamples=resamples, seed=seed, threads=threads)


def dirichlet_task_means(values: ArrayLike, pseudo: float, *, resamples: int = RESAMPLES, seed: int) -> Floats:
    """Means under Dirichlet(1, …, 1) weights over the N tasks and one pseudo-task, shape (resamples,), for values (N,).

    The weights of equal values add up to a gamma variable, so the cost follows the number of distinct values. Source: Gaffke
    2005; Learned-Miller and Thomas, arXiv 1905.06208.
    """
    rows = finite_rows(np.asarray(values, dtype=np.float64)[:, None])
    check_draws(resamples, seed)
    patterns, counts = distinct(rows)
    points = np.append(patterns[:, 0], float(pseudo))
    shapes = np.append(counts, 1).astype(np.float64)
    # Sums of integers again: 2**6 leaves room for a total weight far above its mean N + 1.
    exponent = _MANTISSA - 6 - int(len(rows) + 1).bit_length()
    top = max(float(np.abs(points).max()), 1.0)
    means = np.empty(resamples)
    # A block's weights come row by row from its stream, so that a part of them at a time gives the same numbers.
    part = max(1, min(BLOCK, _LARGEST_DRAW // len(shapes)))
    for start in range(0, resamples, BLOCK):
        generator = stream(seed, (_WEIGHTS,), start // BLOCK)
        for row in range(start, min(start + BLOCK, resamples), part):
            weights = generator.standard_gamma(shapes, size=(part, len(shapes)))
            total = np.rint(np.ldexp(weights, exponent)).sum(axis=1)
            weighted = np.rint(np.ldexp(weights * (points / top), exponent)).sum(axis=1)
            end = min(row + part, start + BLOCK, resamples)
            means[row:end] = (weighted / total * top)[: end - row]
    return means


def percentile_interval(draws: ArrayLike, *, level: float = 0.95) -> tuple[float, float]:
    """The a/2 and 1-a/2 quantiles of bootstrap draws of shape (resamples,), linear between order statistics."""
    sample = finite_rows(np.asarray(draws, dtype=np.float64)[:, None])[:, 0]
    alpha = alpha_of(level)
    lo, hi = np.quantile(sample, [alpha / 2, 1 - alpha / 2])
    return float(lo), float(hi)


def group_labels(groups: ArrayLike, n_tasks: int, name: str) -> Ints:
    """Groups (N,) as integers from 0 in the order in which the groups sort; ValueError for another shape."""
    labels = np.asarray(groups)
    if labels.shape != (n_tasks,):
        raise ValueError(f"{name} need one label per task, shape ({n_tasks},), not {labels.shape}")
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def group_totals(rows: Floats, labels: Ints) -> Floats:
    """Sums of the rows (N, M) of each group, shape (G, M), for `group_labels`; exact for integers."""
    return np.column_stack([np.bincount(labels, weights=column) for column in rows.T])


def _one_stratum_each(strata: Ints, clusters: Ints) -> Ints:
    """Stratum of each cluster, (G,)."""
    of_cluster = strata[np.unique(clusters, return_index=True)[1]]
    if np.any(of_cluster[clusters] != strata):
        task = int(np.argmax(of_cluster[clusters] != strata))
        raise ValueError(f"task {task}: its cluster has tasks in more than one stratum; clusters are drawn whole, within a stratum")
    return of_cluster
