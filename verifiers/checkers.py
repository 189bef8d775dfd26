"""What a checker is, and what every checker needs: reading a run's lines and naming how a process ended."""

from __future__ import annotations

import json
import re
import signal
from typing import Protocol

from schemas.records import Reason, Reference, Task
from verifiers.compare import cut
from verifiers.jobs import Ended, Job, Judgement, Line, Run

DETAIL = 300
_FACTS = 8_192
_LINES = 10**9
_ADDRESS = re.compile(r"(?<=\bat )0x[0-9a-fA-F]{6,}")
"""As the default `repr` writes it; other numbers in hex are values."""


class Checker(Protocol):
    """Turns a task and a candidate into a job, and the job's run into a judgement. The expected values stay on the host."""

    cpu_seconds: float | None
    """A CPU limit of the rule's own, instead of the study's; None: the study's."""

    def reference_job(self, task: Task, inputs: tuple[str, ...], cpu_seconds: float) -> Job:
        """The job whose outputs become the reference."""

    def reference_outputs(self, run: Run, inputs: int) -> Judgement:
        """The reference's outputs, or why there are none."""

    def job(self, task: Task, reference: Reference, candidate: str, cpu_seconds: float) -> Job:
        """The candidate's job."""

    def judge(self, task: Task, reference: Reference, run: Run) -> Judgement:
        """What the run says of the candidate, limits on CPU aside."""

    def canonical(self, task: Task) -> str:
        """The candidate that must pass."""


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
    """What a line says against the candidate; None for lines that say nothing against it.

    The place is named where the line is about one of several inputs.
    """
    if letter not in _PER_INPUT:
        place = ""
    if letter == Line.EXIT:
        return Judgement(Reason.EARLY_EXIT, f"{place}SystemExit")
    if letter == Line.MISSING:
        return Judgement(Reason.MISSING_ENTRY_POINT)
    if letter in (Line.EXCEPTION, Line.IMPORT, Line.SYNTAX, Line.UNENCODABLE, Line.TOO_LARGE):
        return _described(letter, body, place)
    if letter in (Line.OUTPUT, Line.OK, Line.NO_OPERAND, Line.DONE):
        return None
    return Judgement(Reason.PROTOCOL_ERROR, f"{place}a line that the supervisor's child never writes")


_PER_INPUT = frozenset({Line.EXCEPTION, Line.UNENCODABLE, Line.TOO_LARGE, Line.EXIT})


def _described(letter: str, body: str, place: str) -> Judgement:
    facts = _facts(body)
    if letter in (Line.UNENCODABLE, Line.TOO_LARGE) and isinstance(facts, str):
        reason = Reason.UNENCODABLE if letter == Line.UNENCODABLE else Reason.OUTPUT_LIMIT
        return Judgement(reason, tidy(f"{place}{facts}"))
    if letter in (Line.EXCEPTION, Line.IMPORT, Line.SYNTAX) and isinstance(facts, dict):
        name, message, line = (facts.get(key) for key in ("type", "message", "line"))
        if isinstance(name, str) and isinstance(message, str) and isinstance(line, int):
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
