"""Checker `differential`: the candidate's outputs against the canonical solution's, on the benchmark's inputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from schemas.records import Reason, Reference, Task
from schemas.values import TooLargeError, UnencodableError, decode
from verifiers.checkers import (
    Bench,
    FunctionChecker,
    exception_name,
    failure,
    incomplete,
    learn_inputs,
    never_written,
    stopped,
    tidy,
)
from verifiers.compare import same, show
from verifiers.jobs import LEARNT_BYTES, Arguments, Job, Judgement, Lesson, Limits, Line, Mode, Run, total_bytes

_RAISES = '{"!":'


class Differential(FunctionChecker):
    """Types kept, exceptions compared by type where the canonical solution raises."""

    inputs_cap: ClassVar[int | None] = 120

    def learn(self, bench: Bench, task: Task, inputs: tuple[int, ...], cpu_seconds: float) -> Lesson:
        """The canonical solution's outputs; an exception counts as one. Inputs whose output is too large are dropped."""
        if not inputs:
            return Lesson(Reason.REFERENCE_UNUSABLE, "the task has no inputs")

        def attempt(first: int) -> tuple[Judgement, Sequence[str]]:
            texts = tuple(task.inputs[index] for index in inputs[first:])
            job = _job(task, task.reference, texts, cpu_seconds, stop=False, learning=True)
            judgement, run = bench.run(job, lambda run: self.outputs(run, len(texts)))
            seconds.append(run.cpu_seconds)
            return judgement, judgement.outputs

        seconds: list[float] = []
        judgement, outputs = learn_inputs(len(inputs), attempt)
        if judgement.reason is not Reason.PASS:
            return Lesson(judgement.reason, judgement.detail)
        kept = {index: output for index, output in zip(inputs, outputs, strict=True) if output}
        if not kept:
            return Lesson(Reason.OUTPUT_LIMIT, "every output is over the limit")
        return Lesson(Reason.PASS, "", (*kept.values(),), (*kept,), sum(seconds), n_dropped=len(inputs) - len(kept))

    def outputs(self, run: Run, inputs: int) -> Judgement:
        """The outputs of one run of the canonical solution; empty text for one that is too large."""
        outputs: list[str] = []
        for letter, body in run.lines():
            place = f"input {len(outputs)}: "
            if letter == Line.DONE:
                complete = len(outputs) == inputs and stopped(run) is None
                return replace(Judgement(Reason.PASS) if complete else incomplete(run), outputs=tuple(outputs))
            if len(outputs) == inputs:
                return replace(_TOO_MANY, outputs=tuple(outputs))
            if letter == Line.OUTPUT:
                outputs.append(body)
            elif letter == Line.TOO_LARGE:
                outputs.append("")
            elif letter == Line.EXCEPTION and exception_name(body) != "MemoryError":
                outputs.append(f"{_RAISES}{json.dumps(exception_name(body))}}}")
            else:
                return replace(failure(letter, body, place) or never_written(place), outputs=tuple(outputs))
        return replace(incomplete(run), outputs=tuple(outputs))

    def check(self, bench: Bench, task: Task, reference: Reference, candidate: str, cpu_seconds: float) -> Judgement:
        """The first input whose result differs decides."""
        return bench.run(self.job(task, reference, candidate, cpu_seconds), lambda run: self.judge(task, reference, run))[0]

    def job(self, task: Task, reference: Reference, candidate: str, cpu_seconds: float) -> Job:
        """The candidate on the reference's inputs."""
        inputs = tuple(task.inputs[index] for index in reference.inputs_used)
        raises = any(output.startswith(_RAISES) for output in reference.outputs)
        return _job(task, candidate, inputs, cpu_seconds, stop=not raises, learning=False)

    def judge(self, task: Task, reference: Reference, run: Run) -> Judgement:
        """What one run says of the candidate, limits on CPU aside."""
        if run.oom:
            return incomplete(run)
        done = mutated = 0
        told = True  # whether of the last result's arguments there is no more to say
        for letter, body in run.lines():
            if letter == Line.DONE:
                if done < len(reference.outputs):
                    return incomplete(run)
                return stopped(run) or Judgement(Reason.PASS, mutated_inputs=None if task.in_place else mutated)
            if letter == Line.ARGUMENTS and not told and not body:
                told = True
                mutated += 1
                continue
            if done == len(reference.outputs):
                return _TOO_MANY
            place = f"input {reference.inputs_used[done]}: "
            expected = reference.outputs[done]
            if letter == Line.OUTPUT or (letter == Line.EXCEPTION and expected.startswith(_RAISES)):
                wrong = _difference(letter, body, expected, place, task.atol)
            else:
                wrong = failure(letter, body, place) or never_written(place)
            if wrong is not None:
                return wrong
            done += 1
            told = task.in_place
        return incomplete(run)


_TOO_MANY = Judgement(Reason.PROTOCOL_ERROR, "more results than inputs")


def _job(task: Task, program: str, inputs: tuple[str, ...], cpu_seconds: float, *, stop: bool, learning: bool) -> Job:
    return Job(
        mode=Mode.CALLS,
        source=program,
        limits=Limits(cpu_seconds, total_bytes=total_bytes(len(inputs)), outputs_bytes=LEARNT_BYTES if learning else 0),
        entry_point=task.entry_point,
        inputs=inputs,
        preamble=task.code,
        stop_at_exception=stop,
        skip_unencodable=learning,
        arguments=Arguments.OUTPUT if task.in_place else Arguments.IGNORE if learning else Arguments.LOOK,
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
