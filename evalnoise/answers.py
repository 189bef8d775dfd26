"""Wrong variants of an expected text or number, for simulated answers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from evalnoise.literals import other_literals

_DIGITS = re.compile(r"[0-9]{1,18}")
_LAST = "I do not know"


def other_answers(reference: str) -> Iterator[str]:
    """Answers near to the expected one, the nearest first; distinct, none blank, each of one line.

    The numbers in it are changed, the last one first; then its letters.
    """
    seen = {reference.strip()}
    for other in (*_other_numbers(reference.strip()), *_other_texts(reference.strip()), _LAST):
        if other.strip() not in seen and len(other.splitlines()) == 1 and other.strip():
            seen.add(other.strip())
            yield other


def _other_numbers(text: str) -> Iterator[str]:
    for match in reversed(list(_DIGITS.finditer(text))):
        value = int(match[0])
        for other in (value + 1, value - 1, 2 * value, 10 * value):
            if other >= 0:
                yield f"{text[: match.start()]}{str(other).zfill(len(match[0]))}{text[match.end() :]}"
    if text[:1].isdigit():
        yield f"-{text}"
    elif text.startswith("-"):
        yield text[1:]


def _other_texts(text: str) -> Iterator[str]:
    for literal in other_literals(repr(text)):
        other = ast.literal_eval(literal)
        if isinstance(other, str):
            yield other
