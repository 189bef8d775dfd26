"""Checker `exact`: an answer that is a text or a number against the expected one, by a stated normalisation. It runs nothing.

docs/reference/checkers.md states the normalisation; a change that changes some verdict raises `NORMALISATION`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Final, Literal

from pydantic import BaseModel, Field

from schemas.model import Model
from schemas.records import Reason, Reference, Task, TaskKind
from verifiers.checkers import BaseChecker, Bench, tidy
from verifiers.compare import cut
from verifiers.jobs import Judgement, Lesson

NORMALISATION: Final = 1
MAX_TEXT: Final = 100_000
"""Characters of an answer at most; a longer one is wrong."""
MAX_DIGITS: Final = 1_000
"""Digits of a number at most, and its largest exponent: more is no number, because reckoning with it could take for ever."""
_LAYERS = 8
_SHOWN = 120

_SUPERSCRIPTS = re.compile("[⁰¹²³⁴-⁹⁺⁻]+")
_SUBSCRIPTS = re.compile("[₀-₉₊₋]+")
_DIGIT = re.compile("[0-9]")
_STAND_IN = "\ue000"
_ALONE = re.compile(rf"[+-]? ?{_STAND_IN}(?: ?\\?%)?")
_PLAIN = str.maketrans(
    {
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{LEFT DOUBLE QUOTATION MARK}": '"',
        "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
        "\N{MINUS SIGN}": "-",
        "\N{HYPHEN}": "-",
        "\N{FRACTION SLASH}": "/",
    }
)
_PAIRS = (('"', '"'), ("'", "'"), ("**", "**"), ("*", "*"), ("\\(", "\\)"), ("\\[", "\\]"))
_COMMAND = re.compile(r"\\(?:boxed|text)\s*\{")
# Without braces LaTeX takes one character.
_FRACTION = re.compile(
    r"(?P<sign>[+-]?)\s*\\[dt]?frac\s*(?:\{(?P<above>[^{}]*)\}|(?P<over>[0-9]))\s*(?:\{(?P<below>[^{}]*)\}|(?P<under>[0-9]))"
)
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)"
    r"(?P<whole>[0-9]{1,3}(?P<mark>[, _])[0-9]{3}(?:(?P=mark)[0-9]{3})*|[0-9]*)"
    r"(?:\.(?P<part>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)| ?(?:\u00d7|x|\*|\\times|\\cdot) ?10\^\{?(?P<power>[+-]?[0-9]+)\}?)?"
    r"(?P<percent> ?\\?%)?"
)


class ExactOptions(Model):
    """How answers are compared."""

    compare: Literal["auto", "text", "number"] = "auto"
    """`auto`: as numbers where the expected answer is one, else as texts."""
    case: bool = False
    """Texts: whether upper and lower case differ."""
    tolerance: float = Field(default=0.0, ge=0)
    """Numbers: largest absolute difference that still counts as equal."""


class Exact(BaseChecker):
    """An answer passes if, normalised, it is the expected one."""

    Options: ClassVar[type[BaseModel]] = ExactOptions
    kinds: ClassVar[frozenset[TaskKind]] = frozenset({TaskKind.ANSWER})
    version: ClassVar[int] = NORMALISATION
    runs_code: ClassVar[bool] = False

    def __init__(self, options: ExactOptions | None = None) -> None:
        self._options = options or ExactOptions()
        # As it is written: the float nearest to 0.1 is no tenth.
        self._tolerance = Fraction(str(self._options.tolerance))

    def known_bad(self, task: Task) -> Mapping[str, str]:
        """A number beyond the tolerance, or the expected text with a word more; and an answer that no task asks for."""
        expected = self._number(task.reference)
        near = f"{task.reference} not" if expected is None else _written(expected + self._tolerance + 1)
        return {"wrong value": near, "another text": "an answer that no task asks for"}

    def learn(self, bench: Bench, task: Task, inputs: tuple[int, ...], cpu_seconds: float) -> Lesson:
        """The expected answer, normalised."""
        del bench, inputs, cpu_seconds
        if len(task.reference) > MAX_TEXT:
            return Lesson(Reason.REFERENCE_UNUSABLE, f"the expected answer has more than {MAX_TEXT} characters")
        if self._options.compare == "number" and number(task.reference) is None:
            return Lesson(Reason.REFERENCE_UNUSABLE, tidy(f"the expected answer is no number: {task.reference}"))
        text = normalised(task.reference, case=self._options.case)
        if not text:
            return Lesson(Reason.REFERENCE_UNUSABLE, "nothing is left of the expected answer when it is normalised")
        return Lesson(Reason.PASS, outputs=(text,))

    def check(self, bench: Bench, task: Task, reference: Reference, candidate: str, cpu_seconds: float) -> Judgement:
        """Whether the answer is the expected one."""
        del bench, reference, cpu_seconds
        if len(candidate) > MAX_TEXT:
            return Judgement(Reason.MISMATCH, f"an answer of more than {MAX_TEXT} characters")
        expected = self._number(task.reference)
        if expected is not None:
            found = number(candidate)
            if found is not None and abs(found - expected) <= self._tolerance:
                return Judgement(Reason.PASS)
        elif normalised(candidate, case=self._options.case) == normalised(task.reference, case=self._options.case):
            return Judgement(Reason.PASS)
        told = f"expected {cut(task.reference, _SHOWN)}, found {cut(candidate.strip(), _SHOWN) or 'nothing'}"
        return Judgement(Reason.MISMATCH, tidy(told))

    def _number(self, expected: str) -> Fraction | None:
        """The expected number; None where texts are compared."""
        return None if self._options.compare == "text" else number(expected)


def normalised(text: str, *, case: bool = False) -> str:
    """The text in the form in which texts are compared: the same for texts that differ in dress alone."""
    plain = _stripped(text)
    return plain if case else unicodedata.normalize("NFKC", plain.casefold())


def number(text: str) -> Fraction | None:
    """The number that the text states, exactly; None where it states none, or more than one, or has a unit, or is too long."""
    # A character that hides digits may be a number, but is no part of one.
    hidden = [char for char in text if _kind(char) in ("hidden", "subscript")]
    if hidden and not _ALONE.fullmatch(_stripped(text.replace(hidden[0], _STAND_IN))):
        return None
    plain = (
        _stripped(text).replace("\N{MINUS SIGN}", "-").replace("\N{FRACTION SLASH}", "/").replace("{,}", ",").replace("\\,", ",")
    )
    command = _FRACTION.fullmatch(plain)
    if command is not None:
        above, below = command["over"] or command["above"], command["under"] or command["below"]
        plain = f"{command['sign']}{above.strip()}/{below.strip()}"
    above, slash, below = plain.partition("/")
    if not slash:
        return _decimal(plain)
    parts = _decimal(above.strip()), _decimal(below.strip())
    if parts[0] is None or not parts[1] or any(part is None or part.denominator != 1 for part in parts):
        return None
    return parts[0] / parts[1]


def _decimal(text: str) -> Fraction | None:
    match = _NUMBER.fullmatch(text) if len(text) <= 2 * MAX_DIGITS else None
    if match is None:
        return None
    part = match["part"] or ""
    digits = re.sub("[, _]", "", match["whole"]) + part
    power = match["exponent"] or match["power"] or "0"
    if not digits or len(digits) > MAX_DIGITS or len(power) > len(str(MAX_DIGITS)) + 1 or abs(int(power)) > MAX_DIGITS:
        return None
    shift = int(power) - len(part) - (2 if match["percent"] else 0)
    value = Fraction(int(digits)) * Fraction(10) ** shift
    return -value if match["sign"] == "-" else value


def _written(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def _stripped(text: str) -> str:
    """Compatibility characters, white space, and up to eight layers of what an answer may be wrapped in, taken away."""
    text = unicodedata.normalize("NFKC", _apart(text)).translate(_PLAIN)
    for _ in range(_LAYERS):
        before = text
        text = " ".join(text.split()).removeprefix("\\$").removesuffix("\\$").strip("`$ ").removesuffix(".").rstrip()
        for opening, closing in _PAIRS:
            inside = text.removeprefix(opening).removesuffix(closing)
            if len(text) - len(inside) == len(opening) + len(closing) and opening not in inside and closing not in inside:
                text = inside
        command = _COMMAND.match(text)
        if command is not None and _closes(text, command.end()):
            text = text[command.end() : -1]
        if text == before:
            break
    return text


def _apart(text: str) -> str:
    """Superscripts as powers, subscripts behind `_`, and a gap wherever NFKC would join digits that are apart."""
    if text.isascii():
        return text
    text = _SUBSCRIPTS.sub(r"_\g<0>", _SUPERSCRIPTS.sub(r"^\g<0>", text))
    parts = [text[:1]]
    for before, here in pairwise(text):
        kinds = _kind(before), _kind(here)
        if all(kinds) and (kinds[0] != kinds[1] or kinds[1] == "hidden"):
            last, first = unicodedata.normalize("NFKC", before)[-1], unicodedata.normalize("NFKC", here)[0]
            parts.append("" if last.isalpha() or first.isalpha() else " ")
        parts.append(here)
    return "".join(parts)


@lru_cache(maxsize=4096)
def _kind(char: str) -> Literal["", "digit", "superscript", "subscript", "hidden"]:
    """How a character says digits: `hidden` where NFKC makes some of it, as of ½, ⑤ and ⒈, that would run into those beside it."""
    if char.isdecimal():
        return "digit"
    if _SUPERSCRIPTS.match(char):
        return "superscript"
    if _SUBSCRIPTS.match(char):
        return "subscript"
    return "hidden" if not char.isascii() and _DIGIT.search(unicodedata.normalize("NFKC", char)) else ""


def _closes(text: str, start: int) -> bool:
    """Whether the brace that was opened just before the place is closed by the text's last character."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place == len(text) - 1
    return False
