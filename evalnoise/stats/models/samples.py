"""What comparisons need of M models' scores: per model and task how many samples, their sum and their sum of squares.

Sums are integers wherever the scores lie on a grid (0 and 1; halves; hundredths), so that they are exact and no order of tasks
or samples changes a digit. Unmeasured samples are in no sum; a task without a measured sample has ``runs == 0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 100, 1000)
"""Denominators of scores that are looked for: scores on such a grid are counted in integers."""
ON_GRID = 1e-12
"""How far a score may lie from its grid: what writing 0.07 in binary costs, and far less than two scores differ."""
EXACT = 2.0**53
"""Sums of integers below this are exact in float64, in any order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Scores of M models on the same N tasks; all arrays have the shape (M, N)."""

    runs: Ints
    """Measured samples."""
    sums: NDArray[Any]
    """Sum of the scores, times `unit`: integers where `exact`, else floats."""
    squares: NDArray[Any]
    """Sum of the squared scores, times `unit` squared: integers where `exact`, else floats."""
    unit: int
    """Denominator of the scores' grid; 1 without one."""

    @property
    def exact(self) -> bool:
        """Whether the scores lie on a grid."""
        return bool(np.issubdtype(self.sums.dtype, np.integer))

    @property
    def binary(self) -> bool:
        """Whether every score is 0 or 1: an integer is its own square only then."""
        return self.exact and self.unit == 1 and bool(np.array_equal(self.sums, self.squares))

    @property
    def means(self) -> Floats:
        """Mean score per model and task, shape (M, N); 0 where there is no sample: mind `runs`."""
        return np.asarray(self.sums / (np.maximum(self.runs, 1) * self.unit), dtype=np.float64)

    def __post_init__(self) -> None:
        shapes = {self.runs.shape, self.sums.shape, self.squares.shape}
        if len(shapes) != 1 or self.runs.ndim != 2:
            raise ValueError(f"runs, sums and squares need one shape (M, N), not {sorted(shapes)}")
        if np.any(self.runs < 0):
            raise ValueError("a number of samples is 0 or more")
        if np.any((self.runs == 0) & (self.sums != 0)):
            raise ValueError("a task without a sample has no sum")

    def models(self, rows: ArrayLike) -> Samples:
        """The models of these rows, in this order."""
        at = np.asarray(rows)
        return Samples(runs=self.runs[at], sums=self.sums[at], squares=self.squares[at], unit=self.unit)


def samples_of(scores: ArrayLike, measured: ArrayLike | None = None) -> Samples:
    """Counts and sums of scores of shape (M, N, K).

    Args:
        scores: Samples of M models on N tasks, at most K each; finite where measured.
        measured: Which samples were measured, shape (M, N, K); all when None. Models with fewer samples are
            padded with unmeasured ones.

    Raises:
        ValueError: Shapes differ, or a measured score is no finite number.
    """
    values = np.asarray(scores)
    if values.ndim != 3:
        raise ValueError(f"scores need a shape (M, N, K), not {values.shape}")
    known = np.ones(values.shape, dtype=np.bool_) if measured is None else np.asarray(measured, dtype=np.bool_)
    if known.shape != values.shape:
        raise ValueError(f"measured needs the scores' shape {values.shape}, not {known.shape}")
    if values.dtype.kind not in "biu":
        values = np.where(known, values, 0.0).astype(np.float64)
        if not np.isfinite(values).all():
            model, task, sample = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
            raise ValueError(f"model {model}, task {task}, sample {sample}: {values[model, task, sample]} is no score")
    elif measured is not None:
        values = np.where(known, values, 0)
    runs = known.sum(axis=2, dtype=np.int64)
    if values.dtype.kind == "b" or (values.dtype.kind in "iu" and values.size and values.min() >= 0 and values.max() <= 1):
        sums = values.sum(axis=2, dtype=np.int64)
        return Samples(runs=runs, sums=sums, squares=sums, unit=1)
    unit = 1 if values.dtype.kind in "iu" else grid_of(values)
    counted = values if unit is None else np.rint(values * float(unit)).astype(np.int64)
    return Samples(runs=runs, sums=counted.sum(axis=2), squares=(counted * counted).sum(axis=2), unit=unit or 1)


def samples_of_cells(models: Ints, tasks: Ints, scores: Floats, *, shape: tuple[int, int]) -> Samples:
    """Counts and sums of scores in long format: a model's row, a task's column and a finite score per sample.

    Args:
        models: Row of each sample, shape (S,).
        tasks: Column of each sample, shape (S,).
        scores: Score of each sample, shape (S,).
        shape: M and N.
    """
    unit = grid_of(scores)
    counted = scores if unit is None else np.rint(scores * unit)
    place, cells = np.asarray(models, dtype=np.int64) * shape[1] + tasks, shape[0] * shape[1]
    kind = np.float64 if unit is None else np.int64
    sums, squares = (np.bincount(place, weights=values, minlength=cells).astype(kind) for values in (counted, counted * counted))
    runs = np.bincount(place, minlength=cells).astype(np.int64)
    return Samples(runs=runs.reshape(shape), sums=sums.reshape(shape), squares=squares.reshape(shape), unit=unit or 1)


def grid_of(scores: Floats) -> int | None:
    """The smallest of `UNITS` that makes integers of all scores; None if none does."""
    for unit in UNITS:
        scaled = scores * unit
        if not scores.size or bool(np.all(np.abs(scaled - np.rint(scaled)) <= ON_GRID * unit)):
            return unit
    return None


def on_one_denominator(numerators: NDArray[Any], denominators: Ints) -> tuple[Floats, int]:
    """Fractions (M, N) over one denominator: their numerators, which are integers if all were and it is small, and it.

    Where the integers would be so large that a sum of N squares of them is no longer exact, the plain quotients over 1.
    """
    if np.issubdtype(numerators.dtype, np.integer):
        common = lcm(*(int(d) for d in np.unique(denominators)))
        largest = float(np.abs(numerators / denominators).max(initial=0.0))
        # N squared times four: sums of squared differences are multiplied by N.
        if common < EXACT and (2 * numerators.shape[1] * largest * common) ** 2 < EXACT:
            return np.asarray(numerators * (common // denominators), dtype=np.float64), common
    return np.asarray(numerators / denominators, dtype=np.float64), 1
