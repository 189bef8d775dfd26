"""Wire values come back as they went, with their types, and hostile text never does more than raise."""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, deque
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.values import MAX_BYTES, MAX_DEPTH, TooLargeError, UnencodableError, decode, encode
from verifiers.compare import same

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**300), max_value=2**300)
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=20)
    | st.complex_numbers()
    | st.decimals()
    | st.fractions()
    | st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 3))
)
hashable = st.recursive(
    scalars.filter(lambda v: not (isinstance(v, Decimal) and v.is_snan())), lambda inner: st.lists(inner, max_size=3).map(tuple)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.lists(inner, max_size=4).map(deque)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.dictionaries(hashable, inner, max_size=3).map(OrderedDict)
        | st.sets(hashable, max_size=3)
        | st.frozensets(hashable, max_size=3)
        | st.binary(max_size=9).map(bytearray)
        | st.dictionaries(st.text(max_size=3), st.integers(), max_size=3).map(Counter)
    ),
    max_leaves=12,
)


@given(values)
@example(float("nan"))
@example([-0.0, float("inf"), -float("inf")])
@example(2**53 + 1)
@example(-(10**6000))
@example("\ud800")
@example({(1,): [True], 1.5: None})
def test_round_trip(value: object) -> None:
    text = encode(value)
    back = decode(text)
    assert type(back) is type(value)
    assert same(value, back)
    assert encode(back) == text


@given(st.text(alphabet='[]{}",:\\0123456789abcdfioqrstzBCDOQ-.eE nul', max_size=60))
def test_any_text_decodes_or_raises(text: str) -> None:
    try:
        value = decode(text)
    except UnencodableError:
        return
    assert same(value, value)


@pytest.mark.parametrize(
    "value", [object(), NamedTuple("P", [("x", int)])(1), type("I", (int,), {})(3), len, [object()], {1: {2: print}}]
)
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(UnencodableError, match="type"):
        encode(value)


def test_depth_is_bounded_both_ways() -> None:
    value: object = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert decode(encode(value)) == value
    with pytest.raises(UnencodableError, match="deep"):
        encode([value])
    with pytest.raises(UnencodableError, match="nested too deeply"):
        decode("[" * 1000 + "]" * 1000)
    assert decode(json.dumps("[" * 1000)) == "[" * 1000


def test_size_is_bounded_both_ways() -> None:
    assert len(encode("x" * (MAX_BYTES - 2))) == MAX_BYTES
    for value in ("x" * (MAX_BYTES - 1), ["x" * 10**6] * 10**6, [0] * 10**6, b"x" * MAX_BYTES, list(range(20_000))):
        with pytest.raises(TooLargeError):
            encode(value)
    with pytest.raises(TooLargeError):
        decode('"' + "x" * MAX_BYTES + '"')


@pytest.mark.parametrize(
    "text",
    [
        "", "NaN", "Infinity", "{}", '{"t":1}', '{"i":5}', '{"i":"x"}', '{"f":"1.5"}', '{"x":[]}', '{"t":[],"s":[]}', '{"d":[[1]]}',
        '{"s":[[1]]}', '{"D":"x"}', '{"q":[1,0]}', '{"c":["a",1]}', '{"b":"0"}', '{"r":[0,1,0]}', '{"C":[[[],1]]}',
    ],
)  # fmt: skip
def test_texts_that_encode_never_writes(text: str) -> None:
    with pytest.raises(UnencodableError):
        decode(text)


def test_sets_are_written_in_one_order() -> None:
    assert encode({"b", "a", "c"}) == '{"s":["a","b","c"]}'
    assert encode({3, 1, 2}) == encode({2, 3, 1})


def test_examples_of_the_encoding() -> None:
    assert encode((1, [True, None], 1.0)) == '{"t":[1,[true,null],1.0]}'
    assert encode({"k": {1}}) == '{"d":[["k",{"s":[1]}]]}'
    assert encode([Decimal("1.10"), Fraction(1, 3), 1j, b"\x00"]) == '[{"D":"1.10"},{"q":[1,3]},{"c":[0.0,1.0]},{"b":"00"}]'
    assert math.isnan(decode('{"f":"nan"}'))  # type: ignore[arg-type]
