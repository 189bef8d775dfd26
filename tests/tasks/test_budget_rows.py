"""Rows of `budgets` of a study: the cautious budget, the one to plan with and the minimum detectable effect, from its own cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalnoise.stats.intervals import w_gaffke_limit
from evalnoise.stats.planning.budget import detectable, rerun_budget
from evalnoise.stats.variance import within_task_variance
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
    found = [row[1:] for row in stages.rows(store, BUDGETS) if row[0] == condition]
    assert [row[0] for row in found] == [0.1, 0.3], "one row for each delta, and none doubled"
    for delta, n_tasks, replicates, of_w, budget, cautious, careful, recommended, mde in found:
        assert of_w == w
        assert cautious == limit
        assert careful == rerun_budget(limit, limit, n_tasks, delta)
        assert recommended == careful, "three runs are a small pilot"
        assert budget == rerun_budget(w, w, n_tasks, delta)
        assert mde == (detectable(w, w, n_tasks, replicates) if w else None)


def test_noise_floor_has_one_row_for_each_condition_still(store: Any) -> None:
    assert stages.rows(store, "select count(*) from noise_floor") == [(2,)]
