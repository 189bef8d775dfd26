"""Second attempts: what a request with feedback holds, how it is recorded, and what becomes of it after a kill; over real HTTP."""

from __future__ import annotations

import json
import re
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import StudyError
from schemas.records import Check, Outcome, Reason, Task
from schemas.study import Study
from tasks.plan import measured_shards
from tasks.retry import next_retry
from tasks.selection import find_side
from tasks.shard import measure_shard
from tests.support import stages
from tests.support.odd_model import LIVE, NAMES, TASKS, WIRE, Model, right, study
from tests.wire.server import serve
from verifiers.verify import Verifier


@pytest.fixture(autouse=True)
def key(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")


WRONG = "```python\ndef alternating_digits(n):\n    return 'wrong'\n```"
RAISES = "```python\ndef alternating_digits(n):\n    raise ValueError('no idea of ' + str(type(n).__name__))\n```"


def conversation(tmp_path: Path, answer: str, **stack: Any) -> tuple[list[dict[str, str]], list[tuple[Any, ...]]]:
    """The messages of the second request for the first task, and what its cell came to."""
    model = Model(
        lambda task, before: WIRE.answer(answer, answer_id=f"odd-{before}") if (task.id, before) == (NAMES[0], 0) else None
    )
    with serve(script=model) as server:
        stages.run(
            study(server.url, stack={"retry": "with-feedback"} | stack, replicates=1), tmp_path / "s", limit=1, analysed=False
        )
    first, second = (body for _, body in model.bodies)
    assert {**first, "messages": ()} == {**second, "messages": ()}
    assert second["messages"][0]["content"].startswith(first["messages"][0]["content"])
    query = "select outcome, attempts from outcomes"
    return second["messages"], stages.rows(tmp_path / "s", query)


def test_feedback_holds_the_first_answer_and_the_reason_but_nothing_that_was_expected(tmp_path) -> None:
    messages, outcome = conversation(tmp_path, WRONG)
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"] == WRONG
    assert messages[2]["content"] == (
        "Your answer was checked and did not pass: mismatch.\n\nAnswer the task again, whole, in the form that was asked for."
    )
    assert outcome == [("pass", 2)]
    keys = stages.rows(tmp_path / "s", "select attempt, request_key from generations order by attempt")
    assert len({name for _, name in keys}) == 2
    details = stages.rows(tmp_path / "s", "select detail from executions where attempt = 0")
    assert "expected" in details[0][0]


def test_feedback_names_an_exception(tmp_path) -> None:
    messages, _ = conversation(tmp_path, RAISES)
    assert "exception (input 0: ValueError: no idea of int (line 2))." in messages[2]["content"]


def test_feedback_by_a_template_of_ones_own(tmp_path) -> None:
    template = "{{ task.id }}|{{ reason }}|{{ detail }}|{{ candidate }}"
    messages, _ = conversation(tmp_path, WRONG, retry_prompt=template)
    task, reason, detail, candidate = messages[2]["content"].split("|")
    assert (task, reason, candidate) == (NAMES[0], "mismatch", "def alternating_digits(n):\n    return 'wrong'\n")
    assert re.fullmatch(r"input 0: expected .*, found 'wrong'", detail)


def test_feedback_on_an_empty_answer_is_one_message(tmp_path) -> None:
    """Servers refuse a message without text."""
    messages, outcome = conversation(tmp_path, "")
    assert [message["role"] for message in messages] == ["user"]
    assert "\n\nYour answer was checked and did not pass: empty." in messages[0]["content"]
    assert outcome == [("pass", 2)]


def test_a_template_that_cannot_be_rendered_is_refused_before_any_call(tmp_path) -> None:
    model = Model(lambda *_: None)
    with (
        serve(script=model) as server,
        pytest.raises(StudyError, match=r"retry_prompt: expected .*`reason` and `detail`, found 'nope'"),
    ):
        stages.run(study(server.url, stack={"retry": "with-feedback", "retry_prompt": "{{ nope }}"}), tmp_path / "s", limit=1)
    assert model.bodies == []


def test_a_replay_answers_the_conversation_from_its_recording(tmp_path) -> None:
    """Both attempts are recorded under keys of their own; the replay makes no call and comes to the same outcomes."""
    conditions = [*LIVE, {"name": "replay", "kind": "replay", "source": {"condition": "live"}}]
    wrong = {NAMES[0]: (0,), NAMES[1]: (0, 1)}
    model = Model(lambda task, before: WIRE.answer(WRONG) if before in wrong.get(task.id, ()) else None)
    with serve(script=model) as server:
        plan = study(server.url, stack={"retry": "with-feedback"}, conditions=conditions, limits={"concurrency": 1})
        stages.run(plan, tmp_path / "s", limit=3, analysed=False)
    query = "select outcome, reason, attempts from outcomes where condition = '{}' and replicate = 0 order by position"
    live, replay = (stages.rows(tmp_path / "s", query.format(name)) for name in ("live", "replay"))
    assert live == replay == [("pass", "pass", 2), ("fail", "missing-entry-point", 2), ("pass", "pass", 1)]
    # Live asks three tasks in two replicates, and twice more in replicate 0.
    assert len(model.bodies) == 8
    assert stages.rows(tmp_path / "s", "select count(*) from calls where condition = 'replay'") == [(0,)]


def test_another_verdict_on_the_first_answer_asks_anew_after_a_kill(tmp_path) -> None:
    """The journal holds the answer to other feedback; it is not taken for the answer to this."""
    model = Model(lambda _, before: WIRE.answer(WRONG, answer_id=f"w{before}") if before == 0 else None)
    with serve(script=model) as server:
        plan = study(server.url, stack={"retry": "with-feedback"}, replicates=1)
        with stages.opened(plan, tmp_path / "s", limit=1) as shop:
            shard = measured_shards(plan, 1)[0]
            measure_shard(shop, shard)
            names = list(shop.study_store.journal(shard.name).answers())
    assert re.fullmatch(rf"{NAMES[0]}#0/0", names[0])
    assert re.fullmatch(rf"{NAMES[0]}#1@[0-9a-f]{{12}}/0", names[1])


@pytest.mark.parametrize("retry", ["with-feedback", "resample"])
@pytest.mark.parametrize(
    ("second", "made"), [(Check(Outcome.FAIL, Reason.EXCEPTION, "odd"), 2), (Check(Outcome.PASS, Reason.PASS), 1)]
)
def test_a_second_answer_that_is_of_no_use_after_a_kill_keeps_its_rows(tmp_path, monkeypatch, retry, second, made) -> None:
    """The first candidate comes to another end when it is verified again: what was paid for stays in the ledger, and is told."""
    model = Model(lambda _, before: WIRE.answer(WRONG if before == 0 else right(TASKS[NAMES[0]]), answer_id=f"id-{before}"))
    conditions = [*LIVE, {"name": "replay", "kind": "replay", "source": {"condition": "live"}}]
    honest, ends = Verifier.check, iter([Check(Outcome.FAIL, Reason.MISMATCH), *[second] * 9])

    def check(verifier: Verifier, task: Task, reference: Any, candidate: str, *rest: Any) -> Future[Check]:
        if "'wrong'" not in candidate:
            return honest(verifier, task, reference, candidate, *rest)
        future: Future[Check] = Future()
        future.set_result(next(ends))
        return future

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with serve(script=model) as server:
        plan = study(server.url, stack={"retry": retry}, conditions=conditions, replicates=1)
        monkeypatch.setattr(Verifier, "check", check)
        with monkeypatch.context() as patch:
            patch.setattr("tasks.shard.seal", killed)
            with pytest.raises(KeyboardInterrupt):
                stages.run(plan, tmp_path / "s", limit=1)
        stages.run(plan, tmp_path / "s", limit=1)
    outcomes = stages.rows(tmp_path / "s", "select outcome, attempts from outcomes order by condition")
    assert outcomes == [("pass", made)] * 2
    asked_anew = retry == "with-feedback" and made == 2
    ids = stages.rows(tmp_path / "s", "select attempt, response_id from calls order by all")
    assert ids == [(0, "id-0"), (1, "id-1"), *([(1, "id-2")] if asked_anew else [])]
    assert len(model.bodies) == len(ids)
    unused = 0 if (retry, made) == ("resample", 2) else 1
    found = stages.rows(tmp_path / "s", "select value from checks where \"check\" = 'answers_unused'")
    assert found == [(1.0,)] * unused
    requests = stages.rows(tmp_path / "s", "select request from calls order by response_id")
    assert [json.loads(text)["body"]["messages"] for (text,) in requests] == [body["messages"] for _, body in model.bodies]
    assert stages.rows(tmp_path / "s", "select calls, sendings from costs") == [(len(ids), len(ids))]
    side = find_side(tmp_path / "s", "small/a/live")
    assert [(row.attempt, row.response.response_id) for row in side.rows] == [
        (0, "id-0"),
        *([(1, ids[-1][1])] if made == 2 else []),
    ]


def test_a_second_request_that_the_server_refused_is_not_asked_again(tmp_path) -> None:
    """Its call is named by what it asks, and is found all the same."""
    refused = WIRE.error(400, "invalid_request_error")
    model = Model(lambda _, before: WIRE.answer(WRONG) if before == 0 else refused)
    with serve(script=model) as server:
        plan = study(server.url, stack={"retry": "with-feedback"}, replicates=1)
        stages.run(plan, tmp_path / "s", limit=1, analysed=False)
        with stages.opened(plan, tmp_path / "s", limit=1) as shop:
            assert stages.rows(tmp_path / "s", "select reason, attempts from outcomes") == [("provider", 2)]
            assert next_retry(shop.plan, shop.study_store) is None


def test_the_oracle_draws_again_and_its_true_w_says_so(tmp_path) -> None:
    stack = stages.body()["stacks"][0]
    told = Study.model_validate(stages.body(stacks=[stack | {"retry": "with-feedback"}], conditions=LIVE))
    plain = Study.model_validate(stages.body(conditions=LIVE))
    found = []
    for number, one in enumerate((told, plain)):
        stages.run(one, tmp_path / str(number))
        outcomes = stages.rows(tmp_path / str(number), "select outcome, attempts from outcomes order by position, replicate")
        truth = stages.rows(tmp_path / str(number), "select value from estimates where estimate = 'w_true'")
        found.append((outcomes, truth))
    assert found[0] == found[1]
    assert any(attempts == 2 for _, attempts in found[0][0])
