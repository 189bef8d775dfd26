"""CRUXEval, output prediction: what does ``f(input)`` return?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evalnoise.benchmarks.base import SHARED_VARIABLE, benchmark, check_fields, data_path, json_lines, read_source
from schemas.records import Benchmark, Task, TaskKind
from schemas.study import CruxevalBenchmark

REMEDY = (
    "The tasks are public: facebookresearch/cruxeval on GitHub, data/cruxeval.jsonl; recorded generations of several models are in "
    f"crux-eval/crux-eval.github.io. Let {SHARED_VARIABLE} name the folder whose data/cruxeval/ holds them, or let the study's "
    "`benchmark.path` name the file."
)
_FIELDS = {"code": str, "input": str, "output": str, "id": str}


def load_cruxeval(spec: CruxevalBenchmark) -> Benchmark:
    """The tasks of a CRUXEval file in file order. Raises DataError."""
    path = data_path(spec.path)
    data, source = read_source(path, sha256=spec.sha256, remedy=REMEDY)
    return benchmark("cruxeval", _tasks(data, path), [source], remedy=REMEDY)


def _tasks(data: bytes, path: Path) -> Iterator[tuple[str, Task]]:
    for where, row in json_lines(data, path, remedy=REMEDY):
        check_fields(row, where, required=_FIELDS, remedy=REMEDY)
        yield (
            where,
            Task(
                id=row["id"],
                kind=TaskKind.OUTPUT,
                prompt=_prompt(row["code"], row["input"]),
                reference=row["output"],
                entry_point="f",
                code=row["code"],
            ),
        )


def _prompt(code: str, argument: str) -> str:
    return (
        f"Given this Python program:\n\n{code}\n\nWhat does the call below return?\n\nf({argument})\n\n"
        "Answer with the returned value alone, written as a Python literal."
    )
