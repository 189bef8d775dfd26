"""Providers of other packages: the one that the guide shows, through a whole study, and every way in which one can be wrong."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner
from wire.client import CONTEXT, KEY

from evalnoise.providers import registry
from evalnoise.providers.base import Failure, Kind
from evalnoise.providers.make import make_provider, request_maker
from flows.cli import app
from flows.doctor_checks import check_keys as check_keys_of
from schemas.errors import ProviderError, StudyError
from schemas.plugins import registered
from schemas.provider import PluginProvider
from schemas.records import Response
from schemas.study import Study
from tasks.freeze import check_keys, resolve
from tests.support import stages
from tests.support.distributions import install, install_the_guides_example

GROUP = "evalnoise.providers"
SKETCH = """
import asyncio
from pydantic import BaseModel
from evalnoise.providers.base import Request
from schemas.records import Response, ResponseClass
class Options(BaseModel):
    mode: str = "plain"
class Sketch:
    Options = Options
    version = 3
    def __init__(self, options, *, key, concurrency):
        if options.mode == "unmade":
            raise RuntimeError(f"no such mode; the key is {key.reveal() if key else None}")
        self.options, self.key = options, key
    @staticmethod
    def request_maker(options, *, model, max_tokens):
        if options.mode == "no maker":
            raise KeyError("mode")
        def make(prompt, context):
            return Request("openai", model, {"x": float("nan") if options.mode == "nan" else 1})
        return make
    async def send(self, request, context):
        mode = self.options.mode
        if mode == "raises":
            raise OSError(f"the key is {self.key.reveal()}")
        if mode == "slow":
            await asyncio.sleep(5)
        if mode == "nonsense":
            return {"text": "x"}
        said = f"you sent {self.key.reveal()}" if self.key else "hello"
        return Response(text=said, response_class=ResponseClass.COMPLETE, raw=said, headers={"x": said})
    async def close(self):
        self.options = None
"""


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder on the path; what is imported from it is forgotten afterwards."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def sketch(packages):
    install(packages, "sketch-provider", "1.0", {"sketch": "sketch:Sketch"}, GROUP, sketch=SKETCH)

    def made(mode="plain", **fields):
        spec = PluginProvider(name="sketch", options={"mode": mode}, **fields)
        return make_provider(spec, model="m", max_tokens=5, retry="none")

    return made


def sent(provider) -> Response | Failure:
    return asyncio.run(provider.send(provider.request("p", CONTEXT), CONTEXT))


def study(**changes) -> Study:
    provider = {"name": "shouting", "options": {"suffix": "?"}}
    verifier = stages.PROCESS | {"unsandboxed_providers": ["shouting"]}
    stack = {"name": "a", "model": "loud", "provider": provider | changes, "verifier": verifier}
    conditions = [
        {"name": "live", "kind": "live"},
        {"name": "cold", "kind": "temperature-zero"},
        {"name": "replay", "kind": "replay", "source": {"condition": "live"}},
    ]
    return Study.model_validate(stages.body(stacks=[stack], conditions=conditions, replicates=2))


def test_ours_are_registered():
    assert {n for n, p in registered(registry.GROUP).items() if p.dist.name == "evalnoise"} == {
        "anthropic",
        "openai",
        "oracle",
        "recording",
    }


def test_the_guides_example_through_a_whole_study(packages, tmp_path):
    install_the_guides_example(packages, group=GROUP)
    stages.run(study(), tmp_path / "s", limit=3)
    rows = stages.rows(tmp_path / "s", "select provider, response_class, count(*) from calls group by all")
    assert rows == [("shouting", "complete", 12)]
    asked = {
        json.loads(row[0])["body"]["temperature"]
        for row in stages.rows(tmp_path / "s", "select request from calls where condition = 'cold'")
    }
    assert asked == {0}
    assert stages.rows(tmp_path / "s", "select sentence from checks where blocks or \"check\" = 'repeated_ids'") == []
    (text,) = stages.rows(tmp_path / "s", "select text from generations where condition = 'replay' limit 1")[0]
    assert text == text.upper()
    assert text.endswith("?")


def test_what_the_protocol_pins(packages):
    install_the_guides_example(packages, group=GROUP)
    plan = resolve(study(), limit=2)
    pinned = {
        "name": "shouting",
        "version": 1,
        "options": {"temperature": 1.0, "suffix": "?"},
        "distribution": "shouting-provider 0.3",
    }
    cold = pinned | {"options": {"temperature": 0.0, "suffix": "?"}}
    assert plan.protocol.providers == {"a/live": pinned, "a/cold": cold, "a/replay": pinned}
    assert resolve(study(timeout=3.0, max_retries=1), limit=2).digest == plan.digest
    assert resolve(study(options={"suffix": "."}), limit=2).digest != plan.digest


def test_a_study_of_our_own_providers_pins_none():
    plan = resolve(Study.model_validate(stages.body()), limit=2)
    assert plan.protocol.providers == {}
    assert "providers" not in json.loads(plan.protocol.canonical())  # so that older protocols keep their digests


def test_a_missing_key_is_found_before_the_run(packages, monkeypatch):
    install_the_guides_example(packages, group=GROUP)
    plan = resolve(study(api_key_env="SHOUTING_KEY"), limit=2)
    monkeypatch.delenv("SHOUTING_KEY", raising=False)
    with pytest.raises(ProviderError, match="SHOUTING_KEY"):
        check_keys(plan)
    monkeypatch.setenv("SHOUTING_KEY", "sk-0123456789")
    check_keys(plan)


def test_its_key_is_taken_out_of_all_that_it_returns(sketch, monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)
    response = sent(sketch(api_key_env="TEST_KEY"))
    assert (response.text, response.raw, response.headers) == ("you sent [redacted]",) * 2 + ({"x": "you sent [redacted]"},)
    failure = sent(sketch("raises", api_key_env="TEST_KEY"))
    assert (failure.kind, failure.text) == (Kind.TRANSIENT, "OSError: the key is [redacted]")
    with pytest.raises(StudyError) as caught:
        sketch("unmade", api_key_env="TEST_KEY")
    assert caught.value.found == "RuntimeError: no such mode; the key is [redacted]"


def test_what_it_does_wrong_is_no_crash(sketch):
    assert sent(sketch("slow", timeout=0.1)) == Failure(Kind.TRANSIENT, "no answer within 0.1 s")
    with pytest.raises(ProviderError, match="expected a Response or a Failure, found dict"):
        sent(sketch("nonsense"))
    with pytest.raises(StudyError, match=r"a request that JSON can carry \(provider sketch\)"):
        sent(sketch("nan"))
    with pytest.raises(StudyError, match="of which requests can be made"):
        sketch("no maker")
    plain = sketch()
    assert plain.request("p", CONTEXT).provider == "sketch"  # whatever it calls itself
    assert (plain.address, plain.journalled, plain.max_retries) == ("sketch of sketch-provider 1.0", True, 4)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (SKETCH.replace("    Options = Options\n", ""), "an object that lacks a pydantic model `Options`"),
        (SKETCH.replace("version = 3", "version = '3'"), "an object that lacks a whole number `version`"),
        (SKETCH.replace("async def send", "async def push"), "an object that lacks a method `send`"),
        ("Sketch = 3", "an object that lacks a class"),
        ("raise ImportError('no such library')", "ImportError: no such library"),
    ],
)
def test_an_object_that_is_no_provider(packages, source, found):
    install(packages, "sketch-provider", "1.0", {"sketch": "sketch:Sketch"}, GROUP, sketch=source)
    with pytest.raises(StudyError) as caught:
        request_maker(PluginProvider(name="sketch", options={}), model="m", max_tokens=5)
    assert (caught.value.where, caught.value.found) == ("provider.name", found)


def test_options_are_checked_by_the_provider(packages):
    install_the_guides_example(packages, group=GROUP)
    for options, where, found in (
        ({"sufix": "?"}, "provider.options.sufix", "sufix; did you mean suffix?"),
        ({"suffix": 3}, "provider.options.suffix", "3"),
        ({"temperature": float("inf")}, "provider.options.temperature", "inf"),
    ):
        with pytest.raises(StudyError) as caught:
            request_maker(PluginProvider.model_construct(name="shouting", options=options), model="m", max_tokens=5)
        assert (caught.value.where, caught.value.found) == (where, found)
        assert caught.value.remedy == "See the documentation of shouting-provider 0.3."


def test_a_name_that_nobody_registers():
    with pytest.raises(StudyError, match="Did you mean openai"):
        request_maker(PluginProvider(name="openaj", options={}), model="m", max_tokens=5)


def test_a_stranger_cannot_take_one_of_our_names(packages):
    install(packages, "aaa", "1.0", {"openai": "sketch:Sketch"}, GROUP, sketch=SKETCH)
    assert registered(registry.GROUP)["openai"].dist.name == "evalnoise"


def test_a_misspelt_name_is_told_from_a_plugin():
    with pytest.raises(ValidationError, match="opnai"):
        Study.model_validate(stages.body(stacks=[{"name": "a", "model": "m", "provider": {"name": "opnai", "temperature": 1.0}}]))


def test_a_condition_changes_single_options(packages):
    install_the_guides_example(packages, group=GROUP)
    base = json.loads(json.dumps(study().model_dump(exclude_unset=True)))
    base["conditions"][0] = {"name": "live", "kind": "live", "provider": {"options": {"temperature": 0.5}}}
    made = Study.model_validate(base)
    assert made.provider(made.stacks[0], made.conditions[0]).options == {"suffix": "?", "temperature": 0.5}
    base["conditions"][1] |= {"provider": {"options": {"temperature": 0.5}}}
    with pytest.raises(ValidationError, match="temperature-zero"):
        Study.model_validate(base)


def test_plan_and_doctor_say_who_it_is_and_which_key_it_needs(packages, tmp_path, monkeypatch):
    install_the_guides_example(packages, group=GROUP)
    monkeypatch.delenv("SHOUTING_KEY", raising=False)
    file = tmp_path / "study.json"
    file.write_text(json.dumps(study(api_key_env="SHOUTING_KEY").model_dump(mode="json", exclude_unset=True)))
    result = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["plan", str(file), "--store", str(tmp_path / "s"), "--limit", "2"])
    assert result.exit_code == 0, result.output
    assert 'Provider of a/cold: shouting 1 of shouting-provider 0.3 (temperature 0.0, suffix "?").' in result.output
    findings = list(check_keys_of(study(api_key_env="SHOUTING_KEY")))
    assert [finding.text for finding in findings] == ["SHOUTING_KEY is not set, and stack a needs it"]
