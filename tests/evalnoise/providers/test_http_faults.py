"""The two SDK providers through real HTTP: what becomes of every kind of fault."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from dataclasses import replace

import pytest
from wire.client import CONTEXT, KEY, answering, call, send, sendings, spec_for
from wire.dialects import OpenAIDialect
from wire.faults import MALFORMED, NEVER, PASSING, SLOW
from wire.server import Reply, refused_port, serve

from evalnoise.providers import http
from evalnoise.providers.base import Failure, Kind
from evalnoise.providers.make import make_provider
from evalnoise.sending.endpoint import response_of
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


@pytest.mark.parametrize("fault", [*PASSING, *MALFORMED])
def test_a_fault_is_survived_when_it_passes(dialect, fault):
    made = (PASSING | MALFORMED)[fault](dialect)
    with serve(made, dialect.answer("ok")) as server:
        (response,) = call(dialect, server)
    assert (response.text, response.response_class, len(server.received)) == ("ok", ResponseClass.COMPLETE, 2)


@pytest.mark.parametrize("fault", [*PASSING, *MALFORMED])
def test_what_one_sending_comes_to(dialect, fault):
    """Nothing is sent again inside a provider, and every failure says what kind it is. Hard input 31: an overload inside 200."""
    made = (PASSING | MALFORMED)[fault](dialect)
    with serve(made) as server:
        (failure,) = sendings(dialect, server)
    assert isinstance(failure, Failure)
    assert len(server.received) == 1
    overloaded = {
        "429",
        "429 with retry-after",
        "429 with retry-after-ms",
        "503",
        "529",
        "overload inside 200",
        "overload in a stream",
    }
    passes = Kind.OVERLOADED if fault in overloaded else Kind.TRANSIENT
    assert failure.kind is (Kind.MALFORMED if fault in MALFORMED else passes)
    assert failure.wait == (0.05 if "retry-after" in fault else None)


@pytest.mark.parametrize("fault", [*PASSING, *MALFORMED])
def test_a_fault_that_stays(dialect, fault):
    with serve((PASSING | MALFORMED)[fault](dialect)) as server:
        (failure,) = sendings(dialect, server)
    response = response_of(failure, failure.text)
    expected = ResponseClass.MALFORMED if fault in MALFORMED else ResponseClass.INFRASTRUCTURE
    assert (response.text, response.response_class, response.cost_usd) == ("", expected, None)
    assert not response.final


def test_a_reset_keeps_what_came(dialect):
    whole = dialect.answer("a long enough text")
    with serve(replace(whole, cut_after=25)) as server:
        (failure,) = sendings(dialect, server)
    assert failure.kind is Kind.TRANSIENT
    assert failure.text.startswith("the connection broke: ")
    assert failure.raw == whole.body[:25].decode()


def test_a_reset_is_not_an_unreached_server(dialect):
    """Before anything was answered: the server was reached, so it is tried again like any other reset."""
    with serve(Reply(drop=True), dialect.answer("ok")) as server:
        (response,) = call(dialect, server)
    assert (response.text, len(server.received)) == ("ok", 2)


@pytest.mark.parametrize("fault", NEVER)
def test_a_limit_of_time_ends_what_never_ends(dialect, fault):
    with serve(NEVER[fault](dialect)) as server:
        began = time.monotonic()
        (failure,) = sendings(dialect, server, timeout=0.4)
        took = time.monotonic() - began
    assert (failure.kind, failure.text) == (Kind.TRANSIENT, "no whole answer within 0.4 s")
    assert took < 2


@pytest.mark.parametrize("fault", SLOW)
def test_a_slow_first_byte_is_waited_for_or_not(dialect, fault):
    with serve(SLOW[fault](dialect)) as server:
        (answer,) = sendings(dialect, server, first_byte_timeout=2.0)
        (failure,) = sendings(dialect, server, first_byte_timeout=0.1)
    assert answer.text == "hello"
    assert (failure.kind, failure.text) == (Kind.TRANSIENT, "no first byte within 0.1 s")


def test_a_body_may_take_longer_than_its_first_byte(dialect):
    with serve(dialect.stream("some text of several pieces", pace=0.05)) as server:
        (answer,) = sendings(dialect, server, stream=True, first_byte_timeout=0.2)
    assert answer.text == "some text of several pieces"


def test_a_host_that_takes_no_connection_is_unreached(dialect):
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        failure = asyncio.run(send(dialect, url, connect_timeout=0.2, timeout=5.0))
        for one in waiting:
            one.close()
    assert (failure.kind, failure.text) == (Kind.UNREACHED, "no connection within 0.2 s")


def test_a_server_that_sends_elsewhere_is_not_followed(dialect):
    """The key goes to the named address alone: a redirect would show it to another host."""
    with serve(dialect.answer()) as other, serve(Reply(307, headers={"location": other.url + dialect.path})) as server:
        (failure,) = sendings(dialect, server)
    assert (failure.kind, other.count, server.count) == (Kind.FATAL, 0, 1)
    assert "base_url" in failure.remedy


def test_a_body_without_end_does_not_fill_the_memory(dialect, monkeypatch):
    monkeypatch.setattr(http, "_LARGEST", 1_000_000)
    with serve(Reply(body=b" " * 3_000_000)) as server:
        (failure,) = sendings(dialect, server)
    assert (failure.kind, failure.text) == (Kind.MALFORMED, "an answer of more than 0 MiB")
    assert len(failure.raw) == 65_536


ERRORS = [
    ({"type": "overloaded_error", "message": "Overloaded"}, Kind.OVERLOADED),
    ({"code": "rate_limit_exceeded", "message": "slow down"}, Kind.OVERLOADED),
    ({"code": 429, "message": "upstream"}, Kind.OVERLOADED),
    ({"code": "503", "message": "upstream"}, Kind.OVERLOADED),
    ("The model is overloaded, try again", Kind.OVERLOADED),
    ({"message": "something"}, Kind.TRANSIENT),
    ({"code": 502, "message": "upstream"}, Kind.TRANSIENT),
    ({"type": "api_error", "message": "x"}, Kind.TRANSIENT),
    ({"type": "invalid_request_error", "message": "no such field"}, Kind.REFUSED),
    ({"type": "invalid_request_error", "message": "prompt is too long: 9 tokens"}, Kind.THIS_PROMPT),
    ({"type": "authentication_error", "message": "bad key"}, Kind.FATAL),
    ({"code": "insufficient_quota", "message": "x"}, Kind.FATAL),
    ({"code": "model_not_found", "message": "x"}, Kind.FATAL),
]


@pytest.mark.parametrize(("error", "kind"), ERRORS, ids=lambda value: str(value)[:40])
def test_an_error_inside_an_answer_means_what_its_status_would(dialect, error, kind):
    with serve(Reply(body=json.dumps({"error": error}).encode())) as server:
        (failure,) = sendings(dialect, server)
    assert failure.kind is kind
    assert failure.text.startswith("an error in the answer: ")


def test_a_choice_that_holds_an_error(dialect):
    """Gateways report the failure of the server behind them in the choice."""
    wire = OpenAIDialect()
    body = json.loads(wire.answer("half").body)
    for changed, kind in (({"error": {"code": 429}}, Kind.OVERLOADED), ({"finish_reason": "error"}, Kind.TRANSIENT)):
        body["choices"][0] |= changed
        with serve(Reply(body=json.dumps(body).encode())) as server:
            (failure,) = sendings(wire, server)
        assert failure.kind is kind
        body["choices"][0].pop("error", None)


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


def test_a_filter_that_answers_400_is_the_class_filtered(dialect):
    with serve(dialect.error(400, "content_filter", message="Output blocked by content filtering policy")) as server:
        (response,) = call(dialect, server)
    assert (response.response_class, response.finish_reason) == (ResponseClass.FILTERED, "http-400")
    assert "content filtering policy" in response.refusal


def test_clients_keep_their_connections(dialect):
    """Eight calls at once are the work of four clients; each opens one connection and uses it again."""
    with serve(dialect.answer()) as server:
        call(dialect, server, calls=20)
    assert server.connections == 4


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
