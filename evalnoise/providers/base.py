"""What every provider is: a request whose body is exactly what is sent, and one async method that sends it once.

Whether it is sent again, when, and what it costs is not a provider's concern: `evalnoise.sending`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol

from evalnoise.canonical import canonical_json, escape_surrogates
from schemas.records import Outcome, Reference, Response, Task
from schemas.requests import keyed
from schemas.versions import REQUEST_NORMALISER


@dataclass(frozen=True, slots=True)
class CallContext:
    """Which cell and attempt a call is for. Never sent to a server and never part of the request key."""

    task: Task
    stack: str
    """Name of the stack."""
    condition: str
    """Name of the condition, or of the judge condition."""
    replicate: int
    """Replicate, or, for a judge, the repeat."""
    attempt: int
    """0, or 1 for the retry rule's."""
    reference: Reference | None = None
    """What preflight learnt of the task; the oracle provider answers from it."""
    executed: Outcome | None = None
    """What execution said of the judged candidate; the oracle judge answers from it."""


@dataclass(frozen=True)
class Request:
    """One normalised request. Every field that can change the answer is in it; addresses and time limits are not."""

    provider: str
    """Kind of provider: ``openai``, ``anthropic``, ``oracle``, ``recording``, or the name of a plug-in."""
    model: str
    """Model that is asked for."""
    body: Mapping[str, Any]
    """All other fields of the request, as they are sent."""

    def canonical(self) -> bytes:
        """RFC 8785 JSON over provider, model, body and the normaliser's version. Raises ValueError for what JSON cannot carry.

        Of the body, all but `schemas.requests.UNKEYED`.
        """
        return self._canonical

    def key(self) -> str:
        """SHA-256 of `canonical`, in hex."""
        return self._key

    # Made once: a call needs them for its journal, and again for each of its rows.

    @cached_property
    def _canonical(self) -> bytes:
        return canonical_json(
            {"body": keyed(self.body), "model": self.model, "normaliser": REQUEST_NORMALISER, "provider": self.provider}
        )

    @cached_property
    def _key(self) -> str:
        return hashlib.sha256(self._canonical).hexdigest()


class Kind(StrEnum):
    """What a failed sending means for its call."""

    TRANSIENT = "transient"
    """Try again."""
    OVERLOADED = "overloaded"
    """Try again, more slowly: the server has too much to do, or takes no more from this account for now (429, 503, 529, or an
    overload inside a body). It did no work, so it charged nothing, unless an answer had begun."""
    UNREACHED = "unreached"
    """Try again; no connection was made, so nothing was charged."""
    MALFORMED = "malformed"
    """Try again; something came back that is no answer."""
    REFUSED = "refused"
    """The server will not take this request."""
    THIS_PROMPT = "this-prompt"
    """The server will not take this prompt; other calls are not concerned."""
    FATAL = "fatal"
    """Every call would fail."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one sending got no usable answer."""

    kind: Kind
    text: str
    raw: str = ""
    """The body, as far as it came."""
    wait: float | None = None
    """Seconds that the server asked to wait; None: it did not say."""
    remedy: str = "Mend what the message names, then run the same command again: what is done is kept."
    """What the user can do if it ends the run."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """As `Response.headers`."""
    began: bool = False
    """Whether a part of an answer came before it failed: then it may be billed, whatever the kind."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A second attempt that is asked for with what came of the first."""

    prompt: str
    """The first attempt's prompt."""
    answer: str
    """The first attempt's answer."""
    feedback: str
    """What was wrong with it."""


Prompt = str | Conversation

RequestMaker = Callable[[Prompt, CallContext], Request]
"""Makes the request for a rendered prompt. A pure function, so that a replay needs no client to know its keys."""


class Provider(Protocol):
    """Something that answers requests. Found by entry point (group ``evalnoise.providers``)."""

    @property
    def name(self) -> str:
        """Kind of provider, as in `Request.provider`."""

    @property
    def journalled(self) -> bool:
        """Whether a call costs something that a crash must not lose. False for recordings."""

    @property
    def address(self) -> str:
        """Whom it calls, as text: providers of one address share their concurrency and pace."""

    @property
    def max_retries(self) -> int:
        """How often a request is sent again after failures that can pass."""

    def request(self, prompt: Prompt, context: CallContext) -> Request:
        """The request for a rendered prompt."""

    def occurrence(self, context: CallContext) -> int:
        """Which of the answers to one request this call gets: the replicate for fresh calls, else the recorded occurrence."""

    async def send(self, request: Request, context: CallContext) -> Response | Failure:
        """Send the request once. Raises ReplayMissError, if it replays."""

    async def close(self) -> None:
        """Let go of connections. The provider cannot be used afterwards."""


class LiveProvider:
    """What providers that make fresh answers have in common: all but `send`."""

    journalled = True
    max_retries = 0

    def __init__(self, name: str, make: RequestMaker) -> None:
        self.name = name
        """Kind of provider."""
        self.address = name
        """Whom it calls."""
        self._make = make

    def request(self, prompt: Prompt, context: CallContext) -> Request:
        """The request for a rendered prompt."""
        return self._make(prompt, context)

    def occurrence(self, context: CallContext) -> int:
        """The replicate, or, for a judge, the repeat."""
        return context.replicate

    async def close(self) -> None:
        """Let go of connections, where there are any."""


def sendable(text: str) -> str:
    """Text that UTF-8 can carry: lone surrogates become backslash escapes; all other text is unchanged."""
    return escape_surrogates(text)[0]


def messages(prompt: Prompt) -> list[dict[str, str]]:
    """The prompt as one user message; a conversation as three, or as one where the answer is blank, which servers refuse."""
    if isinstance(prompt, str):
        return [_message("user", prompt)]
    if not prompt.answer.strip():
        return [_message("user", f"{prompt.prompt}\n\n{prompt.feedback}")]
    return [_message("user", prompt.prompt), _message("assistant", prompt.answer), _message("user", prompt.feedback)]


def _message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": sendable(text)}
