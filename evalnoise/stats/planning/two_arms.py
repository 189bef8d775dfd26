"""Budgets for two arms that differ in variance or in price: how many runs of each resolve a difference of scores."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats.bootstrap import RESAMPLES, dirichlet_task_means, joint_task_bootstrap, percentile_interval
from evalnoise.stats.contrasts import NO_COMMON_PAIR
from evalnoise.stats.estimate import Covers, Estimate, Method, joined
from evalnoise.stats.intervals import GAFFKE_FIRST, GAFFKE_NOTE, ONE_TASK, above_note, gaffke_ends
from evalnoise.stats.limits import MAX_VARIANCE, largest_s2
from evalnoise.stats.planning.budget import CAUTIOUS_LEVEL, check_plan, detectable, smallest, z_sum
from evalnoise.stats.planning.population import twice_in_both
from evalnoise.stats.variance import Floats, task_variances, within_task_variance

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPilot:
    """What two arms together say about the noise of their difference: a budget for the mean w is one for their own w."""

    mean_w: Estimate
    """(w_a + w_b)/2 on the tasks that both have measured twice, with the percentile interval of the joint task bootstrap."""
    limit: Estimate
    """The same with its one-sided Gaffke limit, for the cautious budget."""
    w_a: float | None
    """w of the first arm on these tasks."""
    w_b: float | None
    """w of the second."""
    variable_tasks: int
    """Tasks that varied in either arm."""


def pair_pilot(
    passes_a: ArrayLike,
    runs_a: ArrayLike,
    passes_b: ArrayLike,
    runs_b: ArrayLike,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    limit_level: float = CAUTIOUS_LEVEL,
) -> PairPilot:
    """The mean w of two arms with its interval and its limit, for counts of shape (N,), row i being the same task in all.

    Each task's value is (s2_a + s2_b)/2, so that arms that vary on the same tasks are not taken to be independent. The interval is
    Gaffke's where fewer than 20 tasks varied, whose pseudo-task has the mean of the two largest s2. Covers new tasks.
    """
    ka, na, kb, nb = twice_in_both(passes_a, runs_a, passes_b, runs_b)
    w_a, w_b = within_task_variance(ka, na).w, within_task_variance(kb, nb).w
    base = Estimate(
        value=None if w_a is None or w_b is None else (w_a + w_b) / 2,
        method=Method.PERCENTILE,
        n_tasks=len(na),
        n_replicates=int(min(na.min(), nb.min())) if len(na) else 0,
        undefined="" if len(na) else NO_COMMON_PAIR,
    )
    limit = dataclasses.replace(base, method=Method.GAFFKE)
    varied = int(np.count_nonzero((ka * (na - ka) > 0) | (kb * (nb - kb) > 0)))
    if len(na):
        s2 = (task_variances(ka, na) + task_variances(kb, nb)) / 2
        top = (largest_s2(int(na.min())) + largest_s2(int(nb.min()))) / 2
        draws = dirichlet_task_means(s2, top, resamples=resamples, seed=seed)
        hi = min(MAX_VARIANCE, float(np.quantile(draws, limit_level)))
        limit = dataclasses.replace(limit, seed=seed, resamples=resamples)
        limit = limit.spanning(0.0, hi, level=limit_level, covers=Covers.POPULATION, note=f"one-sided; {GAFFKE_NOTE}")
        few = top if varied < GAFFKE_FIRST else None
        base = base.lacking(ONE_TASK) if len(na) == 1 else _spanned(base, s2, few, seed=seed, resamples=resamples, level=level)
    return PairPilot(mean_w=base, limit=limit, w_a=w_a, w_b=w_b, variable_tasks=varied)


def _spanned(base: Estimate, s2: Floats, top: float | None, *, seed: int, resamples: int, level: float) -> Estimate:
    """With Gaffke's interval where a largest value `top` is given, else with the percentile interval."""
    if top is None:
        lo, hi = percentile_interval(joint_task_bootstrap(s2[:, None], resamples=resamples, seed=seed)[:, 0], level=level)
        note = ""
    else:
        base = dataclasses.replace(base, method=Method.GAFFKE)
        lo, hi = gaffke_ends(s2, (0.0, top), seed=seed, resamples=resamples, level=level)
        note = GAFFKE_NOTE
    base = dataclasses.replace(base, seed=seed, resamples=resamples)
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=joined(above_note(base.value), note))


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


def pair_for(
    w: tuple[float, float],
    n_tasks: int,
    delta: float,
    *,
    runs_a: int | None = None,
    prices: tuple[float, float] | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> TwoArms:
    """The runs beside a fixed number of the first arm, or where that is None the cheapest pair; without prices the fewest runs."""
    if runs_a is not None:
        return runs_beside(*w, n_tasks, delta, runs_a, alpha=alpha, power=power)
    price_a, price_b = prices or (1.0, 1.0)
    return cheapest_pair(*w, n_tasks, delta, price_a=price_a, price_b=price_b, alpha=alpha, power=power)


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
