"""The within-task permutation test: do two arms score alike, task by task, where scores are more than pass and fail?

If the arms are the same, the scores of a task could have been dealt out between them in any way. The test deals them out again
and again and counts how often the difference of scores comes out as large. Streams are keyed by (seed, purpose, block of 64).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from evalnoise.stats.gates.side import Bools, Side, on_common_tasks
from evalnoise.stats.resampling import stream
from evalnoise.stats.variance import Floats, Ints

RESAMPLES = 9_999
BLOCK = 64
"""Deals per random stream. Part of the result: another number gives other deals."""
MOST_CELLS = 10_000
"""With more cells than this in tasks whose scores differ, the normal distribution with the exact variance takes their place."""
ALL_AGREE = "every run of both arms has the same score in every task: the arms cannot be told apart"
NO_COMMON_TASK = "no task was measured in both arms"

_PURPOSE = 71
_SCALE = 40
"""Scores are counted in units of 2^-40, so that sums are exact in any order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permutation:
    """The test that two arms score alike in every task. Covers new runs of these tasks (`benchmark`)."""

    difference: float | None
    """Score of a minus score of b over the common tasks."""
    variance: float | None
    """Exact variance of the difference over all deals; its mean is 0."""
    p_less: float | None
    """One-sided p against "a scores less"."""
    p_greater: float | None
    """One-sided p against "a scores more"."""
    p_two_sided: float | None
    """Twice the smaller one, at most 1."""
    resamples: int | None
    """Deals; None where the normal distribution took their place."""
    seed: int | None
    """Seed of the deals."""
    n_tasks: int
    """Tasks that both arms have measured."""
    n_informative: int
    """Of them, tasks whose scores differ."""
    undefined: str
    """Why p is None; empty otherwise."""


def permutation_test(a: Side, b: Side, *, seed: int, resamples: int = RESAMPLES, most_cells: int = MOST_CELLS) -> Permutation:
    """Monte Carlo p = (1 + deals at least as extreme) / (1 + deals) for the difference of scores; ties count as extreme.

    Var = 1/N^2 sum_i S2_i M_i / (n_a n_b), S2_i the variance (ddof 1) of a task's M_i = n_a + n_b scores. Source: Pitman 1937;
    Phipson and Smyth 2010 for the added one.
    """
    one, other, _ = on_common_tasks(a, b)
    scores = np.hstack([one.scores, other.scores])
    measured = np.hstack([one.measured, other.measured])
    pool = Side(scores=scores, measured=measured)
    n = one.n_tasks
    difference = math.fsum(one.means - other.means) / n if n else None
    informative = pool.varied
    if difference is None or not informative.any():
        nothing = {"p_less": None, "p_greater": None, "p_two_sided": None, "resamples": None, "seed": None, "n_informative": 0}
        variance, reason = (None, NO_COMMON_TASK) if difference is None else (0.0, ALL_AGREE)
        return Permutation(difference=difference, variance=variance, n_tasks=n, undefined=reason, **nothing)  # type: ignore[arg-type]
    na, nb = one.runs[informative], other.runs[informative]
    variance = math.fsum(pool.variances[informative] * (na + nb) / (na * nb)) / n**2
    cells = int((na + nb).sum())
    few = cells <= most_cells
    if few:
        less, greater = _dealt(scores[informative], measured[informative], one.scores.shape[1], seed=seed, resamples=resamples)
    else:
        less = float(ndtr(difference / math.sqrt(variance)))
        greater = float(ndtr(-difference / math.sqrt(variance)))
    return Permutation(
        difference=difference,
        variance=variance,
        p_less=less,
        p_greater=greater,
        p_two_sided=min(1.0, 2 * min(less, greater)),
        resamples=resamples if few else None,
        seed=seed if few else None,
        n_tasks=n,
        n_informative=int(informative.sum()),
        undefined="",
    )


def _dealt(scores: Floats, measured: Bools, width: int, *, seed: int, resamples: int) -> tuple[float, float]:
    """Shares of deals in which the first `width` columns come out as low, and as high, as they did."""
    na, nb = measured[:, :width].sum(axis=1), measured[:, width:].sum(axis=1)
    weights = np.rint(np.ldexp(scores * (1 / na + 1 / nb)[:, None], _SCALE)).astype(np.int64)
    seen = int(weights[:, :width][measured[:, :width]].sum())
    # Equal sums may differ by the rounding of each cell.
    slack = int(measured.sum())
    parts = _by_margins(weights, measured, na, nb)
    low = high = 0
    for block, start in enumerate(range(0, resamples, BLOCK)):
        generator = stream(seed, (_PURPOSE,), block)
        totals = np.zeros(BLOCK, dtype=np.int64)
        for pool, dealt in parts:
            totals += _deal(pool, dealt, generator)
        totals = totals[: resamples - start]
        low += int(np.count_nonzero(totals <= seen + slack))
        high += int(np.count_nonzero(totals >= seen - slack))
    return (1 + low) / (1 + resamples), (1 + high) / (1 + resamples)


def _by_margins(weights: Ints, measured: Bools, na: Ints, nb: Ints) -> list[tuple[Ints, int]]:
    """Tasks with the same number of runs in each arm: their measured cells (G, M), and how many of them arm a gets.

    Both in order, so that the deals do not hang on the order of tasks or runs.
    """
    parts = []
    for m, n in np.unique(np.column_stack([na, nb]), axis=0).tolist():
        rows = (na == m) & (nb == n)
        cells = np.sort(weights[rows][measured[rows]].reshape(-1, m + n), axis=1)
        parts.append((cells[np.lexsort(cells.T)], m))
    return parts


def _deal(pool: Ints, dealt: int, generator: np.random.Generator) -> Ints:
    """Sum over tasks of `dealt` cells drawn without replacement, shape (BLOCK,)."""
    keys = generator.random((BLOCK, *pool.shape))
    chosen = np.argpartition(keys, dealt - 1, axis=2)[:, :, :dealt]
    picked = np.take_along_axis(np.broadcast_to(pool, keys.shape), chosen, axis=2)
    return np.asarray(picked.sum(axis=(1, 2)), dtype=np.int64)
