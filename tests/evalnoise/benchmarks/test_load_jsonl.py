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
ANSWER: dict[str, Any] = {"id": "a", "kind": "answer", "prompt": "p", "reference": "Paris"}


def load(path: Path, *rows: object, sha256: str | None = None) -> Benchmark:
    if rows:
        path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return load_benchmark(JsonlBenchmark(name="jsonl", path=str(path), sha256=sha256))


def test_examples_of_the_guide(tmp_path: Path, run_trusted) -> None:
    examples = re.findall(r"```jsonl\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "my-tasks.jsonl"
    tasks = []
    for example in examples:
        path.write_text(example, encoding="utf-8")
        found = load(path)
        assert found.name == "jsonl"
        assert len({task.kind for task in found.tasks}) == 1
        tasks += found.tasks
    assert [task.id for task in tasks] == [
        *("my/double", "my/common", "my/norm", "my/clear", "my/root", "my/predict", "my/capital", "my/half")
    ]  # fmt: skip
    double, common, norm, clear, root, predict, capital, half = tasks
    assert [decode(text) for text in double.inputs] == [[3], [-1.5], ["ab"]]
    assert [decode(text) for text in common.inputs] == [[{1, 2}, {2, 3}], [set(), {(1, "x")}]]
    assert (common.cluster, norm.atol, norm.code, norm.n_base_inputs) == ("sets", 1e-9, "import math\n", 3)
    assert (clear.in_place, double.in_place, root.inputs) == (True, False, ())
    assert root.test.startswith("def check(candidate):")
    assert (predict.kind, predict.reference, predict.inputs) == (TaskKind.OUTPUT, "'ba'", ())
    assert [(task.kind, task.reference, task.entry_point) for task in (capital, half)] == [
        (TaskKind.ANSWER, "Paris", ""), (TaskKind.ANSWER, "0.5", ""),
    ]  # fmt: skip
    results = run_trusted([(task, task.reference) for task in (double, common, norm)])
    assert results[0][0] == ["6", "-3.0", '"abab"']
    assert results[1][0] == ['{"s":[2]}', '{"s":[]}']
    assert results[2][0][:2] == ["5.0", "0.0"]


def test_guide_names_every_field() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for field in (
        "id",
        "prompt",
        "entry_point",
        "reference",
        "kind",
        "inputs",
        "code",
        "atol",
        "cluster",
        "test",
        "in_place",
        "n_base_inputs",
    ):
        assert f"| `{field}` |" in text


def test_literal_inputs_have_all_types(tmp_path: Path) -> None:
    literals = ["(1, (2,), {3}, {4: 'v'}, b'x', 1j, None, True)", " [1.5] ", "()", "('\u00e9',)"]
    (task,) = load(tmp_path / "x.jsonl", ROW | {"inputs": [*literals, [{"k": [1]}]]}).tasks
    expected = [[1, (2,), {3}, {4: "v"}, b"x", 1j, None, True], [1.5], [], ["\u00e9"], [{"k": [1]}]]
    assert [decode(text) for text in task.inputs] == expected


@pytest.mark.parametrize(
    ("number", "text"), [(42, "42"), (-1.5, "-1.5"), (0.1, "0.1"), (1e300, "1e+300"), (10**30, "1" + "0" * 30), (0, "0")]
)
def test_an_answer_may_be_a_number(tmp_path: Path, number: float, text: str) -> None:
    (task,) = load(tmp_path / "x.jsonl", ANSWER | {"reference": number, "cluster": "c"}).tasks
    assert (task.reference, task.cluster, task.inputs) == (text, "c", ())


def test_base_inputs(tmp_path: Path) -> None:
    two = ROW | {"inputs": [[1], [2]]}
    assert load(tmp_path / "x.jsonl", two).tasks[0].n_base_inputs == 2
    assert load(tmp_path / "x.jsonl", two | {"n_base_inputs": 1}).tasks[0].n_base_inputs == 1


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
        (ROW | {"inputs": []}, ", field 'inputs'", "at least one argument list, or a `test`, for a task of kind 'function'"),
        (
            ROW | {"inputs": [], "test": " \n"},
            ", field 'inputs'",
            "at least one argument list, or a `test`, for a task of kind 'function'",
        ),
        (ROW | {"test": "assert f(1) =="}, ", field 'test'", "a Python program"),
        (ROW | {"in_place": 1}, ", field 'in_place'", "bool"),
        (ROW | {"n_base_inputs": 2}, ", field 'n_base_inputs'", "a number from 0 to 1, as there are inputs"),
        (ROW | {"n_base_inputs": True}, ", field 'n_base_inputs'", "int"),
        (ROW | {"inputs": [[1], 2]}, ", input 1", "a list of arguments (one argument is a list of one)"),
        (ROW | {"inputs": [[1], {"x": 2}]}, ", input 1", "a list of arguments (one argument is a list of one)"),
        (ROW | {"inputs": ["3"]}, ", input 0", "a list of arguments (one argument is a list of one)"),
        (ROW | {"inputs": ["[f(3)]"]}, ", input 0", "a Python literal"),
        (ROW | {"inputs": ["[1"]}, ", input 0", "a Python literal"),
        (ROW | {"inputs": ["[...]"]}, ", input 0", "arguments that can be encoded"),
        (ROW | {"id": ""}, ", field 'id'", "a name"),
        (ROW | {"kind": "essay"}, ", field 'kind'", "'function' or 'output' or 'answer'"),
        (ROW | {"kind": ["answer"]}, ", field 'kind'", "'function' or 'output' or 'answer'"),
        (
            OUTPUT | {"test": "x"},
            "",
            "only fields 'id', 'prompt', 'entry_point', 'reference', 'code', 'kind', 'cluster', 'inputs', 'atol'",
        ),
        (ANSWER | {"entry_point": "f"}, "", "only fields 'id', 'prompt', 'reference', 'kind', 'cluster'"),
        ({"id": "b", "kind": "answer", "prompt": "p"}, "", "fields 'id', 'prompt', 'reference'"),
        (ANSWER | {"reference": True}, ", field 'reference'", "str or int or float"),
        (ANSWER | {"reference": " "}, ", field 'reference'", "one line, because one line of a model's answer is taken"),
        (ANSWER | {"reference": "a\nb"}, ", field 'reference'", "one line, because one line of a model's answer is taken"),
        (ANSWER | {"reference": float("inf")}, ", field 'reference'", "a finite number, or a text"),
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
