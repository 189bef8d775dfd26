"""A judge against itself: how often its verdict on one frozen candidate changes from repeat to repeat.

A judge is two integer arrays of shape (N,), as in `evalnoise.stats.variance`: pass verdicts and parsed verdicts of each task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats import intervals
from evalnoise.stats.agreement.resampled import straight
from evalnoise.stats.bootstrap import RESAMPLES
from evalnoise.stats.estimate import Estimate
from evalnoise.stats.variance import Ints, exact_mean_variance, variable_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """How steady one judge is on frozen candidates. Tasks with less than two parsed verdicts are in none of it."""

    flip_rate: Estimate
    """V/N, the share of tasks whose verdict is not the same in all repeats, with its Clopper-Pearson interval."""
    test_retest: tuple[Estimate, ...]
    """Chance that two repeats on a task agree, 1 - 2w; one estimate for each interval of w (benchmark, population, Gaffke)."""
    pabak: tuple[Estimate, ...]
    """Prevalence- and bias-adjusted kappa over repeat pairs, 2 x test-retest - 1 = 1 - 4w; intervals alike."""
    prevalence: Estimate
    """Prevalence index over repeat pairs: share of pass-pass pairs less share of fail-fail pairs, signed, in [-1, 1]."""

    def named(self) -> Iterator[tuple[str, Estimate]]:
        """Each estimate with its name."""
        yield "flip_rate", self.flip_rate
        yield from (("test_retest", estimate) for estimate in self.test_retest)
        yield from (("pabak", estimate) for estimate in self.pabak)
        yield "prevalence", self.prevalence


def repeats(passes: ArrayLike, runs: ArrayLike, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95) -> Repeats:
    """Flip rate, test-retest agreement, pairwise PABAK and prevalence index of a judge's repeats.

    Pairs are unordered and within a task; each task has weight one, whatever its number of repeats, so that the identities with w
    hold for unequal numbers too. There is no bias index: repeats of one judge have no first and second. Source: Byrt, Bishop and
    Carlin 1993 (PABAK, prevalence); notes on grader variance (repeat pairs).

    Args:
        passes: Pass verdicts, shape (N,).
        runs: Parsed verdicts, shape (N,).
        seed: Seed of the task bootstrap.
        resamples: Its resamples.
        level: Confidence level.
    """
    k, n = intervals.twice_measured(passes, runs)
    of_w = (
        intervals.w_benchmark(k, n, level=level),
        intervals.w_population(k, n, seed=seed, resamples=resamples, level=level),
        intervals.w_gaffke(k, n, seed=seed, resamples=resamples, level=level),
    )
    w = exact_mean_variance(k, n) if n.size else None
    return Repeats(
        flip_rate=variable_share(k, n, level=level),
        test_retest=tuple(_falling(found, w, 2) for found in of_w),
        pabak=tuple(_falling(found, w, 4) for found in of_w),
        prevalence=_prevalence(k, n, seed=seed, resamples=resamples, level=level),
    )


def _falling(found: Estimate, w: Fraction | None, factor: int) -> Estimate:
    """1 - factor w. An upper limit of w is a lower limit of it."""
    made = straight(found, None if w is None else float(1 - factor * w), slope=-float(factor), offset=1.0)
    return dataclasses.replace(made, note=made.note.replace("an upper limit", "a lower limit"))


def _prevalence(passes: Ints, runs: Ints, *, seed: int, resamples: int, level: float) -> Estimate:
    """Pairs that both pass less pairs that both fail: k(k-1) - (n-k)(n-k-1) = (2k-n)(n-1), so 2k/n - 1 of the pairs of a task."""
    score = intervals.score_population(passes, runs, seed=seed, resamples=resamples, level=level)
    sizes = [int(size) for size in np.unique(runs)]
    total = sum((Fraction(int((2 * passes - runs)[runs == size].sum()), size) for size in sizes), Fraction())
    return straight(score, float(total / runs.size) if runs.size else None, slope=2.0, offset=-1.0)
