"""The purse: reservations never pass the limit, and what nobody knows stays held."""

from __future__ import annotations

import asyncio

import pytest

from evalnoise.sending.purse import Purse, dollars
from schemas.errors import BudgetError, ExitCode


def test_a_limit_is_kept_whatever_is_in_flight() -> None:
    """Sixty-four workers, each call may cost 1 and does cost 0.25: all that fits is bought, at no moment more than the limit."""

    async def work() -> tuple[int, float]:
        purse, bought, most = Purse(10.0), 0, 0.0

        async def worker() -> None:
            nonlocal bought, most
            while True:
                reserved = await purse.reserve(1.0, what="a call")
                most = max(most, purse.spent + purse.held + purse.reserved)
                await asyncio.sleep(0.001)
                purse.settle(reserved, 0.25)
                bought += 1

        found = await asyncio.gather(*(worker() for _ in range(64)), return_exceptions=True)
        assert {type(one) for one in found} == {BudgetError}
        return bought, most

    bought, most = asyncio.run(work())
    # After 36 calls a dollar fits for the last time, and it becomes the 37th quarter.
    assert (bought, most) == (37, 10.0)


def test_what_is_unknown_stays_held_and_the_error_says_all_of_it() -> None:
    async def work() -> None:
        purse = Purse(3.0, spent=1.25, held=0.5)
        purse.settle(await purse.reserve(0.5, what="x"), None)
        assert (purse.spent, purse.held, purse.reserved) == (1.25, 1.0, 0.0)
        await purse.reserve(0.25, what="x")
        with pytest.raises(BudgetError) as caught:
            await purse.reserve(0.80, what="the call for task t/1 under live")
        assert caught.value.exit_code is ExitCode.BUDGET == 11
        assert str(caught.value) == (
            "limits.max_cost: expected room for the next request within $3.00, found $1.25 spent, $1.00 held for sendings whose "
            "cost is unknown, $0.25 reserved for calls in flight, and $0.8 that the call for task t/1 under live needs at most. "
            "Raise limits.max_cost and run the same command again: what is answered is kept and not paid twice."
        )

    asyncio.run(work())


def test_without_a_limit_nothing_is_set_aside() -> None:
    purse = Purse()
    assert asyncio.run(purse.reserve(None, what="x")) == 0.0
    assert asyncio.run(purse.reserve(1e9, what="x")) == 0.0


def test_with_a_limit_what_has_no_bound_is_refused() -> None:
    with pytest.raises(BudgetError, match="whose cost has an upper bound"):
        asyncio.run(Purse(5.0).reserve(None, what="x"))


def test_whoever_waits_can_be_cancelled() -> None:
    async def work() -> None:
        purse = Purse(1.0)
        await purse.reserve(1.0, what="x")
        waiting = asyncio.create_task(purse.reserve(1.0, what="y"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        purse.settle(1.0, 0.0)
        assert await purse.reserve(1.0, what="z") == 1.0

    asyncio.run(work())


@pytest.mark.parametrize(("amount", "text"), [(0.0, "$0.00"), (12.345, "$12.35"), (0.000123, "$0.000123"), (0.5, "$0.5")])
def test_dollars(amount, text) -> None:
    assert dollars(amount) == text


def test_nobody_waits_for_what_rounding_left() -> None:
    async def work(most: list[float], limit: float) -> None:
        purse = Purse(limit)

        async def call(amount: float) -> None:
            reserved = await purse.reserve(amount, what="x")
            await asyncio.sleep(0)
            purse.settle(reserved, None)

        async with asyncio.timeout(5):
            await asyncio.gather(*(call(amount) for amount in most), return_exceptions=True)
        assert purse.reserved == 0

    for count in range(2, 60):
        most = [(0.1, 0.3, 0.7, 0.0011, 0.0123)[(count * 7 + place * place) % 5] for place in range(count)]
        for share in (0.5, 1, 1 / 3):
            asyncio.run(work(most, sum(most) * share))
