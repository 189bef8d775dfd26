"""Sending over real HTTP: storms, overloads, pauses and paces, as the server counts them."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from pathlib import Path

import pytest
from wire.client import CONTEXT, KEY, spec_for
from wire.dialects import OpenAIDialect
from wire.server import Received, Reply, serve

from evalnoise.providers.make import make_provider
from evalnoise.sending.endpoint import Endpoint
from evalnoise.sending.log import CallLog
from evalnoise.sending.prices import Price
from evalnoise.sending.purse import Purse
from evalnoise.sending.sender import Sender
from evalnoise.store.journal import Journal
from schemas.errors import BudgetError, ProviderError
from schemas.records import Response, ResponseClass

WIRE = OpenAIDialect()
FEW = 55
"""Requests that 40 calls may send in a storm."""


@pytest.fixture(autouse=True)
def key(monkeypatch) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)


class Clocked:
    """Notes when each request came, and answers by a function of its number."""

    def __init__(self, reply) -> None:
        self.at: list[float] = []
        self._reply = reply
        self._lock = threading.Lock()

    def __call__(self, _received: Received) -> Reply:
        with self._lock:
            self.at.append(time.monotonic())
            return self._reply(len(self.at))


def answers(url: str, folder: Path, calls: int, *, price=None, purse=None, counted=None, options=None, **limits):
    """The responses to so many calls made at once, or the first error."""

    async def work():
        limits.setdefault("concurrency", 16)
        limits.setdefault("first_wait", 0.02)
        spec = spec_for(WIRE, url, **(options or {}))
        provider = make_provider(spec, model="m", max_tokens=100, retry="none", concurrency=limits["concurrency"])
        endpoint, journal, numbers = Endpoint(provider.address, **limits), Journal(folder / "calls.jsonl"), itertools.count()

        def in_flight(coroutine):
            return asyncio.get_running_loop().create_task(coroutine)

        told = {"counted": counted} if counted else {}
        sender = Sender(provider, endpoint, in_flight=in_flight, check_stopped=lambda: None, price=price, purse=purse, **told)

        async def one() -> tuple[Response, CallLog]:
            request = provider.request("hi", CONTEXT)
            log = CallLog(journal, f"call {next(numbers)}", request)
            return await sender.answer(request, CONTEXT, log), log

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one()) for _ in range(calls)]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await provider.close()
        return [task.result() for task in tasks]

    return asyncio.run(work())


def test_a_long_overload_inside_200_is_survived_with_few_requests(tmp_path) -> None:
    """Hard input 31: two seconds of it stand for minutes; every call is answered, and the server is not hammered."""
    begun = time.monotonic()
    busy, good = WIRE.overloaded_200(), WIRE.answer("ok")
    script = Clocked(lambda _: busy if time.monotonic() - begun < 2.0 else good)
    with serve(script=script) as server:
        made = answers(server.url, tmp_path, 40, patience=30.0)
    assert {response.text for response, _ in made} == {"ok"}
    during = sum(1 for at in script.at if at - begun < 2.0)
    # First sendings until the allowance of repeats is used up (ten, and a fifth of the first ones), then probes at doubling waits.
    # Without the shared allowance, 40 calls with waits of 0.02 s and doubling would have sent several hundred.
    assert during <= FEW
    assert all(log.sendings[-1].result == response for response, log in made)


def test_an_overload_that_outlasts_the_patience_ends_the_run(tmp_path) -> None:
    script = Clocked(lambda _: WIRE.error(529, "overloaded_error"))
    with serve(script=script) as server, pytest.raises(ProviderError, match=r"nothing but failures for 1 s, the last for task t/1"):
        answers(server.url, tmp_path, 40, patience=1.0)
    assert len(script.at) <= FEW


def test_a_wait_that_one_is_told_pauses_all(tmp_path) -> None:
    def reply(number: int) -> Reply:
        return WIRE.error(429, "rate_limit", retry_after="0.5") if number == 3 else WIRE.answer("ok", delay=0.01)

    script = Clocked(reply)
    with serve(script=script) as server:
        made = answers(server.url, tmp_path, 60, concurrency=2, patience=30.0)
    assert {response.text for response, _ in made} == {"ok"}
    gaps = [after - before for before, after in itertools.pairwise(script.at)]
    assert max(gaps) >= 0.45
    assert sum(1 for gap in gaps if gap > 0.4) == 1


def test_headers_that_say_that_nothing_is_left_are_heeded(tmp_path) -> None:
    def reply(number: int) -> Reply:
        left, reset = (0, "400ms") if number == 1 else (100, "1ms")
        headers = {"x_ratelimit_remaining_requests": str(left), "x_ratelimit_reset_requests": reset}
        plain = WIRE.answer("ok")
        return Reply(200, plain.body, {name.replace("_", "-"): value for name, value in headers.items()})

    script = Clocked(reply)
    with serve(script=script) as server:
        answers(server.url, tmp_path, 4, concurrency=1)
    assert script.at[1] - script.at[0] >= 0.38
    assert script.at[3] - script.at[1] < 0.3


def test_requests_per_minute_hold_on_the_wire(tmp_path) -> None:
    script = Clocked(lambda _: WIRE.answer("ok"))
    with serve(script=script) as server:
        begun = time.monotonic()
        answers(server.url, tmp_path, 24, requests_per_minute=600)
    # Ten at once, then ten a second. Counted from the start, because on a busy machine the first may be long under way.
    assert script.at[-1] - begun >= 1.3


def test_tokens_per_minute_count_what_was_used_and_not_what_was_asked_for(tmp_path) -> None:
    """Each asks for 100 tokens of output and uses 7: by the estimate alone it would take most of a minute."""
    script = Clocked(lambda _: WIRE.answer("ok", usage=(11, 7)))
    with serve(script=script) as server:
        begun = time.monotonic()
        answers(server.url, tmp_path, 40, concurrency=1, tokens_per_minute=6000)
        took = time.monotonic() - begun
    assert took < 25


def test_a_repeat_that_bills_twice_shows_twice(tmp_path) -> None:
    """Hard input 32: an answer that was cut off may have been billed; what that cost is unknown, and never nothing."""
    cut, good = Reply(body=b'{"id": "x", "choi'), WIRE.answer("ok", usage=(1_000_000, 500_000))
    told: list[tuple[float | None, bool]] = []
    with serve(cut, good) as server:
        ((response, log),) = answers(server.url, tmp_path, 1, price=Price(2.0, 8.0), counted=lambda *facts: told.append(facts))
    assert response.text == "ok"
    assert [(sending.number, sending.cost_usd, sending.prices) for sending in log.sendings] == [
        (0, None, "study"),
        (1, 6.0, "study"),
    ]
    assert told == [(None, False), (6.0, True)]


def test_what_a_server_turned_away_cost_nothing(tmp_path) -> None:
    with serve(WIRE.error(429, "rate_limit"), WIRE.answer("ok", usage=(1_000_000, 0))) as server:
        ((_, log),) = answers(server.url, tmp_path, 1, price=Price(2.0, 8.0))
    assert [sending.cost_usd for sending in log.sendings] == [0.0, 2.0]


def test_an_answer_that_breaks_off_in_an_overload_may_have_cost_something(tmp_path) -> None:
    began = WIRE.answer("a long text")
    body = began.body[:-1] + b', "error": {"type": "overloaded_error", "message": "busy"}}'
    script = Clocked(lambda number: Reply(200, body, dict(began.headers)) if number == 1 else began)
    purse = Purse(1.0)
    with serve(script=script) as server:
        ((_, log),) = answers(server.url, tmp_path, 1, price=Price(1.0, 1.0), purse=purse, patience=5.0)
    assert [sending.cost_usd is None for sending in log.sendings] == [True, False]
    assert purse.held > 0


def test_a_limit_of_cost_is_never_passed_with_many_in_flight(tmp_path) -> None:
    """Each call costs 0.0007 and may cost over 0.0008 by its 100 tokens of output: the server counts what was bought."""
    purse, script = Purse(0.02), Clocked(lambda _: WIRE.answer("ok", usage=(0, 88), delay=0.02))
    with serve(script=script) as server, pytest.raises(BudgetError, match="the call for task t/1 under live needs at most"):
        answers(server.url, tmp_path, 100, price=Price(0.0, 8.0), purse=purse)
    bought = len(script.at) * 88 * 8 / 1e6
    assert bought <= 0.02
    assert bought > 0.02 - 2 * 800e-6
    assert purse.reserved == pytest.approx(0.0, abs=1e-12)
    assert purse.spent == pytest.approx(bought)


def test_a_failed_call_stays_an_infrastructure_response(tmp_path) -> None:
    with serve(WIRE.error(500, "server_error")) as server:
        made = answers(server.url, tmp_path, 1, options={"max_retries": 2}, patience=30.0)
    assert made[0][0].response_class is ResponseClass.INFRASTRUCTURE
    assert made[0][0].error.endswith("(attempts: 3)")
