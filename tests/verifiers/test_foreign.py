"""What a checker of another distribution raises is an error that names it; it ends no run of a sandbox in the middle."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import ExecutorError, ExitCode
from schemas.records import Outcome, Reason
from schemas.verifier import VerifierSpec
from tests.support.distributions import install_the_guides_example
from tests.verifiers.support import function_task
from verifiers.exact import Exact
from verifiers.registry import make_checker
from verifiers.verify import Verifier, resolve_executor

TASK = function_task("def f(xs):\n    return sorted(xs)\n", ([3, 1, 1],), ([],))


def changed(folder: Path, old: str, new: str) -> Path:
    """The guide's example with one change; its file."""
    install_the_guides_example(folder)
    file = folder / "unordered_checker.py"
    source = file.read_text()
    assert source.count(old) == 1
    file.write_text(source.replace(old, new))
    return file


def verifier() -> Verifier:
    spec = VerifierSpec(executor="process", checker="unordered", workers=1)
    with pytest.warns(UserWarning, match="no sandbox"):
        return Verifier(spec, "unordered", resolve_executor(spec, ["oracle"]))


def error_of(future: Future[Any]) -> ExecutorError:
    with pytest.raises(ExecutorError) as caught:
        future.result(60)
    assert caught.value.exit_code is ExitCode.EXECUTOR
    assert caught.value.where == f"checker unordered of unordered-checker 1.2, task {TASK.id}"
    return caught.value


@pytest.mark.parametrize(
    ("method", "old", "new", "found"),
    [
        ("canonical", "return task.reference", "raise KeyError('oops')", "KeyError: 'oops'"),
        ("canonical", "return task.reference", "return None", "TypeError: it returned NoneType, not str"),
        ("known_bad", "return known_bad_functions(task)", "return {'x': 1}", "TypeError: it returned int, not str"),
        (
            "learn",
            "judgement, run = bench.run(job, lambda run: self._outputs(run, inputs))",
            "1 / 0",
            "ZeroDivisionError: division by zero",
        ),
        ("check", "self._judge(run, reference))", "3)", "AttributeError: 'int' object has no attribute 'reason'"),
        ("check", "self._judge(run, reference))", "{}['\\x1b' + str(reference)[:0]])", r"KeyError: '\x1b'"),
    ],
)
def test_the_error_names_checker_task_and_line(packages: Path, method: str, old: str, new: str, found: str) -> None:
    file = changed(packages, old, new)
    with verifier() as made:
        error = error_of(made.reference(TASK))
    assert error.expected == f"`{method}` to return, whatever the candidate does"
    lines = file.read_text().splitlines()
    line = next((number for number, text in enumerate(lines, 1) if new in text), 0)
    place = f" ({file}:{line})"  # of a value of a wrong type that a method itself returned, none is known
    assert error.found == (found if found.endswith("not str") else f"{found}{place}")


def test_a_judge_that_stumbles_over_one_candidate_leaves_the_pool_in_order(packages: Path) -> None:
    changed(
        packages,
        "judgement = self._outputs(run, reference.inputs_used)\n",
        "judgement = self._outputs(run, reference.inputs_used)\n        judgement.outputs[-1]\n",
    )
    with verifier() as made:
        reference = made.reference(TASK).result(60)
        assert reference.outcome is Outcome.PASS, "every input was answered, so the last output is there"
        error = error_of(made.check(TASK, reference, "def f(xs):\n    return xs[9]\n"))
        assert error.found.startswith("IndexError: tuple index out of range (")
        again = made.check(TASK, reference, TASK.reference).result(60)
        assert (again.reason, again.rechecks) == (Reason.PASS, ()), "the pool goes on"


def test_ours_are_as_they_are() -> None:
    assert isinstance(make_checker("exact", {}), Exact)
