"""Comparison of outputs: types kept, NaN, signed zero, tolerance, and what messages show."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from decimal import Decimal
from fractions import Fraction

import pytest

from schemas.values import decode, encode
from verifiers.compare import comparable, cut, equal, same, show
from verifiers.evalplus_rules import agrees

NAN = float("nan")
INF = float("inf")


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (1, 1),
        (0.0, -0.0),
        (NAN, NAN),
        ([NAN, (INF,)], [NAN, (INF,)]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({NAN: 1}, {NAN: 1}),
        ({1, "a"}, {"a", 1}),
        ({(0.0,)}, {(-0.0,)}),
        (complex(1, NAN), complex(1, NAN)),
        (Decimal("NaN"), Decimal("NaN")),
        (Decimal("sNaN"), Decimal("sNaN")),
        (Decimal("1.0"), Decimal("1.00")),
        (bytearray(b"x"), bytearray(b"x")),
        (deque([1, 2]), deque([1, 2])),
        (Counter("aab"), Counter("baa")),
        (range(0, 4, 3), range(0, 5, 3)),
        (Fraction(2, 4), Fraction(1, 2)),
    ],
)
def test_same(expected: object, found: object) -> None:
    assert same(expected, found)
    assert same(found, expected)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (1.0, Fraction(1)),
        ([1], (1,)),
        ([1, 2], [1]),
        ([1, 2], [2, 1]),
        ({1}, {True}),
        ({NAN}, {NAN, float("nan")}),
        ({(NAN,): 1}, {(NAN,): 1, (float("nan"),): 1}),
        ({frozenset([NAN])}, {frozenset([NAN, float("nan")])}),
        ({1}, {1.0}),
        ({1}, frozenset({1})),
        ({(1, 2)}, {(1, True)}),
        ({1: "a"}, {True: "a"}),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, Counter("a")),
        ({"a": 1}, OrderedDict(a=1)),
        (OrderedDict(a=1, b=2), OrderedDict([("b", 2), ("a", 1)])),
        ("1", b"1"),
        (NAN, 1.0),
        (NAN, None),
        (INF, -INF),
        (0.1 + 0.2, 0.3),
        (Decimal(1), 1),
        (Decimal("NaN"), Decimal("sNaN")),
    ],
)
def test_not_same(expected: object, found: object) -> None:
    assert not same(expected, found)
    assert not same(found, expected)


def test_tolerance_is_atol_and_a_ten_millionth() -> None:
    assert same([1.0], [1.0 + 1e-6], 1e-6)
    assert same(1e9, 1e9 + 99, 1e-6)
    assert not same(1e9, 1e9 + 101, 1e-6)
    assert not same(1.0, 1.0000012, 1e-6)
    assert same({"k": complex(1, 2)}, {"k": complex(1 + 1e-7, 2)}, 1e-6)
    assert not same(INF, 1e308, 1e-6)
    assert not same(NAN, 0.0, 1e-6)
    assert not same({1.0}, {1.0 + 1e-9}, 1e-6)  # members of sets are exact
    assert not same(1, 1.0, 1e-6)


def test_equal_is_pythons_own() -> None:
    assert equal([1, 2.0], [True, 2])
    assert not equal(NAN, NAN)
    assert not equal(Decimal("sNaN"), Decimal(1))
    assert not equal("a", "b")


WIDE = 16**200_000


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (WIDE, Decimal(1)),
        ([{"a": (WIDE,)}], [{"a": (Decimal(1),)}]),
        (Decimal(1), Fraction(WIDE, 3)),
        ({Decimal(1): 2}, deque([WIDE])),
        (Decimal(2**2048), 2**2048),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_decimal_is_not_compared_with_a_wide_integer(expected: object, found: object) -> None:
    assert not comparable(expected, found)
    assert not comparable(found, expected)
    assert not equal(expected, found)
    assert not agrees("", [], expected, found, 0.0)
    assert comparable(expected, expected)
    assert equal(expected, expected)


def test_other_decimals_and_integers_are() -> None:
    assert equal([Decimal(2**2048 - 1)], [2**2048 - 1])
    assert equal({Decimal(2): 1}, {2: Fraction(1)})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1,), "(1,)"),
        ([1, (2, 3), {"a": {1.5}}], "[1, (2, 3), {'a': {1.5}}]"),
        ({"b", "a"}, "{'a', 'b'}"),
        (set(), "set()"),
        (frozenset({2, 1}), "frozenset({1, 2})"),
        (frozenset(), "frozenset()"),
        (Counter("ab"), "Counter({'a': 1, 'b': 1})"),
        (deque([1]), "deque([1])"),
        (OrderedDict(a=1), "OrderedDict({'a': 1})"),
        (16**80, hex(16**80)),
        ("\x1b[2J", "'\\x1b[2J'"),
        (None, "None"),
    ],
)
def test_show(value: object, text: str) -> None:
    assert show(encode(value)) == text


def test_show_cuts_and_survives() -> None:
    assert show(encode("x" * 500), 10) == "'xxxxxxxx…"
    assert show("no wire value") == "no wire value"
    assert show(encode(Fraction(10**5000, 3))).startswith('{"q":[{"i":"0x')
    assert cut("a\ud800\n\u202e", 40) == "a\\ud800\\n\\u202e"
    assert len(cut("\n" * 100, 30)) == 30


def test_deepest_values_fit_the_stack() -> None:
    for text in ("[" * 190 + "]" * 190, '{"z":[' * 95 + "]}" * 95, '{"s":[' + '{"t":[' * 90 + "]}" * 90 + "]}"):
        value = decode(text)
        assert same(value, value)
        assert not same(value, None)
        assert len(show(text, 5)) == 5
