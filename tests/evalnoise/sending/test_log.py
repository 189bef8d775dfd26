"""The log of one call: a journal that lacks a line is never taken for one in which nothing was bought."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from evalnoise.providers.base import Request
from evalnoise.sending.log import CallLog
from evalnoise.store.journal import Journal
from schemas.errors import StoreError
from schemas.records import Response, ResponseClass

REQUEST = Request("openai", "m", {"messages": [], "max_tokens": 5})


def test_an_answer_without_its_sending_is_damage_and_not_asked_for_again(tmp_path) -> None:
    path = tmp_path / "calls.jsonl"

    async def work() -> None:
        log = CallLog(Journal(path), "a#0", REQUEST)
        number = await log.sent(datetime.now(UTC))
        await log.answered(number, Response("x", ResponseClass.COMPLETE), at=datetime.now(UTC), cost_usd=1.0)

    asyncio.run(work())
    found = CallLog(Journal(path), "a#0", REQUEST).response
    assert found is not None
    assert found.text == "x"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(StoreError, match=r"call a#0.*no note of it"):
        CallLog(Journal(path), "a#0", REQUEST)
