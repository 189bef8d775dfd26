"""Power by simulation: how often a test finds a difference of scores, from rates that vary as much as the runs that were seen.

Raw pass rates k/R vary too little within a task: their mean p (1-p) is w (R-1)/R, because R runs of a task agree more with their
own mean than with the true rate. A simulation on them promises 80 % where there are 78, 71, 63 and 51 % at R = 20, 5, 3 and 2. So
rates are drawn together here, towards the score, until their mean p (1-p) is w.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, ndtri, xlog1py, xlogy

from evalnoise.stats.estimate import Covers, joined
from evalnoise.stats.limits import MAX_VARIANCE
from evalnoise.stats.planning.budget import check_plan, formula_power
from evalnoise.stats.resampling import stream
from evalnoise.stats.variance import ONE_RUN, Floats, Ints, checked_counts, clopper_pearson, harmonic_mean, within_task_variance

SIMULATIONS = 4_000
"""Default number of simulated comparisons: the power is then known to 1.3 points."""
BLOCK = 500
"""Simulations per random stream. Part of the result."""

_POWER = 40
"""Key of these random streams."""
NOTHING_VARIES = "nothing varies at these rates: such a simulation proves nothing about the noise"


class Effect(StrEnum):
    """How a difference of scores is spread over tasks. The second arm is the worse one."""

    SPREAD = "spread"
    """Every task loses the same, as far as it has it to lose."""
    CONCENTRATED = "concentrated"
    """A few tasks that passed break altogether."""
    MIXED = "mixed"
    """Twice as much is broken as the difference, and half of that is repaired elsewhere."""


class PowerTest(StrEnum):
    """Which test is asked."""

    Z = "z test"
    """|difference| > z se, se from the runs of the comparison itself; an arm of one run takes w from the pilot."""
    CMH = "cmh"
    """Cochran-Mantel-Haenszel by task, in the normal approximation without continuity correction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """A pass rate for each task to simulate with."""

    values: Floats
    """Shape (N,): the tasks that were measured at least twice."""
    w: float
    """Their mean p (1-p)."""
    w_estimate: float
    """The estimate that it stands for; larger only where no rates have so much variance."""
    note: str
    """What could not be kept; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AchievedPower:
    """A power by simulation, with what the formula promises beside it."""

    test: str
    """A `PowerTest`."""
    effect: str
    """An `Effect`."""
    delta: float
    """Difference of scores; at 0 the value is the error level."""
    alpha: float
    """Two-sided error level of the test."""
    runs_a: int
    """Runs per task of the first arm; the smallest, if they differ."""
    most_runs_a: int
    """The most runs of a task of the first arm: every task is simulated with its own."""
    runs_b: int
    """Runs per task of the second arm; the smallest, if they differ."""
    most_runs_b: int
    """The most runs of a task of the second arm."""
    value: float | None
    """Share of simulations with a significant difference in the right direction (at delta 0: in any); None: undefined."""
    lo: float | None
    """Lower end for it, from the number of simulations alone (Clopper-Pearson, 95 %)."""
    hi: float | None
    """Upper end."""
    formula: float | None
    """What the formula promises for two arms of the pilot's w; None where w is undefined or nothing varied."""
    w: float | None
    """The pilot's w."""
    w_lowered: float | None
    """What w is in the second arm, once the effect is there; the formula takes it to be the pilot's."""
    n_tasks: int
    """Tasks that were measured at least twice; where there are none, tasks that were measured."""
    simulations: int
    """Simulated comparisons."""
    seed: int
    """Seed."""
    covers: str
    """New runs of these tasks."""
    undefined: str
    """Why there is no value; empty otherwise."""
    note: str
    """When not to trust it; empty otherwise."""


def planning_rates(passes: ArrayLike, runs: ArrayLike) -> Rates:
    """Rates m + c (k/n - m) with m the mean of k/n and c such that the mean of p (1-p) is w; counts of shape (N,).

    c^2 = (m (1-m) - w) / var(k/n, ddof 0), and c <= 1, because s2 >= p (1-p) for every task: so the score stays, rates stay in
    [0, 1], and the variance is neither shrunk nor stretched. Where w > m (1-m), all rates are alike, and where w > 1/4 they are
    1/2. Tasks with less than two runs are left out; ValueError if that leaves none.
    """
    k, n = checked_counts(passes, runs)
    k, n = k[n >= 2], n[n >= 2]
    w = within_task_variance(k, n).w
    if w is None:
        raise ValueError(ONE_RUN)
    p = k / n
    m = float(p.mean())
    spread, left = float(np.mean((p - m) ** 2)), m * (1 - m) - w
    if left >= 0:
        c = min(1.0, math.sqrt(left / spread)) if spread > 0 else 1.0
        # Where every rate is 0 or 1 already, nothing may be moved, not even by rounding.
        values, note = (p if w == 0 else np.clip(m + c * (p - m), 0.0, 1.0)), ""
    else:
        away = math.sqrt(max(0.0, MAX_VARIANCE - w))
        values = np.full(len(p), 0.5 + (away if m >= 0.5 else -away))
        note = "the runs vary more than rates with this score can: all rates are alike, with another mean"
        if w > MAX_VARIANCE:
            note = "w is above 1/4, which no true w is: all rates are 1/2"
    return Rates(values=np.asarray(values), w=float(np.mean(values * (1 - values))), w_estimate=w, note=note)


def lowered(rates: ArrayLike, delta: float, effect: Effect | str) -> Floats | None:
    """The rates (N,) of an arm whose score is `delta` lower, the loss spread as `effect` says; None where that cannot be.

    Tasks break from the highest rate down and are repaired from the lowest up; the last one of each only as far as is needed.
    """
    effect = Effect(effect)
    a = np.asarray(rates, dtype=np.float64)
    total = delta * len(a)
    if effect == Effect.SPREAD:
        return _spread(a, total)
    loss, gain = (total, 0.0) if effect == Effect.CONCENTRATED else (2 * total, total)
    falls, rises = np.argsort(-a, kind="stable"), np.argsort(a, kind="stable")
    broken, repaired = _filled(a[falls], loss), _filled(1 - a[rises], gain)
    if broken is None or repaired is None or np.count_nonzero(broken) + np.count_nonzero(repaired) > len(a):
        return None
    b = a.copy()
    b[falls] -= broken
    b[rises] += repaired
    return np.clip(b, 0.0, 1.0)


def _spread(a: Floats, total: float) -> Floats | None:
    """Every rate less the same amount, none below 0; the amounts taken add up to `total`."""
    if total > float(a.sum()) * (1 + 1e-12):
        return None
    ordered = np.sort(a)
    before = np.concatenate([[0.0], np.cumsum(ordered)[:-1]])
    level = (total - before) / np.arange(len(a), 0, -1)
    enough = np.flatnonzero(level <= ordered)
    return np.asarray(a - np.minimum(a, level[enough[0]] if len(enough) else 1.0))


def _filled(room: Floats, total: float) -> Floats | None:
    """What is taken of each room, in order, until `total` is reached; None where there is not so much."""
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    taken = np.clip(total - before, 0.0, room)
    return taken if float(room.sum()) >= total * (1 - 1e-12) else None


def achieved_power(
    passes: ArrayLike,
    runs: ArrayLike,
    *,
    delta: float,
    runs_a: int | Ints,
    runs_b: int | Ints | None = None,
    effect: Effect | str = Effect.SPREAD,
    tests: Sequence[PowerTest | str] = (PowerTest.Z, PowerTest.CMH),
    alpha: float = 0.05,
    simulations: int = SIMULATIONS,
    seed: int,
) -> tuple[AchievedPower, ...]:
    """Power of tests of two arms on the same tasks by simulation, from a pilot's counts of shape (N,); one result per test.

    Both tests see the same simulated runs. The first arm has the pilot's rates (`planning_rates`), the second has them lowered by
    `delta`. Random streams are keyed by blocks of 500 simulations, so that the first m of n are those of m.

    Args:
        passes: Passes of each task in the pilot.
        runs: Measured runs of each task.
        delta: Difference of scores, 0 for the error level.
        runs_a: Runs of the first arm in the comparison: one number, or one for each task, shape (N,).
        runs_b: Runs of the second; as many when None.
        effect: How the difference is spread over tasks.
        tests: Which tests.
        alpha: Two-sided error level.
        simulations: Number of simulations.
        seed: Seed, 0 or more.
    """
    effect, chosen = Effect(effect), tuple(PowerTest(test) for test in tests)
    pilot = within_task_variance(passes, runs)
    w = 0.0 if pilot.w is None else min(pilot.w, 0.5)
    check_plan(w, w, max(1, pilot.n_tasks), delta or 1.0, alpha=alpha, power=0.5 + alpha / 4)
    planned = tuple(_planned(each, runs) for each in (runs_a, runs_a if runs_b is None else runs_b))
    least = [int(each.min()) for each in planned]
    if min(*least, simulations) < 1:
        raise ValueError(f"runs and simulations are at least 1, not {min(*least, simulations)!r}")
    promised = None
    if pilot.w:
        means = [harmonic_mean(each) for each in planned]
        promised = formula_power(w, w, pilot.n_tasks, delta, means[0], runs_b=means[1], alpha=alpha) if delta else alpha
    found: dict[PowerTest, int] = {}
    undefined, note, w_lowered = pilot.undefined, "", None
    if not undefined:
        rates = planning_rates(passes, runs)
        other = lowered(rates.values, delta, effect)
        undefined = _impossible(rates, other, delta, effect)
        note = rates.note
        if other is not None and not undefined:
            w_lowered = float(np.mean(other * (1 - other)))
            strata = _strata((rates.values, other), planned, rates.w)
            found = _hits(strata, chosen, alpha=alpha, both_sides=delta == 0, simulations=simulations, seed=seed)
    results = []
    for test in chosen:
        ends = clopper_pearson(found[test], simulations) if test in found else (None, None)
        results.append(
            AchievedPower(
                test=test,
                effect=Effect(effect),
                delta=delta,
                alpha=alpha,
                runs_a=least[0],
                most_runs_a=int(planned[0].max()),
                runs_b=least[1],
                most_runs_b=int(planned[1].max()),
                value=found[test] / simulations if test in found else None,
                lo=ends[0],
                hi=ends[1],
                formula=promised,
                w=pilot.w,
                w_lowered=w_lowered,
                n_tasks=pilot.n_tasks or int(np.count_nonzero(np.asarray(runs))),
                simulations=simulations,
                seed=seed,
                covers=Covers.BENCHMARK if test in found else Covers.NOTHING,
                undefined=undefined,
                note=joined(note),
            )
        )
    return tuple(results)


def _planned(given: int | Ints, runs: ArrayLike) -> Ints:
    """Runs of each task that is simulated: of those with two runs in the pilot; of all that were measured, where none has two."""
    n = np.asarray(runs)
    each = np.broadcast_to(np.asarray(given, dtype=np.int64), n.shape)
    kept = each[n >= max(1, min(2, int(n.max(initial=0))))]
    return kept if kept.size else np.atleast_1d(np.asarray(given, dtype=np.int64))


def _impossible(rates: Rates, other: Floats | None, delta: float, effect: Effect | str) -> str:
    if other is None:
        score = float(rates.values.mean())
        return f"a score of {score:.4f} on {len(rates.values)} tasks cannot fall by {delta!r} in the way {Effect(effect)!s}"
    nothing = not np.any((rates.values * (1 - rates.values)) > 0) and not np.any((other * (1 - other)) > 0)
    return NOTHING_VARIES if nothing else ""


@dataclass(frozen=True, slots=True)
class _Arms:
    """Two arms to simulate on tasks of the same runs."""

    a: Floats
    b: Floats
    runs_a: int
    runs_b: int
    w: float


def _strata(rates: tuple[Floats, Floats], runs: tuple[Ints, ...], w: float) -> list[_Arms]:
    """The tasks by their runs in the two arms."""
    pairs, place = np.unique(np.column_stack(runs), axis=0, return_inverse=True)
    rows = [place.ravel() == i for i in range(len(pairs))]
    return [_Arms(rates[0][at], rates[1][at], int(a), int(b), w) for at, (a, b) in zip(rows, pairs, strict=True)]


def _hits(
    strata: Sequence[_Arms], tests: tuple[PowerTest, ...], *, alpha: float, both_sides: bool, simulations: int, seed: int
) -> dict[PowerTest, int]:
    """How many simulations each test calls significant."""
    z = float(-ndtri(alpha / 2))
    hits = dict.fromkeys(tests, 0)
    for parts in zip(*(_simulated(arms, simulations, seed, i) for i, arms in enumerate(strata)), strict=True):
        for test in tests:
            statistic = _statistic(test, parts, strata)
            hits[test] += int(np.count_nonzero((np.abs(statistic) if both_sides else statistic) > z))
    return hits


def _statistic(test: PowerTest, parts: Sequence[Floats], strata: Sequence[_Arms]) -> Floats:
    """The statistic of each simulation, from its sums (up to 500, 5) in every stratum; 0 where the variance is 0: no proof."""
    moments = [(_z if test == PowerTest.Z else _cmh)(totals, arms) for totals, arms in zip(parts, strata, strict=True)]
    excess, squared = (np.sum([one[i] for one in moments], axis=0) for i in (0, 1))
    return np.asarray(np.divide(excess, np.sqrt(squared), out=np.zeros(len(squared)), where=squared > 0))


def _z(totals: Floats, arms: _Arms) -> tuple[Floats, Floats]:
    """N (score a - score b), and N^2 se^2 = sum of s2_a/R_a + s2_b/R_b of the simulated runs."""
    squared = np.zeros(len(totals))
    for runs, products in ((arms.runs_a, totals[:, 2]), (arms.runs_b, totals[:, 3])):
        squared += (products / (runs * (runs - 1)) if runs > 1 else arms.w * len(arms.a)) / runs
    return totals[:, 0] / arms.runs_a - totals[:, 1] / arms.runs_b, squared


def _cmh(totals: Floats, arms: _Arms) -> tuple[Floats, Floats]:
    """Sum of k_a minus its mean given each task's passes, and its hypergeometric variance."""
    both = arms.runs_a + arms.runs_b
    excess = (totals[:, 0] * arms.runs_b - totals[:, 1] * arms.runs_a) / both
    variance = arms.runs_a * arms.runs_b * totals[:, 4] / (both * both * (both - 1))
    return excess, variance


def _features(a: NDArray[np.int64], b: NDArray[np.int64], arms: _Arms) -> tuple[NDArray[np.int64], ...]:
    """What is summed over tasks: k_a, k_b, k_a (R_a-k_a), k_b (R_b-k_b) and m (R_a+R_b-m) with m = k_a + k_b."""
    both = a + b
    return a, b, a * (arms.runs_a - a), b * (arms.runs_b - b), both * (arms.runs_a + arms.runs_b - both)


def _simulated(arms: _Arms, simulations: int, seed: int, stratum: int = 0) -> Iterator[Floats]:
    """Sums of the features over tasks, shape (up to 500, 5), block by block.

    Tasks of one pair of rates are drawn together: as counts of the pairs (k_a, k_b) where there are more tasks than such pairs, so
    that the cost does not grow with N, and one by one otherwise.
    """
    pairs, counts = np.unique(np.column_stack([arms.a, arms.b]), axis=0, return_counts=True)
    cells = (arms.runs_a + 1) * (arms.runs_b + 1)
    many = counts > cells
    single = np.repeat(pairs[~many], counts[~many], axis=0)
    grid = np.divmod(np.arange(cells if many.any() else 0), arms.runs_b + 1)
    features = np.column_stack(_features(grid[0], grid[1], arms)).astype(np.float64)
    groups = [(int(n), *_ordered(pair, arms, features)) for pair, n in zip(pairs[many], counts[many], strict=True)]
    for block, start in enumerate(range(0, simulations, BLOCK)):
        generator = stream(seed, (_POWER, stratum) if stratum else (_POWER,), block)
        totals = np.zeros((BLOCK, 5))
        for n, shares, values in groups:
            totals += generator.multinomial(n, shares, size=BLOCK).astype(np.float64) @ values
        if len(single):
            a = generator.binomial(arms.runs_a, single[:, 0], size=(BLOCK, len(single)))
            b = generator.binomial(arms.runs_b, single[:, 1], size=(BLOCK, len(single)))
            totals += np.column_stack([feature.sum(axis=1) for feature in _features(a, b, arms)])
        yield totals[: simulations - start]


def _ordered(pair: Floats, arms: _Arms, features: Floats) -> tuple[Floats, Floats]:
    """Chances of the pairs (k_a, k_b) and their features, the likeliest first: a multinomial draw ends with its last task."""
    chances = np.outer(_binomial(arms.runs_a, float(pair[0])), _binomial(arms.runs_b, float(pair[1]))).ravel()
    order = np.argsort(-chances, kind="stable")
    order = order[chances[order] > 0]
    return chances[order] / chances[order].sum(), features[order]


def _binomial(runs: int, p: float) -> Floats:
    """Chances of 0 to `runs` passes."""
    k = np.arange(runs + 1)
    ways = gammaln(runs + 1) - gammaln(k + 1) - gammaln(runs - k + 1)
    return np.asarray(np.exp(ways + xlogy(k, p) + xlog1py(runs - k, -p)))
