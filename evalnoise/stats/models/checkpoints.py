"""Several models that ought to be alike: averaging over checkpoints or seeds, and the null check over training seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from evalnoise.stats.estimate import Covers, Method
from evalnoise.stats.models.noise import ALL_EQUAL, ONE_TASK, Noise
from evalnoise.stats.models.pairs import all_pairs
from evalnoise.stats.models.samples import Floats, Ints, Samples
from evalnoise.stats.resampling import check_draws, stream

NO_P = "no pair of seeds has a p-value"
_MISSING = "a checkpoint has tasks without a sample: averages need the same tasks in all"
_ROUNDING = 1e-13
"""Share of the largest mean by which differences may lie apart and be the same: what summing in binary costs, and far less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Averaging:
    """Two groups of checkpoints, seeds or samples, compared one by one and by their means over the group."""

    difference: float | None
    """Mean of the first group minus mean of the second."""
    se_single: float | None
    """Root of the mean squared SE of one checkpoint's score minus one of the other group's, over all such pairs."""
    se_averaged: float | None
    """SE of the difference of the two groups' means: the tasks' means over the group are compared. Covers new tasks."""
    z_single: float | None
    """Difference over se_single: what one pair of checkpoints would show."""
    z_averaged: float | None
    """Difference over se_averaged."""
    reduction: float | None
    """se_averaged over se_single."""
    n_tasks: int
    """Tasks."""
    undefined: str
    """Why numbers are None; empty otherwise."""
    note: str
    """When not to trust it."""


def averaging(samples: Samples, a: Sequence[int], b: Sequence[int]) -> Averaging:
    """What averaging over a group brings: SE^2 = var over tasks (ddof 0) of mean_A - mean_B over N.

    `a` and `b` are rows of `samples`. Checkpoints of one training run share their data noise and much of their error, so that their
    mean is not as good as so many independent runs; the SE is right all the same, because it is taken over tasks. Source: Wang
    2025, figure 2 (five consecutive checkpoints).
    """
    rows = [*a, *b]
    if not a or not b or len(set(rows)) != len(rows):
        raise ValueError("two groups of models need at least one each, and none in common")
    n = samples.runs.shape[1]
    if np.any(samples.runs[rows] == 0) or n < 2:
        return Averaging(
            difference=None, se_single=None, se_averaged=None, z_single=None, z_averaged=None, reduction=None, n_tasks=n,
            undefined=ONE_TASK if n < 2 else _MISSING, note="",
        )  # fmt: skip
    means = samples.means
    first, second = means[list(a)], means[list(b)]
    gap = first.mean(axis=0) - second.mean(axis=0)
    # Means of scores that binary numbers cannot hold differ in their last digits where they are the same.
    alike = _ROUNDING * float(np.abs(means[rows]).max())
    single = np.mean([_variance(x - y, alike) for x in first for y in second])
    one, averaged = float(np.sqrt(single / n)), float(np.sqrt(_variance(gap, alike) / n))
    difference = float(gap.mean())
    return Averaging(
        difference=difference,
        se_single=one,
        se_averaged=averaged,
        z_single=difference / one if one else None,
        z_averaged=difference / averaged if averaged else None,
        reduction=averaged / one if one else None,
        n_tasks=n,
        undefined="" if averaged else ALL_EQUAL,
        note="it speaks of the mean of these checkpoints, not of the last one",
    )


def _variance(differences: Floats, alike: float) -> float:
    """Variance over tasks, ddof 0; 0 where they lie no further apart than this."""
    return 0.0 if float(np.ptp(differences)) <= alike else float(np.var(differences))


def samples_for(noise: Noise, se: float) -> int | None:
    """Smallest K with sqrt((data + prediction/K) / N) <= se; None where no number suffices or the parts are undefined."""
    if se <= 0:
        raise ValueError(f"a standard error to reach is above 0, not {se}")
    if noise.data is None or noise.prediction is None:
        return None
    room = se * se * noise.n_tasks - max(noise.data, 0.0)
    if noise.prediction == 0:
        return 1 if room >= 0 else None
    return max(1, int(np.ceil(noise.prediction / room * (1 - 1e-12)))) if room > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NullShare:
    """Pairs of seeds that look different at one level, beside what chance gives."""

    level: float
    """The level of p."""
    share: float | None
    """Share of all pairs with p below it."""
    expected: float | None
    """The same over the deals: what chance gives on these tasks. With few tasks that is not the level."""
    p_more: float | None
    """Chance of so many pairs or more among the dealt seeds: (1 + deals with as many) / (1 + deals)."""
    undefined: str
    """Why p_more is None; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NullCheck:
    """All pairs of training seeds of one model: are there as many small p-values as chance gives?"""

    seeds: int
    """Models."""
    n_tasks: int
    """Tasks."""
    pairs: int
    """Pairs with a p-value, the paired t's."""
    left_out: int
    """Pairs without one."""
    shares: tuple[NullShare, ...]
    """By level."""
    p: float | None
    """The smallest p_more times the number of levels, at most 1: Bonferroni over the levels."""
    distance: float | None
    """Largest distance of the p-values' distribution from the uniform one, over all pairs; pairs depend on one another."""
    method: Method
    """How the chances were made."""
    covers: Covers
    """What the p-values cover: new tasks."""
    dealt: int
    """Seeds that the chances are of: all, or evenly many along the list."""
    seed: int
    """Seed of the deals."""
    resamples: int
    """Deals."""
    undefined: str
    """Why p is None; empty otherwise."""
    note: str
    """How to read it."""


RESAMPLES = 499
MOST_DEALT = 100
"""Seeds that are dealt to; of more, evenly many along the list."""
ASSUMES = (
    "pairs that share a seed depend on one another, so the chance is that of dealing the scores of each task out to the seeds anew,"
    " among those with as many samples of it; it takes tasks for independent of one another, so related tasks make it too small"
)
NOTHING_DEALT = "no two seeds with as many samples of a task have another score in it: there is nothing to deal out anew"
NOTHING_RARE = "too few tasks or seeds: even the most small p-values that any deal gave are not rare among the deals"
_SEEN = 0.05
"""Chance over all levels under which seeds are said to differ."""
_BLOCK = 64
"""Deals per random stream. Part of the result: another number gives other deals."""
_DEALS = 81
"""Key of the random streams."""
_SPREAD = 1e-12
"""Share of the squares under which the spread of a difference of floats is rounding, and 0."""


def null_check(samples: Samples, *, levels: Sequence[float] = (0.05, 0.01), seed: int = 0, resamples: int = RESAMPLES) -> NullCheck:
    """Share of pairs of seeds with a small p of the paired t over new tasks (population), and the chance of so many, by level.

    Pairs share seeds and all share the tasks, so that their number is not binomial. Its distribution, if no seed is better than
    another, comes from dealing each task's means out to the seeds at random, among seeds with as many samples of that task; all
    of a seed's samples of a task stay together, so what a seed happens to know of a task counts as noise. Exact up to the number
    of deals where tasks are independent, at any number of them. Source of the shares: Wang 2025, figure 6.

    Args:
        samples: One model's seeds as M models.
        levels: Levels of p, between 0 and 1.
        seed: Seed of the deals, 0 or more.
        resamples: Deals, 1 or more.

    Raises:
        ValueError: A level, seed or number of deals that cannot be.
    """
    check_draws(resamples, seed)
    if not levels or not all(0 < level < 1 for level in levels):
        raise ValueError(f"levels lie between 0 and 1, not {list(levels)}")
    found = all_pairs(samples)
    values = found.p_value[~np.isnan(found.p_value)]
    m, n = samples.runs.shape
    chosen = np.arange(m) if m <= MOST_DEALT else np.linspace(0, m - 1, MOST_DEALT).astype(np.int64)
    hits, defined = _deals(samples.models(chosen), levels, seed, resamples)
    shares = tuple(
        _null_share(level, values, hits[:, column], int(defined.sum()), rare=_SEEN / len(levels))
        for column, level in enumerate(levels)
    )
    chances = [share.p_more for share in shares if share.p_more is not None]
    p = min(1.0, min(chances) * len(levels)) if chances else None
    undefined = "" if chances else shares[0].undefined
    fewer = "" if len(chosen) == m else f"; it is of {len(chosen)} of the {m} seeds, evenly many along the list"
    return NullCheck(
        seeds=m, n_tasks=n, pairs=int(values.size), left_out=len(found) - int(values.size), shares=shares, p=p,
        distance=_distance(values), method=Method.PERMUTATION, covers=Covers.POPULATION, dealt=len(chosen), seed=seed,
        resamples=resamples, undefined=undefined, note=f"{ASSUMES}{fewer}. {_said(p, undefined)}",
    )  # fmt: skip


def _said(p: float | None, undefined: str) -> str:
    if p is None:
        return f"Nothing is shown: {undefined}"
    if p < _SEEN:
        return f"More small p-values than chance gives (p {p:.2g} over the levels): some seeds are better than others"
    return f"No more small p-values than chance may give (p {p:.2g} over the levels): that some seeds are better is not shown"


def _null_share(level: float, p: Floats, hits: Ints, defined: int, *, rare: float) -> NullShare:
    """`hits` are the pairs below the level of the seeds as they are, and of every deal."""
    if not p.size:
        more, undefined = None, NO_P
    elif not hits.any() or not defined:
        more, undefined = None, NOTHING_DEALT if not defined else NOTHING_RARE
    elif float(np.mean(hits == hits.max())) > rare:
        more, undefined = None, NOTHING_RARE
    else:
        more, undefined = float(np.mean(hits >= hits[0])), ""
    return NullShare(
        level=level,
        share=float((p < level).mean()) if p.size else None,
        expected=float(hits[1:].sum() / defined) if defined else None,
        p_more=more,
        undefined=undefined,
    )


def _deals(s: Samples, levels: Sequence[float], seed: int, resamples: int) -> tuple[Ints, Ints]:
    """Pairs below each level, of the seeds as they are and of every deal (1 + D, L); pairs with a p of every deal (D,)."""
    runs, means = s.runs.T, s.means.T
    known = (runs > 0).astype(np.float64)
    middle = means.sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
    means = (means - middle) * known
    n = known.T @ known
    limits = [np.square(stdtrit(np.maximum(n - 1, 1), 1 - level / 2)) for level in levels]
    # A task in which all have one score enters nothing but the number of tasks.
    varied = np.ptp(np.where(known > 0, s.means.T, middle), axis=1) > _ROUNDING
    means, known, runs = means[varied], known[varied], runs[varied]
    places = np.argsort(runs, axis=1, kind="stable")
    hits = np.zeros((1 + resamples, len(levels)), dtype=np.int64)
    defined = np.zeros(resamples, dtype=np.int64)
    hits[0], _ = _small(means, known, n, limits)
    if not _can_be_dealt(runs, means):
        return hits, defined
    dealt = np.empty_like(means)
    for block, start in enumerate(range(0, resamples, _BLOCK)):
        generator = stream(seed, (_DEALS,), block)
        for deal in range(start, min(start + _BLOCK, resamples)):
            # Seeds with as many samples stay together, in a random order.
            order = np.argsort(runs + generator.random(runs.shape), axis=1)
            np.put_along_axis(dealt, places, np.take_along_axis(means, order, axis=1), axis=1)
            hits[1 + deal], defined[deal] = _small(dealt, known, n, limits)
    return hits, defined


def _can_be_dealt(runs: Ints, means: Floats) -> bool:
    """Whether two seeds with as many samples of a task have other scores in it."""
    for column in range(1, runs.shape[1]):
        alike = (runs[:, :-column] == runs[:, column:]) & (runs[:, column:] > 0)
        if bool(np.any(alike & (np.abs(means[:, :-column] - means[:, column:]) > _ROUNDING))):
            return True
    return False


def _small(means: Floats, known: Floats, n: Floats, limits: Sequence[Floats]) -> tuple[list[int], int]:
    """Pairs whose squared t is above each limit, and pairs with a t; means (V, M) are centred and 0 where they are not known."""
    first, squares = (x.sum(axis=0)[:, None] if known.all() else x.T @ known for x in (means, np.square(means)))
    difference = first - first.T
    both = squares + squares.T
    spread = n * (both - 2 * (means.T @ means)) - np.square(difference)
    there = (n >= 2) & (spread > _SPREAD * n * both)
    t = np.square(difference) * (n - 1) / np.where(there, spread, np.inf)
    return [int(np.count_nonzero(t > limit)) // 2 for limit in limits], int(np.count_nonzero(there)) // 2


def _distance(p: NDArray[np.float64]) -> float | None:
    if not p.size:
        return None
    ordered = np.sort(p)
    steps = np.arange(p.size + 1) / p.size
    return float(max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1])))
