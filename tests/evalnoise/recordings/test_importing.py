"""Importers: what files of other tools become, and bad rows named by file and line."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalnoise.providers.base import Request
from evalnoise.recordings.importing import Form, read_files, seal_imported
from evalnoise.store.recordings import RecordingFolder
from schemas.errors import DataError, RequestNormaliserError
from schemas.records import ResponseClass
from tests.support.recorded import lines


def answers(found):
    return [(row.task_id, row.replicate, row.response.text) for row in found.rows]


def refused(form, paths, **options) -> DataError:
    with pytest.raises(DataError) as caught:
        read_files(form, paths, **options)
    assert "\n" not in caught.value.found
    return caught.value


# Round trips.

ANY = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(ANY, ANY), min_size=1, max_size=8))
def test_any_text_is_imported_stored_and_read_back(tmp_path_factory, rows):
    """Hard input 1, for every format of bare texts."""
    root = tmp_path_factory.mktemp("any")
    source = lines(root / "samples.jsonl", [{"task_id": task, "solution": text} for task, text in rows])
    plain = lines(root / "plain.jsonl", [{"task_id": task, "text": text} for task, text in rows])
    counts = Counter()
    expected = []
    for task, text in rows:
        expected.append((task, counts[task], text))
        counts[task] += 1
    for form, path in ((Form.EVALPLUS, source), (Form.JSONL, plain)):
        found = read_files(form, [path])
        assert answers(found) == expected
        folder = RecordingFolder.named(root, form.value)
        seal_imported(folder, form, found, order="unknown")
        folder.verify()
        assert sorted(map(repr, answers(found))) == sorted(repr((r.task_id, r.replicate, r.response.text)) for r in folder.read())


# EvalPlus.


def test_samples_are_replicates_by_the_order_of_a_tasks_lines(tmp_path):
    path = lines(tmp_path / "s.jsonl", [
        {"task_id": "H/1", "solution": "one", "_identifier": "x"},
        {"task_id": "H/0", "solution": "zero"},
        {"task_id": "H/1", "solution": "two", "completion": "ignored"},
    ])  # fmt: skip
    found = read_files(Form.EVALPLUS, [path])
    assert answers(found) == [("H/1", 0, "one"), ("H/0", 0, "zero"), ("H/1", 1, "two")]
    assert [row.position for row in found.rows] == [0, 1, 0]
    assert found.sources[0] == {"name": "s.jsonl", "sha256": found.sources[0]["sha256"], "size": path.stat().st_size}


def test_a_completion_goes_on_from_its_prompt(tmp_path):
    path = lines(tmp_path / "s.jsonl", [{"task_id": "H/0", "completion": "    return 1\n"}])
    error = refused(Form.EVALPLUS, [path])
    assert (error.where, error.found) == (f"{path}, line 1", "`completion` alone")
    assert "--prompts" in error.remedy
    prompts = tmp_path / "H.jsonl.gz"
    prompts.write_bytes(gzip.compress(json.dumps({"task_id": "H/0", "prompt": "def f():\n", "entry_point": "f"}).encode()))
    assert answers(read_files(Form.EVALPLUS, [path], prompts=prompts)) == [("H/0", 0, "def f():\n    return 1\n")]
    other = lines(tmp_path / "t.jsonl", [{"task_id": "H/7", "completion": ""}])
    assert refused(Form.EVALPLUS, [other], prompts=prompts).found == "'H/7'"


def test_a_folder_of_samples_is_read_by_number(tmp_path):
    for task, number, text in (("HumanEval_0", 10, "ten"), ("HumanEval_0", 2, "two"), ("Mbpp_3", 0, "x\r\n")):
        (tmp_path / "s" / task).mkdir(parents=True, exist_ok=True)
        (tmp_path / "s" / task / f"{number}.py").write_bytes(text.encode())
    (tmp_path / "s" / "notes.txt").write_text("no task")
    found = read_files(Form.EVALPLUS, [tmp_path / "s"])
    assert answers(found) == [("HumanEval/0", 0, "two"), ("HumanEval/0", 1, "ten"), ("Mbpp/3", 0, "x\r\n")]
    before = found.sources
    (tmp_path / "s" / "Mbpp_3" / "0.py").write_text("y")
    assert read_files(Form.EVALPLUS, [tmp_path / "s"]).sources != before
    (tmp_path / "s" / "Mbpp_3" / "best.py").write_text("y")
    assert refused(Form.EVALPLUS, [tmp_path / "s"]).found == "best.py"


@pytest.mark.parametrize(
    ("row", "tail", "where", "found"),
    [
        ({"task_id": "a"}, "", ", line 1", "no such field"),
        ({"task_id": 1, "solution": "x"}, "", ", line 1", "1"),
        ({"task_id": "a", "solution": None}, "", ", line 1", "None"),
        ({"task_id": "a", "solution": "x"}, '{"task', ", line 2", "text that is not JSON, cut off before its end"),
        ({"task_id": "a", "solution": "x"}, "[]\n", ", line 2", "a list"),
        ({"task_id": "a", "solution": "x"}, "\n\n" + "[" * 100_000 + "\n", ", line 4", "text that is not JSON"),
    ],
)
def test_bad_samples_are_named_by_line(tmp_path, row, tail, where, found):
    path = lines(tmp_path / "s.jsonl", [row], tail=tail)
    error = refused(Form.EVALPLUS, [path])
    assert (error.where, error.found) == (f"{path}{where}", found)


@pytest.mark.parametrize("form", list(Form))
def test_a_file_without_rows_and_one_that_is_not_there(tmp_path, form):
    empty = lines(tmp_path / "e.jsonl", [], tail="\n \n")
    assert str(empty) in refused(form, [empty]).where
    assert refused(form, [tmp_path / "none"]).found == "No such file or directory"
    assert refused(form, [tmp_path / ("a" * 300)]).found == "File name too long"
    assert refused(form, [tmp_path / "\x00"]).found == "embedded null byte"


# Plain lines.


def test_plain_lines_tell_what_they_know(tmp_path):
    request = {"provider": "openai", "model": "m", "body": {"messages": [], "temperature": 1}}
    path = lines(tmp_path / "p.jsonl", [
        {"task_id": "a", "text": "x", "request": request, "finish_reason": "length", "response_class": "truncated",
         "input_tokens": 3, "raw": "{}", "headers": {"x-a": "b"}, "from_cache": True},
        {"task_id": "a", "text": "", "request": request, "replicate": 4, "attempt": 1},
        {"task_id": "a", "text": "z", "request": request},
    ])  # fmt: skip
    first, second, third = read_files(Form.JSONL, [path]).rows
    assert first.request_key == Request("openai", "m", {"messages": [], "temperature": 1}).key()
    response = first.response
    assert (response.response_class, response.finish_reason, response.raw, response.input_tokens, response.from_cache) == (
        ResponseClass.TRUNCATED, "length", "{}", 3, True,
    )  # fmt: skip
    assert response.headers == {"x-a": "b"}
    assert (second.replicate, second.attempt, second.response.response_class) == (4, 1, ResponseClass.EMPTY)
    assert (third.replicate, third.attempt) == (1, 0)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text("abc", max_size=3), st.integers(-9, 9) | st.lists(st.booleans()), max_size=5), st.randoms())
def test_the_order_of_keys_does_not_change_a_request(tmp_path_factory, body, random):
    names = list(body)
    random.shuffle(names)
    rows = [
        {"task_id": "a", "text": "x", "request": {"provider": "p", "model": "m", "body": body}},
        {"text": "x", "request": {"body": {n: body[n] for n in names}, "model": "m", "provider": "p"}, "task_id": "a"},
    ]
    path = lines(tmp_path_factory.mktemp("order") / "p.jsonl", rows)
    one, other = read_files(Form.JSONL, [path]).rows
    assert (one.request_key, one.request) == (other.request_key, other.request)


@pytest.mark.parametrize(
    ("row", "where", "expected", "found"),
    [
        ({"task_id": "a", "text": "x", "rplicate": 1}, "", "field replicate", "the field 'rplicate'"),
        ({"task_id": "a", "text": 3}, "", "`text`, a text", "3"),
        ({"task_id": "a", "text": "x", "replicate": -1}, "", "`replicate`, a whole number from 0", "-1"),
        ({"task_id": "a", "text": "x", "replicate": True}, "", "`replicate`, a whole number from 0", "True"),
        ({"task_id": "a", "text": "x", "input_tokens": 1.5}, "", "`input_tokens`, a whole number from 0", "1.5"),
        ({"task_id": "a", "text": "x", "request": []}, "", "`request`, an object", "[]"),
        ({"task_id": "a", "text": "x", "request": {"model": "m"}}, ", request", "`provider`, a text", "no such field"),
        ({"task_id": "a", "text": "x", "from_cache": 1}, "", "`from_cache`, true or false", "1"),
        ({"task_id": "a", "text": "x", "headers": {"a": 1}}, "", "`headers`, an object of texts", "{'a': 1}"),
    ],
)
def test_bad_plain_lines_are_named(tmp_path, row, where, expected, found):
    path = lines(tmp_path / "p.jsonl", [{"task_id": "z", "text": "fine"}, row])
    error = refused(Form.JSONL, [path])
    assert (error.where, error.expected, error.found) == (f"{path}, line 2{where}", expected, found)


def test_requests_that_have_no_key_or_another_ones_are_refused(tmp_path):
    def row(**body):
        return {"task_id": "a", "text": "x", "request": {"provider": "p", "model": "m", "body": body}}

    nan = tmp_path / "n.jsonl"
    nan.write_text('{"task_id": "a", "text": "x", "request": {"provider": "p", "model": "m", "body": {"t": NaN}}}\n')
    assert "carry exactly" in refused(Form.JSONL, [nan]).expected
    lone = lines(tmp_path / "l.jsonl", [row(prompt="\ud800")])
    assert "carry exactly" in refused(Form.JSONL, [lone]).expected
    old = row()
    old["request"]["normaliser"] = 1
    with pytest.raises(RequestNormaliserError, match="found version 1"):
        read_files(Form.JSONL, [lines(tmp_path / "o.jsonl", [old])])
    mixed = lines(tmp_path / "m.jsonl", [row(), {"task_id": "b", "text": "y"}])
    assert refused(Form.JSONL, [mixed]).where == f"{mixed}, line 2"
    twice = lines(tmp_path / "t.jsonl", [row() | {"replicate": 0}, row() | {"replicate": 0}])
    assert refused(Form.JSONL, [twice]).found == "two"


# Real data.


@pytest.mark.realdata
def test_public_generations_are_imported_whole(shared, tmp_path):
    path = shared / "data" / "cruxeval" / "gpt-3.5-turbo-0613_temp0.8_output.jsonl"
    found = read_files(Form.CRUXEVAL, [path])
    folder = RecordingFolder.named(tmp_path, "crux")
    manifest = seal_imported(folder, Form.CRUXEVAL, found, order="unknown")
    assert (manifest.tasks, manifest.replicates, manifest.occurrences, manifest.keyed) == (800, 10, 8000, False)
    folder.verify()
    expected = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        expected |= {(row["task_id"], n): text for n, text in enumerate(row["generations"])}
    assert {(row.task_id, row.replicate): row.response.text for row in folder.read()} == expected


@pytest.mark.realdata
def test_evalplus_samples_of_the_canonical_solutions(shared, tmp_path):
    """Made of the benchmark: solutions, and completions that go on from their prompts, are the same programs."""
    official = shared / "data" / "evalplus" / "HumanEvalPlus.jsonl.gz"
    tasks = [json.loads(line) for line in gzip.decompress(official.read_bytes()).splitlines()]
    whole = [{"task_id": t["task_id"], "solution": t["prompt"] + t["canonical_solution"]} for t in tasks]
    rest = [{"task_id": t["task_id"], "completion": t["canonical_solution"]} for t in tasks]
    solutions = read_files(Form.EVALPLUS, [lines(tmp_path / "a.jsonl", whole)])
    completions = read_files(Form.EVALPLUS, [lines(tmp_path / "b.jsonl", rest)], prompts=official)
    assert answers(solutions) == answers(completions)
    assert len(solutions.rows) == 164
