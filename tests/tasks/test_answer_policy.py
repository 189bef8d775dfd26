"""Answers that are not complete: what the policy makes of them, when too many stop a run, what judges' become; over real HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from evalnoise.store.store import Store
from schemas.errors import BlockedError, ExitCode, ProviderError, ShareError, UnfinishedShardError
from schemas.records import Task
from schemas.study import Study
from tasks.plan import measured_shards
from tasks.shard import measure_shard
from tests.support import stages
from tests.support.odd_model import LIVE, NAMES, TASKS, WIRE, Model, first_is, right, study
from tests.wire.server import Received, Reply, serve

CUT = "```python\ndef alternating_digits(n):\n    return ("


@pytest.fixture(autouse=True)
def key(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")


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
        stages.run(study(server.url, stack={"responses": policy}, replicates=1), tmp_path / "s", limit=len(REPLIES), analysed=False)
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
        stages.run(study(server.url, conditions=conditions), tmp_path / "s", limit=2, analysed=False)
    query = "select condition, outcome, reason, response_class from outcomes where position = 0 and replicate = 0 order by 1"
    assert stages.rows(tmp_path / "s", query) == [("again", "fail", "refusal", ""), ("live", "fail", "refusal", "refusal")]


def test_a_replay_has_the_classes_of_its_source_and_stops_for_none_of_them(tmp_path) -> None:
    conditions = [*LIVE, {"name": "replay", "kind": "replay", "source": {"condition": "live"}}]
    odd = {NAMES[0]: WHOLE_CUT, NAMES[1]: REFUSED, NAMES[2]: WIRE.error(400, "invalid_request_error")}
    with serve(script=Model(lambda task, _: odd.get(task.id))) as server:
        stages.run(study(server.url, conditions=conditions), tmp_path / "s", limit=4, analysed=False)
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
        stages.run(
            study(server.url, conditions=JUDGED, judge=judge(server.url, **changes)), tmp_path / "s", limit=1, analysed=False
        )
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
