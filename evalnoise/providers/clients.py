"""Several clients of one server, used in turn: a pool looks at all its connections for each request, so small pools are quick."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar

_CALLS_PER_CLIENT: Final = 2


class Closable(Protocol):
    """A client of an SDK."""

    def close(self) -> Awaitable[None]:
        """Close its connections."""


Client = TypeVar("Client", bound=Closable)


class Clients(Generic[Client]):
    """As many clients as the calls in flight are worth. Requests in turn, so that each has about the same share."""

    def __init__(self, make: Callable[[], Client], *, concurrency: int) -> None:
        self._clients = [make() for _ in range(-(-concurrency // _CALLS_PER_CLIENT))]
        self._turns = itertools.cycle(self._clients)

    def next(self) -> Client:
        """The one whose turn it is."""
        return next(self._turns)

    async def close(self) -> None:
        """Close them all."""
        for client in self._clients:
            await client.close()
