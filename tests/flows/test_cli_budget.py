"""`evalnoise budget` on arms and unlike arms, `power`, `ranking` and `design`, as a user types them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from evalnoise.stats.estimate import NO_NEW_RUNS
from evalnoise.stats.intervals import w_gaffke_limit, w_quoted
from evalnoise.stats.planning.budget import budget_for, detectable, rerun_budget
from evalnoise.stats.planning.population import population_budget
from evalnoise.stats.planning.power import achieved_power
from evalnoise.stats.planning.ranking import ranking
from evalnoise.stats.variance import within_task_variance
from flows.cli import app
from tests.support.outcome_store import build

RUNNER = CliRunner(env={"COLUMNS": "2000"})
RNG = np.random.default_rng(3)
RATES = RNG.beta(0.6, 0.4, 24)
GOOD = (RNG.random((24, 6)) < RATES[:, None]).astype(int)
BAD = (RNG.random((24, 6)) < RATES[:, None] * 0.7).astype(int)
FULL = np.full(24, 6)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("arms")
    replay = np.repeat(GOOD[:, :1], 6, axis=1)
    arms = {("a", "live"): GOOD, ("a", "frozen"): replay, ("b", "live"): BAD, ("b", "frozen"): replay}
    build(root, arms, kinds={"frozen": "replay"})
    build(root, {("a", "live"): GOOD[1:, :1]}, study="single", task_ids=[f"t{i}" for i in range(1, 24)])
    return root


def run(*arguments, code=0):
    result = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


class TestNumbers:
    BASE = ("budget", "--w", "0.03013", "--tasks", "164", "--delta", "0.02")

    def test_unlike_arms(self):
        text = run(*self.BASE, "--w-b", "0.01329")
        assert "6 runs per arm resolve" in text
        assert "6 runs of the first arm and 4 of the second are the fewest together" in text
        found = json.loads(run(*self.BASE, "--w-b", "0.01329", "--json"))
        assert (found["runs"], found["w_b"]) == (6, 0.01329)
        assert (found["arms"]["runs_a"], found["arms"]["runs_b"]) == (6, 4)

    def test_fixed_arm(self):
        assert "5 of the second" in run(*self.BASE, "--runs-a", "20")
        assert "No number of runs of the second arm suffices with 3" in run(*self.BASE, "--runs-a", "3")

    def test_what_a_w_does_not_prove_is_said_in_text_and_json(self):
        rest = ("--tasks", "100", "--delta", "0.05")
        for w, said in (("0", "does not prove that nothing can"), ("0.3", "w is above 1/4, which no true w is")):
            assert said in json.loads(run("budget", "--w", w, *rest, "--json"))["note"]
            assert said in run("budget", "--w", w, *rest)
        assert json.loads(run(*self.BASE, "--json"))["note"] == ""

    def test_prices(self):
        text = run(*self.BASE, "--price-a", "1", "--price-b", "10")
        assert "13 runs of the first arm and 5 of the second cost least, 63," in text

    def test_plain_json_has_what_it_had(self):
        assert set(json.loads(run(*self.BASE, "--json"))) == {
            "runs", "w", "tasks", "n_tasks", "delta", "alpha", "power", "method", "covers", "note",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("budget", "--w", "0.1"), "--tasks, --delta not given"),
            ((*BASE, "--price-a", "1"), "--price-a and --price-b"),
            ((*BASE, "--price-a", "0", "--price-b", "1"), "price above 0"),
            ((*BASE, "--w-b", "0.7"), "--w-b is a variance"),
            ((*BASE, "--runs-a", "0"), "at least 1 run"),
            (("budget", "made/a/live", "--w", "0.1"), "found both"),
            (("budget", "a", "b", "c"), "one or two arms, found 3"),
            (("budget", "a", "--runs-a", "3"), "for two arms"),
        ],
    )
    def test_mistakes(self, arguments, said):
        assert said in run(*arguments, code=2)


class TestArms:
    def test_one_arm(self, store):
        found = json.loads(run("budget", "made/a/live", "--delta", "0.15", "--store", store, "--json"))
        passes = GOOD.sum(axis=1)
        w = w_quoted(passes, FULL, seed=7, resamples=500)
        limit = w_gaffke_limit(passes, FULL, seed=7, resamples=500).hi
        paper = budget_for(w, n_tasks=24, delta=0.15)
        assert [found["budget"][key] for key in ("w", "runs", "runs_lo", "runs_hi")] == [
            paper.w, paper.runs, paper.runs_lo, paper.runs_hi,
        ]  # fmt: skip
        assert found["runs_cautious"] == found["recommended"] == rerun_budget(limit, limit, 24, 0.15)
        assert found["cautious"]
        assert found["mde"] == detectable(w.value, w.value, 24, 6)
        assert found["mde_one"] == detectable(w.value, w.value, 24, 1)
        at = [one for one in found["simulated"] if one["runs_a"] == 6 and one["effect"] == "mixed"]
        expected = achieved_power(passes, FULL, delta=0.15, runs_a=6, effect="mixed", seed=7)
        assert [one["value"] for one in at] == [one.value for one in expected]
        assert (found["population"], found["pair"]) == (None, None)

    def test_words(self, store):
        text = run("budget", "made/a/live", "--store", store)
        assert "To resolve a difference of 0.1 (alpha 0.05, power 0.8) on 24 tasks, from 6 runs:" in text
        for part in (
            "the paper's budget: ",
            "the cautious budget: ",
            "plan with ",
            "because the pilot had 6 runs",
            "concentrated",
            "cmh",
        ):
            assert part in text
        assert "It covers new runs of these tasks, not other tasks." in text

    def test_two_arms(self, store):
        found = json.loads(run("budget", "made/a/live", "made/b/live", "--delta", "0.05", "--store", store, "--json"))
        a, b = GOOD.sum(axis=1), BAD.sum(axis=1)
        w = [within_task_variance(k, FULL).w for k in (a, b)]
        assert found["w_of_arms"] == w
        assert found["budget"]["runs"] == rerun_budget(*w, 24, 0.05)
        expected = population_budget(a, FULL, b, FULL, delta=0.05, seed=7, resamples=500)
        assert found["population"]["between"]["value"] == expected.between.value
        assert found["population"]["runs"] == expected.runs
        assert found["population"]["undefined"] == expected.undefined
        assert found["pair"]["runs_a"] >= 1
        text = run("budget", "made/a/live", "made/b/live", "--delta", "0.05", "--store", store)
        assert "For new tasks: the true differences vary between tasks" in text
        assert "simulated with the rates of made" in text

    def test_unmatched_tasks_and_one_run(self, store):
        text = run("budget", "made/a/live", "single", "--store", store)
        assert "1 task of it that the other arm lacks left out" in text
        assert "There is no budget: no task was measured twice in both" in text

    def test_replay_says_nothing_of_fresh_runs(self, store):
        text = run("budget", "made/a/frozen", "--store", store)
        assert "repeat one recorded run" in text
        assert "0 variable tasks" in text

    def test_mistakes(self, store, tmp_path):
        assert "found" in run("budget", "nothing", "--store", store, code=6)
        assert "delta is a difference" in run("budget", "made/a/live", "--delta", "0", "--store", store, code=2)
        assert "alpha lies between" in run("budget", "made/a/live", "--alpha", "7", "--store", store, code=2)
        assert "give it once" in run("budget", "made/a/live", "made/a/live", "--store", store, code=2)
        run("budget", "made", "--store", tmp_path / "none", code=6)


class TestPower:
    def test_json(self, store):
        found = json.loads(
            run("power", "made/a/live", "--delta", "0.1", "--runs", "8", "--simulations", "300", "--store", store, "--json")
        )
        assert [(one["effect"], one["test"]) for one in found["power"]] == [
            (effect, test) for effect in ("spread", "concentrated", "mixed") for test in ("z test", "cmh")
        ]
        assert {(one["runs_a"], one["runs_b"], one["simulations"], one["seed"]) for one in found["power"]} == {(8, 8, 300, 7)}
        assert found["method"] == "simulation, clopper-pearson"

    def test_words(self, store):
        text = run("power", "made/a/live", "--runs-b", "3", "--simulations", "50", "--store", store)
        assert "Simulated power for a loss of 0.1, 50 comparisons, seed 7" in text
        assert "6 and 3" in text
        assert "error level" in run("power", "made/a/live", "--delta", "0", "--simulations", "50", "--store", store)

    def test_an_arm_that_was_measured_once_promises_nothing(self, store):
        for name in ("power", "budget"):
            assert "1.000" not in run(name, "single", "--store", store)
        (first, *_) = json.loads(run("power", "single", "--store", store, "--json"))["power"]
        assert (first["value"], first["formula"], first["n_tasks"]) == (None, None, 23)
        found = json.loads(run("budget", "single", "--store", store, "--json"))["budget"]
        assert (found["runs"], found["n_tasks"], found["n_replicates"]) == (None, 23, 1)

    def test_impossible_effect(self, store):
        assert "cannot fall by 0.99" in run("power", "made/a/live", "--delta", "0.99", "--store", store)

    def test_mistakes(self, store):
        run("power", "made/a/live", "--runs", "0", "--store", store, code=2)


class TestRanking:
    def test_json(self, store):
        found = json.loads(run("ranking", "made/b/live", "made/a/live", "--store", store, "--json"))
        expected = ranking(np.stack([table.sum(axis=1) for table in (BAD, GOOD)]), np.stack([FULL] * 2))
        assert found["rows"] == list(expected.rows)
        assert found["scores"] == list(expected.scores)
        assert found["method"] == "normal, plug-in variance"
        assert found["pairs"][0]["benchmark"]["wrong"] == expected.pairs[0].benchmark.wrong
        assert found["pairs"][0]["population"]["runs"] == expected.pairs[0].population.runs

    def test_a_replay_has_no_order_over_new_runs(self, store):
        arms = ("made/b/live", "made/a/live", "made/a/frozen", "--store", store)
        found = json.loads(run("ranking", *arms, "--json"))
        assert found["rows"] == [1, 2, 0]  # the replay is in both pairs
        for pair in found["pairs"]:
            over_runs, over_tasks = pair["benchmark"], pair["population"]
            assert [over_runs[key] for key in ("se", "wrong", "disagree", "runs", "covers")] == [None] * 4 + [""]
            assert over_runs["undefined"] == over_runs["runs_undefined"] == NO_NEW_RUNS
            assert over_tasks["wrong"] is not None
            assert (over_tasks["runs"], over_tasks["runs_undefined"]) == (None, NO_NEW_RUNS)
        text = " ".join(run("ranking", *arms).split())
        assert f"2 and 3, benchmark: {NO_NEW_RUNS}" in text

    def test_words(self, store):
        text = run("ranking", "made/b/live", "made/a/live", "--level", "0.9", "--store", store)
        assert "Scores over the 24 tasks that every arm has measured twice" in text
        assert text.index("a, live") < text.index("b, live")
        assert "runs for 90 %" in text
        assert "population" in text

    def test_nothing_in_common(self, store):
        assert "no task was measured twice in every arm" in run("ranking", "made/a/live", "single", "--store", store)

    def test_mistakes(self, store):
        assert "at least two arms" in run("ranking", "made/a/live", "--store", store, code=2)
        assert "between 1/2 and 1" in run("ranking", "made/a/live", "made/b/live", "--level", "2", "--store", store, code=2)


class TestDesign:
    BASE = ("design", "--task", "0.10", "--generation", "0.08", "--grader", "0.03")
    PRICES = ("--price-generation", "0.01", "--price-grade", "0.001")

    def test_table(self):
        text = run(*self.BASE)
        assert "200            1  0.06351   0.06041   0.05977  0.04383" in text
        assert "Cheapest" not in text

    def test_cheapest(self):
        text = run(*self.BASE, *self.PRICES, "--half-width", "0.05")
        assert "Cheapest for a half width of 0.05: 323 tasks x 1 generation x 1 grade, for 3.553" in text
        found = json.loads(run(*self.BASE, *self.PRICES, "--half-width", "0.05", "--max-tasks", "200", "--json"))
        assert [found["cheapest"][key] for key in ("n_tasks", "generations", "grades")] == [200, 3, 3]
        assert found["floors"]["200"] == pytest.approx(0.04383, abs=1e-5)

    def test_none(self):
        text = run(*self.BASE, *self.PRICES, "--half-width", "0.04", "--max-tasks", "200")
        assert "No design of at most 200 tasks suffices: 0.04383" in text

    def test_effect(self):
        text = run("design", "--task", "0.02", "--generation", "0.06", "--effect", "0.05", "--price-generation", "1")
        assert "Half width of a difference of two arms' mean scores" in text
        assert "in each of two arms" in text

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--half-width", "0.05"), "give --price-generation"),
            (("--half-width", "0.05", "--effect", "0.1"), "found both"),
            (("--half-width", "0.05", "--price-generation", "1"), "a grade that costs nothing"),
            (("--half-width", "0.05", "--price-generation", "nan"), "expected a finite number"),
            (("--level", "2"), "confidence level"),
        ],
    )
    def test_mistakes(self, arguments, said):
        assert said in run(*self.BASE, *arguments, code=2)

    def test_negative_component(self):
        assert "clipped first" in run("design", "--task", "-0.1", "--generation", "0.1", code=2)

    def test_of_an_arm(self, store):
        """A live arm has one grade of each generation: task and generation are told apart, the grader is in the generation."""
        found = json.loads(run("design", "made/a/live", "--store", store, "--json"))
        w = within_task_variance(GOOD.sum(axis=1), FULL).w
        assert found["components"]["generation"] == pytest.approx(w, abs=1e-12)
        means = GOOD.mean(axis=1)
        assert found["components"]["task"] == pytest.approx(means.var(ddof=1) - w / 6, abs=1e-12)
        assert (found["components"]["grader"], found["bounds"]["grades"]) == (0, 1)
        text = run("design", "made/a/live", "--half-width", "0.1", "--price-generation", "1", "--store", store)
        assert "variances of made" in text
        assert "generation+grader is one number here" in text
        assert "Cheapest for a half width of 0.1" in text

    def test_of_frozen_outputs(self, store):
        """Replicates of a replay are grades of one output: one generation of each task, not told from the task."""
        found = json.loads(run("design", "made/a/frozen", "--store", store, "--json"))
        assert found["bounds"]["generations"] == 1
        assert found["components"]["generation"] == 0

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ((), "an arm of a store, or --task"),
            (("made/a/live", "--task", "0.1"), "found both"),
            (("made/a/live", "--effect", "0.1", "--price-generation", "1"), "variances of a difference"),
            (("single",), "no design can be planned from it"),
        ],
    )
    def test_mistakes_with_arms(self, store, arguments, said):
        assert said in run("design", *arguments, "--store", store, code=2)
