"""EvalPlus's rules for one output: equality, tolerance, and the oracles of tasks that have more than one right answer.

Pure functions of decoded wire values, so of exact builtin types: no comparison here runs code of the candidate's. Whatever a
hostile value makes one of them raise counts as unequal, as in EvalPlus, which fails an input whatever the comparison raises.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from verifiers.compare import comparable

ENFORCED_ATOL: Final = 1e-6
_RTOL: Final = 1e-7
_MOST_PAIRS: Final = 1_000_000

FIND_ZERO: Final = "find_zero"
ANYTHING: Final = "anything"
OR_ZERO: Final = "or_zero"
PYRAMID_SURFACE: Final = "pyramid_surface"
DIGIT_DISTANCE: Final = "digit_distance"
SAME_SET: Final = "same_set"
NOT_NONE: Final = "not_none"
ORACLES: Final = frozenset({FIND_ZERO, ANYTHING, OR_ZERO, PYRAMID_SURFACE, DIGIT_DISTANCE, SAME_SET, NOT_NONE})
"""Names that `Task.oracle` may have under this checker."""
VALUELESS: Final = frozenset({ANYTHING, NOT_NONE})
"""Oracles for which it is enough that there is a value, even one that cannot be sent."""

_SEQUENCES: Final = (list, tuple, range, deque, bytearray)
"""What numpy makes arrays of; a str or bytes is one element to it."""
_NUMBERS: Final = frozenset({bool, int, float, complex})
_MACHINE_INTEGERS: Final = range(-(2**63), 2**64)
"""Integers outside stay objects to numpy, and it cannot say of an array of objects which are finite."""


def agrees(oracle: str, arguments: list[Any], expected: object, found: object, atol: float) -> bool:
    """Whether the found output is right.

    Args:
        oracle: Name of the task's oracle, or empty.
        arguments: The input's positional arguments, as they were before the call.
        expected: The canonical solution's output; under `NOT_NONE`, whether it was anything but None.
        found: The candidate's output.
        atol: Absolute tolerance that earlier outputs of the job have left: see `enforced`.
    """
    try:
        if oracle == FIND_ZERO:
            return abs(_polynomial(arguments[0], found)) <= atol
        if comparable(expected, found) and _is_exact(oracle, arguments, expected, found, atol):
            return True
        tolerance = enforced(expected, atol)
        return tolerance != 0 and type(found) is type(expected) and close(expected, found, tolerance)
    except (ArithmeticError, TypeError, ValueError, RecursionError):
        return False


def enforced(expected: object, atol: float) -> float:
    """The tolerance from this expected output on: zero gives way at a float, or at a list or tuple of nothing but floats."""
    return ENFORCED_ATOL if atol == 0 and _is_floats(expected) else atol


def _is_floats(value: object) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def _is_exact(oracle: str, arguments: list[Any], expected: Any, found: Any, atol: float) -> bool:
    equal = bool(found == expected)
    if oracle == SAME_SET:
        wanted = set(expected)
        # One by one first: a set of what the candidate chose could take seconds to make, or be more than memory holds.
        return all(member in wanted for member in found) and set(found) == wanted
    if oracle == NOT_NONE:
        return equal if isinstance(found, bool) else (found is not None) == expected
    second = _SECOND_ANSWERS.get(oracle)
    return equal or (second is not None and second(arguments, found, atol))


def _is_pyramid_surface(arguments: list[Any], found: Any, atol: float) -> bool:
    """Where the height is taken for the pyramid's own, not for that of its sides."""
    base, height = arguments
    surface = base**2 + 2 * base * math.sqrt((base / 2) ** 2 + height**2)
    return bool(abs(found - round(surface)) <= atol)


def _is_digit_distance(arguments: list[Any], found: Any, _: float) -> bool:
    """Where the shorter number is filled up with zeros on the left."""
    first, second = map(str, arguments)
    width = max(len(first), len(second))
    pairs = zip(first.zfill(width), second.zfill(width), strict=True)
    return bool(found == sum(abs(int(a) - int(b)) for a, b in pairs))


_SECOND_ANSWERS: Final[Mapping[str, Callable[[list[Any], Any, float], bool]]] = {
    ANYTHING: lambda *_: True,
    OR_ZERO: lambda _, found, __: bool(found == 0),
    PYRAMID_SURFACE: _is_pyramid_surface,
    DIGIT_DISTANCE: _is_digit_distance,
}


def _polynomial(coefficients: list[Any], x: Any) -> float:
    """Its value at x. The lowest power comes first, and they are summed in that order, so that rounding is the same."""
    return float(sum(coefficient * math.pow(x, power) for power, coefficient in enumerate(coefficients)))


def close(expected: object, found: object, atol: float) -> bool:
    """What numpy says by `allclose(found, expected, rtol=1e-7, atol=atol)` of two values of one type. May raise where numpy raises.

    Lists and tuples must be of one length, as EvalPlus asks first; inside them shapes are broadcast. That can make far more pairs
    than there are values, and over a million are unequal.
    """
    if not isinstance(expected, _SEQUENCES):
        return type(expected) in _NUMBERS and _are_close(expected, found, atol)
    assert isinstance(found, _SEQUENCES)
    if isinstance(expected, list | tuple) and len(expected) != len(found):
        return False
    shapes = _shape(expected, _is_expected), _shape(found, _is_found)
    depth = max(map(len, shapes))
    wanted_shape, got_shape = ((1,) * (depth - len(shape)) + shape for shape in shapes)
    dimensions = [b if a == 1 else a for a, b in zip(wanted_shape, got_shape, strict=True)]
    if any({a, b} - {1, size} for a, b, size in zip(wanted_shape, got_shape, dimensions, strict=True)):
        return False
    if math.prod(dimensions) > _MOST_PAIRS:
        return False
    wanted, got = (_wrapped(value, depth - len(shape)) for value, shape in zip((expected, found), shapes, strict=True))
    return _all_close(wanted, got, dimensions, atol)


def _is_expected(value: object) -> bool:
    return type(value) in _NUMBERS and not (isinstance(value, int) and value not in _MACHINE_INTEGERS)


def _is_found(value: object) -> bool:
    return type(value) in _NUMBERS or isinstance(value, Fraction)


def _shape(value: Any, is_element: Callable[[object], bool]) -> tuple[int, ...]:
    """The shape of numpy's array. Raises TypeError for elements of which no sum is made, ValueError for a ragged value."""
    if isinstance(value, range | bytearray):
        return (len(value),)
    if not isinstance(value, _SEQUENCES):
        if not is_element(value):
            raise TypeError("an element that is no number")
        return ()
    inner = {_shape(item, is_element) for item in value}
    if len(inner) > 1:
        raise ValueError("ragged")
    return (len(value), *(inner.pop() if inner else ()))


def _wrapped(value: Any, times: int) -> Any:
    for _ in range(times):
        value = [value]
    return value


def _all_close(expected: Any, found: Any, dimensions: list[int], atol: float) -> bool:
    if not dimensions:
        return _are_close(expected, found, atol)
    size, *rest = dimensions
    return all(_all_close(_at(expected, place), _at(found, place), rest, atol) for place in range(size))


def _at(values: Any, place: int) -> Any:
    return values[0 if len(values) == 1 else place]


def _are_close(expected: Any, found: Any, atol: float) -> bool:
    wanted, got = (value if isinstance(value, complex) else float(value) for value in (expected, found))
    if wanted == got:
        return True
    finite = math.isfinite(wanted.real) and math.isfinite(wanted.imag)
    return finite and abs(got - wanted) <= atol + _RTOL * abs(wanted)
