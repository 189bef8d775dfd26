"""What importers share: JSON Lines read one by one with their place, checked fields, and the response in a bare text."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from evalnoise.providers.base import Request, sendable
from evalnoise.recordings.row import Recorded
from schemas.errors import DataError
from schemas.records import Response, ResponseClass

_FOUND = 300


@dataclass(frozen=True, slots=True)
class Imported:
    """What an importer made of files."""

    rows: list[Recorded]
    sources: list[dict[str, Any]]
    """Name, SHA-256 and size of each file."""
    missing: tuple[str, ...] = ()
    """Ids that were asked and are in no file of answers."""


@dataclass(slots=True)
class Watch:
    """Digest and size of a file while it is read."""

    path: Path
    size: int = 0
    sha256: Any = field(default_factory=hashlib.sha256)

    def __call__(self, line: bytes) -> None:
        """Take note of some bytes."""
        self.sha256.update(line)
        self.size += len(line)

    def source(self) -> dict[str, Any]:
        """What a manifest says of the file: its name without the folders that it lay in, and its contents."""
        return {"name": sendable(self.path.name), "sha256": self.sha256.hexdigest(), "size": self.size}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file that is not blank."""

    where: str
    """File and number, for messages."""
    number: int
    """From 1."""
    value: dict[str, Any]


def read_lines(path: Path, *, remedy: str, watch: Callable[[bytes], object] = lambda _: None) -> Iterator[Line]:
    """The lines of a file, each a JSON object; blank ones are passed over.

    Args:
        path: The file.
        remedy: What to do about a file that is missing or damaged.
        watch: Gets every line's bytes.

    Raises:
        DataError: It cannot be read, or a line holds something else.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                watch(line)
                if line.strip():
                    where = f"{path}, line {number}"
                    yield Line(where, number, _object(where, line, remedy))
    except (OSError, ValueError) as error:
        found = str(getattr(error, "strerror", None) or error)
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
    raise DataError(where, expected=expected, found=found[:_FOUND], remedy=remedy)


def text_field(line: Line, name: str, remedy: str, default: str | None = None) -> str:
    """A field that is a text. Raises DataError for another type, and for an absent one without a default."""
    value = line.value.get(name, default)
    if not isinstance(value, str):
        bad(line.where, f"`{name}`, a text", repr(value)[:80] if name in line.value else "no such field", remedy)
    return value


def count_field(line: Line, name: str, remedy: str) -> int | None:
    """A field that is a whole number from 0, null or absent. Raises DataError."""
    value = line.value.get(name)
    if value is not None and (type(value) is not int or not 0 <= value < 2**53):
        bad(line.where, f"`{name}`, a whole number from 0", repr(value)[:80], remedy)
    return value


def object_field(line: Line, name: str, remedy: str) -> dict[str, Any]:
    """A field that is an object. Raises DataError."""
    value = line.value.get(name)
    if not isinstance(value, dict):
        bad(line.where, f"`{name}`, an object", repr(value)[:80] if name in line.value else "no such field", remedy)
    return value


def only_fields(line: Line, known: Mapping[str, object] | tuple[str, ...], remedy: str) -> None:
    """Raise DataError for a field that is not known, naming the nearest one."""
    for name in line.value:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            expected = f"field {near[0]}" if near else f"fields of {', '.join(known)}"
            bad(line.where, expected, f"the field {name!r}", remedy)


def keyed_request(where: str, provider: str, model: str, body: Mapping[str, Any], remedy: str) -> tuple[str, str]:
    """Key and canonical JSON of a request. Raises DataError for what JSON cannot carry exactly."""
    request = Request(provider, model, body)
    try:
        return request.key(), request.canonical().decode()
    except (ValueError, RecursionError) as error:
        bad(where, "a request that JSON can carry exactly", str(error), remedy)


def text_response(text: str) -> Response:
    """The response in a bare text; reading it costs nothing now, and what it cost then is not known."""
    return Response(text=text, response_class=ResponseClass.COMPLETE if text.strip() else ResponseClass.EMPTY, cost_usd=0.0)
