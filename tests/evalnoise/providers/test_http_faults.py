"""The two SDK providers through real HTTP: what becomes of every kind of fault."""

from __future__ import annotations

import asyncio
import time

import pytest
from wire.client import CONTEXT, KEY, answering, call, spec_for
from wire.dialects import HTML, OpenAIDialect
from wire.server import Reply, refused_port, serve

from evalnoise.providers.make import make_provider
from schemas.errors import ProviderError
from schemas.records import ResponseClass


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
        with answering(provider) as answer:
            await answer(provider.request("p", CONTEXT), CONTEXT)

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
            with answering(provider) as answer:
                await asyncio.gather(*(answer(request, CONTEXT) for _ in range(16)))
            await provider.close()

        began = time.monotonic()
        asyncio.run(work())
    assert time.monotonic() - began < 16 * 0.2 / 2
