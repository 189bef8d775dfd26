"""Canonical solutions of HumanEval+ and MBPP+ through preflight: the few that cannot serve, with their reasons.

Every second one, and all those few; `python -m perf.canonicals` has them all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from evalnoise.benchmarks.load import load_benchmark
from schemas.records import Outcome
from schemas.study import EvalplusBenchmark
from schemas.verifier import VerifierSpec
from verifiers.verify import Verifier, resolve_executor

pytestmark = [pytest.mark.docker, pytest.mark.realdata, pytest.mark.usefixtures("docker_engine")]

SLOW = {f"Mbpp/{number}" for number in (123, 271, 389, 392, 589, 592, 599, 603)}
"""Seconds each, and all of them pass; left out to keep the test short."""


@pytest.mark.parametrize(
    ("dataset", "file", "count", "unusable", "dropped"),
    [
        (
            "humaneval",
            "HumanEvalPlus",
            (164, 84),
            {},
            {"HumanEval/15": 20, "HumanEval/83": 7, "HumanEval/100": 1, "HumanEval/130": 7},
        ),
        ("mbpp", "MbppPlus", (378, 189), {f"Mbpp/{n}": "unencodable" for n in (737, 787, 794)}, {"Mbpp/255": 6, "Mbpp/630": 10}),
    ],
)
def test_canonical_solutions(
    shared: Path, *, dataset: str, file: str, count: tuple[int, int], unusable: dict[str, str], dropped: dict[str, int]
) -> None:
    path = shared / "data" / "evalplus" / f"{file}.jsonl.gz"
    benchmark = load_benchmark(EvalplusBenchmark(name="evalplus", dataset=dataset, path=str(path)))  # type: ignore[arg-type]
    odd = unusable.keys() | dropped.keys()
    sample = [task for place, task in enumerate(benchmark.tasks) if task.id in odd or (place % 2 and task.id not in SLOW)]
    spec = VerifierSpec(executor="docker", workers=2)
    with Verifier(spec, "differential", resolve_executor(spec, [])) as verifier:
        waiting = [verifier.reference(task) for task in sample]
        references = [future.result(300) for future in waiting]
    assert (len(benchmark.tasks), len(references)) == count
    assert {each.task_id: each.reason.value for each in references if each.outcome is not Outcome.PASS} == unusable
    assert {each.task_id: each.n_dropped for each in references if each.n_dropped} == dropped
