"""Whole runs with other checkers: a user's own from a distribution beside ours, test bodies, and answers that need no engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from flows.cli import app
from tests.support import stages
from tests.support.distributions import install_the_guides_example

pytestmark = pytest.mark.prefect
NO_ENGINE = {"DOCKER_HOST": "tcp://127.0.0.1:1"}
STUDY = """
study: {name}
benchmark: {{name: jsonl, path: {path}}}
stacks:
  - name: a
    model: oracle
    provider: {{name: oracle, seed: 3, stable: 0.0, alpha: 1.0, beta: 1.0}}
    retry: resample
    verifier: {verifier}
conditions:
  - {{name: live, kind: live}}
  - {{name: replay, kind: replay, source: {{condition: live}}}}
  - {{name: again, kind: reverify, source: {{condition: live}}}}
replicates: 2
analysis: {{resamples: 200}}
"""
SORTED = {
    "prompt": "Write `f(xs)`: the members of xs.", "entry_point": "f", "reference": "def f(xs):\n    return sorted(xs)\n",
    "inputs": [[[3, 1, 2]], [[]], [["b", "a"]]],
}  # fmt: skip
ROOT = {
    "prompt": "Write `f(x)`: a number whose square is x.", "entry_point": "f", "reference": "def f(x):\n    return x ** 0.5\n",
    "test": "def check(candidate):\n    for x in (0, 2, 9):\n        assert abs(candidate(x) ** 2 - x) < 1e-6\n",
}  # fmt: skip
ANSWERS = [
    {"id": "a/capital", "kind": "answer", "prompt": "What is the capital of France?", "reference": "Paris"},
    {"id": "a/half", "kind": "answer", "prompt": "A coin is thrown once. How likely is heads?", "reference": 0.5},
    {"id": "a/sum", "kind": "answer", "prompt": "17 + 25?", "reference": "42"},
    {"id": "a/big", "kind": "answer", "prompt": "1,000 x 1,000?", "reference": "1,000,000"},
]


def in_process(*arguments: str | Path, **environment: str) -> Result:
    """A command that needs no server, without the second that an interpreter takes to start."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"} | environment)


def study(folder: Path, name: str, rows: list[dict[str, object]], verifier: dict[str, object]) -> Path:
    tasks, file = folder / "tasks.jsonl", folder / "study.yaml"
    tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))
    file.write_text(STUDY.format(name=name, path=json.dumps(str(tasks)), verifier=json.dumps(verifier)))
    return file


@pytest.mark.docker
def test_a_users_own_checker(docker_engine, evalnoise, tmp_path) -> None:
    install_the_guides_example(tmp_path / "packages")
    found = {"PYTHONPATH": str(tmp_path / "packages")}
    verifier = {"checker": "unordered", "options": {"duplicates": False}, "workers": 1}
    file, store = study(tmp_path, "own", [{"id": f"t/{n}", **SORTED} for n in range(3)], verifier), tmp_path / "store"
    planned = evalnoise("plan", file, "--store", store, **found)
    assert "Stack a: checker unordered 1 of unordered-checker 1.2 (duplicates false), executor docker" in planned.stdout
    done = evalnoise("run", file, "--store", store, **found)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    (protocol,) = (json.loads(path.read_text()) for path in (store / "protocols").glob("*.json"))
    assert protocol["checkers"] == {
        "a": {"name": "unordered", "version": 1, "options": {"duplicates": False}, "distribution": "unordered-checker 1.2"}
    }
    said = {
        reason: detail
        for reason, detail in stages.rows(store, "select distinct reason, detail from executions")
        if reason == "mismatch"
    }
    assert "in any order" in said["mismatch"]
    assert {executor for (executor,) in stages.rows(store, "select distinct executor from executions")} == {"docker"}
    gone = in_process("run", file, "--store", store)
    assert gone.exit_code == 3
    assert "stacks.0.verifier.checker: expected a registered checker" in gone.stderr


@pytest.mark.docker
def test_test_bodies(docker_engine, evalnoise, tmp_path) -> None:
    file, store = study(tmp_path, "tests", [{"id": f"t/{n}", **ROOT} for n in range(3)], {"workers": 1}), tmp_path / "store"
    done = evalnoise("run", file, "--store", store)
    assert done.returncode == 0, done.stderr
    rows = stages.rows(store, "select task_id, outcome, known_bad, len(outputs), mutant <> '' from preflight order by 1")
    assert rows == [(f"t/{n}", "pass", "wrong value", 3, True) for n in range(3)]
    failed = stages.rows(store, "select distinct detail from executions where reason = 'mismatch'")
    assert failed, "the oracle's mutants fail the test"
    assert all(detail.startswith("assert on line 3: assert abs(candidate(x) ** 2 - x) < 1e-6; call ") for (detail,) in failed)
    assert stages.rows(store, "select distinct mutated_inputs from executions where outcome = 'pass'") == [(0,)]


def test_answers_need_no_engine(environment, evalnoise, tmp_path) -> None:
    file, store = study(tmp_path, "answers", ANSWERS, {"options": {"tolerance": 0.001}}), tmp_path / "store"
    planned = in_process("plan", file, "--store", store, **NO_ENGINE)
    assert 'Stack a: checker exact 1 (compare "auto", case false, tolerance 0.001), runs no code.' in planned.stdout
    done = evalnoise("run", file, "--store", store, **NO_ENGINE)
    assert done.returncode == 0, done.stderr
    assert "sandbox" not in done.stdout + done.stderr
    preflight = stages.rows(store, "select task_id, outcome, outputs, mutant, known_bad from preflight order by position")
    assert preflight == [
        ("a/capital", "pass", ["paris"], "Pari", "wrong value"),
        ("a/half", "pass", ["0.5"], "0.6", "wrong value"),
        ("a/sum", "pass", ["42"], "43", "wrong value"),
        ("a/big", "pass", ["1,000,000"], "1,000,001", "wrong value"),
    ]
    assert stages.rows(store, "select distinct executor, image_id, rootfs, python, cpu_seconds from executions") == [
        ("none", "", "", "", 0.0)
    ]
    failed = stages.rows(store, "select distinct task_id, detail from executions where outcome = 'fail' order by 1")
    expected = {
        "a/capital": "expected Paris, found Pari", "a/half": "expected 0.5, found 0.6", "a/sum": "expected 42, found 43",
        "a/big": "expected 1,000,000, found 1,000,001",
    }  # fmt: skip
    assert failed
    assert all(expected[task] == detail for task, detail in failed)
    assert {rule for (rule,) in stages.rows(store, "select distinct extraction_rule from generations")} == {"answer-line"}
    shown = in_process("show", "a/sum", "--store", store)
    assert shown.exit_code == 0, shown.output
    assert "a/sum  jsonl, position 2, answer" in shown.stdout
    assert "17 + 25?" in shown.stdout
    doctor = in_process("doctor", file, "--store", store, **environment, **NO_ENGINE)
    assert doctor.exit_code == 0
    assert "none answers, and this study needs none: its checkers run no code" in doctor.stdout


def test_a_file_of_two_kinds_is_refused(tmp_path) -> None:
    file = study(tmp_path, "mixed", [*ANSWERS[:1], {"id": "t", **ROOT}], {})
    done = in_process("plan", file, "--store", tmp_path / "store")
    assert done.exit_code == 4
    assert "expected tasks of one kind, because a stack has one checker, found tasks of kind answer and function" in done.stderr
