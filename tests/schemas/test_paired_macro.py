"""paired_noise and arm_tasks in SQL: NumPy's numbers over random cells, and which protocol a name means."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalnoise.stats.models.pairs import paired_noise
from schemas.macros import load_macros
from schemas.tables import OUTCOMES
from schemas.views import load_views, reader_columns, sql_type

SHARED = settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
NEW, OLD = "b" * 64, "a" * 64
SAME = ("difference", "mean"), ("score_a", "score_a"), ("score_b", "score_b"), ("total", "total"), ("data", "data")
SAME += ("prediction", "prediction"), ("se_total", "se_total"), ("se_data", "se_data"), ("se_prediction", "se_prediction")
SAME += ("se_mean", "se_mean"), ("se_runs", "se_runs")


@pytest.fixture(scope="module")
def sql() -> duckdb.DuckDBPyConnection:
    """Two protocols of study s, and the macros."""
    connection = duckdb.connect()
    columns = ", ".join(f'"{column.name}" {sql_type(column)}' for column in reader_columns(OUTCOMES))
    connection.execute(f"create table outcomes ({columns})")
    connection.execute("create table noise_floor_all (study varchar, protocol varchar, w double)")
    connection.execute(next(view.sql for view in load_views() if view.name == "protocols"))
    for digest, day, status in ((OLD, 1, "complete"), (NEW, 2, "complete"), ("b1" + 62 * "c", 3, "partial")):
        frozen = datetime(2026, 1, day, tzinfo=UTC)
        connection.execute(
            "insert into protocols (study, protocol, frozen_at, status) values ('s', ?, ?, ?)", [digest, frozen, status]
        )
    for macro in load_macros():
        connection.execute(macro.sql)
    return connection


def put(connection: duckdb.DuckDBPyConnection, arms: dict[str, np.ndarray[Any, Any]], protocol: str = NEW) -> None:
    """Cells of arms whose scores have the shape (N, K); NaN is unmeasured."""
    connection.execute("delete from outcomes")
    for condition, scores in arms.items():
        task, replicate = (axis.ravel() for axis in np.indices(scores.shape))
        known = ~np.isnan(scores.ravel())
        outcome = np.where(known, np.where(scores.ravel() > 0.5, "pass", "fail"), "unmeasured")
        names = {"study": "s", "protocol": protocol, "benchmark": "b", "stack": "a", "condition": condition}
        cells = {name: [value] * task.size for name, value in names.items()}
        cells |= {"replicate": replicate, "task_id": [f"t/{i}" for i in task], "position": task}
        cells |= {"outcome": outcome, "score": pa.array(scores.ravel(), mask=~known)}
        connection.register("cells", pa.table(cells))
        connection.execute("insert into outcomes by name select * from cells")
        connection.unregister("cells")


def row(connection: duckdb.DuckDBPyConnection, a: str = "s/a/x", b: str = "s/a/y") -> dict[str, Any]:
    found = connection.execute("from paired_noise(?, ?)", [a, b])
    names = [column[0] for column in found.description]
    (only,) = found.fetchall()
    return dict(zip(names, only, strict=True))


@st.composite
def arms(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Two arms on the same tasks: 0 and 1 or quarters, with holes and tasks of one run or none; each task has a cell in each."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, grid, holes = draw(st.integers(1, 30)), draw(st.sampled_from([1, 4])), draw(st.sampled_from([0.0, 0.3]))
    lone = draw(st.sampled_from([0.0, 0.5]))  # Share of the tasks with one run.
    found = []
    for _ in range(2):
        k = draw(st.integers(1, 6))
        scores = rng.binomial(grid, rng.random((n, 1)), (n, k)) / grid
        hole = rng.random((n, k)) < holes
        hole[rng.random(n) < lone] = True
        hole[:, 0] = False
        found.append(np.where(hole, np.nan, scores))
    return found[0], found[1]


@SHARED
@given(arms())
def test_the_numbers_are_numpy_s(sql, pair) -> None:
    a, b = pair
    put(sql, {"x": a, "y": b})
    found = row(sql)
    known_a, known_b = ~np.isnan(a), ~np.isnan(b)
    expected = paired_noise(np.nan_to_num(a), np.nan_to_num(b), known_a, known_b)
    assert (found["n_tasks"], found["n_twice"], found["n_unmatched"]) == (expected.n_tasks, expected.n_twice, 0)
    for name, numpy_name in SAME[:6]:
        number = getattr(expected, numpy_name)
        assert found[name] == (None if number is None else pytest.approx(number, rel=1e-12, abs=1e-12)), name
    for name, numpy_name in SAME[6:]:
        # Squared: a root of rounding is larger than rounding. A data variance of 0 may come out on either side of it.
        number = getattr(expected, numpy_name)
        if found[name] is None or number is None:
            assert expected.data is None or abs(expected.data) < 1e-12 or found[name] is number is None
        else:
            assert found[name] ** 2 == pytest.approx(number**2, rel=1e-12, abs=1e-12), name
    assert bool(found["undefined"]) == any(number is None for number in (expected.total, expected.data, expected.prediction))


def test_by_hand(sql) -> None:
    """Wang's sums written out for two tasks and two runs each."""
    a, b = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 0.0]])
    put(sql, {"x": a, "y": b})
    found = row(sql)
    correction = (0.25 + 0) / 2 / 1 + (0 + 0.25) / 2 / 1
    prediction = (0.25 + 0 + 0 + 0.25) / 2 + correction
    assert (found["score_a"], found["score_b"], found["difference"]) == (0.75, 0.25, 0.5)
    assert found["prediction"] == prediction == 0.5
    assert found["data"] == 0 - correction
    assert found["se_data"] is None
    covariance = np.cov([0.5, 1.0], [0.0, 0.5], ddof=0)[0, 1]
    assert found["total"] == pytest.approx(a.var() + b.var() - 2 * covariance) == pytest.approx(found["data"] + found["prediction"])
    assert found["se_prediction"] == 0.5
    assert (found["runs_a"], found["runs_b"], found["undefined"]) == (2, 2, "")


def test_tasks_of_one_arm_only_are_counted_and_in_no_number(sql) -> None:
    a, b = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 0.0], [np.nan, np.nan]])
    put(sql, {"x": a, "y": b})
    found = row(sql)
    assert (found["n_tasks"], found["n_unmatched"], found["score_a"]) == (2, 1, 0.75)


def test_a_task_of_one_run_has_the_arm_s_mean_variance(sql) -> None:
    a, b = np.array([[1.0, 0.0], [1.0, np.nan]]), np.array([[0.0, 0.0], [1.0, 0.0]])
    put(sql, {"x": a, "y": b})
    found = row(sql)
    assert found["se_runs"] ** 2 == pytest.approx(((0.5 / 2 + 0) + (0.5 / 1 + 0.5 / 2)) / 2 / 2)
    assert (found["n_tasks"], found["n_twice"], found["data"]) == (2, 1, None)


def test_one_run_is_undefined_not_zero(sql) -> None:
    put(sql, {"x": np.array([[1.0], [0.0]]), "y": np.array([[0.0, 1.0], [0.0, 0.0]])})
    found = row(sql)
    assert [found[name] for name in ("data", "prediction", "se_data", "se_prediction", "se_runs")] == [None] * 5
    assert found["total"] is not None
    assert "two runs" in found["undefined"]


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("s/a/x", "s/a/x", "both arms are s/a/x"),
        ("s/a/x", "bbbb/a/x", "both arms are s/a/x"),
        ("s/a/x", "s/a/none", "no outcomes of s/a/none; name an arm as STUDY/STACK/CONDITION"),
        ("other/a/x", "s/a/x", "no outcomes of other/a/x"),
        ("s/x", "s/a/x", "no outcomes of s/x"),
        ("s/a/x", "s/a/y/z", "no outcomes of s/a/y/z"),
        ("' or 1=1 --/a/x", "s/a/x", "no outcomes of"),
        ("s/a/x", "s/a/z", "no task was measured in both s/a/x and s/a/z"),
        # An arm that measured nothing is an arm all the same.
        ("s/a/x", "s/a/lost", "no task was measured in both s/a/x and s/a/lost"),
        ("s/a/lost", "s/a/lost", "both arms are s/a/lost"),
        # Digits that two protocols begin with, or too few of them.
        ("b/a/x", "s/a/y", "no outcomes of b/a/x"),
    ],
)
def test_what_is_no_pair_is_an_error(sql, a: str, b: str, said: str) -> None:
    scores = np.array([[1.0, 0.0], [1.0, 1.0]])
    put(sql, {"x": scores, "y": scores, "z": np.vstack([np.full((2, 2), np.nan), scores]), "lost": np.full((2, 2), np.nan)})
    with pytest.raises(duckdb.Error, match=said):
        row(sql, a, b)


def test_two_tasks_of_one_id_are_an_error(sql) -> None:
    put(sql, {"x": np.ones((3, 2)), "y": np.zeros((3, 2))})
    sql.execute("update outcomes set task_id = 't/0' where position = 2 and condition = 'y'")
    with pytest.raises(duckdb.Error, match="s/a/y has two tasks of one id, which cannot be paired"):
        row(sql)


def test_a_study_means_its_newest_complete_protocol_and_digits_mean_one(sql) -> None:
    scores = np.array([[1.0, 0.0], [1.0, 1.0]])
    put(sql, {"x": scores, "y": scores}, OLD)
    # Both are missing, and DuckDB looks at them side by side.
    with pytest.raises(duckdb.Error, match=r"no outcomes of s/a/[xy]; name"):
        row(sql)
    found = row(sql, "aaaa/a/x", "aaaaaa/a/y")
    assert (found["protocol_a"], found["protocol_b"], found["difference"]) == (OLD, OLD, 0.0)
    tasks = sql.execute("select task_id, runs, total, squares, variance from arm_tasks('aaaa/a/x') order by position").fetchall()
    assert tasks == [("t/0", 2, 1.0, 1.0, 0.5), ("t/1", 2, 2.0, 2.0, 0.0)]


@pytest.mark.parametrize("arm", ["s/a", "nope/a/x", "s/a/none", ""])
def test_arm_tasks_of_no_arm_is_an_error(sql, arm: str) -> None:
    put(sql, {"x": np.ones((2, 2))})
    with pytest.raises(duckdb.Error, match=f"arm_tasks: no outcomes of {arm}; name an arm as STUDY/STACK/CONDITION"):
        sql.execute("select * from arm_tasks(?)", [arm]).fetchall()
    with pytest.raises(duckdb.Error, match="arm_tasks: no outcomes of"):
        sql.execute("select count(*) from arm_tasks(?)", [arm]).fetchall()


@pytest.mark.parametrize("name", ["zzz", "zzzzzz", ""])
def test_the_noise_floor_of_nothing_is_an_error(sql, name: str) -> None:
    put(sql, {"x": np.ones((2, 2))})
    with pytest.raises(duckdb.Error, match=f"noise_floor: no complete study {name}, and not one protocol"):
        sql.execute("select * from noise_floor(?)", [name]).fetchall()
    with pytest.raises(duckdb.Error, match="noise_floor: no complete study"):
        sql.execute("select count(*) from noise_floor(?)", [name]).fetchall()
