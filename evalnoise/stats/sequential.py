"""Intervals that stay valid at every look, so that one may stop when they are narrow enough.

An interval for a fixed number of runs, looked at after every run, misses far more often than it says: with looks at n = 5 to 300
Clopper-Pearson missed 24 to 32 % of the time at a level of 95 %. A confidence sequence misses at any look, ever, with probability
at most alpha. Neither of the two here is in the papers that the rest of evalnoise follows; both are from the literature:

* `robbins`: outcomes 0 or 1. Robbins 1970 (Annals of Mathematical Statistics 41): a uniform prior mixed over the likelihood ratio.
* `betting`: scores in [0, 1]. Waudby-Smith and Ramdas 2023 (JRSS B 86), hedged capital with predictable plug-in bets.

What is ours: that the ends are solved for instead of searched on a grid, a fixed truncation of 1/2 and a hedge of 1/2, and the
choice of what counts as one observation, which the command makes: the intervals need observations that come one after another
with the same mean whatever the earlier ones were, for instance one score for each new task, or the score of each new run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, xlog1py, xlogy

from evalnoise.stats.estimate import Covers, Method, alpha_of
from evalnoise.stats.limits import bisect
from evalnoise.stats.variance import Floats, Ints

_TRUNCATION: Final = 0.5
"""A bet puts at most this share of the capital at risk."""
_HALVINGS: Final = 60
_HEDGE: Final = 0.5
"""Share of the capital that bets on a larger mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """A confidence sequence, up to the last observation."""

    n: int
    """Observations."""
    mean: float | None
    """Their mean; None without one."""
    lo: float
    """Lower end after the last observation."""
    hi: float
    """Upper end."""
    running_lo: float
    """Largest lower end so far: the intersection of all looks is valid too, and never widens."""
    running_hi: float
    """Smallest upper end so far. Under `running_lo` only if the sequence has missed, or the observations do not fit it."""
    level: float
    """Confidence level, for all looks together."""
    method: str
    """A `Method`."""
    covers: str
    """What the mean is of, a `Covers`: new tasks or new runs."""
    note: str
    """When not to trust it; empty otherwise."""

    @property
    def half_width(self) -> float:
        """Half the width of the intersection; 0 when that is empty."""
        return max(0.0, self.running_hi - self.running_lo) / 2

    def narrow_enough(self, half_width: float) -> bool:
        """The stop rule: whether one may stop, because the intersection's half-width is at most this."""
        return self.half_width <= half_width


EMPTY: Final = "no mean is in all looks' intervals: it has missed, or the observations do not have one mean"


def robbins_interval(successes: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """{p : log B(1+s, 1+n-s) - s log p - (n-s) log(1-p) < log(1/alpha)}, for one look; [0, 1] without a trial.

    Raises:
        ValueError: Counts or level cannot be.
    """
    if trials < 0 or not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials} is no proportion")
    lo, hi = _robbins_ends(np.array([successes]), np.array([trials]), alpha_of(level))
    return float(lo[0]), float(hi[0])


def _robbins_ends(successes: Ints, trials: Ints, alpha: float) -> tuple[Floats, Floats]:
    """Both ends for each look, by halving, shape (looks,) each."""
    failures = trials - successes
    limit = -math.log(alpha) - betaln(1 + successes, 1 + failures)
    mean = successes / np.maximum(trials, 1)

    def outside(p: Floats) -> NDArray[np.bool_]:
        return np.asarray(limit + xlogy(successes, p) + xlog1py(failures, -p) <= 0)

    # From the mean, which is inside, towards 0 and 1; where nothing failed or passed, the end is 1 or 0 itself.
    found = []
    for edge in (np.zeros(len(mean)), np.ones(len(mean))):
        inner, outer = mean.copy(), edge.copy()
        for _ in range(_HALVINGS):
            middle = (inner + outer) / 2
            out = outside(middle)
            inner, outer = np.where(out, inner, middle), np.where(out, middle, outer)
        found.append(outer)
    lo = np.where(successes == 0, 0.0, found[0])
    hi = np.where(failures == 0, 1.0, found[1])
    return lo, hi


def robbins(outcomes: ArrayLike, *, covers: Covers | str, level: float = 0.95) -> Sequence:
    """Robbins' sequence for outcomes 0 or 1 in their order, shape (n,).

    Raises:
        ValueError: An outcome that is neither, or a level that cannot be.
    """
    covers = Covers(covers)
    values = _scores(outcomes)
    if not np.all((values == 0) | (values == 1)):
        raise ValueError("Robbins' interval is for outcomes 0 and 1; use the betting interval for other scores")
    passes = np.concatenate([[0], values.cumsum().astype(np.int64)])
    lo, hi = _robbins_ends(passes, np.arange(len(passes)), alpha_of(level))
    last, running = (float(lo[-1]), float(hi[-1])), (float(lo.max()), float(hi.min()))
    return _sequence(values, last, running, level=level, method=Method.ROBBINS, covers=covers)


def betting(scores: ArrayLike, *, covers: Covers | str, level: float = 0.95) -> Sequence:
    """The hedged betting sequence for scores in [0, 1] in their order, shape (n,).

    For a candidate mean m two capitals bet on scores above and under it: K+ = prod(1 + min(l_t, c/m) (x_t - m)) and
    K- = prod(1 - min(l_t, c/(1-m)) (x_t - m)), l_t = sqrt(2 log(2/alpha) / (v_(t-1) t log(1+t))), v the running variance, begun
    at 1/4. m is excluded when max(K+, K-)/2 reaches 1/alpha. K+ falls with m and K- rises, so the ends are roots.

    Raises:
        ValueError: A score outside [0, 1], or a level that cannot be.
    """
    covers = Covers(covers)
    values = _scores(scores)
    bets = _bets(values, alpha_of(level))
    limit = -math.log(alpha_of(level)) - math.log(_HEDGE)

    def ends(of: Callable[[Floats], float]) -> tuple[float, float]:
        def above(m: float) -> float:
            return of(_log_capital(values, bets, m)) - limit

        def below(m: float) -> float:
            return of(_log_capital(1 - values, bets, 1 - m)) - limit

        lo = 0.0 if above(0.0) < 0 else bisect(above, 0.0, 1.0)
        hi = 1.0 if below(1.0) < 0 else bisect(lambda m: -below(m), 0.0, 1.0)
        return lo, hi

    if not values.size:
        return _sequence(values, (0.0, 1.0), (0.0, 1.0), level=level, method=Method.BETTING, covers=covers)
    last, running = ends(lambda capital: float(capital[-1])), ends(lambda capital: float(capital.max()))
    return _sequence(values, last, running, level=level, method=Method.BETTING, covers=covers)


def first_stop(observations: ArrayLike, half_width: float, *, sequence: Callable[..., Sequence], level: float = 0.95) -> int | None:
    """After how many observations the stop rule would have stopped; None: not yet. `sequence` is `robbins` or `betting`.

    The intersection of looks never widens, so the first stop is found by halving.
    """
    if not half_width > 0:
        raise ValueError(f"a half-width is above 0, not {half_width!r}")
    values = _scores(observations)

    def stops(n: int) -> bool:
        return sequence(values[:n], covers=Covers.NOTHING, level=level).narrow_enough(half_width)

    if not stops(len(values)):
        return None
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if stops(middle) else (middle + 1, high)
    return low


def _scores(observations: ArrayLike) -> Floats:
    values = np.asarray(observations, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"observations have the shape (n,), not {values.shape}")
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if wrong.size:
        raise ValueError(f"observation {int(wrong[0]) + 1} is {values[wrong[0]]}: scores lie between 0 and 1")
    return values


def _bets(values: Floats, alpha: float) -> Floats:
    """The bet before each score: it may depend on the earlier ones alone, shape (n,)."""
    t: Ints = np.arange(1, len(values) + 1)
    means = (0.5 + values.cumsum()) / (t + 1)
    spread = (0.25 + ((values - means) ** 2).cumsum()) / (t + 1)
    before = np.concatenate([[0.25], spread[:-1]])
    return np.asarray(np.sqrt(2 * math.log(2 / alpha) / (before * t * np.log1p(t))))


def _log_capital(values: Floats, bets: Floats, m: float) -> Floats:
    """Log of the capital that bets on a mean above m, after each score."""
    sizes = np.minimum(bets, _TRUNCATION / m) if m > 0 else bets
    return np.asarray(np.log1p(sizes * (values - m)).cumsum())


def _sequence(
    values: Floats, last: tuple[float, float], running: tuple[float, float], *, level: float, method: Method, covers: Covers
) -> Sequence:
    return Sequence(
        n=len(values),
        mean=math.fsum(values) / len(values) if values.size else None,
        lo=last[0],
        hi=last[1],
        running_lo=running[0],
        running_hi=running[1],
        level=level,
        method=method,
        covers=covers,
        note=EMPTY if running[0] > running[1] else "",
    )
