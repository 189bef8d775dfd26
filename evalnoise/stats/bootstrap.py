"""The bootstrap engine: tasks are resampled, jointly for all columns, with their multiplicity kept.

Tasks with the same row of values are one pattern, and a resample is how often each pattern was drawn: one multinomial draw. So
the cost follows the number of distinct patterns, not N. Sums are made of integers (values in fixed point), which are exact in
any order of summation. Random streams are keyed by (seed, purpose, block of 64 resamples): the first m of n resamples are the
same numbers as m resamples, however the work is cut or shared out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats.estimate import alpha_of

Floats = NDArray[np.float64]

RESAMPLES = 20_000
"""Default number of resamples, the paper's."""
BLOCK = 64
"""Resamples per random stream. Part of the result: another number gives other resamples."""

_TASKS, _WEIGHTS = 0, 1
_MANTISSA = 53


def joint_task_bootstrap(values: ArrayLike, *, resamples: int = RESAMPLES, seed: int) -> Floats:
    """Means of every column over resampled tasks, shape (resamples, M), for values of shape (N, M).

    One resample is N tasks drawn with replacement, the same for all M columns. Integer values give exact sums. Source: Noise
    Floor, section 3.3 and appendix A.2.

    Args:
        values: One row per task, one column per condition and statistic; finite.
        resamples: Number of resamples.
        seed: Seed, 0 or more.
    """
    rows = finite_rows(values)
    _positive(resamples, "resamples")
    patterns, counts = _patterns(rows)
    numbers, exponents = _fixed_point(patterns, len(rows))
    means = np.empty((resamples, rows.shape[1]))
    shares = counts / len(rows)
    for start, generator in _streams(seed, _TASKS, resamples):
        drawn = generator.multinomial(len(rows), shares, size=BLOCK)[: resamples - start]
        means[start : start + BLOCK] = drawn.astype(np.float64) @ numbers
    # Integers up to here; one rounding in the division, none in the scaling by a power of two.
    return np.ldexp(means / len(rows), -exponents)


def dirichlet_task_means(values: ArrayLike, pseudo: float, *, resamples: int = RESAMPLES, seed: int) -> Floats:
    """Means under Dirichlet(1, …, 1) weights over the N tasks and one pseudo-task, shape (resamples,), for values (N,).

    The weights of equal values add up to a gamma variable, so the cost follows the number of distinct values. Source: Gaffke
    2005; Learned-Miller and Thomas, arXiv 1905.06208.
    """
    rows = finite_rows(np.asarray(values, dtype=np.float64)[:, None])
    _positive(resamples, "resamples")
    patterns, counts = _patterns(rows)
    points = np.append(patterns[:, 0], float(pseudo))
    shapes = np.append(counts, 1).astype(np.float64)
    # Sums of integers again: 2**6 leaves room for a total weight far above its mean N + 1.
    exponent = _MANTISSA - 6 - int(len(rows) + 1).bit_length()
    top = max(float(np.abs(points).max()), 1.0)
    means = np.empty(resamples)
    for start, generator in _streams(seed, _WEIGHTS, resamples):
        weights = generator.standard_gamma(shapes, size=(BLOCK, len(shapes)))[: resamples - start]
        total = np.rint(np.ldexp(weights, exponent)).sum(axis=1)
        weighted = np.rint(np.ldexp(weights * (points / top), exponent)).sum(axis=1)
        means[start : start + BLOCK] = weighted / total * top
    return means


def percentile_interval(draws: ArrayLike, *, level: float = 0.95) -> tuple[float, float]:
    """The a/2 and 1-a/2 quantiles of bootstrap draws of shape (resamples,), linear between order statistics."""
    sample = finite_rows(np.asarray(draws, dtype=np.float64)[:, None])[:, 0]
    alpha = alpha_of(level)
    lo, hi = np.quantile(sample, [alpha / 2, 1 - alpha / 2])
    return float(lo), float(hi)


def finite_rows(values: ArrayLike) -> Floats:
    """Values as float64 of shape (N, M) with N, M >= 1 and nothing but finite numbers; ValueError for anything else."""
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(f"values need a shape (N, M) with something in it, not {rows.shape}")
    if not np.isfinite(rows).all():
        task, column = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
        raise ValueError(
            f"row {task}, column {column}: {rows[task, column]} is not a number that can be averaged; leave the task out"
        )
    return rows


def _positive(number: int, name: str) -> None:
    if number < 1:
        raise ValueError(f"{name} must be at least 1, not {number}")


def _patterns(rows: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Distinct rows and how many tasks have them; the most frequent first, because a multinomial draw ends with its last task."""
    patterns, counts = np.unique(rows, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return patterns[order], counts[order]


def _fixed_point(patterns: Floats, n_tasks: int) -> tuple[Floats, NDArray[np.int64]]:
    """Columns as integers times a power of two, such that no sum of `n_tasks` of them leaves float64's exact integers."""
    largest = np.abs(patterns).max(axis=0)
    bits = np.frexp(largest)[1].astype(np.int64) + int(n_tasks).bit_length()
    exponents = np.where(largest > 0, _MANTISSA - bits, 0)
    return np.rint(np.ldexp(patterns, exponents)), exponents


def _streams(seed: int, purpose: int, resamples: int) -> Iterator[tuple[int, np.random.Generator]]:
    if seed < 0:
        raise ValueError(f"a seed is 0 or more, not {seed}")
    for block, start in enumerate(range(0, resamples, BLOCK)):
        yield start, np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose, block))))
