"""What goes into a sandbox and what comes back: jobs, their limits, runs, and the lines that a candidate's process wrote."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from schemas.records import Outcome, Reason
from schemas.values import MAX_BYTES
from verifiers.supervisor.wires import Header

OUTPUT_BYTES = MAX_BYTES
TOTAL_BYTES = 16 * 2**20
MOST_BYTES = 32 * 2**20
"""No job may return more, however many inputs it has."""
LEARNT_BYTES = MOST_BYTES // 2
"""Outputs of a canonical solution in all, so that candidates may write the same values with twice as many bytes."""


class Mode(StrEnum):
    """What the candidate's process is to do."""

    CALLS = "calls"
    """Run a program, then call its entry point on each input."""
    EXPRESSION = "expression"
    """Evaluate one expression that writes a value out."""
    PUBLISHED = "published"
    """Run a program and CRUXEval's assert statement, twice."""
    TESTS = "tests"
    """Run a task's test body on answers that a candidate gave. For sandboxes that no candidate enters."""


class Arguments(StrEnum):
    """Mode ``calls``: what is said of the arguments after a call."""

    IGNORE = "ignore"
    LOOK = "look"
    """A line where they changed."""
    SEND = "send"
    """A line with what they are, where they changed."""
    OUTPUT = "output"
    """They are part of the output, which is the list of the value and the arguments."""


class Ended(StrEnum):
    """How the candidate's process came to its end."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    CPU = "cpu"
    WALL = "wall"
    IDLE = "idle"
    OVERFLOW = "overflow"
    OOM = "oom"
    """The whole container ran out of memory; there is no more to know."""


class Line(StrEnum):
    """First character of a line that the candidate's process wrote. Hostile code can write any of them."""

    OUTPUT = "o"
    EXCEPTION = "x"
    IMPORT = "i"
    """An exception before any call."""
    UNENCODABLE = "u"
    TOO_LARGE = "l"
    SYNTAX = "s"
    MISSING = "m"
    EXIT = "q"
    NO_OPERAND = "n"
    OK = "k"
    """It came to its end; in mode ``tests``, after so many calls."""
    ARGUMENTS = "a"
    """The call before changed its arguments."""
    CALL = "c"
    """Mode ``tests``: place and arguments of a call from the first on that has no answer."""
    FAILED = "f"
    """Mode ``tests``: the test failed."""
    TIME = "t"
    """CPU seconds of the call whose result comes next."""
    DONE = "."


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one job. CPU gives the verdict; the job is stopped at twice that, so that border cases are measured.

    The kernel's own limit is a backstop at three times: it counts in ticks, and charged a busy machine's process up to a fifth
    more than it had used.
    """

    cpu_seconds: float
    output_bytes: int = OUTPUT_BYTES
    """Bytes of one encoded output at most."""
    total_bytes: int = TOTAL_BYTES
    """Bytes that the candidate's process may return in all."""
    outputs_bytes: int = 0
    """Bytes of all encoded outputs together; each one that goes over is said to be too large. 0: no such limit."""
    memory_bytes: int = 0
    """Used where no cgroup bounds memory; 0: none."""
    alone: bool = False
    """Whether nothing else of the pool runs meanwhile: then the wall limit is half as long, for the others wait."""

    @property
    def wall_seconds(self) -> float:
        """Safety net: six times the CPU limit, three times when alone, half a minute at least."""
        return max((3 if self.alone else 6) * self.cpu_seconds, 30.0)

    @property
    def idle_seconds(self) -> float:
        """A job that used no CPU for so long is stopped."""
        return min(max(self.cpu_seconds, 3.0), 10.0)


def total_bytes(inputs: int) -> int:
    """Bytes that a job of so many inputs may return in all: an output for each, and one more for the lines around them."""
    return min((inputs + 1) * (OUTPUT_BYTES + 64), MOST_BYTES)


@dataclass(frozen=True, slots=True)
class Job:
    """One candidate's work in a sandbox. Holds no expected value."""

    mode: Mode
    source: str
    """Mode ``calls``: the candidate's whole program; mode ``published``: the task's code."""
    limits: Limits
    entry_point: str = ""
    """Mode ``calls``: the function to call; mode ``tests``: the one that the test calls."""
    inputs: tuple[str, ...] = ()
    """Mode ``calls``: wire-encoded lists of positional arguments; mode ``tests``: of both kinds, one for each call."""
    answer: str = ""
    """Modes ``expression`` and ``published``: the candidate."""
    preamble: str = ""
    """Modes ``calls`` and ``tests``: run first, in the same namespace; what the program or the test may rely on."""
    stop_at_exception: bool = True
    """Mode ``calls``: the first exception ends the job; false where the reference raises too."""
    skip_unencodable: bool = False
    """Mode ``calls``: an output that cannot be sent is said so, and the next input is run."""
    arguments: Arguments = Arguments.IGNORE
    keywords: bool = False
    """Mode ``calls``: each input is a list of two, positional arguments and a dict of keyword arguments."""
    test: str = ""
    """Mode ``tests``: the test body; the entry point is a stand-in."""
    answers: tuple[tuple[str, str, str], ...] = ()
    """Mode ``tests``: to each of `inputs` the line that answers it (letter and body) and, where they changed, the arguments after
    it; an empty letter where there is no answer."""
    most_calls: int = 0
    """Mode ``tests``: calls to look for at most."""
    input_limits: tuple[float, ...] = ()
    """Mode ``calls``: CPU seconds per input; each call's time is said, and a call that takes twice its limit ends the process with
    SIGPROF. Empty: no such limit, and no time."""

    def header(self, number: int, length: int) -> Header:
        """What the supervisor may know of it, given its number and the length of the body."""
        limits = self.limits
        return Header(
            job=number,
            length=length,
            cpu=2 * limits.cpu_seconds,
            backstop=math.ceil(3 * limits.cpu_seconds),
            wall=limits.wall_seconds,
            idle=limits.idle_seconds,
            total=limits.total_bytes,
            memory=limits.memory_bytes,
        )

    def body(self) -> bytes:
        """What the candidate's process reads."""
        body = {
            "mode": self.mode.value,
            "source": self.source,
            "entry_point": self.entry_point,
            "inputs": self.inputs,
            "answer": self.answer,
            "preamble": self.preamble,
            "stop": self.stop_at_exception,
            "skip": self.skip_unencodable,
            "arguments": self.arguments.value,
            "keywords": self.keywords,
            "input_limits": self.input_limits,
            "test": self.test,
            "answers": self.answers,
            "most_calls": self.most_calls,
            "output": self.limits.output_bytes,
            "outputs": self.limits.outputs_bytes,
        }
        return json.dumps(body).encode("ascii")


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a job, as the supervisor saw it. The body was written by the candidate's process: trust none of it."""

    ended: Ended
    status: int
    """Exit code, or the signal's number."""
    body: bytes
    cpu_seconds: float
    """Of the whole process tree."""
    wall_seconds: float
    peak_bytes: int
    oom: bool
    """The kernel killed a process of the sandbox for memory."""
    cpu_limit_seconds: float
    load: float = 0.0
    container: str = ""
    leftovers: tuple[str, ...] = ()
    """What the candidate left behind after it was wiped: a reason to discard the sandbox."""

    def lines(self) -> Iterator[tuple[str, str]]:
        """Pairs of first character and rest. The last line counts only if it is whole."""
        view = memoryview(self.body)
        start = 0
        while (end := self.body.find(b"\n", start)) >= 0:
            # Of a view, so that a giant line is copied once.
            yield str(view[start : min(start + 1, end)], "ascii", "replace"), str(view[start + 1 : end], "ascii", "replace")
            start = end + 1

    def summary(self, reason: Reason) -> Mapping[str, object]:
        """What `Check.rechecks` keeps of a run that did not settle the verdict."""
        return {
            "reason": reason.value,
            "wall_seconds": self.wall_seconds,
            "cpu_seconds": self.cpu_seconds,
            "load": self.load,
            "container": self.container,
        }


@dataclass(frozen=True, slots=True)
class Fault:
    """An attempt to run a job that failed for reasons outside the candidate."""

    detail: str
    container: str = ""
    load: float = 0.0

    def summary(self) -> Mapping[str, object]:
        """What `Check.rechecks` keeps of it."""
        return {"reason": Reason.INFRASTRUCTURE.value, "detail": self.detail, "load": self.load, "container": self.container}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a checker makes of a candidate's run, or of all its runs."""

    reason: Reason
    detail: str = ""
    outputs: tuple[str, ...] = ()
    """Wire-encoded results, where a checker needs them for its next step."""
    limit_share: float = 0.0
    """CPU as a share of its limit, where the checker limits more than the whole run: the largest share."""
    base_outcome: Outcome | None = None
    """Of checkers that tell base inputs from others: the outcome on the base inputs alone."""
    mutated_inputs: int | None = None
    """Inputs whose arguments the candidate changed, where that was looked at."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a checker learnt from the canonical solution."""

    reason: Reason
    """`pass`, or why it cannot serve."""
    detail: str = ""
    outputs: tuple[str, ...] = ()
    """What candidates are compared with; only the checker reads it."""
    inputs_used: tuple[int, ...] = ()
    """Indices of the task's inputs that count."""
    cpu_seconds: float = 0.0
    input_seconds: tuple[float, ...] = ()
    """CPU on each used input, where the checker limits each."""
    n_dropped: int = 0
    """Inputs that should count, but whose output is too large."""
