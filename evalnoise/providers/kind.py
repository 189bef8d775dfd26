"""What a package registers as a provider under the entry point group `evalnoise.providers`. docs/guide/providers.md shows one."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from evalnoise.providers.base import CallContext, Failure, Request, RequestMaker
from evalnoise.providers.keys import Secret
from schemas.records import Response


class Plugin(Protocol):
    """A provider of another package, as its entry point names it: a class.

    It says how requests are made, apart from anything that can reach a network, so that replays never make one of it; and it
    sends a request once. Sending again, pace, cost, the journal and the time limit are evalnoise's; the key is taken out of all
    that it returns.
    """

    Options: ClassVar[type[BaseModel]]
    """What a study may set under `provider.options`; with the field `temperature`, it can have a condition `temperature-zero`."""
    version: ClassVar[int]
    """Raised when its requests or the reading of its answers change; part of the protocol."""

    def __init__(self, options: Any, *, key: Secret | None, concurrency: int) -> None:
        """Make it ready for calls.

        Args:
            options: The validated options.
            key: What the study's `api_key_env` names; None where it names nothing.
            concurrency: Calls in flight at most.
        """

    @staticmethod
    def request_maker(options: Any, *, model: str, max_tokens: int) -> RequestMaker:
        """How requests are made: a pure function of prompt and context. All that can change an answer is in the body."""

    async def send(self, request: Request, context: CallContext) -> Response | Failure:
        """Send the request once. What it raises counts as a failure that can pass."""

    async def close(self) -> None:
        """Let go of connections."""
