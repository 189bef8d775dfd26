from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.mutants import mutants
from schemas.errors import DataError
from schemas.records import TaskKind
from schemas.study import CruxevalBenchmark

ROWS = [
    {"code": "def f(a, b):\n    return a + b", "input": "'x', 'y'", "output": "'xy'", "id": "sample_0"},
    {"code": "def f(a):\n    return [a]", "input": "{1: (2, )}", "output": "[{1: (2,)}]", "id": "sample_1"},
]


def write(path: Path, rows: list, end: str = "") -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows) + end, encoding="utf-8")
    return path


def load(path: Path, **more: str):
    if path.is_file() and "published" not in more:
        more = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()} | more
    more.pop("published", None)
    return load_benchmark(CruxevalBenchmark(name="cruxeval", path=str(path), **more))


def test_task_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.jsonl", ROWS)
    found = load(path)
    assert (found.name, [task.id for task in found.tasks]) == ("cruxeval", ["sample_0", "sample_1"])
    task = found.tasks[1]
    assert task.kind is TaskKind.OUTPUT
    assert (task.code, task.reference, task.entry_point, task.inputs, task.n_base_inputs) == (
        ROWS[1]["code"],
        ROWS[1]["output"],
        "f",
        (),
        0,
    )
    assert task.prompt == (
        "Given this Python program:\n\ndef f(a):\n    return [a]\n\nWhat does the call below return?\n\nf({1: (2, )})\n\n"
        "Answer with the returned value alone, written as a Python literal."
    )
    (source,) = found.sources
    assert (source.path, source.size, source.sha256) == (
        str(path),
        path.stat().st_size,
        hashlib.sha256(path.read_bytes()).hexdigest(),
    )


def test_digest_does_not_depend_on_the_place_or_the_spelling_of_the_file(tmp_path: Path) -> None:
    first = load(write(tmp_path / "a.jsonl", ROWS))
    second = load(write(tmp_path / "b.jsonl", [dict(reversed(row.items())) for row in ROWS], end="\n\n"))
    assert first.sha256 == second.sha256
    assert first.sources[0].sha256 != second.sources[0].sha256


def test_missing_file_says_where_the_data_can_be_had(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load(tmp_path / "none.jsonl")
    assert caught.value.where == str(tmp_path / "none.jsonl")
    for part in ("facebookresearch/cruxeval", "crux-eval/crux-eval.github.io", "EVALNOISE_SHARED", "benchmark.path"):
        assert part in caught.value.remedy


def test_truncated_last_line(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.jsonl", ROWS)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=rf"^{path}:2: expected a whole line of JSON, found "):
        load(path)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda row: row.pop("output"), "fields 'code', 'input', 'id'"),
        (lambda row: row.update(answer="1"), "unknown field 'answer'"),
        (lambda row: row.update(output=1), "int"),
        (lambda row: row.update(id="sample_0"), "'sample_0' again, after "),
    ],
)
def test_wrong_row_names_file_and_line(tmp_path: Path, change, found: str) -> None:
    rows = [dict(row) for row in ROWS]
    change(rows[1])
    path = write(tmp_path / "tasks.jsonl", rows)
    with pytest.raises(DataError) as caught:
        load(path)
    assert caught.value.where.startswith(f"{path}:2")
    assert caught.value.found.startswith(found)


def test_other_digest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected SHA-256 0000"):
        load(write(tmp_path / "tasks.jsonl", ROWS), sha256="0" * 64)


def test_without_a_digest_only_the_published_tasks_are_taken(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected the 800 published tasks of CRUXEval, found 2 tasks") as caught:
        load(write(tmp_path / "tasks.jsonl", ROWS), published="yes")
    assert "benchmark.sha256" in caught.value.remedy


@pytest.mark.realdata
@pytest.mark.parametrize(("cut", "found"), [(3, "3 tasks"), (800, "altered tasks")])
def test_a_public_file_that_was_cut_or_altered(shared: Path, tmp_path: Path, cut: int, found: str) -> None:
    lines = (shared / "data" / "cruxeval" / "tasks.jsonl").read_text(encoding="utf-8").split("\n")[:cut]
    row = json.loads(lines[2])
    lines[2] = json.dumps(row | {"output": row["output"] + " "})
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match=f"found {found}"):
        load(path, published="yes")


@pytest.mark.realdata
def test_public_file(shared: Path, tmp_path: Path) -> None:
    path = shared / "data" / "cruxeval" / "tasks.jsonl"
    assert not path.read_bytes().endswith(b"\n")
    found = load(path, published="yes")
    assert [task.id for task in found.tasks] == [f"sample_{number}" for number in range(800)]
    assert found.sha256 == "1df6961460892d75dfee6761ec8ed1e86bcd336e0de877646ebccf93648b59cb"
    raw = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")]
    for task, row in zip(found.tasks, raw, strict=True):
        assert f"\nf({row['input']})\n" in task.prompt
        assert row["code"] in task.prompt
    shutil.copy(path, tmp_path / "elsewhere.jsonl")
    assert load(tmp_path / "elsewhere.jsonl").sha256 == found.sha256


@pytest.mark.realdata
def test_public_references_and_their_mutants(shared: Path) -> None:
    """Every reference is what the call gives, and no mutant of it is."""
    found = load(shared / "data" / "cruxeval" / "tasks.jsonl")
    for task in found.tasks:
        names: dict = {}
        exec(task.code, names)
        call = task.prompt.partition("\n\nWhat does the call below return?\n\n")[2].rpartition("\n\nAnswer with")[0]
        value = eval(call, names)
        assert value == eval(task.reference), task.id
        variants = list(mutants(task))
        assert 2 <= len(variants) <= 40
        assert all(eval(text) != value for text in variants), task.id
