"""Request keys: every field counts, also those that nobody has heard of; only ids of traces and times do not."""

from __future__ import annotations

import copy
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from wire.client import CONTEXT, sendings, spec_for
from wire.dialects import DIALECTS
from wire.server import serve

from evalnoise.providers.base import Request
from evalnoise.providers.make import request_maker
from schemas.errors import StudyError
from schemas.protocol import digested_study
from schemas.requests import UNKEYED, keyed
from schemas.study import Study
from tests.support import stages

NAMES = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(["metadata", "temperature", "seed", "trace_id"])
LEAVES = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    LEAVES | st.text(st.characters(codec="utf-8"), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
BODIES = st.dictionaries(NAMES, VALUES, max_size=5)
IGNORED = [path.split(".")[1] for path in UNKEYED]


def key(body, model="m", provider="openai") -> str:
    return Request(provider, model, body).key()


def shuffled(value, draw: random.Random):
    if isinstance(value, dict):
        names = list(value)
        draw.shuffle(names)
        return {name: shuffled(value[name], draw) for name in names}
    return [shuffled(inner, draw) for inner in value] if isinstance(value, list) else value


@given(BODIES, st.randoms())
def test_the_order_of_fields_does_not_count(body, draw):
    assert key(shuffled(body, draw)) == key(body)


@given(BODIES, NAMES, VALUES)
def test_a_field_that_is_added_or_changed_counts(body, name, value):
    changed = {**body, name: value}
    # Numbers that JSON writes alike are alike: 1 and 1.0, 0.0 and -0.0.
    assume(Request("p", "m", keyed(changed)).canonical() != Request("p", "m", keyed(body)).canonical() or changed == body)
    assert (key(changed) == key(body)) == (name in body and changed == body)


@given(BODIES, st.lists(st.sampled_from(IGNORED), min_size=1, unique=True), VALUES)
def test_ids_of_traces_and_times_do_not_count(body, names, value):
    body.pop("metadata", None)
    sent = {**body, "metadata": dict.fromkeys(names, value)}
    before = copy.deepcopy(sent)
    assert key(sent) == key(body)
    assert sent == before  # what is sent still holds them
    with_user = {**body, "metadata": {"user": "u", **dict.fromkeys(names, value)}}
    assert key(with_user) == key({**body, "metadata": {"user": "u"}}) != key(body)


@pytest.mark.parametrize(
    "body",
    [{"metadata": {}}, {"trace_id": "t"}, {"metadata": {"user_id": "u"}}, {"user": "u"}, {"x": {"metadata": {"trace_id": "t"}}}],
    ids=str,
)
def test_only_the_named_ones_do_not_count(body):
    assert key(body) != key({})


def test_every_sampling_field_changes_the_key_and_operation_does_not():
    """Hard input 6: temperature 0 and 0.7 are two requests."""
    for dialect in DIALECTS:

        def made(prompt="p", model="m", max_tokens=50, wire=dialect, **options):
            spec = spec_for(wire, options.pop("url", "http://127.0.0.1:9"), **options)
            return request_maker(spec, model=model, max_tokens=max_tokens)(prompt, CONTEXT).key()

        keys = [
            made(),
            made(prompt="q"),
            made(model="n"),
            made(max_tokens=51),
            made(temperature=0.0),
            made(temperature=0.7),
            made(top_p=0.5),
            made(stream=True),
            made(extra={"x": 1}),
            made(extra={"x": 2}),
            *([made(seed=1)] if dialect.api == "chat" else []),
        ]
        assert len(set(keys)) == len(keys)
        assert made(temperature=0) == made(temperature=0.0)
        assert made(timeout=1.0, connect_timeout=2.0, first_byte_timeout=3.0, max_retries=0, url="http://127.0.0.1:10") == made()
        assert made(extra={"metadata": {"trace_id": "a"}}) == made(extra={"metadata": {"trace_id": "b"}}) == made()


def test_what_does_not_count_is_sent_and_must_be_json_too(dialect, monkeypatch):
    monkeypatch.setenv("TEST_KEY", "sk-0123456789abcdef")
    with serve(dialect.answer()) as server:
        sendings(dialect, server, extra={"metadata": {"trace_id": "t-1"}})
    assert server.received[0].body["metadata"] == {"trace_id": "t-1"}
    spec = spec_for(dialect, "http://127.0.0.1:9", extra={"metadata": {"trace_id": float("nan")}})
    with pytest.raises(StudyError, match="options that JSON can carry"):
        request_maker(spec, model="m", max_tokens=5)


def test_a_trace_id_changes_no_protocol():
    def digested(trace: str):
        provider = {"name": "openai", "extra": {"metadata": {"trace_id": trace}, "top_k": 5}}
        stack = stages.body()["stacks"][0] | {"provider": provider}
        conditions = [
            {"name": "live", "kind": "live"},
            {"name": "other", "kind": "live", "provider": {"extra": {"metadata": {"sent_at": trace}}}},
        ]
        return digested_study(Study.model_validate(stages.body(stacks=[stack], conditions=conditions)))

    assert digested("a") == digested("b")
    assert digested("a")["stacks"][0]["provider"]["extra"] == {"top_k": 5}
