"""Which tasks carry the noise: w and contrasts without each task, and how concentrated the within-task variance is.

Counts are integers, so every number here is exact up to its last rounding; of scores too, where they lie on a grid
(`models.samples`). Tasks with the same counts have the same influence, so the exact arithmetic is done once per distinct pattern
of counts and its cost does not grow with the number of tasks. For scores of 0 and 1 both forms give the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats.models.samples import samples_of
from evalnoise.stats.patterns import distinct_rows
from evalnoise.stats.variance import ONE_RUN, Floats, Ints, checked_counts

ONE_LEFT = "one task: nothing is left without it"
NONE_VARIED = "no task varied: there is no noise to carry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence:
    """What each task does to w. Arrays have one entry per task that entered, in the order given."""

    tasks: Ints
    """Rows of the tasks with at least two measured runs, shape (M,): only they enter."""
    s2: Floats
    """Each task's sample variance, of outcomes k (n-k) / (n (n-1)), shape (M,)."""
    share: Floats | None
    """Its share of the sum of s2, shape (M,); None when nothing varied."""
    without: Floats | None
    """w of the other tasks, shape (M,); None when there is no other."""
    z: Floats | None
    """(s2 - w) in standard deviations (ddof 1) of s2 over tasks, shape (M,); None when all have the same s2."""
    w: float | None
    """w of all of them."""
    undefined: str
    """Why `w` is None, or else `without`, or else `share`; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Concentration:
    """How many tasks carry the noise."""

    effective: float | None
    """(sum s2)^2 / sum s2^2: as many tasks of equal variance would be as concentrated. 1 to `variable_tasks`."""
    half: Ints
    """Rows of the smallest set of tasks that holds half of the sum of s2; the largest first, of equal ones the earlier."""
    most: Ints
    """The same for 80 % of the sum."""
    variable_tasks: int
    """Tasks whose runs differ: that both passed and failed."""
    n_tasks: int
    """Tasks with at least two measured runs."""
    n_replicates: int
    """Runs per such task; the smallest, if they differ."""
    undefined: str
    """Why `effective` is None; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastInfluence:
    """What each task does to a difference of two conditions."""

    tasks: Ints
    """Rows of the tasks that both conditions have, shape (M,)."""
    value: float | None
    """The difference, first condition minus second, over all of them."""
    without: Floats | None
    """The difference over the others, shape (M,); None when there is no other."""
    undefined: str
    """Why `value` or `without` is None; empty otherwise."""


def influence(passes: ArrayLike, runs: ArrayLike) -> Influence:
    """What each task does to w: w without it, its share of the sum, and how far out it lies.

    At equal R, w without a task is the integer sum k(R-k) less the task's own, over (N-1) R (R-1). Source: Noise Floor, section
    5.1 (w without Mbpp/271).

    Args:
        passes: Passes of each task, shape (N,).
        runs: Measured runs of each task, shape (N,).

    Raises:
        ValueError: The counts cannot be.
    """
    k, n = checked_counts(passes, runs)
    return _influence(np.flatnonzero(n >= 2), *_noise_of_counts(k, n))


def influence_of_scores(scores: ArrayLike, measured: ArrayLike) -> Influence:
    """The same for scores in [0, 1] of shape (N, R) and which of them were measured: s2 is their sample variance (ddof 1).

    Raises:
        ValueError: Shapes differ, or a measured score is no finite number.
    """
    found = _Scores(scores, measured)
    return _influence(np.flatnonzero(found.runs >= 2), *found.noise)


def _influence(tasks: Ints, tops: NDArray[Any], bottoms: Ints) -> Influence:
    """From the s2 of all tasks as fractions, of which only those of `tasks` count."""
    if not tasks.size:
        empty = np.empty(0)
        return Influence(tasks=tasks, s2=empty, share=None, without=None, z=None, w=None, undefined=ONE_RUN)
    values, inverse, counts = _distinct(tops[tasks], bottoms[tasks])
    total = _total(values, counts)
    spread = _squared_spread(values, counts)
    one = tasks.size == 1
    return Influence(
        tasks=tasks,
        s2=_spread_out(values, inverse),
        share=_spread_out([value / total for value in values], inverse) if total else None,
        without=None if one else _spread_out([(total - value) / (tasks.size - 1) for value in values], inverse),
        z=_spread_out([value - total / tasks.size for value in values], inverse) / math.sqrt(spread) if spread else None,
        w=float(total / tasks.size),
        undefined=ONE_LEFT if one else ("" if total else NONE_VARIED),
    )


def concentration(passes: ArrayLike, runs: ArrayLike) -> Concentration:
    """The effective number of tasks that carry w, (sum s2)^2 / sum s2^2, and the tasks that carry half and 80 % of it.

    Args:
        passes: Passes of each task, shape (N,).
        runs: Measured runs of each task, shape (N,).

    Raises:
        ValueError: The counts cannot be.
    """
    k, n = checked_counts(passes, runs)
    return _concentration(n, *_noise_of_counts(k, n))


def concentration_of_scores(scores: ArrayLike, measured: ArrayLike) -> Concentration:
    """The same for scores in [0, 1] of shape (N, R) and which of them were measured; ValueError as of `influence_of_scores`."""
    found = _Scores(scores, measured)
    return _concentration(found.runs, *found.noise)


def _concentration(n: Ints, tops: NDArray[Any], bottoms: Ints) -> Concentration:
    tasks = np.flatnonzero(n >= 2)
    none: Ints = np.empty(0, dtype=np.int64)
    if not tasks.size:
        return Concentration(
            effective=None, half=none, most=none, variable_tasks=0, n_tasks=0, n_replicates=0, undefined=ONE_RUN
        )  # fmt: skip
    values, inverse, counts = _distinct(tops[tasks], bottoms[tasks])
    total = _total(values, counts)
    squares = _total([value * value for value in values], counts)
    return Concentration(
        effective=float(total * total / squares) if total else None,
        half=tasks[_carriers(values, inverse, Fraction(1, 2))] if total else none,
        most=tasks[_carriers(values, inverse, Fraction(4, 5))] if total else none,
        variable_tasks=int(np.count_nonzero(tops[tasks])),
        n_tasks=int(tasks.size),
        n_replicates=int(n[tasks].min()),
        undefined="" if total else NONE_VARIED,
    )


def contrast_influence(
    passes_a: ArrayLike, runs_a: ArrayLike, passes_b: ArrayLike, runs_b: ArrayLike, *, of: str = "w"
) -> ContrastInfluence:
    """The difference of w, or of the score, without each task that both conditions have.

    Args:
        passes_a: Passes in the first condition, shape (N,).
        runs_a: Measured runs in the first condition, shape (N,).
        passes_b: Passes in the second, row i being the same task.
        runs_b: Measured runs in the second.
        of: "w" (a task needs two runs in both) or "score" (one).

    Raises:
        ValueError: The counts cannot be, or do not fit each other.
    """
    _check_of(of)
    counts = checked_counts(passes_a, runs_a), checked_counts(passes_b, runs_b)
    sides = [_noise_of_counts(k, n) if of == "w" else (k, n) for k, n in counts]
    return _contrast(of, (counts[0][1], counts[1][1]), sides[0], sides[1])


def contrast_influence_of_scores(
    scores_a: ArrayLike, measured_a: ArrayLike, scores_b: ArrayLike, measured_b: ArrayLike, *, of: str = "w"
) -> ContrastInfluence:
    """The same for scores in [0, 1] of both conditions, (N, R_a) and (N, R_b), and which of them were measured.

    Raises:
        ValueError: As of `influence_of_scores`, or the conditions do not fit each other.
    """
    _check_of(of)
    found = _Scores(scores_a, measured_a), _Scores(scores_b, measured_b)
    sides = [one.noise if of == "w" else one.means for one in found]
    return _contrast(of, (found[0].runs, found[1].runs), sides[0], sides[1])


def _check_of(of: str) -> None:
    if of not in {"score", "w"}:
        raise ValueError(f'of is "score" or "w", not {of!r}')


def _contrast(
    of: str, runs: tuple[Ints, Ints], first: tuple[NDArray[Any], Ints], second: tuple[NDArray[Any], Ints]
) -> ContrastInfluence:
    na, nb = runs
    if na.shape != nb.shape:
        raise ValueError(f"the two conditions need one row per task, in one order: {na.shape} and {nb.shape}")
    least = 2 if of == "w" else 1
    tasks = np.flatnonzero((na >= least) & (nb >= least))
    if not tasks.size:
        missing = "no task was measured " + ("twice in both conditions" if of == "w" else "in both conditions")
        return ContrastInfluence(tasks=tasks, value=None, without=None, undefined=missing)
    patterns, inverse, counts = distinct_rows(np.column_stack([*first, *second])[tasks])
    values = [Fraction(a) / Fraction(n) - Fraction(b) / Fraction(m) for a, n, b, m in patterns.tolist()]
    total = _total(values, counts)
    one = tasks.size == 1
    return ContrastInfluence(
        tasks=tasks,
        value=float(total / tasks.size),
        without=None if one else _spread_out([(total - value) / (tasks.size - 1) for value in values], inverse),
        undefined=ONE_LEFT if one else "",
    )


class _Scores:
    """Scores (N, R) as what is divided by what, for each task."""

    def __init__(self, scores: ArrayLike, measured: ArrayLike) -> None:
        found = samples_of(np.asarray(scores)[None], np.asarray(measured)[None])
        self.runs: Ints = found.runs[0]
        self.means: tuple[NDArray[Any], Ints] = (found.sums[0], np.maximum(self.runs, 1) * found.unit)
        self.noise: tuple[NDArray[Any], Ints] = (found.spread[0], np.maximum(self.runs * (self.runs - 1), 1) * found.unit**2)


def _noise_of_counts(passes: Ints, runs: Ints) -> tuple[Ints, Ints]:
    """K (n-k) and n (n-1) of each task: s2 is their quotient."""
    return passes * (runs - passes), runs * (runs - 1)


def _distinct(tops: NDArray[Any], bottoms: Ints) -> tuple[list[Fraction], Ints, Ints]:
    """The distinct quotients, which of them each task has, and how many tasks each has."""
    patterns, inverse, counts = distinct_rows(np.column_stack([tops, bottoms]))
    return [Fraction(top) / Fraction(bottom) for top, bottom in patterns.tolist()], inverse, counts


def _total(values: list[Fraction], counts: Ints) -> Fraction:
    return sum((value * int(count) for value, count in zip(values, counts, strict=True)), Fraction())


def _squared_spread(values: list[Fraction], counts: Ints) -> Fraction:
    """Variance (ddof 1) over tasks; 0 for one task."""
    size = int(counts.sum())
    if size < 2:
        return Fraction()
    total = _total(values, counts)
    return (_total([value * value for value in values], counts) - total * total / size) / (size - 1)


def _spread_out(values: list[Fraction], inverse: Ints) -> Floats:
    return np.array([float(value) for value in values])[inverse]


def _carriers(values: list[Fraction], inverse: Ints, share: Fraction) -> Ints:
    """The fewest tasks whose values add up to at least this share of the sum: from the largest down, the earlier of equal ones."""
    ranks = {value: rank for rank, value in enumerate(sorted(set(values), reverse=True))}
    rank_of = np.array([ranks[value] for value in values])[inverse]
    order = np.argsort(rank_of, kind="stable")
    by_rank = sorted(ranks)[::-1]
    sizes = np.bincount(rank_of, minlength=len(by_rank))
    needed = share * sum((value * int(size) for value, size in zip(by_rank, sizes, strict=True)), Fraction())
    taken = 0
    for value, size in zip(by_rank, sizes, strict=True):
        if needed <= 0:
            break
        of_these = min(int(size), -(-needed // value) if value else int(size))
        taken += of_these
        needed -= value * of_these
    return order[:taken]
