"""Arms by name: what a short name means, and what is said when it means nothing or too much."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import evalnoise
from evalnoise.readers.arms import find_arm, find_arms
from evalnoise.store.store import StudyStore
from schemas.errors import ExitCode, StoreError
from tests.support.arm_store import LIVE, frozen_plan, measured

BOTH = ({"name": "live", "kind": "live"}, {"name": "replay", "kind": "replay", "source": {"condition": "live"}})
TWO = ({"name": "live", "kind": "live"}, {"name": "warm", "kind": "live"})


class Place:
    """A store with a connection that sees all that was put into it."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root = root
        self.connection: Any = None

    def put(self, study: str, texts: str = "pf", **changes: Any) -> StudyStore:
        stacks, conditions = changes.pop("stacks", ({"name": "a"},)), changes.pop("conditions", LIVE)
        cells = {(stack["name"], condition["name"]): [texts] for stack in stacks for condition in conditions}
        return measured(self.root, study, cells, stacks=stacks, conditions=conditions, **changes)

    def arm(self, text: str) -> Any:
        return find_arm(self._connected(), self.root, text)

    def arms(self, text: str, **options: Any) -> list[Any]:
        return find_arms(self._connected(), self.root, text, **options)

    def refused(self, text: str) -> str:
        with pytest.raises(StoreError) as caught:
            self.arm(text)
        assert caught.value.exit_code is ExitCode.STORE
        return str(caught.value)

    def _connected(self) -> Any:
        self.close()
        self.connection = evalnoise.connect(self.root)
        return self.connection

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "store")
    yield made
    made.close()


def test_what_may_be_left_out_is_what_there_is_one_of(place) -> None:
    made = place.put("s", conditions=BOTH)
    labels = {place.arm(text).label for text in ("s", "s/live", "s/a/live", f"{made.protocol}/a/live", made.protocol[:4])}
    assert labels == {f"s ({made.protocol[:12]}), a, live"}
    replay = place.arm("s/replay")
    assert (replay.cells.condition, replay.kind, replay.complete) == ("replay", "replay", True)
    assert replay.frozen.digest() == made.protocol
    assert replay.cells.outcomes.tolist() == [[1, 0]]


def test_a_single_condition_of_any_kind_is_meant(place) -> None:
    place.put("s", conditions=({"name": "cold", "kind": "temperature-zero"},))
    assert place.arm("s").kind == "temperature-zero"


def test_a_study_means_its_newest_complete_protocol(place) -> None:
    first = place.put("s", "pp", seed=1)
    assert place.arm("s").cells.protocol == first.protocol
    second = place.put("s", "ff", seed=2)
    assert place.arm("s").cells.protocol == second.protocol
    place.put("s", "pf", seed=3, complete=False)
    assert place.arm("s").cells.protocol == second.protocol
    assert place.arm(first.protocol[:12]).cells.outcomes.tolist() == [[1, 1]]


def test_of_incomplete_protocols_the_newest_and_it_says_so(place) -> None:
    place.put("s", seed=1, complete=False)
    newest = place.put("s", seed=2, complete=False)
    arm = place.arm("s")
    assert (arm.cells.protocol, arm.complete) == (newest.protocol, False)


def test_a_name_goes_before_digits(place) -> None:
    made = place.put("one")
    named = place.put(made.protocol[:6])
    assert place.arm(made.protocol[:6]).cells.protocol == named.protocol
    assert place.arm(made.protocol[:7]).cells.protocol == made.protocol


@pytest.mark.parametrize("text", ["", "/", "s/", "/s", "s//live", "s/a/live/more"])
def test_what_has_another_form_is_refused(place, text: str) -> None:
    place.put("s")
    said = place.refused(text)
    assert "expected STUDY, STUDY/CONDITION or STUDY/STACK/CONDITION" in said
    assert "`evalnoise status` lists studies" in said


def test_what_there_is_is_listed(place) -> None:
    made = place.put("s", conditions=BOTH, stacks=({"name": "a"}, {"name": "b"}))
    assert "no study or protocol 'z' (studies: s)" in place.refused("z")
    # Fewer than four digits name no protocol.
    assert "no study or protocol" in place.refused(made.protocol[:3])
    assert "one condition of: live, replay, found 'cold'" in place.refused("s/a/cold")
    assert "one stack of: a, b, found 'c'" in place.refused("s/c/live")
    assert "one stack of: a, b, found several that could be meant" in place.refused("s/live")


def test_two_live_conditions_are_not_told_apart(place) -> None:
    place.put("s", conditions=TWO)
    assert "one condition of: live, warm, found several" in place.refused("s")
    assert place.arm("s/warm").cells.condition == "warm"


def test_digits_of_several_protocols_are_refused(place) -> None:
    seeds: dict[str, int] = {}
    for seed in count():
        digits = frozen_plan("s", stacks=({"name": "a"},), conditions=LIVE, n_tasks=1, seed=seed).digest()[:4]
        if digits in seeds:
            break
        seeds[digits] = seed
    for one in (seeds[digits], seed):
        assert place.put("s", seed=one).protocol.startswith(digits)
    assert "found 2 protocols that begin so" in place.refused(digits)


def test_no_outcomes_yet(place) -> None:
    measured(place.root, "s", {("a", "live"): ["pf"]}, conditions=BOTH)
    assert "expected sealed outcomes of a under replay, found none yet. Run the study" in place.refused("s/replay")


@pytest.mark.parametrize("text", ["x\x1b[31m\n", "' OR 1=1 --", "%", "_", "y" * 5000, "\u202e"])
def test_hostile_text_is_data_and_cannot_fill_the_terminal(place, text: str) -> None:
    place.put("s")
    said = place.refused(text)
    assert "\x1b" not in said
    assert "\n" not in said


def test_draws_of_a_recording_are_one(place) -> None:
    fixed = {"name": "recording", "pairing": "fixed"}
    conditions = (*BOTH, {"name": "fixed", "kind": "live", "provider": fixed})
    place.put("s", conditions=conditions)
    assert [place.arm(f"s/{name}").one_draw for name in ("live", "replay", "fixed")] == [False, True, True]


def test_every_stack_of_a_study(place) -> None:
    place.put("s", conditions=BOTH, stacks=({"name": "a"}, {"name": "b"}))
    assert [(arm.cells.stack, arm.cells.condition) for arm in place.arms("s")] == [("a", "live"), ("b", "live")]
    assert [(arm.cells.stack, arm.cells.condition) for arm in place.arms("s/replay")] == [("a", "replay"), ("b", "replay")]
    assert [arm.cells.condition for arm in place.arms("s", condition="replay")] == ["replay", "replay"]
    assert [arm.cells.stack for arm in place.arms("s/b/live")] == ["b"]
    with pytest.raises(StoreError, match="one condition of: live, replay, found 'cold'"):
        place.arms("s/cold")
