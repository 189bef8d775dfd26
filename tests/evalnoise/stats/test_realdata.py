"""The published verdicts of CRUXEval: 800 tasks, 10 recorded runs, aligned, so that contrasts can be checked."""

import json

import numpy as np
import pytest

from evalnoise.stats.intervals import w_population
from evalnoise.stats.ladder import ladder
from evalnoise.stats.variance import score, within_task_variance

pytestmark = pytest.mark.realdata
MODELS = ("codellama-7b", "gpt-3.5-turbo-0613")


def passes_of(shared, model):
    tables = []
    for temperature in ("0.8", "0.2"):
        path = shared / "data" / "cruxeval" / f"{model}_temp{temperature}_output.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        tables.append({row["task_id"]: row["passed"] for row in rows})
    assert list(tables[0]) == list(tables[1])
    verdicts = np.array([list(table.values()) for table in tables])
    assert verdicts.shape == (2, 800, 10)
    return verdicts.sum(axis=2)


@pytest.mark.parametrize("model", MODELS)
def test_scores_and_w(shared, figures, model):
    printed = figures["cruxeval"]["models"][model]
    for passes, temperature in zip(passes_of(shared, model), ("0.8", "0.2"), strict=True):
        runs, want = np.full(800, 10), printed[temperature]
        found = within_task_variance(passes, runs)
        assert score(passes, runs).value == pytest.approx(want["score"], abs=0.51e-5)
        assert found.w == pytest.approx(want["w"], abs=0.51e-5)
        assert found.variable_tasks == want.get("variable_tasks", found.variable_tasks)
        if "w_ci" in want:
            interval = w_population(passes, runs, seed=1)
            assert [interval.lo, interval.hi] == pytest.approx(want["w_ci"], abs=5e-4)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("model", MODELS)
def test_contrast(shared, figures, model, seed):
    passes = passes_of(shared, model)
    want = figures["cruxeval"]["models"][model]["contrast"]
    replay = np.where(passes[1] > 4, 10, 0)
    found = ladder([*passes, replay], np.full((3, 800), 10), seed=seed, pairs=[(0, 1)])
    (contrast,) = [
        c.contrast for c in found.contrasts if c.estimate == "w" and c.contrast.result.method == "percentile task bootstrap"
    ]
    assert contrast.result.value == pytest.approx(want["estimate"], abs=0.51e-5)
    assert [contrast.result.lo, contrast.result.hi] == pytest.approx(want["ci"], abs=5e-4)
    assert contrast.finding == "real"
