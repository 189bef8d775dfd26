"""Reading a judge's answer: a strict verdict line first, or no verdict at all.

An answer that cannot be read is a class of its own, never a fail: a judge that rambles has not said that the candidate is wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from schemas.records import Response, ResponseClass, Verdict

# Markdown emphasis and code marks, which models add to a line that they were told to write plainly. Possessive, so that a long
# row of them costs no backtracking.
_MARK: Final = r"[\s*_`]*+"
_FLAGS: Final = re.IGNORECASE | re.ASCII  # ASCII, so that a long s is no S and a full-width digit no digit
_VERDICT: Final = re.compile(rf"{_MARK}VERDICT{_MARK}:{_MARK}(PASS|FAIL){_MARK}", _FLAGS)
_ANY_VERDICT: Final = re.compile(rf"{_MARK}VERDICT{_MARK}:{_MARK}(PASS|FAIL)\b", _FLAGS)
_CONFIDENCE: Final = re.compile(
    rf"{_MARK}CONFIDENCE{_MARK}:{_MARK}(\d{{1,3}}(?:\.\d{{1,6}})?){_MARK}(?:%|/{_MARK}100)?{_MARK}", _FLAGS
)
_THINK_OPEN, _THINK_CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class ParsedVerdict:
    """What a judge's answer says."""

    verdict: Verdict
    confidence: float | None
    """0 to 100 as stated; None: not stated, or not legibly."""
    reason: str
    """Verdict unparsed: why; else empty."""


def verdict_of(response: Response, *, read_truncated: bool = False) -> ParsedVerdict:
    """The verdict that an answer counts as: of one that is not complete none, whatever its text says.

    Args:
        response: The judge's answer.
        read_truncated: Whether an answer that was cut off counts by its first line, if that is whole.
    """
    if response.response_class is ResponseClass.COMPLETE:
        return parse_verdict(response.text)
    if response.response_class is ResponseClass.TRUNCATED and read_truncated:
        return parse_verdict(response.text.rpartition("\n")[0])
    return _unparsed(response.response_class.value)


def parse_verdict(text: str) -> ParsedVerdict:
    """The verdict that an answer opens with.

    The first line that is not empty must be ``VERDICT: PASS`` or ``VERDICT: FAIL`` and nothing else. A later line that begins
    with the other verdict makes the answer unparsed: it contradicts itself.
    """
    body = text.lstrip()
    if body.startswith(_THINK_OPEN):
        _, closed, body = body.partition(_THINK_CLOSE)
        if not closed:
            return _unparsed("thinking that does not end")
    lines = [line for line in body.splitlines() if line.strip()]
    if not lines:
        return _unparsed("empty answer")
    first = _VERDICT.fullmatch(lines[0])
    if first is None:
        return _unparsed("no verdict on the first line")
    verdict = first[1].upper()
    others = (_ANY_VERDICT.match(line) for line in lines[1:])
    if any(other is not None and other[1].upper() != verdict for other in others):
        return _unparsed("conflicting verdicts")
    return ParsedVerdict(Verdict(verdict.lower()), _confidence(lines[1:]), "")


def _confidence(lines: list[str]) -> float | None:
    """The first stated confidence, if it lies in 0 to 100."""
    stated = next(filter(None, map(_CONFIDENCE.fullmatch, lines)), None)
    if stated is None:
        return None
    value = float(stated[1])
    return value if value <= 100 else None


def _unparsed(reason: str) -> ParsedVerdict:
    return ParsedVerdict(Verdict.UNPARSED, None, reason)
