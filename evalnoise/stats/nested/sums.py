"""Repeated grades of repeated generations, as exact sums per task: what nested variance components are made of.

A design is tasks, generations (outputs) of a task, and grades of an output. It may be unbalanced: tasks differ in their number of
generations, outputs in their number of grades. A missing grade is absent from every sum; it is never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats.variance import Floats, Ints, checked_counts

Exact = NDArray[Any]
"""Integers of any size: int64 where no sum can overflow, else Python's own."""

_DENOMINATORS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 25, 50, 100, 1000, 10_000)
"""Scores that are multiples of one of these parts of 1 are taken as exact fractions."""
_LARGEST: Final = 2.0**20
_GRID: Final = 53
"""Other scores are rounded to a grid of 2^-53 of the largest: what float64 resolves there."""
LARGEST_SCORE: Final = 2.0**_GRID - 1
"""The largest score, either side of 0, that is added up exactly."""


@dataclass(frozen=True, slots=True)
class Nested:
    """One row per task with at least one grade, shape (n,). Scores less `origin` are integers over `denominator`."""

    outputs: Ints
    """Generations K_i."""
    grades: Ints
    """Grades M_i = sum over outputs of G_ij."""
    grade_squares: Ints
    """Sum over outputs of G_ij^2."""
    sums: Exact
    """Sum S_i of scores less the origin, times the denominator."""
    squares: Exact
    """Sum of their squares, times the denominator squared."""
    output_squares: Exact
    """Sum over outputs of (their sum)^2 / G_ij, times the denominator squared and `common`."""
    output_means: Exact
    """Sum over outputs of the output's mean less the origin, times the denominator and `common`."""
    denominator: int
    """What scores less the origin are multiples of: 1 for pass and fail."""
    common: int
    """Least common multiple of all G_ij."""
    binary: bool
    """Whether every score is 0 or 1."""
    origin: Fraction = Fraction()
    """What was subtracted of every score: no component depends on it, and scores far from 0 would lose the digits that differ."""
    dropped: int = 0
    """Tasks left out because they have no grade."""

    @property
    def n(self) -> int:
        """Tasks."""
        return len(self.outputs)

    @property
    def n_outputs(self) -> int:
        """Outputs of all tasks."""
        return int(self.outputs.sum())

    @property
    def n_grades(self) -> int:
        """Grades of all outputs."""
        return int(self.grades.sum())

    @property
    def balanced(self) -> bool:
        """Whether all tasks have K outputs and all outputs G grades."""
        same = bool(self.n and np.all(self.outputs == self.outputs[0]) and np.all(self.grades == self.grades[0]))
        return same and bool(np.all(self.grade_squares * self.outputs == self.grades * self.grades))


def from_array(scores: ArrayLike, measured: ArrayLike | None = None) -> Nested:
    """Sums of scores of shape (n, K, G): tasks, generations, grades.

    Args:
        scores: Finite numbers; read only where `measured`.
        measured: Shape (n, K, G), boolean: which grades exist; all of them when None.

    Raises:
        ValueError: Another shape, or a score that is not finite.
    """
    table = np.asarray(scores)
    if table.ndim != 3:
        raise ValueError(f"scores need the shape (tasks, generations, grades), not {table.shape}")
    mask = np.ones(table.shape, dtype=np.bool_) if measured is None else np.asarray(measured, dtype=np.bool_)
    if mask.shape != table.shape:
        raise ValueError(f"scores and measured need one shape, not {table.shape} and {mask.shape}")
    task, generation, _ = np.nonzero(mask)
    output = task * max(1, table.shape[1]) + generation
    return from_long(task, output, table[mask], n_tasks=len(table))


def from_long(task: ArrayLike, output: ArrayLike, scores: ArrayLike, *, n_tasks: int | None = None) -> Nested:
    """Sums of scores in long form: one entry per grade, shape (M,).

    Args:
        task: Integer that names the task of each grade.
        output: Integer that names the output of each grade, over all tasks: an output belongs to one task.
        scores: Finite scores.
        n_tasks: Tasks there should be, to count those without a grade.

    Raises:
        ValueError: Shapes that differ, a score that is not finite, or an output that belongs to two tasks.
    """
    tasks, outputs, values = np.asarray(task), np.asarray(output), np.asarray(scores)
    if not tasks.shape == outputs.shape == values.shape or tasks.ndim != 1:
        raise ValueError(f"task, output and scores need one shape (M,), not {tasks.shape}, {outputs.shape} and {values.shape}")
    order = np.lexsort((outputs, tasks))
    tasks, outputs = tasks[order], outputs[order]
    numbers, denominator = _as_integers(values[order].astype(np.float64))
    binary = denominator == 1 and bool(np.all((numbers == 0) | (numbers == 1)))
    numbers, denominator, origin = _from_lowest(numbers, denominator)
    starts = _starts(tasks, outputs)
    if len(np.unique(outputs)) != len(starts):
        raise ValueError("an output belongs to one task: its integer stands under two")
    sizes = np.diff(np.append(starts, len(tasks))).astype(np.int64)
    common = lcm(*(int(size) for size in np.unique(sizes)))
    owner = tasks[starts]
    edges = _starts(owner)
    of_task = np.add.reduceat(sizes, edges) if len(edges) else sizes
    numbers = _widened(numbers, of_task, common)
    sums = np.add.reduceat(numbers, starts) if len(starts) else numbers
    squares = np.add.reduceat(numbers * numbers, starts) if len(starts) else numbers
    weights = (common // sizes.astype(numbers.dtype)) if len(sizes) else sizes

    def per_task(column: Exact) -> Exact:
        return np.asarray(np.add.reduceat(column, edges)) if len(edges) else column

    return Nested(
        outputs=np.diff(np.append(edges, len(owner))).astype(np.int64),
        grades=of_task,
        grade_squares=per_task(sizes * sizes),
        sums=per_task(sums),
        squares=per_task(squares),
        output_squares=per_task(sums * sums * weights),
        output_means=per_task(sums * weights),
        denominator=denominator,
        common=common,
        binary=binary,
        origin=origin,
        dropped=0 if n_tasks is None else n_tasks - len(edges),
    )


def from_counts(passes: ArrayLike, runs: ArrayLike, *, one_output: bool = False) -> Nested:
    """Sums of binary outcomes from pass counts, shape (N,).

    Args:
        passes: Passes per task.
        runs: Measured runs per task; tasks with none are left out and counted.
        one_output: Whether the runs of a task are grades of one frozen output; else each is one grade of an output of its own.
    """
    k, n = checked_counts(passes, runs)
    dropped = int(np.count_nonzero(n == 0))
    k, n = k[n > 0], n[n > 0]
    ones = np.ones_like(n)
    common = lcm(*(int(size) for size in np.unique(n))) if one_output else 1
    wide = _widened(k, n, common)
    weights = common // n.astype(wide.dtype) if one_output else ones
    return Nested(
        outputs=ones if one_output else n,
        grades=n,
        grade_squares=n * n if one_output else n,
        sums=wide,
        squares=wide,
        output_squares=wide * wide * weights if one_output else wide,
        output_means=wide * weights if one_output else wide,
        denominator=1,
        common=common,
        binary=True,
        dropped=dropped,
    )


def quotients(top: Exact, whole: int, each: Ints | None = None) -> Floats:
    """Integers over `whole` times `each`, as floating-point numbers; none of them need fit into one."""
    if top.dtype == object or whole.bit_length() > 1000:
        divisors = whole if each is None else whole * each.astype(object)
        return np.asarray(top.astype(object) / divisors, dtype=np.float64)
    bottom = np.float64(whole) if each is None else np.float64(whole) * each
    return np.asarray(top / bottom, dtype=np.float64)


def _starts(*keys: NDArray[Any]) -> NDArray[np.intp]:
    """Where a new value of the sorted keys begins."""
    size = len(keys[0])
    if not size:
        return np.zeros(0, dtype=np.intp)
    new = np.zeros(size, dtype=np.bool_)
    new[0] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(new)


def _as_integers(values: Floats) -> tuple[Exact, int]:
    """Scores as integers over a denominator: exact for multiples of 1 over it, else rounded to 2^-53 of the largest."""
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"grade {at}: {values[at]} is not a score; a missing grade is left out")
    largest = float(np.abs(values).max()) if values.size else 0.0
    if largest <= _LARGEST:
        for denominator in _DENOMINATORS:
            numbers = np.rint(values * denominator)
            if np.array_equal(numbers / denominator, values):
                return numbers.astype(np.int64), denominator
    exponent = _GRID - int(np.frexp(largest)[1])
    if largest > LARGEST_SCORE:
        raise ValueError(f"a score of {largest:g} is too large to be added up exactly")
    return np.rint(np.ldexp(values, exponent)).astype(np.int64), 2**exponent


def _from_lowest(numbers: Exact, denominator: int) -> tuple[Exact, int, Fraction]:
    """The integers less the smallest, in lowest terms with their denominator, and what was subtracted; exact.

    They are then the same integers wherever the scores lie.
    """
    if not numbers.size:
        return numbers, denominator, Fraction()
    lowest = int(numbers.min())
    apart = numbers - lowest
    shared = gcd(int(np.gcd.reduce(apart)), denominator)
    return apart // shared, denominator // shared, Fraction(lowest, denominator)


def _widened(numbers: Exact, grades: Ints, common: int) -> Exact:
    """The integers as Python's own where a sum of squares, times `common` and a task's grades (n,), could leave int64."""
    peak = int(np.abs(numbers).max()) if numbers.size else 0
    most = int(grades.max()) if grades.size else 1
    bits = 2 * (peak.bit_length() + most.bit_length()) + common.bit_length() + int(grades.sum()).bit_length()
    return numbers.astype(object) if bits > 62 else numbers.astype(np.int64)
