from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from evalnoise.benchmarks.load import load_benchmark
from schemas.errors import DataError
from schemas.records import Benchmark, TaskKind
from schemas.study import JsonlBenchmark
from schemas.values import decode

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "benchmarks.md"
ROW: dict[str, Any] = {"id": "a", "prompt": "p", "entry_point": "f", "reference": "def f(x):\n    return x\n", "inputs": [[1]]}
OUTPUT: dict[str, Any] = {
    "id": "a",
    "kind": "output",
    "prompt": "p",
    "entry_point": "f",
    "reference": "1",
    "code": "def f(): return 1",
}


def load(path: Path, *rows: object, sha256: str | None = None) -> Benchmark:
    if rows:
        path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return load_benchmark(JsonlBenchmark(name="jsonl", path=str(path), sha256=sha256))


def test_example_of_the_guide(tmp_path: Path, run_trusted) -> None:
    (example,) = re.findall(r"```jsonl\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "my-tasks.jsonl"
    path.write_text(example, encoding="utf-8")
    found = load(path)
    assert found.name == "jsonl"
    assert [task.id for task in found.tasks] == ["my/double", "my/common", "my/norm", "my/predict"]
    double, common, norm, predict = found.tasks
    assert [decode(text) for text in double.inputs] == [[3], [-1.5], ["ab"]]
    assert [decode(text) for text in common.inputs] == [[{1, 2}, {2, 3}], [set(), {(1, "x")}]]
    assert (common.cluster, norm.atol, norm.code, norm.n_base_inputs) == ("sets", 1e-9, "import math\n", 3)
    assert (predict.kind, predict.reference, predict.inputs) == (TaskKind.OUTPUT, "'ba'", ())
    results = run_trusted([(task, task.reference) for task in (double, common, norm)])
    assert results[0][0] == ["6", "-3.0", '"abab"']
    assert results[1][0] == ['{"s":[2]}', '{"s":[]}']
    assert results[2][0][:2] == ["5.0", "0.0"]


def test_guide_names_every_field() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for field in ("id", "prompt", "entry_point", "reference", "kind", "inputs", "code", "atol", "cluster"):
        assert f"| `{field}` |" in text


def test_literal_inputs_have_all_types(tmp_path: Path) -> None:
    literals = ["(1, (2,), {3}, {4: 'v'}, b'x', 1j, None, True)", " [1.5] ", "()", "('\u00e9',)"]
    (task,) = load(tmp_path / "x.jsonl", ROW | {"inputs": [*literals, [{"k": [1]}]]}).tasks
    expected = [[1, (2,), {3}, {4: "v"}, b"x", 1j, None, True], [1.5], [], ["\u00e9"], [{"k": [1]}]]
    assert [decode(text) for text in task.inputs] == expected


def test_sources_and_place(tmp_path: Path) -> None:
    first = load(tmp_path / "x.jsonl", ROW)
    second = load(tmp_path / "other name.jsonl", ROW)
    assert (first.sha256, first.name) == (second.sha256, second.name)
    digest = hashlib.sha256((tmp_path / "x.jsonl").read_bytes()).hexdigest()
    assert first.sources[0].sha256 == digest
    assert load(tmp_path / "x.jsonl", sha256=digest) == first
    with pytest.raises(DataError, match="as the study says"):
        load(tmp_path / "x.jsonl", sha256="0" * 64)


@pytest.mark.parametrize("reference", ["f = lambda x: x", "class f:\n    pass", "async def f(x): pass", "f = g = abs"])
def test_entry_point_may_be_any_definition(tmp_path: Path, reference: str) -> None:
    assert load(tmp_path / "x.jsonl", ROW | {"reference": reference}).tasks[0].reference == reference


def test_entry_point_may_be_in_the_preamble(tmp_path: Path) -> None:
    assert load(tmp_path / "x.jsonl", ROW | {"code": "def f(x): return g(x)", "reference": "g = abs"}).tasks[0].entry_point == "f"


@pytest.mark.parametrize(
    ("row", "where", "expected"),
    [
        ({k: v for k, v in ROW.items() if k != "prompt"}, "", "fields 'id', 'prompt', 'entry_point', 'reference'"),
        (ROW | {"input": [[1]]}, "", "field 'inputs'"),
        (ROW | {"inputs": "[1]"}, ", field 'inputs'", "list"),
        (ROW | {"inputs": []}, ", field 'inputs'", "at least one argument list for a task of kind 'function'"),
        (ROW | {"inputs": [[1], 2]}, ", input 1", "a list of arguments (one argument is a list of one)"),
        (ROW | {"inputs": [[1], {"x": 2}]}, ", input 1", "a list of arguments (one argument is a list of one)"),
        (ROW | {"inputs": ["3"]}, ", input 0", "a list of arguments (one argument is a list of one)"),
        (ROW | {"inputs": ["[f(3)]"]}, ", input 0", "a Python literal"),
        (ROW | {"inputs": ["[1"]}, ", input 0", "a Python literal"),
        (ROW | {"inputs": ["[...]"]}, ", input 0", "arguments that can be encoded"),
        (ROW | {"id": ""}, ", field 'id'", "a name"),
        (ROW | {"kind": "essay"}, ", field 'kind'", "'function' or 'output'"),
        (ROW | {"entry_point": "a.b"}, ", field 'entry_point'", "the name of a Python function"),
        (ROW | {"entry_point": "class"}, ", field 'entry_point'", "the name of a Python function"),
        (ROW | {"entry_point": "g"}, ", field 'reference'", "a program that defines 'g' at top level"),
        (ROW | {"reference": "def f(x):"}, ", field 'reference'", "a Python program"),
        (ROW | {"reference": "def f(x): pass\x00"}, ", field 'reference'", "a Python program"),
        (ROW | {"atol": -1}, ", field 'atol'", "a finite number of 0 or more"),
        (ROW | {"atol": float("nan")}, ", field 'atol'", "a finite number of 0 or more"),
        (ROW | {"atol": True}, ", field 'atol'", "int or float"),
        (OUTPUT | {"code": ""}, ", field 'code'", "the program whose output is predicted, for a task of kind 'output'"),
        ([1], "", "a JSON object"),
    ],
)
def test_bad_row_names_line_and_field(tmp_path: Path, row: object, where: str, expected: str) -> None:
    path = tmp_path / "x.jsonl"
    with pytest.raises(DataError) as caught:
        load(path, ROW | {"id": "first"}, row)
    assert (caught.value.where, caught.value.expected) == (f"{path}:2{where}", expected)
    assert "docs/guide/benchmarks.md" in caught.value.remedy


def test_file_without_tasks(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n\n")
    with pytest.raises(DataError, match="expected at least one task, found none"):
        load(path)
