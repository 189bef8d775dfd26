"""Rows of `budgets` of a study: the cautious budget, the one to plan with and the minimum detectable effect, from its own cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalnoise.stats.intervals import w_benchmark, w_gaffke, w_gaffke_limit, w_population
from evalnoise.stats.planning.budget import rerun_budget, z_sum
from evalnoise.stats.variance import score, variable_share, within_task_variance
from schemas.study import Study
from tests.support import stages

JUDGE = {
    "repeats": 3,
    "conditions": [{"name": "torn", "model": "j", "provider": {"name": "oracle", "seed": 2, "flip": 0.5, "unparsed": 0.3}}],
}
BUDGETS = """
select condition, delta, n_tasks, n_replicates, w, runs, w_cautious, runs_cautious, recommended, mde
from budgets order by condition, delta
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("budgets")
    replay = {"name": "replay", "kind": "replay", "source": {"condition": "live"}}
    body = stages.body(conditions=[{"name": "live", "kind": "live"}, replay], judge=JUDGE)
    stages.run(Study.model_validate(body), root, limit=4)
    return root


def counts(store: Any, condition: str) -> tuple[Any, Any]:
    table, column = ("verdicts", "verdict") if condition == "torn" else ("outcomes", "outcome")
    query = f"""
        select count(*) filter (where {column} = 'pass'), count(*) filter (where {column} in ('pass', 'fail'))
        from {table} where condition = '{condition}' group by task_id order by task_id
    """
    passes, runs = np.array(stages.rows(store, query)).T
    return passes, runs


@pytest.mark.parametrize("condition", ["live", "torn"])
def test_rows(store: Any, condition: str) -> None:
    passes, runs = counts(store, condition)
    limit = w_gaffke_limit(passes, runs, seed=0, resamples=500, level=0.9).hi
    w = within_task_variance(passes, runs).w
    assert limit is not None
    k, n = passes[runs >= 2], runs[runs >= 2]
    # Tasks with unlike numbers of runs enter with their own.
    own_runs = z_sum(0.05, 0.8) * np.sqrt(2 * np.sum(k * (n - k) / (n * n * (n - 1)))) / len(n)
    found = [row[1:] for row in stages.rows(store, BUDGETS) if row[0] == condition]
    assert [row[0] for row in found] == [0.1, 0.3], "one row for each delta, and none doubled"
    for delta, n_tasks, replicates, of_w, budget, cautious, careful, recommended, mde in found:
        assert of_w == w
        assert cautious == limit
        assert careful == rerun_budget(limit, limit, n_tasks, delta)
        assert recommended == careful, "three runs are a small pilot"
        assert budget == rerun_budget(w, w, n_tasks, delta)
        assert replicates == runs[runs >= 2].min()
        assert mde == (pytest.approx(own_runs, rel=1e-12) if w else None)


def test_noise_floor_has_one_row_for_each_condition_still(store: Any) -> None:
    assert stages.rows(store, "select count(*) from noise_floor") == [(2,)]


def test_noise_floor_says_what_numpy_says_of_the_cells(store: Any) -> None:
    found = stages.rows(store, "select condition from noise_floor order by condition")
    for (condition,) in found:
        passes, runs = counts(store, condition)
        drawn: dict[str, Any] = {"seed": 0, "resamples": 500}
        w, share = within_task_variance(passes, runs), variable_share(passes, runs)
        population, new_runs = w_population(passes, runs, **drawn), w_benchmark(passes, runs)
        gaffke = w_gaffke(passes, runs, **drawn)
        expected = {
            "n_tasks": w.n_tasks, "n_replicates": w.n_replicates, "score": score(passes, runs).value, "w": w.w,
            "score_run_sd": w.score_run_sd, "w_lo": population.lo, "w_hi": population.hi, "w_bench_lo": new_runs.lo,
            "w_bench_hi": new_runs.hi, "w_gaffke_lo": gaffke.lo, "w_gaffke_hi": gaffke.hi, "variable_tasks": w.variable_tasks,
            "variable_share": share.value, "variable_lo": share.lo, "variable_hi": share.hi, "delta": 0.1,
            "runs": rerun_budget(w.w, w.w, w.n_tasks, 0.1), "n_measured": runs.sum(),
        }  # fmt: skip
        (row,) = stages.rows(store, f"select {', '.join(expected)} from noise_floor where condition = '{condition}'")
        assert dict(zip(expected, row, strict=True)) == expected, condition
