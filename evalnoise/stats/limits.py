"""What N tasks with R runs can say about w at most: the variance of its estimate, and its limits when nothing varied.

`mean_variance_bound` is the like for a mean of values in [0, 1], a score or pass^k.

Tasks with the same number of runs form a group; a benchmark is `sizes` R_g (G,) and `counts` n_g (G,). Among all pass rates
with a given w, the least favourable are equal rates when all tasks have the same R, and otherwise those that make the groups'
slopes equal; both functions find them, so they are conservative for every set of rates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_VARIANCE = 0.25
"""The largest p (1-p)."""
_STEPS = 100


def groups(runs: Ints) -> tuple[Ints, Ints]:
    """Distinct numbers of runs (G,) and how many tasks have each (G,)."""
    sizes, counts = np.unique(runs, return_counts=True)
    return sizes.astype(np.int64), counts.astype(np.int64)


def curvature(runs: Ints) -> Floats:
    """(4R-6) / (R (R-1)), the factor of w^2 in the variance of one task's sample variance."""
    return np.asarray((4 * runs - 6) / (runs * (runs - 1)), dtype=np.float64)


def largest_s2(runs: int) -> float:
    """The largest sample variance of R binary outcomes: floor(R/2) ceil(R/2) / (R (R-1))."""
    return (runs // 2) * (runs - runs // 2) / (runs * (runs - 1))


def variance_bound(w: float, sizes: Ints, counts: Ints) -> float:
    """Largest variance of the estimate of w over all rates with mean p (1-p) = w.

    A task's sample variance has variance v/R - v^2 (4R-6)/(R (R-1)), v = p (1-p): concave, so at equal R equal v is the
    maximum, (w/R - w^2 (4R-6)/(R (R-1))) / N. At unequal R the maximum has v_g = (1/R_g - slope) R_g (R_g-1) / (2 (4R_g-6)).
    """
    total = int(counts.sum())
    bend, inverse = curvature(sizes), 1.0 / sizes
    if len(sizes) == 1:
        v = np.array([w])
    else:
        # Each v_g falls in a straight line from 1/4 to 0 as the slope rises, so the total is linear between these corners.
        corners = np.sort(np.concatenate([inverse - bend / 2, inverse]))
        totals = np.clip((inverse - corners[:, None]) / (2 * bend), 0.0, MAX_VARIANCE) @ counts
        slope = float(np.interp(-total * w, -totals, corners))
        v = np.clip((inverse - slope) / (2 * bend), 0.0, MAX_VARIANCE)
    return max(0.0, float(counts @ (v * inverse - v * v * bend)) / total**2)


def mean_variance_bound(mean: float, factors: Floats, counts: Ints) -> float:
    """Largest variance of a mean of estimates whose own variances are at most f_g t (1-t), over all t in [0, 1] with that mean.

    t (1-t) is concave, so the t of a group are equal, t_g = 1/2 - slope / (2 f_g), held to [0, 1], and the bound is concave in
    the mean. At one factor it is f mean (1-mean) / N. Factors (G,) differ from each other.
    """
    # Each t_g falls in a straight line from 1 to 0 as the slope rises, so the total is linear between these corners.
    corners = np.sort(np.concatenate([-factors, factors]))
    totals = np.clip(0.5 - corners[:, None] / (2 * factors), 0.0, 1.0) @ counts
    total = int(counts.sum())
    slope = float(np.interp(-total * mean, -totals, corners))
    t = np.clip(0.5 - slope / (2 * factors), 0.0, 1.0)
    return float(counts @ (factors * t * (1 - t))) / total**2


def bisect(falling: Callable[[float], float], low: float, high: float) -> float:
    """Root of a function that falls from at least 0 at `low` to at most 0 at `high`."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if falling(middle) >= 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def none_varied_benchmark(sizes: Ints, counts: Ints, alpha: float) -> float | None:
    """Upper limit of these tasks' w at one-sided level 1-alpha when every run of every task agreed; None if there is none.

    The largest mean v = p (1-p) with prod (p^R + (1-p)^R) >= alpha. log(p^R + q^R) is concave in v, so equal v is least
    favourable at equal R. There is no solution unless 2^-(sum of R-1) < alpha: too few runs.
    """
    if float(counts @ (sizes - 1)) * np.log(2) <= -np.log(alpha):
        return None
    target = float(np.log(alpha))
    total = int(counts.sum())
    if len(sizes) == 1:
        return bisect(lambda x: float(counts @ _log_agreement(np.array([x]), sizes)) - target, 0.0, MAX_VARIANCE)

    def spread(slope: float) -> Floats:
        return _variances_at_slope(slope, sizes)

    steepest = float((2 * sizes * (sizes - 1)).max())
    slope = bisect(lambda s: float(counts @ _log_agreement(spread(s), sizes)) - target, 0.0, steepest)
    return float(counts @ spread(slope)) / total


def none_varied_population(n_tasks: int, runs: int, alpha: float) -> float:
    """Upper limit of w for new tasks at one-sided level 1-alpha when every run of every task agreed.

    (1 - alpha^(1/N)) / (4 (1 - 2^(1-R))), at most 1/4. With unequal runs `runs` is the smallest.
    """
    return min(MAX_VARIANCE, float(-np.expm1(np.log(alpha) / n_tasks)) / (4 * (1 - 2.0 ** (1 - runs))))


def _rates(v: Floats) -> Floats:
    """The smaller p with p (1-p) = v, without cancellation."""
    return np.asarray(2 * v / (1 + np.sqrt(np.maximum(0.0, 1 - 4 * v))))


def _log_agreement(v: Floats, runs: Ints) -> Floats:
    """Log of p^R + (1-p)^R, the chance that R runs agree."""
    p = _rates(v)
    ratio = p / (1 - p)
    return np.asarray(runs * np.log1p(-p) + np.log1p(ratio**runs))


def _slopes(p: Floats, runs: Ints) -> Floats:
    """Minus the derivative of log(p^R + q^R) with respect to v = p q, 0 < p <= 1/2: from R at v = 0 to 2 R (R-1) at v = 1/4."""
    q = 1 - p
    gap = np.maximum(q - p, 1e-9)
    ratio = np.log1p(-gap / q)
    slopes = -runs * np.expm1((runs - 1) * ratio) / (q * gap * (1 + np.exp(runs * ratio)))
    return np.asarray(np.where(q - p < 1e-9, 2.0 * runs * (runs - 1), slopes))


def _variances_at_slope(slope: float, runs: Ints) -> Floats:
    """The v at which a task of each group has that slope, held to [0, 1/4], shape (G,)."""
    low, high = np.zeros(len(runs)), np.full(len(runs), 0.5)
    for _ in range(_STEPS // 2):
        middle = (low + high) / 2
        flat = _slopes(middle, runs) <= slope
        low, high = np.where(flat, middle, low), np.where(flat, high, middle)
    p = (low + high) / 2
    return np.asarray(np.where(slope <= runs, 0.0, np.where(slope >= 2 * runs * (runs - 1), MAX_VARIANCE, p * (1 - p))))
