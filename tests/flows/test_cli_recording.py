"""`evalnoise recording` and `evalnoise coupling` as they are typed: exit codes, messages, and hostile names and texts."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.store.recordings import RecordingFolder
from evalnoise.store.store import Store
from flows.cli import app
from flows.views.recording import print_list
from schemas.study import StarterBenchmark, Study
from tests.support import stages
from tests.support.recorded import lines, recorded, request

HOSTILE = "\x1b[2J\x1b]0;owned\x07 [bold red]x[/] \u202e \ud835"


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output
    return result


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Path:
    """A store with a sealed study of two stacks, which differ in their temperature."""
    root = tmp_path_factory.mktemp("cli") / "s"
    one = stages.body()["stacks"][0]
    warm = {**one, "name": "b", "provider": {**one["provider"], "temperature": 0.9}}
    conditions = [{"name": "live", "kind": "live"}, {"name": "replay", "kind": "replay", "source": {"condition": "live"}}]
    plan = stages.body(study="demo", stacks=[one, warm], conditions=conditions, replicates=2)
    stages.run(Study.model_validate(plan), root, limit=3)
    return root


@pytest.fixture
def store(tmp_path) -> Path:
    """A store with two recordings that hold hostile text."""
    rows = [
        recorded(HOSTILE, 0, 0, HOSTILE, request("q"), served_model=HOSTILE),
        recorded("b", 0, 0, "y", request("b"), position=1),
    ]
    other = [rows[0], replace(rows[1], response=replace(rows[1].response, text="z"))]
    for name, kept in (("one", rows), ("other", other)):
        RecordingFolder.named(tmp_path / "s", name).write(
            kept, source={"kind": "import", "format": "jsonl", "files": []}, order="time"
        )
    return tmp_path / "s"


def test_made_listed_shown_verified_and_compared(measured):
    made = run("recording", "make", "demo", "--stack", "a", "--condition", "live", "--name", "both", "--store", measured)
    digest = RecordingFolder(measured / "recordings" / "both").manifest.digest
    assert made.output.splitlines() == [
        str(measured / "recordings" / "both"),
        f"3 tasks, 2 whole replicates, 3 requests, {len(RecordingFolder(measured / 'recordings' / 'both').read())} responses",
        f"digest {digest}",
    ]
    again = run("recording", "make", "demo", "--stack", "a", "--condition", "live", "--name", "both", "--store", measured)
    assert again.output == made.output
    listed = json.loads(run("recording", "list", "--json", "--store", measured).output)
    assert {one["name"]: one["replicates"] for one in listed}["both"] == 2
    assert "both" in run("recording", "list", "--store", measured).output
    shown = run("recording", "show", "both", "--store", measured).output
    assert f"digest      {digest}" in shown
    assert "complete" in shown
    task = RecordingFolder(measured / "recordings" / "both").read()[0].task_id
    answers = json.loads(run("recording", "show", "both", "--task", task, "--json", "--store", measured).output)["answers"]
    assert {row["replicate"] for row in answers} == {0, 1}
    assert "No difference" in run("recording", "diff", "both", "demo/a/live", "--store", measured).output
    run("recording", "verify", "--store", measured)


def test_the_default_name_of_one_replicate_is_that_of_the_studys_own_replay(measured):
    (own,) = [path for path in (measured / "recordings").iterdir() if "~a~live~r0000" in path.name and "-0" not in path.name[-9:]]
    before = {path: path.stat().st_mtime_ns for path in own.iterdir()}
    made = run("recording", "make", "demo", "--stack", "a", "--condition", "live", "--replicate", 0, "--store", measured)
    assert made.output.splitlines()[0] == str(own)
    assert {path: path.stat().st_mtime_ns for path in own.iterdir()} == before


def test_coupling_says_whether_and_why_not(measured):
    same = run("coupling", "demo/a/live/r0", "demo/a/replay/r1", "--store", measured)
    assert "A shared replay is valid: every one of 3 tasks" in same.output
    odd = run("coupling", "demo/a/live/r0", "demo/b/live/r0", "--store", measured, code=9)
    assert "A shared replay is not valid" in odd.output
    assert "which differs at $.body.temperature" in odd.output
    told = json.loads(run("coupling", "demo/a/live/r0", "demo/b/live/r0", "--json", "--store", measured, code=9).output)
    assert told["valid"] is False
    assert {one["nearest"]["paths"][0] for one in told["broken"]} == {"$.body.temperature"}
    uneven = run("coupling", "demo/a/live", "demo/a/live/r0", "--store", measured, code=9)
    assert "a has 2 replicates, b has 1: name one of each" in uneven.output


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("make", "demo", "--condition", "live"), 2, "expected --stack, because the study has several: a, b"),
        (("make", "demo", "--condition", "replay", "--stack", "a"), 2, "expected a live condition (live)"),
        (("make", "demo", "--condition", "live", "--stack", "z"), 2, "expected one of a, b"),
        (("make", "demo", "--condition", "live", "--stack", "a", "--name", "../x"), 2, "expected at most 200 lower-case letters"),
        (("make", "demo", "--condition", "live", "--stack", "a", "--replicate", "7"), 6, "found none of that name"),
        (("make", "nothing", "--condition", "live"), 6, "found no such thing (studies: demo)"),
        (("show", "nothing"), 6, "the name of a recording in the store"),
        (("verify", "nothing"), 6, "the name of a recording in the store"),
        (("import", "xml", "x", "--name", "x"), 2, "expected one of the formats"),
        (("import", "jsonl", "x", "--name", "X"), 2, "expected at most 200"),
        (("import", "jsonl", "x", "--name", "x", "--order", "z"), 2, "expected time or unknown"),
        (("import", "jsonl", "none.jsonl", "--name", "x"), 4, "No such file or directory"),
    ],
)
def test_mistakes_are_sentences_with_their_exit_codes(measured, arguments, code, said):
    assert said in run("recording", *arguments, "--store", measured, code=code).output.replace("\n", " ")


def test_a_replay_of_a_recording_is_not_recorded(tmp_path):
    """The copy would lack who served the answers, and with it what blocks a study of them."""
    tasks = load_benchmark(StarterBenchmark(name="starter")).tasks[:2]
    path = lines(tmp_path / "g.jsonl", [{"task_id": task.id, "generations": [task.reference] * 2} for task in tasks])
    stack = {"name": "a", "model": "m", "provider": {"name": "recording", "path": str(path)}, "verifier": stages.PROCESS}
    plan = stages.body(study="demo", stacks=[stack], conditions=[{"name": "live", "kind": "live"}], replicates=2)
    stages.run(Study.model_validate(plan), tmp_path / "s", limit=2)
    told = run("recording", "make", "demo", "--condition", "live", "--store", tmp_path / "s", code=2).output
    assert "its answers come from a recording" in told
    assert not (tmp_path / "s" / "recordings").exists()


def test_an_unfinished_replicate_is_not_recorded(measured, tmp_path):
    root = shutil.copytree(measured, tmp_path / "s")
    (found,) = Store.open(root).studies()
    manifest = found.path / "manifest.jsonl"
    lines = manifest.read_text().splitlines(keepends=True)
    manifest.write_text("".join(line for line in lines if "measure~a~live~r0001" not in line or '"planned"' in line))
    refused = run("recording", "make", "demo", "--stack", "a", "--condition", "live", "--store", root, code=6)
    assert "found 0 of 1 shards" in refused.output.replace("\n", " ")


def test_hostile_text_reaches_no_terminal(store):
    assert "\\x1b[2J" in run("recording", "show", "one", "--store", store).output
    shown = run("recording", "show", "one", "--task", "b", "--store", store).output
    assert "  y\n" in shown
    assert run("recording", "diff", "one", "other", "--store", store).output.splitlines()[2:] == [
        "1 answer differs, 1 equal; 0 requests on one side more than on the other.",
        f"  task b, request {request('b').key()[:12]}, answer 0: a 'y', b 'z'",
    ]
    assert "valid" in run("coupling", "one", "other", "--store", store).output
    for command in (("show", "one", "--task", "b"), ("diff", "one", "other"), ("list",)):
        json.loads(run("recording", *command, "--json", "--store", store).output)


def test_in_a_narrow_terminal_the_source_stands_below(store, monkeypatch, capsys):
    folder = RecordingFolder(store / "recordings" / "named")
    source = {"kind": "import", "format": "jsonl", "files": [{"name": "x" * 60}]}
    folder.write([recorded("a", 0, 0, "text")], source=source, order="time")
    print_list([folder], as_json=False)
    assert len(capsys.readouterr().out.splitlines()) == 3
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    print_list([folder], as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[2].split()[0] == "named"
    assert "source" not in lines[0]
    assert "x" * 60 in lines[3]
    assert max(map(len, lines)) <= 80


def test_a_damaged_recording_is_listed_as_such_and_fails_its_verification(store):
    (store / "recordings" / "one" / "responses.parquet").write_bytes(b"PAR1")
    (store / "recordings" / "other" / "manifest.json").write_bytes(b"{}")
    run("recording", "verify", "one", "--store", store, code=4)
    assert "unreadable" in run("recording", "list", "--store", store).output
    run("recording", "show", "other", "--store", store, code=4)


def test_an_import_says_what_it_left_out(tmp_path):
    asked = [{"custom_id": f"t{n}", "url": "/v1/chat/completions", "body": {"model": "m", "messages": []}} for n in range(3)]
    answer = {"object": "chat.completion", "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}
    answered = {"custom_id": "t1", "error": None, "response": {"status_code": 200, "request_id": "r", "body": answer}}
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    (tmp_path / "out.jsonl").write_text(json.dumps(answered))
    files = (tmp_path / "in.jsonl", tmp_path / "out.jsonl", "--name", "batch", "--store", tmp_path / "s")
    refused = run("recording", "import", "openai-batch", *files, code=4).output.replace("\n", " ")
    assert "found none for 2: t0, t2" in refused
    assert not (tmp_path / "s").exists()
    made = run("recording", "import", "openai-batch", *files, "--allow-missing").output.splitlines()
    assert made[1:3] == ["1 task, 1 whole replicate, 1 request, 1 response", "without 2 ids that got no answer: t0, t2"]
    run("recording", "import", "openai-batch", tmp_path / "out.jsonl", "--name", "batch", "--store", tmp_path / "s", code=6)
