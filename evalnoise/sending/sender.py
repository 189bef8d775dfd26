"""The sender: one call, sent until it is answered or there is no more sense in it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final

from evalnoise.providers.base import CallContext, Failure, Kind, Provider, Request
from evalnoise.sending.endpoint import Endpoint, response_of
from evalnoise.sending.log import CallLog
from evalnoise.sending.retry import backoff
from schemas.records import Response

Result = Response | Failure

FIRST_WAIT: Final = 0.5
"""Seconds before a request is sent again for the first time, if the server does not say; doubled for each further one."""

_AGAIN: Final = (Kind.TRANSIENT, Kind.OVERLOADED, Kind.UNREACHED, Kind.MALFORMED)


class Sender:
    """Sends the calls of one provider through its endpoint."""

    def __init__(
        self,
        provider: Provider,
        endpoint: Endpoint,
        *,
        in_flight: Callable[[Coroutine[Any, Any, Result]], asyncio.Task[Result]],
        check_stopped: Callable[[], None],
        first_wait: float = FIRST_WAIT,
    ) -> None:
        """Prepare.

        Args:
            provider: Sends a request once.
            endpoint: What the provider's calls share with others to the same server.
            in_flight: Starts work that a stop of the run waits for, because it may be billed.
            check_stopped: Raises CancelledError when no new request may be sent.
            first_wait: Seconds before a request is sent again for the first time.
        """
        self.provider = provider
        self._endpoint = endpoint
        self._in_flight = in_flight
        self._check_stopped = check_stopped
        self._first_wait = first_wait

    async def answer(self, request: Request, context: CallContext, log: CallLog) -> Response:
        """The response; of class infrastructure or malformed where none came.

        Raises ProviderError for what would fail every call, StoreError when a sending cannot be written down.
        """
        failures = 0
        while True:
            async with self._endpoint.slots:
                self._check_stopped()
                # Shielded: what was sent may be billed, so a stop waits for the answer and journals it.
                result = await asyncio.shield(self._in_flight(self._send(request, context, log)))
            if isinstance(result, Response):
                self._endpoint.answered()
                return result
            failures += 1
            wait = backoff(failures, result.wait, first=self._first_wait, draw=secrets.SystemRandom().random())
            if result.kind not in _AGAIN or failures > self.provider.max_retries or wait is None:
                text = f"{result.text} (attempts: {failures})"
                self._endpoint.failed(result, text, task_id=context.task.id)
                return response_of(result, text)
            await asyncio.sleep(wait)

    async def _send(self, request: Request, context: CallContext, log: CallLog) -> Result:
        number = await log.sent(datetime.now(UTC))
        result = await self.provider.send(request, context)
        cost = result.cost_usd if isinstance(result, Response) else None
        await log.answered(number, result, at=datetime.now(UTC), cost_usd=cost)
        return result
