"""Reverification through the stages: the same frozen candidates verified again, by real processes and in real containers."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from evalnoise.report.summary import read_summary, verification_sentences
from evalnoise.stats.estimate import NO_NEW_RUNS
from evalnoise.store.store import Store
from schemas.errors import ExecutorError, UnfinishedShardError
from schemas.records import Check, Outcome, Reason
from schemas.study import Study
from schemas.tables import EXECUTIONS, GENERATIONS, OUTCOMES
from tasks.analyse import analyse
from tasks.judge import judge_shard
from tasks.plan import judge_shards, measured_shards
from tasks.record import record_source
from tasks.reverify import reverify_shard
from tasks.shard import measure_shard
from tests.support import stages
from tests.support.stores import differences
from verifiers.verify import Verifier

LIVE = {"name": "live", "kind": "live"}
AGAIN = {"name": "again", "kind": "reverify", "source": {"condition": "live"}}
COIN = "import os\n\n\ndef f(x):\n    return x + 1 if os.urandom(1)[0] % 2 else None\n"
ANSWERS = {
    "own/coin": COIN,
    "own/right": "def f(x):\n    return x + 1\n",
    "own/wrong": "def f(x):\n    return x\n",
    "own/prose": "I would rather not say.",
}
UNUSABLE = {"id": "own/object", "prompt": "?", "entry_point": "f", "reference": "def f(x):\n    return object()\n", "inputs": [[1]]}


def recorded(folder: Path, answers: dict[str, str] = ANSWERS, *, replicates: int, verifier: dict[str, Any]) -> Study:
    """A study whose answers are recorded: one is a coin, one right, one wrong, one no program, one about an unusable task."""
    task = {"prompt": "Add one.", "entry_point": "f", "reference": ANSWERS["own/right"], "inputs": [[1]]}
    tasks = [*({**task, "id": name} for name in answers), UNUSABLE]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(one) + "\n" for one in tasks))
    texts = {**answers, UNUSABLE["id"]: UNUSABLE["reference"]}
    lines = [{"task_id": name, "generations": [text] * replicates} for name, text in texts.items()]
    (folder / "recorded.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    provider = {"name": "recording", "path": str(folder / "recorded.jsonl")}
    body = stages.body(
        benchmark={"name": "jsonl", "path": str(folder / "tasks.jsonl")},
        stacks=[{"name": "a", "model": "m", "provider": provider, "verifier": verifier}],
        conditions=[AGAIN, LIVE],
        replicates=replicates,
    )
    return Study.model_validate(body)


def check_coin(root: Path, replicates: int) -> None:
    """The coin flips, nothing else does, and the views say so."""
    outcomes = stages.rows(root, "select task_id, outcome, reason, attempts from outcomes where condition = 'again'")
    by_task = {name: Counter(row[1:] for row in outcomes if row[0] == name) for name in [*ANSWERS, "own/object"]}
    assert by_task["own/right"] == {("pass", "pass", 0): replicates}
    assert by_task["own/wrong"] == {("fail", "mismatch", 0): replicates}
    assert by_task["own/prose"] == {("fail", "no-candidate", 0): replicates}
    assert by_task["own/object"] == {("unmeasured", "reference-unusable", 0): replicates}
    heads = by_task["own/coin"]["pass", "pass", 0]
    assert by_task["own/coin"] == {("pass", "pass", 0): heads, ("fail", "mismatch", 0): replicates - heads}
    assert 0 < heads < replicates
    found = stages.rows(
        root, "select n_tasks, n_unmeasured, variable_tasks, near_limit, w from noise_floor where condition = 'again'"
    )
    w = heads * (replicates - heads) / (replicates * (replicates - 1)) / 4
    assert found == [(4, replicates, 1, 0, pytest.approx(w, abs=1e-15))]
    query = (
        "select task_id, verifications, passes, fails, unmeasured, flipped, reason_changed, flipped_anywhere, rechecks, "
        "containers > 0 from verifier_noise where condition = 'again'"
    )
    container = stages.rows(root, "select bool_or(container <> '') from executions")[0][0]
    expected = ("own/coin", replicates, heads, replicates - heads, 0, True, True, True, 0, container)
    assert stages.rows(root, query) == [expected]
    (reasons, cpu) = stages.rows(root, "select reasons, cpu_by_reason from verifier_noise where condition = 'again'")[0]
    assert sorted(reasons.split(", ")) == sorted([f"pass {heads}", f"mismatch {replicates - heads}"])
    assert {part.split()[0] for part in cpu.split(", ")} == {"pass", "mismatch"}
    summary = (
        "select verifications, candidates, repeated, flipped, reason_changed from verifier_noise_summary where condition = 'again'"
    )
    assert stages.rows(root, summary) == [(3 * replicates, 3, 3, 1, 1)]


def test_a_candidate_that_throws_a_coin_is_found_and_nothing_else(tmp_path) -> None:
    stages.run(recorded(tmp_path, replicates=20, verifier=stages.PROCESS), tmp_path / "s", limit=None)
    check_coin(tmp_path / "s", 20)
    (study,) = Store.open(tmp_path / "s").studies()
    summary = read_summary(tmp_path / "s", study.study, study.protocol)
    (sentence,) = verification_sentences(summary, lambda row: row["condition"])
    assert sentence.startswith("verifier noise, again: 1 of 4 tasks flipped in 20 verifications (w 0.0")
    assert "): own/coin (" in sentence
    # The order of a recorded file is unknown, that of verifications is not.
    said = stages.rows(tmp_path / "s", "select condition from checks where \"check\" = 'order_unknown'")
    assert said == [("live",)]
    # A reverification has no draw of its own, so its score proves nothing about new runs; its w is a measured number.
    found = stages.rows(tmp_path / "s", "select estimate, lo is null, finding from contrasts where headline order by 1")
    assert found[0] == ("score", True, "proves nothing")
    assert found[1][0] == "w"
    over_runs = "select method, note from estimates where condition = 'again' and estimate = 'score' and covers = 'benchmark'"
    assert stages.rows(tmp_path / "s", over_runs) == [("plug-in variance", f"proves nothing: {NO_NEW_RUNS}")]
    assert stages.rows(tmp_path / "s", "select runs from noise_floor where condition = 'again'")[0][0] >= 1


@pytest.mark.docker
def test_the_same_in_containers(docker_engine, tmp_path) -> None:
    stages.run(recorded(tmp_path, replicates=20, verifier={"executor": "docker", "workers": 2}), tmp_path / "s", limit=None)
    check_coin(tmp_path / "s", 20)


def burning(seconds: float) -> str:
    """A right answer that takes so much CPU time."""
    return f"import time\n\n\ndef f(x):\n    while time.process_time() < {seconds}:\n        pass\n    return x + 1\n"


def test_tasks_near_their_limit_are_counted_in_every_condition_that_verifies_them(tmp_path) -> None:
    limit = 0.2
    answers = {"quick": ANSWERS["own/right"], "near": burning(0.7 * limit), "over": burning(1.5 * limit), "loop": burning(60)}
    study = recorded(tmp_path, answers, replicates=2, verifier={**stages.PROCESS, "cpu_seconds": limit})
    stages.run(study, tmp_path / "s", limit=None)
    found = stages.rows(
        tmp_path / "s",
        "select task_id, condition, verifications, reasons, rechecks, limit_share_min >= 0.5, limit_share_max < 2 "
        "from near_limit_tasks order by all",
    )
    # Over the limit is settled by five runs; what would never end is stopped at twice the limit, and that is no doubt.
    assert found == [
        (task, condition, 2, reasons, rechecks, True, True)
        for task, reasons, rechecks in (("near", "pass 2", 0), ("over", "cpu-limit 2", 8))
        for condition in ("again", "live")
    ]
    assert stages.rows(tmp_path / "s", "select condition, near_limit from noise_floor order by 1") == [("again", 2), ("live", 2)]
    (study_store,) = Store.open(tmp_path / "s").studies()
    summary = read_summary(tmp_path / "s", study_store.study, study_store.protocol)
    assert verification_sentences(summary, lambda row: row["condition"])[1].endswith("(view near_limit_tasks): again 2, live 2")


@pytest.fixture(scope="module")
def oracle(tmp_path_factory) -> Path:
    """An oracle with retries, reverified after its live run and after a replay of it."""
    root = tmp_path_factory.mktemp("oracle") / "s"
    conditions = [
        {"name": "replay-again", "kind": "reverify", "source": {"condition": "replay", "replicate": 1}},
        {"name": "replay", "kind": "replay", "source": {"condition": "live", "replicate": 2}},
        {"name": "again", "kind": "reverify", "source": {"condition": "live", "replicate": 2}},
        LIVE,
    ]
    stages.run(Study.model_validate(stages.body(conditions=conditions, limits={"shard_cells": 5})), root, limit=12)
    return root


def test_the_final_candidate_of_each_cell_is_verified_once_per_replicate(oracle) -> None:
    for name, source, replicate in (("again", "live", 2), ("replay-again", "replay", 1)):
        pairs = f"""
            select count(*), count(*) filter (where (r.outcome, r.reason, r.score, r.candidate_sha256)
                is distinct from (s.outcome, s.reason, s.score, s.candidate_sha256)), max(r.attempts), max(s.attempts)
            from outcomes r join outcomes s using (stack, task_id)
            where r.condition = '{name}' and s.condition = '{source}' and s.replicate = {replicate}
        """
        assert stages.rows(oracle, pairs) == [(36, 0, 0, 2)]
        executed = f"""
            select count(*), count(distinct (task_id, e.replicate)),
                count(*) filter (where e.candidate_sha256 <> s.candidate_sha256 or e.attempt <> s.attempts - 1)
            from executions e join outcomes s using (stack, task_id)
            where e.condition = '{name}' and s.condition = '{source}' and s.replicate = {replicate}
        """
        assert stages.rows(oracle, executed) == [(36, 36, 0)]
    # Some cells of the source failed first and passed after: their first candidate is verified no more.
    assert stages.rows(oracle, "select count(*) > 0 from outcomes where condition = 'live' and attempts = 2") == [(True,)]


def test_nothing_is_generated_and_nothing_is_noise(oracle) -> None:
    for table in ("calls", "generations"):
        assert stages.rows(oracle, f"select count(*) from {table} where condition in ('again', 'replay-again')") == [(0,)]
    numbers = "select condition, w, variable_tasks, near_limit from noise_floor where condition <> 'live' order by 1"
    assert stages.rows(oracle, numbers) == [(name, 0.0, 0, 0) for name in ("again", "replay", "replay-again")]
    assert stages.rows(oracle, "select count(*) from verifier_noise") == [(0,)]
    summary = "select verifications, candidates, repeated, flipped from verifier_noise_summary where condition = 'again'"
    assert stages.rows(oracle, summary) == [(36, 12, 12, 0)]
    truth = "select value, note from estimates where estimate = 'w_true' and condition = 'again'"
    assert stages.rows(oracle, truth) == [(0.0, "its replicates repeat one draw")]


def test_a_shard_names_the_files_that_it_was_made_from(oracle) -> None:
    (study,) = Store.open(oracle).studies()
    (source,) = [shard for shard in study.manifest.live if shard == "measure~a~live~r0002~t00005-00009"]
    digests = [file.sha256 for table in (GENERATIONS, OUTCOMES) for file in study.shard_files(table, source)]
    made = study.manifest.live["reverify~a~again~r0001~t00005-00009"]
    assert {file.table for file in made} == {EXECUTIONS.name, OUTCOMES.name}
    assert [list(file.inputs) for file in made] == [digests] * 2


class Failing:
    """Stands before the verifier, and says for one task what a test wants."""

    def __init__(self, check: Check, at: str) -> None:
        self.check, self.at, self.seen = check, at, Counter()
        self.honest = Verifier.check

    def __get__(self, verifier: Verifier, _: type) -> Any:
        def check(task, reference, candidate) -> Future[Check]:
            self.seen[task.id] += 1
            if task.id != self.at:
                return self.honest(verifier, task, reference, candidate)
            future: Future[Check] = Future()
            future.set_result(self.check)
            return future

        return check


def measured(plan: Study, shop, *conditions: str) -> None:
    for shard in measured_shards(plan, 6):
        if shard.condition in conditions:
            (reverify_shard if shard.purpose == "reverify" else measure_shard)(shop, shard)


def test_every_replicate_is_a_fresh_verification(tmp_path, monkeypatch) -> None:
    plan = Study.model_validate(stages.body(conditions=[LIVE, AGAIN], replicates=3))
    with stages.opened(plan, tmp_path / "s") as shop:
        measured(plan, shop, "live")
        watched = Failing(Check(Outcome.PASS, Reason.PASS), "nowhere")
        monkeypatch.setattr(Verifier, "check", watched)
        measured(plan, shop, "again")
    assert set(watched.seen.values()) == {3}
    assert len(watched.seen) == 6


def test_cells_without_an_outcome_have_none_here_and_say_so(tmp_path, monkeypatch) -> None:
    plan = Study.model_validate(stages.body(conditions=[LIVE, AGAIN], replicates=2))
    with stages.opened(plan, tmp_path / "s") as shop:
        task = shop.plan.benchmark.tasks[2].id
        with monkeypatch.context() as patched:
            patched.setattr(Verifier, "check", Failing(Check(Outcome.UNMEASURED, Reason.INFRASTRUCTURE, "no engine"), task))
            measured(plan, shop, "live")
        measured(plan, shop, "again")
        analyse(shop)
    at = f"where condition = 'again' and task_id = '{task}'"
    found = stages.rows(tmp_path / "s", f"select distinct outcome, reason, score, candidate_sha256 is null from outcomes {at}")
    assert found == [("unmeasured", "source-unmeasured", None, False)]
    assert stages.rows(tmp_path / "s", f"select count(*) from executions {at}") == [(0,)]
    assert stages.rows(tmp_path / "s", "select n_tasks, n_unmeasured from noise_floor where condition = 'again'") == [(5, 2)]
    said = stages.rows(tmp_path / "s", "select condition, sentence from checks where \"check\" = 'unmeasured' order by 1")
    assert [(condition, "(source-unmeasured)" in sentence) for condition, sentence in said] == [("again", True), ("live", False)]


def test_a_verifier_that_fails_is_tried_again_and_never_sealed(tmp_path, monkeypatch) -> None:
    plan = Study.model_validate(stages.body(conditions=[LIVE, AGAIN], replicates=2))
    with stages.opened(plan, tmp_path / "s") as shop:
        measured(plan, shop, "live")
        shard = next(shard for shard in measured_shards(plan, 6) if shard.purpose == "reverify")
        broken = Failing(Check(Outcome.UNMEASURED, Reason.INFRASTRUCTURE, "no engine"), shop.plan.benchmark.tasks[0].id)
        before = shop.progress.tally.cells_done
        with monkeypatch.context() as patched:
            patched.setattr(Verifier, "check", broken)
            with pytest.raises(UnfinishedShardError, match="1 of 6 cells"):
                reverify_shard(shop, shard, last_chance=False)
            assert not shop.study_store.sealed(shard.name)
            assert shop.progress.tally.cells_done == before
        with monkeypatch.context() as patched:
            everywhere: Future[Check] = Future()
            everywhere.set_result(broken.check)
            patched.setattr(Verifier, "check", lambda *_: everywhere)
            with pytest.raises(ExecutorError, match="6 of 6 cells"):
                reverify_shard(shop, shard)
        assert not shop.study_store.sealed(shard.name)
        reverify_shard(shop, shard)
        assert shop.study_store.sealed(shard.name)


def test_a_stopped_study_resumes_to_the_same_rows(tmp_path) -> None:
    judge = {"conditions": [{"name": "j", "model": "m", "provider": {"name": "oracle"}}], "repeats": 2}
    conditions = [*stages.body()["conditions"], AGAIN]
    plan = Study.model_validate(stages.body(conditions=conditions, judge=judge, limits={"shard_cells": 4}))
    stages.run(plan, tmp_path / "calm")
    shards = measured_shards(plan, 6)
    first = next(index for index, shard in enumerate(shards) if shard.purpose == "reverify")
    for stop in (first + 1, first + 3, len(shards)):
        with stages.opened(plan, tmp_path / "torn") as shop:
            for shard in shards[:stop]:
                if shop.study_store.sealed(shard.name):
                    continue
                if shard.condition == "replay":
                    record_source(shop, shard.stack, shard.condition)
                (reverify_shard if shard.purpose == "reverify" else measure_shard)(shop, shard)
            if stop == len(shards):
                for shard in judge_shards(plan, 6):
                    judge_shard(shop, shard)
                analyse(shop)
    assert differences(tmp_path / "calm", tmp_path / "torn") == []
