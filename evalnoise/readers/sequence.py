"""Observations that come one after another with one mean, from the cells of an arm: what confidence sequences may be made of.

Cells are not such observations: the runs of one task share its rate. A new task is one, a new run of the whole benchmark too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.readers.arms import Arm
from evalnoise.readers.columns import numbers, refuse_missing, refuse_outside
from evalnoise.readers.tablefile import Kind, Wanted, read_table
from evalnoise.stats.drift import ORDER_UNKNOWN
from evalnoise.stats.estimate import NO_NEW_RUNS, Covers
from evalnoise.stats.resampling import stream
from schemas.errors import BlockedError

_SHUFFLE: Final = 31


@dataclass(frozen=True, slots=True)
class Observations:
    """Scores in [0, 1] in their order, and what must hold of them."""

    values: NDArray[np.float64]
    """Shape (n,)."""
    covers: Covers
    """What their mean is of."""
    one_is: str
    """What one observation is."""
    assumes: str
    """What must hold for the interval to be valid."""
    note: str
    """What was left out; empty otherwise."""


def task_scores(arm: Arm, *, shuffle: int | None = None) -> Observations:
    """One observation per task: its mean score over measured runs. For the mean over new tasks of the same source.

    Args:
        arm: The arm.
        shuffle: Seed of a random order; None: the benchmark's order.

    Raises:
        BlockedError: The benchmark has clusters, so that tasks are not independent.
    """
    sizes = Counter(cluster for cluster in arm.cells.clusters if cluster)
    if sizes and max(sizes.values()) > 1:
        name, size = sizes.most_common(1)[0]
        raise BlockedError(
            arm.label,
            expected="tasks that are independent of each other",
            found=f"clusters: {size} tasks belong to {name}",
            remedy="Use --covers benchmark, or pipe one mean for each cluster into `evalnoise sequential -`.",
        )
    runs = arm.cells.runs
    measured = np.flatnonzero(runs > 0)
    values = (arm.cells.scores * arm.cells.measured).sum(axis=1)[measured] / runs[measured]
    if shuffle is not None:
        values = stream(shuffle, (_SHUFFLE,), 0).permutation(values)
    skipped = len(runs) - len(measured)
    ordered = "in the benchmark's order" if shuffle is None else f"in a random order, seed {shuffle}"
    hope = "and that order says nothing about difficulty" if shuffle is None else "and which of them were measured is no choice"
    return Observations(
        values=np.asarray(values, dtype=np.float64),
        covers=Covers.POPULATION,
        one_is=f"the mean score of one task over its measured runs, {ordered}",
        assumes=f"tasks are drawn independently from one source, {hope}",
        note=f"{skipped} tasks without a measured run are left out" if skipped else "",
    )


def run_scores(arm: Arm) -> Observations:
    """One observation per replicate: its score over the tasks that every replicate measured. For these tasks, new runs.

    Raises:
        BlockedError: The replicates are in no order of time, repeat one recorded run, or have no task in common.
    """
    reason = ORDER_UNKNOWN if not arm.cells.order_known else ""
    if arm.one_draw:
        reason = NO_NEW_RUNS
    complete = arm.cells.measured.all(axis=1)
    if not reason and not complete.any():
        reason = "no task was measured in every replicate"
    if reason:
        raise BlockedError(
            arm.label,
            expected="replicates that are runs of the whole benchmark, in the order of time",
            found=reason,
            remedy="Use --covers population, or an arm of fresh runs.",
        )
    dropped = int((~complete).sum())
    return Observations(
        values=np.asarray(arm.cells.scores[complete].mean(axis=0), dtype=np.float64),
        covers=Covers.BENCHMARK,
        one_is="the score of one replicate over all tasks, in the order of time",
        assumes="replicates are independent and do not drift (`evalnoise drift` tests that)",
        note=f"{dropped} tasks with an unmeasured run are left out" if dropped else "",
    )


def read_scores(path: Path) -> Observations:
    """Scores between 0 and 1 of a table file's column `score`, in its order. Raises DataError."""
    values, known = numbers(read_table(path, {"score": Wanted("score", Kind.NUMBER)}), "score")
    refuse_missing(path, "score", known)
    refuse_outside(path, "score", values, (0.0, 1.0), known=known, remedy="Divide the scores by the largest that there can be.")
    return stated_scores(values)


def stated_scores(values: ArrayLike) -> Observations:
    """Scores that a user states, in their order; what one of them is, only the user knows."""
    return Observations(
        values=np.asarray(values, dtype=np.float64),
        covers=Covers.POPULATION,
        one_is="one stated score, in the order given",
        assumes="each has the same mean whatever the earlier ones were; repeats of one task among others do not",
        note="",
    )
