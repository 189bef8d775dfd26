"""Pairing: the tasks that several arms share, by their ids, and where each arm has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalnoise.readers.cells import Cells
from schemas.errors import StoreError

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shared:
    """Tasks that all arms have, in the first arm's order."""

    task_ids: tuple[str, ...]
    rows: tuple[Ints, ...]
    """Of each arm: its rows of these tasks."""
    unmatched: tuple[int, ...]
    """Of each arm: how many of its tasks some other arm lacks."""

    def counts(self, arms: Sequence[Cells]) -> tuple[Ints, Ints]:
        """Passes and measured runs, shape (M, N) each: a row per arm, a column per shared task."""
        chosen = list(zip(arms, self.rows, strict=True))
        return np.stack([cells.passes[at] for cells, at in chosen]), np.stack([cells.runs[at] for cells, at in chosen])


def shared_tasks(arms: Sequence[Cells]) -> Shared:
    """The tasks that all arms have.

    Raises:
        StoreError: They are of different benchmarks, or share no task.
    """
    first = arms[0]
    for cells in arms[1:]:
        if cells.benchmark != first.benchmark:
            found = f"{first.benchmark!r} and {cells.benchmark!r}"
            raise _no(first, cells, "arms of one benchmark", found)
    places = [{task: row for row, task in enumerate(cells.task_ids)} for cells in arms]
    ids = tuple(task for task in first.task_ids if all(task in place for place in places))
    if not ids:
        raise _no(first, arms[-1], "a task that all arms have", "none")
    rows = tuple(np.array([place[task] for task in ids], dtype=np.int64) for place in places)
    return Shared(ids, rows, tuple(len(place) - len(ids) for place in places))


def _no(first: Cells, other: Cells, expected: str, found: str) -> StoreError:
    where = f"{first.study}/{first.stack}/{first.condition} and {other.study}/{other.stack}/{other.condition}"
    return StoreError(where, expected=expected, found=found, remedy="Name arms that were measured on the same tasks.")
