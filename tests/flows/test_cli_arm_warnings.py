"""What must be known of an arm, from every command that reads one, in text and in JSON; arms of uneven runs, and of scores."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from evalnoise.stats.gates.aa import aa_mde
from evalnoise.stats.gates.side import counted_side
from evalnoise.stats.planning.power import achieved_power
from evalnoise.store.catalog import build_catalog
from flows.cli import app
from tests.support import gate_store
from tests.support.outcome_store import build

RUNNER = CliRunner(env={"COLUMNS": "2000"})
RNG = np.random.default_rng(3)
GOOD = (RNG.random((24, 6)) < RNG.beta(0.6, 0.4, 24)[:, None]).astype(int)
UNEVEN = GOOD.copy()
UNEVEN[:3, 2:] = UNEVEN[3:9, 5] = UNEVEN[9, 1:] = UNEVEN[10] = -1
SCORES = np.round(RNG.random((20, 4)), 2)
PASSES, COUNTED = "repeat one recorded run", "what is counted here is whether a cell passed"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("known")
    replay = np.repeat(GOOD[:, :1], 3, axis=1)
    arms = {("a", "live"): GOOD[:, :3], ("a", "frozen"): replay, ("b", "frozen"): replay[::-1]}
    build(root, arms, study="half", kinds={"frozen": "replay"}, passed=0.8, complete=False)
    build(root, {("a", "live"): UNEVEN}, study="uneven")
    gate_store.seal(root, "graded", SCORES)
    gate_store.seal(root, "other", SCORES[:, ::-1] / 2)
    build_catalog(root)
    return root


def run(root, *arguments):
    result = RUNNER.invoke(app, [*map(str, arguments), "--store", str(root)])
    assert result.exit_code == 0, result.output
    return result


def of_json(root, *arguments):
    return json.loads(run(root, *arguments, "--json").stdout)


@pytest.mark.parametrize(
    ("command", "counts"),
    [
        (("power", "half/a/frozen", "--simulations", "20"), True),
        (("budget", "half/a/frozen"), True),
        (("ranking", "half/a/frozen", "half/b/frozen"), True),
        (("drift", "half/a/frozen"), False),
        (("tasks", "half/a/frozen"), False),
        (("tasks", "half/a/frozen", "--against", "half/b/frozen"), False),
        (("sequential", "half/a/frozen"), False),
    ],
)
def test_text_and_json_say_the_same_of_an_arm(root, command, counts):
    found, shown = of_json(root, *command), run(root, *command)
    said = "\n".join(found["warnings"])
    assert ("its protocol is not complete" in said, PASSES in said, COUNTED in said) == (True, True, counts)
    for warning in found["warnings"]:
        assert (shown.stdout + shown.stderr).count(warning) == 1
    for arm in found.get("arms", [found]):
        assert (arm["kind"], arm["complete"]) == ("replay", False)


def test_compare_and_plans_of_variances_say_what_standard_error_says(root):
    for command in (("compare", "half/a/frozen", "half/b/frozen"), ("components", "half/a/live"), ("design", "half/a/live")):
        assert "its protocol is not complete" in "\n".join(of_json(root, *command)["warnings"])
    assert PASSES in "\n".join(of_json(root, "compare", "half/a/frozen", "half/b/frozen")["warnings"])


def test_nothing_is_said_of_fresh_runs_that_pass_or_fail(root):
    assert of_json(root, "tasks", "uneven")["warnings"] == []


def test_every_task_is_planned_with_its_own_runs(root):
    passes, runs = (UNEVEN == 1).sum(axis=1), (UNEVEN >= 0).sum(axis=1)
    found = of_json(root, "power", "uneven", "--delta", "0.1", "--simulations", "200")["power"]
    assert {(one["runs_a"], one["most_runs_a"], one["runs_b"], one["most_runs_b"]) for one in found} == {(2, 6, 2, 6)}
    own = np.maximum(runs, 1)
    expected = achieved_power(passes, runs, delta=0.1, runs_a=own, effect="spread", simulations=200, seed=7)
    assert [one["value"] for one in found[:2]] == [one.value for one in expected]
    plan = of_json(root, "budget", "uneven", "--delta", "0.1")
    assert plan["mde"] == pytest.approx(aa_mde(counted_side(passes, runs)).detectable, rel=1e-12)
    assert "the pilot had 2 to 6 runs of a task (6 in the median)" in plan["why"]
    assert {(one["runs_a"], one["most_runs_a"]) for one in plan["simulated"]} == {(2, 6), (plan["recommended"],) * 2}
    shown = run(root, "budget", "uneven", "--delta", "0.1").stdout
    assert "on 22 tasks, from 2 to 6 runs:" in shown
    assert "2 to 6 runs per arm, as many of each task as there are, resolve" in shown


def test_tasks_of_scores(root):
    found = of_json(root, "tasks", "graded", "--top", "30")
    s2 = SCORES.var(axis=1, ddof=1)
    assert (found["w"], found["variable_tasks"]) == (pytest.approx(s2.mean()), 20)
    assert [one["s2"] for one in found["tasks"]] == pytest.approx(sorted(s2, reverse=True))
    first = found["tasks"][0]
    assert (first["rate"], first["rate_lo"]) == (None, None)
    assert first["score"] == pytest.approx(SCORES[s2.argmax()].mean())
    assert "no Clopper-Pearson interval" in found["rate_undefined"]
    shown = run(root, "tasks", "graded").stdout
    assert "20 tasks varied" in shown
    assert "mean score" in shown
    against = of_json(root, "tasks", "graded", "--against", "other", "--of", "score")
    assert against["difference"] == pytest.approx(SCORES.mean() / 2)
    assert f"{SCORES[0].mean():.3f} of 4" in run(root, "tasks", "graded", "--against", "other").stdout


def test_drift_is_tested_of_passes_and_failures_alone(root):
    found = of_json(root, "drift", "graded")
    assert (found["q"], found["smallest_p"]) == (None, None)
    assert "scores are not all 0 or 1" in found["undefined"]
    assert "undefined: scores are not all 0 or 1" in run(root, "drift", "graded").stdout
