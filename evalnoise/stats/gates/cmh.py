"""Cochran, Mantel and Haenszel: do two arms pass equally often, task by task? The exact conditional test, with mid-p.

Given how often a task passed in both arms together, the passes of the first arm are hypergeometric if the arms are the same; the
test statistic T is their sum over tasks. Its distribution is a convolution, which is done with non-negative terms alone, so that
tails keep their digits. Tasks that always pass, or never, add a constant. With one run per arm and task it is McNemar's exact test.
"""

from __future__ import annotations

import heapq
import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from evalnoise.stats.variance import Floats, Ints, checked_counts

NO_COMMON_TASK = "no task was measured in both arms"
ALL_AGREE = "every run of both arms agrees in every task: the arms cannot be told apart"

_NEGLIGIBLE = 1e-40
"""Terms of the centred distribution below this share of the largest are dropped: they change p by less than its last digit."""
_STEEPEST = 60.0
"""Largest exponent that the distribution is tilted by."""
_HALVINGS = 50
_SMALLEST = math.log(sys.float_info.min)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cmh:
    """The test that two arms pass equally often in every task, and the Mantel-Haenszel difference of their pass rates."""

    passes: int
    """T: passes of arm a over the tasks that both arms have measured."""
    expected: float
    """Mean of T if the arms are the same, given each task's passes in both arms together."""
    variance: float
    """Variance of T under the same condition."""
    p_less: float | None
    """One-sided mid-p against "a passes less often": P(T < t) + P(T = t) / 2. None when no task can tell the arms apart."""
    p_greater: float | None
    """One-sided mid-p against "a passes more often"; 1 - `p_less`."""
    p_two_sided: float | None
    """Twice the smaller of the two, at most 1."""
    point: float | None
    """P(T = t). The one-sided p without mid-p is the mid-p plus half of it."""
    chi2: float | None
    """(T - expected)^2 / variance, without continuity correction: chi-square with one degree of freedom in large samples."""
    chi2_p: float | None
    """Its p, two-sided; for comparison only."""
    difference: float | None
    """Mantel-Haenszel difference of pass rates, a - b; at equal runs it is the difference of scores."""
    se: float | None
    """Its standard error by Sato's formula. Where tasks differ in their difference, it holds some of that too."""
    n_tasks: int
    """Tasks that both arms have measured."""
    n_informative: int
    """Of them, tasks whose runs do not all agree: only they say something about a difference."""
    mcnemar: bool
    """Whether each arm has one run per task: then this is McNemar's exact test."""
    undefined: str
    """Why p, or the difference, is None; empty otherwise."""


def cmh_test(passes_a: ArrayLike, runs_a: ArrayLike, passes_b: ArrayLike, runs_b: ArrayLike) -> Cmh:
    """Exact Cochran-Mantel-Haenszel test, stratified by task, for passes and measured runs of two arms, each of shape (N,).

    Runs may differ between arms and tasks; a task counts where both arms have at least one. Covers new runs of these tasks
    (`benchmark`). p values are right to about 1e-10 of themselves, down to the smallest float, and never 0.

    Source: Mantel and Haenszel 1959; Gart 1970 and Mehta, Patel and Gray 1985 for the exact conditional distribution; Lancaster
    1961 for mid-p; Sato 1989 for the standard error.
    """
    ka, na, kb, nb = common_counts(passes_a, runs_a, passes_b, runs_b)
    both, total = ka + kb, na + nb
    informative = (both > 0) & (both < total)
    difference, se = _difference(ka, na, kb, nb)
    weight = total.astype(np.float64)
    expected = float(np.sum(both * na / weight)) if total.size else 0.0
    spread = both * (total - both) * (na / weight) * (nb / weight)
    variance = float(np.sum(spread[informative] / (total[informative] - 1)))
    tails = None
    if informative.any():
        tails = _tails(na[informative], nb[informative], both[informative], int(ka[informative].sum()))
    less, greater, point = tails or (None, None, None)
    chi2 = (int(ka.sum()) - expected) ** 2 / variance if tails else None
    return Cmh(
        passes=int(ka.sum()),
        expected=expected,
        variance=variance,
        p_less=less,
        p_greater=greater,
        p_two_sided=min(1.0, 2 * min(less, greater)) if less is not None and greater is not None else None,
        point=point,
        chi2=chi2,
        chi2_p=None if chi2 is None else float(2 * ndtr(-math.sqrt(chi2))),
        difference=difference,
        se=se,
        n_tasks=int(total.size),
        n_informative=int(informative.sum()),
        mcnemar=bool(total.size and total.max() == 2),
        undefined="" if tails else (ALL_AGREE if total.size else NO_COMMON_TASK),
    )


def common_counts(passes_a: ArrayLike, runs_a: ArrayLike, passes_b: ArrayLike, runs_b: ArrayLike) -> tuple[Ints, Ints, Ints, Ints]:
    """Passes and runs of both arms in the tasks that both have measured; ValueError unless row i is one task in all four."""
    ka, na = checked_counts(passes_a, runs_a)
    kb, nb = checked_counts(passes_b, runs_b)
    if ka.shape != kb.shape:
        raise ValueError(f"the two arms need one row per task, in one order: {ka.shape} and {kb.shape}")
    both = (na >= 1) & (nb >= 1)
    return ka[both], na[both], kb[both], nb[both]


def _difference(ka: Ints, na: Ints, kb: Ints, nb: Ints) -> tuple[float | None, float | None]:
    """Mantel-Haenszel difference and Sato's standard error: sum of W d / sum of W with W = n_a n_b / M."""
    if not ka.size:
        return None, None
    a, b, m, n = (array.astype(np.float64) for array in (ka, kb, na, nb))
    total = m + n
    weight = float(np.sum(m * n / total))
    difference = float(np.sum((a * n - b * m) / total)) / weight
    slope = (m * m * b - n * n * a + m * n * (n - m) / 2) / (total * total)
    level = (a * (n - b) + b * (m - a)) / (2 * total)
    squared = float(difference * np.sum(slope) + np.sum(level)) / weight**2
    return difference, math.sqrt(max(0.0, squared))


# --- the distribution ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Strata:
    """Tasks by their margins, a row each: centred passes of arm a in one task, and the logarithms of their probabilities."""

    tasks: Ints
    """Tasks of each row, shape (G,)."""
    firsts: Ints
    """Least number of passes of arm a, shape (G,)."""
    sizes: Ints
    """Possible numbers of passes, shape (G,): so many entries of a row count."""
    deviations: Floats
    """x minus its mean, shape (G, W)."""
    logs: Floats
    """log P(x), shape (G, W); minus infinity past a row's size."""

    def tilted(self, tilt: float) -> tuple[Floats, Floats]:
        """Probabilities proportional to P(x) exp(tilt (x - mean)), and the logarithm of what they were divided by."""
        logs = self.logs + tilt * self.deviations
        top = logs.max(axis=1)
        terms = np.exp(logs - top[:, None])
        sums = terms.sum(axis=1)
        return terms / sums[:, None], top + np.log(sums)

    def mean(self, tilt: float) -> float:
        """Mean of the centred sum over all tasks when it is tilted."""
        return math.fsum((self.tilted(tilt)[0] * self.deviations).sum(axis=1) * self.tasks)


def _strata(na: Ints, nb: Ints, both: Ints) -> _Strata:
    margins, tasks = np.unique(np.column_stack([na, nb, both]), axis=0, return_counts=True)
    m, n, k = (margins[:, [i]] for i in range(3))
    firsts = np.maximum(0, k - n)
    sizes = np.minimum(k, m) - firsts + 1
    x = (firsts + np.arange(int(sizes.max()))).astype(np.float64)
    inside = np.arange(x.shape[1]) < sizes
    # P(x+1) / P(x) of the hypergeometric distribution.
    above, below = (k - x) * (m - x), (x + 1) * (n - k + x + 1)
    steps = np.log(np.where(inside[:, 1:], above[:, :-1], 1.0) / np.where(inside[:, 1:], below[:, :-1], 1.0))
    logs = np.where(inside, np.hstack([np.zeros((len(x), 1)), np.cumsum(steps, axis=1)]), -np.inf)
    top = logs.max(axis=1, keepdims=True)
    logs -= top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True))
    deviations = np.where(inside, x - k * m / (m + n), 0.0)
    return _Strata(tasks.astype(np.int64), firsts[:, 0], sizes[:, 0], deviations, logs)


def _tails(na: Ints, nb: Ints, both: Ints, t: int) -> tuple[float, float, float]:
    """Mid-p below, mid-p above and P(T = t).

    The distribution is tilted by exp(h x) so that its mean is t, convolved, and tilted back: what is summed is then never
    negligible beside what was convolved, however far out t lies.
    """
    strata = _strata(na, nb, both)
    away = t - math.fsum(both * (na / (na + nb)))
    low, high = -_STEEPEST, _STEEPEST
    for _ in range(_HALVINGS):
        tilt = (low + high) / 2
        low, high = (tilt, high) if strata.mean(tilt) < away else (low, tilt)
    terms, sums = strata.tilted(tilt)
    scale = math.fsum(sums * strata.tasks) - tilt * away
    first, total = _convolved(strata, terms)
    at = t - first
    # The tail on the side of the tilt is the smaller one; there exp(-tilt (x - t)) falls.
    side = total[at + 1 :] if tilt >= 0 else total[:at][::-1]
    beyond = math.fsum(side * np.exp(-abs(tilt) * np.arange(1, len(side) + 1)))
    here = float(total[at])
    mid, point = _exp(scale + math.log(beyond + here / 2)), _exp(scale + math.log(here))
    return (1.0 - mid, mid, point) if tilt >= 0 else (mid, 1.0 - mid, point)


def _exp(log: float) -> float:
    """A probability that is never 0: the smallest float stands for all that are smaller."""
    return min(1.0, math.exp(max(log, _SMALLEST)))


def _convolved(strata: _Strata, terms: Floats) -> tuple[int, Floats]:
    """Least value and probabilities of the sum over all tasks, for one task's probabilities (G, W); without negligible ends."""
    heap: list[tuple[int, int, int, Floats]] = []
    for row in range(len(terms)):
        first, power = _power(int(strata.firsts[row]), terms[row, : strata.sizes[row]], int(strata.tasks[row]))
        heap.append((len(power), row, first, power))
    heapq.heapify(heap)
    # The shortest first: long ones are then convolved seldom.
    while len(heap) > 1:
        _, row, first, one = heapq.heappop(heap)
        _, _, other_first, other = heapq.heappop(heap)
        first, one = _trimmed(first + other_first, np.convolve(one, other))
        heapq.heappush(heap, (len(one), row, first, one))
    return heap[0][2], heap[0][3]


def _power(first: int, terms: Floats, times: int) -> tuple[int, Floats]:
    """The sum of `times` independent variables, by repeated squaring."""
    result_first, result = 0, np.ones(1)
    while True:
        if times & 1:
            result_first, result = _trimmed(result_first + first, np.convolve(result, terms))
        times >>= 1
        if not times:
            return result_first, result
        first, terms = _trimmed(2 * first, np.convolve(terms, terms))


def _trimmed(first: int, terms: Floats) -> tuple[int, Floats]:
    kept = np.flatnonzero(terms > float(terms.max()) * _NEGLIGIBLE)
    low, high = int(kept[0]), int(kept[-1])
    return first + low, terms[low : high + 1]
