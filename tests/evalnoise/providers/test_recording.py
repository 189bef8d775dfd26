"""The provider that replays: what a study's `recording` opens, and that a replay needs neither key nor network nor SDK."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import sys
from dataclasses import replace

import pytest

from evalnoise.providers.base import CallContext
from evalnoise.providers.make import make_provider, request_maker
from evalnoise.recordings import opening
from evalnoise.recordings.opening import open_recording, pinned_still
from evalnoise.recordings.recording import Pairing, Recording
from evalnoise.recordings.row import Recorded
from evalnoise.store.recordings import RecordingFolder
from schemas.errors import (
    DataError,
    RecordingDigestError,
    RecordingFormatError,
    ReplayExhaustedError,
    ReplayMissError,
    RequestNormaliserError,
    ResponseMappingError,
    StudyError,
)
from schemas.provider import AnthropicProvider, OpenAIProvider, OracleProvider, RecordingProvider
from schemas.records import Response, ResponseClass, Task, TaskKind
from schemas.versions import REQUEST_NORMALISER, RESPONSE_MAPPING

A, B = (Task(name, TaskKind.OUTPUT, "?", "1", "f") for name in ("a", "b"))
CONTEXT = CallContext(A, "s", "live", 0, 0)


def write(tmp_path, rows, *, tail=""):
    path = tmp_path / "generations.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + tail)
    return path


def row(task, *texts, **more):
    return {"task_id": task, "generations": list(texts), **more}


ROWS = [row("a", "a0", "a1", "a2", passed=[True, False, True]), row("b", "b0", "b1", "b2")]


def load(path, **options):
    spec = RecordingProvider(name="recording", path=str(path), **options)
    return spec, open_recording(spec)


def ask(spec, recording, context=CONTEXT, prompt="p"):
    provider = make_provider(spec, model="m", max_tokens=9, retry="none", recording=recording)
    response = asyncio.run(provider.send(provider.request(prompt, context), context))
    return provider.occurrence(context), response


# Files of generations.


def test_what_a_file_holds(tmp_path):
    path = write(tmp_path, ROWS)
    _, recording = load(path)
    data = path.read_bytes()
    assert (recording.occurrences, recording.order, recording.size, recording.keyed) == (3, "unknown", len(data), False)
    assert recording.sha256 == hashlib.sha256(data).hexdigest()
    assert load(path, order="time")[1].order == "time"
    assert load(path, sha256=recording.sha256.upper())[1].sha256 == recording.sha256


def test_pairing_occurrence_gives_replicate_r_the_occurrence_r(tmp_path):
    spec, recording = load(write(tmp_path, ROWS))
    got = [ask(spec, recording, replace(CONTEXT, task=t, replicate=r)) for t in (A, B) for r in range(3)]
    assert [(n, r.text) for n, r in got] == [(0, "a0"), (1, "a1"), (2, "a2"), (0, "b0"), (1, "b1"), (2, "b2")]
    assert {(r.response_class, r.cost_usd, r.input_tokens) for _, r in got} == {(ResponseClass.COMPLETE, 0.0, None)}


def test_pairing_fixed_gives_every_replicate_the_same(tmp_path):
    spec, recording = load(write(tmp_path, ROWS), pairing="fixed", occurrence=1)
    assert {(n, r.text) for n, r in (ask(spec, recording, replace(CONTEXT, replicate=r)) for r in range(50))} == {(1, "a1")}


def test_the_request_of_a_file_is_the_task_alone(tmp_path):
    spec, recording = load(write(tmp_path, ROWS))
    provider = make_provider(spec, model="m", max_tokens=9, retry="none", recording=recording)
    request = provider.request("any prompt", CONTEXT)
    assert (request.provider, request.model, dict(request.body)) == ("recording", "m", {"task": "a"})
    assert provider.request("another", replace(CONTEXT, replicate=4)).key() == request.key()
    assert provider.request("any", replace(CONTEXT, task=B)).key() != request.key()
    assert (provider.name, provider.journalled) == ("recording", False)


def test_lone_surrogates_and_odd_task_ids_survive(tmp_path):
    """Hard input 1."""
    spec, recording = load(write(tmp_path, [row("x/\ud835 y", "\ud835")]))
    context = replace(CONTEXT, task=replace(A, id="x/\ud835 y"))
    assert ask(spec, recording, context)[1].text == "\ud835"


def test_an_empty_text_is_its_own_class(tmp_path):
    spec, recording = load(write(tmp_path, [row("a", " ")]))
    assert ask(spec, recording)[1].response_class is ResponseClass.EMPTY


def test_tasks_that_are_not_asked_for_are_left_out(tmp_path):
    spec = RecordingProvider(name="recording", path=str(write(tmp_path, ROWS)))
    assert open_recording(spec, wanted=["b"]).task_ids == {"b"}


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
    assert isinstance(error, RecordingDigestError)
    assert error.found == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_has_no_second_attempts_and_no_requests(tmp_path):
    path = write(tmp_path, ROWS)
    spec, recording = load(path)
    with pytest.raises(StudyError, match="no second attempts"):
        make_provider(spec, model="m", max_tokens=9, retry="resample", recording=recording)
    with pytest.raises(ReplayExhaustedError, match="attempt 1"):
        ask(spec, recording, replace(CONTEXT, attempt=1))
    with pytest.raises(StudyError, match=r"provider\.of: expected nothing, because nobody knows what was asked"):
        load(path, of=OpenAIProvider(name="openai"))


def test_a_replicate_beyond_the_recording_and_an_unknown_task(tmp_path):
    spec, recording = load(write(tmp_path, ROWS))
    with pytest.raises(ReplayExhaustedError, match="3 of a"):
        ask(spec, recording, replace(CONTEXT, replicate=3))
    with pytest.raises(ReplayMissError, match="no generations for this task"):
        ask(spec, recording, replace(CONTEXT, task=replace(A, id="zz")))


# Folders with requests.


LIVE = OpenAIProvider(name="openai", temperature=0.7, base_url="http://127.0.0.1:9/v1")


def live_row(task, attempt, text, *, prompt="p", spec=LIVE, replicate=0, **more):
    context = replace(CONTEXT, task=task, replicate=replicate, attempt=attempt)
    request = request_maker(spec, model="m", max_tokens=9)(prompt, context)
    response = Response(**{"text": text, "response_class": ResponseClass.COMPLETE, "cost_usd": 0.0} | more)
    position = 0 if task is A else 1
    return Recorded(task.id, replicate, attempt, response, request.key(), request.canonical().decode(), position)


def sealed(tmp_path, rows, **options):
    folder = RecordingFolder(tmp_path / "recording")
    folder.write(rows, **({"source": {"kind": "condition"}, "order": "time"} | options))
    return folder


LIVE_ROWS = [live_row(A, 0, "first"), live_row(A, 1, "second"), live_row(B, 0, "other"), live_row(A, 0, "later", replicate=1)]


def test_a_folder_is_looked_up_by_the_requests_of_the_provider_that_was_recorded(tmp_path):
    folder = sealed(tmp_path, LIVE_ROWS)
    spec, recording = load(folder.path, of=LIVE)
    assert (recording.sha256, recording.order, recording.keyed) == (folder.manifest.digest, "time", True)
    provider = make_provider(spec, model="m", max_tokens=9, retry="resample", recording=recording)
    assert provider.request("p", CONTEXT).key() == LIVE_ROWS[0].request_key
    got = [ask(spec, recording, replace(CONTEXT, task=t, attempt=n, replicate=r)) for t, n, r in ((A, 0, 0), (A, 1, 0), (A, 0, 1))]
    # The two tasks ask the same question, so all four answers are occurrences of one request.
    assert [(n, r.text) for n, r in got] == [(0, "first"), (1, "second"), (3, "later")]
    fixed, recording = load(folder.path, of=LIVE, pairing="fixed", occurrence=2)
    assert {ask(fixed, recording, replace(CONTEXT, task=t, replicate=r))[1].text for t in (A, B) for r in range(9)} == {"other"}
    with pytest.raises(StudyError, match="the very one that failed"):
        make_provider(fixed, model="m", max_tokens=9, retry="resample", recording=recording)


@pytest.mark.parametrize(
    ("change", "options", "paths"),
    [
        ({"temperature": 0.9}, {}, "$.body.temperature"),
        ({"temperature": None}, {}, "$.body.temperature"),
        ({"seed": 1}, {}, "$.body.seed"),
        ({"extra": {"stop": ["x"]}}, {}, "$.body.stop"),
        ({}, {"max_tokens": 10}, "$.body.max_tokens"),
        ({}, {"model": "other"}, "$.model"),
        ({}, {"prompt": "P"}, "$.body.messages[0].content"),
    ],
)
def test_whatever_can_change_an_answer_is_a_miss(tmp_path, change, options, paths):
    """Hard inputs 6 and 7."""
    settings = {"model": "m", "max_tokens": 9, "prompt": "p"} | options
    spec, recording = load(sealed(tmp_path, LIVE_ROWS).path, of=LIVE.model_copy(update=change))
    prompt = settings.pop("prompt")
    provider = make_provider(spec, retry="none", recording=recording, **settings)
    with pytest.raises(ReplayMissError, match="never calls live") as caught:
        asyncio.run(provider.send(provider.request(prompt, CONTEXT), CONTEXT))
    assert caught.value.found.endswith(f"which differs at {paths}")


def test_what_cannot_change_an_answer_is_none(tmp_path):
    elsewhere = LIVE.model_copy(update={"base_url": None, "timeout": 1.0, "max_retries": 0, "api_key_env": "OTHER"})
    spec, recording = load(sealed(tmp_path, LIVE_ROWS).path, of=elsewhere)
    assert ask(spec, recording)[1].text == "first"


def test_a_folder_that_knows_its_requests_must_be_told_whose_are_made(tmp_path):
    with pytest.raises(StudyError, match=r"provider\.of: expected whose requests the stack makes"):
        load(sealed(tmp_path, LIVE_ROWS).path)


def test_the_pinned_digest_is_the_manifests(tmp_path):
    folder = sealed(tmp_path, LIVE_ROWS)
    digest = folder.manifest.digest
    assert load(folder.path, of=LIVE, sha256=digest.upper())[1].sha256 == digest
    with pytest.raises(RecordingDigestError) as caught:
        load(folder.path, of=LIVE, sha256="0" * 64)
    assert caught.value.found == digest
    recording = load(folder.path, of=LIVE)[1]
    assert pinned_still(recording, digest) is recording
    with pytest.raises(RecordingDigestError, match="which the protocol pins"):
        pinned_still(recording, "0" * 64)


def test_other_rules_are_other_recordings(tmp_path, monkeypatch):
    folder = sealed(tmp_path, LIVE_ROWS)
    load(folder.path, of=LIVE)
    monkeypatch.setattr(opening, "REQUEST_NORMALISER", REQUEST_NORMALISER + 1)
    with pytest.raises(RequestNormaliserError, match=f"found version {REQUEST_NORMALISER}"):
        load(folder.path, of=LIVE)
    monkeypatch.setattr(opening, "REQUEST_NORMALISER", REQUEST_NORMALISER)
    monkeypatch.setattr(opening, "RESPONSE_MAPPING", RESPONSE_MAPPING + 1)
    with pytest.raises(ResponseMappingError, match=f"found version {RESPONSE_MAPPING}"):
        load(folder.path, of=LIVE)


def test_keys_that_are_not_used_have_no_version(tmp_path, monkeypatch):
    bare = [replace(row, request_key="", request="") for row in LIVE_ROWS if not row.attempt]
    folder = sealed(tmp_path, bare)
    assert folder.manifest.request_normaliser is None
    monkeypatch.setattr(opening, "REQUEST_NORMALISER", REQUEST_NORMALISER + 1)
    spec, recording = load(folder.path)
    assert ask(spec, recording)[1].text == "first"


def test_a_folder_that_holds_no_recording(tmp_path):
    with pytest.raises(RecordingFormatError, match="no manifest"):
        load(tmp_path)


def test_what_was_kept_of_an_answer_comes_back(tmp_path):
    more = {
        "response_class": ResponseClass.TRUNCATED, "finish_reason": "length", "refusal": "no", "response_id": "r1",
        "served_model": "sm",
        "fingerprint": "fp", "reasoning": "hm", "input_tokens": 3, "cached_tokens": 1, "from_cache": True, "request_id": "q",
        "headers": {"x": "y"}, "raw": '{"a": "\\ud800"}', "error": "e",
    }  # fmt: skip
    kept = live_row(A, 0, "\ud835\\n", **more)
    spec, recording = load(sealed(tmp_path, [kept]).path, of=LIVE)
    assert ask(spec, recording)[1] == kept.response


# A condition of the same study.


def test_a_live_condition_is_replayed_attempt_by_attempt_in_every_replicate(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    recording = Recording.from_rows(LIVE_ROWS[:3])
    got = [
        ask(LIVE, recording, replace(CONTEXT, task=t, attempt=n, replicate=r))[1].text
        for t, n in ((A, 0), (A, 1), (B, 0))
        for r in range(3)
    ]
    assert got == ["first"] * 3 + ["second"] * 3 + ["other"] * 3
    with pytest.raises(ReplayMissError, match="fewer attempts"):
        ask(LIVE, recording, replace(CONTEXT, task=B, attempt=1))


@pytest.mark.parametrize("spec", [LIVE, AnthropicProvider(name="anthropic", temperature=0.0), OracleProvider(name="oracle")])
def test_a_replay_needs_neither_key_nor_network_nor_sdk(monkeypatch, spec):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("a replay opened a connection"))
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    recording = replace(Recording.from_rows([live_row(A, 0, "kept", spec=spec)]), pairing=Pairing())
    replayed = RecordingProvider(name="recording", path="x", of=spec)
    for asks in (spec, replayed):
        assert ask(asks, recording)[1].text == "kept"
        with pytest.raises(ReplayMissError):
            ask(asks, recording, prompt="another")


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["codellama-7b_temp0.2", "gpt-3.5-turbo-0613_temp0.8"])
def test_public_recordings_load_whole(shared, name):
    folder = shared / "data" / "cruxeval"
    spec, recording = load(folder / f"{name}_output.jsonl")
    assert (len(recording.task_ids), recording.occurrences) == (800, 10)
    first = json.loads((folder / f"{name}_output.jsonl").read_text().splitlines()[0])
    context = replace(CONTEXT, task=replace(A, id=first["task_id"]))
    texts = [ask(spec, recording, replace(context, replicate=r))[1].text for r in range(10)]
    assert texts == first["generations"]
