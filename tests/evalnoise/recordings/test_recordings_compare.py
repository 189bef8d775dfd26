"""Differences of recordings, and Proposition 1's condition for a shared replay."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalnoise.recordings.compare import coupling, difference
from evalnoise.recordings.row import numbered
from schemas.errors import DataError
from schemas.records import ResponseClass
from tests.support.recorded import recorded, request

ROWS = [
    recorded("a", 0, 0, "x", request("for a")),
    recorded("a", 0, 1, "y", request("for a")),
    recorded("b", 0, 0, "z", request("for b"), position=1),
]
ANY_ROWS = st.lists(
    st.builds(
        recorded,
        st.sampled_from("abc"),
        st.integers(0, 3),
        st.integers(0, 1),
        st.sampled_from(["", "x", "\ud800", "y"]),
        st.sampled_from([request(q) for q in ("p", "q", "r")]),
    ),
    unique_by=lambda row: row.asker,
    max_size=12,
).map(lambda rows: numbered(rows, source="x"))


@settings(max_examples=100, deadline=None)
@given(ANY_ROWS, st.randoms())
def test_a_thing_does_not_differ_from_itself_in_any_order(rows, random):
    shuffled = random.sample(rows, len(rows))
    found = difference(rows, shuffled)
    assert not found
    assert found.same == len(rows)
    assert coupling(rows, shuffled).valid


@settings(max_examples=100, deadline=None)
@given(ANY_ROWS, ANY_ROWS)
def test_the_two_sides_are_exchangeable(a, b):
    there, back = coupling(a, b), coupling(b, a)
    assert there.valid == back.valid == (not there.broken)
    mirrored = {(one.task_id, one.key, one.count_b, one.count_a) for one in back.broken}
    assert {(one.task_id, one.key, one.count_a, one.count_b) for one in there.broken} == mirrored
    assert there.requests == back.requests
    # Every request of either side is on both, or told.
    told = sum(abs(one.count_a - one.count_b) for one in there.broken)
    assert 2 * there.requests + told == len(a) + len(b)


def test_texts_are_compared_answer_by_answer():
    changed = [ROWS[0], replace(ROWS[1], response=replace(ROWS[1].response, text="other")), ROWS[2]]
    found = difference(ROWS, changed)
    assert found
    assert (found.same, found.requests) == (2, ())
    (one,) = found.texts
    assert (one.task_id, one.number, one.a.response.text, one.b.response.text) == ("a", 1, "y", "other")


def test_a_changed_prompt_is_a_request_on_each_side_with_the_paths_that_differ():
    other = [recorded("a", 0, 0, "x", request("for a!")), ROWS[1], ROWS[2]]
    found = coupling(ROWS, other)
    assert not found.valid
    assert found.requests == 2
    told = [(one.task_id, one.count_a, one.count_b, one.nearest and one.nearest.paths) for one in found.broken]
    # The request that a has twice and b once, and the one that only b has: each is the other's nearest.
    assert sorted(told) == [("a", 0, 1, ("$.body.messages[0].content",)), ("a", 2, 1, ("$.body.messages[0].content",))]


def test_the_same_requests_for_other_tasks_do_not_couple():
    swapped = [replace(ROWS[0], task_id="b", position=1), ROWS[1], replace(ROWS[2], task_id="a", position=0)]
    assert {one.task_id for one in coupling(ROWS, swapped).broken} == {"a", "b"}


def test_one_request_more_breaks_it():
    found = coupling(ROWS, ROWS[:1] + ROWS[2:])
    (one,) = found.broken
    assert (one.task_id, one.key, one.count_a, one.count_b, one.nearest) == ("a", request("for a").key(), 2, 1, None)
    assert (found.tasks, found.replicates) == (2, (1, 1))


def test_what_nobody_asked_cannot_be_coupled():
    unknown = [replace(ROWS[0], request_key="", request="")]
    with pytest.raises(DataError, match=r"it: expected recorded requests"):
        coupling(ROWS, unknown, labels=("this", "it"))


def test_keys_without_their_texts_are_counted_all_the_same():
    bare = [replace(row, request="") for row in ROWS]
    assert coupling(ROWS, bare).valid
    (one,) = coupling(bare, bare[:1] + bare[2:]).broken
    assert one.nearest is None


def test_without_keys_responses_are_counted_by_task():
    rows = [recorded("a", n, 0, "x") for n in range(3)]
    found = difference(rows, rows[:2])
    (one,) = found.requests
    assert (one.task_id, one.key, one.count_a, one.count_b, found.same) == ("a", "", 3, 2, 2)


def test_answers_of_one_text_and_two_classes_differ():
    """A refusal and a request that was not taken have no text, and come to different outcomes."""
    one = [recorded("a", 0, 0, "", request("q"), response_class=ResponseClass.REFUSAL)]
    other = [recorded("a", 0, 0, "", request("q"), response_class=ResponseClass.INFRASTRUCTURE)]
    assert difference(one, one).same == 1
    assert [change.number for change in difference(one, other).texts] == [0]
