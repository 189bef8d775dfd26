"""The study models: what is kept of them for editors and readers, the shipped studies, and the rules over several fields."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalnoise.studyfile.load import load_study, study_json_schema
from evalnoise.studyfile.reference import schema_text, study_reference
from schemas.study import LocatedError, Study

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "studies").glob("*.yaml"), key=lambda path: path.stem)
REFRESH = "run `python -m evalnoise.studyfile.reference`"


def test_kept_schema_is_fresh():
    assert (ROOT / "schemas/study.schema.json").read_text(encoding="utf-8") == schema_text(), REFRESH


def test_reference_page_is_fresh():
    assert (ROOT / "docs/reference/study.md").read_text(encoding="utf-8") == study_reference(), REFRESH


def test_schema_says_its_draft_and_describes_everything():
    schema = study_json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for name, model in {"Study": schema, **schema["$defs"]}.items():
        assert model["additionalProperties"] is False, name
        assert model["description"], name
        for key, prop in model["properties"].items():
            # A key that holds one model is described by it when the words are the same.
            assert prop.get("description") or "$ref" in prop, f"{name}.{key} has no docstring"


def test_seven_studies_ship():
    assert [path.stem for path in SHIPPED] == [
        "cruxeval",
        "cruxeval-gpt-3.5-turbo",
        "humaneval-openai",
        "local-model",
        "mbpp-anthropic",
        "starter",
        "verifier-noise",
    ]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_studies_load_and_name_their_schema(path):
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=../schemas/study.schema.json"
    study = load_study(path)
    assert Study.model_validate(study.model_dump()) == study
    assert Study.model_validate_json(study.model_dump_json()) == study


def test_shipped_names_are_distinct():
    names = [load_study(path).study for path in SHIPPED]
    assert len(set(names)) == len(names)


def test_starter_measures_every_kind_of_condition():
    study = load_study(ROOT / "studies/starter.yaml")
    assert [(c.name, c.kind) for c in study.conditions] == [
        ("live", "live"),
        ("temperature-zero", "temperature-zero"),
        ("replay", "replay"),
        ("reverify", "reverify"),
    ]
    assert (study.replicates, study.stacks[0].retry, study.stacks[0].provider.name) == (10, "resample", "oracle")
    assert study.judge is not None
    assert [(j.provider.name, j.provider.flip) for j in study.judge.conditions] == [("oracle", 0.1), ("oracle", 0.0)]
    assert study.judge.repeats == 5
    assert study.judged_condition().name == "replay"


@pytest.mark.parametrize(
    ("file", "name", "model"),
    [
        ("cruxeval", "cruxeval-codellama-7b", "codellama-7b"),
        ("cruxeval-gpt-3.5-turbo", "cruxeval-gpt-3.5-turbo", "gpt-3.5-turbo-0613"),
    ],
)
def test_cruxeval_studies_name_the_recorded_files(file, name, model, monkeypatch):
    monkeypatch.setenv("EVALNOISE_SHARED", "/data")
    study = load_study(ROOT / f"studies/{file}.yaml")
    (stack,) = study.stacks
    assert (study.study, stack.name, stack.retry, stack.verifier.checker, study.replicates) == (
        name,
        model,
        "none",
        "published",
        10,
    )
    assert study.benchmark.path == "/data/data/cruxeval/tasks.jsonl"
    found = {c.name: (c.kind, study.provider(stack, c)) for c in study.conditions}
    folder = "/data/data/cruxeval"
    assert {key: (kind, p.path, p.pairing, p.occurrence, p.order) for key, (kind, p) in found.items()} == {
        "sampled-0.8": ("live", f"{folder}/{model}_temp0.8_output.jsonl", "occurrence", 0, "unknown"),
        "sampled-0.2": ("live", f"{folder}/{model}_temp0.2_output.jsonl", "occurrence", 0, "unknown"),
        "replay": ("replay", f"{folder}/{model}_temp0.2_output.jsonl", "fixed", 0, "unknown"),
    }


@pytest.mark.realdata
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_studies_name_files_that_are_there(path, shared, monkeypatch):
    monkeypatch.setenv("EVALNOISE_SHARED", str(shared))
    study = load_study(path)
    paths = [getattr(study.benchmark, "path", None)]
    paths += [getattr(study.provider(stack, condition), "path", None) for stack in study.stacks for condition in study.conditions]
    assert [p for p in paths if p is not None and not Path(p).is_file()] == []


def study(**changes) -> Study:
    base = {
        "study": "s",
        "benchmark": {"name": "starter"},
        "stacks": [{"name": "a", "model": "m", "provider": {"name": "oracle", "seed": 3, "temperature": 0.5}}],
        "conditions": [{"name": "live", "kind": "live"}],
    }
    return Study.model_validate(base | changes)


def provider(conditions, name):
    found = study(conditions=conditions)
    return found.provider(found.stacks[0], found.condition(name)).model_dump(exclude_unset=True)


LIVE = {"name": "live", "kind": "live"}
REPLAY = {"name": "r", "kind": "replay", "source": {"condition": "live"}}


def again(condition, *, name="again", replicate=0, **more):
    return {"name": name, "kind": "reverify", "source": {"condition": condition, "replicate": replicate}, **more}


class TestProviders:
    def test_the_stack_alone(self):
        assert provider([LIVE], "live") == {"name": "oracle", "seed": 3, "temperature": 0.5}

    def test_an_override(self):
        assert provider([{**LIVE, "provider": {"seed": 4}}], "live") == {"name": "oracle", "seed": 4, "temperature": 0.5}

    def test_another_provider_replaces_all_options(self):
        assert provider([{**LIVE, "provider": {"name": "anthropic", "top_p": 0.5}}], "live") == {
            "name": "anthropic",
            "top_p": 0.5,
        }

    def test_temperature_zero(self):
        assert provider([{"name": "z", "kind": "temperature-zero"}], "z") == {"name": "oracle", "seed": 3, "temperature": 0.0}

    def test_a_replay_has_the_options_of_its_source(self):
        source = {**LIVE, "provider": {"name": "openai", "top_p": 0.5}}
        replay = {"name": "r", "kind": "replay", "source": {"condition": "live"}}
        assert provider([source, replay], "r") == {"name": "openai", "top_p": 0.5}

    def test_a_reverification_has_the_options_behind_its_candidates(self):
        source = {**LIVE, "provider": {"name": "openai", "top_p": 0.5}}
        assert provider([again("r"), REPLAY, source], "again") == {"name": "openai", "top_p": 0.5}
        cold = {"name": "z", "kind": "temperature-zero"}
        assert provider([cold, again("z")], "again") == {"name": "oracle", "seed": 3, "temperature": 0.0}
        fixed = {"name": "f", "kind": "replay", "provider": {"name": "recording", "path": "x", "pairing": "fixed"}}
        assert provider([fixed, again("f")], "again") == {"name": "recording", "path": "x", "pairing": "fixed"}

    def test_a_reverification_repeats_one_draw(self):
        found = study(conditions=[LIVE, again("live")])
        assert [found.repeats_one_draw(found.stacks[0], condition) for condition in found.conditions] == [False, True]

    def test_a_replay_of_a_recording_needs_no_source(self):
        replay = {"name": "r", "kind": "replay", "provider": {"name": "recording", "path": "x"}}
        assert provider([replay], "r") == {"name": "recording", "path": "x"}


@pytest.mark.parametrize(
    ("changes", "loc"),
    [
        ({"conditions": [{"name": "r", "kind": "replay"}]}, ("conditions", 0, "source")),
        ({"conditions": [{"name": "x", "kind": "live"}, {"name": "x", "kind": "live"}]}, ("conditions", 1, "name")),
        ({"conditions": [{"name": "x", "kind": "live", "source": {"condition": "x"}}]}, ("conditions", 0, "source")),
        ({"conditions": [LIVE, {"name": "v", "kind": "reverify"}]}, ("conditions", 1, "source")),
        ({"conditions": [LIVE, again("live", provider={"seed": 1})]}, ("conditions", 1, "provider")),
        ({"conditions": [LIVE, again("nope")]}, ("conditions", 1, "source", "condition")),
        ({"conditions": [LIVE, again("again")]}, ("conditions", 1, "source", "condition")),
        ({"conditions": [LIVE, again("live"), again("again", name="b")]}, ("conditions", 2, "source", "condition")),
        ({"conditions": [LIVE, again("live", replicate=5)]}, ("conditions", 1, "source", "replicate")),
        # A replay of something that generates nothing; named before the one that verifies the replay is looked at.
        ({"conditions": [again("r"), {**REPLAY, "source": {"condition": "nope"}}]}, ("conditions", 1, "source", "condition")),
        (
            {"conditions": [LIVE, again("live"), {**REPLAY, "source": {"condition": "again"}}]},
            ("conditions", 2, "source", "condition"),
        ),
        ({"conditions": [{"name": "x", "kind": "live", "provider": {"seed": -1}}]}, ("conditions", 0, "provider")),
        ({"judge": {"conditions": [{"name": "j", "model": "m", "provider": {"name": "oracle"}}]}}, ("judge", "candidates")),
        (
            {"judge": {"conditions": [{"name": "live", "model": "m", "provider": {"name": "oracle"}}]}},
            ("judge", "conditions", 0, "name"),
        ),
    ],
)
def test_rules_over_several_fields_say_where(changes, loc):
    with pytest.raises(ValueError, match="expected") as caught:
        study(**changes)
    error = caught.value.errors()[0]["ctx"]["error"]
    assert isinstance(error, LocatedError)
    assert error.loc == loc


def test_not_a_number_is_refused_everywhere():
    schema = json.dumps(study_json_schema())
    assert "NaN" not in schema
    with pytest.raises(ValueError, match="finite"):
        study(limits={"max_cost": float("inf")})
