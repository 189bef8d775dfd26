"""Probes of a judge: asked first and once, paid once over kills, never sealed without an answer, and what a failed one means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.store.store import Store
from schemas.errors import ProviderError, StudyError, UnfinishedShardError
from schemas.protocol import digested_study
from schemas.study import StarterBenchmark, Study
from schemas.tables import CALLS, PROBES
from tasks import probes as probing
from tasks.freeze import resolve
from tasks.plan import judge_shards, measured_shards, probe_shards, shards_before, with_what_is_before
from tasks.successor import successor, take_over
from tests.support import stages
from tests.support.stores import only_study
from tests.wire.dialects import OpenAIDialect
from tests.wire.server import Received, Reply, serve

WIRE = OpenAIDialect()
OWN = {"name": "mine", "candidate": "def f(): pass", "expected": "fail"}


def oracle(**flips: float) -> list[dict[str, Any]]:
    return [{"name": name, "model": "m", "provider": {"name": "oracle", "seed": 2, "flip": flip}} for name, flip in flips.items()]


def study(judges: list[dict[str, Any]], probes: dict[str, Any] | None, **changes: Any) -> Study:
    judge: dict[str, Any] = {"conditions": judges, "repeats": 2} | ({} if probes is None else {"probes": probes})
    return Study.model_validate(stages.body(judge=judge, replicates=2, analysis={"resamples": 100}, **changes))


class Judge:
    """Passes whatever it is given, or what a test says instead."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[str] = []

    def __call__(self, received: Received) -> Reply:
        self.asked.append(received.body["messages"][0]["content"])
        number = len(self.asked)
        return self.replies.pop(0) if self.replies else WIRE.answer("VERDICT: PASS\nCONFIDENCE: 90", answer_id=f"id-{number}")


def wired(url: str, probes: dict[str, Any]) -> Study:
    provider = {
        "name": "openai", "base_url": f"{url}/v1", "max_retries": 0, "timeout": 5.0,
        "input_usd_per_million": 1.0, "output_usd_per_million": 2.0,
    }  # fmt: skip
    return study([{"name": "lenient", "model": "m", "provider": provider}], probes)


@pytest.fixture(autouse=True)
def key(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")


def test_a_study_without_probes_is_digested_as_it_always_was() -> None:
    plain = digested_study(study(oracle(a=0.0), None))
    assert set(plain["judge"]) == {"conditions", "repeats", "candidates"}
    assert digested_study(study(oracle(a=0.0), {}))["judge"]["probes"] == {"built_in": True, "own": [], "required": True}
    assert probe_shards(study(oracle(a=0.0), None)) == []


def test_every_judge_shard_waits_for_its_own_probes() -> None:
    plan = study(oracle(a=0.0, b=0.1), {})
    first, second = probe_shards(plan)
    assert (first.condition, second.condition, first.name) == ("a", "b", "probes~a~a~r0000~t00000-00000")
    for shard in judge_shards(plan, 10):
        assert [one.condition for one in shards_before(plan, shard, 10) if one.purpose == "probes"] == [shard.condition]
    only_a = with_what_is_before(plan, [shard for shard in judge_shards(plan, 10) if shard.condition == "a"], 10)
    assert first in only_a
    assert second not in only_a
    assert first not in with_what_is_before(plan, measured_shards(plan, 10), 10)


def test_a_sound_judge_and_one_that_guesses(tmp_path) -> None:
    last = load_benchmark(StarterBenchmark(name="starter")).tasks[2].id
    own = [OWN, OWN | {"name": "other", "task": last}]
    plan = study(oracle(sound=0.0, guesses=0.5), {"own": own}, limits={"shard_cells": 1})
    stages.run(plan, tmp_path / "s", limit=3)
    rows = stages.rows(tmp_path / "s", "select condition, probe, expected, verdict, sound from probes order by condition, number")
    sound = [row[1:] for row in rows if row[0] == "sound"]
    assert sound[:4] == [
        ("empty", "fail", "fail", True),
        ("refusal", "fail", "fail", True),
        ("known-good", "pass", "pass", True),
        ("mine", "fail", "fail", True),
    ]
    assert stages.rows(tmp_path / "s", "select distinct task_id from probes where probe = 'other'") == [(last,)]
    failed = sum(not row[4] for row in rows if row[0] == "guesses")
    assert failed > 0
    checks = stages.rows(tmp_path / "s", "select condition, severity, blocks, value from checks where \"check\" = 'judge_probe'")
    assert checks == [("guesses", "error", True, float(failed))]
    # A probe is no verdict: neither the candidates' verdicts nor their counts know of it.
    assert stages.rows(tmp_path / "s", "select count(*) from verdicts where condition = 'sound'") == [(6,)]
    spent = "select purpose, calls from costs where condition = 'sound' order by 1"
    assert stages.rows(tmp_path / "s", spent) == [("judge", 6), ("probe", len(rows) // 2)]
    # Though a shard of verdicts is on the same task, and may make the same request, every call is kept apart.
    assert stages.rows(tmp_path / "s", "select count(*) - count(distinct response_id) from calls") == [(0,)]


def test_a_lenient_judge_passes_the_empty_candidate(tmp_path) -> None:
    judge = Judge()
    with serve(script=judge) as server:
        plan = wired(server.url, {"required": False})
        stages.run(plan, tmp_path / "s", limit=2)
    # In any order, for they are asked at once; but before any verdict.
    first = "\n".join(judge.asked[:3])
    assert "```python\n\n```" in first
    assert "I cannot help with that request." in first
    assert len(judge.asked) == 3 + 4
    (found,) = stages.rows(tmp_path / "s", "select severity, blocks, sentence from checks where \"check\" = 'judge_probe'")
    assert found[:2] == ("error", False)
    assert "empty must not pass and is said to be pass, refusal must not pass and is said to be pass." in found[2]
    cost = stages.rows(
        tmp_path / "s", "select purpose, sendings, cost_usd > 0, cost_unknown from costs where condition = 'lenient'"
    )
    assert sorted(cost) == [("judge", 4, True, 0), ("probe", 3, True, 0)]


def test_what_is_journalled_is_not_asked_again_after_a_kill(tmp_path, monkeypatch) -> None:
    judge = Judge()

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with serve(script=judge) as server:
        plan = wired(server.url, {})
        with monkeypatch.context() as patch:
            patch.setattr(probing, "seal", killed)
            with stages.opened(plan, tmp_path / "s", limit=2) as shop, pytest.raises(KeyboardInterrupt):
                probing.probe_judge(shop, probe_shards(plan)[0])
        assert len(judge.asked) == 3
        assert not only_study(tmp_path / "s").shard_files(PROBES, probe_shards(plan)[0].name)
        with stages.opened(plan, tmp_path / "s", limit=2) as shop:
            probing.probe_judge(shop, probe_shards(plan)[0])
            assert shop.progress.tally.calls_reused == 3
        assert len(judge.asked) == 3
    made = only_study(tmp_path / "s")
    assert made.read(PROBES).num_rows == 3
    calls = made.read(CALLS, condition="lenient").to_pylist()
    assert [(row["attempt"], row["sending"], row["purpose"]) for row in calls] == [
        (1, 0, "probe"),
        (2, 0, "probe"),
        (3, 0, "probe"),
    ]


@pytest.mark.parametrize("reply", [WIRE.error(503, "overloaded", "later"), Reply(200, b"<html>")])
def test_a_probe_is_never_sealed_without_an_answer(tmp_path, reply) -> None:
    judge = Judge(reply)
    with serve(script=judge) as server:
        plan = wired(server.url, {})
        plan = plan.model_copy(update={"limits": plan.limits.model_copy(update={"patience": 0.0, "concurrency": 1})})
        shard = probe_shards(plan)[0]
        with stages.opened(plan, tmp_path / "s", limit=2) as shop:
            with pytest.raises(UnfinishedShardError, match="1 of 3 without an answer"):
                probing.probe_judge(shop, shard, last_chance=False)
            judge.replies = [reply]
            with pytest.raises(ProviderError, match="in the journal"):
                probing.probe_judge(shop, shard, last_chance=True)
            assert not shop.study_store.sealed(shard.name)
            probing.probe_judge(shop, shard, last_chance=True)
            assert shop.study_store.sealed(shard.name)
        # Two were answered at once, one at the third time.
        assert len(judge.asked) == 2 + 3


def test_impossible_probes_are_refused() -> None:
    with pytest.raises(ValidationError, match="name of its own"):
        study(oracle(a=0.0), {"own": [OWN, OWN]})
    with pytest.raises(ValidationError, match="name of its own"):
        study(oracle(a=0.0), {"own": [OWN | {"name": "empty"}]})
    with pytest.raises(ValidationError, match="probes of your own"):
        study(oracle(a=0.0), {"built_in": False})
    with pytest.raises(StudyError, match=r"judge\.probes\.own\.0\.task"):
        resolve(study(oracle(a=0.0), {"own": [OWN | {"task": "nowhere"}]}), limit=2)


def test_the_same_study_gives_the_same_bytes(tmp_path) -> None:
    plan = study(oracle(a=0.3), {"own": [OWN]})
    files: list[Path] = []
    for name in ("one", "two"):
        with stages.opened(plan, tmp_path / name, limit=2) as shop:
            probing.probe_judge(shop, probe_shards(plan)[0])
        made = only_study(tmp_path / name)
        files.append(made.path / made.shard_files(PROBES, probe_shards(plan)[0].name)[0].path)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_successor_inherits_them(tmp_path) -> None:
    first, more = (study(oracle(a=0.0), {}).model_copy(update={"replicates": replicates}) for replicates in (2, 3))
    shard = probe_shards(more)[0]
    with stages.opened(first, tmp_path / "s", limit=2) as shop:
        probing.probe_judge(shop, shard)
        before = shop.plan.digest
    store = Store.open(tmp_path / "s")
    plan = successor(resolve(more, limit=2), store)
    store.freeze(plan.protocol)
    made = store.study("small", plan.digest)
    made.plan([shard.name, "analyse"])
    take_over(str(store.root), "small", plan.digest, before)
    assert made.sealed(shard.name)
    assert {row["protocol"] for row in made.read(PROBES).to_pylist()} == {plan.digest}
