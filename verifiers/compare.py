"""Compares decoded outputs on the host, and shows them in messages.

Types are kept: a bool is not an int, an int is not a float, a tuple is not a list. NaN equals NaN, and -0.0 equals 0.0.
Floats are equal exactly, or, with a tolerance, when they differ by at most ``atol + 1e-7 * abs(expected)``; members of sets
and keys of dicts are always compared exactly. The order of a dict does not count, that of an OrderedDict does.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from decimal import Decimal
from typing import Any

from schemas.values import decode

_RTOL = 1e-7
_SHOWN = 120


def same(expected: object, found: object, atol: float = 0.0) -> bool:
    """Whether the found value is the expected one. Both are decoded wire values, so depth is bounded."""
    if type(expected) is not type(found):
        return False
    if isinstance(expected, float):
        return _same_float(expected, found, atol)
    if isinstance(expected, complex):
        assert isinstance(found, complex)
        return _same_float(expected.real, found.real, atol) and _same_float(expected.imag, found.imag, atol)
    if isinstance(expected, list | tuple | deque):
        assert isinstance(found, list | tuple | deque)
        return len(expected) == len(found) and all(same(a, b, atol) for a, b in zip(expected, found, strict=True))
    if isinstance(expected, dict):
        return _same_dict(expected, found, atol)
    return _key(expected) == _key(found)


def _same_float(expected: float, found: Any, atol: float) -> bool:
    if expected == found or (math.isnan(expected) and math.isnan(found)):
        return True
    if atol <= 0 or not (math.isfinite(expected) and math.isfinite(found)):
        return False
    return abs(expected - found) <= atol + _RTOL * abs(expected)


def _same_dict(expected: dict[Any, Any], found: Any, atol: float) -> bool:
    if isinstance(expected, OrderedDict) and [*map(_key, expected)] != [*map(_key, found)]:
        return False
    wanted = {_key(key): value for key, value in expected.items()}
    got = {_key(key): value for key, value in found.items()}
    return wanted.keys() == got.keys() and all(same(value, got[key], atol) for key, value in wanted.items())


def _key(value: Any) -> Hashable:
    """A value by type and content, so that 1, 1.0 and True are three different members of a set."""
    kind = type(value).__name__
    if isinstance(value, float):
        return kind, "nan" if math.isnan(value) else value
    if isinstance(value, complex):
        return kind, _key(value.real), _key(value.imag)
    if isinstance(value, Decimal):
        return kind, str(value) if value.is_nan() else value
    if isinstance(value, tuple):
        return kind, tuple(map(_key, value))
    if isinstance(value, set | frozenset):
        return kind, frozenset(map(_key, value))
    if isinstance(value, bytearray):
        return kind, bytes(value)
    return kind, value


def equal(expected: object, found: object) -> bool:
    """Python's own ``==`` on decoded wire values: what a plain assert statement asks."""
    try:
        return bool(expected == found)
    except ArithmeticError:  # a signalling Decimal NaN refuses to be compared
        return False


def show(wire: str, width: int = _SHOWN) -> str:
    """A wire value as Python would write it, cut. The same text in every process, unlike `repr` of a set."""
    try:
        text = _render(decode(wire, max_bytes=max(len(wire), 1)))
    except ValueError:  # not a wire value, or an integer with more digits than Python will write
        text = wire
    return cut(text, width)


def cut(text: str, width: int) -> str:
    """Text of at most that many characters, without lone surrogates and control characters."""
    plain = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text[: 2 * width])
    return plain if len(plain) <= width and len(text) <= 2 * width else plain[: width - 1] + "…"


def _render(value: Any) -> str:
    kind = type(value)
    if kind is int and value.bit_length() > 256:
        return hex(value)
    if kind is list:
        return f"[{', '.join(map(_render, value))}]"
    if kind is tuple:
        return f"({', '.join(map(_render, value))}{',' if len(value) == 1 else ''})"
    if kind is dict:
        return f"{{{', '.join(f'{_render(key)}: {_render(item)}' for key, item in value.items())}}}"
    if kind is set and value:
        return f"{{{', '.join(sorted(map(_render, value)))}}}"
    if kind is frozenset and value:
        return f"frozenset({{{', '.join(sorted(map(_render, value)))}}})"
    if kind is deque:
        return f"deque({_render(list(value))})"
    if kind is OrderedDict or kind is Counter:
        return f"{kind.__name__}({_render(dict(value))})"
    return repr(value)
