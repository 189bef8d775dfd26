"""Checker `asserts`: a task's own test body, in a sandbox that the candidate never enters; the candidate only answers calls.

The test's calls are found by running it on no answers at all, so that their arguments can hold no expected value; the candidate
answers them, and the test is run on its answers. Where the test then makes another call, because it passes a result on, the
candidate is run again on the calls so far and that one, and so on, a bounded number of times. The verdict is that of one run of
the candidate and one of the test which agree on every call.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from schemas.records import Reason, Reference, Task
from schemas.values import TooLargeError, UnencodableError, decode
from verifiers.checkers import (
    Bench,
    FunctionChecker,
    Need,
    exception_name,
    failure,
    incomplete,
    never_written,
    stopped,
    tidy,
)
from verifiers.compare import cut, show
from verifiers.jobs import MOST_BYTES, OUTPUT_BYTES, Arguments, Job, Judgement, Lesson, Limits, Line, Mode, Run

ROUNDS = 20
"""Runs of a candidate at most: a result may be passed on into the next call so often."""
MOST_CALLS = 10_000
"""Calls of a test at most."""
_LIMIT_FACTOR = 4
_SHOWN = 120
_PASSED = Judgement(Reason.PASS)
_NEW_LINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class _Heard:
    """What the candidate answered, by the place of the call in the test."""

    answers: Mapping[int, tuple[str, str, str]]
    """Letter and body of the line, and the arguments after the call where they changed."""
    end: Judgement
    """`pass` if every call was answered, else why the next one was not."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """What one run of the test said."""

    judgement: Judgement
    """`pass`, too, where the test was lost."""
    calls: Mapping[int, str] = field(default_factory=dict)
    """Calls from the first that had no answer on; empty where all had one."""
    made: int = 0
    """Calls that the test made, where it passed."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Of one round."""

    candidate_seconds: float
    """CPU limit of the candidate."""
    test_seconds: float
    """CPU limit of the test."""
    calls: int
    """Calls to look for at most."""


@dataclass(frozen=True, slots=True)
class _Course:
    """What came of a candidate, after as many rounds as it took."""

    judgement: Judgement
    calls: int = 0
    """Calls that the test made, where it passed."""
    seconds: float = 0.0
    """CPU time of the candidate, and of the test, in the last round."""
    test_seconds: float = 0.0


class Asserts(FunctionChecker):
    """HumanEval's form of test (`def check(candidate)`) or MBPP's (plain asserts that call the entry point)."""

    needs: ClassVar[Need] = "test"

    def learn(self, bench: Bench, task: Task, inputs: tuple[int, ...], cpu_seconds: float) -> Lesson:
        """The calls that the test makes whatever the answers are, one text per call; empty for those that hang on an answer."""
        del inputs
        if not task.test.strip():
            return Lesson(Reason.REFERENCE_UNUSABLE, "the task has no test body")
        bounds = _Bounds(cpu_seconds, cpu_seconds, MOST_CALLS)
        trial, _ = _run_test(bench, task, _Heard({}, _PASSED), (), bounds)
        if trial.judgement.reason is not Reason.PASS:
            return Lesson(trial.judgement.reason, trial.judgement.detail)
        calls = _from(trial.calls, 0)
        course = _course(bench, task, task.reference, calls, bounds)
        if course.judgement.reason is not Reason.PASS:
            return Lesson(course.judgement.reason, course.judgement.detail)
        calls = [*calls, *[""] * course.calls][: course.calls]
        return Lesson(Reason.PASS, "", tuple(calls), cpu_seconds=course.seconds, input_seconds=(course.test_seconds,))

    def check(self, bench: Bench, task: Task, reference: Reference, candidate: str, cpu_seconds: float) -> Judgement:
        """The test's own verdict; or what kept the candidate from answering a call that the test makes."""
        test_seconds = max([cpu_seconds, *(_LIMIT_FACTOR * seconds for seconds in reference.input_seconds)])
        bounds = _Bounds(cpu_seconds, test_seconds, len(reference.outputs))
        try:
            return _course(bench, task, candidate, reference.outputs, bounds).judgement
        finally:
            if "" in reference.outputs or _chooses(task.test, task.entry_point):
                bench.forget()


@lru_cache(maxsize=4096)
def _chooses(test: str, entry_point: str) -> bool:
    """Whether answers may decide which calls a test makes: some stand where they are made or not.

    Then there may be a further round, which says how right the first was, and the candidate's sandbox is replaced; so that the next
    candidate does not learn from a new one that there was, it is replaced whether there was or not.
    """
    try:
        tree = ast.parse(test)
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # the image's Python may know more than this one
        return True
    names = {entry_point, "candidate"}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "check":
            names |= {argument.arg for argument in node.args.args}
    parts = (part for node in ast.walk(tree) for part in _not_always(node))
    return any(isinstance(inner, ast.Name) and inner.id in names for part in parts for inner in ast.walk(part))


def _not_always(node: ast.AST) -> Sequence[ast.AST]:
    """The parts of a statement or expression that may be passed over."""
    match node:
        case ast.If() | ast.IfExp() | ast.BoolOp() | ast.While() | ast.Try() | ast.TryStar() | ast.Match():
            return (node,)
        case ast.Compare(ops=[_, _, *_]):
            return (node,)
        case ast.Assert(msg=ast.expr() as message):
            return (message,)
        case ast.comprehension(ifs=conditions):
            return conditions
        case ast.Call(func=ast.Name(id="any" | "all" | "next")):
            return (node,)
    return ()


def _course(bench: Bench, task: Task, candidate: str, calls: Sequence[str], bounds: _Bounds) -> _Course:
    """Run candidate and test in turn until they agree on the calls; of `calls`, those that are not known are empty texts."""
    rounds = 0
    try:
        while rounds < ROUNDS:
            rounds += 1
            found = _round(bench, task, candidate, calls, bounds)
            if isinstance(found, _Course):
                return found
            calls = found
    finally:
        if rounds > 1:  # a further round tells the candidate that the test went on with its answers
            bench.forget()
    return _Course(Judgement(Reason.MISMATCH, f"the test made other calls in each of {ROUNDS} runs"))


def _round(bench: Bench, task: Task, candidate: str, calls: Sequence[str], bounds: _Bounds) -> _Course | Sequence[str]:
    """Run the candidate and then the test: what came of it, or the calls of the next round."""
    known = {place: call for place, call in enumerate(calls) if call}
    end, heard, run = _run_candidate(bench, task, candidate, known, bounds)
    if end.reason is not Reason.PASS and (not heard.answers or end.reason in _AT_ONCE):
        return _Course(end)
    trial, test_run = _run_test(bench, task, heard, calls, bounds)
    if trial.judgement.reason is not Reason.PASS:
        return _Course(trial.judgement)
    if trial.calls:
        first = min(trial.calls)
        # If it is known, it was put to the candidate, which gave no answer.
        return _Course(end) if known.get(first) == trial.calls[first] else [*calls[:first], *_from(trial.calls, first)]
    if end.reason is Reason.PASS:
        changed = sum(bool(after) for _, _, after in heard.answers.values())
        return _Course(Judgement(Reason.PASS, mutated_inputs=changed), trial.made, run.cpu_seconds, test_run.cpu_seconds)
    if trial.made >= len(calls):
        return _Course(end)
    return calls[: trial.made]  # it stumbled over a call that the test does not make


_AT_ONCE = frozenset({Reason.OOM, Reason.PROTOCOL_ERROR})
"""After these, no answer can be trusted."""


def _from(calls: Mapping[int, str], first: int) -> list[str]:
    """The calls from a place on; an empty text for each one that is not known."""
    return [calls.get(place, "") for place in range(first, max(calls, default=-1) + 1)]


def _run_candidate(
    bench: Bench, task: Task, candidate: str, known: Mapping[int, str], bounds: _Bounds
) -> tuple[Judgement, _Heard, Run]:
    """Run the candidate on the known calls: `pass` where it answered all of them within the limits, and its answers."""
    total = sum(OUTPUT_BYTES + _arguments_bytes(call) + 64 for call in known.values()) + OUTPUT_BYTES
    job = Job(
        mode=Mode.CALLS,
        source=candidate,
        limits=Limits(bounds.candidate_seconds, total_bytes=min(total, MOST_BYTES)),
        entry_point=task.entry_point,
        inputs=tuple(known.values()),
        preamble=task.code,
        stop_at_exception=False,
        arguments=Arguments.SEND,
        keywords=True,
    )
    found: list[tuple[Run, _Heard]] = []

    def judge(run: Run) -> Judgement:
        found.append((run, _heard(run, known)))  # kept, because hostile values are slow to decode
        return found[-1][1].end

    judgement, run = bench.run(job, judge)
    return judgement, next(heard for judged, heard in found if judged is run), run


def _arguments_bytes(call: str) -> int:
    """How long a call's arguments may be after it, as the candidate's process writes them."""
    return max(2 * len(call), OUTPUT_BYTES)


_ANSWERS = frozenset({Line.OUTPUT, Line.EXCEPTION})


def _heard(run: Run, known: Mapping[int, str]) -> _Heard:
    """The answers of a run of the candidate to the known calls, as far as they go."""
    if run.oom:
        return _Heard({}, incomplete(run))
    answers: dict[int, tuple[str, str, str]] = {}
    places = [*known, -1]
    for letter, body, after in _with_arguments(run):
        place = places[len(answers)]
        if letter == Line.DONE:
            return _Heard(answers, incomplete(run) if place >= 0 else stopped(run) or _PASSED)
        wrong = _no_answer(letter, body, after, known.get(place))
        if wrong is not None:
            told = f"call {place}: {wrong.detail}" if letter in _PER_CALL and place >= 0 else wrong.detail
            return _Heard(answers, Judgement(wrong.reason, tidy(told)))
        answers[place] = letter, body, after or ""
    return _Heard(answers, incomplete(run))


_PER_CALL = _ANSWERS | {Line.UNENCODABLE, Line.TOO_LARGE, Line.EXIT}


def _with_arguments(run: Run) -> Iterator[tuple[str, str, str | None]]:
    """The lines of a run, each answer with the changed arguments that the line after it says. Reads one line ahead at most."""
    answer: tuple[str, str] | None = None
    for letter, body in run.lines():
        if answer is not None:
            yield *answer, body if letter == Line.ARGUMENTS else None
            if letter == Line.ARGUMENTS:
                answer = None
                continue
        answer = (letter, body) if letter in _ANSWERS else None
        if answer is None:
            yield letter, body, None
    if answer is not None:
        yield *answer, None


def _no_answer(letter: str, body: str, after: str | None, call: str | None) -> Judgement | None:
    """Why a line is no answer to the call; None where it is one."""
    wrong = failure(letter, body)
    if letter not in _ANSWERS:
        return wrong or never_written()
    if call is None:
        return Judgement(Reason.PROTOCOL_ERROR, "more results than calls")
    if wrong is not None and wrong.reason is not Reason.EXCEPTION:  # an exception may be what the test asks for
        return wrong
    if after == "":
        return Judgement(Reason.UNENCODABLE, "changed arguments that cannot be encoded")
    fits = letter == Line.EXCEPTION or _decoded(body, OUTPUT_BYTES) is not None
    if not fits or (after is not None and not _fits(after, call)):
        return Judgement(Reason.PROTOCOL_ERROR, "an answer that cannot be decoded")
    return None


def _decoded(body: str, most: int) -> tuple[Any] | None:
    try:
        return (decode(body, max_bytes=most),)
    except (UnencodableError, TooLargeError):
        return None


def _fits(after: str, call: str) -> bool:
    """Whether the arguments after a call are as many as before it, under the same names."""
    given: Any = decode(call, max_bytes=len(call))
    positional, named = given
    match _decoded(after, _arguments_bytes(call)):
        case ([list(changed), dict(changed_named)],):
            return len(changed) == len(positional) and changed_named.keys() == named.keys()
    return False


def _run_test(bench: Bench, task: Task, heard: _Heard, calls: Sequence[str], bounds: _Bounds) -> tuple[_Trial, Run]:
    """Run the test on the answers."""
    job = Job(
        mode=Mode.TESTS,
        source="",
        limits=Limits(bounds.test_seconds, total_bytes=MOST_BYTES),
        entry_point=task.entry_point,
        inputs=tuple(calls),
        preamble=f"{task.code}\n{_imports(task.reference)}",
        test=task.test,
        answers=tuple(heard.answers.get(place, ("", "", "")) for place in range(len(calls))),
        most_calls=bounds.calls,
    )
    judgement, run = bench.run_tests(job, lambda run: _tried(run, task, heard).judgement)
    trial = _tried(run, task, heard)
    if judgement.reason is Reason.CPU_LIMIT:
        judgement = _in_the_test(Judgement(Reason.CPU_LIMIT, "over the CPU limit"))
    return _Trial(judgement, trial.calls, trial.made), run


@lru_cache(maxsize=4096)
def _imports(reference: str) -> str:
    """The canonical solution's imports: a test may lean on them, as some of MBPP's do, and a candidate need not have the same."""
    try:
        tree = ast.parse(reference)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ""
    lines = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in lines if getattr(node, "module", None) != "__future__")


def _tried(run: Run, task: Task, heard: _Heard) -> _Trial:
    """What the lines of a run of the test say."""
    calls: dict[int, str] = {}
    made = 0
    for letter, body in run.lines():
        if letter == Line.CALL:
            place, _, call = body.partition(" ")
            calls[int(place)] = call
        elif letter == Line.OK:
            made = int(body)
        elif letter == Line.FAILED:
            return _Trial(_failed(json.loads(body), task, heard))
        elif letter == Line.DONE:
            return _Trial(_PASSED, calls, made)
        else:
            return _Trial(_in_the_test(failure(letter, body) or incomplete(run)))
    return _Trial(_in_the_test(incomplete(run)))


def _in_the_test(wrong: Judgement) -> Judgement:
    return Judgement(wrong.reason, tidy(f"in the test: {wrong.detail or wrong.reason.value}"))


def _failed(facts: Mapping[str, Any], task: Task, heard: _Heard) -> Judgement:
    """How the test failed: an exception of the candidate's came through, or something in it does not hold."""
    call, last, number = facts["call"], facts["last"], facts["line"]
    if call >= 0:
        through = failure(Line.EXCEPTION, heard.answers[call][1], f"call {call}: ")
        assert through is not None
        return through
    lines = _NEW_LINE.split(task.test)
    source = cut(lines[number - 1].strip(), _SHOWN) if 0 < number <= len(lines) else ""
    asserted = facts["type"] == "AssertionError"
    detail = f"{'assert' if asserted else facts['type']} on line {number}: {source}"
    if not asserted:
        detail += f" ({cut(facts['message'], _SHOWN)})"
    if last in heard.answers:
        letter, body, _ = heard.answers[last]
        told = show(body, _SHOWN) if letter == Line.OUTPUT else f"{exception_name(body)} raised"
        detail += f"; call {last} gave {told}"
    return Judgement(Reason.OOM if facts["type"] == "MemoryError" else Reason.MISMATCH, tidy(detail))
