"""CRUXEval, output prediction: what does ``f(input)`` return?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalnoise.benchmarks.base import SHARED_VARIABLE, benchmark, check_fields, data_path, json_lines, read_source
from evalnoise.canonical import canonical_json
from schemas.errors import DataError
from schemas.records import Benchmark, Task, TaskKind
from schemas.study import CruxevalBenchmark

REMEDY = (
    "The tasks are public: facebookresearch/cruxeval on GitHub, data/cruxeval.jsonl; recorded generations of several models are in "
    f"crux-eval/crux-eval.github.io. Let {SHARED_VARIABLE} name the folder whose data/cruxeval/ holds them, or let the study's "
    "`benchmark.path` name the file."
)
_FIELDS = {"code": str, "input": str, "output": str, "id": str}


PUBLISHED_TASKS = 800
PUBLISHED_SHA256 = "688f0c94f42dad0d8b92d1d39018f50c26c5fbed3298780f234a2f7c85b36616"
"""Digest over id, code, input and output of the published tasks in order: how a file writes them down does not matter."""


def load_cruxeval(spec: CruxevalBenchmark) -> Benchmark:
    """The tasks of a CRUXEval file in file order: the published ones, unless the study names another file's digest.

    Raises DataError.
    """
    path = data_path(spec.path)
    data, source = read_source(path, sha256=spec.sha256, remedy=REMEDY)
    rows = list(_rows(data, path))
    if spec.sha256 is None:
        _check_published(path, [row for _, row in rows])
    return benchmark("cruxeval", ((where, _task(row)) for where, row in rows), [source], remedy=REMEDY)


def _check_published(path: Path, rows: list[dict[str, Any]]) -> None:
    content = canonical_json([[row["id"], row["code"], row["input"], row["output"]] for row in rows])
    if hashlib.sha256(content).hexdigest() != PUBLISHED_SHA256:
        raise DataError(
            str(path),
            expected=f"the {PUBLISHED_TASKS} published tasks of CRUXEval",
            found=f"{len(rows)} tasks" if len(rows) != PUBLISHED_TASKS else "altered tasks",
            remedy=f"{REMEDY} For a set of your own, name its digest in the study's `benchmark.sha256`.",
        )


def _rows(data: bytes, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for where, row in json_lines(data, path, remedy=REMEDY):
        check_fields(row, where, required=_FIELDS, remedy=REMEDY)
        yield where, row


def _task(row: dict[str, Any]) -> Task:
    return Task(
        id=row["id"],
        kind=TaskKind.OUTPUT,
        prompt=_prompt(row["code"], row["input"]),
        reference=row["output"],
        entry_point="f",
        code=row["code"],
    )


def _prompt(code: str, argument: str) -> str:
    return (
        f"Given this Python program:\n\n{code}\n\nWhat does the call below return?\n\nf({argument})\n\n"
        "Answer with the returned value alone, written as a Python literal."
    )
