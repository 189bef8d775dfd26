"""Intervals of the differences of many pairs, from their variances alone."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtrit

from evalnoise.stats.estimate import Covers, alpha_of
from evalnoise.stats.models.noise import AllPairs
from evalnoise.stats.models.samples import Floats


def intervals(found: AllPairs, *, covers: Covers, level: float = 0.95) -> tuple[Floats, Floats]:
    """Lower and upper ends for the difference of each pair, shape (P,) each; NaN where z, or z over new runs, is.

    Population: the paired t, mean +- t_(N-1) sqrt(of_mean / (N-1)). Benchmark: normal, mean +- z sqrt(of_runs / N). Raises
    ValueError for another coverage and for what is no level.
    """
    tail = 1 - alpha_of(level) / 2
    n = np.maximum(found.n_tasks, 1)
    if covers == Covers.POPULATION:
        df = np.maximum(n - 1, 1)
        known, half = found.z, stdtrit(df, tail) * np.sqrt(found.of_mean / df)
    elif covers == Covers.BENCHMARK:
        known, half = found.z_runs, float(ndtri(tail)) * np.sqrt(found.of_runs / n)
    else:
        raise ValueError(f"an interval covers population or benchmark, not {covers!r}")
    half = np.where(np.isnan(known), np.nan, half)
    return found.mean - half, found.mean + half
