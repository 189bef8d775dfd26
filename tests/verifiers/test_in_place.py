"""Arguments that a candidate changes: part of the result where the task says so, noted where it does not. In real containers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from evalnoise.benchmarks.starter import load_starter
from schemas.records import Check, Outcome, Reason, Reference, Task
from schemas.verifier import VerifierSpec
from tests.verifiers.support import function_task
from verifiers.verify import Verifier, resolve_executor

pytestmark = pytest.mark.docker

SORTS = "def f(xs, *, reverse=False):\n    xs.sort()\n    return xs\n"
COPIES = "def f(xs):\n    return sorted(xs)\n"
PLAIN = function_task(COPIES, ([3, 1, 2],), ([],), ([1],), ([2, 1],))
IN_PLACE = replace(PLAIN, reference=SORTS, in_place=True)
STARTER = "05-drop-negatives 12-bubble-pass 19-flip-square 26-take-stock 33-bounded-queue 40-fold-counts 47-rotate-list"


@pytest.fixture(scope="module")
def verifier(docker_engine: str) -> Iterator[Verifier]:
    spec = VerifierSpec(executor="docker", workers=1)
    with Verifier(spec, "differential", resolve_executor(spec, ["recording"])) as verifier:
        yield verifier


def learn(verifier: Verifier, task: Task) -> Reference:
    reference = verifier.reference(task).result(60)
    assert reference.outcome is Outcome.PASS, reference
    return reference


def ask(verifier: Verifier, task: Task, candidate: str) -> Check:
    return verifier.check(task, learn(verifier, task), candidate).result(60)


def test_what_arguments_hold_after_the_call_is_part_of_the_result(verifier: Verifier) -> None:
    assert learn(verifier, IN_PLACE).outputs == ("[[1,2,3],[[1,2,3]]]", "[[],[[]]]", "[[1],[[1]]]", "[[1,2],[[1,2]]]")
    right = ask(verifier, IN_PLACE, "def f(xs):\n    xs[:] = sorted(xs)\n    return [*xs]\n")
    assert (right.reason, right.mutated_inputs) == (Reason.PASS, None)
    copies = ask(verifier, IN_PLACE, COPIES)
    assert (copies.reason, copies.detail) == (
        Reason.MISMATCH,
        "input 0: expected [[1, 2, 3], [[1, 2, 3]]], found [[1, 2, 3], [[3, 1, 2]]]",
    )
    nothing = ask(verifier, IN_PLACE, "def f(xs):\n    xs.sort()\n")
    assert (nothing.reason, nothing.detail) == (
        Reason.MISMATCH,
        "input 0: expected [[1, 2, 3], [[1, 2, 3]]], found [None, [[1, 2, 3]]]",
    )
    unsayable = ask(verifier, IN_PLACE, "def f(xs):\n    xs.append(print)\n    return []\n")
    assert (unsayable.reason, unsayable.detail) == (Reason.UNENCODABLE, "input 0: type builtins.builtin_function_or_method")


def test_elsewhere_a_change_is_noted_and_counts_for_nothing(verifier: Verifier) -> None:
    changes = ask(verifier, PLAIN, SORTS)
    assert (changes.outcome, changes.mutated_inputs) == (Outcome.PASS, 2), "two of the four lists are sorted already"
    assert ask(verifier, PLAIN, COPIES).mutated_inputs == 0
    spoils = ask(verifier, PLAIN, "def f(xs):\n    found = sorted(xs)\n    xs.append(print)\n    return found\n")
    assert (spoils.outcome, spoils.mutated_inputs) == (Outcome.PASS, 4), "also where the changed arguments cannot be encoded"
    assert ask(verifier, PLAIN, "def f(xs):\n    xs.clear()\n    return 0\n").mutated_inputs is None, (
        "a failed candidate is not counted"
    )


def test_starter_tasks_that_ask_for_a_change_see_it(verifier: Verifier) -> None:
    tasks = [task for task in load_starter().tasks if task.in_place]
    assert [task.id for task in tasks] == [f"starter/{slug}" for slug in STARTER.split()]
    for task in tasks:
        name = task.entry_point
        on_copies = (
            f"{task.reference}\n_inner = {name}\ndef {name}(*args):\n    import copy\n    return _inner(*copy.deepcopy(args))\n"
        )
        assert ask(verifier, task, on_copies).reason is Reason.MISMATCH, task.id
        assert ask(verifier, replace(task, in_place=False), on_copies).reason is Reason.PASS, task.id
