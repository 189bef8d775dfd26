"""Cells: every outcome of one stack under one condition of one protocol, as arrays of tasks by replicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from schemas.errors import StoreError

PASS, FAIL, UNMEASURED = 1, 0, -1
"""Codes of outcomes."""
CHANGED_STORE: Final = "The store was not written by evalnoise, or was changed: take it from where it was made."
"""What to do about records that evalnoise cannot have written."""


@dataclass(frozen=True, slots=True)
class Cells:
    """One stack under one condition; the first axis is the task in the benchmark's order, the second the replicate."""

    study: str
    protocol: str
    benchmark: str
    stack: str
    condition: str
    task_ids: tuple[str, ...]
    """Ids of the N tasks."""
    clusters: tuple[str, ...]
    """Cluster of each task; empty texts where the benchmark names none."""
    outcomes: NDArray[np.int8]
    """Shape (N, R): 1 pass, 0 fail, -1 unmeasured."""
    scores: NDArray[np.float64]
    """Shape (N, R): scores in [0, 1]; 0 where unmeasured."""
    order_known: bool
    """Whether replicates are in the order of time; else statistics of order are undefined."""

    def __post_init__(self) -> None:
        """Raises StoreError for a task id that is there twice: which of the two another arm's is, nothing says."""
        _refuse_repeats(f"{self.study}/{self.stack}/{self.condition}", "id", self.task_ids)

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Shape (N, R): whether a cell has an outcome."""
        return np.asarray(self.outcomes != UNMEASURED)

    @property
    def passes(self) -> NDArray[np.int64]:
        """Passes per task, shape (N,)."""
        return np.asarray((self.outcomes == PASS).sum(axis=1), dtype=np.int64)

    @property
    def runs(self) -> NDArray[np.int64]:
        """Measured replicates per task, shape (N,)."""
        return np.asarray(self.measured.sum(axis=1), dtype=np.int64)

    @property
    def binary(self) -> bool:
        """Whether every score is its outcome: 1 for a pass, 0 for a failure."""
        return bool(np.all(self.scores == (self.outcomes == PASS)))


_TASKS: Final = """
SELECT benchmark, position, task_id, cluster FROM tasks WHERE study = $study AND protocol = $protocol ORDER BY position
"""
_OUTCOMES: Final = """
SELECT position, replicate, CASE outcome WHEN 'pass' THEN 1 WHEN 'fail' THEN 0 ELSE -1 END::TINYINT AS outcome,
    coalesce(score, 0) AS score
FROM outcomes WHERE study = $study AND protocol = $protocol AND stack = $stack AND condition = $condition
"""
_TEXTS: Final = """
SELECT CASE WHEN prompt = '' THEN '' ELSE sha256(concat_ws(chr(31), kind, prompt, reference, entry_point)) END
FROM tasks WHERE study = $study AND protocol = $protocol ORDER BY position
"""
_ORDER: Final = """
SELECT count(*) FROM checks
WHERE study = $study AND protocol = $protocol AND stack = $stack AND condition = $condition AND "check" = 'order_unknown'
"""


def read_cells(
    connection: Any, study: str, protocol: str, stack: str, condition: str, *, order_known: bool | None = None
) -> Cells | None:
    """The cells of one stack under one condition; None when there are none.

    Raises:
        StoreError: Two of the protocol's tasks have one id, or one place.

    Args:
        connection: A connection to a catalog, as of `evalnoise.connect`.
        study: Name of the study.
        protocol: The protocol's whole digest.
        stack: Name of the stack.
        condition: Name of the condition.
        order_known: Whether replicates are in the order of time; None: as the sealed checks say.
    """
    names = {"study": study, "protocol": protocol}
    place = names | {"stack": stack, "condition": condition}
    found = connection.execute(_OUTCOMES, place).fetchnumpy()
    if not len(found["position"]):
        return None
    tasks = connection.execute(_TASKS, names).fetchall()
    _refuse_repeats(f"{study}/{stack}/{condition}", "position", [position for _, position, _, _ in tasks])
    shape = (len(tasks), 1 + int(found["replicate"].max()))
    outcomes, scores = np.full(shape, UNMEASURED, dtype=np.int8), np.zeros(shape)
    rows = {position: row for row, (_, position, _, _) in enumerate(tasks)}
    at = found["position"] if all(row == position for position, row in rows.items()) else _rows(found["position"], rows)
    outcomes[at, found["replicate"]] = found["outcome"]
    scores[at, found["replicate"]] = found["score"]
    if order_known is None:
        order_known = connection.execute(_ORDER, place).fetchall()[0][0] == 0
    return Cells(
        study=study,
        protocol=protocol,
        benchmark=tasks[0][0],
        stack=stack,
        condition=condition,
        task_ids=tuple(task_id for _, _, task_id, _ in tasks),
        clusters=tuple(cluster for _, _, _, cluster in tasks),
        outcomes=outcomes,
        scores=scores,
        order_known=order_known,
    )


def task_texts(connection: Any, study: str, protocol: str) -> tuple[str, ...]:
    """A digest of what each task asks, in the order of `Cells.task_ids`, whatever its id; empty where it has no text."""
    found = connection.execute(_TEXTS, {"study": study, "protocol": protocol}).fetchall()
    return tuple(digest for (digest,) in found)


def _refuse_repeats(arm: str, what: str, values: Sequence[object]) -> None:
    if len(set(values)) < len(values):
        twice = next(value for value, count in Counter(values).items() if count > 1)
        raise StoreError(
            arm,
            expected=f"each {what} of a task once",
            found=f"two tasks of {what} {twice!r}",
            remedy=CHANGED_STORE,
        )


def _rows(positions: NDArray[np.int64], rows: dict[int, int]) -> NDArray[np.int64]:
    return np.array([rows[int(position)] for position in positions], dtype=np.int64)
