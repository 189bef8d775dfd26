"""The beta theory of paired noise: SE(A - B) is about sqrt(p (1-p) / N), p the accuracy, whatever the two models are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats.models.noise import AllPairs

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaFit:
    """How pairs lie to the line of the beta theory."""

    pairs: int
    """Pairs that enter: with a total SE, and an accuracy strictly between 0 and 1."""
    left_out: int
    """The others."""
    median_ratio: float | None
    """Median over pairs of SE over the line."""
    lo: float | None
    """Their 5 % quantile."""
    hi: float | None
    """Their 95 % quantile."""
    undefined: str
    """Why the numbers are None; empty otherwise."""
    note: str
    """When not to trust it."""


NO_PAIR = "no pair has a total SE and an accuracy between 0 and 1"
ROUGH = "a rule of thumb, not a bound: models that err on the same tasks lie below the line, unlike models above it"


def beta_se(p: ArrayLike, n_tasks: ArrayLike) -> Floats:
    """sqrt(p (1-p) / N) for accuracies and numbers of tasks of one shape; ValueError for what is neither."""
    accuracy, n = np.asarray(p, dtype=np.float64), np.asarray(n_tasks, dtype=np.float64)
    if np.any((accuracy < 0) | (accuracy > 1)) or np.any(n < 1):
        raise ValueError("an accuracy lies between 0 and 1, and there is at least one task")
    return np.asarray(np.sqrt(accuracy * (1 - accuracy) / n))


def beta_ratios(found: AllPairs) -> Floats:
    """Total SE over the line at the pair's mean accuracy, shape (P,); NaN where either is undefined or the line is 0.

    NaN also where the two may be the same samples. Source: Wang 2025, figure 1.
    """
    accuracy = (found.score_a + found.score_b) / 2
    usable = ~np.isnan(found.total) & (accuracy > 0) & (accuracy < 1) & ~found.same
    result = np.full(len(found), np.nan)
    n = found.n_tasks[usable]
    result[usable] = np.sqrt(np.maximum(found.total[usable], 0.0) / n) / beta_se(accuracy[usable], n)
    return result


def beta_fit(found: AllPairs) -> BetaFit:
    """Median and spread of `beta_ratios`."""
    ratios = beta_ratios(found)
    known = ratios[~np.isnan(ratios)]
    if not known.size:
        return BetaFit(pairs=0, left_out=len(found), median_ratio=None, lo=None, hi=None, undefined=NO_PAIR, note="")
    lo, middle, hi = (float(q) for q in np.quantile(known, [0.05, 0.5, 0.95]))
    return BetaFit(
        pairs=int(known.size), left_out=len(found) - int(known.size), median_ratio=middle, lo=lo, hi=hi, undefined="", note=ROUGH
    )
