"""What of two frozen protocols must be alike, and when arms share runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalnoise.readers.arms import Arm
from evalnoise.readers.cells import Cells
from evalnoise.readers.sameness import (
    _NO_FACT_OF_A_CONDITION,
    _NO_FACT_OF_A_PROTOCOL,
    _NO_FACT_OF_A_RECORDING,
    _NO_FACT_OF_A_STACK,
    _NO_FACT_OF_A_STUDY,
    _NO_RULES_OF_GRADING,
    Aspect,
    differences,
    not_independent,
    provider_options,
    same_measurement,
)
from schemas.protocol import Lineage, PinnedFile, Protocol
from schemas.provider import RecordingProvider
from schemas.study import Condition, Stack, Study
from schemas.versions import measurement_version
from tests.support.gate_store import LIVE, PROVIDER, STACK
from tests.support.small_store import protocol


def arm(
    digest: str = "d" * 64, *, stack: Any = None, condition: Any = None, judge: Any = None, study: Any = None, **frozen: Any
) -> Arm:
    stack, condition = STACK | (stack or {}), LIVE | (condition or {})
    body = {"study": "s", "stacks": [stack], "conditions": [condition], "judge": judge} | (study or {})
    made = protocol("s", **frozen).model_copy(update={"study": body})
    empty = np.zeros((1, 1))
    cells = Cells("s", digest, "tiny", stack["name"], condition["name"], ("T/0",), ("",), empty.astype(np.int8), empty, True)
    return Arm("label", cells, made, True)


def aspects(one: Arm, other: Arm) -> list[str]:
    return [difference.aspect.value for difference in differences(one, other)]


def test_the_same_plan_differs_in_nothing():
    found = same_measurement(arm(), arm("e" * 64))
    assert (found.demands, found.allowed) == ((), ())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"stack": {"model": "m2"}}, ["model"]),
        ({"stack": {"prompt": "q"}}, ["prompt"]),
        ({"stack": {"provider": PROVIDER | {"base_url": "http://x"}}}, ["model"]),
        ({"stack": {"provider": {"name": "anthropic", "temperature": 0.7}}}, ["model", "model"]),
        ({"stack": {"provider": PROVIDER | {"top_p": 0.5}}}, ["sampling"]),
        ({"stack": {"provider": PROVIDER | {"extra": {"top_k": 5}}}}, ["sampling"]),
        ({"stack": {"retry_prompt": "never used"}}, []),
        ({"stack": {"retry": "with-feedback"}}, ["sampling", "sampling"]),
        ({"stack": {"verifier": STACK["verifier"] | {"cpu_seconds": 5.0}}}, ["grader"]),
        ({"stack": {"verifier": STACK["verifier"] | {"executor": "docker"}}}, []),
        ({"measurement": {"extractor": 2}}, ["grader"]),
        ({"measurement": {"request_normaliser": 9}}, []),
        ({"measurement": {"oracle": 9}}, []),
        ({"measurement": {"rule_of_tomorrow": 1}}, ["grader"]),
        ({"stack": {"field_of_tomorrow": 1}}, ["sampling"]),
        ({"condition": {"field_of_tomorrow": 1}}, ["sampling"]),
        ({"stack": {"verifier": STACK["verifier"] | {"field_of_tomorrow": 1}}}, ["grader"]),
        ({"study": {"field_of_tomorrow": 1}}, ["sampling"]),
        ({"study": {"night": "n2", "replicates": 7, "analysis": {"seed": 3}}}, []),
        ({"recordings": {"a/live": PinnedFile(sha256="1" * 64, size=1)}, "benchmark_files": (), "prompts": {"a": "1"}}, []),
        ({"executors": {"a": {"kind": "process"}}}, ["grader"]),
        ({"limit": 20}, ["suite"]),
        ({"n_tasks": 4}, ["suite"]),
        ({"benchmark": "other"}, ["suite"]),
        ({"judge": {"repeats": 2}}, ["judge"]),
        ({"providers": {"judge/x": {"version": "2"}}}, ["judge"]),
        ({"providers": {"a/live": {"version": "2", "options": {"t": 1}}}}, ["model"]),
        ({"replicates": 9}, []),
    ],
)
def test_every_fact_has_its_aspect(changes, expected):
    assert aspects(arm(), arm("e" * 64, **changes)) == expected


def test_what_a_gate_tests_may_differ_and_the_rest_by_name():
    other = arm("e" * 64, stack={"model": "m2", "max_tokens": 5})
    found = same_measurement(arm(), other)
    assert found.allowed == ("model: model is m in BASE and m2 in NEW",)
    assert found.demands == ("sampling changed, so recalibrate: max_tokens is 100 in BASE and 5 in NEW",)
    assert same_measurement(arm(), other, allowed=[Aspect.SAMPLING]).demands == ()


def test_long_values_are_not_shown():
    (found,) = differences(arm(), arm(stack={"prompt": "x" * 100}))
    assert found.text == "prompt differs"


def test_an_oracle_is_the_model_that_it_simulates():
    oracle = {"name": "oracle", "seed": 1, "alpha": 0.3, "beta": 0.2, "stable": 0.3, "temperature": 0.7}
    one, other = arm(stack={"provider": oracle}), arm(stack={"provider": oracle | {"seed": 2, "temperature": 0.1}})
    assert aspects(one, other) == ["model", "sampling"]
    assert aspects(one, arm(stack={"provider": oracle}, measurement={"oracle": 2})) == ["model"]


def test_every_field_of_a_protocol_is_a_fact_unless_it_is_named():
    """A field that is added to these is compared, until someone says here that it may differ."""
    assert set(Protocol.model_fields) - _NO_FACT_OF_A_PROTOCOL == {"format"}
    assert set(Study.model_fields) - _NO_FACT_OF_A_STUDY == set()
    assert set(Stack.model_fields) - _NO_FACT_OF_A_STACK == {"max_tokens", "retry", "responses"}
    assert set(Condition.model_fields) - _NO_FACT_OF_A_CONDITION == set()
    assert set(RecordingProvider.model_fields) - _NO_FACT_OF_A_RECORDING == {"pairing", "occurrence"}
    assert set(measurement_version()) - _NO_RULES_OF_GRADING == {"response_mapping", "extractor", "checker", "supervisor"}


@pytest.mark.parametrize(
    ("provider", "condition", "expected"),
    [
        ({"name": "openai", "temperature": 1}, {"provider": {"temperature": 0.2}}, {"name": "openai", "temperature": 0.2}),
        ({"name": "openai", "top_p": 1}, {"provider": {"name": "oracle", "seed": 3}}, {"name": "oracle", "seed": 3}),
        ({"name": "mine", "options": {"t": 1, "k": 2}}, {"provider": {"options": {"t": 3}}}, {"name": "mine", "t": 3, "k": 2}),
        ({"name": "openai"}, {"kind": "temperature-zero"}, {"name": "openai", "temperature": 0.0}),
        (
            {"name": "recording", "pairing": "occurrence", "of": {"name": "openai", "temperature": 1}},
            {},
            {"name": "openai", "temperature": 1, "pairing": "occurrence"},
        ),
    ],
)
def test_options_under_a_condition(provider, condition, expected):
    assert provider_options({"provider": provider}, LIVE | condition) == expected


def test_runs_that_are_shared():
    base = arm()
    assert "same cells" in not_independent(base, base)[0]
    assert not_independent(base, arm("e" * 64)) == []
    heir = arm("e" * 64, lineage=Lineage(predecessor="d" * 64, why="more"))
    assert "inherits" in not_independent(base, heir)[0]
    assert "inherits" in not_independent(heir, base)[0]
    sibling = arm("f" * 64, lineage=Lineage(predecessor="d" * 64, why="others"))
    assert "inherits" in not_independent(heir, sibling)[0]
    grandchild = replace(arm("c" * 64, lineage=Lineage(predecessor="e" * 64, why="again")), predecessors=("e" * 64, "d" * 64))
    assert "inherits" in not_independent(base, grandchild)[0]
    assert "inherits" in not_independent(grandchild, sibling)[0]
    file = {"a/live": PinnedFile(sha256="1" * 64, size=1)}
    assert "same recording" in not_independent(arm(recordings=file), arm("e" * 64, recordings=file))[0]
    both = file | {"b/live": file["a/live"]}
    assert not_independent(arm(recordings=both), arm(stack={"name": "b"}, recordings=both)) == [
        "BASE and NEW are made of the same recording"
    ]
    apart = file | {"b/live": PinnedFile(sha256="2" * 64, size=1)}
    assert not_independent(arm(recordings=apart), arm(stack={"name": "b"}, recordings=apart)) == []
    assert len(not_independent(arm(recordings=file), arm(recordings=file))) == 1


def test_arms_that_repeat_one_draw():
    source = {"kind": "reverify", "source": {"condition": "live", "replicate": 0}}
    assert arm(condition=source).one_draw
    assert arm(stack={"provider": {"name": "recording", "pairing": "fixed"}}).one_draw
    assert not arm(stack={"provider": {"name": "recording", "pairing": "occurrence"}}).one_draw
    found = not_independent(arm(condition=source), arm("e" * 64))
    assert "BASE repeats one recorded run (reverify)" in found[0]
