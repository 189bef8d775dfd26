"""The two SDK providers through real HTTP: what is sent, what is kept, and what becomes of every kind of fault."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import traceback
from dataclasses import asdict

import pytest
import rfc8785
from wire.dialects import DIALECTS, HTML, AnthropicDialect, OpenAIDialect
from wire.server import Reply, refused_port, serve

from evalnoise.providers.base import CallContext
from evalnoise.providers.http import HttpProvider
from evalnoise.providers.make import make_provider
from schemas.errors import ProviderError, StudyError
from schemas.records import Response, ResponseClass, Task, TaskKind
from schemas.study import AnthropicProvider, OpenAIProvider

KEY = 'sk-planted/"k\\ey"-0123456789abcdef'
SPECS = {"openai": OpenAIProvider, "anthropic": AnthropicProvider}
TASK = Task("t/1", TaskKind.FUNCTION, "add", "def add(a, b): return a + b", "add")
CONTEXT = CallContext(TASK, "s", "live", 0, 0)


@pytest.fixture(params=DIALECTS, ids=lambda d: d.name)
def dialect(request):
    return request.param


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.setattr(HttpProvider, "first_wait", 0.001)
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def spec_for(dialect, url, **options):
    return SPECS[dialect.name](name=dialect.name, base_url=url + dialect.prefix, api_key_env="TEST_KEY", **options)


def call(dialect, server, *, prompt="hi", calls=1, max_tokens=50, **options) -> list[Response]:
    async def work():
        provider = make_provider(spec_for(dialect, server.url, **options), model="asked-1", max_tokens=max_tokens, retry="none")
        try:
            return [await provider.complete(provider.request(prompt, CONTEXT), CONTEXT) for _ in range(calls)]
        finally:
            await provider.close()

    return asyncio.run(work())


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


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_transient_statuses_are_tried_again(dialect, status):
    with serve(dialect.error(status, "busy"), dialect.error(status, "busy"), dialect.answer("ok")) as server:
        (response,) = call(dialect, server)
    assert (response.text, response.error, len(server.received)) == ("ok", "", 3)
    assert len({r.raw for r in server.received}) == 1
    # The retries are ours, none is the SDK's.
    assert [r.headers["x-stainless-retry-count"] for r in server.received] == ["0", "0", "0"]


def test_retry_after_is_waited_for(dialect):
    with serve(dialect.error(429, "rate_limit", retry_after="0.3"), dialect.answer("ok")) as server:
        began = time.monotonic()
        (response,) = call(dialect, server)
        took = time.monotonic() - began
    assert response.text == "ok"
    assert took >= 0.3


def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for(dialect):
    with serve(dialect.error(429, "rate_limit", retry_after="86400")) as server:
        (response,) = call(dialect, server)
    assert (response.response_class, len(server.received)) == (ResponseClass.INFRASTRUCTURE, 1)


FAULTS = {
    "reset": lambda d: Reply(body=d.answer().body, cut_after=20),
    "cut-off-json": lambda d: Reply(body=d.answer().body[:40]),
    "html": lambda _: Reply(body=HTML, content_type="text/html"),
    "html-502": lambda _: Reply(502, HTML, content_type="text/html"),
    "no-choices": lambda d: d.hollow(),
    "overloaded-200": lambda d: d.overloaded_200(),
    "list": lambda _: Reply(body=b"[1]"),
    "nothing": lambda _: Reply(body=b""),
    "deep": lambda _: Reply(body=b"[" * 200_000),
    "529": lambda d: d.error(529, "overloaded_error"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_survived_when_it_passes(dialect, fault):
    with serve(FAULTS[fault](dialect), dialect.answer("ok")) as server:
        (response,) = call(dialect, server)
    assert (response.text, response.response_class, len(server.received)) == ("ok", ResponseClass.COMPLETE, 2)


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - {"reset"}))
def test_a_fault_that_stays_is_an_infrastructure_response(dialect, fault):
    with serve(FAULTS[fault](dialect)) as server:
        (response,) = call(dialect, server, max_retries=2)
    assert (response.text, response.response_class, response.cost_usd) == ("", ResponseClass.INFRASTRUCTURE, None)
    assert response.error.endswith("(attempts: 3)")
    assert len(server.received) == 3


def test_resets_after_a_first_answer_are_an_infrastructure_response(dialect):
    reset = FAULTS["reset"](dialect)
    with serve(dialect.answer("ok"), reset) as server:
        first, second = call(dialect, server, calls=2, max_retries=1)
    assert (first.text, second.response_class, len(server.received)) == ("ok", ResponseClass.INFRASTRUCTURE, 3)
    assert second.error.startswith("connection failed")


@pytest.mark.parametrize("reply", [Reply(endless=True), Reply(delay=1.0)], ids=["endless", "slow"])
def test_the_time_limit_is_for_the_whole_call(dialect, reply):
    with serve(dialect.answer("ok"), reply) as server:
        began = time.monotonic()
        _, response = call(dialect, server, calls=2, max_retries=1, timeout=0.3)
        took = time.monotonic() - began
    assert response.response_class is ResponseClass.INFRASTRUCTURE
    assert response.error == "no whole answer within 0.3 s (attempts: 2)"
    assert took < 3


def test_a_server_that_cannot_be_reached_ends_the_run(dialect):
    spec = spec_for(dialect, f"http://127.0.0.1:{refused_port()}", max_retries=1)

    async def work():
        provider = make_provider(spec, model="m", max_tokens=5, retry="none")
        await provider.complete(provider.request("p", CONTEXT), CONTEXT)

    with pytest.raises(ProviderError, match="connection failed") as caught:
        asyncio.run(work())
    assert "whether the server runs" in caught.value.remedy


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_what_would_fail_every_call_ends_the_run_at_once(dialect, status):
    with serve(dialect.error(status, "no", message=f"bad key {KEY}")) as server, pytest.raises(ProviderError) as caught:
        call(dialect, server)
    assert len(server.received) == 1
    assert f"HTTP {status}" in str(caught.value)
    assert ("TEST_KEY" in caught.value.remedy) == (status == 401)


def test_an_empty_account_is_not_waited_for():
    with serve(OpenAIDialect().error(429, "insufficient_quota")) as server, pytest.raises(ProviderError, match="account"):
        call(OpenAIDialect(), server)
    assert len(server.received) == 1


def test_a_refused_request_is_not_tried_again_and_five_in_a_row_end_the_run(dialect):
    with serve(dialect.error(400, "invalid_request_error", message="temperature is not supported")) as server:
        responses = call(dialect, server, calls=4)
        assert [r.response_class for r in responses] == [ResponseClass.INFRASTRUCTURE] * 4
        assert len(server.received) == 4
        with pytest.raises(ProviderError, match=r"5 failed calls in a row, the last for task t/1: .*temperature is not supported"):
            call(dialect, server, calls=5)


def test_an_answer_in_between_forgives_the_failures(dialect):
    bad, good = dialect.error(500, "x"), dialect.answer()
    with serve(bad, bad, bad, bad, good, bad, bad, bad, bad) as server:
        responses = call(dialect, server, calls=9, max_retries=0)
    assert [r.response_class is ResponseClass.COMPLETE for r in responses] == [False] * 4 + [True] + [False] * 4


@pytest.mark.parametrize("message", ["prompt is too long: 300000 tokens", "maximum context length is 8192"])
def test_too_long_a_prompt_concerns_its_own_cell_only(dialect, message):
    with serve(dialect.error(400, "invalid_request_error", message=message)) as server:
        responses = call(dialect, server, calls=7)
    assert {r.response_class for r in responses} == {ResponseClass.INFRASTRUCTURE}
    assert len(server.received) == 7


def test_a_filter_that_answers_400_is_a_refusal(dialect):
    with serve(dialect.error(400, "content_filter", message="Output blocked by content filtering policy")) as server:
        (response,) = call(dialect, server)
    assert (response.response_class, response.finish_reason) == (ResponseClass.REFUSAL, "http-400")


def test_one_client_keeps_its_connections(dialect):
    with serve(dialect.answer()) as server:
        call(dialect, server, calls=20)
    assert server.connections == 1


def test_calls_run_at_once(dialect):
    with serve(dialect.answer(delay=0.2)) as server:

        async def work():
            provider = make_provider(spec_for(dialect, server.url), model="m", max_tokens=5, retry="none")
            request = provider.request("p", CONTEXT)
            await asyncio.gather(*(provider.complete(request, CONTEXT) for _ in range(16)))
            await provider.close()

        began = time.monotonic()
        asyncio.run(work())
    assert time.monotonic() - began < 16 * 0.2 / 2


# Options that cannot be sent.


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


# Keys.


@pytest.mark.parametrize("value", [None, "", "  ", "kéy-of-some-length", "key\nwith-a-line-break"])
def test_a_key_that_is_absent_or_unusable_is_named_by_its_variable(dialect, monkeypatch, value):
    monkeypatch.delenv("TEST_KEY") if value is None else monkeypatch.setenv("TEST_KEY", value)
    with pytest.raises(ProviderError) as caught:
        make_provider(spec_for(dialect, "http://127.0.0.1:9"), model="m", max_tokens=5, retry="none")
    assert "TEST_KEY" in str(caught.value)
    assert not value or not value.strip() or value not in str(caught.value)


def test_no_other_key_is_sent(dialect, monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, f"another-secret-{name}")
    with serve(dialect.answer()) as server:
        call(dialect, server)
    sent = json.dumps(server.received[0].headers)
    assert "another-secret" not in sent
    assert json.dumps(KEY)[1:-1] in sent


def forms_of_the_key() -> list[str]:
    return [KEY, json.dumps(KEY)[1:-1], "sk-planted"]


def test_planted_keys_never_show(dialect):
    echo = f"you sent {KEY}"
    edge = " " * 270 + echo  # where an error text is cut
    replies = [
        Reply(body=edge.encode()),
        Reply(500, edge.encode(), content_type="text/plain"),
        Reply(body=json.dumps({"error": edge}).encode()),
        dialect.answer(echo, model=echo),
        dialect.answer("", finish=echo),
        dialect.error(400, "invalid", message=echo),
        dialect.error(400, "content_filter", message=echo),
        Reply(body=echo.encode()),
        Reply(500, echo.encode(), content_type="text/plain"),
        Reply(body=json.dumps({"error": echo}).encode()),
    ]
    shown: list[str] = []
    for reply in replies:
        with serve(reply) as server:
            (response,) = call(dialect, server, max_retries=0)
        shown += [repr(response), json.dumps(asdict(response), ensure_ascii=False), *map(str, asdict(response).values())]
    for status in (401, 403, 429):
        reply = dialect.error(status, "insufficient_quota", message=echo)
        with serve(reply) as server, pytest.raises(ProviderError) as caught:
            call(dialect, server, max_retries=0)
        error = caught.value
        assert error.__cause__ is None
        assert error.__context__ is None  # the SDK's error holds the request with its headers
        shown += [str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error))]
    provider = make_provider(spec_for(dialect, "http://127.0.0.1:9"), model="m", max_tokens=5, retry="none")
    shown += [repr(provider), str(provider), repr(vars(provider)), repr(provider.request("p", CONTEXT))]
    assert any("[redacted]" in text for text in shown)
    for text in shown:
        for form in forms_of_the_key():
            assert form not in text


def test_a_dummy_key_does_not_alter_answers(dialect, monkeypatch):
    monkeypatch.setenv("TEST_KEY", "none")
    with serve(dialect.answer("return none"), dialect.error(401, "none")) as server:
        (response,) = call(dialect, server)
        assert response.text == "return none"
        with pytest.raises(ProviderError, match=r"\[redacted\]"):
            call(dialect, server)
