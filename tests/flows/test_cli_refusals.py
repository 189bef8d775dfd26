"""Arms that are unfit for decisions are said to be by every command; values that cannot be are refused with a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from evalnoise.readers.tablefile import Kind, Wanted, read_table
from flows.cli import app
from schemas.errors import DataError
from tests.support.gate_store import seal

_SAID = "a, live: over half of the answers were cut off."
_WANTED = {"model": Wanted("model"), "score": Wanted("score", Kind.NUMBER)}


def invoke(*arguments: object):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("fitness") / "store"
    rng = np.random.default_rng(0)
    seal(folder, "good", rng.binomial(1, 0.5, (30, 4)))
    seal(folder, "bad", rng.binomial(1, 0.5, (30, 4)), blocking=[_SAID])
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "good", "bad"],
        ["ranking", "good", "bad"],  # finds its arms as budget and power do
        ["tasks", "bad"],
        ["tasks", "good", "--against", "bad"],
        ["sequential", "bad"],
        ["components", "bad", "--resamples", "100"],
        ["drift", "bad"],
        ["design", "bad"],
    ],
)
def test_a_check_that_blocks_is_said(root, command):
    found = invoke(*command, "--store", root)
    assert found.exit_code == 0, found.output
    assert found.stderr.count(_SAID) == 1
    assert found.stderr.startswith("warning: bad (")
    assert _SAID not in found.stdout


def test_nothing_is_said_of_what_is_fit(root):
    assert invoke("tasks", "good", "--store", root).stderr == ""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["sequential", "--passes", "1", "--runs", "99999999999999999999"], "--runs"),
        (["components", "x.csv", "--resamples", "100000000000"], "--resamples"),
        (["agreement", "x.csv", "--resamples", "100000000000"], "--resamples"),
        (["components", "x.csv", "--price-generation", "inf"], "--price-generation inf: expected a finite number"),
        (["components", "x.csv", "--price-grade", "nan"], "--price-grade"),
        (["components", "x.csv", "--scale", "0", "inf"], "expected two finite numbers"),
        (["design", "--task", "0.1", "--generation", "inf"], "--generation inf: expected a finite number"),
        (["budget", "--w", "0.1", "--tasks", "9", "--delta", "0.1", "--price-a", "inf", "--price-b", "1"], "--price-a inf"),
        (["tasks", "good", "--against", "good/a/live"], "expected another arm than good"),
    ],
)
def test_values_that_cannot_be(root, command, said):
    found = invoke(*command, *(["--store", root] if command[0] == "tasks" else []))
    assert found.exit_code == 2, found.output
    assert said in found.stderr


def test_huge_integers_and_names_that_are_no_utf8(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"item": "a", "rating": ' + "9" * 5000 + ', "score": ' + "9" * 5000 + "}\n")
    for command in ("agreement", "sequential"):
        assert invoke(command, path).exit_code == 4
    named = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    Path(named).write_text("score\n0.5\n1\n")
    assert "not UTF-8" in invoke("sequential", named).stderr
    with pytest.raises(DataError, match="not UTF-8"):
        read_table(Path(named), _WANTED)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'model,score,"x\ny"\r\na,1,2\r\n', "line end in the name"),
        (b'model,score,"x\ny"\ra,1,2\r', "line end in the name"),
        (b"\n\nmodel,score\na,1\n", "an empty line"),
        (b"model,score\na,1\r\nb,1\nc,1\r\n", "line ends of more than one kind"),
    ],
)
def test_lines_of_csv_that_cannot_be(tmp_path, text, said):
    path = tmp_path / "x.csv"
    path.write_bytes(text)
    with pytest.raises(DataError, match=said):
        read_table(path, _WANTED)


def test_names_of_parquet_are_exact(tmp_path):
    path = tmp_path / "x.parquet"

    def write(*names: str) -> None:
        values = [pa.array(["a"]), *(pa.array([number]) for number in range(len(names)))]
        pq.write_table(pa.Table.from_arrays(values, names=["model", *names]), path)

    write("Score", "score")
    assert read_table(path, _WANTED)["score"].to_pylist() == [1.0]
    write("score", "score")
    with pytest.raises(DataError, match="2 of that name"):
        read_table(path, _WANTED)
    write("Score")
    with pytest.raises(DataError, match="a column 'score'"):
        read_table(path, _WANTED)


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "--plan-tasks"],
        ["compare", "--plan-samples"],
        ["budget", "--w", "0.1", "--delta", "0.02", "--tasks"],
        ["budget", "--w", "0.1", "--delta", "0.02", "--tasks", "9", "--runs-a"],
        ["power", "good", "--runs"],
        ["power", "good", "--runs-b"],
        ["design", "--task", "0.1", "--generation", "0.1", "--max-tasks"],
        ["design", "--task", "0.1", "--generation", "0.1", "--max-generations"],
        ["design", "--task", "0.1", "--generation", "0.1", "--max-grades"],
        ["sequential", "--passes", "1", "--runs"],
    ],
)
def test_a_number_of_runs_or_tasks_has_a_limit(command):
    found = invoke(*command, 10**20)
    assert (found.exit_code, found.stdout) == (2, "")
    assert command[-1] in found.stderr
