"""EvalPlus's rules for one output, each by exact cases; the tolerance against numpy's own `allclose`."""

from __future__ import annotations

import math
import warnings
from collections import Counter, OrderedDict, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from verifiers.evalplus_rules import ORACLES, VALUELESS, agrees, close, enforced

INF, NAN = math.inf, math.nan
HUGE = 10**400


def right(expected: object, found: object, atol: float = 0.0, oracle: str = "", arguments: tuple[object, ...] = ()) -> bool:
    return agrees(oracle, list(arguments), expected, found, atol)


@pytest.mark.parametrize(
    ("expected", "found", "equal"),
    [
        (1, 1.0, True),
        (1, True, True),
        (0, False, True),
        ([1, 2], (1, 2), False),
        ([1, 2], [1.0, True + 1], True),
        ({1: "a"}, Counter({1: "a"}), True),
        (OrderedDict(a=1, b=2), {"b": 2, "a": 1}, True),
        ({1, 2}, frozenset({2.0, 1}), True),
        ("1", 1, False),
        (None, False, False),
        (2**70, float(2**70), True),
        (1, 1 + 0j, True),
        (1, Decimal(1), True),
        (1, Decimal("sNaN"), False),
        (1, 1 + 1e-9, False),
        (HUGE, HUGE + 1, False),
        ([NAN], [float("nan")], False),
    ],
)
def test_equality_is_pythons(expected: object, found: object, equal: bool) -> None:
    assert right(expected, found) is equal


@pytest.mark.parametrize(
    ("expected", "atol", "after"),
    [
        (1.0, 0.0, 1e-6),
        ([1.0, 2.0], 0.0, 1e-6),
        ((1.0,), 0.0, 1e-6),
        ([], 0.0, 0.0),
        ((), 0.0, 0.0),
        ([1.0, 2], 0.0, 0.0),
        ([[1.0]], 0.0, 0.0),
        ({1.0}, 0.0, 0.0),
        (1, 0.0, 0.0),
        (True, 0.0, 0.0),
        (1j, 0.0, 0.0),
        (1.0, 1e-4, 1e-4),
        (1, 1e-6, 1e-6),
    ],
)
def test_zero_tolerance_gives_way_at_floats(expected: object, atol: float, after: float) -> None:
    assert enforced(expected, atol) == after


@pytest.mark.parametrize(
    ("expected", "found", "atol", "equal"),
    [
        (1.0, 1.0000009, 0.0, True),
        (1.0, 1.0000012, 0.0, False),
        (1.0, 0.9999989, 0.0, True),
        (1000000.0, 1000000.1, 0.0, True),
        (1000000.0, 1000000.2, 0.0, False),
        (1.0, 1.0001, 1e-4, True),
        (10, 10.0000001, 1e-6, False),
        (10**8, 10**8 + 10, 1e-6, True),
        (10**8, 10**8 + 11, 1e-6, False),
        (10**8, 10**8 + 1, 0.0, False),
        (True, False, 1e-6, False),
        ([1.0, 2.0], [1.0000001, 2.0], 0.0, True),
        ([1.0, 2.0], (1.0000001, 2.0), 0.0, False),
        ([1.0, 2.0], [1.0000001], 0.0, False),
        ([1.0, 2], [1.0000001, 2], 0.0, False),
        ([1.0, 2], [1.0000001, 2], 1e-6, True),
        ([1.0, "a"], [1.0000001, "a"], 1e-6, False),
        ([1.0, None], [1.0000001, None], 1e-6, False),
        ({"a": 1.0}, {"a": 1.0000001}, 1e-6, False),
        ({1.0}, {1.0000001}, 1e-6, False),
        ("1.0", "1.00", 1e-6, False),
        (None, None, 1e-6, True),
        ([[1.0], [2.0]], [[1.0, 1.0], [2.0, 2.0000001]], 1e-6, True),
        ([[1.0], [2.0]], [[1.0, 1.0], [2.0, 2.1]], 1e-6, False),
        ([[1.0], [2.0]], [[], []], 1e-6, True),
        ([1.0, [2.0]], [1.0000001, [2.0]], 1e-6, False),
        ([[1.0, 2.0]], [[1.0, 2.0, 3.0]], 1e-6, False),
        ([1.0], [[1.0000001]], 0.0, True),
        ([INF, 1.0], [INF, 1.0000001], 0.0, True),
        ([INF], [-INF], 0.0, False),
        (INF, 1.0, 0.0, False),
        (1.0, INF, 0.0, False),
        (NAN, NAN, 0.0, False),
        (1j, 1.0000001j, 1e-6, True),
        (Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**9), 1e-6, False),
        (HUGE, HUGE + 1, 1e-6, False),
        ([1.0], [HUGE], 0.0, False),
        ([1e30], [10**30], 0.0, True),
        ([10**30, 0.5], [10**30 + 1, 0.5], 1e-6, False),
    ],
)
def test_tolerance(expected: object, found: object, atol: float, equal: bool) -> None:
    assert right(expected, found, atol) is equal


@pytest.mark.parametrize(
    ("oracle", "arguments", "expected", "found", "equal"),
    [
        ("anything", (2, 3), True, "what you like", True),
        ("anything", (2, 3), True, None, True),
        ("or_zero", (8,), 7, 7, True),
        ("or_zero", (8,), 7, 0, True),
        ("or_zero", (8,), 7, False, True),
        ("or_zero", (8,), 7, 6, False),
        ("", (8,), 7, 0, False),
        ("pyramid_surface", (3, 4), 33, 33, True),
        ("pyramid_surface", (3, 4), 33, 34, False),
        ("pyramid_surface", (3, 4), 33, 35, True),
        ("pyramid_surface", (3, 4), 33, 35.0, True),
        ("pyramid_surface", (3, 4), 33, [35], False),
        ("pyramid_surface", (3, 4), 33, None, False),
        ("digit_distance", (23, 56), 6, 6, True),
        ("digit_distance", (123, 256), 7, 7, True),
        ("digit_distance", (12, 1), 1, 2, True),
        ("digit_distance", (12, 1), 3, 1, False),
        ("digit_distance", (-12, 1), 3, 2, False),
        ("digit_distance", (-12, 1), 3, 3, True),
        ("same_set", (), [1, 2], [2, 1, 1], True),
        ("same_set", (), [1, 2], (2, 1), True),
        ("same_set", (), [1, 2], {1: 5, 2: 6}, True),
        ("same_set", (), ["a", "b"], "ba", True),
        ("same_set", (), [1, 2], [1], False),
        ("same_set", (), [1, 2], [[1], [2]], False),
        ("same_set", (), [1, 2], 3, False),
        ("same_set", (), [0, 1, 2], range(3), True),
        ("same_set", (), [1, 2], range(10**18), False),
        ("same_set", (), [1, 2], range(10**30), False),
        ("not_none", (), True, "x", True),
        ("not_none", (), True, None, False),
        ("not_none", (), False, None, True),
        ("not_none", (), False, 0, False),
        ("not_none", (), True, 0, True),
        ("not_none", (), True, True, True),
        ("not_none", (), True, False, False),
        ("not_none", (), False, False, True),
        ("not_none", (), False, True, False),
    ],
)
def test_oracles(oracle: str, arguments: tuple[object, ...], expected: object, found: object, equal: bool) -> None:
    assert right(expected, found, oracle=oracle, arguments=arguments) is equal


@pytest.mark.parametrize(
    ("found", "equal"),
    [
        (-0.5, True),
        (-0.50004, True),
        (-0.5001, False),
        (0.3, False),
        (Fraction(-1, 2), True),
        (Decimal("-0.5"), True),
        (1e200, False),
        (NAN, False),
        (INF, False),
        ("-0.5", False),
        (None, False),
        (-0.5 + 0j, False),
        (HUGE, False),
    ],
)
def test_a_zero_is_any_zero(found: object, equal: bool) -> None:
    """1 + 2x, and the canonical solution's own answer does not count."""
    assert right(found, found, 1e-4, "find_zero", ([1, 2],)) is equal


def test_a_zero_of_a_hostile_degree() -> None:
    assert right(0.0, 1.0, 1e-4, "find_zero", ([HUGE, -HUGE],)) is False
    assert right(0.0, 1.0, 1e-4, "find_zero", ([],)) is True


def test_tolerance_after_a_set_that_differs() -> None:
    """EvalPlus asks for tolerance whatever the oracle was."""
    assert right([1.0, 2.0], [1.0000001, 2.0], oracle="same_set") is True
    assert right([1.0, 2.0], [2.0000001, 1.0], oracle="same_set") is False


def test_names() -> None:
    assert VALUELESS < ORACLES


@pytest.mark.parametrize(
    ("expected", "found", "equal"),
    [([[], []], [[1.0], [2]], True), ([[[]]], [[]], True), ([[], []], [[1.0], ["a"]], False), ([[], [1.0]], [[], []], False)],
)
def test_tolerance_without_elements(expected: Any, found: Any, equal: bool) -> None:
    assert ours(expected, found, 1e-6) is equal
    assert numpy_says(expected, found, 1e-6) is equal


def test_broadcasting_is_bounded() -> None:
    wide = [[0.0] * 2000]
    tall = [[[0.0]] * 1000]
    assert close(wide, tall, 1.0) is False, "two million pairs"
    assert close([[0.0] * 1000], tall, 1.0) is True
    assert close([0.0], [range(10**12)], 1.0) is False


numbers = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**53 + 1, 2**63, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 10**30, HUGE]),
    st.sampled_from([0.0, 1.0, 1.0000001, 1.000002, 2.0, 1e30, 1e308, -1e308, INF, -INF, NAN, 5e-324]),
    st.sampled_from([0j, 1 + 0j, 1.0000001j, 1j, complex(INF, 0), complex(NAN, 1)]),
)
leaves = st.one_of(numbers, st.sampled_from([Fraction(1, 3), Fraction(HUGE), Decimal(1), None, "a", "1", b"1", {}, {1: 2}]))


def nested(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def extend(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        # Of arrays without elements numpy compares none, so even with a dict in the other one they are close; not with us.
        lists = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(lists, lists.map(tuple), lists.map(deque), st.sampled_from([range(2), range(1), bytearray(b"\x01\x02")]))

    return st.recursive(elements, extend, max_leaves=8)


def numpy_says(expected: object, found: object, atol: float) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return bool(np.allclose(found, expected, rtol=1e-07, atol=atol))  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001 - whatever numpy raises, EvalPlus fails the input
            return False


def ours(expected: object, found: object, atol: float) -> bool:
    try:
        return close(expected, found, atol)
    except (ArithmeticError, TypeError, ValueError):
        return False


members = st.one_of(nested(leaves), nested(numbers))


@given(
    st.lists(st.tuples(members, members), min_size=1, max_size=3),
    st.sampled_from([list, tuple, deque]),
    st.sampled_from([1e-6, 1e-4, 1.5]),
)
@example([(2**63, 2**63), (-1, -1)], list, 1e-6)
@example([(True, 1), (1.0, HUGE)], tuple, 1e-6)
def test_tolerance_is_numpys(pairs: list[tuple[Any, Any]], kind: Any, atol: float) -> None:
    expected, found = (kind(pair[side] for pair in pairs) for side in (0, 1))
    assert ours(expected, found, atol) == numpy_says(expected, found, atol)


@given(nested(numbers), st.data())
def test_tolerance_is_numpys_for_values_of_one_shape(expected: Any, data: st.DataObject) -> None:
    def near(value: Any) -> Any:
        if isinstance(value, list | tuple | deque):
            return type(value)(map(near, value))
        return data.draw(st.one_of(st.just(value), numbers)) if not isinstance(value, range | bytearray) else value

    found = near(expected)
    assume(type(found) is type(expected))
    assert ours(expected, found, 1e-6) == numpy_says(expected, found, 1e-6)
