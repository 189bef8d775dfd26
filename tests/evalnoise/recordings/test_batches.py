"""Batches of OpenAI and Anthropic: joined by id over files in any order, with the keys of live requests; nothing is lost unsaid."""

from __future__ import annotations

import json
from itertools import permutations

import pytest

from evalnoise.providers.base import CallContext
from evalnoise.providers.make import request_maker
from evalnoise.recordings.importing import Form, read_files
from schemas.errors import DataError
from schemas.provider import AnthropicProvider, OpenAIProvider
from schemas.records import Task, TaskKind
from tests.support.recorded import lines


def refused(form, paths, **options) -> DataError:
    with pytest.raises(DataError) as caught:
        read_files(form, paths, **options)
    return caught.value


CHAT = "/v1/chat/completions"


def asked(custom_id, question="q", url=CHAT, **body):
    body = {"model": "gpt-x", "messages": [{"role": "user", "content": question}], "max_tokens": 9, **body}
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": body}


def answered(custom_id, text, *, finish="stop", status=200, **message):
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    body = {
        "id": f"chatcmpl-{custom_id}", "object": "chat.completion", "model": "gpt-x-2026", "choices": [choice],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2}, "system_fingerprint": "fp",
    }  # fmt: skip
    return {
        "id": "b", "custom_id": custom_id, "error": None, "response": {"status_code": status, "request_id": "req-1", "body": body},
    }  # fmt: skip


def expired(custom_id):
    return {"id": "b", "custom_id": custom_id, "response": None, "error": {"code": "batch_expired", "message": "too late"}}


def failed(custom_id, status=400, **error):
    return {"id": "b", "custom_id": custom_id, "error": None, "response": {
        "status_code": status, "request_id": "req-2", "body": {"error": {"message": "no", **error}},
    }}  # fmt: skip


INPUT = [asked("H/0#0"), asked("H/0#1"), asked("H/1#0", "other"), asked("H/1#1", "other"), asked("H/2#0"), asked("H/2#1")]
OUTPUT = [answered("H/1#0", "c"), answered("H/0#1", "b"), answered("H/2#0", None, finish="length"), answered("H/0#0", "a")]
ERRORS = [failed("H/2#1", code="content_filter"), expired("H/1#1")]


def batch(tmp_path, *groups):
    return [lines(tmp_path / f"{number}.jsonl", group) for number, group in enumerate(groups)]


def test_a_batch_is_joined_by_id_from_all_its_files_in_any_order(tmp_path):
    """Hard input 33."""
    paths = batch(tmp_path, INPUT, OUTPUT, ERRORS)
    kept = None
    for order in permutations(paths):
        found = read_files(Form.OPENAI_BATCH, list(order))
        told = [(r.task_id, r.replicate, r.attempt, r.response.text, r.response.response_class.value) for r in found.rows]
        assert told == [
            ("H/0", 0, 0, "a", "complete"),
            ("H/0", 1, 0, "b", "complete"),
            ("H/1", 0, 0, "c", "complete"),
            ("H/1", 1, 0, "", "infrastructure"),
            ("H/2", 0, 0, "", "truncated"),
            ("H/2", 1, 0, "", "filtered"),
        ]
        assert kept in (None, found.rows)
        kept = found.rows
    lost = kept[3].response
    assert "batch_expired" in lost.error
    assert lost.final
    whole = kept[0].response
    assert (whole.response_id, whole.served_model, whole.fingerprint, whole.request_id) == (
        "chatcmpl-H/0#0", "gpt-x-2026", "fp", "req-1",
    )  # fmt: skip
    assert (whole.input_tokens, whole.output_tokens, json.loads(whole.raw)["id"]) == (5, 2, "chatcmpl-H/0#0")


def test_a_batchs_requests_have_the_keys_of_live_ones(tmp_path):
    found = read_files(Form.OPENAI_BATCH, batch(tmp_path, INPUT[:1], OUTPUT[3:]))
    make = request_maker(OpenAIProvider(name="openai"), model="gpt-x", max_tokens=9)
    context = CallContext(Task("H/0", TaskKind.FUNCTION, "q", "", "f"), "s", "c", 0, 0)
    assert found.rows[0].request_key == make("q", context).key()
    responses = read_files(
        Form.OPENAI_BATCH,
        batch(tmp_path, [
            {"custom_id": "H/0", "url": "/v1/responses", "body": {
                "model": "gpt-x", "input": [{"role": "user", "content": "q"}], "max_output_tokens": 9, "store": False,
            }},
            {"custom_id": "H/0", "error": None, "response": {"status_code": 200, "request_id": "r", "body": {
                "object": "response", "status": "completed", "id": "resp", "output": [
                    {"type": "message", "content": [{"type": "output_text", "text": "hello"}]}
                ],
            }}},
        ]),
    )  # fmt: skip
    make = request_maker(OpenAIProvider(name="openai", api="responses"), model="gpt-x", max_tokens=9)
    assert (responses.rows[0].request_key, responses.rows[0].response.text) == (make("q", context).key(), "hello")


def test_missing_ids_are_listed_or_left_out_by_name(tmp_path):
    """Hard input 33."""
    many = [asked(f"t{n}#0") for n in range(12)]
    paths = batch(tmp_path, [*INPUT, *many], OUTPUT, ERRORS)
    error = refused(Form.OPENAI_BATCH, paths)
    assert error.found == "none for 12: t0#0, t1#0, t2#0, t3#0, t4#0, t5#0, t6#0, t7#0, t8#0, t9#0 and 2 more"
    assert "file of errors" in error.remedy
    found = read_files(Form.OPENAI_BATCH, paths, allow_missing=True)
    assert (len(found.rows), found.missing) == (6, tuple(f"t{n}#0" for n in range(12)))


def test_without_the_input_nobody_knows_what_was_asked(tmp_path):
    found = read_files(Form.OPENAI_BATCH, batch(tmp_path, OUTPUT))
    assert {row.request_key for row in found.rows} == {""}
    assert [(row.task_id, row.replicate) for row in found.rows] == [("H/1", 0), ("H/0", 1), ("H/2", 0), ("H/0", 0)]


@pytest.mark.parametrize(
    ("groups", "where", "said"),
    [
        ((INPUT, [*OUTPUT, OUTPUT[0]], ERRORS), "1.jsonl, line 5", "H/1#0 again"),
        ((INPUT, OUTPUT, [*ERRORS, expired("H/0#0")]), "2.jsonl, line 3", "H/0#0 again"),
        ((INPUT, [*OUTPUT, answered("x", "y")], ERRORS), "1.jsonl, line 5", "found x"),
        ((INPUT, [{"custom_id": "H/0#0"}]), "1.jsonl, line 1", "the fields custom_id"),
        ((INPUT, [{"custom_id": "H/0#0", "response": None, "error": None}]), None, "found none for 5"),
        (([{"body": {}}],), "0.jsonl, line 1", "no such field"),
        (([asked("a", url="/v1/embeddings")], [answered("a", "x")]), "0.jsonl, line 1", "/v1/embeddings"),
        (([asked("a", model=None)], [answered("a", "x")]), "0.jsonl, line 1", "None"),
        (([asked("a")], [{"custom_id": "a", "response": {"status_code": "200", "body": {}}}]), "1.jsonl, line 1", "status_code"),
        (([asked("a")], [{"custom_id": "a", "response": None, "error": None}]), "1.jsonl, line 1", "found None"),
    ],
)
def test_bad_lines_of_batches_are_named(tmp_path, groups, where, said):
    error = refused(Form.OPENAI_BATCH, batch(tmp_path, *groups))
    assert said in str(error)
    if where:
        assert error.where.endswith(where)


def test_a_map_names_the_tasks_of_restricted_ids(tmp_path):
    def ask(custom_id, question):
        params = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": question}]}
        return {"custom_id": custom_id, "params": params}

    def result(custom_id, kind, **more):
        return {"custom_id": custom_id, "result": {"type": kind, **more}}

    message = {
        "id": "msg", "type": "message", "model": "claude-1", "stop_reason": "end_turn", "usage": {"input_tokens": 3},
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}],
    }  # fmt: skip
    refusal = {**message, "stop_reason": "refusal", "content": []}
    results = [
        result("f", "expired"),
        result("a", "succeeded", message=message),
        result("c", "errored", error={"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}),
        result("b", "succeeded", message=refusal),
        result("e", "canceled"),
    ]
    names = [
        {"custom_id": name, "task_id": f"HumanEval/{number // 2}", "replicate": number % 2} for number, name in enumerate("abcef")
    ]
    requests = [ask(name, f"q{number // 2}") for number, name in enumerate("abcef")]
    for order in permutations(batch(tmp_path, results, names, requests)):
        found = read_files(Form.ANTHROPIC_BATCH, list(order))
        assert [(r.task_id, r.replicate, r.response.text, r.response.response_class.value) for r in found.rows] == [
            ("HumanEval/0", 0, "hi", "complete"),
            ("HumanEval/0", 1, "", "refusal"),
            ("HumanEval/1", 0, "", "infrastructure"),
            ("HumanEval/1", 1, "", "infrastructure"),
            ("HumanEval/2", 0, "", "infrastructure"),
        ]
    first = found.rows[0]
    make = request_maker(AnthropicProvider(name="anthropic"), model="claude", max_tokens=9)
    assert first.request_key == make("q0", CallContext(Task("x", TaskKind.FUNCTION, "", "", "f"), "s", "c", 0, 0)).key()
    assert (first.response.reasoning, first.response.served_model) == ("hm", "claude-1")
    alone = read_files(Form.ANTHROPIC_BATCH, batch(tmp_path, results))
    assert [row.task_id for row in alone.rows] == ["f", "a", "c", "b", "e"]
    short = batch(tmp_path, results, names[:2])
    assert refused(Form.ANTHROPIC_BATCH, short).found == "f"
    odd = batch(tmp_path, [result("a", "succeeded", message="hi")])
    assert refused(Form.ANTHROPIC_BATCH, odd).where.endswith("0.jsonl, line 1")
