"""Counts as arrays: each in its task's place, zeros where a condition has not measured one."""

import duckdb
import numpy as np
import pytest

from evalnoise.readers.counts import counted_once, read_counts, read_judged
from tests.support.check_tables import empty_tables, put

ROWS = [
    ("s", "p", "b", "live", 2, 3, 4, 1),
    ("s", "p", "b", "live", 0, 5, 5, 0),
    ("s", "p", "b", "cold", 1, 0, 2, 3),
    ("s", "p", "a", "live", 3, 1, 1, 2),
    ("s", "other", "a", "live", 0, 9, 9, 9),
    ("t", "p", "c", "live", 0, 9, 9, 9),
]


@pytest.fixture
def connection():
    found = duckdb.connect()
    found.execute(
        "create table task_counts (study text, protocol text, stack text, condition text, position bigint, passes bigint,"
        " runs bigint, unmeasured bigint)"
    )
    found.executemany("insert into task_counts values (?, ?, ?, ?, ?, ?, ?, ?)", ROWS)
    yield found
    found.close()


def test_counts_lie_in_their_task_s_place(connection):
    found = read_counts(connection, "s", "p", 4)
    assert list(found) == [("a", "live"), ("b", "cold"), ("b", "live")], "no a under cold"
    live = found["b", "live"]
    assert (live.stack, live.condition) == ("b", "live")
    assert live.passes.tolist() == [5, 0, 3, 0]
    assert live.runs.tolist() == [5, 0, 4, 0]
    assert live.unmeasured == 1
    assert found["b", "cold"].runs.tolist() == [0, 2, 0, 0]
    assert found["a", "live"].passes.tolist() == [0, 0, 0, 1]


def test_nothing_is_no_counts(connection):
    assert read_counts(connection, "s", "none", 4) == {}


def test_counts_made_once_are_the_view_s():
    """The same rows as the view gives, of one protocol, and the view is there again afterwards."""
    tables = empty_tables()
    for position, task in enumerate(["pf", "uu", "pu"]):
        for replicate, letter in enumerate(task):
            outcome = {"p": "pass", "f": "fail", "u": "unmeasured"}[letter]
            for protocol in ("p", "q"):
                values = {"task_id": f"t{position}", "position": position, "replicate": replicate, "outcome": outcome}
                put(tables, "outcomes", protocol=protocol, **values)
    query = "select * from task_counts order by protocol, position"
    view = tables.execute(query).fetchall()
    columns = [row[:2] for row in tables.execute("describe task_counts").fetchall()]
    with counted_once(tables, "s", "p"), counted_once(tables, "s", "p"):
        assert tables.execute(query).fetchall() == [row for row in view if row[1] == "p"]
        assert [row[:2] for row in tables.execute("describe task_counts").fetchall()] == columns
        counts = read_counts(tables, "s", "p", 3)["a", "live"]
    assert (counts.passes.tolist(), counts.runs.tolist(), counts.unmeasured) == ([1, 0, 1], [2, 0, 1], 3)
    assert tables.execute(query).fetchall() == view


def test_verdicts_lie_in_their_task_s_and_repeat_s_place():
    rng = np.random.default_rng(0)
    tables = empty_tables()
    rows = {}
    for stack in "ba":
        for condition in ("judge-b", "judge-a"):
            for position in (7, 2, 4):
                reference = str(rng.choice(["pass", "fail"]))
                for repeat in range(3):
                    if (position, repeat) == (4, 2):
                        continue  # never asked
                    verdict = str(rng.choice(["pass", "fail", "unparsed"]))
                    sure = None if rng.random() < 0.4 else float(rng.integers(0, 101))
                    rows[stack, condition, position, repeat] = (verdict, sure, reference)
                    place = {"stack": stack, "condition": condition, "position": position, "repeat": repeat}
                    put(tables, "verdicts", verdict=verdict, confidence=sure, reference_outcome=reference, protocol="p", **place)
    put(tables, "verdicts", protocol="other")
    found = read_judged(tables, "s", "p")
    assert [(one.stack, one.condition) for one in found] == [(s, c) for s in "ab" for c in ("judge-a", "judge-b")]
    for one in found:
        assert one.positions.tolist() == [2, 4, 7]
        for row, position in enumerate(one.positions):
            for repeat in range(3):
                verdict, sure, reference = rows.get((one.stack, one.condition, int(position), repeat), ("unparsed", None, None))
                assert one.verdicts[row, repeat] == {"pass": 1, "fail": 0, "unparsed": -1}[verdict]
                assert (one.confidence[row, repeat], one.stated[row, repeat]) == (sure or 0.0, sure is not None)
                assert reference is None or one.reference[row] == (reference == "pass")
    assert read_judged(tables, "s", "none") == []
