"""Views of verification noise against plain Python: tasks near a limit of time, candidates that were not always verified alike."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.tables import BUDGETS, ESTIMATES, EXECUTIONS, GENERATIONS, OUTCOMES, VERDICTS
from schemas.views import load_views, reader_columns, sql_type

TABLES = (EXECUTIONS, ESTIMATES, BUDGETS, OUTCOMES, GENERATIONS, VERDICTS)
VIEWS = ("answer_counts", "near_limit_tasks", "verifier_noise", "verifier_noise_summary", "noise_floor_all")
BASE: dict[str, Any] = {
    "study": "s", "protocol": "p", "benchmark": "b", "stack": "a", "condition": "again", "replicate": 0, "task_id": "t/0",
    "position": 0, "attempt": 0, "candidate_sha256": "c0", "checker": "differential", "outcome": "pass", "reason": "pass",
    "wall_seconds": 1.0, "cpu_seconds": 0.5, "cpu_limit_seconds": 10.0, "limit_share": 0.05, "load": 1.0,
    "container": "k0", "rechecks": "[]",
}  # fmt: skip
BY_TIME = {"cpu-limit", "wall-limit", "idle"}
BY_REASON = {"pass": "pass", "infrastructure": "unmeasured"}
Row = dict[str, Any]


def row(**values: Any) -> Row:
    made = BASE | values
    made["outcome"] = BY_REASON.get(made["reason"], "fail")
    if "ends" in made:
        made["rechecks"] = earlier(*made.pop("ends"))
    return made


def earlier(*reasons: str) -> str:
    """Earlier runs as `tasks.verify` writes them; the words of a fault are hostile."""
    facts = [{"reason": reason, "cpu_seconds": 9.5, "load": 2.0, "container": "k1"} for reason in reasons]
    for fact in facts:
        if fact["reason"] == "infrastructure":
            fact["detail"] = '", "reason": "idle", "x": "'
    return json.dumps(facts, sort_keys=True)


@cache
def made_once() -> duckdb.DuckDBPyConnection:
    """The tables and views: binding these takes longer than asking them."""
    made = duckdb.connect()
    for table in TABLES:
        columns = ", ".join(f'"{column.name}" {sql_type(column)}' for column in reader_columns(table))
        made.execute(f"create table {table.name} ({columns})")
    for view in load_views():
        if view.name in VIEWS:
            made.execute(view.sql)
    return made


def connection(rows: Iterable[Row]) -> duckdb.DuckDBPyConnection:
    """The one connection, with these rows alone."""
    made = made_once()
    for table in TABLES:
        made.execute(f"delete from {table.name}")
    names = list(BASE)
    marks = ", ".join("?" for _ in names)
    values = [[one[name] for name in names] for one in rows]
    if values:
        made.executemany(f"insert into executions ({', '.join(names)}) values ({marks})", values)
    return made


def ask(made: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    result = made.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, found, strict=True)) for found in result.fetchall()]


def is_near(one: Row) -> bool:
    """The definition in words, without SQL."""
    ends = [recheck["reason"] for recheck in json.loads(one["rechecks"])] + [one["reason"]]
    ends = [reason for reason in ends if reason != "infrastructure"]
    slow = [reason for reason in ends if reason in BY_TIME]
    by_time = one["reason"] == "pass" or one["reason"] in BY_TIME
    share = one["limit_share"]
    return (
        (by_time and share is not None and 0.5 <= share < 2)
        or (0 < len(slow) < len(ends))
        or one["reason"] in {"wall-limit", "idle"}
    )


REASONS = ("pass", "mismatch", "exception", "cpu-limit", "wall-limit", "idle", "infrastructure")
CELLS = st.fixed_dictionaries(
    {
        "stack": st.sampled_from(["a", "b"]),
        "condition": st.sampled_from(["live", "again"]),
        "task": st.integers(0, 3),
        "candidate_sha256": st.sampled_from(["c0", "c1"]),
        "reason": st.sampled_from(REASONS),
        "limit_share": st.sampled_from([None, 0.0, 0.4999, 0.5, 1.0, 1.999, 2.0]),
        "ends": st.lists(st.sampled_from(REASONS), max_size=3),
        "load": st.sampled_from([0.5, 1.0, 7.25]),
        "cpu_seconds": st.sampled_from([0.25, 9.5, 10.5]),
        "container": st.sampled_from(["", "k0", "k1"]),
    }
)


def placed(cell: Row) -> Row:
    task = cell.pop("task")
    return row(task_id=f"t/{task}", position=task, **cell)


@settings(max_examples=60, deadline=None)
@given(cells=st.lists(CELLS, max_size=25))
def test_both_views_are_what_plain_python_says(cells) -> None:
    rows = [placed(dict(cell)) for cell in cells]
    made = connection(rows)
    near: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for one in filter(is_near, rows):
        near[one["stack"], one["condition"], one["task_id"]].append(one)
    found = {(r["stack"], r["condition"], r["task_id"]): r for r in ask(made, "from near_limit_tasks")}
    assert found.keys() == near.keys()
    for key, ours in near.items():
        assert found[key]["verifications"] == len(ours)
        assert found[key]["reasons"] == counted(ours)
        assert found[key]["rechecks"] == sum(len(json.loads(one["rechecks"])) for one in ours)
        assert found[key]["load_max"] == max(one["load"] for one in ours)
    everywhere: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for one in rows:
        everywhere[one["stack"], one["task_id"], one["candidate_sha256"]].append(one)
    unsteady = {key: ours for key, ours in everywhere.items() if len({one["reason"] for one in ours}) > 1}
    expected = {(key, condition) for key, ours in unsteady.items() for condition in {one["condition"] for one in ours}}
    noise = {((r["stack"], r["task_id"], r["candidate_sha256"]), r["condition"]): r for r in ask(made, "from verifier_noise")}
    assert noise.keys() == expected
    for (key, condition), said in noise.items():
        ours = [one for one in unsteady[key] if one["condition"] == condition]
        outcomes = Counter(one["outcome"] for one in ours)
        assert said["verifications"] == len(ours)
        assert (said["passes"], said["fails"], said["unmeasured"]) == tuple(outcomes[o] for o in ("pass", "fail", "unmeasured"))
        assert said["reasons"] == counted(ours)
        assert said["flipped"] == (outcomes["pass"] > 0 and outcomes["fail"] > 0)
        assert said["reason_changed"] == (len({one["reason"] for one in ours}) > 1)
        assert said["flipped_anywhere"] == {"pass", "fail"}.issubset({one["outcome"] for one in unsteady[key]})
        assert (said["cpu_min"], said["cpu_max"]) == extremes(ours, "cpu_seconds")
        assert (said["load_min"], said["load_max"]) == extremes(ours, "load")
        assert said["containers"] == len({one["container"] for one in ours} - {""})
        assert said["rechecks"] == sum(len(json.loads(one["rechecks"])) for one in ours)
    summary = {(r["stack"], r["condition"]): r for r in ask(made, "from verifier_noise_summary")}
    assert summary.keys() == {(one["stack"], one["condition"]) for one in rows}
    for (stack, condition), said in summary.items():
        mine = [one for one in rows if (one["stack"], one["condition"]) == (stack, condition)]
        groups = [[one for one in mine if (one["task_id"], one["candidate_sha256"]) == key] for key in keys_of(mine)]
        assert (said["verifications"], said["candidates"]) == (len(mine), len(groups))
        assert said["repeated"] == sum(len(group) > 1 for group in groups)
        assert said["flipped"] == sum({"pass", "fail"}.issubset({one["outcome"] for one in group}) for group in groups)
        assert said["reason_changed"] == sum(len({one["reason"] for one in group}) > 1 for group in groups)
        assert said["unmeasured"] == sum(one["outcome"] == "unmeasured" for one in mine)
        assert said["near_limit"] == len({one["task_id"] for one in mine if is_near(one)})


def keys_of(rows: list[Row]) -> set[tuple[str, str]]:
    return {(one["task_id"], one["candidate_sha256"]) for one in rows}


def counted(rows: list[Row]) -> str:
    counts = Counter(one["reason"] for one in rows)
    return ", ".join(f"{reason} {n}" for reason, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def extremes(rows: list[Row], name: str) -> tuple[float, float]:
    return min(one[name] for one in rows), max(one[name] for one in rows)


@pytest.mark.parametrize(
    ("values", "near"),
    [
        ({"limit_share": 0.49}, False),
        ({"limit_share": 0.5}, True),
        ({"limit_share": 1.99, "reason": "cpu-limit"}, True),
        # Stopped there: no load doubles CPU time.
        ({"limit_share": 2.0, "reason": "cpu-limit"}, False),
        # A wrong result is wrong at any speed.
        ({"limit_share": 0.9, "reason": "mismatch"}, False),
        ({"reason": "wall-limit"}, True),
        ({"reason": "idle"}, True),
        # Over the limit every time is no doubt; over it once is.
        ({"reason": "cpu-limit", "limit_share": 2.2, "ends": ["cpu-limit", "cpu-limit"]}, False),
        ({"reason": "pass", "limit_share": 0.4, "ends": ["cpu-limit"]}, True),
        ({"reason": "mismatch", "ends": ["idle"]}, True),
        # What the sandbox failed to run is no run of the candidate.
        ({"reason": "cpu-limit", "limit_share": 2.2, "ends": ["infrastructure"]}, False),
        ({"reason": "infrastructure", "ends": ["infrastructure", "infrastructure"]}, False),
        # A file from before the column was there.
        ({"limit_share": None, "rechecks": None}, False),
    ],
)
def test_near_limit(values, near) -> None:
    made = connection([row(**values), row(task_id="t/1", position=1)])
    assert ask(made, "select task_id from near_limit_tasks") == ([{"task_id": "t/0"}] if near else [])
    estimate = {"study": "s", "protocol": "p", "benchmark": "b", "stack": "a", "condition": "again", "estimate": "score"}
    made.execute(f"insert into estimates ({', '.join(estimate)}) values ({', '.join('?' * 6)})", list(estimate.values()))
    assert ask(made, "select near_limit, typeof(near_limit) as type from noise_floor_all") == [
        {"near_limit": int(near), "type": "BIGINT"}
    ]


def test_a_flip_is_set_beside_its_cpu_wall_and_load() -> None:
    slow = {"reason": "cpu-limit", "cpu_seconds": 10.25, "wall_seconds": 21.0, "load": 9.5, "container": "k2", "limit_share": 1.025}
    rows = [row(replicate=r, cpu_seconds=8.125 + r / 8, wall_seconds=9.0, load=1.0 + r, limit_share=0.8 + r / 10) for r in range(2)]
    made = connection([*rows, row(replicate=2, **slow), row(condition="live")])
    live, again = sorted(ask(made, "from verifier_noise"), key=lambda found: found["verifications"])
    assert again == {
        "study": "s", "protocol": "p", "benchmark": "b", "stack": "a", "condition": "again", "task_id": "t/0", "position": 0,
        "candidate_sha256": "c0", "checker": "differential", "verifications": 3, "passes": 2, "fails": 1, "unmeasured": 0,
        "reasons": "pass 2, cpu-limit 1", "flipped": True, "reason_changed": True, "flipped_anywhere": True, "cpu_min": 8.125,
        "cpu_max": 10.25, "cpu_limit": 10.0, "limit_share_min": 0.8, "limit_share_max": 1.025, "wall_min": 9.0, "wall_max": 21.0,
        "load_min": 1.0, "load_max": 9.5, "cpu_by_reason": "pass 8.125-8.25, cpu-limit 10.25",
        "wall_by_reason": "pass 9.0, cpu-limit 21.0", "load_by_reason": "pass 1.0-2.0, cpu-limit 9.5", "rechecks": 0,
        "containers": 2,
    }  # fmt: skip
    # The live run's one verification differs from nothing of its own condition, but it is of the same candidate.
    assert (live["condition"], live["reasons"], live["flipped"], live["flipped_anywhere"]) == ("live", "pass 1", False, True)


def test_other_protocols_stacks_and_checkers_are_other_verifications() -> None:
    others = [{"protocol": "q"}, {"study": "z"}, {"stack": "b"}, {"checker": "evalplus"}, {"candidate_sha256": "c1"}]
    made = connection([row(), *(row(reason="mismatch", **other) for other in others)])
    assert ask(made, "from verifier_noise") == []


SCORE: Row = {
    "study": "s", "protocol": "p", "benchmark": "b", "stack": "a", "condition": "again", "estimate": "score", "value": 8 / 9,
    "n_tasks": 100, "n_replicates": 1, "method": "exact",
}  # fmt: skip


def put(made: duckdb.DuckDBPyConnection, table: str, **values: Any) -> None:
    made.execute(f"insert into {table} ({', '.join(values)}) values ({', '.join('?' for _ in values)})", list(values.values()))


def test_missing_cells_give_both_shares_and_the_bounds_of_the_score():
    """Hard input 2: 100 cells, 10 without an outcome, 80 right. What preflight left out is in neither. Hard input 3: the bounds."""
    made = connection([])
    put(made, "estimates", **SCORE)
    cell = {name: SCORE[name] for name in ("study", "protocol", "benchmark", "stack", "condition")}
    for outcome, reason, count in (
        ("pass", "pass", 80), ("fail", "mismatch", 10), ("unmeasured", "provider", 10), ("unmeasured", "reference-unusable", 7),
    ):  # fmt: skip
        for _ in range(count):
            put(made, "outcomes", **cell, outcome=outcome, reason=reason)
    (found,) = ask(made, "from noise_floor_all")
    assert (found["n_passed"], found["n_measured"], found["n_missing"]) == (80, 90, 10)
    assert (found["score_missing_fail"], found["score_missing_pass"]) == (80 / 100, 90 / 100)


def test_answers_are_counted_by_class_beside_the_score_and_for_judges():
    """Hard input 11: truncated answers are a visible count."""
    made = connection([])
    put(made, "estimates", **SCORE)
    cell = {name: SCORE[name] for name in ("study", "protocol", "benchmark", "stack", "condition")}
    counts = {"complete": 7, "truncated": 6, "refusal": 5, "filtered": 4, "empty": 3, "malformed": 2, "infrastructure": 1}
    for name, count in counts.items():
        for _ in range(count):
            put(made, "generations", **cell, response_class=name)
    put(made, "verdicts", **cell | {"condition": "judge"}, response_class="truncated")
    (floor,) = ask(made, "from noise_floor_all")
    numbers = {name: value for name, value in floor.items() if name.startswith("n_") and name in ask(made, "from answer_counts")[0]}
    assert numbers == {
        "n_answers": 28, "n_truncated": 6, "n_refused": 5, "n_filtered": 4, "n_empty": 3, "n_malformed": 2, "n_infrastructure": 1,
    }  # fmt: skip
    assert ask(made, "select n_answers, n_truncated from answer_counts where condition = 'judge'") == [
        {"n_answers": 1, "n_truncated": 1}
    ]
