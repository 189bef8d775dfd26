"""CRUXEval's two rules on recorded generations: the published verdicts, and the seven that one expression decides otherwise."""

from __future__ import annotations

import ast
import json
import random
from pathlib import Path

import pytest

from schemas.records import Outcome, Reference, Task, TaskKind
from schemas.verifier import VerifierSpec
from verifiers.verify import Verifier, resolve_executor

pytestmark = [pytest.mark.docker, pytest.mark.realdata]

FILES = [f"{model}_temp{temperature}" for model in ("codellama-7b", "gpt-3.5-turbo-0613") for temperature in ("0.2", "0.8")]
SIX = [
    *[("codellama-7b_temp0.8", task, generation) for task in ("sample_354", "sample_798") for generation in (8, 9)],
    ("codellama-7b_temp0.8", "sample_669", 9),
    ("gpt-3.5-turbo-0613_temp0.8", "sample_130", 2),
]
CALL = ("gpt-3.5-turbo-0613_temp0.8", "sample_42", 7)
"""The one published pass among 32,000 that calls the function instead of saying what it returns."""
OTHERWISE = [*SIX, CALL]
Cell = tuple[str, str, int]


@pytest.fixture(scope="module")
def cruxeval(shared: Path) -> tuple[dict[str, Task], dict[Cell, tuple[str, bool]]]:
    folder = shared / "data" / "cruxeval"
    tasks = {}
    for line in (folder / "tasks.jsonl").read_text().splitlines():
        row = json.loads(line)
        tasks[row["id"]] = Task(row["id"], TaskKind.OUTPUT, "", row["output"], "f", code=row["code"])
    cells = {}
    for name in FILES:
        for line in (folder / f"{name}_output.jsonl").read_text().splitlines():
            row = json.loads(line)
            for index, pair in enumerate(zip(row["generations"], row["passed"], strict=True)):
                cells[name, row["task_id"], index] = pair
    return tasks, cells


def verdicts(rule: str, tasks: dict[str, Task], cells: dict[Cell, str]) -> dict[Cell, Outcome]:
    spec = VerifierSpec(executor="docker", workers=2)
    with Verifier(spec, rule, resolve_executor(spec, ["recording"])) as verifier:
        waiting = {task: verifier.reference(tasks[task]) for task in {cell[1] for cell in cells}}
        references: dict[str, Reference] = {task: future.result(60) for task, future in waiting.items()}
        assert {reference.outcome for reference in references.values()} == {Outcome.PASS}
        checks = {cell: verifier.check(tasks[cell[1]], references[cell[1]], text) for cell, text in cells.items()}
        return {cell: check.result(120).outcome for cell, check in checks.items()}


def test_published_verdicts(docker_engine: str, cruxeval: tuple[dict[str, Task], dict[Cell, tuple[str, bool]]]) -> None:
    tasks, cells = cruxeval
    chosen = [*OTHERWISE, *random.Random(20240501).sample(sorted(cells), 200)]
    got = verdicts("published", tasks, {cell: cells[cell][0] for cell in chosen})
    assert {cell: outcome is Outcome.PASS for cell, outcome in got.items()} == {cell: cells[cell][1] for cell in chosen}
    assert all(cells[cell][1] for cell in OTHERWISE)


def literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return False
    return True


def test_one_expression(docker_engine: str, cruxeval: tuple[dict[str, Task], dict[Cell, tuple[str, bool]]]) -> None:
    """Of 32,000, each different answer once: calls, second statements, commas and an `or` fail, the rest is as published.

    Every answer that passes or is no literal is there, and every sixth literal that fails.
    """
    tasks, cells = cruxeval
    assert len(cells) == 32_000
    first: dict[tuple[str, str], Cell] = {}
    for cell, (text, _) in cells.items():
        first.setdefault((cell[1], text), cell)
    assert len(first) == 6_653
    chosen = {key: cell for n, (key, cell) in enumerate(first.items()) if cells[cell][1] or n % 6 == 0 or not literal(key[1])}
    got = verdicts("expression", tasks, {cell: text for (_, text), cell in chosen.items()})
    passes = {cell: got[chosen[cell[1], text]] is Outcome.PASS for cell, (text, _) in cells.items() if (cell[1], text) in chosen}
    assert {cell for cell, (_, passed) in cells.items() if passed} < passes.keys()
    assert {cell for cell, passed in passes.items() if passed != cells[cell][1]} == set(OTHERWISE)
    assert not any(passes[cell] for cell in OTHERWISE)
