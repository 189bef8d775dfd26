"""Budgets for two arms that differ in variance or in price: how many runs of each resolve a difference of scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evalnoise.stats.budget import check_plan, detectable, smallest, z_sum
from evalnoise.stats.estimate import Covers

_MOST_PAIRS = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoArms:
    """Runs of both arms that resolve a difference, or why there are none."""

    runs_a: int | None
    """Runs of the first arm."""
    runs_b: int | None
    """Runs of the second arm."""
    cost: float | None
    """What both take together, in the unit of the prices; None without prices."""
    detectable: float | None
    """Minimum detectable effect of these runs."""
    ratio: float | None
    """Runs of the second per run of the first that cost least, before rounding; None without prices, or with a w of 0."""
    least_runs_a: int | None
    """Fewest runs of the first arm with which any number of runs of the second suffices."""
    covers: str
    """Always these tasks, new runs."""
    undefined: str
    """Why there are none; empty otherwise."""


def best_ratio(w_a: float, w_b: float, price_a: float, price_b: float) -> float | None:
    """R_b / R_a of the cheapest pair before rounding, sqrt(w_b price_a / (w_a price_b)); None where w_a is 0.

    From the smallest price_a R_a + price_b R_b at a given w_a/R_a + w_b/R_b (Lagrange).
    """
    _check_prices(price_a, price_b)
    return math.sqrt(w_b * price_a / (w_a * price_b)) if w_a > 0 else None


def runs_beside(
    w_a: float, w_b: float, n_tasks: int, delta: float, runs_a: int, *, alpha: float = 0.05, power: float = 0.8
) -> TwoArms:
    """Smallest R_b >= 1 with w_a/R_a + w_b/R_b <= N delta^2 / z^2, z = z_(1-alpha/2) + z_power, for a fixed R_a.

    Undefined where the first arm alone has more variance than that: no number of runs of the other one helps then.
    """
    check_plan(w_a, w_b, n_tasks, delta, alpha=alpha, power=power)
    if runs_a < 1:
        raise ValueError(f"an arm has at least 1 run, not {runs_a!r}")
    room = _room(n_tasks, delta, alpha, power)
    least = _least(w_a, w_b, room, delta)
    if runs_a < least:
        reason = f"no number of runs of the second arm suffices with {runs_a} of the first: the first alone needs at least {least}"
        return _none(least, reason)
    runs_b = _beside(w_a, w_b, room, runs_a, delta)
    return TwoArms(
        runs_a=runs_a,
        runs_b=runs_b,
        cost=None,
        detectable=detectable(w_a, w_b, n_tasks, runs_a, runs_b=runs_b, alpha=alpha, power=power),
        ratio=None,
        least_runs_a=least,
        covers=Covers.BENCHMARK,
        undefined="",
    )


def cheapest_pair(
    w_a: float,
    w_b: float,
    n_tasks: int,
    delta: float,
    *,
    price_a: float = 1.0,
    price_b: float = 1.0,
    alpha: float = 0.05,
    power: float = 0.8,
) -> TwoArms:
    """The pair (R_a, R_b) with the smallest price_a R_a + price_b R_b that resolves the difference; prices are per run.

    Exact: the cost of R_a with its real-valued R_b = w_b / (room - w_a/R_a) is convex, so all R_a that could be cheaper than a
    known pair lie between the roots of a quadratic, and each of them is tried with its smallest R_b. Of equal costs the pair
    with fewer runs counts, then the one with fewer of the first arm.
    """
    check_plan(w_a, w_b, n_tasks, delta, alpha=alpha, power=power)
    _check_prices(price_a, price_b)
    room = _room(n_tasks, delta, alpha, power)
    least = _least(w_a, w_b, room, delta)
    start = max(least, math.ceil((w_a + math.sqrt(w_a * w_b * price_b / price_a)) / room))
    known = price_a * start + price_b * _beside(w_a, w_b, room, start, delta)
    low, high = _roots((w_a, w_b), (price_a, price_b), room, known)
    first, last = max(least, math.floor(low) - 1), max(start, min(math.ceil(high) + 1, math.ceil(known / price_a)))
    if last - first > _MOST_PAIRS:
        raise ValueError(f"a difference of {delta!r} is too small to plan for")
    candidates = np.arange(first, last + 1)
    spare = room * (1 + 2e-12) - w_a / candidates
    # A guess in floating point, one too low rather than one too high; the few that could win are settled exactly below.
    guess = np.maximum(1, np.ceil(w_b / np.maximum(spare, 1e-300) * (1 - 1e-9)))
    costs = price_a * candidates + price_b * guess
    near = candidates[costs <= known * (1 + 1e-9)]
    pairs = [(int(a), _beside(w_a, w_b, room, int(a), delta)) for a in near]
    runs_a, runs_b = min(pairs, key=lambda pair: (price_a * pair[0] + price_b * pair[1], sum(pair), pair[0]))
    return TwoArms(
        runs_a=runs_a,
        runs_b=runs_b,
        cost=price_a * runs_a + price_b * runs_b,
        detectable=detectable(w_a, w_b, n_tasks, runs_a, runs_b=runs_b, alpha=alpha, power=power),
        ratio=best_ratio(w_a, w_b, price_a, price_b),
        least_runs_a=least,
        covers=Covers.BENCHMARK,
        undefined="",
    )


def _room(n_tasks: int, delta: float, alpha: float, power: float) -> float:
    """The largest w_a/R_a + w_b/R_b that resolves the difference."""
    z = z_sum(alpha, power)
    room = n_tasks * (delta / z) ** 2
    if room < 1e-290:
        raise ValueError(f"a difference of {delta!r} is too small to plan for")
    return room


def _least(w_a: float, w_b: float, room: float, delta: float) -> int:
    """Fewest runs of the first arm that leave any room for the second."""
    least = smallest(w_a / room, delta)
    return least + 1 if w_b > 0 and _beside_real(w_a, w_b, room, least) is None else least


def _beside_real(w_a: float, w_b: float, room: float, runs_a: int) -> float | None:
    """The real number of runs of the second arm; None where the first arm leaves nothing but rounding to it."""
    spare = room - w_a / runs_a
    return w_b / spare if spare > room * 1e-12 else None


def _beside(w_a: float, w_b: float, room: float, runs_a: int, delta: float) -> int:
    real = _beside_real(w_a, w_b, room, runs_a) if w_b > 0 else 0.0
    if real is None:
        raise ValueError(f"{runs_a} runs of the first arm leave nothing to the second")
    return smallest(real, delta)


def _roots(w: tuple[float, float], prices: tuple[float, float], room: float, cost: float) -> tuple[float, float]:
    """Between which R_a the real-valued cost is at most `cost`: price_a room x^2 - b x + cost w_a = 0."""
    (w_a, w_b), (price_a, price_b) = w, prices
    b = price_a * w_a + cost * room - price_b * w_b
    root = math.sqrt(max(0.0, b * b - 4 * price_a * room * cost * w_a))
    high = (b + root) / (2 * price_a * room)
    return (cost * w_a / (price_a * room * high) if high > 0 else 0.0), high


def _check_prices(*prices: float) -> None:
    for price in prices:
        if not (price > 0 and math.isfinite(price)):
            raise ValueError(f"a run has a price above 0, not {price!r}")


def _none(least: int, reason: str) -> TwoArms:
    return TwoArms(
        runs_a=None,
        runs_b=None,
        cost=None,
        detectable=None,
        ratio=None,
        least_runs_a=least,
        covers=Covers.BENCHMARK,
        undefined=reason,
    )
