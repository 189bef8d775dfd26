"""Checker `exact`: what is the same text, what is the same number, and what is neither."""

from __future__ import annotations

import re
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ExecutorError
from schemas.records import Check, Outcome, Reason, Task, TaskKind
from schemas.verifier import VerifierSpec
from verifiers import verify
from verifiers.exact import MAX_TEXT, NORMALISATION, ExactOptions, normalised, number
from verifiers.registry import checker_for
from verifiers.verify import Verifier, resolve_executor

GUIDE = Path(__file__).parents[2] / "docs" / "reference" / "checkers.md"


def answer(reference: str) -> Task:
    return Task("t", TaskKind.ANSWER, "", reference, "")


def checks(reference: str, *candidates: str, **options: Any) -> list[Check]:
    spec = VerifierSpec(options=options, workers=1)
    with Verifier(spec, "exact", resolve_executor(spec, ["openai"], runs_code=False)) as verifier:
        learnt = verifier.reference(answer(reference)).result(10)
        assert learnt.outcome is Outcome.PASS, learnt
        return [verifier.check(answer(reference), learnt, candidate).result(10) for candidate in candidates]


def passes(reference: str, candidate: str, **options: Any) -> bool:
    (check,) = checks(reference, candidate, **options)
    assert check.outcome is (Outcome.PASS if check.reason is Reason.PASS else Outcome.FAIL)
    return check.reason is Reason.PASS


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        ("+7", 7),
        ("-1,234.50", Fraction(-2469, 2)),
        ("1 000 000", 10**6),
        ("1_000", 1000),
        ("1{,}000", 1000),
        ("1\\,000", 1000),
        ("5.", 5),
        (".5", Fraction(1, 2)),
        ("-.5", Fraction(-1, 2)),
        ("50%", Fraction(1, 2)),
        ("50 \\%", Fraction(1, 2)),
        ("3/4", Fraction(3, 4)),
        ("-3 / 4", Fraction(-3, 4)),
        ("1,000/2", 500),
        ("\\frac{3}{4}", Fraction(3, 4)),
        ("-\\dfrac{1}{2}", Fraction(-1, 2)),
        ("\\frac12", Fraction(1, 2)),
        ("-\\frac 34", Fraction(-3, 4)),
        ("\\frac1{23}", Fraction(1, 23)),
        ("\\frac{12}7", Fraction(12, 7)),
        ("\\frac123", None),
        ("\\frac1", None),
        ("1e3", 1000),
        ("2.5E-3", Fraction(1, 400)),
        ("2.5\N{MULTIPLICATION SIGN}10^-3", Fraction(1, 400)),
        ("3 \\times 10^{8}", 3 * 10**8),
        ("3·10⁸", None),  # that dot means many things
        ("3 \N{MULTIPLICATION SIGN} 10⁸", 3 * 10**8),
        ("$\\boxed{42}$", 42),
        ("\\(\\boxed{\\text{42}}\\)", 42),
        ("**42**.", 42),
        ("`42`", 42),
        ("“42”", 42),
        ("$5", 5),
        ("\\$1,234,567", 1_234_567),
        ("$\\$5.50$", Fraction(11, 2)),
        ("5\\$", 5),
        ("\\\\$5", None),
        ("*42*", 42),
        ("***42***", 42),
        ("４２", 42),  # noqa: RUF001 - full-width digits
        ("\N{MINUS SIGN}3", -3),
        ("½", Fraction(1, 2)),
        ("1½", None),
        ("-½", Fraction(-1, 2)),
        ("⑤%", Fraction(1, 20)),
        ("⒈", 1),
        *((text, None) for text in ("10₂", "1₀", "₁", "1₀₀₀", "5⒈", "⒈5", "1⅟2", "¼5", "¼ 5", "½½", "①②", "①234", "3🄂1", "5.¼")),
        *((text, None) for text in ("1e½", "3×10^½", "5⑳", "⁵10", "3×10⁸5", "3×10⁻8", "3×10⁸½", "5e①", "\ue000½")),  # noqa: RUF001
        ("1 1/2", None),
        ("10⁵", None),
        ("12,5", None),
        ("1,23", None),
        ("1,000,00", None),
        ("1,000_000", None),
        ("42 apples", None),
        ("42cm", None),
        ("x = 42", None),
        ("41 or 42", None),
        ("1/0", None),
        ("1.5/2", None),
        ("1/2/3", None),
        ("٤٢", None),
        ("0x10", None),
        ("inf", None),
        ("nan", None),
        ("--1", None),
        ("1..2", None),
        ("1e", None),
        ("1e1.5", None),
        (".", None),
        ("", None),
        ("9" * 1000, 10**1000 - 1),
        ("9" * 1001, None),
        ("1e1000", 10**1000),
        ("1e1001", None),
        ("1e-1000", Fraction(1, 10**1000)),
        ("1e999999999", None),
        ("1e0000001", None),
    ],
)
def test_numbers(text: str, value: Fraction | int | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("  The\tEiffel \n Tower. ", "the eiffel tower"),
        ('"Paris"', "paris"),
        ("'Paris'.", "paris"),
        ("**Paris**", "paris"),
        ("\\boxed{\\text{Paris}}", "paris"),
        ("\\boxed {a{b}c}", "a{b}c"),
        ("\\boxed{a} or \\boxed{b}", "\\boxed{a} or \\boxed{b}"),
        ('"a" or "b"', '"a" or "b"'),
        ("don\N{RIGHT SINGLE QUOTATION MARK}t", "don't"),
        ("Straße", "strasse"),
        ("ﬁne", "fine"),
        ("x²", "x^2"),
        ("e.g", "e.g"),
        ("$x$", "x"),
        ("$$", ""),
    ],
)
def test_texts(text: str, same: str) -> None:
    assert normalised(text) == same


@given(st.text(alphabet="Aa1 .,$`'\"*\\boxed{}()½²", max_size=40))
def test_normalising_twice_changes_nothing_of_a_short_text(text: str) -> None:
    once = normalised(text, case=True)
    if len(text) <= 8:  # eight layers at most
        assert normalised(once, case=True) == once


@given(st.fractions(max_denominator=10**6))
def test_a_fraction_as_text_is_that_fraction(value: Fraction) -> None:
    assert number(f"{value.numerator}/{value.denominator}") == value
    assert number(f"{value.numerator:,}") == value.numerator


def test_what_is_compared() -> None:
    assert passes("42", "$42.0$.")
    assert passes("0.5", "1/2")
    assert passes("50%", "0.5")
    assert not passes("50", "50%")
    assert not passes("42", "42 apples")
    assert not passes("42", "Forty-two")
    assert passes("Paris", "paris.")
    assert not passes("Paris", "paris", case=True)
    assert passes("Paris", "\\boxed{Paris}", case=True)
    assert not passes("0.5", "1/2", compare="text")
    assert passes("1 000", "1  000", compare="text")
    assert passes("1", "1.1", tolerance=0.1)
    assert passes("1.3", "1", tolerance=0.3)
    assert not passes("1", "1.1000000000000001", tolerance=0.1)
    assert not passes("Paris", "")


def test_details_and_what_was_learnt() -> None:
    found = checks("42", "41", "\u202e\nno number\x00", "", "9" * 300, "x" * (MAX_TEXT + 1))
    assert [check.detail for check in found] == [
        "expected 42, found 41",
        "expected 42, found \\u202e\\nno number\\x00",
        "expected 42, found nothing",
        f"expected 42, found {'9' * 119}…",
        "an answer of more than 100000 characters",
    ]
    assert {check.reason for check in found} == {Reason.MISMATCH}
    first = found[0]
    assert (first.cpu_seconds, first.limit_share, first.container, first.rechecks, first.leftovers) == (0, 0, "", (), ())


@pytest.mark.parametrize(
    ("reference", "options", "outcome", "outputs", "known_bad"),
    [
        ("42", {}, "pass", ("42",), "wrong value"),
        ("1e1000", {"tolerance": 1e300}, "pass", ("1e1000",), "wrong value"),
        (" Two Words ", {}, "pass", ("two words",), "wrong value"),
        ("Paris", {"compare": "number"}, "the expected answer is no number: Paris", (), ""),
        ("$.$", {}, "nothing is left of the expected answer when it is normalised", (), ""),
        ("x" * (MAX_TEXT + 1), {}, "the expected answer has more than 100000 characters", (), ""),
    ],
)
def test_what_can_serve(reference: str, options: dict[str, Any], outcome: str, outputs: tuple[str, ...], known_bad: str) -> None:
    spec = VerifierSpec(options=options, workers=1)
    with Verifier(spec, "exact", resolve_executor(spec, [], runs_code=False)) as verifier:
        found = verifier.reference(answer(reference), ["wrong", reference]).result(10)
    if outcome == "pass":
        assert (found.outcome, found.reason, found.mutant) == (Outcome.PASS, Reason.PASS, "wrong")
    else:
        assert (found.outcome, found.reason, found.detail) == (Outcome.UNMEASURED, Reason.REFERENCE_UNUSABLE, outcome)
    assert (found.outputs, found.known_bad) == (outputs, known_bad)


@pytest.mark.parametrize(
    "hostile",
    [
        "." * MAX_TEXT,
        "1e999999999",
        "1" * MAX_TEXT,
        "9" * 999 + "e999",
        "1," * (MAX_TEXT // 2),
        "\\boxed{" * 14_000,
        "\\boxed{" * 7_000 + "}" * 50_000,
        "\ufdfa" * MAX_TEXT,  # eighteen characters each under NFKC
        "²" * MAX_TEXT,
        " " * MAX_TEXT,
        "\\frac{" + "1" * 900 + "}{" + "7" * 900 + "}",
        "\ud800" * MAX_TEXT,
    ],
)
def test_hostile_answers_take_no_time(hostile: str) -> None:
    started = time.process_time()
    assert not passes("42", hostile)
    assert not passes("forty-two", hostile)
    assert time.process_time() - started < 5


def test_nothing_is_started(monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a checker that runs no code needs no sandbox")

    for name in ("engine_answers", "remove_leftovers", "ContainerSandbox", "ProcessSandbox", "warn_no_sandbox"):
        monkeypatch.setattr(verify, name, never)
    spec = VerifierSpec(executor="docker")
    info = resolve_executor(spec, ["openai"], runs_code=False)
    assert (info.kind, info.image_id, info.rootfs, info.python) == ("none", "", "", "")
    assert checker_for(spec, TaskKind.ANSWER) == "exact"
    assert passes("42", "42")
    assert not recwarn.list
    with Verifier(spec, "differential", info) as verifier, pytest.raises(ExecutorError, match="one that asked for a sandbox"):
        verifier.reference(Task("t", TaskKind.FUNCTION, "", "def f(): pass", "f", inputs=("[]",))).result(10)


def test_the_reference_states_options_and_normalisation() -> None:
    section = GUIDE.read_text(encoding="utf-8").partition("\n## exact\n")[2].partition("\n## ")[0]
    options = re.findall(r"^\| `(\w+)` \| `?(\w+)`? \|", section, re.MULTILINE)
    defaults = {name: str(field.default).removesuffix(".0").lower() for name, field in ExactOptions.model_fields.items()}
    assert dict(options) == defaults
    assert f"**Normalisation**, version {NORMALISATION}" in section
    for example in (
        "-1.50",
        "1,234.5",
        "1 000 000",
        "1_000",
        "1{,}000",
        "1e3",
        "2.5\N{MULTIPLICATION SIGN}10^-3",
        "3 \\times 10^{8}",
        "\\frac{3}{4}",
        "½",
    ):
        assert f"`{example}`" in section
        assert number(example) is not None
    for example in ("12,5", "1e999999999", "1 1/2", "inf"):
        assert f"`{example}`" in section
        assert number(example) is None


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("10₂", "10_2"),
        ("x₁₂", "x_12"),
        ("x₁²", "x_1^2"),
        ("₂10", "_2 10"),
        ("2⁸5", "2^8 5"),
        ("5⒈", "5 1"),
        ("①②", "1 2"),
        ("1⅟2", "1 1/ 2"),
        ("¼5", "1/4 5"),
        ("3㎡", "3m2"),
        ("㎡3", "m2 3"),
        ("４2", "42"),  # noqa: RUF001 - a full-width digit
    ],
)
def test_no_compatibility_character_runs_into_a_digit(text: str, reads: str) -> None:
    assert normalised(text) == reads
