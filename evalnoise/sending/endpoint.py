"""An endpoint: what all calls to one server share in a run, over shards, stacks, conditions and judges."""

from __future__ import annotations

import asyncio
from typing import Final

from evalnoise.providers.base import Failure, Kind
from schemas.errors import ProviderError
from schemas.records import Response, ResponseClass

_STOP_AFTER: Final = 5
"""Calls that fail in a row before the run ends: a server that is down must not turn the rest of a study into missing cells."""


class Endpoint:
    """Slots for calls in flight, and how the server has done so far. Bound to one event loop."""

    def __init__(self, address: str, *, concurrency: int) -> None:
        self.address = address
        self.slots = asyncio.Semaphore(concurrency)
        self._answered = False
        self._failed_in_a_row = 0

    def answered(self) -> None:
        """A call got its response."""
        self._answered, self._failed_in_a_row = True, 0

    def failed(self, failure: Failure, text: str, *, task_id: str) -> None:
        """A call got no response. Raises ProviderError where every further one would share its fate."""
        if failure.kind is Kind.FATAL or (failure.kind is Kind.UNREACHED and not self._answered):
            raise self._error(text, failure.remedy)
        if failure.kind is not Kind.THIS_PROMPT:
            self._failed_in_a_row += 1
        if self._failed_in_a_row >= _STOP_AFTER:
            found = f"{self._failed_in_a_row} failed calls in a row, the last for task {task_id}: {text}"
            raise self._error(found, failure.remedy)

    def _error(self, found: str, remedy: str) -> ProviderError:
        return ProviderError(f"provider {self.address}", expected="an answer", found=found, remedy=remedy)


def response_of(failure: Failure, text: str) -> Response:
    """What a call comes to that got no response."""
    response_class = ResponseClass.MALFORMED if failure.kind is Kind.MALFORMED else ResponseClass.INFRASTRUCTURE
    final = failure.kind in (Kind.REFUSED, Kind.THIS_PROMPT)
    return Response(text="", response_class=response_class, raw=failure.raw, error=text, final=final, headers=failure.headers)
