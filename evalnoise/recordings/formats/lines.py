"""What importers share: JSON Lines read one by one with their place, and the response in a bare text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from evalnoise.canonical import escape_surrogates
from schemas.errors import DataError
from schemas.records import Response, ResponseClass


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file."""

    number: int
    """From 1."""
    end: int
    """Bytes of the file up to its end."""
    value: dict[str, Any] | None
    """The object on it; None: a blank line."""


def read_lines(path: Path, *, remedy: str, watch: Callable[[bytes], object] = lambda _: None) -> Iterator[Line]:
    """The lines of a file, each a JSON object or blank.

    Args:
        path: The file.
        remedy: What to do about a file that is missing or damaged.
        watch: Gets every line's bytes, for a digest.

    Raises:
        DataError: It cannot be read, or a line holds something else.
    """
    end = 0
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                watch(line)
                end += len(line)
                yield Line(number, end, _object(f"{path}, line {number}", line, remedy) if line.strip() else None)
    except OSError as error:
        found = error.strerror or str(error)
        raise DataError(str(path), expected="a readable file", found=found, remedy=remedy) from None


def _object(where: str, line: bytes, remedy: str) -> dict[str, Any]:
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        torn = "" if line.endswith(b"\n") else ", cut off before its end"
        bad(where, "one JSON object", f"text that is not JSON{torn}", remedy)
    if not isinstance(value, dict):
        bad(where, "one JSON object", f"a {type(value).__name__}", remedy)
    return value


def bad(where: str, expected: str, found: str, remedy: str) -> NoReturn:
    """Raise DataError; what was found is cut to a readable length."""
    raise DataError(where, expected=expected, found=escape_surrogates(found)[0][:300], remedy=remedy)


def text_of_field(where: str, row: dict[str, Any], name: str, remedy: str) -> str:
    """A field that must be a text. Raises DataError."""
    value = row.get(name)
    if not isinstance(value, str):
        bad(where, f"`{name}`, a text", repr(value)[:80] if name in row else "no such field", remedy)
    return value


def number_of_field(where: str, row: dict[str, Any], name: str, default: int | None, remedy: str) -> int | None:
    """A field that must be a whole number from 0, or absent. Raises DataError."""
    value = row.get(name, default)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        bad(where, f"`{name}`, a whole number from 0", repr(value)[:80], remedy)
    return value


def text_response(text: str) -> Response:
    """The response in a bare text; reading it costs nothing now, and what it cost then is not known."""
    return Response(text=text, response_class=ResponseClass.COMPLETE if text.strip() else ResponseClass.EMPTY, cost_usd=0.0)
