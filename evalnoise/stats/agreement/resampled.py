"""Intervals of this room: the task bootstrap of any smooth function of column means, and images of other intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats.bootstrap import finite_rows, joint_task_bootstrap, percentile_interval
from evalnoise.stats.estimate import PROVES_NOTHING, Covers, Estimate, Method
from evalnoise.stats.variance import Floats

FEW_ITEMS = 30
"""Under so many items a percentile interval of an agreement coefficient covers less often than it says."""
MOST_CATEGORIES = 60
"""With more categories than that, resamples would cost far more than their interval says."""
BELOW_LEAST = "the whole interval is below -1, which no true coefficient is: too few ratings"
_UNDEFINED_SHARE = 0.01
"""At most this share of resamples may have no value: they are left out of the interval, and counted in its note."""
_SAME = 1e-12
"""An interval that is no wider holds nothing but rounding."""


def with_percentiles(
    base: Estimate,
    columns: ArrayLike,
    of: Callable[[Floats], Floats],
    *,
    seed: int,
    resamples: int,
    level: float,
    degenerate: str,
) -> Estimate:
    """The estimate with the percentile interval of a smooth function of column means over resampled tasks: `population`.

    Args:
        base: The estimate; without a value it comes back as it is.
        columns: Shape (N, M), one row per task (or item), finite.
        of: Maps means (resamples, M) to values (resamples,); NaN where a resample has no value.
        seed: Seed of the bootstrap.
        resamples: Resamples.
        level: Confidence level.
        degenerate: What it means when all resamples have one value; the note says that this proves nothing.
    """
    if base.value is None:
        return base
    rows = finite_rows(columns)
    base = dataclasses.replace(base, method=Method.PERCENTILE)
    if len(rows) < 2:
        return base.lacking("one item says nothing about other items")
    with np.errstate(divide="ignore", invalid="ignore"):
        draws = np.asarray(of(joint_task_bootstrap(rows, resamples=resamples, seed=seed)), dtype=np.float64)
    known = draws[np.isfinite(draws)]
    lost = resamples - known.size
    base = dataclasses.replace(base, seed=seed, resamples=resamples)
    if lost > _UNDEFINED_SHARE * resamples:
        return base.lacking(f"{lost} of {resamples} resamples have no value: too little differs between items for an interval")
    lo, hi = percentile_interval(known, level=level)
    same = hi - lo <= _SAME
    notes = [PROVES_NOTHING + degenerate] if same else []
    notes += [f"{lost} of {resamples} resamples have no value and are left out"] if lost else []
    few = f"{len(rows)} items: under {FEW_ITEMS} the interval covers less often than it says"
    notes += [few] if len(rows) < FEW_ITEMS and not same else []
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note="; ".join(notes))


def straight(estimate: Estimate, value: float | None, *, slope: float, offset: float) -> Estimate:
    """The estimate of offset + slope x, with the ends of x's interval put through it; the value is given, exactly rounded."""
    ends = [None if end is None else offset + slope * end for end in (estimate.lo, estimate.hi)]
    # An end that is the value itself, but for rounding, is the value: an interval must not leave it out.
    ends = [value if end is not None and value is not None and abs(end - value) <= _SAME else end for end in ends]
    lo, hi = ends if slope > 0 else ends[::-1]
    return dataclasses.replace(estimate, value=value, lo=lo, hi=hi)


def held(estimate: Estimate) -> Estimate:
    """A coefficient whose ends are held to [-1, 1]: no true one lies outside, though an estimate may."""
    if estimate.lo is None or estimate.hi is None:
        return estimate
    if estimate.hi < -1:
        return dataclasses.replace(estimate, lo=None, hi=None, level=None, covers=Covers.NOTHING, undefined=BELOW_LEAST)
    return dataclasses.replace(estimate, lo=max(estimate.lo, -1.0), hi=min(estimate.hi, 1.0))


def too_many(size: int, most: int = MOST_CATEGORIES) -> str:
    """Why there is no interval."""
    return f"{size} categories: no interval is made for more than {most}"


def undefined(reason: str, *, n_tasks: int = 0, n_replicates: int = 0) -> Estimate:
    """A number that does not exist."""
    return Estimate(value=None, n_tasks=n_tasks, n_replicates=n_replicates, undefined=reason)
