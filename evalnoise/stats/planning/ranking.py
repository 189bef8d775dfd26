"""Order of scores: how likely it is wrong, how likely two reruns disagree on it, and how many runs make it stable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats.contrasts import NO_COMMON_PAIR
from evalnoise.stats.estimate import NO_NEW_RUNS, PROVES_NOTHING, Covers, joined
from evalnoise.stats.intervals import ONE_TASK, score_squared_error
from evalnoise.stats.planning.budget import smallest
from evalnoise.stats.planning.population import NONE_SUFFICES, twice_in_both
from evalnoise.stats.variance import Ints, checked_counts, same_difference, score, task_variances, within_task_variance

FEW_VARIABLE = 10
SMALL = f"fewer than {FEW_VARIABLE} variable tasks in both arms together: the normal approximation is rough"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Two arms' order by score, as far as one kind of noise is concerned."""

    difference: float | None
    """Score of the first arm minus that of the second, on the tasks that both have measured twice."""
    se: float | None
    """Its standard error."""
    wrong: float | None
    """Chance that the order is the wrong one: Phi(-|difference| / se)."""
    disagree: float | None
    """Chance that two reruns of both arms, as large as this one, disagree on the order: 2 q (1-q), q = `wrong`."""
    level: float
    """The chance of the right order that `runs` is for."""
    runs: int | None
    """Fewest runs per arm with which the order is right with that chance."""
    n_tasks: int
    """Tasks that entered."""
    n_replicates: int
    """Runs per task and arm; the smallest, if they differ."""
    covers: str
    """benchmark: new runs of these tasks. population: new tasks too."""
    undefined: str
    """Why the chances are None; empty otherwise."""
    runs_undefined: str
    """Why `runs` is None; empty otherwise."""
    note: str
    """When not to trust it; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPair:
    """Two neighbours in a ranking."""

    above: int
    """Row of the arm with the higher score."""
    below: int
    """Row of the next one."""
    benchmark: Order
    """Their order over new runs of these tasks."""
    population: Order
    """Their order over new tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Arms by score, and each pair of neighbours."""

    rows: tuple[int, ...]
    """Rows of the arms, the highest score first; equal scores in their given order."""
    scores: tuple[float, ...]
    """Their scores, in that order, on the tasks that all arms have measured twice."""
    n_tasks: int
    """How many tasks that are."""
    pairs: tuple[RankedPair, ...]
    """Neighbours, from the top."""


def order(
    passes_a: ArrayLike,
    runs_a: ArrayLike,
    passes_b: ArrayLike,
    runs_b: ArrayLike,
    *,
    covers: Covers | str = Covers.BENCHMARK,
    level: float = 0.95,
    new_runs: bool = True,
) -> Order:
    """How sure the order of two arms is, for counts of shape (N,), row i being the same task in all.

    `benchmark`: se^2 = sum(s2_a/n_a + s2_b/n_b) / N^2, which is (w_a + w_b)/(N R) at equal R, and runs are the smallest
    R >= z^2 (w_a + w_b) / (N D^2) with z the one-sided quantile of `level`. `population`: se^2 = var(difference by task, ddof 1)/N,
    at least that of the runs alone, which is what reruns lessen. The observed difference D stands in for the true one; of many
    arms the best is flattered by having been chosen.

    Without `new_runs` the replicates of an arm repeat one recorded run: nothing over new runs is known, neither chances nor runs.
    Over new tasks the chances stand: one run is a draw like another.
    """
    if covers not in {Covers.BENCHMARK, Covers.POPULATION}:
        raise ValueError(f"covers is benchmark or population, not {covers!r}")
    covers = Covers(covers)
    _check_level(level)
    ka, na, kb, nb = twice_in_both(passes_a, runs_a, passes_b, runs_b)
    n = len(na)
    if n == 0 or (n == 1 and covers == Covers.POPULATION):
        return _order(None, None, (na, nb), covers, level, reasons=(NO_COMMON_PAIR if not n else ONE_TASK,) * 2)
    first, second = score(ka, na).value, score(kb, nb).value
    difference = 0.0 if first is None or second is None else first - second
    squared, between, noise = _parts(ka, na, kb, nb, covers)
    if not new_runs and covers == Covers.BENCHMARK:
        return _order(difference, None, (na, nb), covers, level, reasons=(NO_NEW_RUNS, NO_NEW_RUNS))
    runs, why = _runs(difference, between, noise, n, level) if new_runs else (None, NO_NEW_RUNS)
    varied = int(np.count_nonzero(ka * (na - ka)) + np.count_nonzero(kb * (nb - kb)))
    if squared <= 0:
        nothing = PROVES_NOTHING.removesuffix(": ") + ", because nothing varied"
        return _order(difference, 0.0, (na, nb), covers, level, reasons=(nothing, nothing))
    note = SMALL if varied < FEW_VARIABLE else ""
    return _order(difference, math.sqrt(squared), (na, nb), covers, level, reasons=("", why), runs=runs, note=note)


def _check_level(level: float) -> None:
    if not 0.5 < level < 1.0:
        raise ValueError(f"the chance of a right order lies between 1/2 and 1, not {level!r}")


def _parts(ka: Ints, na: Ints, kb: Ints, nb: Ints, covers: Covers) -> tuple[float, float, float]:
    """Squared standard error of the difference, the between-task variance in it, and w_a + w_b."""
    n = len(na)
    noise = (within_task_variance(ka, na).w or 0.0) + (within_task_variance(kb, nb).w or 0.0)
    if covers == Covers.BENCHMARK:
        return (score_squared_error(ka, na) or 0.0) + (score_squared_error(kb, nb) or 0.0), 0.0, noise
    differences = ka / na - kb / nb
    total = 0.0 if same_difference(ka, na, kb, nb) else float(np.var(differences, ddof=1))
    within = float(np.mean(task_variances(ka, na) / na + task_variances(kb, nb) / nb))
    # The runs alone make `within`, so the whole cannot be less, though its estimate can.
    return max(total, within) / n, max(0.0, total - within), noise


def _runs(difference: float, between: float, noise: float, n: int, level: float) -> tuple[int | None, str]:
    if difference == 0:
        return None, "the two scores are equal: there is no order that runs could settle"
    z = NormalDist().inv_cdf(level)
    room = n * (difference / z) ** 2
    if room <= between * (1 + 1e-12):
        needed = math.floor(between * (z / difference) ** 2) + 1
        return None, f"{NONE_SUFFICES}: at least {needed} tasks are needed"
    return smallest(noise / (room - between), abs(difference)), ""


def _order(
    difference: float | None,
    se: float | None,
    runs_of: tuple[Ints, Ints],
    covers: Covers,
    level: float,
    *,
    reasons: tuple[str, str],
    runs: int | None = None,
    note: str = "",
) -> Order:
    known = difference is not None and se is not None and not reasons[0]
    wrong = NormalDist().cdf(-abs(difference) / se) if known and difference is not None and se else None
    return Order(
        difference=difference,
        se=se,
        wrong=wrong,
        disagree=None if wrong is None else 2 * wrong * (1 - wrong),
        level=level,
        runs=runs,
        n_tasks=len(runs_of[0]),
        n_replicates=int(min(sizes.min() for sizes in runs_of)) if len(runs_of[0]) else 0,
        covers=covers if known else Covers.NOTHING,
        undefined=reasons[0],
        runs_undefined=reasons[1],
        note=joined(note),
    )


def ranking(passes: ArrayLike, runs: ArrayLike, *, level: float = 0.95, once_drawn: Sequence[bool] | None = None) -> Ranking:
    """Arms by score and their neighbours' orders, for counts of shape (M, N), column i being the same task in every row.

    Only tasks that every arm has measured twice enter, so that all scores are over the same tasks.

    Args:
        passes: Passes.
        runs: Measured runs.
        level: The chance of the right order that runs are for.
        once_drawn: Of each arm: whether its replicates repeat one recorded run. A pair with such an arm has no order over new runs.
    """
    _check_level(level)
    k, n = np.asarray(passes), np.asarray(runs)
    if k.ndim != 2 or k.shape != n.shape or len(k) < 2:
        raise ValueError(f"passes and runs need one shape (M, N) with at least two arms, not {k.shape} and {n.shape}")
    checked_counts(k.ravel(), n.ravel())
    common = (n >= 2).all(axis=0)
    k, n = k[:, common], n[:, common]
    if not common.any():
        return Ranking(rows=tuple(range(len(k))), scores=(), n_tasks=0, pairs=())
    scores = [score(a, b).value or 0.0 for a, b in zip(k, n, strict=True)]
    rows = sorted(range(len(k)), key=lambda row: -scores[row])
    drawn = [False] * len(k) if once_drawn is None else list(once_drawn)

    def between(a: int, b: int, covers: Covers) -> Order:
        return order(k[a], n[a], k[b], n[b], covers=covers, level=level, new_runs=not (drawn[a] or drawn[b]))

    pairs = tuple(
        RankedPair(above=a, below=b, benchmark=between(a, b, Covers.BENCHMARK), population=between(a, b, Covers.POPULATION))
        for a, b in pairwise(rows)
    )
    return Ranking(rows=tuple(rows), scores=tuple(scores[row] for row in rows), n_tasks=int(common.sum()), pairs=pairs)
