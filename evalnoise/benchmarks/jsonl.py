"""One's own tasks: JSON Lines, one task a line. docs/guide/benchmarks.md describes the format."""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalnoise.benchmarks.base import INPUT_MAX_BYTES, Kinds, benchmark, check_fields, data_path, json_lines, read_source
from evalnoise.programs import defines, parse_program
from schemas.errors import DataError
from schemas.records import Benchmark, Task, TaskKind
from schemas.study import JsonlBenchmark
from schemas.values import TooLargeError, UnencodableError, encode

REMEDY = "The format is described in docs/guide/benchmarks.md, with a complete example."
_REQUIRED: Mapping[str, Kinds] = {"id": str, "prompt": str, "entry_point": str, "reference": str}
_OPTIONAL: Mapping[str, Kinds] = {
    "kind": str,
    "code": str,
    "inputs": list,
    "atol": (int, float),
    "cluster": str,
    "n_base_inputs": int,
}


def load_jsonl(spec: JsonlBenchmark) -> Benchmark:
    """The tasks of a file in file order; the benchmark is named ``jsonl`` wherever the file lies. Raises DataError."""
    path = data_path(spec.path)
    data, source = read_source(path, sha256=spec.sha256, remedy=REMEDY)
    return benchmark("jsonl", _tasks(data, path), [source], remedy=REMEDY)


def _tasks(data: bytes, path: Path) -> Iterator[tuple[str, Task]]:
    for where, row in json_lines(data, path, remedy=REMEDY):
        check_fields(row, where, required=_REQUIRED, optional=_OPTIONAL, remedy=REMEDY)
        yield where, _task(row, where)


def _task(row: Mapping[str, Any], where: str) -> Task:
    kind = row.get("kind", TaskKind.FUNCTION)
    if kind not in set(TaskKind):
        raise _error(where, "kind", " or ".join(repr(str(kind)) for kind in TaskKind), repr(kind))
    inputs = tuple(_encoded(item, f"{where}, input {number}") for number, item in enumerate(row.get("inputs", [])))
    task = Task(
        id=row["id"],
        kind=TaskKind(kind),
        prompt=row["prompt"],
        reference=row["reference"],
        entry_point=row["entry_point"],
        code=row.get("code", ""),
        inputs=inputs,
        n_base_inputs=len(inputs),
        atol=float(row.get("atol", 0.0)),
        cluster=row.get("cluster", ""),
    )
    _check(task, where)
    return task


def _check(task: Task, where: str) -> None:
    if not task.id:
        raise _error(where, "id", "a name", "an empty one")
    if not task.entry_point.isidentifier() or keyword.iskeyword(task.entry_point):
        raise _error(where, "entry_point", "the name of a Python function", repr(task.entry_point))
    if not (math.isfinite(task.atol) and task.atol >= 0):
        raise _error(where, "atol", "a finite number of 0 or more", repr(task.atol))
    if task.kind is TaskKind.FUNCTION:
        if not task.inputs:
            raise _error(where, "inputs", "at least one argument list for a task of kind 'function'", "none")
        _check_program(task, where)
    elif not task.code:
        raise _error(where, "code", "the program whose output is predicted, for a task of kind 'output'", "none")


def _check_program(task: Task, where: str) -> None:
    try:
        tree = parse_program(f"{task.code}\n{task.reference}")
    except SyntaxError as error:
        raise _error(where, "reference", "a Python program", f"SyntaxError: {error}") from None
    if not defines(tree, task.entry_point):
        raise _error(where, "reference", f"a program that defines {task.entry_point!r} at top level", "none of that name")


def _encoded(item: object, place: str) -> str:
    """An argument list, given as JSON or as the text of a Python list or tuple literal."""
    arguments = item
    if isinstance(item, str):
        try:
            arguments = ast.literal_eval(item.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            found = f"{type(error).__name__}: {error}"[:200]
            raise DataError(place, expected="a Python literal", found=found, remedy=REMEDY) from None
    if not isinstance(arguments, list | tuple):
        expected = "a list of arguments (one argument is a list of one)"
        raise DataError(place, expected=expected, found=type(arguments).__name__, remedy=REMEDY)
    try:
        return encode(list(arguments), max_bytes=INPUT_MAX_BYTES)
    except (UnencodableError, TooLargeError) as error:
        raise DataError(place, expected="arguments that can be encoded", found=str(error), remedy=REMEDY) from None


def _error(where: str, field: str, expected: str, found: str) -> DataError:
    return DataError(f"{where}, field {field!r}", expected=expected, found=found, remedy=REMEDY)
