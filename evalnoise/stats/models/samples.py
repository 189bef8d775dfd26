"""What comparisons need of M models' scores: per model and task how many samples, their sum and their sum of squares.

Sums are integers wherever the scores lie on a grid (0 and 1; halves; hundredths) and are not very large, so that they are exact
and no order of tasks or samples changes a digit. Otherwise they are floats, and each task's spread is taken about its mean.
Unmeasured samples are in no sum; a task without a measured sample has ``runs == 0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 100, 1000)
"""Denominators of scores that are looked for: scores on such a grid are counted in integers."""
ON_GRID = 1e-12
"""How far a score may lie from its grid: what writing 0.07 in binary costs, and far less than two scores differ. Of scores that
are all below 1, so much of the largest."""
EXACT = 2.0**53
"""Sums of integers below this are exact in float64, in any order."""
_SAME = 1e-28
"""Share of the squared mean under which a variance of floats is rounding, and 0."""
_SMALLEST, _LARGEST = 1e-70, 1e70
"""Scores whose largest lies outside of these are refused: their squares, and squares of those, are no floats."""


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
    spreads: Floats | None = None
    """Samples times the sum of squared deviations from the task's mean, times `unit` squared; None: it follows from the sums."""

    @property
    def spread(self) -> NDArray[Any]:
        """The runs times sum x^2, less (sum x)^2, of each task, times `unit` squared: n (n-1) times the variance."""
        if self.spreads is not None:
            return self.spreads
        found: NDArray[Any] = self.runs * self.squares - self.sums * self.sums
        return found if self.exact else np.maximum(found, 0.0)

    @property
    def exact(self) -> bool:
        """Whether the sums are integers, of scores on a grid."""
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
        spreads = None if self.spreads is None else self.spreads[at]
        return Samples(runs=self.runs[at], sums=self.sums[at], squares=self.squares[at], unit=self.unit, spreads=spreads)

    def on_unit(self, unit: int) -> Samples:
        """The same scores counted in another unit, a multiple of this one; floats where integers would be too large."""
        factor = unit // self.unit
        if factor == 1:
            return self
        # (sum x)^2 is at most n sum x^2.
        exact = self.exact and float((self.runs * self.squares).max(initial=0)) * factor**2 < EXACT
        kind = np.int64 if exact else np.float64
        return Samples(
            runs=self.runs,
            sums=self.sums.astype(kind) * factor,
            squares=self.squares.astype(kind) * factor**2,
            unit=unit,
            spreads=None if exact else self.spread.astype(np.float64) * factor**2,
        )


def samples_of(scores: ArrayLike, measured: ArrayLike | None = None) -> Samples:
    """Counts and sums of scores of shape (M, N, K).

    Args:
        scores: Samples of M models on N tasks, at most K each; finite where measured.
        measured: Which samples were measured, shape (M, N, K); all when None. Models with fewer samples are
            padded with unmeasured ones.

    Raises:
        ValueError: Shapes differ, a measured score is no finite number, or the scores are too large, or too small, for sums of
            their squares.
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
    largest, most = _largest(values), values.shape[2]
    unit = 1 if values.dtype.kind in "iu" else grid_of(values)
    if unit is None or not _countable(largest * unit, most):
        return _of_floats(np.nonzero(known.reshape(runs.size, most))[0], values[known].astype(np.float64), runs)
    counted = values.astype(np.int64) if values.dtype.kind in "iu" else np.rint(values * float(unit)).astype(np.int64)
    return Samples(runs=runs, sums=counted.sum(axis=2), squares=(counted * counted).sum(axis=2), unit=unit)


def samples_of_cells(models: Ints, tasks: Ints, scores: Floats, *, shape: tuple[int, int]) -> Samples:
    """Counts and sums of scores in long format: a model's row, a task's column and a finite score per sample.

    Args:
        models: Row of each sample, shape (S,).
        tasks: Column of each sample, shape (S,).
        scores: Score of each sample, shape (S,).
        shape: M and N.

    Raises:
        ValueError: The scores are too large, or too small, for sums of their squares.
    """
    largest, unit = _largest(scores), grid_of(scores)
    place, cells = np.asarray(models, dtype=np.int64) * shape[1] + tasks, shape[0] * shape[1]
    runs = np.bincount(place, minlength=cells).astype(np.int64).reshape(shape)
    if unit is None or not _countable(largest * unit, int(runs.max(initial=0))):
        return _of_floats(place, scores, runs)
    counted = np.rint(scores * unit)
    sums, squares = (
        np.bincount(place, weights=values, minlength=cells).astype(np.int64).reshape(shape)
        for values in (counted, counted * counted)
    )
    return Samples(runs=runs, sums=sums, squares=squares, unit=unit)


def _of_floats(place: Ints, scores: Floats, runs: Ints) -> Samples:
    """Scores on no grid, `place` (S,) being each one's cell: deviations are squared, for squares of the scores cancel."""

    def summed(values: Floats) -> Floats:
        return np.bincount(place, weights=values, minlength=runs.size).astype(np.float64).reshape(runs.shape)

    sums = summed(scores)
    away = scores - (sums / np.maximum(runs, 1)).ravel()[place]
    spread = np.maximum(runs * summed(away * away) - np.square(summed(away)), 0.0)
    spread = np.where(spread <= _SAME * np.square(sums), 0.0, spread)
    return Samples(runs=runs, sums=sums, squares=summed(scores * scores), unit=1, spreads=spread)


def _largest(scores: NDArray[Any]) -> float:
    """Largest absolute score; ValueError where sums of squares of such scores are no floats."""
    largest = max(abs(float(scores.max())), abs(float(scores.min()))) if scores.size else 0.0
    if largest and not _SMALLEST <= largest <= _LARGEST:
        raise ValueError(f"the largest score is {largest:g}: sums of squares need one between {_SMALLEST:g} and {_LARGEST:g}")
    return largest


def _countable(largest: float, samples: int) -> bool:
    """Whether sums of so many squares of such integers, times their number, are exact."""
    return (largest * max(1, samples)) ** 2 < EXACT


def grid_of(scores: Floats) -> int | None:
    """The smallest of `UNITS` that makes integers of all scores; None if none does."""
    if not scores.size:
        return 1
    near = ON_GRID * min(1.0, float(np.abs(scores).max()))
    for unit in UNITS:
        scaled = scores * unit
        if bool(np.all(np.abs(scaled - np.rint(scaled)) <= near * unit)):
            return unit
    return None


def on_one_denominator(numerators: NDArray[Any], denominators: Ints) -> tuple[Floats, int]:
    """Fractions (M, N) over one denominator: their numerators, which are integers if all were and it is small, and it.

    Where the integers would be so large that a sum of N squares of them is no longer exact, the plain quotients over 1.
    """
    if np.issubdtype(numerators.dtype, np.integer):
        common = lcm(*(int(d) for d in np.unique(denominators)))
        largest = float(np.abs(numerators / denominators).max(initial=0.0))
        if common < EXACT and summable(largest * common, numerators.shape[1]):
            return np.asarray(numerators * (common // denominators), dtype=np.float64), common
    return np.asarray(numerators / denominators, dtype=np.float64), 1


def summable(largest: float, tasks: int) -> bool:
    """Whether sums over so many tasks of squared differences of integers up to this are exact, also times the number of tasks."""
    return (2 * tasks * largest) ** 2 < EXACT
