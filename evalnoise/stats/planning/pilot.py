"""The runs of a pilot whose tasks need not have as many: what a plan may say of them in one number."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats.planning.budget import PilotRuns
from evalnoise.stats.variance import Ints, checked_counts


def pilot_runs(*arms: tuple[ArrayLike, ArrayLike]) -> PilotRuns:
    """Runs of the tasks that every arm has measured twice; passes and runs of each arm, shape (N,), row i being the same task.

    `effective` is sum s2 / sum (s2/R) over tasks and arms, so that the variance of a score, or of a difference of two, is that of
    so many runs of every task. Exact before its rounding: R itself where every task has R runs.

    Raises:
        ValueError: The counts cannot be, or their shapes differ.
    """
    counts = [checked_counts(*arm) for arm in arms]
    if len({runs.shape for _, runs in counts}) != 1:
        raise ValueError("arms need one row per task, in one order")
    twice = np.logical_and.reduce([runs >= 2 for _, runs in counts])
    kept = [(passes[twice], runs[twice]) for passes, runs in counts]
    runs = np.concatenate([runs for _, runs in kept])
    if not runs.size:
        return PilotRuns(least=0, most=0, median=0, effective=None)
    passes = np.concatenate([passes for passes, _ in kept])
    by_size = {int(size): Fraction(int((passes * (runs - passes))[runs == size].sum())) for size in np.unique(runs)}
    noise = sum((total / (size * (size - 1)) for size, total in by_size.items()), Fraction())
    of_means = sum((total / (size * size * (size - 1)) for size, total in by_size.items()), Fraction())
    return PilotRuns(
        least=int(runs.min()),
        most=int(runs.max()),
        median=median_runs(runs),
        effective=float(noise / of_means) if of_means else None,
    )


def median_runs(runs: Ints) -> int:
    """The median of runs (N,) that are at least 2, the lower of the two in the middle; 0 where there are none."""
    kept = np.sort(runs[runs >= 2])
    return int(kept[(kept.size - 1) // 2]) if kept.size else 0
