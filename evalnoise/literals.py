"""Wrong variants of a Python literal, for simulated predictions of an output."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

_ANY = ("None", "0", "''", "[]", "True")
"""Said where nothing nearer is left."""


def other_literals(reference: str) -> Iterator[str]:
    """Literals near to a literal but of another value, the nearest first; distinct, each of them text that parses."""
    try:
        value = ast.literal_eval(reference.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        yield from (text for text in _ANY if text != reference.strip())
        return
    seen = set()
    for other in _near(value):
        text = _literal(other)
        # Equal values of different types (1 and True) pass each other's check.
        if text is not None and text not in seen and other != value:
            seen.add(text)
            yield text
    for text in _ANY:
        if text not in seen and ast.literal_eval(text) != value:
            yield text


def _literal(value: Any) -> str | None:
    """The value as a literal; None where it has none, as infinities have not, nor integers of thousands of digits."""
    try:
        text = repr(value)
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return text


def _near(value: Any) -> Iterator[Any]:
    variants = _BY_TYPE.get(type(value))
    if variants is not None:
        yield from variants(value)


def _of_number(value: Any) -> Iterator[Any]:
    yield from (value + 1, value - 1, -value, value * 2, value * 10)


def _of_text(value: Any) -> Iterator[Any]:
    # For text and bytes alike.
    yield from (value[:-1], value[1:], value + value[-1:], value.swapcase(), value[::-1], value.strip(), value * 2)
    if len(value) > 2:
        yield value[1:2] + value[:1] + value[2:]
        yield value[: len(value) // 2]
    yield value + (b" " if isinstance(value, bytes) else " ")


def _of_sequence(value: Any) -> Iterator[Any]:
    # For lists and tuples alike.
    yield value[:-1]
    kind = type(value)
    for place in sorted({0, len(value) - 1} & set(range(len(value))), reverse=True):
        for member in _near(value[place]):
            yield kind([*value[:place], member, *value[place + 1 :]])
            break
    yield from (value[::-1], value[1:], value + value[-1:])
    if len(value) > 1:
        yield kind([value[1], value[0], *value[2:]])
    yield kind([*value, None])


def _of_dict(value: dict[Any, Any]) -> Iterator[Any]:
    items = list(value.items())
    for key, member in reversed(items):
        for other in _near(member):
            yield {**value, key: other}
            break
    yield dict(items[:-1])
    yield dict(items[1:])
    yield {**value, None: None}


def _of_set(value: set[Any]) -> Iterator[Any]:
    members = sorted(value, key=repr)
    yield set(members[:-1])
    yield set(members[1:])
    yield {*members, None}


_BY_TYPE: dict[type, Callable[[Any], Iterator[Any]]] = {
    int: _of_number,
    float: _of_number,
    complex: _of_number,
    bool: lambda value: iter((not value,)),
    type(None): lambda _: iter((False, 0, "")),
    str: _of_text,
    bytes: _of_text,
    list: _of_sequence,
    tuple: _of_sequence,
    dict: _of_dict,
    set: _of_set,
}
