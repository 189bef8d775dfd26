"""Tasks that arms share."""

from __future__ import annotations

import numpy as np
import pytest

from evalnoise.readers.cells import Cells
from evalnoise.readers.pairing import shared_tasks
from schemas.errors import StoreError


def cells(ids: str, outcomes: list[list[int]], benchmark: str = "b") -> Cells:
    table = np.array(outcomes, dtype=np.int8)
    return Cells(
        study="s", protocol="p", benchmark=benchmark, stack="a", condition="live", task_ids=tuple(ids), clusters=("",) * len(ids),
        outcomes=table, scores=(table == 1).astype(float), order_known=True,
    )  # fmt: skip


def test_rows_are_paired_by_id() -> None:
    one, other = cells("xyz", [[1, 1], [1, 0], [0, -1]]), cells("wzx", [[0, 0], [1, 1], [0, 1]])
    found = shared_tasks([one, other])
    assert found.task_ids == ("x", "z")
    assert found.unmatched == (1, 1)
    passes, runs = found.counts([one, other])
    assert passes.tolist() == [[2, 0], [1, 2]]
    assert runs.tolist() == [[2, 1], [2, 2]]


@pytest.mark.parametrize(
    ("other", "said"), [(cells("q", [[1]]), "a task that all arms have"), (cells("x", [[1]], "c"), "arms of one benchmark")]
)
def test_nothing_in_common(other: Cells, said: str) -> None:
    with pytest.raises(StoreError, match=said):
        shared_tasks([cells("x", [[1]]), other])


def test_a_task_id_that_is_there_twice_is_refused() -> None:
    with pytest.raises(StoreError, match="expected each id of a task once, found two tasks of id 'x'"):
        cells("xyx", [[1], [0], [0]])
