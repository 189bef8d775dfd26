"""What the providers behind an HTTP SDK share: the key, and what each kind of failure is."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from evalnoise.providers.base import CallContext, Failure, Kind, LiveProvider, Request, RequestMaker
from evalnoise.providers.keys import Secret, read_key
from evalnoise.providers.retry_after import retry_after
from schemas.provider import AnthropicProvider, OpenAIProvider
from schemas.records import Response, ResponseClass

HttpSpec = OpenAIProvider | AnthropicProvider

_FATAL = {
    401: "The server does not accept the key: check the environment variable {env}.",
    402: "The server asks for payment: check the account.",
    403: "The key may not use this model: check the account's permissions.",
    404: "Check the model's name and `base_url`.",
}
_UNREACHED = "Check `base_url`, the network and whether the server runs; then run the same command again."
_RETRIED = {408, 409, 429}
_OVERLONG = ("context_length_exceeded", "context length", "prompt is too long", "string_above_max_length", "exceed_context_size")
_FILTERED = ("content_filter", "content_policy_violation", "content filtering policy", "responsibleaipolicyviolation")
_ERROR_TEXT = 300
_RAW_OF_FAILURE = 65_536


@dataclass(frozen=True, slots=True)
class SdkErrors:
    """The exception classes of an SDK, which the two SDKs name alike."""

    status: type[Exception]
    timeout: type[Exception]
    connection: type[Exception]
    any: type[Exception]


class HttpProvider(LiveProvider, ABC):
    """Base of the providers behind an SDK. One client, and so one connection pool, for each; bound to one event loop."""

    def __init__(self, spec: HttpSpec, make: RequestMaker, errors: SdkErrors) -> None:
        super().__init__(spec.name, make)
        self.address = f"{spec.name} at {spec.base_url}" if spec.base_url else spec.name
        self.max_retries = spec.max_retries
        self._spec = spec
        self._errors = errors
        self._secret: Secret = read_key(spec.name, spec.api_key_env)

    async def send(self, request: Request, context: CallContext) -> Response | Failure:  # noqa: ARG002 - other providers use it
        """Send the request once."""
        result = await self._attempt(request)
        if isinstance(result, Response):
            return result
        # Redacted before it is cut: half a key would not be found.
        text = self._secret.redact(result.text, short=True)[:_ERROR_TEXT]
        raw = self._secret.redact(result.raw, short=True)[:_RAW_OF_FAILURE]
        return replace(result, text=text, raw=raw)

    @abstractmethod
    async def _send(self, request: Request) -> bytes:
        """Send the request through the SDK, once; the body of a 2xx answer. Raises the SDK's errors."""

    @abstractmethod
    def _read(self, body: dict[str, Any]) -> Response | Failure:
        """The response in a decoded body, without `raw` and cost."""

    async def _attempt(self, request: Request) -> Response | Failure:
        try:
            async with asyncio.timeout(self._spec.timeout):
                content = await self._send(request)
        except (TimeoutError, self._errors.timeout):
            return Failure(Kind.TRANSIENT, f"no whole answer within {self._spec.timeout:g} s")
        except self._errors.status as error:
            return self._refused(error)
        except self._errors.connection as error:
            return Failure(Kind.UNREACHED, f"connection failed: {error.__cause__ or error}", remedy=_UNREACHED)
        except self._errors.any as error:
            return Failure(Kind.TRANSIENT, f"the SDK could not read the answer: {error}")
        return self._answer(content)

    def _answer(self, content: bytes) -> Response | Failure:
        raw = self._secret.redact(content.decode("utf-8", "backslashreplace"))
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            return Failure(Kind.TRANSIENT, f"a body that is not JSON: {raw}", raw)
        if not isinstance(body, dict):
            return Failure(Kind.TRANSIENT, f"a body that is no JSON object: {raw}", raw)
        result = self._read(body)
        if isinstance(result, Failure):
            return replace(result, raw=raw)
        cost = self._cost(result) if result.cost_usd is None else result.cost_usd
        return self._secret.redact_response(replace(result, raw=raw, cost_usd=cost))

    def _refused(self, error: Exception) -> Response | Failure:
        """What an HTTP status other than 2xx means."""
        answer: Any = getattr(error, "response")  # noqa: B009  both SDKs' status errors have it; Any spares naming their HTTP library
        status, raw = int(answer.status_code), answer.content.decode("utf-8", "backslashreplace")
        raw = self._secret.redact(raw, short=True)
        text = f"HTTP {status}: {raw}"
        lowered = raw.lower()
        if status in _FATAL or (status == 429 and "insufficient_quota" in lowered):
            remedy = _FATAL.get(status, _FATAL[402]).format(env=self._spec.api_key_env)
            return Failure(Kind.FATAL, text, raw, remedy=remedy)
        if status in _RETRIED or status >= 500:
            return Failure(Kind.TRANSIENT, text, raw, retry_after(answer.headers))
        if any(mark in lowered for mark in _FILTERED):
            return Response(
                text="", response_class=ResponseClass.REFUSAL, finish_reason=f"http-{status}", refusal=text[:_ERROR_TEXT], raw=raw
            )
        overlong = status == 413 or any(mark in lowered for mark in _OVERLONG)
        return Failure(Kind.THIS_PROMPT if overlong else Kind.REFUSED, text, raw)

    def _cost(self, response: Response) -> float | None:
        prices = (self._spec.input_usd_per_million, self._spec.output_usd_per_million)
        return cost(response.input_tokens, response.output_tokens, prices)


def cost(input_tokens: int | None, output_tokens: int | None, prices: tuple[float | None, float | None]) -> float | None:
    """US dollars at prices per million tokens; None if a count or a price is not known."""
    if input_tokens is None or output_tokens is None or prices[0] is None or prices[1] is None:
        return None
    return (input_tokens * prices[0] + output_tokens * prices[1]) / 1_000_000


def classify(text: str, *, refused: bool, truncated: bool) -> ResponseClass:
    """The class of an answer that arrived whole. Thinking that never ends is an answer cut off, whatever the server says."""
    if refused:
        return ResponseClass.REFUSAL
    opened = text.lstrip().startswith("<think>")
    if truncated or (opened and "</think>" not in text):
        return ResponseClass.TRUNCATED
    return ResponseClass.COMPLETE if text.strip() else ResponseClass.EMPTY


def text_of(value: object) -> str:
    """The value if it is text, else empty: bodies are hostile."""
    return value if isinstance(value, str) else ""


def error_of(body: dict[str, Any]) -> str:
    """The error that a body names, as JSON text."""
    return json.dumps(body.get("error", "no error named"))


def count_of(value: object) -> int | None:
    """The value if it is a plausible token count, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None
