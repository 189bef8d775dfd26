"""Cells as arrays: codes, scores, holes, clusters and order, for any names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evalnoise
from evalnoise.readers.cells import FAIL, PASS, UNMEASURED, Cells, read_cells
from evalnoise.store.store import StudyStore
from schemas.errors import StoreError
from tests.support.arm_store import measured

HOSTILE = ["../../etc", "'; drop table outcomes; --", "a\nb\x1b[31m", 'x"y=z/'[:5]]


@contextmanager
def opened(root: Path) -> Iterator[Any]:
    connection = evalnoise.connect(root)
    try:
        yield connection
    finally:
        connection.close()


def read(root: Path, made: StudyStore, stack: str = "a", condition: str = "live", **options: Any) -> Cells | None:
    with opened(root) as connection:
        return read_cells(connection, made.study, made.protocol, stack, condition, **options)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_codes_scores_and_counts(store) -> None:
    made = measured(store, "s", {("a", "live"): ["pfu", "ppp", "uuu", "hpf"], ("a", "cold"): ["fff"] * 4})
    cells = read(store, made)
    assert cells is not None
    assert cells.outcomes.tolist() == [
        [PASS, FAIL, UNMEASURED], [PASS, PASS, PASS], [UNMEASURED] * 3, [PASS, PASS, FAIL],
    ]  # fmt: skip
    assert cells.scores.tolist() == [[1, 0, 0], [1, 1, 1], [0, 0, 0], [0.5, 1, 0]]
    assert (cells.outcomes.dtype, cells.scores.dtype) == (np.int8, np.float64)
    assert cells.passes.tolist() == [1, 3, 0, 2]
    assert cells.runs.tolist() == [2, 3, 0, 3]
    assert cells.measured.sum() == 8
    assert not cells.binary
    assert (cells.study, cells.protocol, cells.benchmark, cells.stack, cells.condition) == ("s", made.protocol, "tiny", "a", "live")
    assert cells.task_ids == ("t/0", "t/1", "t/2", "t/3")
    assert cells.clusters == ("c0", "c1", "c0", "c1")
    cold = read(store, made, condition="cold")
    assert cold is not None
    assert cold.binary
    assert cold.passes.tolist() == [0] * 4


def test_a_replicate_that_is_not_sealed_yet_is_unmeasured_not_failed(store) -> None:
    """Blocks of tasks are sealed one by one, also out of order."""
    made = measured(store, "s", {("a", "live"): ["p p", " pf"]}, complete=False)
    cells = read(store, made)
    assert cells is not None
    assert cells.outcomes.tolist() == [[PASS, UNMEASURED, PASS], [UNMEASURED, PASS, FAIL]]
    assert cells.runs.tolist() == [2, 2]


def test_there_is_nothing_of_what_was_not_measured(store) -> None:
    made = measured(store, "s", {("a", "live"): ["pf"]})
    assert read(store, made, condition="cold") is None
    assert read(store, made, stack="b") is None
    with opened(store) as connection:
        assert read_cells(connection, "other", made.protocol, "a", "live") is None
        assert read_cells(connection, "s", "0" * 64, "a", "live") is None
        assert read_cells(connection, "s' or '1'='1", made.protocol, "a", "live") is None


def test_names_are_data(store) -> None:
    """Task ids may be any text; the store takes plain names only for stacks and conditions."""
    stack, condition = "a.b_c-d", "e--f"
    made = measured(store, "s", {(stack, condition): ["pf", "fp", "pp", "ff"]}, tasks=HOSTILE)
    cells = read(store, made, stack, condition)
    assert cells is not None
    assert cells.task_ids == tuple(HOSTILE)
    assert cells.passes.tolist() == [1, 1, 2, 0]


def test_positions_need_not_be_rows(store, monkeypatch) -> None:
    """A protocol of some tasks keeps their places in the benchmark."""
    places = {"t/0": 3, "t/1": 7, "t/2": 12}
    original = __import__("tests.support.arm_store", fromlist=["_row"])._row
    monkeypatch.setattr(
        "tests.support.arm_store._row", lambda table, made, _, task, **more: original(table, made, places[task], task, **more)
    )
    made = measured(store, "s", {("a", "live"): ["pp", "pf", "fu"]})
    cells = read(store, made)
    assert cells is not None
    assert cells.task_ids == ("t/0", "t/1", "t/2")
    assert cells.outcomes.tolist() == [[PASS, PASS], [PASS, FAIL], [FAIL, UNMEASURED]]


@pytest.mark.parametrize(("task", "place", "said"), [("t/0", 2, "two tasks of id 't/0'"), ("t/2", 0, "two tasks of position 0")])
def test_a_task_that_is_there_twice_is_refused(store, monkeypatch, task: str, place: int, said: str) -> None:
    """A store made by hand: a difference of two arms would hang on which of the two is taken."""
    original = __import__("tests.support.arm_store", fromlist=["_row"])._row
    named = {"t/2": (place, task)}
    monkeypatch.setattr(
        "tests.support.arm_store._row",
        lambda table, made, i, name, **more: original(table, made, *named.get(name, (i, name)), **more),
    )
    made = measured(store, "s", {("a", "live"): ["pp", "pf", "fu"]})
    with pytest.raises(StoreError, match=said):
        read(store, made)


def test_order_is_what_the_sealed_checks_say_unless_the_caller_knows(store) -> None:
    unknown = {"check": "order_unknown", "stack": "a", "condition": "cold", "severity": "info", "sentence": "x"}
    made = measured(store, "s", {("a", "live"): ["pf"], ("a", "cold"): ["pf"], ("b", "cold"): ["pf"]}, checks=[unknown])
    known = {place: read(store, made, *place) for place in (("a", "live"), ("a", "cold"), ("b", "cold"))}
    assert {place: cells is not None and cells.order_known for place, cells in known.items()} == {
        ("a", "live"): True, ("a", "cold"): False, ("b", "cold"): True,
    }  # fmt: skip
    forced = read(store, made, "a", "cold", order_known=True)
    assert forced is not None
    assert forced.order_known


def test_protocols_are_kept_apart(store) -> None:
    old, new = (measured(store, "s", {("a", "live"): [text]}, seed=seed) for seed, text in ((0, "pp"), (1, "fff")))
    for made, expected in ((old, [[1, 1]]), (new, [[0, 0, 0]])):
        cells = read(store, made)
        assert cells is not None
        assert cells.outcomes.tolist() == expected
