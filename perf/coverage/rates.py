"""Where the simulated tasks' pass rates come from, and what is true of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Family:
    """A source of tasks."""

    name: str
    draw: Callable[[np.random.Generator, int], Floats]
    """Pass rates of so many new tasks."""
    w: float
    """E p (1-p), over all tasks of the source."""
    score: float
    """E p."""


def _mixture(share: float) -> Family:
    """Tasks that always pass (0.6) or never do (0.4), but for a share whose rates are uniform."""

    def draw(generator: np.random.Generator, n: int) -> Floats:
        fixed = (generator.random(n) < 0.6).astype(np.float64)
        return np.where(generator.random(n) < share, generator.random(n), fixed)

    return Family(f"0 or 1, {share:.0%} between", draw, share / 6, (1 - share) * 0.6 + share / 2)


FAMILIES = (
    Family("Beta(0.3, 0.2)", lambda generator, n: generator.beta(0.3, 0.2, n), 0.06 / (0.5 * 1.5), 0.6),
    _mixture(0.20),
    _mixture(0.05),
    _mixture(0.01),
)


def colder(rates: Floats) -> Floats:
    """The same tasks at a lower temperature: each rate nearer to the end that it is nearer to, p^2 / (p^2 + (1-p)^2)."""
    return np.asarray(rates**2 / (rates**2 + (1 - rates) ** 2))


@cache
def colder_truth(family: Family) -> tuple[float, float]:
    """E of the colder p (1-p) and of the colder p: a mean over five million tasks, so good to about 0.0001."""
    rates = colder(family.draw(np.random.default_rng(0), 5_000_000))
    return float(np.mean(rates * (1 - rates))), float(np.mean(rates))
