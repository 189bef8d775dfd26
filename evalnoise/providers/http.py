"""What the providers behind an HTTP SDK share: one exchange with its time limits, and what becomes of it."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Protocol

from evalnoise.providers import failures
from evalnoise.providers.base import CallContext, Failure, Kind, LiveProvider, Request, RequestMaker
from evalnoise.providers.headers import from_cache, kept, request_id
from evalnoise.providers.keys import Secret, read_key
from evalnoise.providers.reading import NamedError, Reading, as_json
from evalnoise.providers.sse import Assembled, is_stream
from schemas.provider import AnthropicProvider, OpenAIProvider
from schemas.records import Response

HttpSpec = OpenAIProvider | AnthropicProvider

_UNREACHED: Final = "Check `base_url`, the network and whether the server runs; then run the same command again."
_ERROR_TEXT: Final = 300
_RAW_OF_FAILURE: Final = 65_536
_LARGEST: Final = 64 << 20
"""Bytes of an answer at most: no model writes so much, and an endless body must not fill the memory."""
_LIBRARY: Final = frozenset({"HTTPError", "InvalidURL"})
"""Errors of the HTTP library, which the SDKs raise as they are or as the cause of one of their own."""
_NO_CONNECTION: Final = frozenset({"ConnectError", "ProxyError", "UnsupportedProtocol", "InvalidURL"})
_ANSWER_FIELDS: Final = ("choices", "content", "output", "usage")
"""Fields of a body, in one protocol or another, that hold something only if an answer had begun."""
_KEEP_SECONDS: Final = 30.0
"""For which an idle connection is kept."""


@dataclass(frozen=True, slots=True)
class SdkErrors:
    """The exception classes of an SDK, which the two SDKs name alike."""

    status: type[Exception]
    timeout: type[Exception]


class Answer(Protocol):
    """An answer whose headers have come, as both SDKs give it."""

    @property
    def status_code(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """All headers."""

    def iter_bytes(self) -> AsyncIterator[bytes]:
        """The body as it comes."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer, as far as that came."""

    status: int = 0
    """0: no answer began."""
    headers: dict[str, str] = field(default_factory=dict)
    """By lower-case name."""
    body: bytearray = field(default_factory=bytearray)
    lost: Failure | None = None
    """Why the answer is not whole; None: it is."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A wire protocol's two pure functions."""

    read: Callable[[dict[str, Any]], Reading]
    """The response in a decoded body."""
    assemble: Callable[[str], Assembled]
    """The body that an event stream stands for."""


class HttpProvider(LiveProvider, ABC):
    """Base of the providers behind an SDK. One client, and so one connection pool, for each; bound to one event loop."""

    def __init__(self, spec: HttpSpec, make: RequestMaker, errors: SdkErrors, reader: Reader) -> None:
        super().__init__(spec.name, make)
        self.address = f"{spec.name} at {spec.base_url}" if spec.base_url else spec.name
        self.max_retries = spec.max_retries
        self._spec = spec
        self._errors = errors
        self._reader = reader
        self._secret: Secret = read_key(spec.name, spec.api_key_env)

    async def send(self, request: Request, context: CallContext) -> Response | Failure:  # noqa: ARG002 - other providers use it
        """Send the request once."""
        exchange = await self._exchange(request)
        headers = kept(exchange.headers)
        # The key is taken out before anything is cut: half a key would not be found.
        result = answer_in(exchange, self._reader, headers, secret=self._secret, env=self._spec.api_key_env)
        if isinstance(result, Response):
            return self._secret.redact_result(replace(result, headers=headers, request_id=request_id(headers)))
        clean = self._secret.redact_result(replace(result, headers=headers))
        return replace(clean, text=clean.text[:_ERROR_TEXT], raw=clean.raw[:_RAW_OF_FAILURE])

    @abstractmethod
    def _open(self, request: Request) -> AbstractAsyncContextManager[Answer]:
        """Send the request through the SDK, once; its answer when the headers have come. Raises the SDK's errors."""

    async def _exchange(self, request: Request) -> Exchange:
        exchange, spec = Exchange(), self._spec
        first = spec.timeout if spec.first_byte_timeout is None else min(spec.first_byte_timeout, spec.timeout)
        try:
            async with asyncio.timeout(spec.timeout), asyncio.timeout(first) as waiting, self._open(request) as answer:
                exchange.status, exchange.headers = answer.status_code, _lowered(answer.headers)
                async for chunk in answer.iter_bytes():
                    waiting.reschedule(None)
                    exchange.body += chunk
                    if len(exchange.body) > _LARGEST:
                        exchange.lost = Failure(Kind.MALFORMED, f"an answer of more than {_LARGEST >> 20} MiB")
                        break
        except TimeoutError:
            late = waiting.expired() and first < spec.timeout
            limit = f"no first byte within {first:g} s" if late else f"no whole answer within {spec.timeout:g} s"
            exchange.lost = Failure(Kind.TRANSIENT, limit)
        except self._errors.status as error:
            refusal: Any = getattr(error, "response")  # noqa: B009  both SDKs' status errors have it; Any spares naming their HTTP library
            exchange.status, exchange.headers = int(refusal.status_code), _lowered(refusal.headers)
            exchange.body = bytearray(refusal.content)
        except Exception as error:  # noqa: BLE001 - SDK and HTTP library have several families; a call that failed is never a crash
            exchange.lost = self._lost(error)
        return exchange

    def _lost(self, error: Exception) -> Failure:
        """What an error of the SDK, or of the HTTP library below it, means. Their kinds are told by name, to import neither."""
        cause = error if _names(error) & _LIBRARY or error.__cause__ is None else error.__cause__
        names = _names(cause)
        if "ConnectTimeout" in names:
            return Failure(Kind.UNREACHED, f"no connection within {self._spec.connect_timeout:g} s", remedy=_UNREACHED)
        if names & _NO_CONNECTION:
            return Failure(Kind.UNREACHED, f"connection failed: {cause}", remedy=_UNREACHED)
        if "TimeoutException" in names or isinstance(error, self._errors.timeout):
            return Failure(Kind.TRANSIENT, f"no whole answer within {self._spec.timeout:g} s")
        if "TransportError" in names:
            return Failure(Kind.TRANSIENT, f"the connection broke: {_told(cause)}")
        return Failure(Kind.TRANSIENT, f"the SDK could not read the answer: {_told(cause)}")


def answer_in(exchange: Exchange, reader: Reader, headers: Mapping[str, str], *, secret: Secret, env: str) -> Response | Failure:
    """What an exchange comes to. The record of it holds the body without the key, whatever was made of it.

    Args:
        exchange: Status, headers and body, as far as they came.
        reader: How the protocol's bodies are read.
        headers: Those that are kept.
        secret: The key.
        env: The variable that holds it, for remedies.
    """
    text = exchange.body.decode("utf-8", "backslashreplace")
    raw = secret.redact(text)
    if exchange.lost is None and exchange.status >= 300:
        shown = secret.redact(text, short=True)
        return failures.of_status(exchange.status, shown, raw=shown, headers=exchange.headers, env=env)
    if is_stream(exchange.headers.get("content-type", ""), text):
        return _of_stream(exchange, text, raw, reader, headers, secret=secret, env=env)
    try:
        body = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict):
        result = _of_body(body, raw, reader, headers, env=env)
        # Also if the connection broke: no beginning of an object is an object, so an answer in one is whole, and paid for.
        if exchange.lost is None or isinstance(result, Response):
            return result
    if exchange.lost is not None:
        return replace(exchange.lost, raw=secret.redact_torn(text))
    return Failure(Kind.MALFORMED, f"a body that is no JSON object: {raw}", raw)


def _of_stream(
    exchange: Exchange, text: str, raw: str, reader: Reader, headers: Mapping[str, str], *, secret: Secret, env: str
) -> Response | Failure:
    made = reader.assemble(text)
    whole, clean = as_json(made.body), secret.redact if made.ended else secret.redact_torn
    if clean(whole) != whole:
        # A key that came in pieces stands whole in no piece: what is kept is the answer that they make.
        raw = clean(whole)
    if made.error is not None:
        return _of_error(made.error, made.body, raw, headers, env=env)
    if made.ended and made.damaged:
        return Failure(Kind.MALFORMED, f"a stream with a piece that is not JSON: {clean(made.damaged)}", raw, began=True)
    if made.ended:
        return _of_body(made.body, raw, reader, headers, env=env)
    if exchange.lost is not None:
        return replace(exchange.lost, raw=secret.redact_torn(raw))
    if not made.body:
        return Failure(Kind.MALFORMED, f"a stream without an answer: {raw}", raw)
    return Failure(Kind.TRANSIENT, "a stream that ended before the answer did", raw)


def _of_body(body: dict[str, Any], raw: str, reader: Reader, headers: Mapping[str, str], *, env: str) -> Response | Failure:
    result = reader.read(body)
    if isinstance(result, NamedError):
        return _of_error(result.error, body, raw, headers, env=env)
    if isinstance(result, Failure):
        return replace(result, raw=raw)
    return replace(result, raw=raw, from_cache=from_cache(headers, body))


def _of_error(error: Any, body: dict[str, Any], raw: str, headers: Mapping[str, str], *, env: str) -> Response | Failure:
    result = failures.of_error(error, raw=raw, headers=headers, env=env)
    if isinstance(result, Failure):
        return replace(result, began=any(body.get(name) for name in _ANSWER_FIELDS))
    return result


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _told(error: BaseException) -> str:
    return f"{type(error).__name__} {error}".strip()


def pool(client: Callable[..., Any], spec: HttpSpec, concurrency: int) -> tuple[Any, Any]:
    """An HTTP client for an SDK, with as many connections as calls may be in flight; and the time limits for it.

    Args:
        client: The SDK's class of clients, which has its settings of sockets.
        spec: Provider options.
        concurrency: Calls in flight at most.
    """
    import httpx2  # noqa: PLC0415  the SDKs' own HTTP library, which only their users should wait for

    limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency, keepalive_expiry=_KEEP_SECONDS)
    timeout = httpx2.Timeout(spec.timeout, connect=min(spec.connect_timeout, spec.timeout))
    # The key goes to nobody but the address that the study names, so a server that sends elsewhere is not followed.
    hooks = {"response": [_cut_error]}
    return client(limits=limits, timeout=timeout, follow_redirects=False, verify=_certificates(), event_hooks=hooks), timeout


async def _cut_error(response: Any) -> None:
    """See to it that no more is read of an error than is kept of it: the SDKs read it whole, and it may be endless."""
    if response.status_code >= 300:
        response.stream = _cut_stream()(response.stream)


@cache
def _cut_stream() -> Any:
    import httpx2  # noqa: PLC0415  as above

    class CutStream(httpx2.AsyncByteStream):
        def __init__(self, whole: Any) -> None:
            self._whole = whole

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = _RAW_OF_FAILURE
            async for chunk in self._whole:
                yield chunk[:left]
                left -= len(chunk)
                if left <= 0:
                    return

        async def aclose(self) -> None:
            await self._whole.aclose()

    return CutStream


@cache
def _certificates() -> Any:
    """Read once: a study has a client for every stack and condition."""
    import httpx2  # noqa: PLC0415  as above

    return httpx2.create_ssl_context()
