"""Wire values: Python values as type-tagged JSON, for inputs that go into a sandbox and outputs that come back.

Standard library alone: a copy of this file runs inside the verifier's container. No pickle, exact types only: a bool is not an
int, a tuple is not a list, a subclass is refused. The decoder is attack surface, so its callers cap bytes, depth and nodes.

Encoding: ``null``, booleans, strings, lists, finite floats and integers up to 2**53 are themselves; all else is an object with
one key, the tag: ``i`` integer in hex, ``f`` float by name, ``t`` tuple, ``s`` set, ``z`` frozenset, ``d`` dict as pairs in order, ``b``
bytes, ``B`` bytearray, ``c`` complex, ``r`` range, ``D`` Decimal, ``q`` Fraction, ``C`` Counter, ``O`` OrderedDict, ``Q`` deque.
"""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, deque
from decimal import Decimal
from fractions import Fraction

MAX_BYTES = 65_536
MAX_DEPTH = 64
MAX_NODES = 100_000
_PLAIN_INT = 2**53


class UnencodableError(ValueError):
    """The value has a type that the wire does not carry, or is nested too deeply or holds too many nodes."""


class TooLargeError(ValueError):
    """The encoded value is over the byte limit."""


def encode(value: object, *, max_bytes: int = MAX_BYTES) -> str:
    """The value as JSON text in ASCII. Raises UnencodableError and TooLargeError."""
    budget = [MAX_NODES]
    text = json.dumps(_pack(value, MAX_DEPTH, budget), separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    if len(text) > max_bytes:
        raise TooLargeError(f"{len(text)} bytes encoded, over the limit of {max_bytes}")
    return text


def _pack(value: object, depth: int, budget: list[int]) -> object:
    budget[0] -= 1
    if budget[0] < 0:
        raise UnencodableError(f"more than {MAX_NODES} nodes")
    if depth < 0:
        raise UnencodableError(f"nested more than {MAX_DEPTH} deep")
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_PLAIN_INT <= value <= _PLAIN_INT else {"i": hex(value)}  # type: ignore[operator, arg-type]
    if kind is float:
        return value if math.isfinite(value) else {"f": repr(value)}  # type: ignore[arg-type]
    if kind is complex:
        return {"c": [_pack(value.real, depth, budget), _pack(value.imag, depth, budget)]}  # type: ignore[attr-defined]
    return _pack_container(value, kind, depth - 1, budget)


def _pack_container(value: object, kind: type, depth: int, budget: list[int]) -> object:
    if kind is list:
        return [_pack(item, depth, budget) for item in value]  # type: ignore[attr-defined]
    if kind is tuple or kind is deque:
        return {"t" if kind is tuple else "Q": [_pack(item, depth, budget) for item in value]}  # type: ignore[attr-defined]
    if kind is dict or kind is Counter or kind is OrderedDict:
        tag = {dict: "d", Counter: "C", OrderedDict: "O"}[kind]
        return {tag: [[_pack(k, depth, budget), _pack(v, depth, budget)] for k, v in value.items()]}  # type: ignore[attr-defined]
    if kind is set or kind is frozenset:
        # Sorted by encoding: the order of a set is not part of its value.
        members = [_pack(item, depth, budget) for item in value]  # type: ignore[attr-defined]
        return {"s" if kind is set else "z": sorted(members, key=lambda m: json.dumps(m, sort_keys=True))}
    if kind is bytes or kind is bytearray:
        return {"b" if kind is bytes else "B": value.hex()}  # type: ignore[attr-defined]
    if kind is range:
        return {"r": [_pack(n, depth, budget) for n in (value.start, value.stop, value.step)]}  # type: ignore[attr-defined]
    if kind is Decimal:
        return {"D": str(value)}
    if kind is Fraction:
        return {"q": [_pack(value.numerator, depth, budget), _pack(value.denominator, depth, budget)]}  # type: ignore[attr-defined]
    raise UnencodableError(f"type {kind.__module__}.{kind.__qualname__}"[:200])


def decode(text: str, *, max_bytes: int = MAX_BYTES) -> object:
    """The value of `encode`'s text. Raises UnencodableError for anything that `encode` cannot have written."""
    if len(text) > max_bytes:
        raise TooLargeError(f"{len(text)} bytes, over the limit of {max_bytes}")
    if _depth(text) > 3 * MAX_DEPTH + 3:
        raise UnencodableError("nested too deeply")
    try:
        tree = json.loads(text, parse_constant=_refuse_constant)
        return _unpack(tree, [MAX_NODES])
    except (ValueError, TypeError, RecursionError, KeyError, ArithmeticError) as error:
        raise UnencodableError(f"not a wire value: {type(error).__name__}: {error}"[:200]) from None


def _depth(text: str) -> int:
    """Deepest nesting of brackets outside strings, found without recursion so that a hostile text cannot exhaust it."""
    depth = deepest = 0
    in_string = escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _refuse_constant(name: str) -> object:
    raise ValueError(f"bare {name}")


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
        return _FROM_TEXT[tag](body)
    if not isinstance(body, list):
        raise UnencodableError(f"tag {tag} wants a list")
    if tag in _FROM_PAIRS:
        pairs = [(_unpack(key, budget), _unpack(value, budget)) for key, value in body]
        return _FROM_PAIRS[tag](pairs)
    if tag in _FROM_ITEMS:
        return _FROM_ITEMS[tag]([_unpack(item, budget) for item in body])
    raise UnencodableError(f"unknown tag {tag[:20]!r}")


def _float_by_name(text: str) -> float:
    if text not in {"inf", "-inf", "nan"}:
        raise UnencodableError("an unknown float name")
    return float(text)


_FROM_TEXT = {
    "i": lambda text: int(text, 16),
    "f": _float_by_name,
    "b": bytes.fromhex,
    "B": bytearray.fromhex,
    "D": Decimal,
}
_FROM_PAIRS = {"d": dict, "C": lambda pairs: Counter(dict(pairs)), "O": OrderedDict}
_FROM_ITEMS = {
    "t": tuple,
    "s": set,
    "z": frozenset,
    "Q": deque,
    "c": lambda parts: complex(*map(float, parts)),
    "r": lambda parts: range(*parts),
    "q": lambda parts: Fraction(*parts),
}
