"""Asking sealed cells again: which ones, what is made from them, what stays, and what is said of it."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.store.retries import retries
from evalnoise.store.store import Store, StudyStore
from schemas.errors import StoreError, SuccessorError
from schemas.records import Check, Outcome, Reason
from schemas.study import StarterBenchmark, Study
from schemas.tables import CALLS, EXECUTIONS, GENERATIONS, OUTCOMES, VERDICTS, Table
from tests.support import stages
from tests.support.whole import serverless, whole
from tests.wire.dialects import OpenAIDialect
from tests.wire.server import Received, Reply, serve
from verifiers.verify import Verifier

__all__ = ["whole"]

WIRE = OpenAIDialect()
TASKS = {task.id: task for task in load_benchmark(StarterBenchmark(name="starter")).tasks[:8]}
TORN, REFUSED, UNRUN, *FINE = TASKS
"""Tasks whose answer is none, whose request is refused, whose candidate the verifier cannot run; and the others."""
LIVE = "measure~a~live~r0000~t00000-00007"


class Model:
    """Answers by the canonical solution; for one task with what is no answer, until it is mended; one it never takes."""

    def __init__(self) -> None:
        self.mended = False
        self.asked: Counter[str] = Counter()
        self._numbers = itertools.count()

    def __call__(self, received: Received) -> Reply:
        prompt = received.body["messages"][0]["content"]
        task = next(task for task in TASKS.values() if task.prompt in prompt)
        self.asked[task.id] += 1
        if task.id == REFUSED:
            return WIRE.error(400, "invalid_request_error", "no")
        if task.id == TORN and not self.mended:
            return Reply(body=b"<html>Bad gateway</html>", content_type="text/html")
        return WIRE.answer(f"```python\n{task.reference}\n```", answer_id=f"id-{next(self._numbers)}")


class Bench:
    """The verifier, which cannot run the candidate of one task until it is mended, and counts."""

    def __init__(self) -> None:
        self.mended = False
        self.checked: Counter[str] = Counter()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        honest = Verifier.check

        def check(verifier: Verifier, task: Any, *arguments: Any) -> Future[Check]:
            self.checked[task.id] += 1
            if task.id == UNRUN and not self.mended:
                future: Future[Check] = Future()
                future.set_result(Check(Outcome.UNMEASURED, Reason.INFRASTRUCTURE, "no engine"))
                return future
            return honest(verifier, task, *arguments)

        patch.setattr(Verifier, "check", check)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    made = Model()
    with serve(script=made) as server:
        made.url = server.url
        yield made


@pytest.fixture(autouse=True)
def key(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")


def study(model: Model, **changes: Any) -> Study:
    provider = {"name": "openai", "base_url": f"{model.url}/v1", "max_retries": 0, "timeout": 5.0, "temperature": 0.7}
    stack = {"name": "a", "model": "m", "provider": provider, "verifier": stages.PROCESS, "max_tokens": 300}
    conditions = [
        {"name": "live", "kind": "live"},
        {"name": "replay", "kind": "replay", "source": {"condition": "live"}},
        {"name": "reverify", "kind": "reverify", "source": {"condition": "live"}},
    ]
    judge = {"conditions": [{"name": "j", "model": "m", "provider": {"name": "oracle", "flip": 0.0}}], "repeats": 2}
    limits = {"max_share": {"malformed": 1.0}}
    plain = {"stacks": [stack], "conditions": conditions, "judge": judge, "replicates": 2, "limits": limits}
    return Study.model_validate(stages.body(**(plain | changes)))


@pytest.fixture(scope="module")
def made(model, tmp_path_factory) -> Path:
    """A store whose live cells lack three outcomes in each replicate; leave it as it is."""
    root = tmp_path_factory.mktemp("torn") / "s"
    with serverless() as runs, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
        Bench().install(patch)
        runs.run(study(model), root, limit=8)
    return root


@pytest.fixture
def torn(made, tmp_path) -> Path:
    return shutil.copytree(made, tmp_path / "s")


@pytest.fixture
def mended(model, monkeypatch) -> Iterator[Bench]:
    """Everything works from now on."""
    bench = Bench()
    bench.mended = True
    bench.install(monkeypatch)
    model.asked.clear()
    model.mended = True
    yield bench
    model.mended = False


def one_study(root: Path) -> StudyStore:
    (one,) = Store.open(root, create=False).studies()
    return one


def rows(one: StudyStore, table: Table, *tasks: str) -> list[str]:
    """All columns, measured ones too, of the rows of these tasks."""
    return sorted(repr(row) for row in one.read(table).to_pylist() if row["task_id"] in tasks)


REASONS = "select condition, reason, count(*) from outcomes where outcome = 'unmeasured' group by all order by all"
RETRY = {"retry_unmeasured": True, "limit": 8}


def test_what_was_sealed_without_an_outcome(torn) -> None:
    assert stages.rows(torn, REASONS) == [
        ("live", "infrastructure", 2), ("live", "malformed", 2), ("live", "provider", 2),
        ("replay", "infrastructure", 2), ("replay", "malformed", 2), ("replay", "provider", 2),
        ("reverify", "source-unmeasured", 6),
    ]  # fmt: skip


def test_only_cells_that_can_pass_are_asked_again_and_all_else_keeps_its_rows(whole, model, torn, mended) -> None:
    before = one_study(torn)
    kept = {table.name: rows(before, table, REFUSED, *FINE) for table in (CALLS, GENERATIONS, EXECUTIONS, OUTCOMES, VERDICTS)}
    lines = before.manifest.path.read_bytes()
    done = whole.run(study(model), torn, **RETRY)
    after = one_study(torn)
    # The torn answer is asked for once per live replicate; the one that was not verified is in the journal.
    assert model.asked == {TORN: 2}
    # Live, replay and reverify, two replicates each, of the two tasks alone.
    assert mended.checked == {TORN: 6, UNRUN: 6}
    assert done.asked_again == 6  # in live two tasks, in replay the one that its own verification missed
    assert {
        table.name: rows(after, table, REFUSED, *FINE) for table in (CALLS, GENERATIONS, EXECUTIONS, OUTCOMES, VERDICTS)
    } == kept
    assert stages.rows(torn, REASONS) == [("live", "provider", 2), ("replay", "provider", 2), ("reverify", "source-unmeasured", 2)]
    # Both are judged now, in each repeat; what is refused has nothing to judge.
    assert stages.rows(torn, "select count(*), count(distinct task_id) from verdicts") == [(14, 7)]
    # What failed before is still in the ledger, beside what was asked again.
    sendings = stages.rows(
        torn, f"select replicate, response_class from calls where task_id = '{TORN}' and purpose = 'generate' order by all"
    )
    assert sendings == [(r, c) for r in (0, 1) for c in ("complete", "malformed", "malformed")]
    assert after.manifest.path.read_bytes().startswith(lines)
    assert whole.ran[-1] == "analyse"
    assert stages.rows(torn, "select status from protocols") == [("complete",)]


def test_a_retry_is_told_and_is_over(whole, model, torn, mended) -> None:
    done = whole.run(study(model), torn, **RETRY)
    said = stages.rows(torn, "select severity, blocks, value, sentence from checks where \"check\" = 'retried'")
    assert [row[:3] for row in said] == [("warning", False, 6.0)]
    (retry,) = retries(one_study(torn).manifest)
    assert said[0][3].startswith(
        f"6 cells without an outcome were asked again on {retry.at[:16].replace('T', ' ')} UTC, after they were sealed; 6 have one"
    )
    assert not retry.open
    assert any(row["check"] == "retried" for row in done.summary.checks)
    manifest = one_study(torn).manifest.path.read_bytes()
    again = whole.run(study(model), torn, **RETRY)
    assert (again.asked_again, whole.ran) == (0, ["freeze"])
    assert one_study(torn).manifest.path.read_bytes() == manifest


def test_the_replays_recording_is_another_one(whole, model, torn, mended) -> None:
    (old,) = (torn / "recordings").iterdir()
    sealed = {path.name: path.read_bytes() for path in old.iterdir()}
    whole.run(study(model), torn, **RETRY)
    assert {path.name: path.read_bytes() for path in old.iterdir()} == sealed
    (new,) = set((torn / "recordings").iterdir()) - {old}
    assert new.name.startswith(f"{old.name}~")


def test_replaced_files_stay_in_the_manifest_and_go_from_disk(whole, model, torn, mended) -> None:
    old = {file.path: file.sha256 for file in one_study(torn).manifest.live[LIVE]}
    whole.run(study(model), torn, **RETRY)
    whole.run(study(model), torn, **RETRY)
    after = one_study(torn)
    new = {file.path: file for file in after.manifest.live[LIVE]}
    assert {file.lineage["retry"] for file in new.values()} == {1}
    changed = {path for path in old if path not in new}
    assert {path.split("/")[0] for path in changed} == {"calls", "generations", "executions", "outcomes"}
    assert changed <= after.manifest.superseded
    assert not any((after.path / path).exists() for path in changed)


@pytest.mark.parametrize(
    ("at", "command"),
    [
        (LIVE, {"limit": 8}),
        ("measure~a~replay~r0001~t00000-00007", RETRY),
        ("judge~a~j~r0001~t00000-00007", {"limit": 8}),
        ("analyse", RETRY),
    ],
)
def test_a_retry_that_is_killed_goes_on_by_itself_and_by_run(request, at, command) -> None:
    whole, model, torn, mended = map(request.getfixturevalue, ("whole", "model", "torn", "mended"))

    def kill(name: str) -> None:
        if name == at:
            raise KeyboardInterrupt

    whole.before = kill
    with pytest.raises(KeyboardInterrupt):
        whole.run(study(model), torn, **RETRY)
    whole.before = lambda _name: None
    asked = model.asked.total()
    whole.run(study(model), torn, **command)
    assert model.asked == {TORN: 2}
    assert asked in (0, 1, 2)
    assert mended.checked == {TORN: 6, UNRUN: 6}
    assert stages.rows(torn, REASONS) == [("live", "provider", 2), ("replay", "provider", 2), ("reverify", "source-unmeasured", 2)]
    assert stages.rows(torn, "select count(*), count(distinct task_id) from verdicts") == [(14, 7)]
    assert [retry.open for retry in retries(one_study(torn).manifest)] == [False]
    assert stages.rows(torn, "select status from protocols") == [("complete",)]


def test_what_fails_again_stays_without_an_outcome_and_can_be_asked_once_more(whole, model, torn, mended) -> None:
    model.mended = False
    done = whole.run(study(model), torn, **RETRY)
    assert done.asked_again == 6
    assert [row for row in stages.rows(torn, REASONS) if row[1] == "malformed"] == [
        ("live", "malformed", 2),
        ("replay", "malformed", 2),
    ]
    sentence = stages.rows(torn, "select sentence from checks where \"check\" = 'retried'")[0][0]
    assert "4 have one now" in sentence
    model.mended = True
    assert whole.run(study(model), torn, **RETRY).asked_again == 2
    assert [retry.number for retry in retries(one_study(torn).manifest)] == [1, 2]
    assert stages.rows(torn, "select value from checks where \"check\" = 'retried' order by 1") == [(2.0,), (6.0,)]


def test_a_successor_tells_of_its_predecessors_retries_and_can_be_retried_itself(whole, model, torn, mended) -> None:
    whole.run(study(model), torn, **RETRY)
    model.mended = False
    done = whole.run(study(model), torn, limit=8, replicates=3, extend_from="newest")
    told = "select \"check\", value from checks where \"check\" in ('retried', 'not_blind') and protocol = "
    assert stages.rows(torn, f"{told} '{done.protocol}' order by 1") == [("not_blind", None), ("retried", 6.0)]
    model.mended = True
    model.asked.clear()
    again = whole.run(study(model), torn, replicates=3, **RETRY)
    assert again.protocol == done.protocol
    assert model.asked == {TORN: 1}
    reasons = f"select distinct reason from outcomes where outcome = 'unmeasured' and protocol = '{done.protocol}' order by 1"
    assert stages.rows(torn, reasons) == [("provider",), ("source-unmeasured",)]


def test_an_open_retry_is_not_extended(whole, model, torn, mended) -> None:
    def kill(name: str) -> None:
        if name.startswith("reverify~"):
            raise KeyboardInterrupt

    whole.before = kill
    with pytest.raises(KeyboardInterrupt):
        whole.run(study(model), torn, **RETRY)
    whole.before = lambda _name: None
    with pytest.raises(SuccessorError, match="in the middle of `evalnoise retry`"):
        whole.run(study(model), torn, limit=8, replicates=3, extend_from="newest")
    whole.run(study(model), torn, **RETRY)
    whole.run(study(model), torn, limit=8, replicates=3, extend_from="newest")


def test_there_must_be_a_run_to_ask_again(whole, model, torn) -> None:
    with pytest.raises(StoreError, match="expected a run of study small as it stands, found none"):
        whole.run(study(model), torn, limit=7, retry_unmeasured=True)
