"""Noise of single and paired scores, split into data and prediction noise; all pairs of many models by matrix products.

A model is an array of scores (N, K): K samples on each of N tasks. All variances divide by the count (ddof 0) and are then
corrected for the number of samples. Models may have different K, and a task of a model may have fewer samples than another: each
task counts once, and every formula below is a mean over tasks of unbiased parts, which is the paper's formula where all tasks
have the same K. Source: Wang 2025, "Measuring all the noises of LLM evals", section 3, appendix A.2, tables 1 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, erfc, stdtr

from evalnoise.stats.models.noise import BELOW_ZERO, NO_TASK, AllPairs, Noise, PairNoise
from evalnoise.stats.models.samples import Bools, Floats, Ints, Samples, on_one_denominator, samples_of, summable

_BLOCK = 2_000_000
"""Numbers in a block of the matrices of all pairs: bounds memory, changes no result."""
_ZERO, _ROUNDING = 1e-13, 1e-26
"""Shares of the mean square, of centred scores and of scores, under which a variance of floats is rounding, and 0."""


def single_noise(scores: ArrayLike, measured: ArrayLike | None = None) -> Noise:
    """Noise of one model's scores (N, K), `measured` (N, K) saying which samples there are.

    total = var A; data = var(mean A) - w/K; prediction = mean var(A, 1) + w/K = w, all ddof 0, w/K = mean var(A, 1) / (K-1).
    Source: Wang, table 1. With unequal K: total = var(means) + mean v, v the task's variance (ddof 0); data and prediction over
    the tasks with two samples; of_runs over all, a task with one sample having w for its variance. Raises ValueError for scores
    that are not finite.
    """
    s = samples_of(np.asarray(scores)[None], None if measured is None else np.asarray(measured)[None])
    # Against nothing: a model whose every sample is 0 adds no variance and leaves the difference as it is.
    nothing = Samples(runs=s.runs, sums=np.zeros_like(s.sums), squares=np.zeros_like(s.squares), unit=s.unit)
    found = _first(_joined(s, nothing))
    reason = {NO_TASK: "no task was measured"}
    return Noise(
        **{
            name: getattr(found, name)
            for name in ("n_tasks", "n_twice", "mean", "total", "data", "prediction", "of_mean", "of_runs")
        },
        undefined=reason.get(found.undefined, found.undefined),
        parts_undefined=reason.get(found.parts_undefined, found.parts_undefined),
        note=BELOW_ZERO if found.data is not None and found.data < 0 else "",
    )


def paired_noise(a: ArrayLike, b: ArrayLike, measured_a: ArrayLike | None = None, measured_b: ArrayLike | None = None) -> PairNoise:
    """Noise of the difference of two models' scores (N, K_A) and (N, K_B) on the same tasks; samples of the two are independent.

    total = var A + var B - 2 cov(mean A, mean B); data = var(mean A - mean B) - b; prediction = mean(var(A,1) + var(B,1)) + b;
    b = mean var(A,1)/(K_A-1) + mean var(B,1)/(K_B-1), all ddof 0. So prediction = w_A + w_B. Source: Wang, section 3.
    With unequal K, of_runs is the mean over all tasks of s2_A/K_A + s2_B/K_B; a task with one sample has its model's mean s2.

    Raises:
        ValueError: The arrays differ in tasks, hold what is no score, or are one array: a model against itself needs distinct
            samples (`against_itself`).
    """
    one, other = np.asarray(a), np.asarray(b)
    if one.ndim != 2 or other.ndim != 2 or len(one) != len(other):
        raise ValueError(f"two models need scores of shape (N, K) on the same N tasks, not {one.shape} and {other.shape}")
    if np.shares_memory(one, other):
        raise ValueError("the same samples twice: a model against itself needs distinct samples, or `against_itself`")
    stats = [
        samples_of(scores[None], None if known is None else np.asarray(known)[None])
        for scores, known in ((one, measured_a), (other, measured_b))
    ]
    return _first(_joined(*stats))


def sign_test(wins: int, losses: int) -> float | None:
    """Exact two-sided sign test of discordant counts: 2 P(X <= min) for X binomial (wins+losses, 1/2), at most 1; None for 0."""
    p = float(_sign_tests(np.array([wins]), np.array([losses]))[0])
    return None if np.isnan(p) else p


def _sign_tests(wins: Ints, losses: Ints) -> Floats:
    discordant = wins + losses
    tested = (wins >= 0) & (discordant > 0)
    tail = bdtr(np.minimum(wins, losses), np.maximum(discordant, 1), 0.5)
    return np.where(tested, np.minimum(1.0, 2 * tail), np.nan)


def _first(joined: Samples) -> PairNoise:
    return all_pairs(joined).pair(0)


def _joined(one: Samples, other: Samples) -> Samples:
    """Two sets of models on the same tasks as one, on one grid."""
    unit = int(np.lcm(one.unit, other.unit))
    sides = [s.on_unit(unit) for s in (one, other)]
    exact = all(s.exact for s in sides)
    return Samples(
        runs=np.concatenate([s.runs for s in sides]),
        sums=np.concatenate([s.sums for s in sides]),
        squares=np.concatenate([s.squares for s in sides]),
        unit=unit,
        spreads=None if exact else np.concatenate([s.spread for s in sides]).astype(np.float64),
    )


def all_pairs(samples: Samples) -> AllPairs:
    """Every pair of M models on the tasks that both have, by matrix products: no loop over pairs, memory in proportion to P.

    Every formula is `paired_noise`'s. Sums of scores on a grid are integers, so a difference that is the same in all tasks has a
    variance of exactly 0, and the order of tasks changes nothing.
    """
    tables = _Tables.of(samples)
    m = len(samples.runs)
    step = max(1, _BLOCK // max(1, m))
    parts = [_block(tables, start, min(m, start + step)) for start in range(0, m, step)]
    if not parts:
        parts = [_block(tables, 0, 0)]
    columns: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return AllPairs(**columns)


@dataclass(frozen=True, slots=True)
class _Known:
    """Which tasks of each model enter and its means there, masked once for all blocks; all (M, N)."""

    mask: Floats
    every: bool
    """Whether all enter: then no product is needed."""
    mean: Floats
    apart: Floats
    """The centred means, or the means: what variances are taken of."""
    squares: Floats
    """Of these."""

    @classmethod
    def of(cls, known: Bools, mean: Floats, centred: Floats | None) -> _Known:
        mask, every = known.astype(np.float64), bool(known.all())
        kept = mean if every else mean * mask
        apart = kept if centred is None else centred if every else centred * mask
        return cls(mask=mask, every=every, mean=kept, apart=apart, squares=apart * apart)


@dataclass(frozen=True, slots=True)
class _Tables:
    """Per model and task (M, N): which enter, and what is summed over tasks, each over its denominator."""

    once: _Known
    twice: _Known
    single: Floats
    uneven: bool
    """Whether some task has one sample: then the parts stand on other tasks than the total."""
    binary: bool
    most: Ints
    """Most samples of a task, shape (M,)."""
    denominator: int
    """Of the means."""
    centred: bool
    """Whether variances are of means less a number of each task and one of each model, which changes none of a difference."""
    within: tuple[Floats, int]
    """The task's variance, ddof 0."""
    s2: tuple[Floats, int]
    """The same, unbiased, where there are two samples."""
    s2_per_run: tuple[Floats, int]

    @classmethod
    def of(cls, s: Samples) -> _Tables:
        runs, unit = s.runs, s.unit
        n, n2 = np.maximum(runs, 1), np.maximum(runs, 2)
        spread, mean = s.spread, on_one_denominator(s.sums, n * unit)
        # Integers that are small enough for sums of their squares.
        exact = bool(np.all(mean[0] == np.rint(mean[0]))) and summable(float(np.abs(mean[0]).max(initial=0.0)), runs.shape[1])
        centred, uneven = None if exact else _centred(mean[0], runs >= 1), bool(np.any(runs == 1))
        once = _Known.of(runs >= 1, mean[0], centred)
        return cls(
            once=once,
            twice=_Known.of(runs >= 2, mean[0], centred) if uneven else once,
            single=(runs == 1).astype(np.float64),
            uneven=uneven,
            binary=s.binary,
            most=runs.max(axis=1, initial=0),
            denominator=mean[1],
            centred=not exact,
            within=_masked(on_one_denominator(spread, n * n * unit**2), runs >= 1),
            s2=_masked(on_one_denominator(spread, n2 * (n2 - 1) * unit**2), runs >= 2),
            s2_per_run=_masked(on_one_denominator(spread, n2 * n2 * (n2 - 1) * unit**2), runs >= 2),
        )


def _masked(table: tuple[Floats, int], known: Bools) -> tuple[Floats, int]:
    return (table[0] if known.all() else np.where(known, table[0], 0.0)), table[1]


def _block(t: _Tables, start: int, stop: int) -> dict[str, NDArray[np.float64] | Ints]:
    """Columns of the pairs whose first model is one of these rows."""
    rows = np.arange(start, stop)
    a, b = (found + start for found in np.nonzero(np.arange(start, len(t.most))[None, :] > rows[:, None]))
    here = slice(start, stop), slice(start, None)
    at = a - start, b - start
    sums = _over_tasks(t, t.once, here, at)
    n, twice = sums["n"], _where_known(t.twice.mask, t.twice, here, at)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        enough, parts = n >= 2, twice >= 2
        score_a, score_b = (np.where(n > 0, sums[side] / (n * t.denominator), np.nan) for side in ("a", "b"))
        difference = np.where(n > 0, (sums["a"] - sums["b"]) / (n * t.denominator), np.nan)
        of_mean = np.where(enough, sums["variance"], np.nan)
        within = _mean_of(t.within, t.once, here, at, n)
        prediction = _mean_of(t.s2, t.twice, here, at, twice)
        of_runs = of_runs_twice = _mean_of(t.s2_per_run, t.twice, here, at, twice)
        spread = sums["variance"]
        if t.uneven:
            of_runs, spread = _of_runs(t, here, at, n), _over_tasks(t, t.twice, here, at)["variance"]
        z, z_runs = _ratio(difference, of_mean, n), _ratio(difference, of_runs, n)
        q_a, q_b = ((sums[side] * t.denominator - sums["product"]) / (n * float(t.denominator) ** 2) for side in ("a", "b"))
    single = (t.most[a] <= 1) & (t.most[b] <= 1) & t.binary
    wins, losses = (np.where(single, np.rint(np.nan_to_num(q) * n), -1).astype(np.int64) for q in (q_a, q_b))
    won = t.binary & (n > 0)
    return {
        "a": a,
        "b": b,
        "n_tasks": n.astype(np.int64),
        "n_twice": twice.astype(np.int64),
        "score_a": score_a,
        "score_b": score_b,
        "mean": difference,
        "total": np.where(enough, of_mean + within, np.nan),
        "data": np.where(parts, spread - of_runs_twice, np.nan),
        "prediction": np.where(twice > 0, prediction, np.nan),
        "of_mean": of_mean,
        "of_runs": np.where(n > 0, of_runs, np.nan),
        "q_a": np.where(won, q_a, np.nan),
        "q_b": np.where(won, q_b, np.nan),
        "wins": wins,
        "losses": losses,
        "z": z,
        "p_value": _paired_t(z, n),
        "z_runs": z_runs,
        "p_runs": erfc(np.abs(z_runs) / np.sqrt(2.0)),
        "p_sign": _sign_tests(wins, losses),
    }


def _centred(means: Floats, known: Bools) -> Floats:
    """Means less those of their tasks over the models, less those of what is left of their models over the tasks."""
    for axis in (0, 1):
        middle = np.where(known, means, 0.0).sum(axis=axis, keepdims=True) / np.maximum(known.sum(axis=axis, keepdims=True), 1)
        means = means - middle
    return np.where(known, means, 0.0)


_Here = tuple[slice, slice]
_At = tuple[Ints, Ints]


def _between(left: Floats, right: Floats, here: _Here) -> Floats:
    """Sums over tasks of the products, for every first model with every later one."""
    return np.asarray(left[here[0]] @ right[here[1]].T)


def _where_known(x: Floats, known: _Known, here: _Here, at: _At) -> tuple[Floats, Floats]:
    """Per pair: the first model's sum over the tasks that the second has, and the second's over those that the first has."""
    if known.every:
        sums = x.sum(axis=1)
        return sums[at[0] + here[1].start], sums[at[1] + here[1].start]
    return _between(x, known.mask, here)[at], _between(known.mask, x, here)[at]


def _over_tasks(t: _Tables, known: _Known, here: _Here, at: _At) -> dict[str, Floats]:
    """Sums over the tasks that both have: their number, the means' sums, sum of products, variance of the difference (ddof 0)."""
    x, y = known.mean, known.apart
    n = _where_known(known.mask, known, here, at)[0]
    first, second = _where_known(x, known, here, at)
    product = _between(y, y, here)[at]
    squares = np.add(*_where_known(known.squares, known, here, at))
    difference = np.subtract(*_where_known(y, known, here, at)) if t.centred else first - second
    spread = n * (squares - 2 * product) - difference * difference
    if t.centred:
        # Floats cancel to something near 0 where a difference is the same in all tasks.
        rounding = _ROUNDING * np.add(*_where_known(x * x, known, here, at))
        spread = np.where(spread <= n * np.maximum(_ZERO * squares, rounding), 0.0, spread)
        product = _between(x, x, here)[at] if t.binary else product
    return {
        "n": n,
        "a": first,
        "b": second,
        "product": product,
        "variance": spread / np.square(np.maximum(n, 1) * float(t.denominator)),
    }


def _mean_of(table: tuple[Floats, int], known: _Known, here: _Here, at: _At, n: Floats) -> Floats:
    """Mean over the common tasks of the sum of both models' parts."""
    return np.asarray(np.add(*_where_known(table[0], known, here, at)) / (n * float(table[1])))


def _of_runs(t: _Tables, here: _Here, at: _At, n: Floats) -> Floats:
    """Mean over all common tasks of s2/K of both; a task with one sample has its model's mean s2; NaN without one."""
    total = np.add(*_where_known(t.s2_per_run[0], t.once, here, at)) / float(t.s2_per_run[1])
    sides = [_where_known(x, t.once, here, at) for x in (t.s2[0], t.twice.mask, t.single)]
    for s2, twice, single in zip(*sides, strict=True):
        total = total + s2 / (twice * float(t.s2[1])) * single
    return np.asarray(total / n)


def _ratio(difference: Floats, variance: Floats, n: Floats) -> Floats:
    """Difference over its standard error; NaN where there is none, or where it is 0."""
    return np.where(variance > 0, difference / np.sqrt(np.where(variance > 0, variance, 1.0) / np.maximum(n, 1)), np.nan)


def _paired_t(z: Floats, n: Floats) -> Floats:
    """Two-sided p of the paired t over N tasks: t = mean / sqrt(of_mean / (N-1)) = z sqrt((N-1) / N)."""
    df = np.maximum(n - 1, 1)
    return np.asarray(2 * stdtr(df, -np.abs(z) * np.sqrt(df / np.maximum(n, 1))))


def pairs_of(found: AllPairs) -> Iterator[PairNoise]:
    """Every pair, one after the other."""
    return (found.pair(index) for index in range(len(found)))
