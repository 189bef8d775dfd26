"""Compares decoded outputs on the host, and shows them in messages.

Types are kept: a bool is not an int, an int is not a float, a tuple is not a list. NaN equals NaN, and -0.0 equals 0.0.
Floats are equal exactly, or, with a tolerance, when they differ by at most ``atol + 1e-7 * abs(expected)``; members of sets
and keys of dicts are always compared exactly. The order of a dict does not count, that of an OrderedDict does.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any

from schemas.values import decode

_RTOL = 1e-7
_SHOWN = 120
_WIDE = 2_048


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
        assert isinstance(found, dict)
        return _same_dict(expected, found, atol)
    return _key(expected) == _key(found)


def _same_float(expected: float, found: object, atol: float) -> bool:
    assert isinstance(found, float)
    if expected == found or (math.isnan(expected) and math.isnan(found)):
        return True
    if atol <= 0 or not (math.isfinite(expected) and math.isfinite(found)):
        return False
    return abs(expected - found) <= atol + _RTOL * abs(expected)


def _same_dict(expected: dict[Any, Any], found: dict[Any, Any], atol: float) -> bool:
    if isinstance(expected, OrderedDict) and [*map(_key, expected)] != [*map(_key, found)]:
        return False
    if len(expected) != len(found):  # keys that are NaN would fall together below
        return False
    wanted = {_key(key): value for key, value in expected.items()}
    got = {_key(key): value for key, value in found.items()}
    return wanted.keys() == got.keys() and all(same(value, got[key], atol) for key, value in wanted.items())


def _key(value: Any) -> Hashable:
    """A value by type and content, so that 1, 1.0 and True are three different members of a set."""
    make = _KEYS.get(type(value))
    return type(value).__name__, make(value) if make else value


_KEYS: dict[type, Callable[[Any], Hashable]] = {
    float: lambda value: "nan" if math.isnan(value) else value,
    complex: lambda value: (_key(value.real), _key(value.imag)),
    Decimal: lambda value: str(value) if value.is_nan() else value,
    tuple: lambda value: tuple(map(_key, value)),
    set: lambda value: (len(value), frozenset(map(_key, value))),  # members that are NaN fall together
    frozenset: lambda value: (len(value), frozenset(map(_key, value))),
    bytearray: bytes,
}


def equal(expected: object, found: object) -> bool:
    """Python's own ``==`` on decoded wire values: what a plain assert statement asks."""
    if not comparable(expected, found):
        return False
    try:
        return bool(expected == found)
    except ArithmeticError:  # a signalling Decimal NaN refuses to be compared
        return False


def comparable(expected: object, found: object) -> bool:
    """False where one value has a Decimal and the other an integer of more than 2,048 bits: to ask for ``==`` can take a second."""
    return not ((_has_decimal(found) and _has_wide(expected)) or (_has_wide(found) and _has_decimal(expected)))


def _has_decimal(value: object) -> bool:
    return isinstance(value, Decimal) or any(map(_has_decimal, _members(value)))


def _has_wide(value: object) -> bool:
    if isinstance(value, int):
        return value.bit_length() > _WIDE
    return any(map(_has_wide, _members(value)))


def _members(value: Any) -> Iterable[object]:
    if isinstance(value, dict):
        return chain(value, value.values())
    if isinstance(value, Fraction):
        return value.numerator, value.denominator
    return value if isinstance(value, list | tuple | set | frozenset | deque) else ()


def show(wire: str, width: int = _SHOWN) -> str:
    """A wire value as Python would write it, cut. The same text in every process, unlike `repr` of a set."""
    try:
        text = _render(decode(wire))
    except ValueError:  # not a wire value, or an integer with more digits than Python will write
        text = wire
    return cut(text, width)


def cut(text: str, width: int) -> str:
    """Text of at most that many characters, without lone surrogates and control characters."""
    plain = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text[: 2 * width])
    return plain if len(plain) <= width and len(text) <= 2 * width else plain[: width - 1] + "…"


def _render(value: Any) -> str:
    render = _RENDERERS.get(type(value))
    return render(value) if render else repr(value)


def _list(value: Any) -> str:
    return f"[{', '.join(map(_render, value))}]"


def _tuple(value: Any) -> str:
    return f"({', '.join(map(_render, value))}{',' if len(value) == 1 else ''})"


def _dict(value: Any) -> str:
    return f"{{{', '.join(f'{_render(key)}: {_render(item)}' for key, item in value.items())}}}"


def _set(value: Any) -> str:
    return f"{{{', '.join(sorted(map(_render, value)))}}}" if value else "set()"


_RENDERERS: dict[type, Callable[[Any], str]] = {
    int: lambda value: hex(value) if value.bit_length() > 256 else repr(value),
    list: _list,
    tuple: _tuple,
    dict: _dict,
    set: _set,
    frozenset: lambda value: f"frozenset({_set(value) if value else ''})",
    deque: lambda value: f"deque({_list(value)})",
    OrderedDict: lambda value: f"OrderedDict({_dict(value)})",
    Counter: lambda value: f"Counter({_dict(value)})",
}
