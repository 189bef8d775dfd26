"""Millions of lines, or one giant line, cost the host next to nothing: a checker stops at the first that cannot be there."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from schemas.records import Outcome, Reason, Reference, Task, TaskKind
from tests.verifiers.support import function_task, output_task, ran, reference_of
from verifiers.asserts import Asserts
from verifiers.differential import Differential
from verifiers.evalplus import Part, judge
from verifiers.jobs import Job, Judgement, Line, Run
from verifiers.output import Expression, Published

SIZE = 8 * 2**20
CALLS = 60
FUNCTION = function_task("", *[(place,) for place in range(CALLS)])
ONES = ("1",) * CALLS
PART = Part("base", tuple(range(CALLS)), FUNCTION.inputs, expected=ONES, limits=(4.0,) * CALLS)


class Answers:
    """A bench whose candidates write one text, and whose test makes every call."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def run(self, _: Job, judge: Callable[[Run], Judgement]) -> tuple[Judgement, Run]:
        return judge(self._run), self._run

    def run_tests(self, _: Job, judge: Callable[[Run], Judgement]) -> tuple[Judgement, Run]:
        run = ran(f"k{CALLS}\n.\n")
        return judge(run), run

    def forget(self) -> None:
        raise AssertionError("there was one round")


def asserts(run: Run) -> Judgement:
    task = Task("t", TaskKind.FUNCTION, "", "", "f", test="")
    calls = tuple(f"[[{place}],{{}}]" for place in range(CALLS))
    return Asserts().check(Answers(run), task, Reference("t", Outcome.PASS, Reason.PASS, outputs=calls), "", 1.0)


JUDGES: dict[str, Callable[[Run], Judgement]] = {
    "differential": lambda run: Differential().judge(FUNCTION, reference_of(*ONES), run),
    "differential in place": lambda run: Differential().judge(replace(FUNCTION, in_place=True), reference_of(*ONES), run),
    "differential learns": lambda run: Differential().outputs(run, CALLS),
    "evalplus": lambda run: judge(FUNCTION, PART, run),
    "asserts": asserts,
    "expression": lambda run: Expression().judge(output_task("", "1"), reference_of("1"), run),
    "published": lambda run: Published().judge(output_task("", "1"), reference_of("1"), run),
}
BEGINNINGS = {"evalplus": "t0.000001\no1\n", "published": "o1\nk\nk\n"}
PER_INPUT = {"differential": "o", "differential in place": "o", "differential learns": "olx"}
"""What may stand once per input."""


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The letters of the lines that were read."""
    plain, seen = Run.lines, []

    def lines(run: Run) -> Iterator[tuple[str, str]]:
        for letter, body in plain(run):
            seen.append(letter)
            yield letter, body

    monkeypatch.setattr(Run, "lines", lines)
    return seen


def peak(judge: Callable[[Run], Judgement], run: Run) -> tuple[Judgement, int]:
    tracemalloc.start()
    try:
        return judge(run), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("letter", ["", "!", *(line.value for line in Line)])
@pytest.mark.parametrize("name", JUDGES)
def test_many_lines(name: str, letter: str, begins: bool, looked_at: list[str]) -> None:
    beginning = BEGINNINGS.get(name, "o1\n") if begins else ""
    line = f"{letter}\n".encode()
    judgement, memory = peak(JUDGES[name], ran(beginning.encode() + line * (SIZE // len(line))))
    assert judgement.reason is not Reason.PASS or (begins and letter == Line.DONE and name in {"expression", "published"})
    most = beginning.count("\n") + 3 + (CALLS if letter and letter in PER_INPUT.get(name, "") else 0)
    # The test of `asserts` has two lines, read twice; `evalplus` looks for the times of all its inputs.
    assert 0 < len(looked_at) <= most + {"asserts": 4, "evalplus": 2 * CALLS}.get(name, 0)
    assert memory < 2**20


@pytest.mark.parametrize("letter", ["!", *(line.value for line in Line)])
@pytest.mark.parametrize("name", JUDGES)
def test_one_giant_line(name: str, letter: str, looked_at: list[str]) -> None:
    body = letter.encode() + b"1" * SIZE + b"\n"
    judgement, memory = peak(JUDGES[name], ran(body))
    assert judgement.reason is not Reason.PASS
    assert len(judgement.detail) <= 300
    assert looked_at == [letter]
    assert memory < SIZE + 2**20, "one copy"
