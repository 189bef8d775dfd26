"""One side of a comparison: the scores of one arm on N tasks with up to R runs each, and what every test needs of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats.models.samples import Samples, samples_of
from evalnoise.stats.variance import Floats, Ints, checked_counts

Bools = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """One arm; row i is the same task on both sides of a comparison. It has no slots, because what is computed is kept."""

    scores: Floats
    """Scores in [0, 1], shape (N, R); 0 where unmeasured."""
    measured: Bools
    """Whether a cell has an outcome, shape (N, R)."""
    in_order: bool = True
    """Whether run r is the same run in every task; not so where cells were made up from counts."""
    absent: Bools | None = None
    """Tasks that this arm's suite does not have, shape (N,); none of their cells is measured. None: it has all of them."""

    @property
    def n_tasks(self) -> int:
        """Tasks, measured or not."""
        return len(self.scores)

    @property
    def has(self) -> Bools:
        """Whether this arm's suite has a task, shape (N,)."""
        return np.ones(self.n_tasks, dtype=np.bool_) if self.absent is None else ~self.absent

    @cached_property
    def _sums(self) -> Samples:
        return samples_of(self.scores[None], self.measured[None])

    @property
    def binary(self) -> bool:
        """Whether every score is 0 or 1."""
        return self._sums.binary

    @property
    def runs(self) -> Ints:
        """Measured runs per task, shape (N,)."""
        return np.asarray(self._sums.runs[0], dtype=np.int64)

    @property
    def passes(self) -> Ints:
        """Sum of the scores per task, shape (N,): passes, where scores are binary."""
        return np.asarray(self._sums.sums[0], dtype=np.int64)

    @property
    def means(self) -> Floats:
        """Mean score per task, shape (N,); 0 where no run was measured."""
        return np.asarray(self._sums.means[0], dtype=np.float64)

    @property
    def fractions(self) -> tuple[NDArray[Any], Ints]:
        """Numerators and denominators of the mean scores, each (N,): integers where scores lie on a grid, else sums over runs."""
        found = self._sums
        return found.sums[0], np.maximum(self.runs, 1) * found.unit

    @cached_property
    def variances(self) -> Floats:
        """Sample variance per task, shape (N,), exact before the last rounding on a grid of scores; 0 under two runs."""
        found = self._sums
        runs = self.runs
        spread = found.spread[0]
        divisor = np.maximum(runs * (runs - 1), 1) * found.unit**2
        return np.where(runs >= 2, np.maximum(spread / divisor, 0.0), 0.0)

    @cached_property
    def varied(self) -> Bools:
        """Whether a task's measured runs differ, shape (N,)."""
        high = np.where(self.measured, self.scores, -np.inf).max(axis=1, initial=-np.inf)
        low = np.where(self.measured, self.scores, np.inf).min(axis=1, initial=np.inf)
        return np.asarray(high > low)

    @property
    def unmeasured_share(self) -> float:
        """Share of the cells of the arm's own tasks without an outcome; 1 where there are no cells."""
        own = self.measured[self.has]
        missing = own.size - int(np.count_nonzero(own))
        return missing / own.size if own.size else 1.0

    def take(self, rows: Bools | Ints) -> Side:
        """The side on some of its tasks."""
        absent = None if self.absent is None else self.absent[rows]
        return Side(scores=self.scores[rows], measured=self.measured[rows], in_order=self.in_order, absent=absent)


def side_of(scores: ArrayLike, measured: ArrayLike | None = None) -> Side:
    """A side of scores (N, R) and of which cells were measured, all when None. Raises ValueError for what is no score."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"scores need a shape (N, R), not {values.shape}")
    known = np.ones(values.shape, dtype=np.bool_) if measured is None else np.asarray(measured, dtype=np.bool_)
    if known.shape != values.shape:
        raise ValueError(f"measured needs the scores' shape {values.shape}, not {known.shape}")
    values = np.where(known, values, 0.0)
    if not np.all((values >= 0) & (values <= 1)):
        task, run = (int(i) for i in np.argwhere(~((values >= 0) & (values <= 1)))[0])
        raise ValueError(f"task {task}, run {run}: {values[task, run]} is no score: scores lie in [0, 1]")
    return Side(scores=values, measured=known)


def counted_side(passes: ArrayLike, runs: ArrayLike) -> Side:
    """The side whose tasks have so many passes, shape (N,), of so many runs: the order of the runs is made up."""
    k, n = checked_counts(passes, runs)
    places = np.arange(int(n.max(initial=0)))
    return replace(side_of((places < k[:, None]).astype(np.float64), places < n[:, None]), in_order=False)


def on_common_tasks(new: Side, base: Side) -> tuple[Side, Side, Bools]:
    """Both sides on the tasks that each has measured, and which those are; ValueError unless row i is one task on both."""
    if new.n_tasks != base.n_tasks:
        raise ValueError(f"the two sides need one row per task, in one order: {new.n_tasks} and {base.n_tasks}")
    both = np.asarray((new.runs >= 1) & (base.runs >= 1))
    return new.take(both), base.take(both), both
