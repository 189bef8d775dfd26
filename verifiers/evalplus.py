"""Checker `evalplus`: EvalPlus's own rules, by the head of its repository, with the candidate in a sandbox.

Base and plus inputs run in two jobs, always both. Each input has a limit of its own, the larger of
`min_seconds` and `factor` times what the canonical solution took; a job may take the sum of its inputs' limits, 60 s at most, and
1 s. `evalplus_rules` compares.

What is not as in EvalPlus, each point explained in docs/reference/checkers.md: time is CPU time and idleness, not wall time;
functions of the interpreter are not taken away; memory is the study's limit; a value must be of an exact builtin type (of
subclasses, numpy's and the candidate's own types there is nothing to compare) and not too large, and inputs to which the canonical
solution's is too large are dropped; comparison happens on the host, out of the candidate's reach, with the arguments as they were
before the call; imports and helpers of the prompt are there for candidates that leave them out.
"""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import ClassVar, Final, Literal

from pydantic import BaseModel, Field

from schemas.model import Model
from schemas.records import Outcome, Reason, Reference, Task
from schemas.values import TooLargeError, UnencodableError, decode
from verifiers.checkers import Bench, FunctionChecker, failure, incomplete, learn_inputs, never_written, stopped, tidy
from verifiers.compare import show
from verifiers.evalplus_rules import FIND_ZERO, NOT_NONE, ORACLES, VALUELESS, agrees, enforced
from verifiers.jobs import LEARNT_BYTES, Ended, Job, Judgement, Lesson, Limits, Line, Mode, Run, total_bytes

_MOST_SECONDS: Final = 60.0
_SPARE_SECONDS: Final = 1.0
_STOPPED_AT: Final = 2.0
"""Share of its limit at which an input is stopped."""
_LONGEST_NONE: Final = 100
"""Bytes of a result that may still be None, or a bool. Longer ones are not read where any value is right."""
_SECONDS: Final = re.compile(r"[0-9]{1,9}\.[0-9]{6}")
_RESULTS: Final = frozenset({Line.OUTPUT, Line.EXCEPTION, Line.UNENCODABLE, Line.TOO_LARGE, Line.EXIT})
_BEFORE_CALLS: Final = frozenset({Line.IMPORT, Line.SYNTAX, Line.MISSING})
_UNSENT: Final = frozenset({Line.UNENCODABLE, Line.TOO_LARGE})
_OVER: Final = {
    Reason.CPU_LIMIT: "over the CPU limit",
    Reason.WALL_LIMIT: "over the wall limit",
    Reason.IDLE: "no CPU progress",
}


class EvalplusOptions(Model):
    """What a study may set of EvalPlus's rules."""

    tests: Literal["base", "plus"] = "plus"
    """`plus`: EvalPlus's "base + extra tests": base and plus inputs must pass. `base`: the benchmark's original inputs alone."""
    min_seconds: float = Field(default=4.0, ge=0.1, le=60)
    """Least limit of one input, in CPU seconds. The head of EvalPlus's repository has 4.0, its release 0.3.1 has 1.0."""
    factor: float = Field(default=4.0, ge=1, le=100)
    """An input's limit as a multiple of what the canonical solution took on it."""


@dataclass(frozen=True, slots=True)
class Part:
    """The base inputs or the plus inputs of a task, as far as they count."""

    name: Literal["base", "plus"]
    places: tuple[int, ...]
    """Of each input among the task's base inputs, or plus inputs."""
    inputs: tuple[str, ...]
    expected: tuple[str, ...] = ()
    """What the canonical solution gave on each; empty while it is not known."""
    limits: tuple[float, ...] = ()
    """CPU seconds of each."""

    def at(self, number: int) -> str:
        """How details begin that are about this one of the inputs."""
        return f"{self.name} input {self.places[number]}: "

    @property
    def whole(self) -> str:
        """How details begin that are about the job."""
        return f"{self.name} inputs: "


@dataclass(frozen=True, slots=True)
class _Result:
    """What came of one call of the canonical solution."""

    text: str
    """Empty: too large."""
    seconds: float


class Evalplus(FunctionChecker):
    """See the module's text. Keeps no state but its options."""

    Options: ClassVar[type[BaseModel]] = EvalplusOptions

    def __init__(self, options: EvalplusOptions | None = None) -> None:
        self._options = options or EvalplusOptions()

    def learn(self, bench: Bench, task: Task, inputs: tuple[int, ...], cpu_seconds: float) -> Lesson:
        """The canonical solution's outputs and what each took. Inputs whose output is too large are dropped."""
        problem = _problem(task)
        if problem:
            return Lesson(Reason.REFERENCE_UNUSABLE, problem)
        wanted = [index for index in inputs if self._options.tests == "plus" or index < task.n_base_inputs]
        if not wanted:
            return Lesson(Reason.REFERENCE_UNUSABLE, "the task has no inputs")
        results: list[_Result | None] = []
        runs: list[Run] = []
        for part in parts(task, wanted):

            def attempt(first: int, part: Part = part) -> tuple[Judgement, Sequence[_Result]]:
                rest = replace(part, places=part.places[first:], inputs=part.inputs[first:])
                job = _job(task, task.reference, rest, cpu_seconds, (cpu_seconds,) * len(rest.inputs), learning=True)
                judgement, run = bench.run(job, partial(_canonical, task, rest))
                runs.append(run)
                return judgement, _results(task, rest, run)[0]

            judgement, found = learn_inputs(len(part.inputs), attempt)
            if judgement.reason is not Reason.PASS:
                return Lesson(judgement.reason, judgement.detail)
            results += found
        kept = {index: result for index, result in zip(wanted, results, strict=True) if result is not None and result.text}
        if not kept:
            return Lesson(Reason.OUTPUT_LIMIT, "every output is over the limit")
        return Lesson(
            Reason.PASS,
            outputs=tuple(result.text for result in kept.values()),
            inputs_used=tuple(kept),
            cpu_seconds=sum(run.cpu_seconds for run in runs),
            input_seconds=tuple(result.seconds for result in kept.values()),
            n_dropped=len(wanted) - len(kept),
        )

    def check(self, bench: Bench, task: Task, reference: Reference, candidate: str, cpu_seconds: float) -> Judgement:
        """The first wrong input decides. The study's CPU limit does not count: the rule has its own."""
        del cpu_seconds
        base: Outcome | None = None
        share = 0.0
        judgement = Judgement(Reason.PASS)
        for part in self.limited(task, reference):  # all of them, or a candidate that runs on would know that it was right
            limit = min(_MOST_SECONDS, sum(part.limits)) + _SPARE_SECONDS
            job = _job(task, candidate, part, limit, part.limits, learning=False)
            found, _ = bench.run(job, partial(judge, task, part))
            share = max(share, found.limit_share)
            if part.name == "base":
                base = Outcome.PASS if found.reason is Reason.PASS else Outcome.FAIL
            if judgement.reason is Reason.PASS:
                judgement = found
        return replace(judgement, limit_share=share, base_outcome=base)

    def limited(self, task: Task, reference: Reference) -> list[Part]:
        """The parts that count, with what is expected and the limits."""
        seconds = dict(zip(reference.inputs_used, reference.input_seconds, strict=False))
        expected = dict(zip(reference.inputs_used, reference.outputs, strict=True))
        factor, least = self._options.factor, self._options.min_seconds
        found = []
        for part in parts(task, reference.inputs_used):
            offset = task.n_base_inputs if part.name == "plus" else 0
            indices = [offset + place for place in part.places]
            limits = tuple(max(least, factor * seconds.get(index, 0.0)) for index in indices)
            found.append(replace(part, expected=tuple(expected[index] for index in indices), limits=limits))
        return found


def parts(task: Task, indices: Sequence[int]) -> list[Part]:
    """The base and the plus inputs among the task's inputs of these indices; a part without inputs is none."""
    first = task.n_base_inputs
    base = tuple(index for index in indices if index < first)
    plus = tuple(index for index in indices if index >= first)
    found = [
        Part("base", base, tuple(task.inputs[index] for index in base)),
        Part("plus", tuple(index - first for index in plus), tuple(task.inputs[index] for index in plus)),
    ]
    return [part for part in found if part.inputs]


def _problem(task: Task) -> str:
    """Why the task cannot be checked by these rules; empty where it can."""
    if task.oracle not in {*ORACLES, ""}:
        return f"no oracle of EvalPlus is called {task.oracle!r}"[:200]
    if task.in_place:
        return "EvalPlus compares returned values alone, and this task's results are its arguments"
    return ""


def _job(task: Task, program: str, part: Part, cpu_seconds: float, limits: tuple[float, ...], *, learning: bool) -> Job:
    return Job(
        mode=Mode.CALLS,
        source=program,
        limits=Limits(cpu_seconds, total_bytes=total_bytes(len(part.inputs)), outputs_bytes=LEARNT_BYTES if learning else 0),
        entry_point=task.entry_point,
        inputs=part.inputs,
        preamble=task.code,
        skip_unencodable=learning or task.oracle in VALUELESS,
        input_limits=limits,
    )


def _canonical(task: Task, part: Part, run: Run) -> Judgement:
    """Whether a run of the canonical solution came to its end."""
    return _results(task, part, run)[1]


def _results(task: Task, part: Part, run: Run) -> tuple[list[_Result], Judgement]:
    """What a run of the canonical solution gave, and whether it is complete."""
    results: list[_Result] = []
    seconds: float | None = None
    for letter, body in run.lines():
        done = len(results)
        if letter == Line.DONE:
            complete = done == len(part.inputs) and stopped(run) is None
            return results, Judgement(Reason.PASS) if complete else incomplete(run)
        if letter == Line.TIME and seconds is None and done < len(part.inputs) and (seconds := _seconds(body)) is not None:
            continue
        wrong = _misplaced(part, letter, done, seconds)
        text = None if wrong is not None else _learnt(task, letter, body)
        if text is None:
            return results, wrong or failure(letter, body, part.at(done)) or never_written(part.at(done))
        assert seconds is not None
        results.append(_Result(text, seconds))
        seconds = None
    return results, incomplete(run)


def _learnt(task: Task, letter: str, body: str) -> str | None:
    """What is kept of a line with a value, empty text for one that is dropped; None for other lines."""
    if letter == Line.OUTPUT:
        return body if task.oracle != NOT_NONE else "false" if body == "null" else "true"
    if letter in _UNSENT and task.oracle in VALUELESS:
        return "true"
    return "" if letter == Line.TOO_LARGE else None


def judge(task: Task, part: Part, run: Run) -> Judgement:
    """What one run says of the candidate. Something wrong goes before an input that took too long: it is wrong at any speed."""
    if run.oom:
        return _ended(part, run, 0)
    comparison = _Comparison(task, part)
    timed = _Timed(part, run)
    done, slow = 0, ""
    seconds: float | None = None
    for letter, body, took in timed:
        if letter == Line.DONE and done == len(part.inputs):
            return _finished(part, run, slow, timed.share)
        if took is not None and seconds is None and done < len(part.inputs):
            seconds = took
            continue
        wrong = _misplaced(part, letter, done, seconds) or comparison.wrong(done, letter, body)
        if wrong is not None:
            return replace(wrong, limit_share=timed.share_to_the_end())
        assert seconds is not None
        if seconds > part.limits[done] and not slow:
            slow = part.at(done)
        done, seconds = done + 1, None
    ended = _ended(part, run, done)
    return replace(ended, limit_share=max(timed.share, ended.limit_share))


class _Timed:
    """The lines of a run, as many as its job can have written, each with the seconds that it says, if it does."""

    def __init__(self, part: Part, run: Run) -> None:
        self._lines = islice(run.lines(), 2 * len(part.inputs) + 1)
        self._limits = iter(part.limits)
        self.share = 0.0
        """Of its limit, what an input took: the largest share so far."""

    def __iter__(self) -> Iterator[tuple[str, str, float | None]]:
        for letter, body in self._lines:
            seconds = _seconds(body) if letter == Line.TIME else None
            if seconds is not None:
                self.share = max(self.share, seconds / next(self._limits, math.inf))
            yield letter, body, seconds

    def share_to_the_end(self) -> float:
        """The largest share of all inputs: whether a candidate is run again may not hang on where it was wrong."""
        for _ in self:
            pass
        return self.share


def _misplaced(part: Part, letter: str, done: int, seconds: float | None) -> Judgement | None:
    """What is wrong with a line where it stands: each result comes after its time, and there is one per input."""
    if done == len(part.inputs):
        return Judgement(Reason.PROTOCOL_ERROR, f"{part.whole}more results than inputs")
    if letter in _BEFORE_CALLS or (letter in _RESULTS and seconds is not None):
        return None
    return never_written(part.at(done))


def _finished(part: Part, run: Run, slow: str, share: float) -> Judgement:
    """Of a run that wrote every line and had nothing wrong."""
    judgement = Judgement(Reason.PASS)
    if stopped(run) is not None:
        judgement = _ended(part, run, len(part.inputs))
    elif slow:
        judgement = Judgement(Reason.CPU_LIMIT, f"{slow}{_OVER[Reason.CPU_LIMIT]}")
    elif run.cpu_seconds > run.cpu_limit_seconds:
        judgement = Judgement(Reason.CPU_LIMIT, f"{part.whole}{_OVER[Reason.CPU_LIMIT]}")
    return replace(judgement, limit_share=max(share, judgement.limit_share))


def _ended(part: Part, run: Run, done: int) -> Judgement:
    """Why a run ended before its work was done, or was stopped after it."""
    rang = run.ended is Ended.SIGNALLED and run.status == signal.SIGPROF and not run.oom
    # Below the limit it is no input's clock that rang: the candidate sent itself the signal.
    if rang and done < len(part.inputs) and run.cpu_seconds > part.limits[done]:
        return Judgement(Reason.CPU_LIMIT, f"{part.at(done)}{_OVER[Reason.CPU_LIMIT]}", limit_share=_STOPPED_AT)
    judgement = incomplete(run)
    by_input = 0 < done < len(part.inputs) and judgement.reason in (Reason.SIGNAL, Reason.EARLY_EXIT)
    detail = f"{part.at(done) if by_input else part.whole}{judgement.detail or _OVER.get(judgement.reason, '')}"
    return replace(judgement, detail=detail)


def _seconds(body: str) -> float | None:
    """What a line of time says; None when it is malformed."""
    return float(body) if _SECONDS.fullmatch(body) else None


class _Comparison:
    """Compares one run's results, in order: the tolerance in force hangs on the outputs before."""

    def __init__(self, task: Task, part: Part) -> None:
        self._task = task
        self._part = part
        self._atol = task.atol
        self._seen = 0

    def wrong(self, number: int, letter: str, body: str) -> Judgement | None:
        """What a result says against the candidate."""
        place = self._part.at(number)
        if letter == Line.OUTPUT and not (self._task.oracle in VALUELESS and len(body) > _LONGEST_NONE):
            return self._difference(number, place, body)
        wrong = failure(letter, body, place)
        if self._task.oracle in VALUELESS and (wrong is None or wrong.reason in (Reason.UNENCODABLE, Reason.OUTPUT_LIMIT)):
            # It was a value, and so not None; what value is not asked.
            right = self._task.oracle != NOT_NONE or self._part.expected[number] == "true"
            return None if right else Judgement(Reason.MISMATCH, f"{place}expected None, found a value")
        return wrong

    def _difference(self, number: int, place: str, body: str) -> Judgement | None:
        expected = self._part.expected[number]
        oracle = self._task.oracle
        # Equal texts are equal values, but for NaN, and nearly every result is one.
        if body == expected and oracle not in (FIND_ZERO, NOT_NONE) and "nan" not in body.lower():
            return None
        try:
            found = decode(body)
        except (UnencodableError, TooLargeError):
            return Judgement(Reason.PROTOCOL_ERROR, f"{place}a value that cannot be decoded")
        given = self._part.inputs[number]
        arguments = decode(given, max_bytes=len(given))
        assert isinstance(arguments, list)
        if agrees(oracle, arguments, decode(expected), found, self._tolerance(number)):
            return None
        wanted = {FIND_ZERO: "a zero", NOT_NONE: "a value" if expected == "true" else "None"}.get(oracle) or show(expected)
        return Judgement(Reason.MISMATCH, tidy(f"{place}expected {wanted}, found {show(body)}"))

    def _tolerance(self, number: int) -> float:
        """The tolerance that the outputs before this one have left."""
        while self._atol == 0 and self._seen < number:
            self._atol = enforced(decode(self._part.expected[self._seen]), self._atol)
            self._seen += 1
        return self._atol
