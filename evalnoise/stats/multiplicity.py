"""Many tests at once: p-values adjusted by Holm and by Benjamini and Hochberg. Undefined ones are left out, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Adjustment(StrEnum):
    """What an adjusted p-value holds down."""

    HOLM = "holm"
    """The chance of one false finding or more in the family, under any dependence."""
    BENJAMINI_HOCHBERG = "benjamini-hochberg"
    """The expected share of false ones among the findings; for independent or positively dependent tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted:
    """A family of tests with adjusted p-values."""

    p_adjusted: tuple[float | None, ...]
    """In the order of the p-values; None where the p-value was."""
    family: int
    """Tests that entered: those with a p-value."""
    left_out: int
    """Tests without one."""
    method: str
    """An `Adjustment`."""


def adjusted(p_values: Sequence[float | None], *, method: Adjustment | str = Adjustment.HOLM) -> Adjusted:
    """Adjusted p-values of a family; those that are None stay None and count for nothing.

    Holm: max over j <= i of min(1, (m-j+1) p_(j)). Benjamini and Hochberg: min over j >= i of min(1, m p_(j) / j). Source: Holm
    1979; Benjamini and Hochberg 1995. Raises ValueError for what is no p-value or no method.
    """
    method = Adjustment(method)
    known = [i for i, p in enumerate(p_values) if p is not None]
    made = adjusted_array(np.array([p_values[i] for i in known], dtype=np.float64), method=method)
    result: list[float | None] = [None] * len(p_values)
    for i, p in zip(known, made, strict=True):
        result[i] = float(p)
    return Adjusted(p_adjusted=tuple(result), family=len(known), left_out=len(p_values) - len(known), method=method)


def adjusted_array(p_values: Floats, *, method: Adjustment | str = Adjustment.HOLM) -> Floats:
    """The same for an array (P,) of defined p-values."""
    method = Adjustment(method)
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        raise ValueError("p-values are one row of numbers from 0 to 1")
    m = p.size
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, m + 1)
    if method is Adjustment.HOLM:
        steps = np.maximum.accumulate(p[order] * (m + 1 - ranks))
    else:
        steps = np.minimum.accumulate((p[order] * m / ranks)[::-1])[::-1]
    result = np.empty(m)
    result[order] = np.minimum(1.0, steps)
    return result
