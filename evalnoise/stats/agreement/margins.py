"""Intervals of ICC and alpha for pass/fail repeats that hold where next to nothing varies: Gaffke's of w, put through.

At a given share of passes, ICC and alpha fall in a straight or a monotone line as the variance within tasks rises. So the ends of
Gaffke's interval for that variance give the ends for them, with the share of passes taken as observed. By simulation (20 to 164
tasks, 3 or 10 repeats, 2 to 15 % of tasks unsteady, or rates from Beta(0.3, 0.2)) each end misses at most 0.03 of the time, where
the bootstrap's lower end misses up to 0.8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats.agreement.icc import NEGATIVE, one_way_of_counts
from evalnoise.stats.agreement.many import NO_PAIR, ONE_VALUE, krippendorff_alpha
from evalnoise.stats.agreement.resampled import held, undefined
from evalnoise.stats.bootstrap import RESAMPLES
from evalnoise.stats.estimate import Covers, Estimate, Method, joined
from evalnoise.stats.intervals import GAFFKE_NOTE, gaffke_ends, twice_measured
from evalnoise.stats.limits import largest_s2
from evalnoise.stats.variance import Floats, Ints, checked_counts, task_variances

_NOTE = f"takes the share of passes as observed; {GAFFKE_NOTE}"


def icc_at_share(passes: ArrayLike, runs: ArrayLike, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95) -> Estimate:
    """ICC(1,1) of pass/fail repeats by their counts, shape (N,); the interval from Gaffke's of the mean square within tasks."""
    k, n = checked_counts(passes, runs)
    k, n = k[n >= 1], n[n >= 1]
    found, shape = one_way_of_counts(k, n), {"n_tasks": len(n), "n_replicates": int(n.min()) if len(n) else 0}
    if found.icc is None or found.k0 is None:
        return undefined(found.undefined, **shape)
    twice = n >= 2
    weights = (n[twice] - 1) / np.mean(n[twice] - 1)
    ends = _gaffke(k[twice], n[twice], weights, seed=seed, resamples=resamples, level=level)
    total, items, k0 = int(n.sum()), len(n), found.k0
    squares = float(k.sum() * (total - k.sum())) / total

    def at(within: float) -> float:
        between = max(0.0, squares - within * (total - items)) / (items - 1)
        return (between - within) / (between + (k0 - 1) * within)

    hi, lo = at(ends[0]), at(ends[1])
    note = joined(_NOTE, NEGATIVE if found.icc < 0 else "")
    return _made(found.icc, lo, hi, shape, level=level, seed=seed, resamples=resamples, note=note)


def alpha_at_share(verdicts: ArrayLike, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95) -> Estimate:
    """Krippendorff's nominal alpha of verdicts (N, J), 1 pass, 0 fail, -1 none, with the interval from Gaffke's in the same way."""
    table = np.asarray(verdicts)
    k, n = twice_measured((table == 1).sum(axis=1), (table != -1).sum(axis=1))
    if not n.size:
        return undefined(NO_PAIR)
    shape, total, passed = {"n_tasks": len(n), "n_replicates": int(n.min())}, int(n.sum()), int(k.sum())
    if passed in (0, total):
        return undefined(ONE_VALUE, **shape)
    value = krippendorff_alpha(table, table != -1, seed=seed, resamples=1, level=level).value
    weights = n / np.mean(n)
    ends = _gaffke(k, n, weights, seed=seed, resamples=resamples, level=level)
    # Observed disagreement 2 x weighted variance against 2 p (1-p) n / (n-1).
    expected = passed * (total - passed) / total / (total - 1)
    hi, lo = (1 - end / expected for end in ends)
    return _made(value, lo, hi, shape, level=level, seed=seed, resamples=resamples, note=_NOTE)


def _gaffke(passes: Ints, runs: Ints, weights: Floats, *, seed: int, resamples: int, level: float) -> tuple[float, float]:
    """Gaffke's interval of the weighted mean of s2 over tasks."""
    column = task_variances(passes, runs) * weights
    top = float(max(largest_s2(int(size)) * float(weights[runs == size][0]) for size in np.unique(runs)))
    return gaffke_ends(column, (0.0, top), seed=seed, resamples=resamples, level=level)


def _made(
    value: float | None, lo: float, hi: float, shape: dict[str, Any], *, level: float, seed: int, resamples: int, note: str
) -> Estimate:
    base = Estimate(value=value, method=Method.GAFFKE_AT_SHARE, seed=seed, resamples=resamples, **shape)
    return held(base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=note))
