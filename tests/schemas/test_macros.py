"""The SQL macros: each gives NumPy's number to 1e-12, says null for the undefined, and refuses what cannot be."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import NormalDist
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.special import comb, ndtri

from evalnoise.stats.nested.components import components
from evalnoise.stats.nested.sums import from_array
from evalnoise.stats.planning.budget import detectable, rerun_budget, z_sum
from evalnoise.stats.reliability import Of, task_values
from evalnoise.stats.variance import task_variances, within_task_variance
from schemas.macros import load_macros, parse_macro
from schemas.tables import OUTCOMES
from schemas.views import load_views, reader_columns, sql_type

SQL = Path(__file__).parents[2] / "schemas" / "sql"
WANTED = ("rerun_budget", "noise_floor", "paired_noise", "variance_components")
SHARED = settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def sql() -> duckdb.DuckDBPyConnection:
    """The macros over empty tables of the store's columns."""
    connection = duckdb.connect()
    columns = ", ".join(f'"{column.name}" {sql_type(column)}' for column in reader_columns(OUTCOMES))
    connection.execute(f"create table outcomes ({columns})")
    connection.execute("create table noise_floor_all (study varchar, protocol varchar, w double)")
    connection.execute(next(view.sql for view in load_views() if view.name == "protocols"))
    for macro in load_macros():
        connection.execute(macro.sql)
    return connection


def value(connection: duckdb.DuckDBPyConnection, query: str, *values: Any) -> Any:
    ((found,),) = connection.execute(f"select {query}", list(values)).fetchall()
    return found


def column(connection: duckdb.DuckDBPyConnection, query: str, **arrays: Any) -> np.ndarray[Any, Any]:
    """A query over a table of these columns, in their order."""
    first = next(iter(arrays.values()))
    connection.register("given", pa.table({**arrays, "place": np.arange(len(first))}))
    found = connection.execute(f"select {query} as found from given order by place").fetchall()
    connection.unregister("given")
    return np.array([row[0] for row in found], dtype=object)


def row(connection: duckdb.DuckDBPyConnection, query: str, *values: Any) -> dict[str, Any]:
    found = connection.execute(query, list(values))
    names = [column[0] for column in found.description]
    (only,) = found.fetchall()
    return dict(zip(names, only, strict=True))


# --- the files -----------------------------------------------------------------------------------------------------------


def test_every_file_is_a_macro_of_its_name() -> None:
    assert {path.stem for path in (SQL / "macros").glob("*.sql")} == {macro.name for macro in load_macros()}
    assert set(WANTED) <= {macro.name for macro in load_macros()}
    for macro in load_macros():
        statement = re.search(r"CREATE MACRO (.+?) AS( TABLE)?$", macro.sql, re.MULTILINE)
        assert statement is not None
        assert statement[1] == macro.signature
        assert bool(statement[2]) == bool(macro.grain)


def test_tables_have_the_columns_that_their_headers_name(sql) -> None:
    sql.execute("create or replace temp table empty_grades (task varchar, generation int, grade double)")
    calls = {
        "arm_tasks": "'a/b/c'",
        "paired_noise": "'a/b/c', 'a/b/d'",
        "variance_components": "'empty_grades'",
        "noise_floor": "'a'",
    }
    tables = [macro for macro in load_macros() if macro.grain]
    assert {macro.name for macro in tables} == set(calls)
    for macro in tables:
        described = [name for name, *_ in sql.execute(f"describe from {macro.name}({calls[macro.name]})").fetchall()]
        if macro.columns_of:
            assert macro.columns_of in {view.name for view in load_views()}
        else:
            assert described == [name for name, _ in macro.columns], macro.name


GOOD = "-- macro: f(x, y := 1)\n-- returns: DOUBLE\n-- arguments:\n--   x: a\n--   y: b\nCREATE MACRO f(x, y := 1) AS x;"


@pytest.mark.parametrize(
    "change",
    [
        ("-- macro: f(x, y := 1)\n", ""),
        ("-- returns: DOUBLE\n", ""),
        ("--   y: b\n", ""),
        ("CREATE MACRO f(x, y := 1) AS x;", ""),
        ("-- returns: DOUBLE\n", "-- grain: row\n"),
        ("-- returns: DOUBLE\n", "-- returns: DOUBLE\n-- grain: row\n-- columns of: v\n"),
    ],
)
def test_a_macro_without_its_header_is_refused(change) -> None:
    assert parse_macro(GOOD).arguments == (("x", "a"), ("y", "b"))
    with pytest.raises(ValueError, match="a macro needs"):
        parse_macro(GOOD.replace(*change))


# --- quantiles and budgets -----------------------------------------------------------------------------------------------


def test_normal_quantile_over_all_of_its_range(sql) -> None:
    rng = np.random.default_rng(1)
    p = np.concatenate([rng.random(5000), 10.0 ** -(300 * rng.random(5000)), 1 - 10.0 ** -(15 * rng.random(2000))])
    p = np.concatenate([p[(p > 0) & (p < 1)], [1e-300, 5e-324, 0.025, 0.075, 0.925, 0.5, 1 - 2**-53]])
    found = column(sql, "normal_quantile(p)", p=p).astype(float)
    np.testing.assert_allclose(found, ndtri(p), rtol=1e-12, atol=0)
    np.testing.assert_allclose(found, [NormalDist().inv_cdf(x) for x in p], rtol=1e-15, atol=0)
    assert value(sql, "normal_quantile(0.5)") == 0


W = st.floats(0, 0.5)


@SHARED
@given(st.lists(st.tuples(W, st.integers(1, 10**6), st.floats(1e-6, 1), st.floats(1e-9, 0.9), st.floats(0.5, 0.9999)), min_size=1))
def test_rerun_budget_is_python_s_to_the_run(sql, cases) -> None:
    w, n, delta, alpha, power = (np.array(part) for part in zip(*cases, strict=True))
    found = column(
        sql, "rerun_budget(w, n, delta, alpha := alpha, power := power)", w=w, n=n, delta=delta, alpha=alpha, power=power
    )
    for got, (w_, n_, delta_, alpha_, power_) in zip(found, cases, strict=True):
        assert got == rerun_budget(w_, w_, n_, delta_, alpha=alpha_, power=power_)


@SHARED
@given(st.lists(st.tuples(st.floats(1e-6, 0.25), st.integers(1, 5000), st.integers(1, 2000)), min_size=1, max_size=50))
def test_a_difference_that_r_runs_just_resolve_needs_r_runs(sql, cases) -> None:
    w, n, runs = (np.array(part) for part in zip(*cases, strict=True))
    delta = z_sum(0.05, 0.8) * np.sqrt(2 * w / (n * runs))
    found = column(sql, "minimum_detectable_effect(w, w, n, runs)", w=w, n=n, runs=runs).astype(float)
    np.testing.assert_allclose(found, delta, rtol=1e-12)
    found = column(sql, "case when delta <= 1 then rerun_budget(w, n, delta) else runs end", w=w, n=n, delta=delta, runs=runs)
    assert found.tolist() == runs.tolist()


def test_published_budget(sql) -> None:
    assert value(sql, "rerun_budget(0.0301, 164, 0.02)") == 8
    assert value(sql, "rerun_budget(0, 164, 0.02)") == 1
    assert value(sql, "run_sd(0.0301, 164)") == pytest.approx(0.0135475675, abs=1e-9)
    assert value(sql, "minimum_detectable_effect(0.05, 0.01, 164, 8, alpha := 0.01, power := 0.9)") == pytest.approx(
        detectable(0.05, 0.01, 164, 8, alpha=0.01, power=0.9), rel=1e-12
    )


NOTHING = ["rerun_budget(null, 164, 0.02)", "rerun_budget(0.03, null, 0.02)", "rerun_budget(0.03, 164, null)"]
NOTHING += ["rerun_budget(0.03, 164, 0.02, alpha := null)", "minimum_detectable_effect(0.03, null, 164, 5)", "run_sd(null, 164)"]
NOTHING += ["run_sd(0.03, null)", "normal_quantile(null)", "within_task_variance(null, 5)", "within_task_variance(1, 1)"]
NOTHING += [
    "within_task_variance(0, 0)",
    "pass_at_k(2, 1, 3)",
    "pass_hat_k(2, 1, 3)",
    "pass_at_k(null, 1, 3)",
    "pass_hat_k(3, 2, null)",
]


@pytest.mark.parametrize("call", NOTHING)
def test_the_undefined_is_null(sql, call: str) -> None:
    assert value(sql, call) is None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("rerun_budget(0.6, 164, 0.02)", r"w is a variance .* not 0.6"),
        ("rerun_budget(-0.1, 164, 0.02)", "w is a variance"),
        ("rerun_budget('nan'::double, 164, 0.02)", "w is a variance"),
        ("rerun_budget(0.03, 0, 0.02)", "at least 1 task"),
        ("rerun_budget(0.03, 'inf'::double, 0.02)", "at least 1 task"),
        ("rerun_budget(0.03, 164, 0)", "delta is a difference"),
        ("rerun_budget(0.03, 164, 1.5)", "delta is a difference"),
        ("rerun_budget(0.03, 164, 1e-200)", "too small to plan for"),
        ("rerun_budget(0.03, 164, 1e-12)", "too small to plan for"),
        ("rerun_budget(0.03, 164, 0.02, alpha := 1)", "alpha lies"),
        ("rerun_budget(0.03, 164, 0.02, power := 0.02)", "power lies"),
        ("normal_quantile(0)", "between 0 and 1, not 0.0"),
        ("normal_quantile(1)", "between 0 and 1"),
        ("normal_quantile('nan'::double)", "between 0 and 1"),
        ("minimum_detectable_effect(0.7, 0.1, 5, 5)", r"w lies in \[0, 0.5\]"),
        ("minimum_detectable_effect(0.1, 0.1, 0, 5)", "at least 1 task"),
        ("minimum_detectable_effect(0.1, 0.1, 5, 0)", "at least 1 run"),
        ("minimum_detectable_effect(0.1, 0.1, 5, 5, alpha := 2)", "alpha lies"),
        ("minimum_detectable_effect(0.1, 0.1, 5, 5, power := 1)", "power lies"),
        ("run_sd(0.6, 5)", "w lies"),
        ("run_sd(0.1, 0)", "at least 1 task"),
        ("within_task_variance(6, 5)", "6.0 passes of 5.0 runs cannot be"),
        ("within_task_variance(-1, 5)", "cannot be"),
        ("within_task_variance(1.5, 5)", "cannot be"),
        ("pass_at_k(5, 6, 1)", "cannot be"),
        ("pass_at_k(5, 2, 0)", "cannot be"),
        ("pass_hat_k(5, 2, 1.5)", "cannot be"),
    ],
)
def test_what_cannot_be_is_an_error(sql, call: str, said: str) -> None:
    with pytest.raises(duckdb.Error, match=said):
        value(sql, call)


# --- counts --------------------------------------------------------------------------------------------------------------

COUNTS = st.lists(st.integers(2, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=60)


@SHARED
@given(COUNTS)
def test_w_from_counts(sql, counts) -> None:
    passes, runs = (np.array(part) for part in zip(*counts, strict=True))
    np.testing.assert_allclose(
        column(sql, "within_task_variance(passes, runs)", passes=passes, runs=runs).astype(float),
        task_variances(passes, runs),
        rtol=1e-15,
    )
    sql.register("given", pa.table({"passes": passes, "runs": runs}))
    w, sd = sql.execute("select avg(within_task_variance(passes, runs)) as w, run_sd(w, count(*)) from given").fetchall()[0]
    expected = within_task_variance(passes, runs)
    assert w == pytest.approx(expected.w, rel=1e-12, abs=1e-300)
    assert sd == pytest.approx(expected.score_run_sd, rel=1e-12, abs=1e-300)


@SHARED
@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_and_pass_hat_k_are_the_ratios_of_binomials(sql, counts) -> None:
    n, c, k = counts
    total = comb(n, k, exact=True)
    assert value(sql, "pass_at_k($1, $2, $3)", n, c, k) == pytest.approx(task_values([c], [n], k, of=Of.ANY)[0], abs=1e-12)
    assert value(sql, "pass_at_k($1, $2, $3)", n, c, k) == pytest.approx(1 - comb(n - c, k, exact=True) / total, abs=1e-12)
    assert value(sql, "pass_hat_k($1, $2, $3)", n, c, k) == pytest.approx(comb(c, k, exact=True) / total, rel=1e-12, abs=1e-300)


# --- components ----------------------------------------------------------------------------------------------------------

GRADES = npst.array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=5).flatmap(
    lambda shape: st.tuples(npst.arrays(np.int64, shape, elements=st.integers(0, 4)), npst.arrays(np.bool_, shape))
)


def nested(connection: duckdb.DuckDBPyConnection, scores: np.ndarray[Any, Any], measured: np.ndarray[Any, Any]) -> dict[str, Any]:
    task, generation, grade = np.indices(scores.shape)
    grades = [float(x) if known else None for x, known in zip(scores.ravel(), measured.ravel(), strict=True)]
    table = pa.table(
        {"task": task.ravel(), "generation": generation.ravel(), "grade": pa.array(grades, pa.float64()), "again": grade.ravel()}
    )
    connection.register("grades", table)
    return row(connection, "from variance_components('grades')")


@SHARED
@given(GRADES, st.booleans())
def test_components_are_numpy_s(sql, given_grades, whole: bool) -> None:
    """Balanced and not, and with levels that have no repeats."""
    scores, measured = given_grades
    scores = scores / 4
    measured = np.ones_like(measured) if whole else measured
    expected = components(from_array(scores, measured))
    found = nested(sql, scores, measured)
    assert found["n_tasks"] == expected.n_tasks
    if not expected.n_tasks:
        assert found["undefined"] == "no grade"
        return
    for name in ("task", "generation", "grader"):
        raw = getattr(expected, name).raw
        assert found[name] == (None if raw is None else pytest.approx(raw, rel=1e-12, abs=1e-12)), name
        assert (raw is None) <= bool(found["undefined"])
    together = expected.together
    assert found["together_of"] == ("" if together is None else together.of)
    assert found["together"] == (None if together is None else pytest.approx(together.raw, rel=1e-12, abs=1e-12))
    assert found["mean"] == pytest.approx(expected.mean, rel=1e-12, abs=1e-12)
    if expected.variance_of_mean is not None:
        assert found["mean_variance"] == pytest.approx(expected.variance_of_mean, rel=1e-12, abs=1e-12)
    assert found["balanced"] == expected.balanced
    assert found["n_generations"] == expected.n_generations[0]


def test_components_by_hand(sql) -> None:
    """Two tasks, two generations, two grades: grader (0 + 1/2 + 1/2 + 0)/4, and so on."""
    scores = np.array([[[1.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]])
    found = nested(sql, scores, np.ones_like(scores, dtype=bool))
    assert found["grader"] == 0.25
    # Means of generations are 1, 1/2 and 1/2, 0: both variances are 1/8.
    assert found["generation"] == 0.125 - 0.25 / 2
    # Means of tasks are 3/4 and 1/4.
    assert found["task"] == 0.125 - 0.125 / 2
    assert found["mean_variance"] == 0.125 / 2
    assert (found["mean"], found["balanced"], found["undefined"]) == (0.5, True, "")


def test_negative_components_are_shown_raw_and_clipped(sql) -> None:
    scores = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    found = nested(sql, scores, np.ones_like(scores, dtype=bool))
    assert (found["generation"], found["generation_clipped"], found["task"], found["task_clipped"]) == (-0.25, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("base", [1e6, -3e8])
def test_grades_far_from_nought_lose_no_digits(sql, base: float) -> None:
    rng = np.random.default_rng(4)
    scores, measured = rng.integers(0, 9, (6, 3, 3)) / 8, rng.random((6, 3, 3)) < 0.8
    expected, found = components(from_array(scores, measured)), nested(sql, scores + base, measured)
    for name in ("task", "generation", "grader"):
        assert found[name] == pytest.approx(getattr(expected, name).raw, rel=1e-12, abs=1e-12), name
    assert found["mean_variance"] == pytest.approx(expected.variance_of_mean, rel=1e-12)
    assert found["mean"] == pytest.approx(base + expected.mean, rel=1e-15)
