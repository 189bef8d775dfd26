"""Rows about order, noise and reliability: as NumPy has them, undefined where there is no order, a warning where it drifts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from evalnoise.readers.cells import read_cells
from evalnoise.readers.counts import read_counts
from evalnoise.readers.order import read_run_sums
from evalnoise.stats.drift import NONE_VARIED, RunSums, drift, run_sums
from evalnoise.stats.influence import concentration
from evalnoise.store.catalog import connect
from schemas.study import Study
from tasks.analysis.order import drift_checks, find_drift, order_rows
from tests.support import stages
from tests.support.small_store import build

LIVE = ("a", "live")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("order") / "store"
    stages.run(Study.model_validate(stages.body(replicates=4)), root, limit=8)
    return root


def estimates(root, name, condition="live"):
    query = f"select method, covers, value, undefined, note from estimates where estimate = '{name}' and condition = '{condition}'"
    return {row[0]: row[1:] for row in stages.rows(root, query)}


def test_rows_are_those_of_the_cells(store):
    connection = connect(store)
    ((study, protocol),) = connection.execute("select study, protocol from protocols").fetchall()
    cells = read_cells(connection, study, protocol, *LIVE)
    found = drift(cells.outcomes, seed=0, alpha=0.05)
    chi, permuted = (estimates(store, "drift_q_p")[method] for method in ("chi-square", "within-task permutation"))
    assert chi[:2] == ("benchmark", found.q.p)
    assert 0 < permuted[1] <= 1
    (statistic,) = estimates(store, "drift_trend").values()
    assert statistic[1] == found.trend.statistic
    assert "would be seen at 0.05 with probability" in statistic[3]
    (carriers,) = estimates(store, "noise_carriers_80").values()
    expected = concentration(cells.passes, cells.runs)
    assert carriers[1] == len(expected.most)
    assert cells.task_ids[expected.most[0]] in carriers[3]
    view = stages.rows(store, "select w_without from task_noise where condition = 'live' order by carried limit 1")
    assert estimates(store, "w_without_most")["exact"][1] == view[0][0]


def test_undefined_rows_say_why(store):
    for name in ("drift_q", "drift_trend", "drift_scan", "noise_concentration"):
        (row,) = estimates(store, name, "replay").values()
        assert row[0] == ""
        assert row[1] is None
        assert row[2]
    assert NONE_VARIED in estimates(store, "drift_q", "replay")["chi-square"]


def test_reliability_rows_for_both_targets(store):
    names = {row[0] for row in stages.rows(store, "select distinct estimate from estimates where estimate like 'pass%'")}
    assert names == {"pass@2", "pass^2", "pass@4", "pass^4"}
    assert {row[0] for row in estimates(store, "pass^4").values()} == {"benchmark", "population"}
    # The same number from SQL.
    query = "select avg(pass_hat_k(runs, passes, 4)), avg(pass_at_k(runs, passes, 2)) from task_counts where condition = 'live'"
    ((all_four, any_two),) = stages.rows(store, query)
    assert estimates(store, "pass^4")["percentile task bootstrap"][1] == pytest.approx(all_four, abs=1e-12)
    assert estimates(store, "pass@2")["percentile task bootstrap"][1] == pytest.approx(any_two, abs=1e-12)


def test_reliability_of_one_recorded_run_has_no_interval_for_new_runs(store):
    query = "select covers, value, lo, undefined, note from estimates where estimate like 'pass%' and condition = '{}'"
    rows = stages.rows(store, query.format("replay"))
    assert {row[0] for row in rows} == {"", "population"}
    assert all("verifications of one recorded answer" in row[4] and "new runs:" not in row[4] for row in rows if row[1] is not None)
    assert all(row[2] is None and "nothing about new runs" in row[3] for row in rows if row[0] == "" and row[1] is not None)
    assert not any("verifications" in row[4] for row in stages.rows(store, query.format("live")))


def test_incomplete_tasks_do_not_enter_run_sums(tmp_path):
    root = tmp_path / "store"
    build(root)
    connection = connect(root)
    ((study, protocol),) = connection.execute("select study, protocol from protocols").fetchall()
    counts = read_counts(connection, study, protocol, 3)
    sums = read_run_sums(connection, study, protocol, 2, counts)
    cells = read_cells(connection, study, protocol, *LIVE)
    expected = run_sums(cells.outcomes)
    assert sums[LIVE].run_passes.tolist() == expected.run_passes.tolist() == [2, 1]
    assert sums[LIVE].tasks_by_passes.tolist() == expected.tasks_by_passes.tolist() == [0, 1, 1]
    assert sums[LIVE].left_out == expected.left_out == 1
    # A protocol that asks for more replicates than there are has no complete task.
    more = read_run_sums(connection, study, protocol, 3, counts)
    assert more[LIVE].n_tasks == 0
    assert more[LIVE].run_passes.tolist() == [0, 0, 0]


def shop(alpha=0.05):
    """What the rows need of a workshop."""
    analysis = SimpleNamespace(seed=1, alpha=alpha)
    study = SimpleNamespace(study="s", analysis=analysis, condition=lambda name: name)
    plan = SimpleNamespace(study=study, digest="p", benchmark=SimpleNamespace(name="b"))
    return SimpleNamespace(plan=plan, stack=lambda name: name)


STEP = RunSums(run_passes=np.array([10, 10, 30, 30]), tasks_by_passes=np.array([20, 0, 40, 0, 0]), left_out=0)
STILL = RunSums(run_passes=np.array([20, 20, 20, 20]), tasks_by_passes=np.array([20, 0, 40, 0, 0]), left_out=0)


def test_drift_is_a_warning_and_its_absence_is_no_finding(monkeypatch):
    monkeypatch.setattr("tasks.analysis.order.order_unknown", lambda *_: False)
    found = find_drift(shop(), {("a", "moves"): STEP, ("a", "stays"): STILL})
    (row,) = drift_checks(shop(), found)
    assert (row["check"], row["condition"], row["severity"], row["blocks"]) == ("drift", "moves", "warning", False)
    assert row["value"] == pytest.approx(20 / 60)
    assert "from replicate 2 on they are +33.33 points away" in row["sentence"]
    said = [value["note"] for value in order_rows(shop(), found) if value["condition"] == "stays"]
    assert not any("no drift" in note for note in said)
    assert any("with probability" in note for note in said)


def test_an_order_that_is_none_is_not_tested(monkeypatch):
    monkeypatch.setattr("tasks.analysis.order.order_unknown", lambda *_: True)
    found = find_drift(shop(), {("a", "moves"): STEP})
    assert list(drift_checks(shop(), found)) == []
    rows = list(order_rows(shop(), found))
    assert all(row["value"] is None and "no time order" in row["undefined"] for row in rows)


def test_many_conditions_share_one_error_level(monkeypatch):
    """A p that counts alone does not count among a hundred conditions."""
    monkeypatch.setattr("tasks.analysis.order.order_unknown", lambda *_: False)
    slight = RunSums(run_passes=np.array([14, 14, 26, 26]), tasks_by_passes=np.array([20, 0, 40, 0, 0]), left_out=0)
    alone = find_drift(shop(), {("a", "c"): slight})
    assert len(list(drift_checks(shop(), alone))) == 1
    many = alone | {("a", f"c{i}"): drift(STILL, seed=1, resamples=99) for i in range(99)}
    assert list(drift_checks(shop(), many)) == []
