"""Checks in SQL about numbers of tasks, replicates and missing cells: for each a row that must be found and one that must not."""

from __future__ import annotations

import json

import duckdb
import pytest

from schemas.checks import check_queries
from tasks.checks import sql_findings
from tests.support.check_tables import empty_tables, found, put, sentence

LONG = "x" * 80


@pytest.fixture
def tables() -> duckdb.DuckDBPyConnection:
    return empty_tables()


def cells(connection: duckdb.DuckDBPyConnection, *tasks: str, condition: str = "live") -> None:
    """A task for each text, a cell for each letter: p passed, f failed, u unmeasured."""
    outcomes = {"p": ("pass", "pass"), "f": ("fail", "mismatch"), "u": ("unmeasured", "provider")}
    for position, task in enumerate(tasks):
        for replicate, letter in enumerate(task):
            outcome, reason = outcomes[letter]
            place = {"task_id": f"t{position}", "position": position, "replicate": replicate, "condition": condition}
            put(connection, "outcomes", outcome=outcome, reason=reason, **place)


@pytest.mark.parametrize(("tasks", "expected"), [(20, []), (19, [("a", "live", "warning", False, 19.0)])])
def test_few_tasks(tables, tasks: int, expected) -> None:
    cells(tables, *["pf"] * tasks, "uu")
    assert found(tables, "few_tasks") == expected


def test_few_tasks_says_what_to_do(tables) -> None:
    cells(tables, "pf")
    assert sentence(tables, "few_tasks").startswith("a, live: only 1 task was measured. Under 20, quote no interval")


@pytest.mark.parametrize(("task", "expected"), [("p", []), ("pu", []), ("pf", [("a", "live", "warning", False, 2.0)]), ("pfp", [])])
def test_few_replicates(tables, task: str, expected) -> None:
    """One replicate is a finding about the plan, of another check."""
    cells(tables, task, task)
    assert found(tables, "few_replicates") == expected


@pytest.mark.parametrize(("repeats", "said"), [(1, "1 repeat cannot disagree"), (2, "2 repeats per task leave"), (3, "")])
def test_few_replicates_of_a_judge(tables, repeats: int, said: str) -> None:
    for repeat in range(repeats):
        put(tables, "verdicts", condition="j", repeat=repeat, task_id="t", position=0, verdict="pass")
    expected = [("a", "j", "warning", False, float(repeats))] if said else []
    assert found(tables, "few_replicates") == expected
    assert not said or said in sentence(tables, "few_replicates")


def test_measured_once(tables) -> None:
    cells(tables, "pf", "pp", "uu")
    cells(tables, "p", "f", condition="single")
    assert found(tables, "measured_once") == []
    cells(tables, "pu", "pf", condition="cold")
    assert found(tables, "measured_once") == [("a", "cold", "warning", False, 1.0)]
    assert "1 of 2 tasks kept one outcome only and is in the score but not in w" in sentence(tables, "measured_once")


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        (["pppppppppp"], [("a", "live", "warning", False, 1.0)]),
        (["ffffff", "fffffu"], [("a", "live", "warning", False, 0.0)]),
        (["pppppppppf"], []),
        (["ppppp"], []),
        (["uuuuuuuuuuuu"], []),
    ],
)
def test_saturated(tables, tasks: list[str], expected) -> None:
    cells(tables, *tasks)
    assert found(tables, "saturated") == expected


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        (["pf", "pp"], []),
        (["ppff", "pfpf"], [("a", "live", "warning", False, pytest.approx(1 / 3))]),
        (["pf"] * 9, [("a", "live", "warning", False, 0.5)]),
        # (1/2 - 1/4) is over three standard errors of 1/4/sqrt(N) from N = 10 on.
        (["pf"] * 10, [("a", "live", "error", True, 0.5)]),
    ],
)
def test_w_impossible(tables, tasks: list[str], expected) -> None:
    cells(tables, *tasks)
    assert found(tables, "w_impossible") == expected


@pytest.mark.parametrize(
    ("lost", "other", "expected"),
    [
        (0, 0, []),
        (20, 0, [("a", "live", "warning", False, pytest.approx(0.1))]),
        (20, 18, []),
        # Three points, but of 200 cells: chance.
        (6, 0, []),
        (200, 0, [("a", "live", "warning", False, 1.0)]),
        (200, 200, []),
    ],
)
def test_unmeasured_imbalance(tables, lost: int, other: int, expected) -> None:
    for condition, gone in (("live", lost), ("cold", other)):
        cells(tables, *["u"] * gone, *["p"] * (200 - gone), condition=condition)
    assert found(tables, "unmeasured_imbalance") == expected


def test_unmeasured_imbalance_is_within_a_stack(tables) -> None:
    cells(tables, *["u"] * 20, *["p"] * 180)
    for position in range(200):
        put(tables, "outcomes", stack="b", task_id=f"t{position}", position=position, outcome="pass", reason="pass")
    assert found(tables, "unmeasured_imbalance") == []
    cells(tables, *["p"] * 200, condition="cold")
    assert sentence(tables, "unmeasured_imbalance").startswith("a, live: 10.0 % of its cells are unmeasured, and 0.0 % under cold:")


def test_unmatched_tasks(tables) -> None:
    cells(tables, "pp", "pf", "uu")
    cells(tables, "pu", "pf", "uu", condition="cold")
    assert found(tables, "unmatched_tasks") == []
    cells(tables, "uu", "pf", "uu", condition="replay")
    assert found(tables, "unmatched_tasks") == [("a", "replay", "warning", False, 1.0)]
    assert "1 of 2 tasks was measured under another condition" in sentence(tables, "unmatched_tasks")


def judged(connection: duckdb.DuckDBPyConnection, position: int, verdict: str, reference: str, **more: object) -> None:
    place = {
        "condition": "j",
        "repeat": 0,
        "task_id": f"t{position}",
        "position": position,
        "response_class": "complete",
        "text": "",
    }
    put(connection, "verdicts", verdict=verdict, reference_outcome=reference, **place | more)


@pytest.mark.parametrize(
    ("verdicts", "references", "constant"),
    [("pppppp", "ppppff", True), ("pppppp", "pppppp", False), ("pppppf", "ppppff", False), ("pppp", "ppff", False)],
)
def test_judge_constant(tables, verdicts: str, references: str, constant: bool) -> None:
    words = {"p": "pass", "f": "fail"}
    for position, (verdict, reference) in enumerate(zip(verdicts, references, strict=True)):
        judged(tables, position, words[verdict], words[reference])
    judged(tables, 9, "unparsed", "pass")
    assert found(tables, "judge_constant") == ([("a", "j", "warning", False, 6.0)] if constant else [])
    if constant:
        assert "all 6 verdicts are pass, of 4 candidates that passed and 2 that failed" in sentence(tables, "judge_constant")


@pytest.mark.parametrize(
    ("answers", "text", "temperature", "expected"),
    [
        ((10, 10), LONG, 0.7, ("error", True)),
        ((9, 10), LONG, None, ("warning", False)),
        ((5, 5), LONG, 0.7, ("warning", False)),
        ((7, 10), LONG, 0.7, None),
        ((4, 4), LONG, 0.7, None),
        ((10, 10), LONG, 0, None),
        ((10, 10), LONG[1:], 0.7, None),
    ],
)
def test_judge_one_text(tables, answers: tuple[int, int], text: str, temperature: float | None, expected) -> None:
    same, of = answers
    body = {} if temperature is None else {"temperature": temperature}
    put(tables, "calls", condition="j", purpose="judge", request=json.dumps({"body": body}))
    for position in range(of):
        for repeat in range(2):
            judged(tables, position, "pass", "pass", repeat=repeat, text=text if position < same else f"{text}{repeat}")
    assert found(tables, "judge_one_text") == ([] if expected is None else [("a", "j", *expected, float(same))])


def test_counts_are_made_once_for_all_checks(tables) -> None:
    """The same findings as from the view, which is there again afterwards, also after an error."""
    cells(tables, "pf", "uu")
    rows = list(sql_findings(tables, "s", "p"))
    expected = {name: found(tables, name) for name in check_queries()}
    assert (
        {name for name, _ in rows}
        == {name for name, rows in expected.items() if rows}
        >= {"few_tasks", "few_replicates", "unmeasured"}
    )
    assert tables.execute("select count(*) from duckdb_tables() where temporary").fetchall() == [(0,)]
    iterator = sql_findings(tables, "s", "p")
    next(iterator)
    iterator.close()
    assert tables.execute("select count(*) from duckdb_tables() where temporary").fetchall() == [(0,)]
