"""Checker `evalplus`: what it makes of lines, honest or forged, and its jobs in a process of this machine."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.errors import StudyError
from schemas.records import Check, Outcome, Reason, Reference, Task
from schemas.values import encode
from schemas.verifier import VerifierSpec
from tests.verifiers.support import function_task, ran, starter
from verifiers.evalplus import Evalplus, EvalplusOptions, Part, judge
from verifiers.evalplus_rules import ORACLES
from verifiers.jobs import Ended, Job, Judgement, Limits, Mode
from verifiers.registry import make_checker
from verifiers.sandbox.pool import Pool
from verifiers.settle import settle
from verifiers.verify import Verifier, resolve_executor

TASK = function_task("", (1,), (2,))
PLUS = Part("plus", (3, 7), TASK.inputs, expected=("1", '{"t":[1,2]}'), limits=(4.0, 4.0))


def lines(*results: str, seconds: float = 0.001, done: bool = True) -> str:
    return "".join(f"t{seconds:.6f}\n{result}\n" for result in results) + (".\n" if done else "")


def error(name: str, message: str = "", line: int = 0) -> str:
    return json.dumps({"type": name, "message": message, "line": line})


RIGHT = lines("o1", 'o{"t":[1,2]}')


def verdict(body: str, task: Task = TASK, part: Part = PLUS, **changes: object) -> tuple[str, str]:
    judgement = judge(task, part, ran(body, **changes))
    return judgement.reason.value, judgement.detail


@pytest.mark.parametrize(
    ("body", "reason", "detail"),
    [
        (RIGHT, "pass", ""),
        (lines("otrue", 'o{"t":[1.0,2]}'), "pass", ""),
        (lines("o1", "o[1,2]"), "mismatch", "plus input 7: expected (1, 2), found [1, 2]"),
        (lines("o2", "o[1,2]"), "mismatch", "plus input 3: expected 1, found 2"),
        (lines("o1"), "protocol-error", "plus input 7: a line that the supervisor's child never writes there"),
        (lines("o1", done=False), "early-exit", "plus input 7: exit code 0 before the end"),
        (lines("o1", 'o{"t":[1,2]}', done=False), "early-exit", "plus inputs: exit code 0 before the end"),
        ("", "early-exit", "plus inputs: exit code 0 before the end"),
        (lines("o1", 'o{"t":[1,2]}', "o1"), "protocol-error", "plus inputs: more results than inputs"),
        (RIGHT[:-2] + "t0.000001\n.\n", "protocol-error", "plus inputs: more results than inputs"),
        ("o1\n", "protocol-error", "plus input 3: a line that the supervisor's child never writes there"),
        ("t0.000001\nt0.000001\no1\n", "protocol-error", "plus input 3: a line that the supervisor's child never writes there"),
        ("t-0.000001\no1\n", "protocol-error", "plus input 3: a line that the supervisor's child never writes there"),
        ("tnan\no1\n", "protocol-error", "plus input 3: a line that the supervisor's child never writes there"),
        ("t1e999\no1\n", "protocol-error", "plus input 3: a line that the supervisor's child never writes there"),
        ("a\n", "protocol-error", "plus input 3: a line that the supervisor's child never writes there"),
        (lines("k"), "protocol-error", "plus input 3: a line that the supervisor's child never writes there"),
        (lines("o{}"), "protocol-error", "plus input 3: a value that cannot be decoded"),
        (lines("x{}"), "protocol-error", "plus input 3: a malformed line"),
        (lines("o1", f"x{error('ValueError', 'no', 3)}"), "exception", "plus input 7: ValueError: no (line 3)"),
        (lines(f"x{error('MemoryError')}"), "oom", "plus input 3: MemoryError: "),
        (f"s{error('SyntaxError', 'bad', 2)}\n", "syntax-error", "SyntaxError: bad (line 2)"),
        ("m\n", "missing-entry-point", ""),
        (f"i{error('NameError', 'x', 1)}\n", "exception", "NameError: x (line 1)"),
        (lines('u"type x.Y"'), "unencodable", "plus input 3: type x.Y"),
        (lines("o1", 'l"big"'), "output-limit", "plus input 7: big"),
        (lines("o1", "q"), "early-exit", "plus input 7: SystemExit"),
    ],
)
def test_lines_in_order(body: str, reason: str, detail: str) -> None:
    assert verdict(body) == (reason, detail)


@pytest.mark.parametrize(
    ("changes", "reason", "detail"),
    [
        ({"ended": Ended.CPU}, "cpu-limit", "plus inputs: over the CPU limit"),
        ({"ended": Ended.WALL}, "wall-limit", "plus inputs: over the wall limit"),
        ({"ended": Ended.IDLE}, "idle", "plus inputs: no CPU progress"),
        ({"ended": Ended.OVERFLOW}, "output-limit", "plus inputs: more than 13 bytes written in all"),
        ({"ended": Ended.OOM}, "oom", "plus inputs: out of memory"),
        ({"oom": True}, "oom", "plus inputs: out of memory"),
        (
            {"oom": True, "ended": Ended.SIGNALLED, "status": signal.SIGPROF, "cpu_seconds": 9.0},
            "oom",
            "plus inputs: out of memory",
        ),
        ({"ended": Ended.SIGNALLED, "status": signal.SIGSEGV}, "signal", "plus input 7: SIGSEGV"),
        ({"ended": Ended.SIGNALLED, "status": signal.SIGPROF, "cpu_seconds": 8.1}, "cpu-limit", "plus input 7: over the CPU limit"),
        ({"ended": Ended.SIGNALLED, "status": signal.SIGPROF, "cpu_seconds": 3.9}, "signal", "plus input 7: SIGPROF"),
    ],
)
def test_how_the_process_ended(changes: dict[str, object], reason: str, detail: str) -> None:
    assert verdict(lines("o1", done=False), **changes) == (reason, detail)
    wrong = "oom" if changes.get("oom") else "mismatch"
    assert verdict(lines("o2", done=False), **changes)[0] == wrong


@pytest.mark.parametrize(
    "changes", [{"ended": Ended.CPU}, {"ended": Ended.SIGNALLED, "status": signal.SIGPROF, "cpu_seconds": 9.0}]
)
def test_right_to_the_end_and_then_stopped(changes: dict[str, object]) -> None:
    """A thread of the candidate's may go on after the last input."""
    assert verdict(RIGHT, **changes)[0] in {"cpu-limit", "signal"}


def test_an_input_over_its_limit() -> None:
    part = replace(PLUS, limits=(1.0, 0.5))
    slow = judge(TASK, part, ran("t0.500000\no1\nt0.510000\n" + 'o{"t":[1,2]}\n.\n'))
    assert slow == Judgement(Reason.CPU_LIMIT, "plus input 7: over the CPU limit", limit_share=1.02)
    right = judge(TASK, part, ran("t0.800000\no1\nt0.350000\n" + 'o{"t":[1,2]}\n.\n'))
    assert right == Judgement(Reason.PASS, limit_share=0.8)
    wrong = judge(TASK, part, ran("t1.500000\no1\nt0.100000\no1\n"))
    assert (wrong.reason, wrong.detail) == (Reason.MISMATCH, "plus input 7: expected (1, 2), found 1"), "wrong at any speed"
    assert wrong.limit_share == 1.5
    stopped = judge(TASK, part, ran("t0.100000\no1\n", ended=Ended.SIGNALLED, status=signal.SIGPROF, cpu_seconds=1.2))
    assert stopped == Judgement(Reason.CPU_LIMIT, "plus input 7: over the CPU limit", limit_share=2.0)


def test_a_job_over_its_limit() -> None:
    assert verdict(RIGHT, cpu_seconds=1.1) == ("cpu-limit", "plus inputs: over the CPU limit")
    assert verdict(RIGHT, cpu_seconds=1.0) == ("pass", "")


def test_tolerance_is_enforced_from_the_first_float_on() -> None:
    inputs = ("[1]", "[2]", "[3]")
    found = lines("o100000000", "o2.0000001", "o100000001")
    floats = Part("base", (0, 1, 2), inputs, expected=("100000000", "2.0", "100000000"), limits=(1.0,) * 3)
    assert verdict(found, part=floats) == ("pass", "")
    early = lines("o100000001", "o2.0", "o100000000")
    assert verdict(early, part=floats) == ("mismatch", "base input 0: expected 100000000, found 100000001")
    integers = replace(floats, expected=("100000000", "2", "100000000"))
    assert verdict(found, part=integers)[0] == "mismatch"
    assert verdict(lines("o100000000", "o2", "o100000001"), part=integers) == (
        "mismatch",
        "base input 2: expected 100000000, found 100000001",
    )


def test_nan_never_equals_itself() -> None:
    part = Part("base", (0,), ("[1]",), expected=('{"f":"nan"}',), limits=(1.0,))
    assert verdict(lines('o{"f":"nan"}'), part=part) == ("mismatch", "base input 0: expected nan, found nan")


ONE = Part("base", (5,), ("[[1,2]]",), expected=("-0.5",), limits=(1.0,))


@pytest.mark.parametrize(
    ("oracle", "expected", "line", "reason", "detail"),
    [
        ("find_zero", "-0.5", "o-0.50001", "pass", ""),
        ("find_zero", "-0.6", "o-0.6", "mismatch", "base input 5: expected a zero, found -0.6"),
        ("find_zero", "-0.5", 'u"type x"', "unencodable", "base input 5: type x"),
        ("not_none", "true", 'u"type re.Match"', "pass", ""),
        ("not_none", "true", 'l"big"', "pass", ""),
        ("not_none", "true", "o5", "pass", ""),
        ("not_none", "true", "otrue", "pass", ""),
        ("not_none", "true", "ofalse", "mismatch", "base input 5: expected a value, found False"),
        ("not_none", "true", "onull", "mismatch", "base input 5: expected a value, found None"),
        ("not_none", "false", "onull", "pass", ""),
        ("not_none", "false", "ofalse", "pass", ""),
        ("not_none", "false", 'u"type x"', "mismatch", "base input 5: expected None, found a value"),
        ("not_none", "true", f"o{'[' * 200}", "pass", ""),
        ("not_none", "false", f'o"{"x" * 200}"', "mismatch", "base input 5: expected None, found a value"),
        ("not_none", "true", "o{}", "protocol-error", "base input 5: a value that cannot be decoded"),
        ("not_none", "true", "u{}", "protocol-error", "base input 5: a malformed line"),
        ("not_none", "true", f"x{error('E')}", "exception", "base input 5: E: "),
        ("anything", "true", "o5", "pass", ""),
        ("anything", "true", 'u"type x"', "pass", ""),
        ("anything", "true", f"x{error('E')}", "exception", "base input 5: E: "),
        ("same_set", "[1,2]", "o[2,1,2]", "pass", ""),
        ("same_set", "[1,2]", "o[1,3]", "mismatch", "base input 5: expected [1, 2], found [1, 3]"),
    ],
)
def test_oracles(oracle: str, expected: str, line: str, reason: str, detail: str) -> None:
    task = replace(TASK, oracle=oracle, atol=1e-4 if oracle == "find_zero" else 0.0)
    assert verdict(lines(line), task, replace(ONE, expected=(expected,))) == (reason, detail)


hostile = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([b"t0.000001", b"t9.000000", b"t", b"tinf", b"."]),
    st.tuples(
        st.sampled_from("oxiulsmqnka!"),
        st.one_of(
            st.text(alphabet='[]{}",:0123456789.truefalsnionf', max_size=20),
            st.sampled_from(["1", "[1]", '{"t":[1,2]}', '"text"', error("ValueError"), '{"f":"nan"}', '{"D":"sNaN"}', "null"]),
        ),
    ).map(lambda pair: "".join(pair).encode()),
)


@given(st.lists(hostile, max_size=8).map(b"\n".join), st.sampled_from(["", *sorted(ORACLES)]), st.booleans())
@example(b"t0.000001\no" + b"[" * 300_000 + b"\n", "", False)
@example(b"t0.000001\no" + encode(10**9999).encode() + b"\n.\n", "find_zero", False)
@example(b't0.000001\no{"q":[1,' + encode(10**9000).encode() + b"]}\n.\n", "pyramid_surface", False)
@example(b't0.000001\no{"D":"sNaN"}\n.\n', "same_set", False)
@example(b't0.000001\no{"r":[0,{"i":"0xffffffffffffffffffff"},1]}\n.\n', "same_set", False)
def test_no_lines_break_it_and_only_right_values_pass(body: bytes, oracle: str, oom: bool) -> None:
    part = Part("base", (0, 1), ("[[1,2],3]", "[[1,2],3]"), expected=("1", "2"), limits=(4.0, 4.0))
    task = replace(TASK, oracle=oracle, atol=1e-4)
    judgement = judge(task, part, ran(body, oom=oom))
    assert len(judgement.detail) <= 300
    judgement.detail.encode("utf-8")
    if judgement.reason is Reason.PASS:
        assert body.count(b"\n") >= 5
        assert oracle or re.search(rb"o(1|true)\s.*o2\s", body, re.DOTALL)


@pytest.mark.parametrize("options", [{}, {"tests": "base"}, {"tests": "plus", "min_seconds": 1.0, "factor": 2}])
def test_options(options: dict[str, object]) -> None:
    assert isinstance(make_checker("evalplus", options), Evalplus)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"tests": "extra"}, "tests"), ({"min_seconds": 0}, "min_seconds"), ({"factor": 0.5}, "factor"), ({"minimum": 1}, "minimum")],
)
def test_wrong_options(options: dict[str, object], name: str) -> None:
    with pytest.raises(StudyError, match=rf"verifier\.options\.{name}"):
        make_checker("evalplus", options)


BUSY = "import time\ndef f(x):\n    start = time.process_time()\n    while time.process_time() - start < {}: pass\n    return x\n"
SPEC = VerifierSpec(executor="process", checker="evalplus", cpu_seconds=2, workers=1, options={"min_seconds": 0.4})


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with pytest.warns(UserWarning, match="no sandbox"):
        info = resolve_executor(SPEC, [])
    with Verifier(SPEC, "evalplus", info) as verifier:
        yield verifier


def split(reference: str, *arguments: tuple[object, ...], base: int, **changes: object) -> Task:
    return replace(function_task(reference, *arguments), n_base_inputs=base, **changes)  # type: ignore[arg-type]


def ask(verifier: Verifier, task: Task, candidate: str) -> Check:
    reference = verifier.reference(task).result(60)
    assert reference.outcome is Outcome.PASS, reference
    return verifier.check(task, reference, candidate).result(60)


IDENTITY = split("def f(x):\n    return x\n", (1,), (2,), (3,), (4,), base=2)


@pytest.mark.parametrize(
    ("candidate", "outcome", "detail", "base"),
    [
        ("def f(x): return x", "pass", "", "pass"),
        ("def f(x): return float(x)", "pass", "", "pass"),
        ("def f(x): return x if x != 2 else 0", "fail", "base input 1: expected 2, found 0", "fail"),
        ("def f(x): return x if x != 4 else 0", "fail", "plus input 1: expected 4, found 0", "pass"),
        ("def f(x): return 1 / (x - 3) and x", "fail", "plus input 0: ZeroDivisionError: division by zero (line 1)", "pass"),
        ("n = 0\ndef f(x):\n    global n\n    n += 1\n    return x if n < 3 else 0", "pass", "", "pass"),
        ("def f(x): return x\nraise ValueError('no')", "fail", "ValueError: no (line 2)", "fail"),
        ("import os\ndef f(x): return x if x != 4 else os._exit(0)", "fail", "plus input 1: exit code 0 before the end", "pass"),
    ],
)
def test_base_and_plus_in_two_processes(verifier: Verifier, candidate: str, outcome: str, detail: str, base: str) -> None:
    check = ask(verifier, IDENTITY, candidate)
    assert (check.outcome, check.detail, check.base_outcome) == (outcome, detail, base)
    assert check.mutated_inputs is None


@pytest.mark.parametrize(
    ("candidate", "detail", "base"),
    [
        ("def f(x): return x", "", "pass"),
        ("def f(x): return 0", "base input 0: expected 1, found 0", "fail"),
        ("def f(x): return x if x != 1 else 1 / 0", "base input 0: ZeroDivisionError: division by zero (line 1)", "fail"),
        ("def f(x): return x if x < 3 else 0", "plus input 0: expected 3, found 0", "pass"),
        ("def g(x): return x", "", "fail"),
    ],
)
def test_both_parts_run_whatever_comes_of_the_first(verifier: Verifier, candidate: str, detail: str, base: str) -> None:
    """Or the second would tell a candidate that it was right before, and what it leaves behind would tell others."""
    check = ask(verifier, IDENTITY, candidate)
    assert (check.detail, check.base_outcome) == (detail, base)
    assert check.cpu_limit_seconds == pytest.approx(1.8 + 1.8)


def test_base_alone() -> None:
    spec = SPEC.model_copy(update={"options": {"tests": "base"}})
    with pytest.warns(UserWarning, match="no sandbox"):
        info = resolve_executor(spec, [])
    with Verifier(spec, "evalplus", info) as verifier:
        reference = verifier.reference(IDENTITY).result(60)
        assert (reference.inputs_used, reference.outputs, reference.n_dropped) == ((0, 1), ("1", "2"), 0)
        check = verifier.check(IDENTITY, reference, "def f(x): return x if x < 3 else 0").result(60)
    assert (check.outcome, check.base_outcome) == (Outcome.PASS, Outcome.PASS)


def test_what_the_reference_holds(verifier: Verifier) -> None:
    task = split(BUSY.format("0.05 * x"), (1,), (2,), (0,), base=1)
    reference = verifier.reference(task).result(60)
    assert reference.outputs == ("1", "2", "0")
    assert reference.inputs_used == (0, 1, 2)
    assert reference.known_bad == "wrong value"
    first, second, third = reference.input_seconds
    assert 0.05 <= first < second < 0.2
    assert third < 0.03
    limits = [part.limits for part in Evalplus(EvalplusOptions(min_seconds=0.4, factor=5)).limited(task, reference)]
    assert limits == [(max(0.4, 5 * first),), (5 * second, 0.4)]


def test_inputs_whose_output_is_too_large_are_dropped(verifier: Verifier) -> None:
    task = split("def f(x):\n    return 'x' * x\n", (300_000,), (1,), (300_000,), (3,), (300_000,), base=1)
    reference = verifier.reference(task).result(60)
    assert (reference.inputs_used, reference.outputs, reference.n_dropped) == ((1, 3), ('"x"', '"xxx"'), 3)
    check = verifier.check(task, reference, "def f(x): return 'x' * x if x != 3 else ''").result(60)
    assert (check.detail, check.base_outcome) == ("plus input 2: expected 'xxx', found ''", None)


def test_outputs_are_dropped_where_all_together_are_too_large(verifier: Verifier) -> None:
    """16 MiB of a canonical solution's, so that a right candidate's always fit into 32."""
    task = split("def f(x):\n    return 'x' * 250_000 + x\n", *[("é",)] * 80, ("é",), base=80)
    reference = verifier.reference(task).result(60)
    assert reference.n_dropped == 80 - (16 * 2**20) // 250_008 == 13
    assert reference.inputs_used == (*range(67), 80), "the plus inputs are another job"
    assert verifier.check(task, reference, task.reference).result(60).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("source", "changes", "reason", "detail"),
    [
        ("def f(x):\n    return object()", {}, "unencodable", "base input 0: type builtins.object"),
        ("def f(x):\n    return [0] * 10**6", {}, "output-limit", "every output is over the limit"),
        ("def f(x):\n    return 1 / (x - 2)", {}, "exception", "plus input 0: ZeroDivisionError: division by zero (line 2)"),
        ("def g(x):\n    return x", {}, "missing-entry-point", ""),
        ("def f(x):\n    return x", {"oracle": "any"}, "reference-unusable", "no oracle of EvalPlus is called 'any'"),
        ("def f(x):\n    return x", {"in_place": True}, "reference-unusable", None),
    ],
)
def test_canonical_solutions_that_cannot_serve(
    verifier: Verifier, source: str, changes: dict[str, object], reason: str, detail: str | None
) -> None:
    reference = verifier.reference(split(source, (1,), (2,), base=1, **changes)).result(60)
    assert (reference.outcome, reference.reason) == (Outcome.UNMEASURED, reason)
    assert detail is None or reference.detail == detail


def slow_reference(task: Task) -> Reference:
    return Reference(task.id, Outcome.PASS, Reason.PASS, outputs=("1", "2", "3", "4"), inputs_used=(0, 1, 2, 3))


@pytest.mark.parametrize(
    ("candidate", "rechecks"),
    [
        (BUSY.format("0.5 if x == 4 else 0"), 4),
        (BUSY.format("5 if x == 4 else 0"), 0),
        ("def f(x):\n    while x == 4: pass\n    return x", 0),
    ],
)
def test_an_input_over_its_limit_is_settled_or_stopped(verifier: Verifier, candidate: str, rechecks: int) -> None:
    """Over its limit it is run again, alone; at twice the limit the kernel's timer ends it."""
    check = verifier.check(IDENTITY, slow_reference(IDENTITY), candidate).result(60)
    assert (check.outcome, check.reason, check.base_outcome) == (Outcome.FAIL, Reason.CPU_LIMIT, Outcome.PASS)
    assert check.detail == "plus input 1: over the CPU limit"
    assert [each["reason"] for each in check.rechecks] == ["cpu-limit"] * rechecks
    assert check.limit_share == 2.0 if rechecks == 0 else 1.25 < check.limit_share < 2
    assert check.cpu_limit_seconds == pytest.approx(1.8 + 1.8)


def test_one_run_under_the_limit_settles_it() -> None:
    part = Part("base", (0,), ("[1]",), expected=("1",), limits=(0.5,))
    log: list[str] = []
    pool = Pool(starter([ran("t0.700000\no1\n.\n"), ran("t0.600000\no1\n.\n"), ran("t0.250000\no1\n.\n")], log), 1)
    try:
        settled = pool.submit(lambda lane: settle(lane, Job(Mode.CALLS, "", Limits(9.0)), partial(judge, TASK, part))).result(10)
    finally:
        pool.close()
    assert settled.judgement == Judgement(Reason.PASS, limit_share=0.5)
    assert [each["reason"] for each in settled.rechecks] == ["cpu-limit"] * 2
    assert log.count("run s0") == 1, "a recheck has a sandbox of its own"


def test_time_that_a_candidate_spends_before_its_calls_counts_for_the_job_alone(verifier: Verifier) -> None:
    busy = "import time\nstart = time.process_time()\nwhile time.process_time() - start < 0.6: pass\ndef f(x): return x\n"
    check = verifier.check(IDENTITY, slow_reference(IDENTITY), busy).result(60)
    assert (check.outcome, check.reason) == (Outcome.PASS, Reason.PASS)
    assert 0.3 < check.limit_share < 0.5
