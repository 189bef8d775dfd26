"""The sender: one call, sent until it is answered or there is no more sense in it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final

from evalnoise.providers.base import CallContext, Failure, Kind, Provider, Request
from evalnoise.sending.endpoint import Endpoint, Ticket, response_of
from evalnoise.sending.log import CallLog
from evalnoise.sending.pace import Load
from evalnoise.sending.prices import Price
from evalnoise.sending.purse import Purse
from evalnoise.sending.retry import backoff
from schemas.records import Response

Result = Response | Failure

_UNBILLED: Final = frozenset({Kind.OVERLOADED, Kind.UNREACHED, Kind.REFUSED, Kind.THIS_PROMPT, Kind.FATAL})
"""Failures of requests that the server turned away before it did any work."""
_BYTES_PER_TOKEN: Final = 4
"""A rule of thumb for the pace, which usage corrects; money is reserved by a bound that holds."""


class Sender:
    """Sends the calls of one provider through its endpoint."""

    def __init__(
        self,
        provider: Provider,
        endpoint: Endpoint,
        *,
        in_flight: Callable[[Coroutine[Any, Any, Result]], asyncio.Task[Result]],
        check_stopped: Callable[[], None],
        price: Price | None = None,
        purse: Purse | None = None,
        counted: Callable[[float | None, bool], None] = lambda _cost, _again: None,
    ) -> None:
        """Prepare.

        Args:
            provider: Sends a request once.
            endpoint: What the provider's calls share with others to the same server.
            in_flight: Starts work that a stop of the run waits for, because it may be billed.
            check_stopped: Raises CancelledError when no new request may be sent.
            price: What the provider's model costs; None: unknown, unless the provider itself says what a response cost.
            purse: What the protocol may cost; None: it has no limit.
            counted: Told after each sending what it cost, and whether its request was sent before.
        """
        self.provider = provider
        self._endpoint = endpoint
        self._in_flight = in_flight
        self._check_stopped = check_stopped
        self._price = price
        self._purse = purse or Purse()
        self._counted = counted
        self._draw = secrets.SystemRandom().random

    async def answer(self, request: Request, context: CallContext, log: CallLog) -> Response:
        """The response; of class infrastructure or malformed where none came.

        Raises ProviderError for what would fail every call, BudgetError for what could pass the study's limit of cost, StoreError
        when a sending cannot be written down.
        """
        endpoint, failures, since = self._endpoint, 0, 0.0
        load = Load(log.size / _BYTES_PER_TOKEN, log.max_output or 0)
        most = None if self._price is None else self._price.most(log.size, log.max_output)
        while True:
            ticket = await endpoint.enter(load, again=failures > 0)
            try:
                self._check_stopped()
                reserved = await self._purse.reserve(most, what=f"the call for task {context.task.id} under {context.condition}")
            except BaseException:
                endpoint.drop(ticket)
                raise
            # Shielded: what was sent may be billed, so a stop waits for the answer and journals it.
            result = await asyncio.shield(self._in_flight(self._send(request, context, log, ticket, reserved)))
            if isinstance(result, Response):
                endpoint.answered()
                return result
            failures += 1
            since = since if failures > 1 else endpoint.now()
            wait = backoff(failures, result.wait, first=endpoint.first_wait, draw=self._draw())
            if wait is None or endpoint.gives_up(result, failures=failures, since=since, max_retries=self.provider.max_retries):
                text = f"{result.text} (attempts: {failures})"
                endpoint.failed(result, text, task_id=context.task.id)
                return response_of(result, text)
            await asyncio.sleep(wait)

    async def _send(self, request: Request, context: CallContext, log: CallLog, ticket: Ticket, reserved: float) -> Result:
        """Send once, between two records of the journal; whatever happens, slot and money are settled."""
        result: Result | None = None
        # Until it is written down that it goes out, it costs nothing.
        cost: float | None = 0.0
        try:
            number = await log.sent(datetime.now(UTC))
            cost = None
            result = await self.provider.send(request, context)
            cost = self._cost(result)
            source = self._price.source if self._price else ""
            await log.answered(number, result, at=datetime.now(UTC), cost_usd=cost, prices=source)
        finally:
            self._purse.settle(reserved, cost)
            self._endpoint.leave(ticket, result)
        self._counted(cost, number > 0)
        return result

    def _cost(self, result: Result) -> float | None:
        """US dollars; None: unknown, as for a request that may have been answered, but not to us."""
        if isinstance(result, Response):
            return result.cost_usd if self._price is None else self._price.cost(result)
        return 0.0 if result.kind in _UNBILLED and not result.began else None
