"""Rows of recordings: whatever text they hold comes back, and occurrences are counted by who asked."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalnoise.recordings.row import Recorded, complete_replicates, from_row, numbered, to_row
from evalnoise.store.partition import parquet_bytes, read_partition
from schemas.errors import DataError
from schemas.records import Response, ResponseClass
from schemas.tables import RECORDED
from tests.support.recorded import recorded, request

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=40) | st.sampled_from(
    ["\ud835", "\\ud835", "\\\\", "\x00", "\x1b[2J\x1b]0;x\x07", "'); drop table x; --", "\u202e", "😀\udc00\ud83d", "\r\n"]
)
COUNT = st.none() | st.integers(0, 2**53 - 1)
RESPONSES = st.builds(
    Response,
    text=ANY_TEXT,
    response_class=st.sampled_from([ResponseClass.COMPLETE, ResponseClass.TRUNCATED, ResponseClass.REFUSAL]),
    finish_reason=ANY_TEXT,
    refusal=ANY_TEXT,
    response_id=ANY_TEXT,
    served_model=ANY_TEXT,
    fingerprint=ANY_TEXT,
    reasoning=ANY_TEXT,
    input_tokens=COUNT,
    output_tokens=COUNT,
    cached_tokens=COUNT,
    cache_write_tokens=COUNT,
    reasoning_tokens=COUNT,
    from_cache=st.booleans(),
    request_id=ANY_TEXT,
    headers=st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=2),
    cost_usd=st.just(0.0),
    raw=ANY_TEXT,
    error=ANY_TEXT,
)


@settings(max_examples=150, deadline=None)
@given(task_id=ANY_TEXT, response=RESPONSES)
def test_whatever_a_provider_sends_survives_parquet(task_id, response):
    """Hard input 1: lone surrogates in any field, and text that looks like their escapes."""
    row = Recorded(task_id, 1, 0, response, request_key="k", request='{"a": 1}', position=3, occurrence=2)
    data = parquet_bytes(RECORDED, [to_row(row)])
    (back,) = read_partition(RECORDED, {}, data).to_pylist()
    assert from_row(back) == row


def test_an_answer_that_never_came_is_final_when_it_is_replayed():
    for kind in (ResponseClass.INFRASTRUCTURE, ResponseClass.MALFORMED):
        assert from_row(to_row(recorded("a", 0, 0, "", response_class=kind))).response.final
    assert not from_row(to_row(recorded("a", 0, 0, "x"))).response.final


def test_every_column_of_the_table_is_written(tmp_path):
    (tmp_path / "r.parquet").write_bytes(parquet_bytes(RECORDED, [to_row(recorded("a", 0, 0, "x", request("q")))]))
    (row,) = pq.read_table(tmp_path / "r.parquet").to_pylist()
    assert (row["text"], row["replicate"], row["request"], row["escaped"]) == ("x", 0, request("q").canonical().decode(), [])


SAME = request("same")
ASKED = [
    recorded("b", 0, 0, "b0", SAME, position=1),
    recorded("a", 0, 0, "a0", SAME),
    recorded("a", 0, 1, "a0 again", SAME),
    recorded("a", 1, 0, "a1", SAME),
    recorded("a", 1, 1, "other", request("feedback")),
]


def test_occurrences_are_counted_by_replicate_then_task_then_attempt_in_whatever_order_answers_came():
    expected = {("a", 0, 0): 0, ("a", 0, 1): 1, ("b", 0, 0): 2, ("a", 1, 0): 3, ("a", 1, 1): 0}
    for rows in permutations(ASKED):
        assert {row.asker: row.occurrence for row in numbered(rows, source="x")} == expected


def test_without_keys_the_answers_of_a_task_are_counted():
    rows = [recorded("a", 1, 0, "y"), recorded("b", 0, 0, "z", position=1), recorded("a", 0, 0, "x")]
    assert [(row.response.text, row.occurrence) for row in numbered(rows, source="x")] == [("x", 0), ("z", 0), ("y", 1)]


def test_one_asker_has_one_answer():
    with pytest.raises(DataError, match=r"file, task a, replicate 1, attempt 0: expected one recorded response, found two"):
        numbered([*ASKED, replace(ASKED[3], position=7)], source="file")


@pytest.mark.parametrize(
    ("askers", "count"),
    [
        ([], 0),
        ([("a", 0, 0), ("b", 0, 0), ("a", 1, 0)], 1),
        ([("a", 0, 0), ("b", 0, 0), ("a", 1, 0), ("b", 1, 0)], 2),
        ([("a", 1, 0), ("b", 1, 0)], 0),
        ([("a", 0, 0), ("a", 2, 0)], 1),
        ([("a", 0, 0), ("a", 1, 1)], 1),
        ([("a", 0, 0), ("b", 1, 0)], 0),
    ],
)
def test_whole_replicates(askers, count):
    assert complete_replicates([recorded(*asker, "x") for asker in askers]) == count


def test_headers_hold_what_no_column_could():
    row = to_row(recorded("a", 0, 0, "x", headers={"x-odd": "\ud800"}))
    assert json.loads(row["headers"]) == {"x-odd": "\ud800"}
    assert row["headers"].isascii()
