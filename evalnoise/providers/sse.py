"""Event streams: the events in what a server sent, whole or torn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

_BREAK: Final = re.compile("\r\n|\n|\r")
"""Nothing else ends a line of an event stream: an answer may hold any other separator."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event."""

    name: str
    """Its kind, if the stream names it; else empty."""
    data: str


@dataclass(slots=True)
class Assembled:
    """An answer put together from its stream."""

    body: dict[str, Any] = field(default_factory=dict)
    """What the server would have sent in one piece; of a torn stream as far as it came."""
    ended: bool = False
    """Whether the answer is whole."""
    error: Any = None
    """An error that the stream reported; None: none."""
    damaged: str = ""
    """A piece in its middle that cannot be read; empty: there is none. Without it the answer would look whole and not be."""


def is_stream(content_type: str, text: str) -> bool:
    """Whether a body is an event stream, by its type or by how it begins."""
    return "text/event-stream" in content_type.lower() or text.startswith(("data:", "event:", ":"))


def events(text: str) -> Iterator[Event]:
    """The events of a stream, the last one also if the stream ends before its blank line."""
    name, data = "", list[str]()
    for line in [*_BREAK.split(text.removeprefix("\ufeff")), ""]:
        if line == "":
            if data:
                yield Event(name, "\n".join(data))
            name, data = "", []
            continue
        key, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if key == "data":
            data.append(value)
        elif key == "event":
            name = value


def payloads(text: str, made: Assembled) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and JSON object of each event that holds one. A torn last one, and whatever is no object, are passed over.

    An object that cannot be read and is not the last event is noted in `made`.
    """
    unread = ""
    for event in events(text):
        made.damaged, unread = made.damaged or unread, ""
        try:
            found = json.loads(event.data)
        except (ValueError, RecursionError):
            unread = event.data if event.data.lstrip().startswith("{") else ""
            continue
        if isinstance(found, dict):
            yield event.name or text_of(found.get("type")), found


def text_in(pieces: Iterable[str]) -> str:
    """The text that pieces make: the halves of a character that was cut in two (as UTF-16 is) make that character again."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def text_of(value: object) -> str:
    """The value if it is text, else empty: what a server sends is hostile."""
    return value if isinstance(value, str) else ""
