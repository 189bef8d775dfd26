"""Checker `differential`: the candidate's outputs against the canonical solution's, on the benchmark's inputs."""

from __future__ import annotations

import json

from schemas.records import Reason, Reference, Task
from schemas.values import TooLargeError, UnencodableError, decode
from verifiers.checkers import exception_name, failure, incomplete, stopped, tidy
from verifiers.compare import same, show
from verifiers.jobs import MOST_BYTES, OUTPUT_BYTES, Job, Judgement, Limits, Line, Mode, Run

_RAISES = '{"!":'


class Differential:
    """Types kept, exceptions compared by type where the canonical solution raises."""

    cpu_seconds: float | None = None

    def canonical(self, task: Task) -> str:
        """The canonical solution."""
        return task.reference

    def reference_job(self, task: Task, inputs: tuple[str, ...], cpu_seconds: float) -> Job:
        """The canonical solution on the used inputs."""
        return _job(task, task.reference, inputs, cpu_seconds, stop=False)

    def reference_outputs(self, run: Run, inputs: int) -> Judgement:
        """Its outputs; an exception counts as one."""
        outputs: list[str] = []
        for letter, body in run.lines():
            if letter == Line.OUTPUT:
                outputs.append(body)
            elif letter == Line.EXCEPTION and len(outputs) < inputs and exception_name(body) != "MemoryError":
                outputs.append(f"{_RAISES}{json.dumps(exception_name(body))}}}")
            elif letter == Line.DONE and len(outputs) == inputs and stopped(run) is None:
                return Judgement(Reason.PASS, outputs=tuple(outputs))
            else:
                wrong = failure(letter, body, f"input {len(outputs)}: ")
                if wrong is not None:
                    return wrong
        return incomplete(run)

    def job(self, task: Task, reference: Reference, candidate: str, cpu_seconds: float) -> Job:
        """The candidate on the same inputs."""
        inputs = tuple(task.inputs[index] for index in reference.inputs_used)
        raises = any(output.startswith(_RAISES) for output in reference.outputs)
        return _job(task, candidate, inputs, cpu_seconds, stop=not raises)

    def judge(self, task: Task, reference: Reference, run: Run) -> Judgement:
        """The first input whose result differs decides."""
        if run.oom:
            return incomplete(run)
        done = 0
        for letter, body in run.lines():
            if letter == Line.DONE and done == len(reference.outputs):
                return stopped(run) or Judgement(Reason.PASS)
            if done == len(reference.outputs):
                return Judgement(Reason.PROTOCOL_ERROR, "more results than inputs")
            place = f"input {reference.inputs_used[done]}: "
            expected = reference.outputs[done]
            if letter == Line.OUTPUT or (letter == Line.EXCEPTION and expected.startswith(_RAISES)):
                wrong = _difference(letter, body, expected, place, task.atol)
            else:
                wrong = failure(letter, body, place)
            if wrong is not None:
                return wrong
            done += letter in (Line.OUTPUT, Line.EXCEPTION)
        return incomplete(run)


def _job(task: Task, program: str, inputs: tuple[str, ...], cpu_seconds: float, *, stop: bool) -> Job:
    return Job(
        mode=Mode.CALLS,
        source=program,
        limits=Limits(cpu_seconds, total_bytes=min((len(inputs) + 1) * (OUTPUT_BYTES + 16), MOST_BYTES)),
        entry_point=task.entry_point,
        inputs=inputs,
        preamble=task.code,
        stop_at_exception=stop,
    )


def _difference(letter: str, body: str, expected: str, place: str, atol: float) -> Judgement | None:
    """None where the result is as expected. Equal texts are equal values, and nearly every result is one."""
    if letter == Line.EXCEPTION:
        name = exception_name(body)
        if expected == f"{_RAISES}{json.dumps(name)}}}":
            return None
        return Judgement(Reason.MISMATCH, tidy(f"{place}expected {_named(expected)}, found {name} raised"))
    raises = expected.startswith(_RAISES)
    if body == expected and not raises:
        return None
    try:
        found = decode(body)
    except (UnencodableError, TooLargeError):
        return Judgement(Reason.PROTOCOL_ERROR, f"{place}a value that cannot be decoded")
    if not raises and same(decode(expected), found, atol):
        return None
    return Judgement(Reason.MISMATCH, tidy(f"{place}expected {_named(expected)}, found {show(body)}"))


def _named(expected: str) -> str:
    return f"{json.loads(expected)['!']} raised" if expected.startswith(_RAISES) else show(expected)
