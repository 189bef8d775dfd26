"""Recordings: what an import refuses, how occurrences are paired, and that a miss is an error that says what differs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import sys
from dataclasses import replace

import pytest

from evalnoise.providers.base import CallContext
from evalnoise.providers.make import make_provider
from evalnoise.providers.recording import Recording, differing_paths
from schemas.errors import DataError, ReplayMissError, StudyError
from schemas.provider import AnthropicProvider, OpenAIProvider, RecordingProvider
from schemas.records import ResponseClass, Task, TaskKind

A, B = (Task(name, TaskKind.OUTPUT, "?", "1", "f") for name in ("a", "b"))
CONTEXT = CallContext(A, "s", "live", 0, 0)


def write(tmp_path, rows, *, tail=""):
    path = tmp_path / "generations.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + tail)
    return path


def row(task, *texts, **more):
    return {"task_id": task, "generations": list(texts), **more}


ROWS = [row("a", "a0", "a1", "a2", passed=[True, False, True]), row("b", "b0", "b1", "b2")]


def load(path, ids=("a", "b"), replicates=1, **options):
    spec = RecordingProvider(name="recording", path=str(path), **options)
    return spec, Recording.from_generations_file(spec, list(ids), replicates=replicates)


def ask(spec, recording, context=CONTEXT, prompt="p"):
    provider = make_provider(spec, model="m", max_tokens=9, retry="none", recording=recording)
    response = asyncio.run(provider.send(provider.request(prompt, context), context))
    return provider.occurrence(context), response


def test_what_a_file_holds(tmp_path):
    path = write(tmp_path, ROWS)
    _, recording = load(path)
    data = path.read_bytes()
    assert (recording.occurrences, recording.order, recording.size) == (3, "unknown", len(data))
    assert recording.sha256 == hashlib.sha256(data).hexdigest()
    assert load(path, order="time")[1].order == "time"
    assert load(path, sha256=recording.sha256.upper())[1].sha256 == recording.sha256


def test_pairing_occurrence_gives_replicate_r_the_occurrence_r(tmp_path):
    spec, recording = load(write(tmp_path, ROWS), replicates=3)
    got = [ask(spec, recording, replace(CONTEXT, task=t, replicate=r)) for t in (A, B) for r in range(3)]
    assert [(n, r.text) for n, r in got] == [(0, "a0"), (1, "a1"), (2, "a2"), (0, "b0"), (1, "b1"), (2, "b2")]
    assert {(r.response_class, r.cost_usd, r.input_tokens) for _, r in got} == {(ResponseClass.COMPLETE, 0.0, None)}


def test_pairing_fixed_gives_every_replicate_the_same(tmp_path):
    spec, recording = load(write(tmp_path, ROWS), pairing="fixed", occurrence=1, replicates=50)
    assert {(n, r.text) for n, r in (ask(spec, recording, replace(CONTEXT, replicate=r)) for r in range(50))} == {(1, "a1")}


def test_the_request_is_the_task_alone(tmp_path):
    spec, recording = load(write(tmp_path, ROWS))
    provider = make_provider(spec, model="m", max_tokens=9, retry="none", recording=recording)
    request = provider.request("any prompt", CONTEXT)
    assert (request.provider, request.model, dict(request.body)) == ("recording", "m", {"task": "a"})
    assert provider.request("another", replace(CONTEXT, replicate=4)).key() == request.key()
    assert provider.request("any", replace(CONTEXT, task=B)).key() != request.key()
    assert (provider.name, provider.journalled) == ("recording", False)


def test_lone_surrogates_and_odd_task_ids_survive(tmp_path):
    spec, recording = load(write(tmp_path, [row("x/\ud835 y", "\ud835")]), ids=["x/\ud835 y"])
    context = replace(CONTEXT, task=replace(A, id="x/\ud835 y"))
    assert ask(spec, recording, context)[1].text == "\ud835"


def test_an_empty_text_is_its_own_class(tmp_path):
    spec, recording = load(write(tmp_path, [row("a", " ")]), ids=["a"])
    assert ask(spec, recording)[1].response_class is ResponseClass.EMPTY


def test_tasks_that_are_not_asked_for_are_left_out(tmp_path):
    _, recording = load(write(tmp_path, ROWS), ids=["b"])
    assert {task for task, _ in recording.responses} == {"b"}


def failure(path, **options):
    with pytest.raises(DataError) as caught:
        load(path, **options)
    return caught.value


def test_a_file_that_is_not_there_says_where_one_can_be_had(tmp_path):
    error = failure(tmp_path / "none.jsonl")
    assert error.found == "No such file or directory"
    assert "https://github.com/crux-eval" in error.remedy


@pytest.mark.parametrize(
    ("rows", "tail", "where", "found"),
    [
        (ROWS, '{"task_id": "c", "gen', ", line 3", "text that is not JSON, cut off before its end"),
        (ROWS, "nonsense\n", ", line 3", "text that is not JSON"),
        (ROWS, "[" * 100_000, ", line 3", "text that is not JSON, cut off before its end"),
        (ROWS, "[]\n", ", line 3", "a list"),
        ([*ROWS, row("c", "c0")], "", ", line 3", "1 for c"),
        ([*ROWS, ROWS[0]], "", ", line 3", "a again (first on line 1)"),
        ([row("a")], "", ", line 1", "[]"),
        ([row("a", 3)], "", ", line 1", "[3]"),
        ([{"task_id": 1, "generations": ["x"]}], "", ", line 1", "1"),
        ([{"task_id": "a"}], "", ", line 1", "None"),
        ([row("a", "x", passed=[True, False])], "", ", line 1", "[True, False]"),
        ([], "", "", "an empty file"),
        ([], "\n \n", "", "an empty file"),
    ],
)
def test_damage_is_named_by_line(tmp_path, rows, tail, where, found):
    path = write(tmp_path, rows, tail=tail)
    error = failure(path)
    assert (error.where, error.found) == (f"{path}{where}", found)


def test_a_whole_last_line_without_its_newline_is_fine(tmp_path):
    _, recording = load(write(tmp_path, ROWS, tail=json.dumps(row("c", "1", "2", "3"))))
    assert recording.occurrences == 3


def test_another_digest_is_refused(tmp_path):
    path = write(tmp_path, ROWS)
    error = failure(path, sha256="0" * 64)
    assert error.found == hashlib.sha256(path.read_bytes()).hexdigest()


def test_missing_tasks_are_named(tmp_path):
    error = failure(write(tmp_path, ROWS), ids=["a", *(f"m{n}" for n in range(7)), "b"])
    assert error.found == "none for m0, m1, m2, m3, m4 and 2 more"


@pytest.mark.parametrize("options", [{"replicates": 4}, {"pairing": "fixed", "occurrence": 3}])
def test_too_few_occurrences_are_refused(tmp_path, options):
    error = failure(write(tmp_path, ROWS), **options)
    assert (error.expected.split(" gen")[0], error.found) == ("at least 4", "3")


def test_an_imported_recording_has_no_second_attempts(tmp_path):
    spec, recording = load(write(tmp_path, ROWS))
    with pytest.raises(StudyError, match="no second attempts"):
        make_provider(spec, model="m", max_tokens=9, retry="resample", recording=recording)
    with pytest.raises(ReplayMissError, match="attempt 1"):
        ask(spec, recording, replace(CONTEXT, attempt=1))


def test_a_replicate_beyond_the_recording_misses(tmp_path):
    spec, recording = load(write(tmp_path, ROWS))
    with pytest.raises(ReplayMissError) as caught:
        ask(spec, recording, replace(CONTEXT, replicate=3))
    assert caught.value.found == "occurrences [0, 1, 2]"


def test_an_unknown_task_misses(tmp_path):
    spec, recording = load(write(tmp_path, ROWS))
    with pytest.raises(ReplayMissError, match="no generations for this task"):
        ask(spec, recording, replace(CONTEXT, task=replace(A, id="zz")))


# Recordings of a live condition.


LIVE = OpenAIProvider(name="openai", temperature=0.7, base_url="http://127.0.0.1:9/v1")


def live_requests(spec=LIVE, **options):
    settings = {"model": "m", "max_tokens": 9, "retry": "none", "recording": Recording.from_rows([])} | options
    return make_provider(spec, **settings)


def live_row(task, attempt, text, prompt="p", spec=LIVE, **more):
    request = live_requests(spec).request(prompt, replace(CONTEXT, task=task))
    return {
        "task_id": task.id,
        "attempt": attempt,
        "request_key": request.key(),
        "request": request.canonical().decode(),
        "text": text,
        "response_class": "complete",
        **more,
    }


def test_a_live_condition_is_replayed_attempt_by_attempt_in_every_replicate(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    recording = Recording.from_rows([live_row(A, 1, "second"), live_row(A, 0, "first"), live_row(B, 0, "other")])
    got = [
        ask(LIVE, recording, replace(CONTEXT, task=t, attempt=n, replicate=r))
        for t, n in ((A, 0), (A, 1), (B, 0))
        for r in range(3)
    ]
    assert [(n, r.text) for n, r in got] == [(0, "first")] * 3 + [(1, "second")] * 3 + [(0, "other")] * 3
    assert not live_requests(retry="resample").journalled


def test_a_replay_needs_neither_key_nor_network_nor_sdk(monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a replay opened a connection"))
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    for spec in (LIVE, AnthropicProvider(name="anthropic", temperature=0.0)):
        recording = Recording.from_rows([live_row(A, 0, "kept", spec=spec)])
        assert ask(spec, recording)[1].text == "kept"
        with pytest.raises(ReplayMissError):
            ask(spec, recording, prompt="another")


def test_what_was_kept_of_an_answer_comes_back():
    more = {
        "text_escaped": True,
        "response_class": "truncated",
        "finish_reason": "length",
        "response_id": "r1",
        "served_model": "sm",
        "fingerprint": "fp",
        "input_tokens": 3,
        "output_tokens": None,
        "response": "{}",
    }
    _, response = ask(LIVE, Recording.from_rows([live_row(A, 0, "\\ud835\\\\n", **more)]))
    assert response.text == "\ud835\\n"
    assert response.response_class is ResponseClass.TRUNCATED
    assert (response.finish_reason, response.response_id, response.served_model, response.fingerprint) == (
        "length",
        "r1",
        "sm",
        "fp",
    )
    assert (response.input_tokens, response.output_tokens, response.raw, response.cost_usd) == (3, None, "{}", 0.0)


def test_tasks_that_ask_the_same_question_keep_their_own_answers():
    recording = Recording.from_rows([live_row(A, 0, "for a"), live_row(B, 0, "for b")])
    assert live_row(A, 0, "")["request_key"] == live_row(B, 0, "")["request_key"]
    assert [ask(LIVE, recording, replace(CONTEXT, task=t))[1].text for t in (A, B)] == ["for a", "for b"]


def test_two_answers_to_one_attempt_are_refused():
    with pytest.raises(DataError, match="found two"):
        Recording.from_rows([live_row(A, 0, "x"), live_row(A, 0, "y")])


def test_the_digest_is_of_the_contents_in_any_order():
    rows = [live_row(A, 0, "x"), live_row(B, 0, "y")]
    first, second = Recording.from_rows(rows), Recording.from_rows(rows[::-1])
    assert (first.sha256, first.size) == (second.sha256, second.size)
    assert Recording.from_rows([rows[0] | {"text": "z"}, rows[1]]).sha256 != first.sha256


def test_a_miss_names_the_nearest_request_and_the_paths_that_differ():
    recording = Recording.from_rows([live_row(A, 0, "x"), live_row(A, 0, "y", prompt="quite another")])
    warmer = LIVE.model_copy(update={"temperature": 0.9, "extra": {"stop": ["x"]}})
    with pytest.raises(ReplayMissError) as caught:
        ask(warmer, recording)
    nearest = live_row(A, 0, "x")["request_key"]
    assert caught.value.found == f"none; nearest is request {nearest[:12]}, which differs at $.body.stop, $.body.temperature"
    assert "never calls live" in caught.value.remedy


def test_a_miss_without_recorded_requests_still_names_the_nearest():
    bare = {k: v for k, v in live_row(A, 0, "x").items() if k != "request"}
    with pytest.raises(ReplayMissError, match=f"nearest is request {bare['request_key'][:12]}, whose fields were not recorded"):
        ask(LIVE, Recording.from_rows([bare]), prompt="other")
    with pytest.raises(ReplayMissError, match="an empty recording"):
        ask(LIVE, Recording.from_rows([]))


def test_a_retry_that_was_not_recorded_misses():
    with pytest.raises(ReplayMissError, match=r"expected occurrence 1 .* found occurrences \[0\]"):
        ask(LIVE, Recording.from_rows([live_row(A, 0, "x")]), replace(CONTEXT, attempt=1))


@pytest.mark.parametrize(
    ("left", "right", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, ["$.a"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["$.a[1]"]),
        ({"a": [1]}, {"a": [1, 3]}, ["$.a"]),
        ({"a": 1, "c": 0}, {"b": 1, "c": 0}, ["$.a", "$.b"]),
        ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": "1"}]}}, ["$.a.b[0].c"]),
        ({"a": None}, {}, ["$.a"]),
    ],
)
def test_differing_paths(left, right, paths):
    assert differing_paths(left, right) == paths


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["codellama-7b_temp0.2", "gpt-3.5-turbo-0613_temp0.8"])
def test_public_recordings_load_whole(shared, name):
    folder = shared / "data" / "cruxeval"
    ids = [json.loads(line)["id"] for line in (folder / "tasks.jsonl").read_text().splitlines()]
    spec, recording = load(folder / f"{name}_output.jsonl", ids=ids, replicates=10)
    assert (len(recording.responses), recording.occurrences) == (800, 10)
    first = json.loads((folder / f"{name}_output.jsonl").read_text().splitlines()[0])
    context = replace(CONTEXT, task=replace(A, id=first["task_id"]))
    texts = [ask(spec, recording, replace(context, replicate=r))[1].text for r in range(10)]
    assert texts == first["generations"]
