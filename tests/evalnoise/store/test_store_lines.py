"""Lines with a checksum: exact round trips, and no damage goes unseen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalnoise.store.lines import encode_line, parse_lines
from schemas.errors import StoreError

ANY_TEXT = st.text(st.characters(exclude_categories=()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


def parse(data: bytes, *, last_may_be_bad: bool = False) -> list[dict[str, object]]:
    return parse_lines(Path("j"), data, remedy="Do.", last_may_be_bad=last_may_be_bad).records


@given(st.dictionaries(ANY_TEXT, VALUES, min_size=1, max_size=4))
def test_round_trip_is_exact_even_for_lone_surrogates(record):
    line = encode_line(record)
    assert line.count(b"\n") == 1
    assert parse(line) == [record]


def test_two_halves_of_a_pair_stay_two():
    assert parse(encode_line({"text": "\ud83d\ude00"})) == [{"text": "\ud83d\ude00"}]


def test_a_line_is_plain_json_for_other_readers():
    line = json.loads(encode_line({"kind": "sealed", "n": 3}))
    assert (line["kind"], line["n"], len(line["sum"])) == ("sealed", 3, 16)


def test_a_value_that_looks_like_the_checksum_is_kept():
    record = {"text": ',"sum":"0123456789abcdef"}', "sum": "mine"}
    assert parse(encode_line(record)) == [record]


@given(st.data())
def test_every_flipped_bit_is_seen(data):
    lines = [encode_line({"id": str(n), "text": "é" * n}) for n in range(4)]
    whole = b"".join(lines)
    place = data.draw(st.integers(0, len(whole) - 2))
    damaged = bytearray(whole)
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(StoreError):
        parse(bytes(damaged))


@given(st.integers(0, 200))
def test_a_torn_tail_is_left_out(cut):
    lines = [encode_line({"id": str(n)}) for n in range(4)]
    whole = b"".join(lines)
    kept = whole[: min(cut, len(whole))]
    parsed = parse_lines(Path("j"), kept, remedy="Do.", last_may_be_bad=False)
    assert len(parsed.records) == kept.count(b"\n")
    assert parsed.good_bytes == kept.rfind(b"\n") + 1


def test_the_error_names_the_line_and_the_remedy():
    good = encode_line({"n": 1})
    with pytest.raises(StoreError, match=r"j, line 2: expected .* found .*\. Do\."):
        parse(good + b'{"n":2}\n' + good)


def test_a_bad_last_line_counts_as_torn_only_where_that_is_allowed():
    good = encode_line({"n": 1})
    bad = encode_line({"n": 2}).replace(b"2", b"3", 1)
    assert parse(good + bad, last_may_be_bad=True) == [{"n": 1}]
    with pytest.raises(StoreError, match="line 2"):
        parse(good + bad, last_may_be_bad=False)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1}])
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises(ValueError, match=r".+"):
        encode_line({"x": value})
