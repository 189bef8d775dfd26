"""Any number of graders: Fleiss' kappa for complete ratings, Krippendorff's alpha for any, with what is missing left out."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats.agreement.resampled import MOST_CATEGORIES, too_many, undefined, with_percentiles
from evalnoise.stats.bootstrap import RESAMPLES
from evalnoise.stats.estimate import Estimate
from evalnoise.stats.variance import Floats, Ints, refuse_endless

NO_PAIR = "no item has two ratings: nothing can agree"
ONE_VALUE = "every rating is the same: chance agreement is certain, and the coefficient is 0/0"
NEVER_DIFFER = "the ratings of an item always agree, and resampling cannot make a disagreement"
UNEQUAL = "items differ in their number of ratings: Fleiss' kappa needs equal numbers, Krippendorff's alpha does not"
_MOST_RANKS = 12
_NOTHING = 1e-12


class Metric(StrEnum):
    """How far apart two ratings are."""

    NOMINAL = "nominal"
    """Equal or not."""
    ORDINAL = "ordinal"
    """By the ratings that lie between them, in rank."""
    INTERVAL = "interval"
    """By the square of their difference."""


def category_counts(codes: ArrayLike, n_categories: int) -> Ints:
    """How often each item was put into each category, (N, K), from codes (N, R) with -1 for no rating."""
    table = np.asarray(codes)
    if (
        table.ndim != 2
        or table.dtype.kind not in "iu"
        or (table.size and not -1 <= int(table.min()) <= int(table.max()) < n_categories)
    ):
        raise ValueError(f"codes are integers from -1 to {n_categories - 1} of shape (N, R), not {table.dtype} {table.shape}")
    counts = np.zeros((len(table), n_categories), dtype=np.int64)
    items, places = np.nonzero(table >= 0)
    np.add.at(counts, (items, table[items, places]), 1)
    return counts


def fleiss_kappa(counts: ArrayLike, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95) -> Estimate:
    """Fleiss' kappa of category counts (N, K), every item with the same number R >= 2 of ratings.

    (P - Pe) / (1 - Pe): P the mean share of agreeing pairs, Pe the sum of squared category shares. The interval is the bootstrap
    over items. Source: Fleiss 1971.
    """
    table = _checked(counts)
    table = table[table.sum(axis=1) > 0]
    sizes = np.unique(table.sum(axis=1))
    n_items, raters = len(table), int(sizes.min()) if sizes.size else 0
    reason = NO_PAIR if n_items == 0 or int(sizes.max()) < 2 else UNEQUAL if sizes.size > 1 else ""
    if reason:
        return undefined(reason, n_tasks=n_items, n_replicates=raters)
    chance = Fraction(int((table.sum(axis=0) ** 2).sum()), (n_items * raters) ** 2)
    if chance == 1:
        return undefined(ONE_VALUE, n_tasks=n_items, n_replicates=raters)
    pairs = (table * (table - 1)).sum(axis=1)
    agreed = Fraction(int(pairs.sum()), n_items * raters * (raters - 1))
    base = Estimate(value=float((agreed - chance) / (1 - chance)), n_tasks=n_items, n_replicates=raters)

    def of(means: Floats) -> Floats:
        expected = np.sum((means[:, 1:] / raters) ** 2, axis=1)
        room = 1 - expected
        return np.where(
            room > _NOTHING, (means[:, 0] / (raters * (raters - 1)) - expected) / np.where(room > _NOTHING, room, 1.0), np.nan
        )

    columns = np.column_stack([pairs, table])
    return _resampled(base, columns, of, len(table[0]), never=agreed == 1, seed=seed, resamples=resamples, level=level)


def krippendorff_alpha(
    ratings: ArrayLike,
    present: ArrayLike | None = None,
    *,
    metric: Metric | str = Metric.NOMINAL,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """Krippendorff's alpha of ratings (N, R): 1 - observed disagreement / disagreement of the same ratings paired at random.

    Items with fewer than two ratings are left out. The interval is the bootstrap over items, not Krippendorff's own resampling of
    pairs, which takes the pairs of an item to be independent. Source: Krippendorff 2011.

    Args:
        ratings: Numbers; for the nominal metric any codes.
        present: Shape (N, R): which ratings there are; all when None.
        metric: How far apart two ratings are.
        seed: Seed of the bootstrap.
        resamples: Its resamples.
        level: Confidence level.
    """
    metric = Metric(metric)
    values, mask = _pairable(ratings, present)
    n_items = len(values)
    least = int(mask.sum(axis=1).min()) if n_items else 0
    if not n_items:
        return undefined(NO_PAIR)
    scale, codes = np.unique(values[mask], return_inverse=True)
    if len(scale) < 2:
        return undefined(ONE_VALUE, n_tasks=n_items, n_replicates=least)
    table = np.full(values.shape, -1, dtype=np.int64)
    table[mask] = codes
    base = Estimate(value=None, n_tasks=n_items, n_replicates=least)
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "level": level}
    if metric is Metric.INTERVAL:
        return _interval_alpha(base, values, mask, **options)
    counts = category_counts(table, len(scale))
    return _table_alpha(base, counts, metric, **options)


def _pairable(ratings: ArrayLike, present: ArrayLike | None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    values = np.asarray(ratings)
    if values.ndim != 2 or values.dtype.kind not in "iufb":
        raise ValueError(f"ratings are numbers of shape (N, R), not {values.dtype} of shape {values.shape}")
    mask = np.ones(values.shape, dtype=bool) if present is None else np.asarray(present, dtype=bool)
    if mask.shape != values.shape:
        raise ValueError(f"present needs the ratings' shape {values.shape}, not {mask.shape}")
    if not np.isfinite(values[mask]).all():
        raise ValueError("a rating is a finite number; leave out what is missing with `present`")
    twice = mask.sum(axis=1) >= 2
    return values[twice], mask[twice]


def _table_alpha(base: Estimate, counts: Ints, metric: Metric, *, seed: int, resamples: int, level: float) -> Estimate:
    """Nominal and ordinal, from counts (N, K) of items with at least two ratings each."""
    size, weights = counts.shape[1], 1.0 / (counts.sum(axis=1) - 1)
    totals = counts.sum(axis=0)
    # Of the nominal metric all that differ are 1 apart: that needs no table of categories by categories.
    distance = None if metric is Metric.NOMINAL else _distances(totals[None].astype(object), metric)[0]
    n = int(totals.sum())
    expected = _apart(totals[None], distance)
    observed = Fraction()
    for ratings in np.unique(counts.sum(axis=1)):
        observed += Fraction(_apart(counts[counts.sum(axis=1) == ratings], distance), int(ratings) - 1)
    made = Estimate(value=float(1 - (n - 1) * observed / expected), n_tasks=base.n_tasks, n_replicates=base.n_replicates)
    most = MOST_CATEGORIES if metric is Metric.NOMINAL else _MOST_RANKS
    if size > most:
        return made.lacking(too_many(size, most))
    first, second = np.triu_indices(size, 1)
    if metric is Metric.NOMINAL:
        pairs = ((counts.sum(axis=1) ** 2 - (counts**2).sum(axis=1)) * weights)[:, None]
    else:
        pairs = 2 * counts[:, first] * counts[:, second] * weights[:, None]
    items = len(counts)

    def of(means: Floats) -> Floats:
        sums = items * means[:, pairs.shape[1] :]
        here = _distances(sums, metric)[:, first, second]
        chance = 2 * np.sum(sums[:, first] * sums[:, second] * here, axis=1)
        seen = items * (means[:, 0] if metric is Metric.NOMINAL else np.sum(means[:, : pairs.shape[1]] * here, axis=1))
        return np.where(chance > 0, 1 - (sums.sum(axis=1) - 1) * seen / np.where(chance > 0, chance, 1.0), np.nan)

    columns = np.hstack([pairs, counts])
    return _resampled(made, columns, of, size, never=observed == 0, seed=seed, resamples=resamples, level=level)


def _apart(counts: Ints, distance: NDArray[Any] | None) -> int:
    """The sum of the squared distances of all ordered pairs within each row of counts (N, K); exact: 2^30 ratings are the most."""
    if distance is None:
        return int((counts.sum(axis=1) ** 2).sum() - (counts * counts).sum())
    return int(((counts.T @ counts).astype(object) * distance).sum())


def _distances(totals: NDArray[Any], metric: Metric) -> NDArray[Any]:
    """Squared distances of categories, (B, K, K), for totals (B, K); four times those of the ordinal metric, to stay integers."""
    batch, size = totals.shape
    if metric is Metric.NOMINAL:
        return np.broadcast_to(1 - np.eye(size, dtype=np.int64), (batch, size, size))
    ends = np.cumsum(totals, axis=1)
    # Ratings from category i to j, both ends by half: the difference of mid-ranks.
    middle = 2 * ends - totals
    return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2)


def _interval_alpha(
    base: Estimate, values: NDArray[Any], mask: NDArray[np.bool_], *, seed: int, resamples: int, level: float
) -> Estimate:
    """From sums: over the pairs of m numbers, squared differences add up to 2 m times their squared deviations."""
    m = mask.sum(axis=1)
    exact = values.dtype.kind in "iub"
    # Shifted to about their mean, squares of large ratings lose no digits.
    centre = values[mask].mean()
    shifted = values.astype(object) - int(centre) if exact else values - centre
    ratings = np.where(mask, shifted, 0)
    s, q = ratings.sum(axis=1), (ratings * ratings).sum(axis=1)
    number: Callable[[Any], Any] = (lambda x: Fraction(int(x))) if exact else float
    deviations = [number(int(c) * b - a * a) / (int(c) - 1) for a, b, c in zip(s, q, m, strict=True)]
    n, observed = int(m.sum()), 2 * sum(deviations)
    expected = 2 * (n * number(q.sum()) - number(s.sum()) ** 2)
    value = float(1 - (n - 1) * observed / expected)
    columns = np.column_stack([np.array(deviations, dtype=np.float64), m, s.astype(np.float64), q.astype(np.float64)])
    items = len(m)

    def of(means: Floats) -> Floats:
        seen, count, total, squares = (items * means).T
        chance = count * squares - total * total
        room = chance > _NOTHING * np.maximum(count * squares, 1e-300)
        return np.where(room, 1 - (count - 1) * seen / np.where(room, chance, 1.0), np.nan)

    made = Estimate(value=value, n_tasks=base.n_tasks, n_replicates=base.n_replicates)
    return _resampled(made, columns, of, 2, never=observed == 0, seed=seed, resamples=resamples, level=level)


def _resampled(
    base: Estimate,
    columns: ArrayLike,
    of: Callable[[Floats], Floats],
    size: int,
    *,
    never: bool,
    seed: int,
    resamples: int,
    level: float,
) -> Estimate:
    if size > MOST_CATEGORIES:
        return base.lacking(too_many(size))
    same = NEVER_DIFFER if never else "all items are alike"
    return with_percentiles(base, columns, of, seed=seed, resamples=resamples, level=level, degenerate=same)


def _checked(counts: ArrayLike) -> Ints:
    table = np.asarray(counts)
    if table.ndim != 2 or (table.size and (table.dtype.kind not in "iu" or bool(np.any(table < 0)))):
        raise ValueError(f"counts are integers of shape (N, K), not {table.dtype} of shape {table.shape}")
    refuse_endless(table, "ratings")
    return table.astype(np.int64)
