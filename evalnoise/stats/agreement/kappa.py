"""Two graders, or a grader and the truth, item by item: agreement, Cohen's kappa, weighted kappa, PABAK, prevalence and bias index.

Everything is made from one table of counts, shape (K, K): row i, column j is how many items the first grader put into category i
and the second into j. For pass and fail the categories are (pass, fail), in that order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats.agreement.resampled import (
    FEW_ITEMS,
    MOST_CATEGORIES,
    held,
    straight,
    too_many,
    undefined,
    with_percentiles,
)
from evalnoise.stats.bootstrap import RESAMPLES
from evalnoise.stats.estimate import Covers, Estimate, Method, joined
from evalnoise.stats.variance import Floats, Ints, clopper_pearson, refuse_endless

NO_ITEM = "no item was rated by both"
ONE_CATEGORY = "both used one and the same category alone: chance agreement is certain, and kappa is 0/0"
NEVER_DIFFER = "the two agree on every item, and resampling cannot make a disagreement"
NOT_BINARY = "more than two categories: it is defined for two"
ONE_KIND = "every item is in one cell of the table"
_NOTHING = 1e-12
_FEW_DISAGREEMENTS, _FEW_FOR_BOOTSTRAP = 15, 100

Exact = NDArray[np.object_]
"""Python's integers."""


class Weights(StrEnum):
    """What a disagreement costs in a weighted kappa."""

    NONE = "none"
    """All the same."""
    LINEAR = "linear"
    """The distance of the two categories."""
    QUADRATIC = "quadratic"
    """Its square."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoGraders:
    """All that one table says. Kappa alone misleads where one category is rare: read prevalence, bias and PABAK beside it."""

    n: int
    """Items that both rated."""
    agreement: Estimate
    """Share of items on which they agree, with its Clopper-Pearson interval."""
    kappa: Estimate
    """Cohen's kappa with the interval of `kappa_at_margins`."""
    kappa_percentile: Estimate
    """Cohen's kappa with the bootstrap's interval: narrower, for many items with many disagreements."""
    pabak: Estimate
    """(K x agreement - 1) / (K - 1), which for two categories is 2 x agreement - 1."""
    prevalence: Estimate
    """(both pass - both fail) / n, signed; the literature prints its absolute value."""
    bias: Estimate
    """Share that the first passes less share that the second passes, signed; the literature prints its absolute value."""

    def named(self) -> Iterator[tuple[str, Estimate]]:
        """Each estimate with its name."""
        yield "agreement", self.agreement
        yield from (("kappa", estimate) for estimate in (self.kappa, self.kappa_percentile))
        yield from ((name, getattr(self, name)) for name in ("pabak", "prevalence", "bias"))


def agreement_table(first: ArrayLike, second: ArrayLike, n_categories: int) -> Ints:
    """The table (K, K) of two arrays of category codes (N,); items with a code below 0, which is none, are left out."""
    a, b = np.asarray(first), np.asarray(second)
    if a.ndim != 1 or a.shape != b.shape or (a.size and (a.dtype.kind not in "iu" or b.dtype.kind not in "iu")):
        raise ValueError(f"codes are integers of one shape (N,), not {a.dtype} {a.shape} and {b.dtype} {b.shape}")
    if a.size and max(int(a.max()), int(b.max())) >= n_categories:
        raise ValueError(f"codes lie under {n_categories}, not at {max(int(a.max()), int(b.max()))}")
    both = (a >= 0) & (b >= 0)
    cells = np.bincount(a[both] * n_categories + b[both], minlength=n_categories**2)
    return np.asarray(cells.reshape(n_categories, n_categories), dtype=np.int64)


def pass_fail_table(first: ArrayLike, second: ArrayLike) -> Ints:
    """The table with (pass, fail) in this order of codes 1 pass, 0 fail, -1 none."""
    a, b = (np.where(codes < 0, -1, 1 - codes) for codes in (np.asarray(first), np.asarray(second)))
    return agreement_table(a, b, 2)


def two_graders(table: ArrayLike, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95) -> TwoGraders:
    """Agreement, kappa, PABAK, prevalence and bias index of a table (K, K). Sources: Cohen 1960; Byrt, Bishop and Carlin 1993.

    Intervals cover new items: Clopper-Pearson for what is a share, the bootstrap over items for the others. Items are taken to be
    independent, and each to be rated once.
    """
    counts = _checked(table)
    n, size = int(counts.sum()), len(counts)
    agreement = _agreement(counts, level)
    chosen: dict[str, Any] = {"seed": seed, "resamples": resamples, "level": level}
    exact = Fraction(size * int(np.trace(counts)) - n, n * (size - 1)) if n else None
    return TwoGraders(
        n=n,
        agreement=agreement,
        kappa=kappa_at_margins(counts, level=level),
        kappa_percentile=cohen_kappa(counts, seed=seed, resamples=resamples, level=level),
        pabak=straight(agreement, None if exact is None else float(exact), slope=size / (size - 1), offset=-1 / (size - 1)),
        prevalence=_difference(counts, (0, 0), (1, 1), **chosen),
        bias=_difference(counts, (0, 1), (1, 0), **chosen),
    )


def cohen_kappa(
    table: ArrayLike,
    *,
    weights: Weights | str = Weights.NONE,
    places: ArrayLike | None = None,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """Cohen's kappa of a table (K, K): 1 - disagreement / disagreement expected of independent graders with the same margins.

    Undefined where the second is 0, which is where both used one and the same category alone. Sources: Cohen 1960, 1968.

    Args:
        table: Counts.
        weights: What a disagreement costs.
        places: Where the categories lie on their scale, (K,), ascending; 0 to K-1 when None. Read by weighted kappas.
        seed: Seed of the bootstrap over items.
        resamples: Its resamples.
        level: Confidence level.
    """
    weights = Weights(weights)
    counts = _checked(table)
    size, n = len(counts), int(counts.sum())
    at = _places(size, places)
    if n == 0:
        return undefined(NO_ITEM)
    margins = counts.sum(axis=1).astype(object), counts.sum(axis=0).astype(object)
    found, expected = _found(counts, at, weights), _expected(*margins, at, weights)
    if expected == 0:
        return undefined(ONE_CATEGORY, n_tasks=n, n_replicates=1)
    base = Estimate(value=float(1 - Fraction(n * found, expected)), n_tasks=n, n_replicates=1)
    if size > MOST_CATEGORIES:
        return base.lacking(too_many(size))
    items = np.repeat(np.argwhere(counts > 0), counts[counts > 0], axis=0)
    costs = _cost(np.abs(np.subtract.outer(at, at)), weights)
    cost, identity = np.asarray(costs / costs.max(), dtype=np.float64), np.eye(size)
    parts = [cost[items[:, 0], items[:, 1]][:, None], identity[items[:, 0]], identity[items[:, 1]]]

    def of(means: Floats) -> Floats:
        chance = np.einsum("ri,ij,rj->r", means[:, 1 : 1 + size], cost, means[:, 1 + size :])
        return np.where(chance > _NOTHING, 1 - means[:, 0] / np.where(chance > _NOTHING, chance, 1.0), np.nan)

    same = NEVER_DIFFER if found == 0 else ONE_KIND
    made = with_percentiles(base, np.hstack(parts), of, seed=seed, resamples=resamples, level=level, degenerate=same)
    differ = n - int(np.trace(counts))
    few = differ < _FEW_DISAGREEMENTS or n < _FEW_FOR_BOOTSTRAP
    least = f"under {_FEW_FOR_BOOTSTRAP} and {_FEW_DISAGREEMENTS}"
    said = f"{n} items and {differ} disagreements: {least} this interval covers less often than it says"
    return made if made.lo is None or not few else dataclasses.replace(made, note=joined(made.note, said))


def kappa_at_margins(table: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Cohen's kappa of a table (K, K) with (c - pe) / (1 - pe) at both Clopper-Pearson ends c of the agreement.

    The chance agreement pe is taken as observed, which matters little where the two mostly agree and is on the safe side elsewhere:
    over all tables of n = 20 to 1,000 items and kappas from 0 up that were tried, each end misses at most 0.03 of the time, where
    an end of the bootstrap's interval misses up to 0.53 (20 items, kappa 0.94). For kappas below 0 and 20 items it misses 0.06.
    From 3 to 19 items each end misses at most 0.04 at kappas from 0 up. Ends are held to [-1, 1]: no kappa lies outside.
    """
    counts = _checked(table)
    agreement = _agreement(counts, level)
    if agreement.value is None:
        return agreement
    n = int(counts.sum())
    chance = Fraction(int(counts.sum(axis=1) @ counts.sum(axis=0)), n * n)
    if chance == 1:
        return undefined(ONE_CATEGORY, n_tasks=n, n_replicates=1)
    room = float(1 - chance)
    value = float((Fraction(int(np.trace(counts)), n) - chance) / (1 - chance))
    made = held(straight(agreement, value, slope=1 / room, offset=-float(chance) / room))
    few = f"{n} items: under {FEW_ITEMS} the chance agreement, which this interval takes as observed, is itself uncertain"
    return dataclasses.replace(made, method=Method.AT_MARGINS, note=few if n < FEW_ITEMS else "")


def landis_koch(kappa: float) -> str:
    """The words of Landis and Koch 1977 for a kappa: a convention, not a finding, and blind to prevalence."""
    if kappa < 0:
        return "poor"
    limits = ((0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"))
    return next((word for limit, word in limits if kappa <= limit), "almost perfect")


def _checked(table: ArrayLike) -> Ints:
    counts = np.asarray(table)
    square = counts.ndim == 2 and counts.shape[0] == counts.shape[1] >= 2
    if not square or counts.dtype.kind not in "iu" or bool(np.any(counts < 0)):
        raise ValueError(f"a table holds counts, shape (K, K) with K >= 2, not {counts.dtype} of shape {counts.shape}")
    refuse_endless(counts, "items")
    return counts.astype(np.int64)


def _agreement(counts: Ints, level: float) -> Estimate:
    n, agreed = int(counts.sum()), int(np.trace(counts))
    if n == 0:
        return undefined(NO_ITEM)
    lo, hi = clopper_pearson(agreed, n, level=level)
    return Estimate(
        value=agreed / n,
        lo=lo,
        hi=hi,
        level=level,
        method=Method.CLOPPER_PEARSON,
        covers=Covers.POPULATION,
        n_tasks=n,
        n_replicates=1,
    )


def _difference(
    counts: Ints, plus: tuple[int, int], minus: tuple[int, int], *, seed: int, resamples: int, level: float
) -> Estimate:
    """The share of items in one cell less that in another, for two categories."""
    n = int(counts.sum())
    if len(counts) != 2 or n == 0:
        return undefined(NOT_BINARY if n else NO_ITEM, n_tasks=n, n_replicates=min(n, 1))
    more, less = int(counts[plus]), int(counts[minus])
    column = np.repeat([1.0, -1.0, 0.0], [more, less, n - more - less])[:, None]
    base = Estimate(value=(more - less) / n, n_tasks=n, n_replicates=1)
    same = ONE_KIND if more + less else "no item tells the two apart"
    return with_percentiles(base, column, _only_column, seed=seed, resamples=resamples, level=level, degenerate=same)


def _only_column(means: Floats) -> Floats:
    return means[:, 0]


def _places(size: int, places: ArrayLike | None) -> Exact:
    """Where the categories lie, (K,): Python's integers from 0 on, in lowest terms. Nothing else about them enters a kappa."""
    given = np.arange(size) if places is None else np.asarray(places)
    if given.shape != (size,) or not bool(np.all(np.diff(given.astype(np.float64)) > 0)):
        raise ValueError(f"places are {size} ascending numbers, not {given!r}")
    at = [Fraction(place) for place in given.tolist()]
    whole = lcm(*(place.denominator for place in at))
    numbers = [int((place - at[0]) * whole) for place in at]
    shared = gcd(*numbers)
    return np.array([number // shared for number in numbers], dtype=object)


def _cost(distance: Exact, weights: Weights) -> Exact:
    """What distances cost, exactly."""
    if weights is Weights.NONE:
        return np.asarray(distance != 0).astype(np.int64).astype(object)
    return distance if weights is Weights.LINEAR else np.asarray(distance * distance)


def _found(counts: Ints, at: Exact, weights: Weights) -> int:
    """The cost of all items, by those cells that have any."""
    if weights is Weights.NONE:
        return int(counts.sum()) - int(np.trace(counts))
    rows, columns = np.nonzero(counts)
    return int((counts[rows, columns].astype(object) * _cost(np.abs(at[rows] - at[columns]), weights)).sum())


def _expected(rows: Exact, columns: Exact, at: Exact, weights: Weights) -> int:
    """The sum over all cells of rows x columns x cost, by sums over the categories; margins (K,) are Python's integers."""
    if weights is Weights.NONE:
        return int(rows.sum() * columns.sum() - rows @ columns)
    if weights is Weights.QUADRATIC:
        squares = rows.sum() * (columns @ (at * at)) + columns.sum() * (rows @ (at * at))
        return int(squares - 2 * (rows @ at) * (columns @ at))
    # Each gap between neighbours is crossed by all pairs that lie on either side of it.
    below, under = np.cumsum(rows)[:-1], np.cumsum(columns)[:-1]
    return int((np.diff(at) * (below * (columns.sum() - under) + under * (rows.sum() - below))).sum())
