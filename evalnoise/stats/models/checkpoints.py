"""Several models that ought to be alike: averaging over checkpoints or seeds, and the null check over training seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from evalnoise.stats.models.noise import ALL_EQUAL, ONE_TASK, Noise
from evalnoise.stats.models.pairs import all_pairs
from evalnoise.stats.models.samples import Floats, Samples

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
    """Share of all pairs with p below it; expected: the level."""
    disjoint: int
    """Pairs with p below it among those that share no seed."""
    disjoint_pairs: int
    """How many those are."""
    p_more: float | None
    """Exact chance of so many of them or more, if each had that level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NullCheck:
    """All pairs of training seeds of one model: are there as many small p-values as chance gives?"""

    seeds: int
    """Models."""
    pairs: int
    """Pairs with a p-value."""
    left_out: int
    """Pairs without one."""
    shares: tuple[NullShare, ...]
    """By level."""
    distance: float | None
    """Largest distance of the p-values' distribution from the uniform one, over all pairs."""
    undefined: str
    """Why shares are None; empty otherwise."""
    note: str
    """How to read it."""


DEPENDENT = (
    "pairs that share a seed depend on one another, so shares over all pairs scatter more than independent ones would; the exact"
    " chance is of pairs that share none"
)
_SEEN = 0.05
"""Exact chance, times the number of levels, under which seeds are said to differ."""


def null_check(samples: Samples, *, levels: Sequence[float] = (0.05, 0.01)) -> NullCheck:
    """Share of pairs of seeds with a small p over new tasks (population), for each level. Source: Wang 2025, figure 6.

    `samples` holds one model's seeds as M models. Rows (0, 1), (2, 3), … are the pairs that share no seed.
    """
    found = all_pairs(samples)
    p = found.p_value
    known = ~np.isnan(p)
    apart = known & (found.a % 2 == 0) & (found.b == found.a + 1)
    values = p[known]
    shares = tuple(_null_share(level, values, p[apart]) for level in levels)
    return NullCheck(
        seeds=len(samples.runs),
        pairs=int(known.sum()),
        left_out=int((~known).sum()),
        shares=shares,
        distance=_distance(values),
        undefined="" if values.size else "no pair of seeds has a p-value",
        note=f"{DEPENDENT}. {_said(shares)}",
    )


def _said(shares: Sequence[NullShare]) -> str:
    """What the exact chances say, over all levels by Bonferroni."""
    chances = [share.p_more for share in shares if share.p_more is not None]
    if not chances:
        return "There is no pair of which it could be taken, so nothing is shown"
    p = min(1.0, min(chances) * len(chances))
    of = max(share.disjoint_pairs for share in shares)
    at = f"exact p {p:.2g} over the levels, of {of} {'pair' if of == 1 else 'pairs'} that share no seed"
    if p < _SEEN:
        return f"More small p-values than chance gives ({at}): seeds differ by more than their samples do"
    return f"No more small p-values than chance may give ({at}): that seeds differ by more than their samples do is not shown"


def _null_share(level: float, p: Floats, apart: Floats) -> NullShare:
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not {level}")
    hits, of = int((apart < level).sum()), int(apart.size)
    more = None if not of else 1.0 if hits == 0 else float(bdtrc(hits - 1, of, level))
    return NullShare(
        level=level, share=float((p < level).mean()) if p.size else None, disjoint=hits, disjoint_pairs=of, p_more=more
    )


def _distance(p: NDArray[np.float64]) -> float | None:
    if not p.size:
        return None
    ordered = np.sort(p)
    steps = np.arange(p.size + 1) / p.size
    return float(max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1])))
