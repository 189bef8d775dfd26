"""Checks in SQL: for each one a row that must be found and one that must not, over plain tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from schemas.checks import check_queries
from tests.support.check_tables import empty_tables, found, put, put_all, sentence


@pytest.fixture
def tables() -> duckdb.DuckDBPyConnection:
    return empty_tables()


def cells(connection: duckdb.DuckDBPyConnection, **reasons: int) -> None:
    rows: list[dict[str, Any]] = []
    for reason, count in reasons.items():
        name = reason.replace("_", "-")
        outcome = "pass" if name == "pass" else "fail" if name == "mismatch" else "unmeasured"
        places = range(len(rows), len(rows) + count)
        rows += [{"task_id": f"t{number}", "position": number, "outcome": outcome, "reason": name} for number in places]
    put_all(connection, "outcomes", rows)


def test_there_is_a_test_for_each_check() -> None:
    files = Path(__file__).parent.glob("test_checks*.py")
    tested = [name for file in files for name in re.findall(r"^def test_(\w+)", file.read_text("utf-8"), re.MULTILINE)]
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
    ends = [{"outcome": "unmeasured", "reason": "mismatch"}] * lost + [{"outcome": "pass", "reason": "pass"}] * (tasks - lost)
    put_all(tables, "preflight", [{"task_id": f"t{number}", "position": number, **end} for number, end in enumerate(ends)])
    assert found(tables, "preflight_lost") == ([("a", "", "error", True, float(lost))] if blocks else [])
    if blocks:
        assert f"{lost} of {tasks} tasks" in sentence(tables, "preflight_lost")


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


@pytest.mark.parametrize("required", [True, False])
def test_judge_probe(tables, required: bool) -> None:
    said = {"condition": "j", "task_id": "t", "position": 0, "required": required}
    put(tables, "probes", probe="empty", number=1, expected="fail", verdict="unparsed", sound=True, **said)
    assert found(tables, "judge_probe") == []
    put(tables, "probes", probe="known-good", number=3, expected="pass", verdict="fail", sound=False, **said)
    put(tables, "probes", probe="refusal", number=2, expected="fail", verdict="pass", sound=False, **said)
    assert found(tables, "judge_probe") == [("a", "j", "error", required, 2.0)]
    assert "2 of 3 probes: refusal must not pass and is said to be pass, known-good must pass" in sentence(tables, "judge_probe")


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


def test_not_blind(tables) -> None:
    add = "insert into protocols (study, protocol, predecessor, why, blind) values (?, ?, ?, ?, ?)"
    tables.execute(add, ["s", "other", "f" * 64, "no", False])
    tables.execute(add, ["s", "p", None, None, True])
    assert found(tables, "not_blind") == []
    tables.execute("delete from protocols where protocol = 'p'")
    tables.execute(add, ["s", "p", "0123456789abcdef" * 4, "w is wide.", False])
    assert found(tables, "not_blind") == [("", "", "warning", False, None)]
    assert sentence(tables, "not_blind").startswith("Successor of 0123456789ab, not blind: w is wide. Whoever stops")
