"""Wire values: Python values as type-tagged JSON, for inputs that go into a sandbox and outputs that come back.

Standard library alone: a copy of this file runs inside the verifier's container. No pickle, exact types only: a bool is not an
int, a tuple is not a list, a subclass is refused. The decoder is attack surface, so its callers cap bytes, depth and nodes.

Encoding: ``null``, booleans, strings, lists, finite floats and integers up to 2**53 are themselves; all else is an object with
one key, the tag: ``i`` integer in hex, ``f`` float by name, ``t`` tuple, ``s`` set, ``z`` frozenset, ``d`` dict as pairs in
order, ``b`` bytes, ``B`` bytearray, ``c`` complex, ``r`` range, ``D`` Decimal, ``q`` Fraction, ``C`` Counter, ``O``
OrderedDict, ``Q`` deque.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection
from decimal import Decimal
from fractions import Fraction
from json.scanner import make_scanner
from typing import Any

MAX_BYTES = 262_144
MAX_DEPTH = 64
MAX_NODES = MAX_BYTES // 2 + 1
"""No text of `MAX_BYTES` has more."""
MAX_DECIMAL_TEXT = 2_000
MAX_DECIMAL_EXPONENT = 10**6
_PLAIN_INT = 2**53
_HEX_INT = re.compile(r"-?0x[0-9a-f]+", re.ASCII)
_HEX_BYTES = re.compile(r"(?:[0-9a-f]{2})*", re.ASCII)
_DECIMAL = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:E[+-][0-9]+)?|Infinity|s?NaN[0-9]*)", re.ASCII)
_CLOSER_LOOK = re.compile(r"[0-9]{16}|[0-9][eE]", re.ASCII)
_WIDE_TEXT = len("-0x") + 512
_WIDE_INT = re.compile(rf'\{{"i":"[^"]{{{_WIDE_TEXT + 1}}}', re.ASCII)
_MOST_TESTS = 20_000
"""Comparisons of two numbers that the members of one hash may cost, in all of a value."""
_CHEAP = {int, float}
_DEAR = 30
"""How many of them a comparison of other members may cost."""
_FEW = 8
"""Members of a set or dict that are not looked at."""
_ALIKE = "too many members of one hash"
_MIXED = "a Decimal beside an integer of over 512 hexadecimal digits"
"""To compare the two takes up to a second, and a set or dict may do that for every pair."""
_NOT_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[^\[\]{}"]+', re.DOTALL)


class UnencodableError(ValueError):
    """The value has a type that the wire does not carry, or is nested too deeply or holds too many nodes."""


class TooLargeError(ValueError):
    """The encoded value is over the byte limit."""


def encode(value: object, *, max_bytes: int = MAX_BYTES) -> str:
    """The value as JSON text in ASCII. Raises UnencodableError and TooLargeError."""
    # Two bytes per node, and each character of text, are less than what the text will have; so a giant value is refused
    # before it is written out.
    budget = [MAX_NODES, max_bytes + 1, max_bytes, _MOST_TESTS]
    text = _TO_JSON.encode(_pack(value, MAX_DEPTH, budget))
    if len(text) > max_bytes:
        raise TooLargeError(f"over the limit of {max_bytes} bytes")
    if '{"D":' in text and _WIDE_INT.search(text):
        raise UnencodableError(_MIXED)
    return text


def seems_still(value: object, text: str) -> bool:
    """Whether a value that was encoded to this text seems to be what it was: much faster than to encode it again.

    False only says that it does not seem so; True overlooks a list that became a tuple.
    """
    try:
        return "{" not in text and _TO_JSON.encode(value) == text
    except (TypeError, ValueError, RecursionError):
        return False


def _pack(value: Any, depth: int, budget: list[int]) -> object:
    kind = type(value)
    budget[0] -= 1
    budget[1] -= 2 + (len(value) if kind is str or kind is bytes or kind is bytearray else 0)
    if budget[1] < 0:
        raise TooLargeError(f"over the limit of {budget[2]} bytes")
    if budget[0] < 0:
        raise UnencodableError(f"more than {MAX_NODES} nodes")
    if depth < 0:
        raise UnencodableError(f"nested more than {MAX_DEPTH} deep")
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_PLAIN_INT <= value <= _PLAIN_INT else {"i": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"f": repr(value)}
    if kind is list:
        return value if _is_plain(value, depth, budget) else [_pack(item, depth - 1, budget) for item in value]
    pack = _PACKERS.get(kind)
    if pack is None:
        raise UnencodableError(f"type {kind.__module__}.{kind.__qualname__}"[:200])
    tag, body = pack
    packed = body(value, lambda item: _pack(item, depth - 1, budget))
    if tag in _HASHED:
        budget[3] = _charged(value, budget[3])  # now, because all members are of types whose hashes are known
    return {tag: packed}


def _is_plain(members: list[Any], depth: int, budget: list[int]) -> bool:
    """Whether all members are of one kind that is written as it is. Charges the budget for them if so; a shortcut, else no more."""
    kinds = set(map(type, members))
    if len(kinds) != 1 or depth < 1:
        return False
    (kind,) = kinds
    if kind is int:
        plain = min(members) >= -_PLAIN_INT and max(members) <= _PLAIN_INT
    elif kind is float:
        plain = all(map(math.isfinite, members))
    else:
        plain = kind is str or kind is bool
    size = 2 * len(members) + (sum(map(len, members)) if kind is str else 0)
    if not plain or size > budget[1] or len(members) > budget[0]:
        return False
    budget[0] -= len(members)
    budget[1] -= size
    return True


_HASHED = frozenset("szdCO")
_TO_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False, check_circular=False)
_Pack = Callable[[Any], object]


def _items(value: Any, pack: _Pack) -> object:
    return [pack(item) for item in value]


def _pairs(value: Any, pack: _Pack) -> object:
    return [[pack(key), pack(item)] for key, item in value.items()]


def _members(value: Any, pack: _Pack) -> object:
    # Sorted by encoding: the order of a set is not part of its value.
    return sorted((pack(item) for item in value), key=lambda member: json.dumps(member, sort_keys=True))


_PACKERS: dict[type, tuple[str, Callable[[Any, _Pack], object]]] = {
    tuple: ("t", _items),
    deque: ("Q", _items),
    dict: ("d", _pairs),
    Counter: ("C", _pairs),
    OrderedDict: ("O", _pairs),
    set: ("s", _members),
    frozenset: ("z", _members),
    bytes: ("b", lambda value, _: value.hex()),
    bytearray: ("B", lambda value, _: value.hex()),
    complex: ("c", lambda value, pack: [pack(value.real), pack(value.imag)]),
    range: ("r", lambda value, pack: [pack(value.start), pack(value.stop), pack(value.step)]),
    Fraction: ("q", lambda value, pack: [pack(value.numerator), pack(value.denominator)]),
    Decimal: ("D", lambda value, _: _decimal_text(value)),
}


def _decimal_text(value: Decimal) -> str:
    """A short text can stand for a number that no memory holds, so an exponent is bounded as a length is."""
    text = str(value)
    if len(text) > MAX_DECIMAL_TEXT or (value.is_finite() and abs(value.adjusted()) > MAX_DECIMAL_EXPONENT):
        raise UnencodableError(f"a Decimal of over {MAX_DECIMAL_TEXT} digits, or with an exponent over {MAX_DECIMAL_EXPONENT}")
    return text


def _charged(members: Collection[Any], budget: int) -> int:
    """What is left of the budget. A set or dict compares members of one hash with each other: of thousands, for seconds."""
    hashes = [*map(hash, members)] if len(members) > _FEW else []
    if len(set(hashes)) < len(hashes):
        price = 1 if _CHEAP.issuperset(map(type, members)) else _DEAR
        budget -= price * sum(count * (count - 1) for count in Counter(hashes).values())
    if budget < 0:
        raise UnencodableError(_ALIKE)
    return budget


def decode(text: str, *, max_bytes: int = MAX_BYTES) -> object:
    """The value of `encode`'s text. Raises UnencodableError for anything that `encode` cannot have written."""
    if len(text) > max_bytes:
        raise TooLargeError(f"over the limit of {max_bytes} bytes")
    if _depth(text) > 3 * MAX_DEPTH + 3:
        raise UnencodableError("nested too deeply")
    try:
        if _is_simple(text):
            value, end = _scan_simple(text, 0)
            if end == len(text):
                return value
        return _unpack(_JSON.decode(text), [MAX_NODES, 0, 0, _MOST_TESTS])
    except (ValueError, TypeError, RecursionError, KeyError, ArithmeticError, StopIteration) as error:
        raise UnencodableError(f"not a wire value: {type(error).__name__}: {error}"[:200]) from None


def _depth(text: str) -> int:
    """Deepest nesting of brackets outside strings, found without recursion so that a hostile text cannot exhaust it."""
    openings = text.count("[") + text.count("{")
    if openings <= MAX_DEPTH:
        return openings  # at most; most texts end here
    depth = deepest = 0
    for char in _NOT_BRACKETS.sub("", text):
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def _refuse_constant(name: str) -> object:
    raise ValueError(f"bare {name}")


def _plain_int(text: str) -> int:
    if len(text) > 17 or abs(value := int(text)) > _PLAIN_INT:
        raise ValueError("an integer that should be in hex")
    return value


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a float that should go by its name")
    return value


def _is_simple(text: str) -> bool:
    """Whether the text has no tags, no number that needs a closer look and not too many nodes: then its JSON is its value."""
    return "{" not in text and not _CLOSER_LOOK.search(text) and text.count(",") + text.count("[") < MAX_NODES


_scan_simple = make_scanner(json.JSONDecoder(parse_constant=_refuse_constant))  # type: ignore[arg-type]  # a wrong stub
_JSON = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_plain_int, parse_float=_finite_float)


def _unpack(node: object, budget: list[int]) -> object:
    budget[0] -= 1
    if budget[0] < 0:
        raise UnencodableError(f"more than {MAX_NODES} nodes")
    if node is None or isinstance(node, bool | int | float | str):
        return node
    if isinstance(node, list):
        return [_unpack(item, budget) for item in node]
    if not isinstance(node, dict) or len(node) != 1:
        raise UnencodableError("an object with other than one tag")
    ((tag, body),) = node.items()
    return _unpack_tag(tag, body, budget)


def _unpack_tag(tag: str, body: object, budget: list[int]) -> object:
    if tag in _FROM_TEXT:
        if not isinstance(body, str):
            raise UnencodableError(f"tag {tag} wants text")
        budget[1] |= tag == "D"
        budget[2] |= tag == "i" and len(body) > _WIDE_TEXT
        if budget[1] and budget[2]:
            raise UnencodableError(_MIXED)
        return _FROM_TEXT[tag](body)
    if not isinstance(body, list):
        raise UnencodableError(f"tag {tag} wants a list")
    if tag in _FROM_PAIRS:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in body):
            raise UnencodableError(f"tag {tag} wants pairs")
        pairs = [(_unpack(key, budget), _unpack(value, budget)) for key, value in body]
        budget[3] = _charged([key for key, _ in pairs], budget[3])
        return _FROM_PAIRS[tag](pairs)
    if tag in _FROM_ITEMS:
        items = [_unpack(item, budget) for item in body]
        if tag in _HASHED:
            budget[3] = _charged(items, budget[3])
        return _FROM_ITEMS[tag](items)
    raise UnencodableError(f"unknown tag {tag[:20]!r}")


def _float_by_name(text: str) -> float:
    if text not in {"inf", "-inf", "nan"}:
        raise UnencodableError("an unknown float name")
    return float(text)


def _matched(pattern: re.Pattern[str], text: str) -> str:
    if pattern.fullmatch(text) is None:
        raise UnencodableError("a text that its tag does not allow")
    return text


def _decimal(text: str) -> Decimal:
    if len(text) > MAX_DECIMAL_TEXT:
        raise UnencodableError("a Decimal that is too long")
    value = Decimal(_matched(_DECIMAL, text))
    _decimal_text(value)
    return value


def _of_type(kind: type, count: int, parts: list[Any]) -> list[Any]:
    """The parts, if they are so many of exactly that type: constructors take texts too, and compute with them."""
    if len(parts) != count or any(type(part) is not kind for part in parts):
        raise UnencodableError(f"other than {count} of type {kind.__name__}")
    return parts


def _fraction(parts: list[Any]) -> Fraction:
    numerator, denominator = _of_type(int, 2, parts)
    if denominator <= 0:
        raise UnencodableError("a denominator that is not positive")
    return Fraction(numerator, denominator)


_FROM_TEXT: dict[str, Callable[[str], object]] = {
    "i": lambda text: int(_matched(_HEX_INT, text), 16),
    "f": _float_by_name,
    "b": lambda text: bytes.fromhex(_matched(_HEX_BYTES, text)),
    "B": lambda text: bytearray.fromhex(_matched(_HEX_BYTES, text)),
    "D": _decimal,
}
_FROM_PAIRS: dict[str, Callable[[list[tuple[Any, Any]]], object]] = {
    "d": dict,
    "C": lambda pairs: Counter(dict(pairs)),
    "O": OrderedDict,
}
_FROM_ITEMS: dict[str, Callable[[list[Any]], object]] = {
    "t": tuple,
    "s": set,
    "z": frozenset,
    "Q": deque,
    "c": lambda parts: complex(*_of_type(float, 2, parts)),
    "r": lambda parts: range(*_of_type(int, 3, parts)),
    "q": _fraction,
}
