"""Checker `evalplus` against what EvalPlus 0.3.1 says itself, of canonical solutions and of mutants.

`python -m perf.agreement --write` stored EvalPlus's verdicts on all tasks; here a sample is checked again: every task with a
special rule, with dropped inputs, or on which `differential` says something else, and every third of the others that are quick.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.mutants import mutants
from schemas.records import Check, Outcome, Task
from schemas.study import EvalplusBenchmark
from schemas.verifier import VerifierSpec
from verifiers.verify import Verifier, resolve_executor

pytestmark = [pytest.mark.docker, pytest.mark.realdata, pytest.mark.usefixtures("docker_engine")]

STORED = json.loads((Path(__file__).parents[1] / "reference" / "evalplus_0_3_1.json").read_text(encoding="utf-8"))
COUNTS = {"HumanEval": 164, "Mbpp": 378}
FIND_ZERO = "HumanEval/32"
DROPPED = {*(f"HumanEval/{number}" for number in (15, 83, 100, 130)), "Mbpp/630"}
TYPES = {"HumanEval/147", "Mbpp/264"}
"""Their mutants give False and 21.0 for 0 and 21: equal to EvalPlus, not to `differential`."""
SLOW = {f"Mbpp/{number}" for number in (123, 255, 271, 300, 389, 392, 589, 592, 599, 603)} | {"HumanEval/139"}


def verdicts(task_id: str, kind: str) -> tuple[str, str]:
    """What EvalPlus says: of the base inputs, and of all."""
    base, plus = STORED["verdicts"][task_id][kind]
    return ("pass" if base == "pass" else "fail"), ("pass" if base == plus == "pass" else "fail")


def first_mutant(task: Task) -> str:
    program = next(mutants(task))
    compile(program, "<mutant>", "exec")
    return program


def ours(check: Check) -> tuple[str | None, str]:
    return (check.base_outcome and check.base_outcome.value), check.outcome.value


def test_what_is_stored() -> None:
    assert STORED["evalplus"] == "0.3.1"
    rows = STORED["verdicts"]
    assert {name: sum(task_id.startswith(name) for task_id in rows) for name in COUNTS} == COUNTS
    failed = {task_id for task_id in rows if verdicts(task_id, "canonical") != ("pass", "pass")}
    assert failed == {FIND_ZERO}, "0.3.1 fails every solution of it"


@pytest.mark.parametrize(("dataset", "file"), [("humaneval", "HumanEvalPlus"), ("mbpp", "MbppPlus")])
def test_verdicts_are_evalplus(shared: Path, dataset: str, file: str) -> None:
    path = shared / "data" / "evalplus" / f"{file}.jsonl.gz"
    row: dict[str, Any] = {"name": "evalplus", "dataset": dataset, "path": str(path)}
    tasks = load_benchmark(EvalplusBenchmark.model_validate(row)).tasks
    always = DROPPED | TYPES
    sample = [task for n, task in enumerate(tasks) if task.oracle or task.id in always or (n % 3 == 0 and task.id not in SLOW)]
    spec = VerifierSpec(executor="docker", checker="evalplus", workers=2)
    with Verifier(spec, "evalplus", resolve_executor(spec, [])) as verifier:
        waiting = {task.id: verifier.reference(task) for task in sample}
        references = {task_id: future.result(120) for task_id, future in waiting.items()}
        assert {each.outcome for each in references.values()} == {Outcome.PASS}
        checking = {
            (task.id, kind): verifier.check(task, references[task.id], program)
            for task in sample
            for kind, program in (("canonical", task.reference), ("mutant", first_mutant(task)))
        }
        found = {key: ours(future.result(120)) for key, future in checking.items()}
    for task in sample:
        assert hashlib.sha256(first_mutant(task).encode()).hexdigest() == STORED["verdicts"][task.id]["mutant_sha256"]
    different = {key for key, found_verdicts in found.items() if found_verdicts != verdicts(*key)}
    expected = {(FIND_ZERO, "canonical"), (FIND_ZERO, "mutant")}
    assert different == (expected if dataset == "humaneval" else set())
    assert len(found) == 2 * len(sample) >= 110
