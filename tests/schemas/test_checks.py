"""Checks in SQL: for each one a row that must be found and one that must not, over plain tables."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from schemas.checks import check_queries
from schemas.tables import CALLS, GENERATIONS, OUTCOMES, PREFLIGHT, VERDICTS
from schemas.views import load_views, reader_columns, sql_type

TABLES = {table.name: table for table in (CALLS, GENERATIONS, OUTCOMES, PREFLIGHT, VERDICTS)}
BASE: dict[str, Any] = {"study": "s", "protocol": "p", "benchmark": "b", "stack": "a", "condition": "live", "replicate": 0}


@pytest.fixture
def tables() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table in TABLES.values():
        columns = ", ".join(f'"{column.name}" {sql_type(column)}' for column in reader_columns(table))
        connection.execute(f"create table {table.name} ({columns})")
    (counts,) = [view.sql for view in load_views() if view.name == "task_counts"]
    connection.execute(counts)
    return connection


def put(connection: duckdb.DuckDBPyConnection, table: str, **values: Any) -> None:
    names = [column.name for column in reader_columns(TABLES[table])]
    row = {name: value for name, value in (BASE | values).items() if name in names}
    marks = ", ".join("?" for _ in row)
    connection.execute(f"insert into {table} ({', '.join(row)}) values ({marks})", list(row.values()))


def found(connection: duckdb.DuckDBPyConnection, check: str) -> list[tuple[Any, ...]]:
    """(stack, condition, severity, blocks, value) of each finding; the sentence must name the condition or the stack."""
    rows = connection.execute(check_queries()[check], {"study": "s", "protocol": "p"}).fetchall()
    assert all(row[4].endswith(".") and row[0] in row[4] for row in rows)
    return [(row[0], row[1], row[2], row[3], row[5]) for row in rows]


def sentence(connection: duckdb.DuckDBPyConnection, check: str) -> str:
    (row,) = connection.execute(check_queries()[check], {"study": "s", "protocol": "p"}).fetchall()
    return str(row[4])


def cells(connection: duckdb.DuckDBPyConnection, **reasons: int) -> None:
    number = 0
    for reason, count in reasons.items():
        name = reason.replace("_", "-")
        outcome = "pass" if name == "pass" else "fail" if name == "mismatch" else "unmeasured"
        for _ in range(count):
            put(connection, "outcomes", task_id=f"t{number}", position=number, outcome=outcome, reason=name)
            number += 1


def test_there_is_a_test_for_each_check() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {name for name in check_queries() if not any(one.startswith(name) for one in tested)} == set()


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ({"pass": 100}, []),
        ({"pass": 90, "provider": 10}, [("a", "live", "warning", False, 10.0)]),
        ({"pass": 89, "provider": 11}, [("a", "live", "error", True, 11.0)]),
        # Two reasons, each under a tenth, together over it: both rows block.
        ({"pass": 88, "provider": 6, "infrastructure": 6}, [("a", "live", "error", True, 6.0)] * 2),
        ({"pass": 99, "replay_miss": 1}, [("a", "live", "error", True, 1.0)]),
        # What preflight left out is another check's matter, and is in no share.
        ({"pass": 10, "reference_unusable": 90}, []),
    ],
)
def test_unmeasured(tables, reasons, expected) -> None:
    cells(tables, **reasons)
    assert sorted(found(tables, "unmeasured")) == expected


def test_preflight_failed(tables) -> None:
    put(tables, "preflight", task_id="fine", position=0, outcome="pass", reason="pass")
    assert found(tables, "preflight_failed") == []
    put(tables, "preflight", task_id="bad", position=1, outcome="unmeasured", reason="unencodable")
    assert found(tables, "preflight_failed") == [("a", "", "warning", False, 1.0)]


@pytest.mark.parametrize(
    ("lost", "tasks", "blocks"),
    # The last three are CRUXEval, MBPP+ and half a benchmark.
    [(0, 10, False), (1, 10, False), (1, 9, True), (11, 100, True), (0, 800, False), (3, 378, False), (2, 4, True)],
)
def test_preflight_lost(tables, lost: int, tasks: int, blocks: bool) -> None:
    for number in range(tasks):
        passed = number >= lost
        outcome = "pass" if passed else "unmeasured"
        put(tables, "preflight", task_id=f"t{number}", position=number, outcome=outcome, reason="pass" if passed else "mismatch")
    assert found(tables, "preflight_lost") == ([("a", "", "error", True, float(lost))] if blocks else [])
    if blocks:
        assert f"{lost} of {tasks} tasks" in sentence(tables, "preflight_lost")


@pytest.mark.parametrize(("cut", "blocks"), [(0, None), (2, False), (3, True)])
def test_truncated(tables, cut: int, blocks: bool | None) -> None:
    for number in range(10):
        put(tables, "calls", response_id=f"{number}", response_class="truncated" if number < cut else "complete")
    expected = [] if blocks is None else [("a", "live", "error" if blocks else "warning", blocks, float(cut))]
    assert found(tables, "truncated") == expected


def test_no_candidate(tables) -> None:
    put(tables, "generations", response_class="complete", candidate_sha256="x")
    put(tables, "generations", response_class="infrastructure", candidate_sha256=None)
    assert found(tables, "no_candidate") == []
    for kind in ("refusal", "refusal", "empty", "complete"):
        put(tables, "generations", response_class=kind, candidate_sha256=None)
    assert sorted(row[4] for row in found(tables, "no_candidate")) == [1.0, 1.0, 2.0]


def test_repeated_ids(tables) -> None:
    for number in range(3):
        put(tables, "calls", provider="openai", response_id=f"id{number}")
    put(tables, "calls", provider="openai", response_id="")
    put(tables, "calls", provider="openai", response_id="")
    put(tables, "calls", provider="anthropic", response_id="id0")
    assert found(tables, "repeated_ids") == []
    # A cache between two conditions.
    put(tables, "calls", provider="openai", response_id="id1", condition="cold")
    assert sorted(found(tables, "repeated_ids")) == [("a", "cold", "error", True, 1.0), ("a", "live", "error", True, 1.0)]


def test_served_model(tables) -> None:
    put(tables, "calls", served_model="m-1")
    put(tables, "calls", served_model="")
    put(tables, "calls", served_model="m-2", condition="cold")
    assert found(tables, "served_model") == []
    put(tables, "calls", served_model="m-2")
    assert found(tables, "served_model") == [("a", "live", "error", True, 2.0)]


@pytest.mark.parametrize(("digests", "varied"), [(("x", "x", "x"), True), (("x", "x", "y"), False), (("x", "x", None), False)])
def test_replay_varied(tables, digests, varied: bool) -> None:
    for replicate, digest in enumerate(digests):
        cell = {"task_id": "t", "position": 0, "replicate": replicate, "condition": "replay"}
        outcome = "pass" if replicate else "fail"
        put(tables, "outcomes", outcome=outcome, reason="pass" if replicate else "cpu-limit", **cell)
        put(tables, "generations", attempt=0, candidate_sha256=digest, **cell)
    assert found(tables, "replay_varied") == ([("a", "replay", "warning", False, 1.0)] if varied else [])
    if varied:
        assert sentence(tables, "replay_varied").endswith("noise of the verifier, or a candidate that is random itself.")


@pytest.mark.parametrize(("varied", "severity"), [(0, "info"), (1, "warning"), (14, "warning"), (15, None)])
def test_few_variable(tables, varied: int, severity: str | None) -> None:
    for number in range(20):
        for replicate in range(2):
            passed = number >= varied or replicate == 0
            values = {"task_id": f"t{number}", "position": number, "replicate": replicate}
            put(tables, "outcomes", outcome="pass" if passed else "fail", reason="pass" if passed else "mismatch", **values)
    expected = [] if severity is None else [("a", "live", severity, False, float(varied))]
    assert found(tables, "few_variable") == expected


@pytest.mark.parametrize(("unparsed", "blocks"), [(0, None), (2, False), (3, True)])
def test_judge_unparsed(tables, unparsed: int, blocks: bool | None) -> None:
    for number in range(10):
        verdict = "unparsed" if number < unparsed else "pass"
        put(tables, "verdicts", condition="j", repeat=0, task_id=f"t{number}", position=number, verdict=verdict)
    expected = [] if blocks is None else [("a", "j", "error" if blocks else "warning", blocks, unparsed / 10)]
    assert found(tables, "judge_unparsed") == expected


def test_cost_unknown(tables) -> None:
    put(tables, "calls", cost_usd=0.0)
    assert found(tables, "cost_unknown") == []
    put(tables, "calls", cost_usd=None)
    assert found(tables, "cost_unknown") == [("a", "live", "info", False, 1.0)]


def test_every_value_passes(tables) -> None:
    put(tables, "preflight", task_id="fine", position=0, outcome="pass", reason="pass", known_bad="wrong value")
    put(tables, "preflight", task_id="gone", position=1, outcome="unmeasured", reason="accepts-anything", known_bad="")
    assert found(tables, "every_value_passes") == []
    for position in (3, 2):
        put(tables, "preflight", task_id=f"lax/{position}", position=position, outcome="pass", reason="pass", known_bad="raises")
    assert found(tables, "every_value_passes") == [("a", "", "info", False, 2.0)]
    assert sentence(tables, "every_value_passes").endswith("fails, on lax/2, lax/3.")


def test_inputs_dropped(tables) -> None:
    put(tables, "preflight", task_id="whole", position=0, outcome="pass", reason="pass", n_dropped=0)
    put(tables, "preflight", task_id="older", position=1, outcome="pass", reason="pass", n_dropped=None)
    assert found(tables, "inputs_dropped") == []
    put(tables, "preflight", task_id="large", position=3, outcome="pass", reason="pass", n_dropped=7)
    assert "1 task is verified" in sentence(tables, "inputs_dropped")
    put(tables, "preflight", task_id="big", position=2, outcome="pass", reason="pass", n_dropped=1)
    assert found(tables, "inputs_dropped") == [("a", "", "info", False, 2.0)]
    assert sentence(tables, "inputs_dropped").endswith("(big without 1, large without 7).")
