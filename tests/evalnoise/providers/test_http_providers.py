"""The two SDK providers through real HTTP: what is sent and what is kept of an answer."""

from __future__ import annotations

import hashlib
import json

import pytest
import rfc8785
from wire.client import CONTEXT, SPECS, call, spec_for
from wire.dialects import AnthropicDialect, OpenAIDialect
from wire.server import Reply, serve

from evalnoise.providers.make import make_provider
from schemas.errors import StudyError
from schemas.records import Response, ResponseClass


def test_a_plain_answer_is_kept_whole(dialect):
    reply = dialect.answer("four")
    with serve(reply) as server:
        (response,) = call(dialect, server, input_usd_per_million=3.0, output_usd_per_million=15.0)
    expected = Response(
        text="four",
        response_class=ResponseClass.COMPLETE,
        finish_reason={"openai": "stop", "anthropic": "end_turn"}[dialect.name],
        response_id={"openai": "chatcmpl-1", "anthropic": "msg_1"}[dialect.name],
        served_model="served-1",
        fingerprint={"openai": "fp_1", "anthropic": ""}[dialect.name],
        input_tokens=11,
        output_tokens=7,
        cost_usd=(11 * 3 + 7 * 15) / 1e6,
        raw=reply.body.decode(),
    )
    assert response == expected
    assert server.received[0].path == dialect.path


def test_what_is_sent_is_the_model_and_the_body_and_the_key_is_their_digest(dialect):
    options = {"temperature": 0.7, "top_p": 0.9, "extra": {"stop": ["\n\n"], "unheard_of": {"b": 1, "a": [1.5, None, True]}}}
    with serve(dialect.answer()) as server:
        call(dialect, server, prompt="hü\u2028", **options)
        provider = make_provider(spec_for(dialect, server.url, **options), model="asked-1", max_tokens=50, retry="none")
    request = provider.request("hü\u2028", CONTEXT)
    assert server.received[0].body == {"model": "asked-1", **request.body}
    assert request.body == {
        "messages": [{"role": "user", "content": "hü\u2028"}],
        "max_tokens": 50,
        "temperature": 0.7,
        "top_p": 0.9,
        **options["extra"],
    }
    whole = {"normaliser": 1, "provider": dialect.name, "model": "asked-1", "body": request.body}
    assert request.canonical() == rfc8785.dumps(whole)
    assert request.key() == hashlib.sha256(rfc8785.dumps(whole)).hexdigest()


def test_absent_options_are_not_sent(dialect):
    with serve(dialect.answer()) as server:
        call(dialect, server)
    assert sorted(server.received[0].body) == ["max_tokens", "messages", "model"]


def test_the_seed_and_the_newer_name_of_the_limit_are_sent_as_given():
    with serve(OpenAIDialect().answer()) as server:
        call(OpenAIDialect(), server, seed=5, extra={"max_completion_tokens": 900})
    body = server.received[0].body
    assert (body["seed"], body["max_completion_tokens"], "max_tokens" in body) == (5, 900, False)


def test_every_sampling_field_and_every_unknown_field_changes_the_key(dialect):
    def key(prompt="p", model="m", max_tokens=50, **options):
        spec = spec_for(dialect, "http://127.0.0.1:9", **options)
        return make_provider(spec, model=model, max_tokens=max_tokens, retry="none").request(prompt, CONTEXT).key()

    keys = [
        key(),
        key(prompt="q"),
        key(model="n"),
        key(max_tokens=51),
        key(temperature=0.0),
        key(temperature=0.7),
        key(top_p=0.5),
        key(extra={"x": 1}),
        key(extra={"x": 2}),
    ]
    assert len(set(keys)) == len(keys)
    assert key(temperature=0) == key(temperature=0.0)
    assert key(timeout=1.0, max_retries=0) == key()


def test_the_address_is_not_part_of_the_key(dialect):
    keys = {
        make_provider(spec_for(dialect, url), model="m", max_tokens=5, retry="none").request("p", CONTEXT).key()
        for url in ("http://127.0.0.1:1", "http://127.0.0.1:2")
    }
    assert len(keys) == 1


def test_lone_surrogates_in_prompt_and_answer_do_not_stop_the_call(dialect):
    with serve(dialect.answer("\ud835 é")) as server:
        (response,) = call(dialect, server, prompt="a\ud835b")
    assert response.text == "\ud835 é"
    assert response.response_class is ResponseClass.COMPLETE
    response.raw.encode("utf-8")  # the raw body can be stored as it is
    assert server.received[0].body["messages"][0]["content"] == "a\\ud835b"


def test_bytes_that_are_no_utf8_are_kept_visibly(dialect):
    with serve(Reply(body=b'{"broken": "\xff\xfe"')) as server:
        (response,) = call(dialect, server, max_retries=0)
    assert response.response_class is ResponseClass.INFRASTRUCTURE
    assert response.raw == '{"broken": "\\xff\\xfe"'


@pytest.mark.parametrize(
    ("finish", "text", "expected"),
    [
        ("stop", "x", ResponseClass.COMPLETE),
        ("stop", "", ResponseClass.EMPTY),
        ("stop", None, ResponseClass.EMPTY),
        ("stop", " \n", ResponseClass.EMPTY),
        ("length", "def f", ResponseClass.TRUNCATED),
        ("length", None, ResponseClass.TRUNCATED),
        ("refusal", "I will not", ResponseClass.REFUSAL),
        ("refusal", None, ResponseClass.REFUSAL),
        ("stop", "<think>hm", ResponseClass.TRUNCATED),
        ("stop", "<think>hm</think>x", ResponseClass.COMPLETE),
    ],
)
def test_classes(dialect, finish, text, expected):
    with serve(dialect.answer(text, finish=finish)) as server:
        (response,) = call(dialect, server)
    assert response.response_class is expected
    assert response.text == (text or "")
    assert len(server.received) == 1


def test_a_refusal_field_is_a_refusal_and_is_not_tried_again():
    with serve(OpenAIDialect().answer(None, refusal="I cannot help")) as server:
        (response,) = call(OpenAIDialect(), server)
    assert (response.response_class, response.refusal, len(server.received)) == (ResponseClass.REFUSAL, "I cannot help", 1)


def test_reasoning_that_ate_the_budget_is_truncated_and_kept_raw():
    reply = OpenAIDialect().answer(None, finish="length", message={"reasoning_content": "let me think"})
    with serve(reply) as server:
        (response,) = call(OpenAIDialect(), server)
    assert (response.text, response.response_class) == ("", ResponseClass.TRUNCATED)
    assert json.loads(response.raw)["choices"][0]["message"]["reasoning_content"] == "let me think"
    assert response.output_tokens == 7


def test_content_in_parts_is_joined():
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}, {"type": "text", "text": 3}]
    with serve(OpenAIDialect().answer(message={"content": parts})) as server:
        (response,) = call(OpenAIDialect(), server)
    assert response.text == "ab"


def test_thinking_blocks_are_not_text():
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    with serve(AnthropicDialect().answer(content=content)) as server:
        (response,) = call(AnthropicDialect(), server)
    assert response.text == "ab"
    assert "hm" in response.raw


@pytest.mark.parametrize("finish", ["model_context_window_exceeded", "max_tokens"])
def test_both_ways_to_run_out_of_room_are_truncation(finish):
    with serve(AnthropicDialect().answer("x", finish=finish)) as server:
        (response,) = call(AnthropicDialect(), server)
    assert (response.response_class, response.finish_reason) == (ResponseClass.TRUNCATED, finish)


def test_a_large_limit_does_not_make_the_sdk_refuse():
    with serve(AnthropicDialect().answer("x")) as server:
        (response,) = call(AnthropicDialect(), server, max_tokens=200_000)
    assert response.response_class is ResponseClass.COMPLETE


def test_the_cost_is_unknown_unless_both_prices_and_the_usage_are_known(dialect):
    with serve(dialect.answer(usage=None), dialect.answer()) as server:
        (no_usage,) = call(dialect, server, input_usd_per_million=1.0, output_usd_per_million=1.0)
        (one_price,) = call(dialect, server, input_usd_per_million=1.0)
        (free,) = call(dialect, server, input_usd_per_million=0.0, output_usd_per_million=0.0)
    assert (no_usage.cost_usd, no_usage.input_tokens, one_price.cost_usd, free.cost_usd) == (None, None, None, 0.0)


def test_tokens_from_a_cache_have_another_price_so_the_cost_is_unknown():
    with serve(AnthropicDialect().answer(cache_read=100)) as server:
        (response,) = call(AnthropicDialect(), server, input_usd_per_million=1.0, output_usd_per_million=1.0)
    assert (response.input_tokens, response.output_tokens, response.cost_usd) == (None, 7, None)


@pytest.mark.parametrize("usage", [(-1, 7), (2**60, 7), (True, 7), ("11", 7), (1.5, 7)])
def test_implausible_counts_are_unknown(dialect, usage):
    body = json.loads(dialect.answer().body)
    names = {"openai": ("prompt_tokens", "completion_tokens"), "anthropic": ("input_tokens", "output_tokens")}[dialect.name]
    body["usage"] = dict(zip(names, usage, strict=True))
    with serve(Reply(body=json.dumps(body).encode())) as server:
        (response,) = call(dialect, server)
    assert (response.input_tokens, response.output_tokens) == (None, 7)


def test_the_served_model_is_what_the_server_says(dialect):
    with serve(dialect.answer(model="another-model")) as server:
        (response,) = call(dialect, server)
    assert response.served_model == "another-model"


@pytest.mark.parametrize("name", ["model", "messages", "stream", "temperature", "max_tokens", "top_p"])
def test_extra_must_not_say_again_what_has_an_option(dialect, name):
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
