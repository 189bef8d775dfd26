"""ICC(1,1): which share of the variance of a rating is the item's own, by one-way random-effects ANOVA.

ICC = (MSB - MSW) / (MSB + (k0 - 1) MSW), with k0 the mean number of ratings, or its counterpart for unequal numbers. Variances of
means taken as they are instead of MSB, the form without the small-R correction, hold a share MSW/R of noise and come out too high.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtri

from evalnoise.stats.agreement.resampled import held, undefined, with_percentiles
from evalnoise.stats.bootstrap import RESAMPLES
from evalnoise.stats.estimate import Covers, Estimate, Method, alpha_of, joined
from evalnoise.stats.intervals import FEW_VARIABLE
from evalnoise.stats.variance import Floats, Ints, checked_counts

NO_ITEMS = "fewer than two items were rated: nothing differs between items"
NO_REPEATS = "no item was rated twice: there is no variance within items"
ALL_EQUAL = "every rating is the same: there is no variance to share out"
NEVER_VARIED = "no item was ever rated in two ways"
_MOST_SQUARED = 2**20
"""Larger integers are squared and summed as Python's own, which do not overflow."""
NEGATIVE = "negative: items differ less than chance makes them; read it as no agreement beyond chance"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWay:
    """One-way ANOVA of ratings by item."""

    between: float | None
    """Mean square between items, MSB."""
    within: float | None
    """Mean square within items, MSW: the grader's variance."""
    k0: float | None
    """(n - sum n_i^2 / n) / (N - 1): the number of ratings per item, if all have the same."""
    icc: float | None
    """ICC(1,1), untruncated."""
    undefined: str
    """Why it is None; empty otherwise."""


@dataclass(frozen=True, slots=True)
class _Sums:
    """Per rated item: ratings n, their sum s and their sum of squares q, shape (N,)."""

    n: Ints
    s: NDArray[Any]
    q: NDArray[Any]

    @property
    def shape(self) -> dict[str, Any]:
        return {"n_tasks": len(self.n), "n_replicates": int(self.n.min()) if len(self.n) else 0}


def one_way(ratings: ArrayLike, present: ArrayLike | None = None) -> OneWay:
    """Mean squares and ICC(1,1) of ratings of shape (N, R); `present` (N, R) says which there are, all when None.

    Integers are exact up to the last rounding. Source: Shrout and Fleiss 1979; Searle 1971 for unequal numbers (k0).
    """
    return _anova(_sums(ratings, present))


def one_way_of_counts(passes: ArrayLike, runs: ArrayLike) -> OneWay:
    """The same of binary ratings by their counts: passes and ratings per item, shape (N,)."""
    return _anova(_binary(passes, runs))


def icc(
    ratings: ArrayLike, present: ArrayLike | None = None, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95
) -> Estimate:
    """ICC(1,1) of ratings (N, R) with the percentile interval of the bootstrap over items; `present` as in `one_way`."""
    return _estimate(_sums(ratings, present), seed=seed, resamples=resamples, level=level)


def icc_of_counts(passes: ArrayLike, runs: ArrayLike, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95) -> Estimate:
    """ICC(1,1) of binary ratings by their counts, shape (N,). 1 - ICC is the grader's share of the variance of a rating.

    The percentile interval misses upwards of half the time when next to no item varies; `margins.icc_at_share` does not.
    """
    made = _estimate(_binary(passes, runs), seed=seed, resamples=resamples, level=level)
    return made if made.lo is None else dataclasses.replace(made, note=joined(made.note, varied_note(passes, runs)))


def icc_f(ratings: ArrayLike, *, level: float = 0.95) -> Estimate:
    """ICC(1,1) of complete ratings (N, R) with the F interval: for ratings that are nearly normal, not for pass and fail.

    Ends (F/f - 1) / (F/f + R - 1) with F = MSB/MSW and f its quantiles. Source: Shrout and Fleiss 1979, page 424.
    """
    sums = _sums(ratings, None)
    found = _anova(sums)
    if found.icc is None or found.between is None or found.within is None:
        return undefined(found.undefined, **sums.shape)
    base = Estimate(value=found.icc, method=Method.F, note=NEGATIVE if found.icc < 0 else "", **sums.shape)
    if found.within == 0:
        return base.lacking(NEVER_VARIED + ": F is infinite")
    n, r = np.asarray(ratings).shape
    alpha, f = alpha_of(level), found.between / found.within
    low, high = f / float(fdtri(n - 1, n * (r - 1), 1 - alpha / 2)), f * float(fdtri(n * (r - 1), n - 1, 1 - alpha / 2))
    lo, hi = (low - 1) / (low + r - 1), (high - 1) / (high + r - 1)
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note="assumes normal ratings")


def varied_note(passes: ArrayLike, runs: ArrayLike) -> str:
    """What the reader of a percentile interval must know about the number of items whose ratings vary."""
    k, n = checked_counts(passes, runs)
    varied = int(np.count_nonzero(k * (n - k)))
    if varied == 0 or varied >= FEW_VARIABLE:
        return ""
    return f"only {varied} items were rated in two ways: under {FEW_VARIABLE} the interval covers far less often than it says"


def _binary(passes: ArrayLike, runs: ArrayLike) -> _Sums:
    k, n = checked_counts(passes, runs)
    k, n = k[n >= 1], n[n >= 1]
    return _Sums(n, k, k)


def _sums(ratings: ArrayLike, present: ArrayLike | None) -> _Sums:
    values = np.asarray(ratings)
    if values.ndim != 2 or values.dtype.kind not in "iufb":
        raise ValueError(f"ratings are numbers of shape (N, R), not {values.dtype} of shape {values.shape}")
    mask = np.ones(values.shape, dtype=bool) if present is None else np.asarray(present, dtype=bool)
    if mask.shape != values.shape:
        raise ValueError(f"present needs the ratings' shape {values.shape}, not {mask.shape}")
    values = values.astype(np.int64 if values.dtype.kind in "iub" else np.float64)
    if not np.isfinite(values[mask]).all():
        raise ValueError("a rating is a finite number; leave out what is missing with `present`")
    mask, values = mask[mask.any(axis=1)], values[mask.any(axis=1)]
    if mask.any():
        # Shifted to about their mean, squares of large ratings lose no digits; integers stay integers.
        centre = values[mask].mean()
        values = values - (centre if values.dtype.kind == "f" else int(centre))
    values = np.where(mask, values, 0)
    if values.dtype.kind == "i" and values.size and int(np.abs(values).max()) > _MOST_SQUARED:
        values = values.astype(object)
    return _Sums(mask.sum(axis=1).astype(np.int64), values.sum(axis=1), (values * values).sum(axis=1))


def _anova(sums: _Sums) -> OneWay:
    """In fractions where the ratings are integers, so that equal mean squares are seen to be equal."""
    n_items, total = len(sums.n), int(sums.n.sum())
    reason = NO_ITEMS if n_items < 2 else NO_REPEATS if total == n_items else ""
    if reason:
        return OneWay(between=None, within=None, k0=None, icc=None, undefined=reason)
    exact = sums.s.dtype.kind != "f"
    if exact:
        sizes = [int(size) for size in np.unique(sums.n)]
        squares: Any = sum(
            (Fraction(sum(int(s) ** 2 for s in sums.s[sums.n == size]), size) for size in sizes), Fraction()
        )  # fmt: skip
        grand: Any = Fraction(int(sums.s.sum()) ** 2, total)
        raw: Any = int(sums.q.sum())
    else:
        squares, grand, raw = float(np.sum(sums.s**2 / sums.n)), float(sums.s.sum()) ** 2 / total, float(sums.q.sum())
    k0 = (total - Fraction(int((sums.n * sums.n).sum()), total)) / (n_items - 1)
    msb, msw = (squares - grand) / (n_items - 1), max(raw - squares, 0) / (total - n_items)
    bottom = msb + (k0 - 1) * msw if exact else msb + float(k0 - 1) * msw
    return OneWay(
        between=float(msb),
        within=float(msw),
        k0=float(k0),
        icc=float((msb - msw) / bottom) if bottom > 0 else None,
        undefined="" if bottom > 0 else ALL_EQUAL,
    )


def _estimate(sums: _Sums, *, seed: int, resamples: int, level: float) -> Estimate:
    found = _anova(sums)
    if found.icc is None:
        return undefined(found.undefined, **sums.shape)
    base = Estimate(value=found.icc, note=NEGATIVE if found.icc < 0 else "", **sums.shape)
    n, s, q = (np.asarray(column, dtype=np.float64) for column in (sums.n, sums.s, sums.q))
    columns = np.column_stack([n, n * n, s, s * s / n, q])
    items = len(n)

    def of(means: Floats) -> Floats:
        count, squared, total, squares, raw = (items * means).T
        msb = (squares - total * total / count) / (items - 1)
        msw = np.maximum(raw - squares, 0.0) / (count - items)
        k0 = (count - squared / count) / (items - 1)
        bottom = msb + (k0 - 1) * msw
        # A resample of one item over and over leaves rounding in the place of no variance.
        return np.where(bottom > 1e-12 * np.maximum(raw / count, 1e-300), (msb - msw) / bottom, np.nan)

    made = held(with_percentiles(base, columns, of, seed=seed, resamples=resamples, level=level, degenerate=NEVER_VARIED))
    return dataclasses.replace(made, note=joined(made.note, _few(sums)))


def _few(sums: _Sums) -> str:
    single = int(np.sum(sums.n == 1))
    return f"{single} items were rated once: they say nothing of the variance within items" if single else ""
