"""drift, tasks, nights and sequential: what they print, and the exit codes of their answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from evalnoise.readers.nights import Night, Nights, read_nights
from evalnoise.stats.influence import contrast_influence
from evalnoise.stats.nights import control_chart
from evalnoise.stats.sequential import robbins_interval
from evalnoise.store.catalog import connect
from evalnoise.store.partition import PartitionWrite
from evalnoise.store.store import Store
from flows.cli import app
from schemas.errors import BlockedError, ExitCode, StoreError
from schemas.protocol import Protocol
from schemas.tables import CHECKS, OUTCOMES, TASKS
from tests.support.small_store import row

RUNNER = CliRunner(env={"COLUMNS": "2000"})
TASKS_A_NIGHT, RUNS = 40, 2


def protocol(study: str, night: str | None, **changes) -> Protocol:
    plan = {
        "study": study,
        "night": night,
        "stacks": [{"name": "a", "model": "m", "provider": {"name": "openai", "temperature": changes.pop("temperature", 0.7)}}],
        "conditions": [{"name": "live", "kind": "live"}, {"name": "replay", "kind": "replay", "source": {"condition": "live"}}],
    }
    plan["stacks"][0]["model"] = changes.pop("model", "m")
    facts = {"limit": None, "benchmark": "tiny", "benchmark_sha256": "0" * 64, "benchmark_files": (), "n_tasks": TASKS_A_NIGHT}
    facts |= {"recordings": {}, "prompts": {}, "executors": {}, "checkers": {}, "measurement": {}, "replicates": RUNS}
    return Protocol(study=plan, **(facts | changes))


def seal(
    root: Path,
    passed: np.ndarray,
    *,
    study: str = "nightly",
    night: str | None = None,
    missing=(),
    blocks: bool = False,
    cluster: str = "",
    conditions=("live",),
    **changes,
) -> str:
    """A protocol whose cells (N, R) passed or not, complete."""
    store = Store.open(root)
    frozen = protocol(study, night, n_tasks=passed.shape[0], replicates=passed.shape[1], **changes)
    store.freeze(frozen)
    made = store.study(study, frozen.digest())
    made.plan(["all"])
    named = [{"task_id": f"t/{i}", "position": i} for i in range(len(passed))]
    writes = [PartitionWrite(TASKS, {}, [row(TASKS, made, 0, cluster=cluster) | name for name in named], "0")]
    for condition in conditions:
        for replicate in range(passed.shape[1]):
            rows = []
            for i, name in enumerate(named):
                outcome = "unmeasured" if (i, replicate) in missing else "pass" if passed[i, replicate] else "fail"
                score = None if outcome == "unmeasured" else float(outcome == "pass")
                rows.append(row(OUTCOMES, made, 0, outcome=outcome, score=score, attempts=1) | name)
            writes.append(PartitionWrite(OUTCOMES, {"stack": "a", "condition": condition, "replicate": replicate}, rows, "0"))
    check = {"check": "truncated", "stack": "a", "condition": "live", "severity": "error", "sentence": "Cut off.", "blocks": blocks}
    writes.append(PartitionWrite(CHECKS, {}, [row(CHECKS, made, 0, **check)] if blocks else [], "0"))
    made.commit("all", writes)
    return frozen.digest()


RATES = np.random.default_rng(0).beta(0.5, 0.4, TASKS_A_NIGHT)


def night_cells(night: int, shift: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(100 + night)
    return rng.random((TASKS_A_NIGHT, RUNS)) < np.clip(RATES + shift, 0, 1)[:, None]


def label(night: int) -> str:
    return f"2026-01-{night + 1:02}"


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """Four nights of one study; one whose replicates drift; one with clusters."""
    folder = tmp_path_factory.mktemp("nights") / "store"
    for night in range(4):
        seal(folder, night_cells(night), study="young", night=label(night), conditions=("live", "replay"))
    drifting = np.zeros((30, 6), dtype=bool)
    drifting[:15, 3:] = True
    seal(folder, drifting, study="drifting")
    seal(folder, night_cells(1), study="clustered", cluster="c")
    return folder


def run(root: Path, *arguments, code: int = 0, stdin: str | None = None) -> str:
    result = RUNNER.invoke(app, [*map(str, arguments), "--store", str(root)], input=stdin)
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert "Traceback" not in result.output
    return result.output


class TestNights:
    def test_an_alarm_has_its_exit_code(self, tmp_path):
        for night in range(21):
            seal(tmp_path / "s", night_cells(night, -0.5 if night == 20 else 0.0), night=label(night))
        facts = json.loads(run(tmp_path / "s", "nights", "nightly", "--json", code=ExitCode.GATE))
        assert [one["judged"] for one in facts["nights"]] == [False] * 20 + [True]
        scores = [night_cells(n, -0.5 if n == 20 else 0.0).mean() for n in range(21)]
        assert [one["score"] for one in facts["nights"]] == pytest.approx(scores)
        assert facts["nights"][-1]["lo"] == pytest.approx(control_chart(scores).lo[0])
        assert facts["alarm"] is True
        shown = run(tmp_path / "s", "nights", "nightly/live", "--rule", "ewma", code=ExitCode.GATE)
        assert "2026-01-21: ALARM, the score is out of its limits" in shown
        assert "ALARM, low" in shown
        assert "4 to 6 % of months alarm falsely" in shown
        assert "74 to 99 %" in shown
        assert f"rule ewma, 40 tasks x {RUNS} runs" in shown

    def test_a_night_within_its_limits(self, root, monkeypatch):
        scores = [*np.random.default_rng(3).normal(0.6, 0.02, 21), 0.7, 0.6]
        made = tuple(Night(label(i), "p", float(score), 0, ()) for i, score in enumerate(scores))
        facts = {"left_out": (), "newest_left_out": False, "n_tasks": 40, "n_dropped": 0, "replicates": 5}
        monkeypatch.setattr("evalnoise.readers.nights.read_nights", lambda *_, **__: Nights(label="s", nights=made, **facts))
        found = json.loads(run(root, "nights", "young", "--json"))
        assert (found["covers"], found["method"]) == ("benchmark", "predictive t limits over nights")
        assert found["level"] == pytest.approx(1 - 0.05 / 30)
        assert found["alarm"] is False
        assert [one["night"] for one in found["nights"] if one["alarm"]] == ["2026-01-22"]
        assert found["verdict"] == "2026-01-23: within its limits; that does not say that nothing changed"
        assert "ALARM, high" in run(root, "nights", "young")

    def test_no_verdict_in_the_baseline(self, root):
        shown = run(root, "nights", "young")
        assert "2026-01-04: no verdict. Baseline: 4 of 20 nights" in shown
        assert "ALARM" not in shown

    def test_nights_that_were_measured_otherwise_are_refused(self, tmp_path):
        for night in range(4):
            seal(tmp_path / "s", night_cells(night), night=label(night), temperature=0.7 if night < 2 else 0.2)
        shown = run(tmp_path / "s", "nights", "nightly", code=ExitCode.BLOCKED)
        assert "temperature is 0.7 in BASE and 0.2 in NEW" in shown
        assert "--since 2026-01-03 begins one" in shown
        assert "2 of 20 nights" in run(tmp_path / "s", "nights", "nightly", "--since", "2026-01-03")
        assert "a night labelled" in run(tmp_path / "s", "nights", "nightly", "--since", "2030-01-01", code=ExitCode.STORE)

    def test_another_number_of_replicates_is_another_measurement(self, tmp_path):
        for night in range(3):
            seal(tmp_path / "s", night_cells(night)[:, : 2 - night // 2], night=label(night))
        assert "replicates are 2 in BASE and 1 in NEW" in run(tmp_path / "s", "nights", "nightly", code=ExitCode.BLOCKED)

    def test_another_model_is_shown_and_not_refused(self, tmp_path):
        for night in range(3):
            seal(tmp_path / "s", night_cells(night), night=label(night), model="m" if night < 2 else "m2")
        assert "model is m in BASE and m2 in NEW" in run(tmp_path / "s", "nights", "nightly")

    def test_blocked_and_unfinished_nights_do_not_count(self, tmp_path):
        for night in range(3):
            seal(tmp_path / "s", night_cells(night), night=label(night), blocks=night == 1)
        frozen = protocol("nightly", "2026-01-09")
        store = Store.open(tmp_path / "s")
        store.freeze(frozen)
        store.study("nightly", frozen.digest()).plan(["all"])
        shown = run(tmp_path / "s", "nights", "nightly", code=ExitCode.BLOCKED)
        assert "2026-01-02: does not count: a check blocks it: Cut off." in shown
        assert "2026-01-09: no verdict, because its protocol is partial" in shown
        found = read_nights(connect(tmp_path / "s"), tmp_path / "s", "nightly")
        assert [night.label for night in found.nights] == [label(0), label(2)]

    def test_only_tasks_that_every_night_measured_count(self, tmp_path):
        missing = {(3, r) for r in range(RUNS)} | {(7, 0)}
        seal(tmp_path / "s", night_cells(0), night=label(0), missing=missing)
        seal(tmp_path / "s", night_cells(1), night=label(1))
        found = read_nights(connect(tmp_path / "s"), tmp_path / "s", "nightly")
        assert (found.n_tasks, found.n_dropped) == (39, 1)
        assert [night.unmeasured for night in found.nights] == [1, 0]
        cells = night_cells(0).astype(float)
        cells[7, 0] = np.nan
        assert found.scores == pytest.approx(
            [np.delete(np.nanmean(cells, axis=1), 3).mean(), np.delete(night_cells(1), 3, axis=0).mean()]
        )

    def test_of_one_night_the_newest_complete_protocol_counts(self, tmp_path):
        seal(tmp_path / "s", night_cells(0), night="b")
        seal(tmp_path / "s", night_cells(1), night="a")
        newest = seal(tmp_path / "s", night_cells(2), night="b", model="m2")
        found = read_nights(connect(tmp_path / "s"), tmp_path / "s", "nightly")
        # Labels that are no dates are in the order of freezing.
        assert [night.label for night in found.nights] == ["a", "b"]
        assert found.nights[1].protocol == newest
        assert found.nights[1].score == night_cells(2).mean()

    def test_a_study_without_nights(self, root):
        assert "no protocol with the label of a night" in run(root, "nights", "drifting", code=ExitCode.STORE)
        assert "expected t or ewma" in run(root, "nights", "young", "--rule", "x", code=ExitCode.USAGE)
        with pytest.raises(StoreError):
            read_nights(connect(root), root, "nothing")
        with pytest.raises(StoreError):
            read_nights(connect(root), root, "young/elsewhere")


class TestDrift:
    def test_a_step_is_said(self, root):
        shown = run(root, "drift", "drifting")
        assert "step after replicate 2" in shown
        assert "Drift: p = " in shown
        facts = json.loads(run(root, "drift", "drifting", "--json"))
        assert facts["change"] == 0.5
        assert facts["change_point"] == 3
        assert (facts["covers"], facts["method"]) == ("benchmark", "within-task permutation")

    def test_that_nothing_is_seen_proves_nothing(self, root):
        shown = run(root, "drift", "young")
        assert "That proves little" in shown
        assert "power of the trend for a steady drift" in shown
        assert "no drift" not in shown.lower()
        assert "expected a number between 0 and 1" in run(root, "drift", "young", "--alpha", "2", code=ExitCode.USAGE)
        assert "expected" in run(root, "drift", "unknown", code=ExitCode.STORE)


class TestTasks:
    def test_the_noisiest_first(self, root):
        facts = json.loads(run(root, "tasks", "young", "--top", "3", "--json"))
        assert facts["covers"] == "benchmark"
        s2 = [one["s2"] for one in facts["tasks"]]
        assert len(s2) == 3
        assert s2 == sorted(s2, reverse=True)
        assert facts["tasks"][0]["rate_lo"] < facts["tasks"][0]["rate"] < facts["tasks"][0]["rate_hi"]
        shown = run(root, "tasks", "young", "--top", "2")
        assert "carry half of w" in shown
        assert "w without" in shown

    def test_a_difference_without_each_task(self, root):
        facts = json.loads(run(root, "tasks", "young", "--against", "young/replay", "--of", "score", "--json"))
        assert (facts["difference"], facts["n_tasks"], facts["unmatched"]) == (0, TASKS_A_NIGHT, 0)
        facts = json.loads(run(root, "tasks", "young", "--against", "drifting", "--top", "40", "--json"))
        cells = night_cells(3).sum(axis=1)
        other = np.array([3] * 15 + [0] * 15)
        found = contrast_influence(cells[:30], np.full(30, RUNS), other, np.full(30, 6))
        assert (facts["difference"], facts["unmatched"]) == (found.value, 10)
        first = facts["tasks"][0]
        assert first["without"] == found.without[int(first["task_id"][2:])]
        assert first["change"] == first["without"] - found.value
        assert "10 tasks of one arm alone left out" in run(root, "tasks", "young", "--against", "drifting")
        assert "expected w or score" in run(root, "tasks", "young", "--of", "mean", code=ExitCode.USAGE)
        assert "needs --against" in run(root, "tasks", "young", "--of", "score", code=ExitCode.USAGE)


class TestSequential:
    def test_counts(self, root):
        facts = json.loads(run(root, "sequential", "--passes", 35, "--runs", 50, "--half-width", 0.2, "--json"))
        assert (facts["lo"], facts["hi"]) == robbins_interval(35, 50)
        assert facts["stop"] is True
        assert "go on" in run(root, "sequential", "--passes", 3, "--runs", 5, "--half-width", 0.01)

    def test_new_tasks_and_new_runs_of_an_arm(self, root):
        tasks = json.loads(run(root, "sequential", "young", "--json"))
        assert (tasks["covers"], tasks["n"]) == ("population", TASKS_A_NIGHT)
        assert "one task" in tasks["one_observation"]
        assert "difficulty" in tasks["assumes"]
        shuffled = json.loads(run(root, "sequential", "young", "--shuffle", 3, "--json"))
        assert shuffled["mean"] == pytest.approx(tasks["mean"])
        assert shuffled["running_lo"] != tasks["running_lo"]
        runs = json.loads(run(root, "sequential", "young", "--covers", "benchmark", "--json"))
        assert (runs["covers"], runs["n"]) == ("benchmark", RUNS)

    def test_what_is_no_sequence_of_one_mean_is_refused(self, root):
        said = run(root, "sequential", "young/replay", "--covers", "benchmark", code=ExitCode.BLOCKED)
        assert "replicates that repeat one recorded run" in said
        assert "40 tasks belong to c" in run(root, "sequential", "clustered", code=ExitCode.BLOCKED)

    def test_scores_of_a_user(self, root, tmp_path):
        scores = tmp_path / "scores.csv"
        scores.write_text("task,score\na,1\nb,0\nc,1\n")
        from_file = json.loads(run(root, "sequential", scores, "--json"))
        from_lines = json.loads(run(root, "sequential", "-", "--json", stdin="score\n1\n0\n\n1\n"))
        assert from_file == from_lines
        assert (from_file["lo"], from_file["hi"]) == robbins_interval(2, 3)
        betting = json.loads(run(root, "sequential", "-", "--method", "betting", "--json", stdin="1\n0\n1\n"))
        assert "betting" in betting["method"]
        shown = run(root, "sequential", "-", "--half-width", 0.45, stdin="1\n" * 12)
        assert "stop; it held from observation" in shown

    @pytest.mark.parametrize(
        ("arguments", "stdin", "said"),
        [
            (["-"], "0.5\nx\n", "line 2"),
            (["-"], "1.5\n", "line 1"),
            (["-", "--method", "robbins"], "0.5\n", "outcomes 0 and 1"),
            (["-", "--method", "mine"], "1\n", "expected robbins or betting"),
            ([], None, "expected an arm"),
            (["--passes", "3", "--runs", "2"], None, "S at most N"),
            (["--passes", "1", "--runs", "2", "--method", "betting"], None, "in their order"),
            (["young", "--passes", "1", "--runs", "2"], None, "by themselves"),
            (["young", "--covers", "both"], None, "population or benchmark"),
            (["young", "--covers", "benchmark", "--shuffle", "1"], None, "--shuffle is about tasks"),
            (["x.csv", "--shuffle", "3"], None, "only of an arm"),
            (["x.csv", "--covers", "benchmark"], None, "only of an arm"),
            (["--passes", "1", "--runs", "2", "--covers", "both"], None, "population or benchmark"),
            (["-", "--shuffle", "3"], "1\n", "only of an arm"),
            (["--passes", "1", "--runs", "2", "--covers", "benchmark"], None, "only of an arm"),
            (["young", "--half-width", "0"], None, "--half-width"),
            (["young", "--level", "1"], None, "--level"),
        ],
    )
    def test_misuse(self, root, arguments, stdin, said):
        assert said in run(root, "sequential", *arguments, code=ExitCode.USAGE, stdin=stdin)


def test_blocked_error_is_typed(root):
    """The refusals are typed, so that a program can catch them."""
    from evalnoise.readers.arms import find_arm
    from evalnoise.readers.sequence import run_scores

    with pytest.raises(BlockedError):
        run_scores(find_arm(connect(root), root, "young/replay"))
