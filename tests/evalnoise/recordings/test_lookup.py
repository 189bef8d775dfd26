"""Strict look-ups: pairing by asker and by key, and each way of failing with an error of its own."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from evalnoise.recordings.nearest import differing_paths, nearest
from evalnoise.recordings.recording import Ask, Pairing, Recording
from schemas.errors import ReplayExhaustedError, ReplayMissError, ReplayOrderError, StudyError
from tests.support.recorded import recorded, request

A, B, SAME, FEEDBACK = request("for a"), request("for b"), request("same"), request("a failed")
ROWS = [
    recorded("a", 0, 0, "a0", A),
    recorded("a", 0, 1, "a0 resampled", A),
    recorded("a", 1, 0, "a1", A),
    recorded("b", 0, 0, "b0", B, position=1),
    recorded("b", 1, 0, "b1", B, position=1),
]
RECORDING = replace(Recording.from_rows(ROWS, source="r"), pairing=Pairing())
FIXED = replace(RECORDING, pairing=Pairing("fixed"))
BARE = Recording.from_rows([replace(row, request_key="", request="") for row in ROWS if not row.attempt])
UNKEYED = replace(BARE, keyed=False, pairing=Pairing())


def found(recording, asked, *asker):
    return recording.find(asked, asker).response.text


def test_the_nth_request_of_a_key_gets_the_nth_answer_of_its_own_cell_in_any_order_of_calls():
    cells = [(A, "a", 0, 0, "a0"), (A, "a", 0, 1, "a0 resampled"), (A, "a", 1, 0, "a1"), (B, "b", 1, 0, "b1"), (B, "b", 0, 0, "b0")]
    for seed in range(20):
        random.Random(seed).shuffle(cells)
        for asked, *asker, text in cells:
            assert found(RECORDING, asked, *asker) == text


def test_two_tasks_that_ask_the_same_keep_their_own_answers():
    recording = replace(
        Recording.from_rows([recorded("a", 0, 0, "for a", SAME), recorded("b", 0, 0, "for b", SAME, position=1)]), pairing=Pairing()
    )
    assert [found(recording, SAME, task, 0, 0) for task in "ab"] == ["for a", "for b"]


def test_fixed_gives_every_asker_one_answer_of_the_key():
    assert {found(FIXED, A, task, replicate, 0) for task in ("a", "z") for replicate in range(9)} == {"a0"}
    second = replace(FIXED, pairing=Pairing("fixed", occurrence=1))
    assert (found(second, A, "a", 7, 0), found(second, B, "b", 7, 0)) == ("a0 resampled", "b1")


def test_one_replicate_is_repeated_by_all():
    repeated = replace(RECORDING, pairing=Pairing(replicate=0))
    assert [found(repeated, A, "a", replicate, 1) for replicate in range(3)] == ["a0 resampled"] * 3


def test_a_miss_names_the_nearest_request_of_the_task_and_the_paths_that_differ():
    """Hard input 7."""
    warmer = request("for a", temperature=0.9, stop=["x"])
    with pytest.raises(ReplayMissError) as caught:
        RECORDING.find(warmer, ("a", 0, 0), where="cell")
    assert type(caught.value) is ReplayMissError
    assert caught.value.where == "replay of r, cell"
    assert caught.value.found == f"none; nearest is request {A.key()[:12]}, which differs at $.body.stop, $.body.temperature"
    assert "never calls live" in caught.value.remedy


def test_a_miss_of_a_task_that_was_not_recorded_looks_at_all_requests():
    with pytest.raises(ReplayMissError, match=f"nearest is request {B.key()[:12]}"):
        RECORDING.find(request("for b", seed=1), ("z", 0, 0))


def test_a_miss_in_a_recording_without_texts_of_requests_and_in_an_empty_one():
    bare = replace(Recording.from_rows([replace(row, request="") for row in ROWS]), pairing=Pairing())
    with pytest.raises(ReplayMissError, match="whose fields were not recorded"):
        bare.find(request("other"), ("a", 0, 0))
    with pytest.raises(ReplayMissError, match="an empty recording"):
        Recording.from_rows([]).find(A, ("a", 0, 0))


@pytest.mark.parametrize(
    ("recording", "asked", "asker", "found"),
    [
        (RECORDING, A, ("a", 2, 0), "replicates 0 to 1"),
        (RECORDING, A, ("a", 1, 1), "a cell that was recorded with fewer attempts"),
        (RECORDING, FEEDBACK, ("b", 0, 1), "a cell that was recorded with fewer attempts"),
        (replace(FIXED, pairing=Pairing("fixed", occurrence=2)), B, ("b", 0, 0), "2 recorded"),
        (UNKEYED, A, ("a", 2, 0), "2 of a"),
        (UNKEYED, A, ("a", 0, 1), "a retry, of which this recording has no answer"),
    ],
)
def test_more_than_was_recorded_is_an_error_of_its_own(recording, asked, asker, found):
    with pytest.raises(ReplayExhaustedError) as caught:
        recording.find(asked, asker)
    assert caught.value.found == found


def test_a_changed_order_is_an_error_of_its_own():
    for asked, asker, whose in ((B, ("a", 0, 0), "task b, replicate 0"), (A, ("b", 1, 0), "task a, replicate 0")):
        with pytest.raises(ReplayOrderError) as caught:
            RECORDING.find(asked, asker)
        assert whose in caught.value.found
    with pytest.raises(ReplayOrderError):
        RECORDING.find(A, ("z", 0, 0))
    assert not issubclass(ReplayOrderError, ReplayMissError)


def test_a_second_attempt_that_asks_otherwise_is_a_miss_and_no_changed_order():
    rows = [*ROWS, recorded("b", 0, 1, "b0 again", FEEDBACK, position=1)]
    recording = replace(Recording.from_rows(rows), pairing=Pairing())
    with pytest.raises(ReplayMissError) as caught:
        recording.find(B, ("b", 0, 1))
    assert type(caught.value) is ReplayMissError


@pytest.mark.parametrize(
    ("recording", "retry", "allowed"),
    [
        (RECORDING, "resample", True),
        (RECORDING, "with-feedback", True),
        (FIXED, "with-feedback", True),
        (FIXED, "resample", False),
        (UNKEYED, "none", True),
        (UNKEYED, "resample", False),
        (UNKEYED, "with-feedback", False),
    ],
)
def test_a_second_attempt_needs_an_answer_of_its_own(recording, retry, allowed):
    if allowed:
        recording.check_retry(retry)
    else:
        with pytest.raises(StudyError, match=r"stacks\.0\.retry: expected none"):
            recording.check_retry(retry, where="stacks.0.retry")


def test_a_rehearsal_finds_every_failure_before_anything_is_run():
    asks = [Ask("a", A), Ask("b", B)]
    RECORDING.rehearse(asks, 2, where="w")
    FIXED.rehearse(asks, 50, where="w")
    UNKEYED.rehearse(asks, 2, where="w")
    for recording in (RECORDING, UNKEYED):
        with pytest.raises(ReplayExhaustedError, match=r"w, task a, replicate 2, attempt 0"):
            recording.rehearse(asks, 3, where="w")
    with pytest.raises(ReplayMissError, match=r"differs at \$\.body\.messages\[0\]\.content"):
        RECORDING.rehearse([Ask("a", request("for a!"))], 1, where="w")
    with pytest.raises(ReplayOrderError):
        RECORDING.rehearse([Ask("a", B), Ask("b", A)], 1, where="w")


def test_missing_tasks_are_named():
    asks = [Ask(name, A) for name in ("a", *(f"m{n}" for n in range(7)), "b")]
    with pytest.raises(ReplayMissError, match=r"generations of all 9 tasks, found none of m0, m1, m2, m3, m4 and 2 more"):
        UNKEYED.rehearse(asks, 1, where="w")


def test_tasks_that_the_source_could_not_measure_are_not_expected():
    recording = replace(RECORDING, not_asked=frozenset({"c"}))
    recording.rehearse([Ask("a", A), Ask("c", request("for c"))], 2, where="w")
    with pytest.raises(ReplayMissError):
        RECORDING.rehearse([Ask("a", A), Ask("c", request("for c"))], 2, where="w")
    with pytest.raises(ReplayMissError):
        recording.find(request("for c"), ("c", 0, 0))


@pytest.mark.parametrize(
    ("left", "right", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, ["$.a"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["$.a[1]"]),
        ({"a": [1]}, {"a": [1, 3]}, ["$.a"]),
        ({"a": 1, "c": 0}, {"b": 1, "c": 0}, ["$.a", "$.b"]),
        ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": "1"}]}}, ["$.a.b[0].c"]),
        ({"a": None}, {}, ["$.a"]),
    ],
)
def test_differing_paths(left, right, paths):
    assert differing_paths(left, right) == paths


def test_many_paths_are_cut():
    found = nearest('{"a": 1}', [("k" * 64, str({f"p{n}": 1 for n in range(9)}).replace("'", '"'))])
    assert found is not None
    assert len(found.paths) == 10
    assert str(found) == f"request {'k' * 12}, which differs at $.a, $.p0, $.p1, $.p2, $.p3, $.p4, $.p5, $.p6 and 2 more"


def test_without_keys_a_second_attempt_is_never_the_answer_of_another_replicate():
    """An imported file may hold second attempts, and may lack a replicate in the middle."""
    bare = [recorded("a", 0, 0, "a0"), recorded("a", 0, 1, "a0 again"), recorded("a", 1, 0, "a1"), recorded("a", 3, 0, "a3")]
    unkeyed = replace(Recording.from_rows(bare), keyed=False, pairing=Pairing())
    assert [found(unkeyed, A, "a", replicate, 0) for replicate in (0, 1)] == ["a0", "a1"]
    with pytest.raises(ReplayExhaustedError, match="expected replicate 2 of a, found replicates 0, 1, 3"):
        unkeyed.find(A, ("a", 2, 0))
    fixed = replace(unkeyed, pairing=Pairing("fixed", occurrence=1))
    assert [found(fixed, A, "a", replicate, 0) for replicate in (0, 1)] == ["a1", "a1"]
    with pytest.raises(ReplayExhaustedError, match="at least 4 generations of each task"):
        replace(unkeyed, pairing=Pairing("fixed", occurrence=3)).find(A, ("a", 0, 0))
