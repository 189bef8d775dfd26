"""One's own tasks: JSON Lines, one task a line. docs/guide/benchmarks.md describes the format."""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evalnoise.benchmarks.base import INPUT_MAX_BYTES, Kinds, benchmark, check_fields, data_path, json_lines, read_source
from evalnoise.programs import defines, parse_program
from schemas.errors import DataError
from schemas.records import Benchmark, Task, TaskKind
from schemas.study import JsonlBenchmark
from schemas.values import TooLargeError, UnencodableError, encode

REMEDY = "The format is described in docs/guide/benchmarks.md, with a complete example."
_REQUIRED: Mapping[TaskKind, Mapping[str, Kinds]] = {
    TaskKind.FUNCTION: {"id": str, "prompt": str, "entry_point": str, "reference": str},
    TaskKind.OUTPUT: {"id": str, "prompt": str, "entry_point": str, "reference": str, "code": str},
    TaskKind.ANSWER: {"id": str, "prompt": str, "reference": (str, int, float)},
}
_FOR_ALL: Mapping[str, Kinds] = {"kind": str, "cluster": str}
_OPTIONAL: Mapping[TaskKind, Mapping[str, Kinds]] = {
    TaskKind.FUNCTION: {
        "code": str,
        "inputs": list,
        "n_base_inputs": int,
        "test": str,
        "in_place": bool,
        "atol": (int, float),
    },
    TaskKind.OUTPUT: {"inputs": list, "atol": (int, float)},
    TaskKind.ANSWER: {},
}


def load_jsonl(spec: JsonlBenchmark) -> Benchmark:
    """The tasks of a file in file order; the benchmark is named ``jsonl`` wherever the file lies. Raises DataError."""
    path = data_path(spec.path)
    data, source = read_source(path, sha256=spec.sha256, remedy=REMEDY)
    return benchmark("jsonl", _tasks(data, path), [source], remedy=REMEDY)


def _tasks(data: bytes, path: Path) -> Iterator[tuple[str, Task]]:
    for where, row in json_lines(data, path, remedy=REMEDY):
        kind = row.get("kind", TaskKind.FUNCTION)
        if not isinstance(kind, str) or kind not in set(TaskKind):
            raise _error(where, "kind", " or ".join(repr(str(kind)) for kind in TaskKind), repr(kind))
        kind = TaskKind(kind)
        check_fields(row, where, required=_REQUIRED[kind], optional={**_FOR_ALL, **_OPTIONAL[kind]}, remedy=REMEDY)
        yield where, _task(row, kind, where)


def _task(row: Mapping[str, Any], kind: TaskKind, where: str) -> Task:
    inputs = tuple(_encoded(item, f"{where}, input {number}") for number, item in enumerate(row.get("inputs", [])))
    task = Task(
        id=row["id"],
        kind=kind,
        prompt=row["prompt"],
        reference=row["reference"] if isinstance(row["reference"], str) else _number(row["reference"], where),
        entry_point=row.get("entry_point", ""),
        code=row.get("code", ""),
        inputs=inputs,
        n_base_inputs=row.get("n_base_inputs", len(inputs)),
        atol=float(row.get("atol", 0.0)),
        cluster=row.get("cluster", ""),
        test=row.get("test", ""),
        in_place=row.get("in_place", False),
    )
    if not task.id:
        raise _error(where, "id", "a name", "an empty one")
    if not (math.isfinite(task.atol) and task.atol >= 0):
        raise _error(where, "atol", "a finite number of 0 or more", repr(task.atol))
    _CHECKS[kind](task, where)
    return task


def _number(value: float, where: str) -> str:
    """A JSON number as text."""
    try:
        if math.isfinite(value):
            return str(value)
    except (ValueError, OverflowError):  # more digits than Python will write or take for a float
        pass
    raise _error(where, "reference", "a finite number, or a text", "one with too many digits, or none")


def _check_function(task: Task, where: str) -> None:
    _check_name(task, where)
    if not task.inputs and not task.test.strip():
        raise _error(where, "inputs", "at least one argument list, or a `test`, for a task of kind 'function'", "none")
    if not 0 <= task.n_base_inputs <= len(task.inputs):
        raise _error(where, "n_base_inputs", f"a number from 0 to {len(task.inputs)}, as there are inputs", str(task.n_base_inputs))
    _check_program(task, where)
    try:
        parse_program(task.test)
    except SyntaxError as error:
        raise _error(where, "test", "a Python program", f"SyntaxError: {error}") from None


def _check_output(task: Task, where: str) -> None:
    _check_name(task, where)
    if not task.code:
        raise _error(where, "code", "the program whose output is predicted, for a task of kind 'output'", "none")


def _check_answer(task: Task, where: str) -> None:
    lines = task.reference.strip().splitlines()
    if len(lines) != 1:
        raise _error(where, "reference", "one line, because one line of a model's answer is taken", f"{len(lines)} lines")


_CHECKS: Mapping[TaskKind, Callable[[Task, str], None]] = {
    TaskKind.FUNCTION: _check_function,
    TaskKind.OUTPUT: _check_output,
    TaskKind.ANSWER: _check_answer,
}


def _check_name(task: Task, where: str) -> None:
    if not task.entry_point.isidentifier() or keyword.iskeyword(task.entry_point):
        raise _error(where, "entry_point", "the name of a Python function", repr(task.entry_point))


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
