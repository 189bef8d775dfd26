"""The two SDK providers through real HTTP: what is sent and what is kept of an answer."""

from __future__ import annotations

import hashlib
import json

import pytest
import rfc8785
from wire.client import CONTEXT, SPECS, call, sendings, spec_for
from wire.dialects import AnthropicDialect, OpenAIDialect, ResponsesDialect
from wire.server import Reply, serve

from evalnoise.providers.make import make_provider
from schemas.errors import StudyError
from schemas.records import Response, ResponseClass

RATES = {"x-ratelimit-remaining-requests": "41", "x-ratelimit-reset-tokens": "6m0s", "anthropic-ratelimit-tokens-remaining": "9"}
IDS = {"chat": "chatcmpl-1", "responses": "resp_1", "messages": "msg_1"}


@pytest.mark.parametrize("stream", [False, True])
def test_all_that_is_returned_is_kept(dialect, stream):
    headers = RATES | {"X-Request-Id": "req-7", "Set-Cookie": "c=1", "openai-organization": "org", "retry-after": "3"}
    make = dialect.stream if stream else dialect.answer
    reply = make("four", reasoning="two and two", usage=(11, 7), details=(4, 5), headers=headers)
    with serve(reply) as server:
        (response,) = sendings(dialect, server, stream=stream)
    expected = Response(
        text="four",
        response_class=ResponseClass.COMPLETE,
        finish_reason={"chat": "stop", "responses": "completed", "messages": "end_turn"}[dialect.api],
        response_id=IDS[dialect.api],
        served_model="served-1",
        fingerprint="fp_1" if dialect.api == "chat" else "",
        reasoning="two and two",
        input_tokens=11,
        output_tokens=7,
        cached_tokens=4,
        cache_write_tokens=0 if dialect.api == "messages" else None,
        reasoning_tokens=5,
        request_id="req-7",
        headers=RATES | {"x-request-id": "req-7", "retry-after": "3"},
        raw=b"".join(reply.pieces).decode(),
    )
    assert response == expected
    assert server.received[0].path == dialect.path


def test_a_failure_keeps_its_headers_too(dialect):
    with serve(dialect.error(429, "rate_limit_error", retry_after="2", x_request_id="req-8")) as server:
        (failure,) = sendings(dialect, server)
    assert (failure.wait, failure.headers) == (2.0, {"retry-after": "2", "x-request-id": "req-8"})
    assert json.loads(failure.raw)["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize(
    ("headers", "more", "stored"),
    [
        ({"x-cache": "HIT"}, {}, True),
        ({"x-cache": "MISS, Hit from edge"}, {}, True),
        ({"cf-cache-status": "HIT"}, {}, True),
        ({"cf-aig-cache-status": "HIT"}, {}, True),
        ({"x-portkey-cache-status": "SEMANTIC HIT"}, {}, True),
        ({"cache-status": "edge; hit; ttl=30"}, {}, True),
        ({"x-litellm-cache-key": "abc"}, {}, True),
        ({}, {"cached": True}, True),
        ({}, {"from_cache": True}, True),
        ({"x-cache": "MISS"}, {}, False),
        ({"cf-cache-status": "DYNAMIC", "age": "5"}, {"cached": False}, False),
        ({"x-cache": "white"}, {"cached": "yes"}, False),
    ],
)
def test_signs_of_a_stored_answer(dialect, headers, more, stored):
    """Hard input 5: an answer that was not made for this call says so, and the signs are kept."""
    for make in (dialect.answer, dialect.stream):
        with serve(make("x", headers=headers, more=more)) as server:
            (response,) = sendings(dialect, server)
        assert (response.from_cache, response.headers) == (stored, headers)


def test_a_cached_prompt_is_no_stored_answer(dialect):
    with serve(dialect.answer("x", details=(10, 0))) as server:
        (response,) = sendings(dialect, server)
    assert (response.cached_tokens, response.from_cache) == (10, False)


def test_what_is_sent_is_the_model_and_the_body_and_the_key_is_their_digest(dialect):
    options = {"temperature": 0.7, "top_p": 0.9, "extra": {"stop": ["\n\n"], "unheard_of": {"b": 1, "a": [1.5, None, True]}}}
    with serve(dialect.answer()) as server:
        call(dialect, server, prompt="hü\u2028", **options)
        provider = make_provider(spec_for(dialect, server.url, **options), model="asked-1", max_tokens=50, retry="none")
    request = provider.request("hü\u2028", CONTEXT)
    assert server.received[0].body == {"model": "asked-1", **request.body}
    asked, limit = ("input", "max_output_tokens") if dialect.api == "responses" else ("messages", "max_tokens")
    assert request.body == {
        asked: [{"role": "user", "content": "hü\u2028"}],
        limit: 50,
        "temperature": 0.7,
        "top_p": 0.9,
        **({"store": False} if dialect.api == "responses" else {}),
        **options["extra"],
    }
    whole = {"normaliser": 2, "provider": dialect.name, "model": "asked-1", "body": request.body}
    assert request.canonical() == rfc8785.dumps(whole)
    assert request.key() == hashlib.sha256(rfc8785.dumps(whole)).hexdigest()


def test_absent_options_are_not_sent(dialect):
    with serve(dialect.answer()) as server:
        call(dialect, server)
    sent = {"responses": ["input", "max_output_tokens", "model", "store"]}.get(dialect.api, ["max_tokens", "messages", "model"])
    assert sorted(server.received[0].body) == sent


def test_a_stream_is_asked_for_and_so_part_of_the_key(dialect):
    with serve(dialect.stream("x")) as server:
        sendings(dialect, server, stream=True)
    body = server.received[0].body
    assert body["stream"] is True
    assert body.get("stream_options") == ({"include_usage": True} if dialect.api == "chat" else None)


def test_the_responses_interface_has_no_seed_and_stores_nothing():
    wire = ResponsesDialect()
    with pytest.raises(StudyError, match="api: chat"):
        make_provider(spec_for(wire, "http://127.0.0.1:9", seed=3), model="m", max_tokens=5, retry="none")
    with serve(wire.answer()) as server:
        sendings(wire, server)
        sendings(wire, server, extra={"store": True})
    assert [received.body["store"] for received in server.received] == [False, True]


def test_the_seed_and_the_newer_name_of_the_limit_are_sent_as_given():
    with serve(OpenAIDialect().answer()) as server:
        call(OpenAIDialect(), server, seed=5, extra={"max_completion_tokens": 900})
    body = server.received[0].body
    assert (body["seed"], body["max_completion_tokens"], "max_tokens" in body) == (5, 900, False)


def test_lone_surrogates_in_prompt_and_answer_do_not_stop_the_call(dialect):
    with serve(dialect.answer("\ud835 é")) as server:
        (response,) = call(dialect, server, prompt="a\ud835b")
    assert response.text == "\ud835 é"
    assert response.response_class is ResponseClass.COMPLETE
    response.raw.encode("utf-8")  # the raw body can be stored as it is
    asked = server.received[0].body
    assert (asked.get("messages") or asked["input"])[0]["content"] == "a\\ud835b"


def test_bytes_that_are_no_utf8_are_kept_visibly(dialect):
    with serve(Reply(body=b'{"broken": "\xff\xfe"')) as server:
        (response,) = call(dialect, server, max_retries=0)
    assert response.response_class is ResponseClass.MALFORMED
    assert response.raw == '{"broken": "\\xff\\xfe"'


def test_content_in_parts_is_joined():
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}, {"type": "text", "text": 3}]
    with serve(OpenAIDialect().answer(message={"content": parts})) as server:
        (response,) = call(OpenAIDialect(), server)
    assert response.text == "ab"


def test_a_large_limit_does_not_make_the_sdk_refuse():
    with serve(AnthropicDialect().answer("x")) as server:
        (response,) = call(AnthropicDialect(), server, max_tokens=200_000)
    assert response.response_class is ResponseClass.COMPLETE


def test_input_tokens_are_all_of_them_whatever_the_protocol_counts_apart():
    wire = AnthropicDialect()
    with serve(wire.answer(usage=(11, 7), cache_read=100, cache_write=30)) as server:
        (response,) = sendings(wire, server)
    counts = (response.input_tokens, response.cached_tokens, response.cache_write_tokens, response.output_tokens)
    assert counts == (141, 100, 30, 7)


def test_a_provider_knows_no_prices(dialect):
    with serve(dialect.answer()) as server:
        (response,) = sendings(dialect, server, input_usd_per_million=1.0, output_usd_per_million=1.0)
    assert response.cost_usd is None


@pytest.mark.parametrize("usage", [(-1, 7), (2**60, 7), (True, 7), ("11", 7), (1.5, 7)])
def test_implausible_counts_are_unknown(dialect, usage):
    body = json.loads(dialect.answer().body)
    names = ("prompt_tokens", "completion_tokens") if dialect.api == "chat" else ("input_tokens", "output_tokens")
    body["usage"] = dict(zip(names, usage, strict=True))
    with serve(Reply(body=json.dumps(body).encode())) as server:
        (response,) = call(dialect, server)
    assert (response.input_tokens, response.output_tokens) == (None, 7)


def test_the_served_model_is_what_the_server_says(dialect):
    """Hard input 34: an alias that points elsewhere now shows in the served model, not in the one that was asked for."""
    with serve(dialect.answer(model="another-model")) as server:
        (response,) = call(dialect, server)
    assert response.served_model == "another-model"


@pytest.mark.parametrize("name", ["model", "asked", "stream", "temperature", "limit", "top_p"])
def test_extra_must_not_say_again_what_has_an_option(dialect, name):
    names = (
        {"asked": "input", "limit": "max_output_tokens"}
        if dialect.api == "responses"
        else {"asked": "messages", "limit": "max_tokens"}
    )
    name = names.get(name, name)
    with pytest.raises(StudyError) as caught:
        make_provider(spec_for(dialect, "http://127.0.0.1:9", extra={name: 1}), model="m", max_tokens=5, retry="none")
    assert caught.value.where == f"provider.extra.{name}"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**60, {1: 2}, "\ud835", object()], ids=repr)
def test_extra_must_be_json(dialect, value):
    with pytest.raises(StudyError, match="options that JSON can carry"):
        make_provider(spec_for(dialect, "http://127.0.0.1:9", extra={"x": value}), model="m", max_tokens=5, retry="none")


@pytest.mark.parametrize("url", ["ftp://x", "localhost:8080", "http://", "http://u:pw-secret@host", "http://[::1"])
def test_base_url_must_be_an_address_without_secrets(dialect, url):
    with pytest.raises(StudyError) as caught:
        make_provider(SPECS[dialect.name](name=dialect.name, base_url=url), model="m", max_tokens=5, retry="none")
    assert caught.value.where == "provider.base_url"
    assert "pw-secret" not in str(caught.value)
