"""Wire values come back as they went, with their types, and hostile text never does more than raise."""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, deque
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schemas.values import MAX_BYTES, MAX_DEPTH, TooLargeError, UnencodableError, decode, encode, seems_still
from verifiers.compare import equal, same, show

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
    for value in ("x" * (MAX_BYTES - 1), ["x" * 10**6] * 10**6, [0] * 10**6, b"x" * MAX_BYTES, list(range(50_000))):
        with pytest.raises(TooLargeError):
            encode(value)
    with pytest.raises(TooLargeError):
        decode('"' + "x" * MAX_BYTES + '"')
    assert decode(encode([0] * ((MAX_BYTES - 2) // 2))) == [0] * ((MAX_BYTES - 2) // 2), "bytes are the limit, not nodes"


@pytest.mark.parametrize(
    "text",
    [
        "", "NaN", "Infinity", "{}", '{"t":1}', '{"i":5}', '{"i":"x"}', '{"f":"1.5"}', '{"x":[]}', '{"t":[],"s":[]}',
        '{"d":[[1]]}', '{"q":["1e999999999"]}', '{"q":[{"D":"1E+99999999"}]}', '{"q":["1/3"]}', '{"q":[1.5,2]}', '{"q":[1]}',
        '{"q":[1,true]}', '{"q":[1,-2]}', '{"q":[{"q":[1,2]},3]}', '{"c":["1",2.0]}', '{"c":[1,2]}', '{"c":[1.0,2.0,3.0]}',
        '{"c":[{"D":"1E+99"},2.0]}', '{"c":[true,1.0]}', '{"r":[1]}', '{"r":[]}', '{"r":[0,true,1]}', '{"r":[0,1.0,1]}',
        '{"i":"1_0"}', '{"i":" 0x1"}', '{"i":"ff"}', '{"i":"-0x"}', '{"i":"0xG"}', '{"b":"0 0"}', '{"b":"AB"}', '{"B":"+1"}',
        '{"D":" 1"}', '{"D":"1_0"}', '{"D":"\u0661"}', '{"D":"1E+1000001"}', '{"D":"1E-1000001"}',
        '{"D":"1E+999999999999999999"}', '{"D":"0E+999999999"}', '{"D":"' + "1" * 5000 + '"}', '{"f":"Infinity"}', '{"f":"1e9"}',
        "1e999", "-1e999", "9" * 17, "-" + "9" * 17, "9" * 5000, '{"d":["ab"]}', '{"d":[[1,2,3]]}', '{"d":[{"t":[1,2]}]}',
        '{"C":["ab"]}', '{"O":["ab"]}', '{"s":[{"D":"sNaN"}]}', '{"s":[[1]]}', '{"D":"x"}', '{"q":[1,0]}', '{"c":["a",1]}',
        '{"b":"0"}', '{"r":[0,1,0]}', '{"C":[[[],1]]}',
    ],
)  # fmt: skip
def test_texts_that_encode_never_writes(text: str) -> None:
    with pytest.raises(UnencodableError):
        decode(text)


@pytest.mark.parametrize("value", [Decimal("1E+1000001"), Decimal("-1E-2000000"), Decimal("0E+1000001"), Decimal("1" * 3000)])
def test_decimals_that_could_not_come_back_are_refused(value: Decimal) -> None:
    with pytest.raises(UnencodableError, match="Decimal"):
        encode([value])


TAGS = "iftszdbBcrDqCOQ"
HUGE = '{"i":"0x' + "f" * 3000 + '"}'
NUMBERS = ["0", "1", "-1", "1.5", "1e308", "1e999", "9" * 40, "true", "null", '""', '"1e999999999"', '"-0x1"', '"nan"']
DECIMALS = ['"1E+999999"', '"1E+999999999"', '"-1E-999999999999999999"', '"sNaN"', '"Infinity"', '"' + "9" * 900 + '"']
BOMBS = [HUGE, f'{{"q":[{HUGE},3]}}', '{"D":"1E+1000000"}', '{"D":"9E-1000000"}', f'{{"r":[0,{HUGE},1]}}']
hostile = st.recursive(
    st.sampled_from([*NUMBERS, *DECIMALS, *BOMBS]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | st.tuples(st.sampled_from(TAGS), st.lists(inner, max_size=3)).map(lambda pair: f'{{"{pair[0]}":[{",".join(pair[1])}]}}')
        | st.tuples(st.sampled_from(TAGS), inner).map(lambda pair: f'{{"{pair[0]}":{pair[1]}}}')
        | st.tuples(st.sampled_from("dCO"), inner, inner).map(lambda three: f'{{"{three[0]}":[[{three[1]},{three[2]}]]}}')
    ),
    max_leaves=8,
)


def digits(value: object) -> int:
    """Digits of the largest number in a value, in hex."""
    if isinstance(value, int):
        return value.bit_length() // 4
    if isinstance(value, Fraction):
        return max(digits(value.numerator), digits(value.denominator))
    if isinstance(value, Decimal):
        return len(value.as_tuple().digits)
    if isinstance(value, dict):
        return max((digits(each) for pair in value.items() for each in pair), default=0)
    if isinstance(value, list | tuple | set | frozenset | deque):
        return max(map(digits, value), default=0)
    return 0


@settings(max_examples=400)
@given(hostile, hostile)
@example('{"q":["1e999999999"]}', "1")
@example('{"D":"1E+1000000"}', '{"q":[1,3]}')
@example('{"D":"1E-1000000"}', "1.5")
def test_no_number_is_larger_than_its_text(first: str, second: str) -> None:
    """Nothing in a decoded value, nor in what is made of it, outgrows the text that it came from."""
    decoded = []
    for text in (first, second):
        assert len(show(text)) <= 120
        try:
            value = decode(text)
        except (UnencodableError, TooLargeError):
            continue
        assert digits(value) <= len(text)
        assert len(encode(value)) <= 6 * len(text) + 40
        decoded.append(value)
    for value in decoded:
        for other in decoded:
            same(value, other, 1e-6)
            equal(value, other)


def test_sets_are_written_in_one_order() -> None:
    assert encode({"b", "a", "c"}) == '{"s":["a","b","c"]}'
    assert encode({3, 1, 2}) == encode({2, 3, 1})


def test_examples_of_the_encoding() -> None:
    assert encode((1, [True, None], 1.0)) == '{"t":[1,[true,null],1.0]}'
    assert encode({"k": {1}}) == '{"d":[["k",{"s":[1]}]]}'
    assert encode([Decimal("1.10"), Fraction(1, 3), 1j, b"\x00"]) == '[{"D":"1.10"},{"q":[1,3]},{"c":[0.0,1.0]},{"b":"00"}]'
    assert math.isnan(decode('{"f":"nan"}'))  # type: ignore[arg-type]


@given(values)
def test_what_was_not_touched_seems_still(value: object) -> None:
    text = encode(value)
    assert seems_still(value, text) is ("{" not in text)
    assert not seems_still([value], text)


def test_what_was_changed_does_not_seem_still() -> None:
    loop: list[object] = [1]
    loop.append(loop)
    for before, after in (([1], [True]), ([1], [1.0]), ([0.0], [-0.0]), ([1], [1, object()]), ([1], loop), ([1.5], [float("nan")])):
        assert not seems_still(after, encode(before))


@pytest.mark.parametrize("digits", [512, 513])
def test_a_decimal_beside_a_wide_integer_is_refused(digits: int) -> None:
    """One set of a wide integer and a thousand Decimals of its hash would take the host a quarter of an hour to build."""
    wide = -(16**digits - 1)
    value = {Decimal(1), wide}
    text = '{"s":[{"\\u0044":"1"},{"i":"%s"}]}' % hex(wide)  # noqa: UP031 - braces
    if digits == 512:
        assert decode(encode(value)) == decode(text) == value
        return
    for mixed in (value, [Fraction(wide), [Decimal(1)]]):
        with pytest.raises(UnencodableError, match="a Decimal beside an integer of over 512 hexadecimal digits"):
            encode(mixed)
    with pytest.raises(UnencodableError, match="a Decimal beside"):
        decode(text)
    assert decode(encode(['{"D":', wide])) == ['{"D":', wide]


P = 2**61 - 1
"""Whole numbers that differ by a multiple of it have one hash."""
ALIKE: dict[str, list[object]] = {
    "integers": [n * P + 7 for n in range(1, 151)],
    "fractions": [Fraction(n * P + 1, 1) for n in range(1, 32)],
    "decimals": [Decimal(n * P + 1) for n in range(1, 32)],
    "complex": [complex(-1_000_003 * n, n) for n in range(1, 32)],
    "tuples": [(n * P + 7,) for n in range(1, 32)],
    "frozensets": [frozenset([n * P + 7]) for n in range(1, 32)],
}


@pytest.mark.parametrize("kind", ALIKE)
@pytest.mark.parametrize("container", [set, frozenset, dict, Counter, OrderedDict])
def test_members_of_one_hash_are_bounded_both_ways(kind: str, container: type) -> None:
    """A few thousand of them took the host six seconds, and a candidate may send a hundred such values."""
    members = ALIKE[kind]
    make = dict.fromkeys if issubclass(container, dict) else list
    most = 141 if kind == "integers" else 26
    for count, fits in ((most, True), (most + 1, False)):
        value = container(make(members[:count]))  # type: ignore[arg-type]
        assert len(value) == count
        text = json.dumps(encode_anyhow(value))
        if fits:
            assert decode(encode(value)) == value == decode(text)
            continue
        with pytest.raises(UnencodableError, match="too many members of one hash"):
            encode(value)
        with pytest.raises(UnencodableError, match="too many members of one hash"):
            decode(text)


def encode_anyhow(value: object) -> object:
    """As `encode` would write it if nothing were bounded; members in any order."""
    tags = {set: "s", frozenset: "z", dict: "d", Counter: "C", OrderedDict: "O"}
    if isinstance(value, dict):
        return {tags[type(value)]: [[encode_anyhow(key), encode_anyhow(item)] for key, item in value.items()]}
    if isinstance(value, set | frozenset):
        return {tags[type(value)]: [encode_anyhow(member) for member in value]}
    return json.loads(encode(value))


def test_members_of_one_hash_are_counted_over_the_whole_value() -> None:
    sets = [set(ALIKE["integers"][:100]) for _ in range(3)]
    assert decode(encode(sets[:2])) == sets[:2]
    with pytest.raises(UnencodableError, match="one hash"):
        encode(sets)


def test_sets_of_plain_values_are_never_too_alike() -> None:
    for value in (set(range(40_000)), {str(n) for n in range(20_000)}, {(a, b) for a in range(100) for b in range(100)}):
        assert decode(encode(value)) == value
    powers = {2**n for n in range(1_000)}  # 61 hashes
    assert decode(encode(powers)) == powers
