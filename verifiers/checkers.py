"""What a checker is, and what every checker needs: reading a run's lines and naming how a process ended.

Checkers are registered under the entry point group `evalnoise.checkers`; docs/guide/checkers.md shows how to add one.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal, Protocol, TypeVar

from pydantic import BaseModel

from schemas.model import Model
from schemas.records import Reason, Reference, Task, TaskKind
from verifiers.compare import cut
from verifiers.jobs import Ended, Job, Judgement, Lesson, Line, Run

T = TypeVar("T")
Need = Literal["", "inputs", "test"]
"""A part of a task without which a checker can do nothing with it."""

DETAIL = 300
_MOST_OOM = 10
"""Inputs on which a canonical solution may run out of memory: each costs a container."""
_FACTS = 8_192
_LINES = 10**9
_ADDRESS = re.compile(r"(?<=\bat )0x[0-9a-fA-F]{6,}")
"""As the default `repr` writes it; other numbers in hex are values."""


class Bench(Protocol):
    """What a checker runs jobs on. Each run is settled near its limits and kept for the record.

    Both methods that run may raise `verifiers.sandbox.pool.UnavailableError`, which a checker lets pass.
    """

    def run(self, job: Job, judge: Callable[[Run], Judgement]) -> tuple[Judgement, Run]:
        """Run a job in the candidate's sandbox, as often as its verdict needs."""

    def run_tests(self, job: Job, judge: Callable[[Run], Judgement]) -> tuple[Judgement, Run]:
        """The same in a sandbox that no candidate ever enters: for jobs that hold expected values."""

    def forget(self) -> None:
        """Let no later candidate have the candidate's sandbox.

        For checkers that may run a candidate again because of what it answered: it learns by that how right it was, and may have
        left it there for others. They would learn as much from a new sandbox, so this is for all candidates of a task or for none.
        """


class NoOptions(Model):
    """For checkers without options."""


class Checker(Protocol):
    """Learns from the canonical solution, then checks candidates. Expected values never enter a candidate's sandbox.

    A checker is made with its validated options as the only argument and is used by several threads at once, so it keeps no state.
    """

    Options: ClassVar[type[BaseModel]]
    """What the study may set under `verifier.options`."""
    kinds: ClassVar[frozenset[TaskKind]]
    """Kinds of task that it can check."""
    version: ClassVar[int]
    """Raised when its verdict on some candidate changes; part of the protocol."""
    inputs_cap: ClassVar[int | None]
    """Inputs per task at most where the study does not say; None: all."""
    runs_code: ClassVar[bool]
    """Whether it needs a sandbox at all."""
    cpu_seconds: ClassVar[float | None]
    """A CPU limit of the rule's own, instead of the study's; None: the study's."""
    needs: ClassVar[Need] = ""
    """What a task must have. A checker need not say it; empty: nothing beside what every task of its kinds has."""

    def canonical(self, task: Task) -> str:
        """The candidate that must pass."""

    def known_bad(self, task: Task) -> Mapping[str, str]:
        """Candidates of which at least one must fail, by what is wrong with them, the hardest to notice first."""

    def learn(self, bench: Bench, task: Task, inputs: tuple[int, ...], cpu_seconds: float) -> Lesson:
        """What the canonical solution gives on the task's inputs of these indices, or why it cannot serve."""

    def check(self, bench: Bench, task: Task, reference: Reference, candidate: str, cpu_seconds: float) -> Judgement:
        """The verdict on a candidate."""


class BaseChecker:
    """What our checkers have in common; another may begin here, and says what is different."""

    Options: ClassVar[type[BaseModel]] = NoOptions
    version: ClassVar[int] = 1
    inputs_cap: ClassVar[int | None] = None
    runs_code: ClassVar[bool] = True
    cpu_seconds: ClassVar[float | None] = None
    needs: ClassVar[Need] = ""

    def __init__(self, options: BaseModel | None = None) -> None:
        del options

    def canonical(self, task: Task) -> str:
        """The task's reference."""
        return task.reference


class FunctionChecker(BaseChecker):
    """For tasks that ask for a function."""

    kinds: ClassVar[frozenset[TaskKind]] = frozenset({TaskKind.FUNCTION})
    needs: ClassVar[Need] = "inputs"

    def known_bad(self, task: Task) -> Mapping[str, str]:
        """Functions that give a value that no task asks for, or none."""
        return known_bad_functions(task)


def learn_inputs(count: int, attempt: Callable[[int], tuple[Judgement, Sequence[T]]]) -> tuple[Judgement, list[T | None]]:
    """A canonical solution's results on so many inputs, and None for each on which it runs out of memory.

    Args:
        count: Number of inputs.
        attempt: Runs it from the input of this number on; what came of that, with the results up to its end.
    """
    results: list[T | None] = []
    dropped = 0
    while True:
        judgement, found = attempt(len(results))
        results += found
        if judgement.reason is not Reason.OOM or len(results) >= count or dropped == _MOST_OOM:
            return judgement, results
        results.append(None)
        dropped += 1
        if len(results) == count:
            return Judgement(Reason.PASS), results


def known_bad_functions(task: Task) -> Mapping[str, str]:
    """Programs that define the task's entry point and do not do what it asks."""
    head = f"def {task.entry_point}(*arguments, **keywords):\n"
    return {
        "wrong value": f"{head}    return 'a value that no task asks for'\n",
        "raises": f"{head}    raise NotImplementedError('known to be bad')\n",
    }


def stopped(run: Run) -> Judgement | None:
    """Why the process did not come to its own end; None when it did."""
    if run.oom or run.ended is Ended.OOM:
        return Judgement(Reason.OOM, "out of memory")
    if run.ended is Ended.SIGNALLED:
        if run.status == signal.SIGXCPU and run.cpu_seconds > run.cpu_limit_seconds:
            return Judgement(Reason.CPU_LIMIT)
        return Judgement(Reason.SIGNAL, _signal_name(run.status))
    if run.ended is Ended.OVERFLOW:
        return Judgement(Reason.OUTPUT_LIMIT, f"more than {len(run.body)} bytes written in all")
    reasons = {
        Ended.CPU: Reason.CPU_LIMIT,
        Ended.WALL: Reason.WALL_LIMIT,
        Ended.IDLE: Reason.IDLE,
    }
    return Judgement(reasons[run.ended]) if run.ended in reasons else None


def incomplete(run: Run) -> Judgement:
    """Why a run whose lines prove nothing wrong is not complete."""
    return stopped(run) or Judgement(Reason.EARLY_EXIT, f"exit code {run.status} before the end")


def failure(letter: str, body: str, place: str = "") -> Judgement | None:
    """What a line says against the candidate; None for a value, changed arguments, a time, and the end.

    A checker goes on after these only where its job can have made them: whoever passes over any number of lines spends the host's
    time on a candidate that writes millions. The place is named where the line is about one of several inputs.
    """
    if letter not in _PER_INPUT:
        place = ""
    if letter == Line.EXIT:
        return Judgement(Reason.EARLY_EXIT, f"{place}SystemExit")
    if letter == Line.MISSING:
        return Judgement(Reason.MISSING_ENTRY_POINT)
    if letter in (Line.EXCEPTION, Line.IMPORT, Line.SYNTAX, Line.UNENCODABLE, Line.TOO_LARGE):
        return _described(letter, body, place)
    if letter in (Line.OUTPUT, Line.ARGUMENTS, Line.TIME, Line.DONE):
        return None
    return never_written()


def never_written(place: str = "") -> Judgement:
    """Of a line that the supervisor's child does not write, or not there."""
    return Judgement(Reason.PROTOCOL_ERROR, f"{place}a line that the supervisor's child never writes{' there' if place else ''}")


_PER_INPUT = frozenset({Line.EXCEPTION, Line.UNENCODABLE, Line.TOO_LARGE, Line.EXIT})


def _described(letter: str, body: str, place: str) -> Judgement:
    facts = _facts(body)
    if letter in (Line.UNENCODABLE, Line.TOO_LARGE) and isinstance(facts, str):
        reason = Reason.UNENCODABLE if letter == Line.UNENCODABLE else Reason.OUTPUT_LIMIT
        return Judgement(reason, tidy(f"{place}{facts}"))
    if letter in (Line.EXCEPTION, Line.IMPORT, Line.SYNTAX) and isinstance(facts, dict):
        name, message, line = (facts.get(key) for key in ("type", "message", "line"))
        if isinstance(name, str) and isinstance(message, str) and type(line) is int:
            reason = Reason.SYNTAX_ERROR if letter == Line.SYNTAX else Reason.OOM if name == "MemoryError" else Reason.EXCEPTION
            where = f" (line {line})" if 0 < line < _LINES else ""
            return Judgement(reason, tidy(f"{place}{name}: {_ADDRESS.sub('0x…', message)}{where}"))
    return Judgement(Reason.PROTOCOL_ERROR, f"{place}a malformed line")


def exception_name(body: str) -> str:
    """Type of the exception that a line reports; empty when the line is malformed."""
    facts = _facts(body)
    name = facts.get("type") if isinstance(facts, dict) else ""
    return name if isinstance(name, str) else ""


def _facts(body: str) -> object:
    """The JSON of a line; None when it is none, or longer than our own lines can be."""
    if len(body) > _FACTS:
        return None
    try:
        facts: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return facts


def tidy(text: str) -> str:
    """A detail without surrogates and control characters, cut."""
    return cut(text, DETAIL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
