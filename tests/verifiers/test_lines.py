"""What checkers make of lines that a candidate's process wrote, honest or forged."""

from __future__ import annotations

import json
import signal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.records import Reason
from schemas.values import encode
from tests.verifiers.support import function_task, output_task, ran, reference_of
from verifiers.checkers import Checker
from verifiers.differential import Differential
from verifiers.jobs import Ended, Judgement
from verifiers.output import Expression, Published

FUNCTION = function_task("def f(x): return x", (1,), (2,))
WANTED = reference_of("1", '{"t":[1,2]}')
OUTPUT = output_task("", "[1]")
WANTED_OUTPUT = reference_of("[1]")


def differential(body: str, **changes: object) -> Judgement:
    return Differential().judge(FUNCTION, WANTED, ran(body, **changes))


def error(name: str, message: str = "", line: int = 0) -> str:
    return json.dumps({"type": name, "message": message, "line": line})


RIGHT = 'o1\no{"t":[1,2]}\n.\n'


@pytest.mark.parametrize(
    ("body", "reason", "detail"),
    [
        (RIGHT, "pass", ""),
        ('o1\no{"t": [1, 2]}\n.\n', "pass", ""),
        ("o1\no[1,2]\n.\n", "mismatch", "input 1: expected (1, 2), found [1, 2]"),
        ("o2\no[1,2]\n.\n", "mismatch", "input 0: expected 1, found 2"),
        ("otrue\n", "mismatch", "input 0: expected 1, found True"),
        ("o1\n.\n", "early-exit", "exit code 0 before the end"),
        ("o1\n", "early-exit", "exit code 0 before the end"),
        ('o1\no{"t":[1,2]}', "early-exit", "exit code 0 before the end"),
        ("", "early-exit", "exit code 0 before the end"),
        (RIGHT.replace(".", "o1"), "protocol-error", "more results than inputs"),
        ("o{}\n", "protocol-error", "input 0: a value that cannot be decoded"),
        (f"o{'9' * 70_000}\n", "protocol-error", "input 0: a value that cannot be decoded"),
        ("\n", "protocol-error", "a line that the supervisor's child never writes"),
        ("x{}\n", "protocol-error", "input 0: a malformed line"),
        (f"x{'[' * 9000}\n", "protocol-error", "input 0: a malformed line"),
        ('x{"type":1,"message":"","line":1}\n', "protocol-error", "input 0: a malformed line"),
        ('x{"type":"E","message":"","line":1e999}\n', "protocol-error", "input 0: a malformed line"),
        ('x{"type":"E","message":"","line":true}\n', "protocol-error", "input 0: a malformed line"),
        ('o1\na\no{"t":[1,2]}\na\n.\n', "pass", ""),
        ("a\n", "protocol-error", "input 0: a line that the supervisor's child never writes there"),
        ("o1\na\na\n", "protocol-error", "input 1: a line that the supervisor's child never writes there"),
        ("o1\nabody\n", "protocol-error", "input 1: a line that the supervisor's child never writes there"),
        ("t0.000001\n", "protocol-error", "input 0: a line that the supervisor's child never writes there"),
        ("k\n", "protocol-error", "a line that the supervisor's child never writes"),
        ("n\n", "protocol-error", "a line that the supervisor's child never writes"),
        (f"o1\nx{error('ValueError', 'no', 3)}\n", "exception", "input 1: ValueError: no (line 3)"),
        (f"x{error('E', 'at 0x7f00dead')}\n", "exception", "input 0: E: at 0x…"),
        (f"x{error('E', 'at 0x7f00dead, not 0xabcdef99')}\n", "exception", "input 0: E: at 0x…, not 0xabcdef99"),
        ('o{"i":"0x20000000000001"}\n', "mismatch", "input 0: expected 1, found 9007199254740993"),
        (f'o{{"i":"{hex(16**80)}"}}\n', "mismatch", f"input 0: expected 1, found {hex(16**80)}"),
        (f"x{error('MemoryError')}\n", "oom", "input 0: MemoryError: "),
        (f"s{error('SyntaxError', 'bad', 2)}\n", "syntax-error", "SyntaxError: bad (line 2)"),
        ("m\n", "missing-entry-point", ""),
        (f"i{error('NameError', 'x', 1)}\n", "exception", "NameError: x (line 1)"),
        ('u"type x.Y"\n', "unencodable", "input 0: type x.Y"),
        ('o1\nl"big"\n', "output-limit", "input 1: big"),
        ("q\n", "early-exit", "input 0: SystemExit"),
    ],
)
def test_differential_reads_lines_in_order(body: str, reason: str, detail: str) -> None:
    assert differential(body) == Judgement(Reason(reason), detail, mutated_inputs=body.count("a\n") if reason == "pass" else None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ended": Ended.CPU}, "cpu-limit"),
        ({"ended": Ended.WALL}, "wall-limit"),
        ({"ended": Ended.IDLE}, "idle"),
        ({"ended": Ended.OVERFLOW}, "output-limit"),
        ({"ended": Ended.OOM}, "oom"),
        ({"ended": Ended.SIGNALLED, "status": signal.SIGSEGV}, "signal"),
        ({"ended": Ended.SIGNALLED, "status": signal.SIGXCPU, "cpu_seconds": 1.1}, "cpu-limit"),
        ({"ended": Ended.SIGNALLED, "status": signal.SIGXCPU, "cpu_seconds": 0.1}, "signal"),
        ({"oom": True}, "oom"),
    ],
)
def test_how_the_process_ended(changes: dict[str, object], reason: str) -> None:
    assert differential("o1\n", **changes).reason == reason
    assert differential(RIGHT, **changes).reason == reason
    wrong = differential("o2\n", **changes).reason
    assert wrong == ("oom" if changes.get("oom") else "mismatch")


def test_exceptions_are_compared_where_the_reference_raises() -> None:
    reference = reference_of('{"!":"ValueError"}', "1")
    judge = lambda body: Differential().judge(FUNCTION, reference, ran(body))  # noqa: E731
    assert judge(f"x{error('ValueError', 'other words')}\no1\n.\n").reason is Reason.PASS
    assert judge(f"x{error('KeyError')}\no1\n.\n") == Judgement(
        Reason.MISMATCH, "input 0: expected ValueError raised, found KeyError raised"
    )
    assert judge(f"i{error('ValueError')}\n").reason is Reason.EXCEPTION
    assert judge("onull\no1\n.\n") == Judgement(Reason.MISMATCH, "input 0: expected ValueError raised, found None")
    assert judge('o{"!":"ValueError"}\no1\n.\n').reason is Reason.PROTOCOL_ERROR
    assert judge(f"x{error('ValueError')}\nx{error('ValueError')}\n.\n").reason is Reason.EXCEPTION


def test_a_reference_takes_every_input_but_those_whose_output_is_too_large() -> None:
    read = lambda body, **changes: Differential().outputs(ran(body, **changes), 2)  # noqa: E731
    assert read("o1\no2\n.\n").outputs == ("1", "2")
    assert read(f"o1\nx{error('ValueError')}\n.\n").outputs == ("1", '{"!":"ValueError"}')
    assert read('o1\nu"type x"\n.\n') == Judgement(Reason.UNENCODABLE, "input 1: type x", ("1",))
    assert read('o1\nl"big"\n.\n').outputs == ("1", "")
    assert read('l"big"\nl"big"\n.\n').outputs == ("", "")
    assert read('l"big"\n.\n').reason is Reason.EARLY_EXIT
    assert read("o1\n.\n").reason is Reason.EARLY_EXIT
    assert read(f"x{error('MemoryError')}\n").reason is Reason.OOM
    assert read("o1\n", ended=Ended.CPU).reason is Reason.CPU_LIMIT


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("o[1]\n.\n", "pass"),
        ("o[true]\n.\n", "mismatch"),
        ("o[1]\n", "early-exit"),
        ("o[1]\no[1]\n.\n", "protocol-error"),
        (".\n", "protocol-error"),
        (f"s{error('SyntaxError')}\n.\n", "syntax-error"),
        (f"x{error('NameError')}\n.\n", "exception"),
    ],
)
def test_expression(body: str, reason: str) -> None:
    assert Expression().judge(OUTPUT, WANTED_OUTPUT, ran(body)).reason == reason


ASSERTION = f"x{error('AssertionError')}"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"o[1]\nk\n{ASSERTION}\n.\n", "pass"),
        (f"o[true]\nk\n{ASSERTION}\n.\n", "pass"),
        (f"o[2]\nk\n{ASSERTION}\n.\n", "mismatch"),
        ("o[2]\nk\nk\n.\n", "pass"),
        (f'u"type x"\nk\n{ASSERTION}\n.\n', "mismatch"),
        (f"n\n{ASSERTION}\n{ASSERTION}\n.\n", "mismatch"),
        (f"n\nx{error('NameError')}\nx{error('NameError')}\n.\n", "exception"),
        (f"x{error('MemoryError')}\n{ASSERTION}\n.\n", "mismatch"),
        (f"n\n{ASSERTION}\nn\n{ASSERTION}\n.\n", "protocol-error"),
        (f"k\no[1]\n{ASSERTION}\n.\n", "protocol-error"),
        ("o[1]\nq\nq\n.\n", "early-exit"),
        (f"o[1]\nk\n{ASSERTION}\n", "early-exit"),
        ("o[1]\nk\n.\n", "protocol-error"),
        ("o[1]\nk\nk\nk\n.\n", "protocol-error"),
        (f"s{error('SyntaxError')}\n.\n", "syntax-error"),
    ],
)
def test_published(body: str, reason: str) -> None:
    assert Published().judge(OUTPUT, WANTED_OUTPUT, ran(body)).reason == reason


lines = st.one_of(
    st.binary(max_size=30),
    st.tuples(
        st.sampled_from("oxiulsmqnk.!"),
        st.one_of(
            st.text(alphabet='[]{}",:0123456789.truefalsnionf', max_size=20),
            st.sampled_from(["1", "[1]", '{"t":[1,2]}', '"text"', error("ValueError"), error("AssertionError")]),
        ),
    ).map(lambda pair: "".join(pair).encode()),
)


@given(st.lists(lines, max_size=8).map(b"\n".join), st.booleans())
@example(b"o" + b"[" * 70_000 + b"\n", False)
@example(b'x{"type":"' + b"\\ud800" * 30 + b'","message":"","line":0}\n', False)
@example(b"o" + encode(10**9999).encode() + b"\n.\n", False)
@example(b'o{"q":[1,' + encode(10**9000).encode() + b"]}\n.\n", False)
@example(b'o{"D":"1E+999999999999"}\n.\n', False)
def test_no_lines_break_a_checker_and_only_right_values_pass(body: bytes, oom: bool) -> None:
    checkers: list[tuple[Checker, object, object]] = [
        (Differential(), FUNCTION, WANTED),
        (Expression(), OUTPUT, WANTED_OUTPUT),
        (Published(), OUTPUT, WANTED_OUTPUT),
    ]
    for checker, task, reference in checkers:
        judgement = checker.judge(task, reference, ran(body, oom=oom))
        assert len(judgement.detail) <= 300
        judgement.detail.encode("utf-8")
        if judgement.reason is Reason.PASS and not isinstance(checker, Published):
            assert all(b"o" + output.encode() in body for output in reference.outputs)
    Differential().outputs(ran(body, oom=oom), 2)
