"""Checkers for predicted outputs: `expression`, exactly one expression, and `published`, CRUXEval's own assert statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from schemas.records import Reason, Reference, Task, TaskKind
from schemas.values import TooLargeError, UnencodableError, decode
from verifiers.checkers import BaseChecker, Bench, exception_name, failure, incomplete, stopped, tidy
from verifiers.compare import equal, same, show
from verifiers.jobs import OUTPUT_BYTES, Job, Judgement, Lesson, Limits, Line, Mode, Run

_TOTAL_BYTES = 2 * OUTPUT_BYTES
_PUBLISHED_SECONDS = 3.0


class Expression(BaseChecker):
    """The answer is one expression that writes out a value of the expected type and value; the task's code is not there."""

    kinds: ClassVar[frozenset[TaskKind]] = frozenset({TaskKind.OUTPUT})
    mode: ClassVar[Mode] = Mode.EXPRESSION
    passes: ClassVar[int] = 1

    def known_bad(self, task: Task) -> Mapping[str, str]:
        """A value that no task asks for."""
        del task
        return {"wrong value": "'a value that no task asks for'"}

    def learn(self, bench: Bench, task: Task, inputs: tuple[int, ...], cpu_seconds: float) -> Lesson:
        """The expected output, evaluated in the sandbox: a data file's text is not run on the host."""
        del inputs
        job = _job(Mode.EXPRESSION, task, task.reference, cpu_seconds)
        judgement, run = bench.run(job, lambda run: _one_value(run, lambda value: Judgement(Reason.PASS, outputs=(value,))))
        return Lesson(judgement.reason, judgement.detail, judgement.outputs, cpu_seconds=run.cpu_seconds)

    def check(self, bench: Bench, task: Task, reference: Reference, candidate: str, cpu_seconds: float) -> Judgement:
        """The answer's evaluation."""
        job = _job(self.mode, task, candidate, cpu_seconds * self.passes)
        return bench.run(job, lambda run: self.judge(task, reference, run))[0]

    def judge(self, task: Task, reference: Reference, run: Run) -> Judgement:
        """The answer's value against the expected one."""
        if run.oom:
            return incomplete(run)
        (expected,) = reference.outputs
        return _one_value(run, lambda found: _compared(expected, found, task.atol))


class Published(Expression):
    """The rule behind CRUXEval's published verdicts. It can be forged (`0 or True`); use it to reproduce them."""

    cpu_seconds: ClassVar[float | None] = _PUBLISHED_SECONDS
    mode: ClassVar[Mode] = Mode.PUBLISHED
    passes: ClassVar[int] = 2

    def judge(self, task: Task, reference: Reference, run: Run) -> Judgement:
        """The statement ends in one way if the comparison is true, in another if not; the host says which it was."""
        del task
        if run.oom:
            return incomplete(run)
        (expected,) = reference.outputs
        operand: tuple[str, str] | None = None
        endings: list[tuple[str, str]] = []
        for letter, body in run.lines():
            if letter == Line.DONE and len(endings) == self.passes:
                return stopped(run) or _published(expected, operand, endings)
            if letter == Line.SYNTAX:
                return failure(letter, body) or incomplete(run)
            if letter in _OPERANDS and operand is None and not endings:
                operand = letter, body
            elif letter in _ENDINGS and len(endings) < self.passes:
                endings.append((letter, body))
            else:
                return Judgement(Reason.PROTOCOL_ERROR, "unexpected lines")
        return incomplete(run)


_OPERANDS = frozenset({Line.OUTPUT, Line.UNENCODABLE, Line.TOO_LARGE, Line.NO_OPERAND})
_ENDINGS = frozenset({Line.OK, Line.EXCEPTION, Line.EXIT})


def _job(mode: Mode, task: Task, answer: str, cpu_seconds: float) -> Job:
    code = task.code if mode is Mode.PUBLISHED else ""
    return Job(mode, code, Limits(cpu_seconds, total_bytes=_TOTAL_BYTES), answer=answer)


def _one_value(run: Run, judge: Callable[[str], Judgement]) -> Judgement:
    """The judgement of a run that ends with one value."""
    value = None
    for letter, body in run.lines():
        wrong = failure(letter, body)
        if wrong is not None:
            return wrong
        if letter == Line.OUTPUT and value is None:
            value = body
        elif letter == Line.DONE and value is not None:
            return stopped(run) or judge(value)
        else:
            return Judgement(Reason.PROTOCOL_ERROR, "unexpected lines")
    return incomplete(run)


def _compared(expected: str, found: str, atol: float) -> Judgement:
    if found == expected:
        return Judgement(Reason.PASS)
    try:
        value = decode(found)
    except (UnencodableError, TooLargeError):
        return Judgement(Reason.PROTOCOL_ERROR, "a value that cannot be decoded")
    if same(decode(expected), value, atol):
        return Judgement(Reason.PASS)
    return Judgement(Reason.MISMATCH, tidy(f"expected {show(expected)}, found {show(found)}"))


def _published(expected: str, operand: tuple[str, str] | None, endings: list[tuple[str, str]]) -> Judgement:
    """An operand that cannot be encoded is not equal to any literal."""
    found = "nothing that was compared"
    is_equal = False
    if operand is not None and operand[0] == Line.OUTPUT:
        found = show(operand[1])
        try:
            is_equal = equal(decode(expected), decode(operand[1]))
        except (UnencodableError, TooLargeError):
            return Judgement(Reason.PROTOCOL_ERROR, "a value that cannot be decoded")
    elif operand is not None and operand[0] != Line.NO_OPERAND:
        found = "a value that cannot be encoded"
    letter, body = endings[0 if is_equal else 1]
    if letter == Line.OK:
        return Judgement(Reason.PASS)
    if letter == Line.EXCEPTION and exception_name(body) == "AssertionError":
        return Judgement(Reason.MISMATCH, tidy(f"expected {show(expected)}, found {found}"))
    return failure(letter, body) or Judgement(Reason.PROTOCOL_ERROR, "unexpected lines")
