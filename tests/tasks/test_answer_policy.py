"""Answers that are not complete: what the policy makes of them, when too many stop a run, what judges' become; over real HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.store.store import Store
from schemas.errors import BlockedError, ExitCode, ProviderError, ShareError, StudyError, UnfinishedShardError
from schemas.records import Check, Outcome, Reason, Task
from schemas.study import StarterBenchmark, Study
from tasks.plan import measured_shards
from tasks.retry import next_retry
from tasks.selection import find_side
from tasks.shard import measure_shard
from tests.support import stages
from tests.wire.dialects import OpenAIDialect
from tests.wire.server import Received, Reply, serve
from verifiers.verify import Verifier

WIRE = OpenAIDialect()
TASKS = {task.id: task for task in load_benchmark(StarterBenchmark(name="starter")).tasks}
NAMES = list(TASKS)
NEVER = {"truncated": 1.0, "refusal": 1.0, "filtered": 1.0, "empty": 1.0, "malformed": 1.0}
LIVE = [{"name": "live", "kind": "live"}]
CUT = "```python\ndef alternating_digits(n):\n    return ("


def study(url: str, *, stack: dict[str, Any] | None = None, **changes: Any) -> Study:
    provider = {"name": "openai", "base_url": f"{url}/v1", "max_retries": 0, "timeout": 5.0, "temperature": 0.7}
    plain = {"name": "a", "model": "m", "provider": provider, "verifier": stages.PROCESS, "max_tokens": 300}
    body = {"stacks": [plain | (stack or {})], "conditions": LIVE, "replicates": 2, "limits": {"max_share": NEVER}}
    return Study.model_validate(stages.body(**(body | changes)))


@pytest.fixture(autouse=True)
def key(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")


def right(task: Task) -> str:
    return f"```python\n{task.reference}\n```"


class Model:
    """Answers by a function of the task and of how many requests for it came before; keeps what was received."""

    def __init__(self, odd: Callable[[Task, int], Reply | None]) -> None:
        self.odd = odd
        self.bodies: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, received: Received) -> Reply:
        prompt = received.body["messages"][0]["content"]
        task = next(task for task in TASKS.values() if task.prompt in prompt)
        before = sum(name == task.id for name, _ in self.bodies)
        self.bodies.append((task.id, received.body))
        return self.odd(task, before) or WIRE.answer(right(task), answer_id=f"id-{len(self.bodies)}")


def first_is(reply: Reply) -> Model:
    return Model(lambda task, _: reply if task.id == NAMES[0] else None)


REFUSED = WIRE.answer(finish="refusal", refusal="I will not")
FILTERED = WIRE.answer(right(TASKS[NAMES[0]]), finish="content_filter")
WHOLE_CUT = WIRE.answer(right(TASKS[NAMES[0]]) + "\nand so", finish="length")
NO_TEXT_CUT = WIRE.answer(None, finish="length", reasoning="Let me think")


TORN = Reply(body=b'{"id": "x", "choi')
REPLIES = (
    WHOLE_CUT, WIRE.answer(CUT, finish="length"), NO_TEXT_CUT, WIRE.answer("<think>def f"), REFUSED, FILTERED, WIRE.answer(""),
    WIRE.answer(" \n"), WIRE.error(400, "invalid_request_error"), TORN,
)  # fmt: skip
CLASSES = [*["truncated"] * 4, "refusal", "filtered", "empty", "empty", "infrastructure", "malformed"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (
            {},
            [
                ("pass", "pass"), ("fail", "syntax-error"), ("fail", "truncated"), ("fail", "truncated"), ("fail", "refusal"),
                ("fail", "filtered"), ("fail", "empty"), ("fail", "empty"), ("unmeasured", "provider"), ("unmeasured", "malformed"),
            ],
        ),
        (
            {"truncated": "fail", "refusal": "verify", "filtered": "verify", "infrastructure": "fail", "malformed": "fail"},
            [
                *[("fail", "truncated")] * 4, ("fail", "refusal"), ("pass", "pass"), ("fail", "empty"), ("fail", "empty"),
                ("fail", "provider"), ("fail", "malformed"),
            ],
        ),
        (
            {"truncated": "unmeasured", "refusal": "unmeasured", "filtered": "unmeasured", "empty": "unmeasured"},
            [
                *[("unmeasured", "truncated")] * 4, ("unmeasured", "refusal"), ("unmeasured", "filtered"), ("unmeasured", "empty"),
                ("unmeasured", "empty"), ("unmeasured", "provider"), ("unmeasured", "malformed"),
            ],
        ),
    ],
)  # fmt: skip
def test_what_the_policy_makes_of_an_answer(tmp_path, policy, expected) -> None:
    """Hard inputs 3, 4, 11, 12 and 13: the class is kept beside the outcome, and the policy says what the outcome is."""
    # The first reply is a whole answer to the first task and not to others, so it is made for each.
    model = Model(lambda task, _: odd_reply(task, NAMES.index(task.id)))
    with serve(script=model) as server:
        stages.run(study(server.url, stack={"responses": policy}, replicates=1), tmp_path / "s", limit=len(REPLIES))
    query = "select outcome, reason, response_class, score from outcomes order by position"
    scores = {"pass": 1.0, "fail": 0.0, "unmeasured": None}
    assert stages.rows(tmp_path / "s", query) == [
        (outcome, reason, kind, scores[outcome]) for (outcome, reason), kind in zip(expected, CLASSES, strict=True)
    ]
    # One request each: an answer that is not complete is not asked for again. Its text is kept, whatever it counts as.
    assert len(model.bodies) == len(REPLIES)
    with_text = "select position from generations where text <> '' order by 1"
    assert stages.rows(tmp_path / "s", with_text) == [(0,), (1,), (3,), (5,), (7,)]


def odd_reply(task: Task, place: int) -> Reply:
    if place == REPLIES.index(FILTERED):
        return WIRE.answer(right(task), finish="content_filter")
    return REPLIES[place]


def test_the_policy_is_part_of_the_protocol_and_the_limits_are_not() -> None:
    from tasks.freeze import resolve

    plain = Study.model_validate(stages.body())
    stack = stages.body()["stacks"][0]
    other = Study.model_validate(stages.body(stacks=[stack | {"responses": {"truncated": "fail"}}]))
    larger = Study.model_validate(stages.body(limits={"max_share": {"truncated": 0.9}}))
    digests = [resolve(one, limit=2).digest for one in (plain, other, larger)]
    assert digests[0] != digests[1]
    assert digests[0] == digests[2]


def test_a_refusal_is_reverified_as_the_failure_that_it_is(tmp_path) -> None:
    conditions = [*LIVE, {"name": "again", "kind": "reverify", "source": {"condition": "live"}}]
    with serve(script=first_is(REFUSED)) as server:
        stages.run(study(server.url, conditions=conditions), tmp_path / "s", limit=2)
    query = "select condition, outcome, reason, response_class from outcomes where position = 0 and replicate = 0 order by 1"
    assert stages.rows(tmp_path / "s", query) == [("again", "fail", "refusal", ""), ("live", "fail", "refusal", "refusal")]


def test_a_replay_has_the_classes_of_its_source_and_stops_for_none_of_them(tmp_path) -> None:
    conditions = [*LIVE, {"name": "replay", "kind": "replay", "source": {"condition": "live"}}]
    odd = {NAMES[0]: WHOLE_CUT, NAMES[1]: REFUSED, NAMES[2]: WIRE.error(400, "invalid_request_error")}
    with serve(script=Model(lambda task, _: odd.get(task.id))) as server:
        stages.run(study(server.url, conditions=conditions), tmp_path / "s", limit=4)
    query = "select outcome, reason, response_class from outcomes where condition = '{}' and replicate = 1 order by position"
    live, replay = (stages.rows(tmp_path / "s", query.format(name)) for name in ("live", "replay"))
    assert live == replay
    assert [row[2] for row in live] == ["truncated", "refusal", "infrastructure", "complete"]


def test_a_malformed_answer_is_tried_in_both_tries_and_many_of_them_stop_the_run(tmp_path) -> None:
    with (
        serve(script=first_is(TORN)) as server,
        stages.opened(study(server.url), tmp_path / "s", limit=12) as shop,
    ):
        shard = measured_shards(shop.plan.study, 12)[0]
        with pytest.raises(UnfinishedShardError, match="1 of 12 cells"):
            measure_shard(shop, shard, last_chance=False)
        measure_shard(shop, shard)
        assert shop.study_store.sealed(shard.name)
    three = Model(lambda task, _: TORN if task.id in NAMES[:3] else None)
    with serve(script=three) as server, pytest.raises(ProviderError, match="3 of 12 cells"):
        stages.run(study(server.url), tmp_path / "t", limit=12)


def cut_often(every: int, of: int) -> Model:
    """So many answers of so many, by the task's place, are truncated."""
    return Model(lambda task, _: WIRE.answer(CUT, finish="length") if NAMES.index(task.id) % of < every else None)


def test_a_run_stops_where_78_of_100_answers_are_truncated(tmp_path) -> None:
    """Hard input 11: the published share stops the run after 50 answers and those in flight, not after all 196."""
    model = cut_often(7, 9)
    limits = {"concurrency": 4}
    with serve(script=model) as server:
        with pytest.raises(ShareError) as stopped:
            stages.run(study(server.url, replicates=4, limits=limits), tmp_path / "s", limit=49)
        assert 50 <= len(model.bodies) <= 60
        sent = len(model.bodies)
        # The same command again: earlier answers are counted before anything is sent.
        with pytest.raises(ShareError):
            stages.run(study(server.url, replicates=4, limits=limits), tmp_path / "s", limit=49)
        assert len(model.bodies) == sent
        raised = limits | {"max_share": {"truncated": 0.9}}
        stages.run(study(server.url, replicates=4, limits=raised), tmp_path / "s", limit=49)
    # Nothing was asked twice, and the raised limit is a warning.
    assert len(model.bodies) == 4 * 49
    said = str(stopped.value)
    assert "stack a, condition live: expected at most 20 % of the answers to be truncated (limits.max_share.truncated)" in said
    assert re.search(r"found (39|4\d) of 5\d, (7\d|80) %", said)
    assert "Raise `max_tokens`" in said
    assert isinstance(stopped.value, BlockedError)
    assert stopped.value.exit_code is ExitCode.BLOCKED
    found = stages.rows(tmp_path / "s", "select severity, blocks, sentence from checks where \"check\" = 'truncated'")
    ((severity, blocks, sentence),) = found
    assert (severity, blocks) == ("warning", False)
    assert sentence.endswith("The study allows that: limits.max_share.truncated is 0.9.")
    ((truncated, answers),) = stages.rows(tmp_path / "s", "select n_truncated, n_answers from noise_floor")
    assert (truncated, answers) == (4 * sum(place % 9 < 7 for place in range(49)), 196)


def test_sealed_answers_count_for_the_share_too(tmp_path) -> None:
    """Eleven of the first shard's 49 answers are cut, which is no reason to stop before there are 50."""
    cut = set(NAMES[:11])
    model = Model(lambda task, _: WIRE.answer(CUT, finish="length") if task.id in cut else None)
    with serve(script=model) as server:
        plan = study(server.url, limits={"concurrency": 1})
        with stages.opened(plan, tmp_path / "s", limit=49) as shop:
            measure_shard(shop, measured_shards(plan, 49)[0])
        cut.update(NAMES)
        with (
            stages.opened(plan, tmp_path / "s", limit=49) as shop,
            pytest.raises(ShareError, match="found 12 of 50, 24 %"),
        ):
            measure_shard(shop, measured_shards(plan, 49)[1])
    assert 50 <= len(model.bodies) <= 51


def test_a_share_at_its_limit_ends_with_a_warning(tmp_path) -> None:
    model = Model(lambda task, _: WIRE.answer(CUT, finish="length") if task.id == NAMES[0] else None)
    with serve(script=model) as server:
        stages.run(study(server.url, limits={}), tmp_path / "s", limit=5)
    found = stages.rows(tmp_path / "s", "select severity, blocks, sentence from checks where \"check\" = 'truncated'")
    assert found == [
        (
            "warning",
            False,
            "a, live: 2 of 10 answers ended at the token limit; raise max_tokens if that is not what you measure.",
        )
    ]


JUDGED = [*LIVE, {"name": "replay", "kind": "replay", "source": {"condition": "live"}}]


def judging(reply: Reply | Callable[[int], Reply]) -> tuple[Callable[[Received], Reply], list[str]]:
    asked: list[str] = []
    model = Model(lambda *_: None)

    def script(received: Received) -> Reply:
        if "VERDICT" not in received.body["messages"][0]["content"]:
            return model(received)
        asked.append("judge")
        return reply(len(asked)) if callable(reply) else reply

    return script, asked


def judge(url: str, repeats: int = 2, **changes: Any) -> dict[str, Any]:
    provider = {"name": "openai", "max_retries": 0, "timeout": 5.0, "base_url": f"{url}/v1"}
    return {"repeats": repeats, "conditions": [{"name": "j", "model": "m", "provider": provider, **changes}]}


SAYS_FAIL = "VERDICT: FAIL\nCONFIDENCE: 90\nBecause"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("unparsed", "truncated", "truncated", "fail", None)),
        ({"truncated": "read"}, ("fail", "", "truncated", "fail", 90.0)),
    ],
)
def test_what_a_judges_answer_becomes(tmp_path, changes, expected) -> None:
    """Hard input 4: what the text says is kept beside the verdict that it counts as."""
    script, _ = judging(WIRE.answer(SAYS_FAIL, finish="length"))
    with serve(script=script) as server:
        stages.run(study(server.url, conditions=JUDGED, judge=judge(server.url, **changes)), tmp_path / "s", limit=1)
    query = "select distinct verdict, reason, response_class, stated, confidence from verdicts"
    assert stages.rows(tmp_path / "s", query) == [expected]
    assert stages.rows(tmp_path / "s", "select distinct text from verdicts") == [(SAYS_FAIL,)]


def test_a_judge_whose_answers_are_cut_off_stops_the_run(tmp_path) -> None:
    """Hard input 11: 78 % of a published judge's answers were truncated."""
    script, asked = judging(lambda number: WIRE.answer(SAYS_FAIL, finish="length" if number % 9 < 7 else "stop"))
    with serve(script=script) as server:
        plan = study(server.url, conditions=JUDGED, judge=judge(server.url, repeats=40), limits={"concurrency": 2})
        with pytest.raises(ShareError, match=r"stack a, condition j: expected at most 20 % of the answers to be truncated"):
            stages.run(plan, tmp_path / "s", limit=4)
    assert 50 <= len(asked) <= 52
    (sealed,) = Store.open(tmp_path / "s").studies()
    assert any(name.startswith("judge~") for name in sealed.manifest.live)


WRONG = "```python\ndef alternating_digits(n):\n    return 'wrong'\n```"
RAISES = "```python\ndef alternating_digits(n):\n    raise ValueError('no idea of ' + str(type(n).__name__))\n```"


def conversation(tmp_path: Path, answer: str, **stack: Any) -> tuple[list[dict[str, str]], list[tuple[Any, ...]]]:
    """The messages of the second request for the first task, and what its cell came to."""
    model = Model(
        lambda task, before: WIRE.answer(answer, answer_id=f"odd-{before}") if (task.id, before) == (NAMES[0], 0) else None
    )
    with serve(script=model) as server:
        stages.run(study(server.url, stack={"retry": "with-feedback"} | stack, replicates=1), tmp_path / "s", limit=1)
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
        stages.run(plan, tmp_path / "s", limit=3)
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
        stages.run(plan, tmp_path / "s", limit=1)
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
