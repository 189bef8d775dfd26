"""Providers that fail, repeat themselves or refuse: what becomes of their cells, over real HTTP and through the real SDK."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.store.store import Store
from schemas.errors import DataError, ExecutorError, ProviderError, ReplayMissError, UnfinishedShardError
from schemas.records import Check, Outcome, Reason
from schemas.study import StarterBenchmark, Study
from schemas.tables import OUTCOMES
from tasks.plan import measured_shards
from tasks.record import record_source
from tasks.shard import measure_shard
from tests.support import stages
from tests.wire.dialects import OpenAIDialect
from tests.wire.server import Received, Reply, serve

WIRE = OpenAIDialect()
TASKS = {task.id: task for task in load_benchmark(StarterBenchmark(name="starter")).tasks}


def study(url: str, **changes) -> Study:
    provider = {"name": "openai", "base_url": f"{url}/v1", "max_retries": 0, "timeout": 5.0, "temperature": 0.7}
    stack = {"name": "a", "model": "m", "provider": provider, "verifier": stages.PROCESS, "max_tokens": 300}
    plain = {"stacks": [stack], "conditions": [{"name": "live", "kind": "live"}], "replicates": 2}
    return Study.model_validate(stages.body(**(plain | changes)))


@pytest.fixture(autouse=True)
def key(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")


def asked(received: Received) -> str:
    """The task that a request is about."""
    prompt = received.body["messages"][0]["content"]
    return next(name for name, task in TASKS.items() if task.prompt in prompt)


class Model:
    """Answers each task by its canonical solution, but for the tasks of which a test has other ideas."""

    def __init__(self, **odd: Reply) -> None:
        self.odd = {name.replace("_", "/", 1).replace("_", "-"): reply for name, reply in odd.items()}
        self.calls = 0

    def __call__(self, received: Received) -> Reply:
        self.calls += 1
        task = asked(received)
        return self.odd.get(task) or WIRE.answer(f"```python\n{TASKS[task].reference}\n```", answer_id=f"id-{self.calls}")


FIRST = "starter_01_alternating_digits"


def first_outcome(root: Path) -> tuple[str, str]:
    query = "select outcome, reason from outcomes where task_id = 'starter/01-alternating-digits' and replicate = 0"
    return stages.rows(root, query)[0]


def test_what_an_answer_becomes(tmp_path) -> None:
    """Six tasks of twelve, each answered in its own odd way; the others by their canonical solutions."""
    odd = list(TASKS)[:6]
    refused, prose, broken, other, raising, wrong = (TASKS[name].entry_point for name in odd)
    replies = {
        refused: (WIRE.error(400, "invalid_request_error", "no such thing"), "unmeasured", "provider"),
        prose: (WIRE.answer("I am sorry, I cannot do that for you today."), "fail", "no-candidate"),
        broken: (WIRE.answer(f"```python\ndef {broken}(n):\n    return (\n```"), "fail", "syntax-error"),
        other: (WIRE.answer("```python\ndef other(n):\n    return 1\n```"), "fail", "missing-entry-point"),
        raising: (WIRE.answer(f"```python\ndef {raising}(*_):\n    return 1 / 0\n```"), "fail", "exception"),
        wrong: (WIRE.answer(f"```python\ndef {wrong}(*_):\n    return 'no such value'\n```"), "fail", "mismatch"),
    }
    model = Model()
    model.odd = {name: reply for name, (reply, *_) in zip(odd, replies.values(), strict=True)}
    with serve(script=model) as server:
        stages.run(study(server.url), tmp_path / "s", limit=12)
    found = stages.rows(tmp_path / "s", "select outcome, reason from outcomes order by position, replicate")
    expected = [(outcome, reason) for _, outcome, reason in replies.values()] + [("pass", "pass")] * 6
    assert found == [one for one in expected for _ in range(2)]
    # What is unmeasured is left out of the score, and is no failure in it.
    assert stages.rows(tmp_path / "s", "select score, n_unmeasured from noise_floor") == [(pytest.approx(6 / 11), 2)]


def test_a_provider_that_fails_too_often_stops_before_the_shard_is_sealed_and_its_answers_are_kept(tmp_path) -> None:
    broken = {f"starter_{task.split('/')[1].replace('-', '_')}": WIRE.error(500, "server_error") for task in list(TASKS)[:4]}
    model = Model(**broken)
    with serve(script=model) as server:
        with pytest.raises(ProviderError, match="cells unmeasured"):
            stages.run(study(server.url), tmp_path / "s", limit=12)
        before = model.calls
        model.odd.clear()
        stages.run(study(server.url), tmp_path / "s", limit=12, analysed=False)
    # 8 answers of the first shard were journalled; its other 4 and the second shard's 12 are asked now.
    assert (before, model.calls - before) == (12, 16)
    assert stages.rows(tmp_path / "s", "select count(*), count(*) filter (where outcome = 'pass') from outcomes") == [(24, 24)]


def test_a_single_failure_is_not_sealed_at_the_first_try(tmp_path) -> None:
    plan = Model(**{FIRST: WIRE.error(500, "server_error")})
    with serve(script=plan) as server:
        with stages.opened(study(server.url), tmp_path / "s", limit=12) as shop:
            (shard, _) = measured_shards(shop.plan.study, 12)
            with pytest.raises(UnfinishedShardError, match="1 of 12 cells"):
                measure_shard(shop, shard, last_chance=False)
            assert not shop.study_store.sealed(shard.name)
            assert (shop.progress.tally.cells_done, shop.progress.tally.failures) == (0, 0)
            plan.odd.clear()
            measure_shard(shop, shard, last_chance=False)
            assert shop.study_store.sealed(shard.name)
            tally = shop.progress.tally
        assert plan.calls == 13  # eleven answers stayed in the journal
        assert (tally.calls, tally.calls_reused, tally.sendings_repeated, tally.cost_unknown) == (12, 0, 1, 13)
        outcomes = shop.study_store.read(OUTCOMES).to_pylist()
    assert [row["outcome"] for row in outcomes] == ["pass"] * 12


def test_a_judge_that_is_down_gives_no_unparsed_verdicts(tmp_path) -> None:
    judge = {"name": "openai", "max_retries": 0, "timeout": 5.0}
    conditions = [{"name": "live", "kind": "live"}, {"name": "replay", "kind": "replay", "source": {"condition": "live"}}]

    def script(received: Received) -> Reply:
        asked_to_judge = "VERDICT" in received.body["messages"][0]["content"]
        return WIRE.error(500, "server_error") if asked_to_judge else model(received)

    model = Model()
    with serve(script=script) as server:
        judges = {"repeats": 2, "conditions": [{"name": "j", "model": "m", "provider": judge | {"base_url": f"{server.url}/v1"}}]}
        with pytest.raises(ProviderError):
            stages.run(study(server.url, conditions=conditions, judge=judges), tmp_path / "s", limit=4)
    (sealed,) = Store.open(tmp_path / "s").studies()
    assert not any(name.startswith("judge~") for name in sealed.manifest.live)


def test_hostile_text_in_a_providers_own_fields_is_stored(tmp_path) -> None:
    model = Model(**{FIRST: WIRE.answer("no", model="served-\ud835", answer_id="id-\ud835", finish="stop")})
    with serve(script=model) as server:
        stages.run(study(server.url), tmp_path / "s", limit=2)
    served = "select distinct served_model, response_id from calls where position = 0"
    assert stages.rows(tmp_path / "s", served) == [("served-\\ud835", "id-\\ud835")]


def test_a_failure_that_can_pass_is_never_sealed_and_a_refused_request_is_asked_once(tmp_path) -> None:
    plan = Model(**{FIRST: WIRE.error(500, "server_error")})
    with serve(script=plan) as server:
        for _ in range(2):
            with pytest.raises(ProviderError, match="1 of 12 cells unmeasured"):
                stages.run(study(server.url), tmp_path / "s", limit=12)
        (sealed,) = Store.open(tmp_path / "s").studies()
        assert not any(name.startswith("measure~") for name in sealed.manifest.live)
        plan.odd[next(iter(plan.odd))] = WIRE.error(400, "invalid_request_error", "too odd")
        stages.run(study(server.url), tmp_path / "s", limit=12, analysed=False)
    assert first_outcome(tmp_path / "s") == ("unmeasured", "provider")
    # 12 calls, 1 again in the second run, 1 in the third, and the 12 of the second replicate.
    assert plan.calls == 26


def test_one_answer_for_all_blocks(tmp_path) -> None:
    def cached(received: Received) -> Reply:
        return WIRE.answer(f"```python\n{TASKS[asked(received)].reference}\n```", answer_id=f"cache-{asked(received)}")

    with serve(script=cached) as server:
        stages.run(study(server.url), tmp_path / "s", limit=3)
    found = stages.rows(tmp_path / "s", "select blocks, severity, value from checks where \"check\" = 'repeated_ids'")
    assert found == [(True, "error", 6.0)]


def test_a_model_that_changes_in_mid_study_blocks(tmp_path) -> None:
    served = iter(["m-1"] * 3 + ["m-2"] * 3)
    count = iter(range(100))

    def moving(received: Received) -> Reply:
        return WIRE.answer(f"```python\n{TASKS[asked(received)].reference}\n```", answer_id=f"i{next(count)}", model=next(served))

    with serve(script=moving) as server:
        stages.run(study(server.url, limits={"concurrency": 1}), tmp_path / "s", limit=3)
    ((blocks, said),) = stages.rows(tmp_path / "s", "select blocks, sentence from checks where \"check\" = 'served_model'")
    assert blocks
    assert re.fullmatch(r"a, live: several models answered: m-1 \(3, 20[^()]* to 20[^()]*\), m-2 \(3, 20[^()]*\)\.", said)


def test_unknown_prices_are_null_and_said(tmp_path) -> None:
    with serve(script=Model()) as server:
        stages.run(study(server.url), tmp_path / "s", limit=2)
    assert stages.rows(tmp_path / "s", "select count(*), count(cost_usd) from calls") == [(4, 0)]
    assert stages.rows(tmp_path / "s", "select value from checks where \"check\" = 'cost_unknown'") == [(4.0,)]


def test_the_key_is_nowhere_in_the_store(tmp_path) -> None:
    echo = {FIRST: WIRE.error(400, "invalid_request", "bad key sk-planted-0123456789 given")}
    with serve(script=Model(**echo)) as server:
        stages.run(study(server.url), tmp_path / "s", limit=12)
    for path in (tmp_path / "s").rglob("*"):
        if path.is_file():
            assert b"sk-planted" not in path.read_bytes(), path
    assert stages.rows(tmp_path / "s", "select count(*) from calls where contains(error || response, 'sk-planted')") == [(0,)]


def test_a_verifier_that_fails_stops_before_the_shard_is_sealed(tmp_path, monkeypatch) -> None:
    from concurrent.futures import Future

    from verifiers.verify import Verifier

    def broken(*_: object) -> Future[Check]:
        future: Future[Check] = Future()
        future.set_result(Check(Outcome.UNMEASURED, Reason.INFRASTRUCTURE, "no engine"))
        return future

    plan = Study.model_validate(stages.body())
    with stages.opened(plan, tmp_path / "s") as shop:
        monkeypatch.setattr(Verifier, "check", broken)
        shard = measured_shards(plan, 6)[0]
        with pytest.raises(ExecutorError, match="6 of 6 cells"):
            measure_shard(shop, shard)
        assert not shop.study_store.sealed(shard.name)


def test_a_replay_that_fails_where_its_source_passed_is_unmeasured_and_blocks(tmp_path, monkeypatch) -> None:
    from concurrent.futures import Future

    from tasks.analyse import analyse
    from verifiers.verify import Verifier

    plan = Study.model_validate(stages.body(conditions=stages.body()["conditions"][::2]))
    honest = Verifier.check

    def torn(self: Verifier, task, reference, candidate) -> Future[Check]:
        if task.id == torn.at:
            future: Future[Check] = Future()
            future.set_result(Check(Outcome.FAIL, Reason.CPU_LIMIT))
            return future
        return honest(self, task, reference, candidate)

    torn.at = ""
    monkeypatch.setattr(Verifier, "check", torn)
    with stages.opened(plan, tmp_path / "s") as shop:
        shards = measured_shards(plan, 6)
        for shard in [s for s in shards if s.condition == "live"]:
            measure_shard(shop, shard)
        record_source(shop, "a", "replay")
        live = shop.study_store.read(OUTCOMES, condition="live", replicate=0).to_pylist()
        torn.at = next(row["task_id"] for row in live if row["outcome"] == "pass" and row["attempts"] == 1)
        for shard in [s for s in shards if s.condition == "replay"]:
            measure_shard(shop, shard)
        analyse(shop)
    query = f"select distinct outcome, reason, score from outcomes where condition = 'replay' and task_id = '{torn.at}'"
    assert stages.rows(tmp_path / "s", query) == [("unmeasured", "replay-miss", None)]
    found = stages.rows(tmp_path / "s", "select blocks, condition from checks where \"check\" = 'unmeasured'")
    assert found == [(True, "replay")]


def test_a_replay_of_other_requests_is_refused(tmp_path) -> None:
    conditions = [
        {"name": "live", "kind": "live"},
        {"name": "replay", "kind": "replay", "source": {"condition": "live"}, "provider": {"temperature": 0.1}},
    ]
    with serve(script=Model()) as server, pytest.raises(ReplayMissError, match=r"temperature"):
        stages.run(study(server.url, conditions=conditions), tmp_path / "s", limit=2)


def test_a_benchmark_whose_solutions_all_fail_is_refused_before_any_call(tmp_path) -> None:
    task = {"id": "t", "prompt": "p", "entry_point": "f", "reference": "def f(x):\n    return object()\n", "inputs": [[1]]}
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(task) + "\n")
    model = Model()
    with serve(script=model) as server, pytest.raises(DataError, match="canonical solutions"):
        stages.run(study(server.url, benchmark={"name": "jsonl", "path": str(path)}), tmp_path / "s")
    assert model.calls == 0
