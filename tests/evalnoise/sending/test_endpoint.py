"""An endpoint: who waits holds no slot, stops at once, and comes out in order; who is overloaded is waited for."""

from __future__ import annotations

import asyncio
import time

import pytest

from evalnoise.providers.base import Failure, Kind
from evalnoise.sending.endpoint import Endpoint
from evalnoise.sending.pace import Load
from schemas.errors import ProviderError
from schemas.records import Response, ResponseClass

LOAD = Load(10.0, 10.0)
OK = Response("x", ResponseClass.COMPLETE, input_tokens=10, output_tokens=10)
BUSY = Failure(Kind.OVERLOADED, "busy")


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_no_more_than_the_limit_are_out_and_they_go_in_order() -> None:
    async def work() -> None:
        endpoint, order = Endpoint("e", concurrency=2), []

        async def enter(number: int) -> None:
            ticket = await endpoint.enter(LOAD, again=False)
            order.append(number)
            await asyncio.sleep(0.01)
            endpoint.leave(ticket, OK)

        running = [asyncio.create_task(enter(number)) for number in range(6)]
        await settled()
        assert order == [0, 1]
        await asyncio.gather(*running)
        assert order == [0, 1, 2, 3, 4, 5]

    asyncio.run(work())


def test_a_cancelled_wait_ends_at_once_and_gives_its_place_away() -> None:
    async def work() -> None:
        endpoint = Endpoint("e", concurrency=1, requests_per_minute=6000)
        first = await endpoint.enter(LOAD, again=False)
        second, third = (asyncio.create_task(endpoint.enter(LOAD, again=False)) for _ in range(2))
        await settled()
        second.cancel()
        await asyncio.wait([second], timeout=0.1)
        assert second.cancelled()
        endpoint.leave(first, OK)
        ticket = await asyncio.wait_for(third, 1)
        endpoint.leave(ticket, OK)

    asyncio.run(work())


def test_one_who_is_cancelled_just_as_it_is_let_out_gives_its_slot_back() -> None:
    async def work() -> None:
        endpoint = Endpoint("e", concurrency=1)
        first = await endpoint.enter(LOAD, again=False)
        second = asyncio.create_task(endpoint.enter(LOAD, again=False))
        await settled()
        endpoint.leave(first, OK)  # lets the second out, which has not had its turn yet
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert second.cancelled()
        endpoint.leave(await asyncio.wait_for(endpoint.enter(LOAD, again=False), 1), OK)

    asyncio.run(work())


def test_many_who_wait_for_the_pace_stop_at_once() -> None:
    async def work() -> float:
        endpoint = Endpoint("e", concurrency=8, requests_per_minute=1)
        waiting = [asyncio.create_task(endpoint.enter(LOAD, again=False)) for _ in range(500)]
        await settled()
        assert sum(one.done() for one in waiting) == 1
        began = time.monotonic()
        for one in waiting[1:]:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return time.monotonic() - began

    assert asyncio.run(work()) < 1.0


def test_the_pace_is_kept_in_real_time() -> None:
    async def work() -> float:
        endpoint, began = Endpoint("e", concurrency=8, requests_per_minute=1200), time.monotonic()

        async def one() -> None:
            endpoint.leave(await endpoint.enter(LOAD, again=False), OK)

        await asyncio.gather(*(one() for _ in range(30)))
        return time.monotonic() - began

    # Twenty a second, and a second's worth at once in the beginning.
    assert 0.45 <= asyncio.run(work()) < 2.0


def test_what_was_begun_goes_before_what_is_new() -> None:
    async def work() -> None:
        endpoint, order = Endpoint("e", concurrency=1), []
        held = await endpoint.enter(LOAD, again=False)

        async def enter(name: str, *, again: bool) -> None:
            ticket = await endpoint.enter(LOAD, again=again)
            order.append(name)
            endpoint.leave(ticket, OK)

        tasks = [asyncio.create_task(enter("new", again=False)), asyncio.create_task(enter("again", again=True))]
        await settled()
        endpoint.leave(held, OK)
        await asyncio.gather(*tasks)
        assert order == ["again", "new"]

    asyncio.run(work())


def test_a_long_overload_is_borne_for_the_time_stated_and_then_ends_the_run() -> None:
    """Hard input 31."""
    now = [0.0]

    async def work() -> None:
        endpoint = Endpoint("e", concurrency=1, patience=600, clock=lambda: now[0])
        for moment in range(0, 600, 30):
            now[0] = float(moment)
            endpoint.leave(await endpoint.enter(LOAD, again=False), BUSY)
            assert not endpoint.gives_up(BUSY, failures=moment, since=0.0, max_retries=4)
            assert endpoint.gives_up(BUSY, failures=1, since=0.0, max_retries=0)
        now[0] = 600.0
        assert endpoint.gives_up(BUSY, failures=1, since=0.0, max_retries=4)
        with pytest.raises(ProviderError, match="nothing but failures for 600 s, the last for task t/1: busy") as caught:
            endpoint.failed(BUSY, "busy", task_id="t/1")
        assert "limits.patience" in caught.value.remedy

    asyncio.run(work())


def test_one_prompt_that_is_refused_for_its_size_ends_alone() -> None:
    now = [0.0]

    async def work() -> None:
        endpoint = Endpoint("e", concurrency=2, patience=600, clock=lambda: now[0])
        endpoint.leave(await endpoint.enter(LOAD, again=False), BUSY)
        now[0] = 599.0
        endpoint.leave(await endpoint.enter(LOAD, again=False), OK)
        assert not endpoint.gives_up(BUSY, failures=30, since=0.0, max_retries=4)
        now[0] = 600.0
        assert endpoint.gives_up(BUSY, failures=30, since=0.0, max_retries=4)
        endpoint.failed(BUSY, "busy", task_id="t/1")

    asyncio.run(work())


@pytest.mark.parametrize("kind", [Kind.REFUSED, Kind.THIS_PROMPT, Kind.FATAL])
def test_what_cannot_pass_is_not_tried_again(kind) -> None:
    assert Endpoint("e", concurrency=1, patience=600).gives_up(Failure(kind, "no"), failures=1, since=0.0, max_retries=4)


def test_without_patience_an_overload_has_its_retries_and_no_more() -> None:
    endpoint = Endpoint("e", concurrency=1)
    assert [endpoint.gives_up(BUSY, failures=n, since=0.0, max_retries=2) for n in (1, 2, 3)] == [False, False, True]


def test_calls_share_their_tries_of_a_server_that_never_answered():
    endpoint, nobody = Endpoint("e", concurrency=8, patience=600), Failure(Kind.UNREACHED, "no connection")
    assert not any(endpoint.gives_up(nobody, failures=1, since=0.0, max_retries=3) for _ in range(8))
    assert [endpoint.gives_up(nobody, failures=2, since=0.0, max_retries=3) for _ in range(3)] == [False, False, True]
    endpoint.answered()
    assert [endpoint.gives_up(nobody, failures=n, since=0.0, max_retries=3) for n in (2, 3, 4)] == [False, False, True]
