"""Provider ``anthropic``: messages through the anthropic SDK."""

from __future__ import annotations

from typing import Any, Final

from evalnoise.providers.base import CallContext, Failure, Kind, Prompt, Request, RequestMaker, messages
from evalnoise.providers.http import HttpProvider, SdkErrors, classify, count_of, error_of, text_of
from evalnoise.providers.options import request_body
from schemas.provider import AnthropicProvider
from schemas.records import Response

_RESERVED: Final = ("model", "messages", "max_tokens", "temperature", "top_p", "stream")
_TRUNCATED: Final = ("max_tokens", "model_context_window_exceeded")
_CACHE_COUNTS: Final = ("cache_creation_input_tokens", "cache_read_input_tokens")


def request_maker(spec: AnthropicProvider, model: str, max_tokens: int) -> RequestMaker:
    """How requests are made."""
    named = {"max_tokens": max_tokens, "temperature": spec.temperature, "top_p": spec.top_p}
    body = request_body(spec, named, reserved=_RESERVED)

    def make(prompt: Prompt, _context: CallContext) -> Request:
        return Request("anthropic", model, {"messages": messages(prompt), **body})

    return make


class AnthropicMessages(HttpProvider):
    """Messages."""

    def __init__(self, spec: AnthropicProvider, make: RequestMaker) -> None:
        import anthropic  # noqa: PLC0415  the SDK takes half a second to import, which only its users should wait for

        errors = SdkErrors(
            anthropic.APIStatusError, anthropic.APITimeoutError, anthropic.APIConnectionError, anthropic.AnthropicError
        )
        super().__init__(spec, make, errors)
        # With a timeout of our own, the SDK does not refuse a large max_tokens for fear of ten minutes.
        self._client = anthropic.AsyncAnthropic(
            api_key=self._secret.reveal(), base_url=spec.base_url, timeout=spec.timeout, max_retries=0
        )

    async def close(self) -> None:
        """Close the client's connections."""
        await self._client.close()

    async def _send(self, request: Request) -> bytes:
        body = dict(request.body)
        answer = await self._client.messages.with_raw_response.create(
            model=request.model,
            messages=body.pop("messages"),
            max_tokens=body.pop("max_tokens"),
            extra_body=body,
        )
        return await answer.read()

    def _read(self, body: dict[str, Any]) -> Response | Failure:
        content = body.get("content")
        if not isinstance(content, list):
            # Some servers report an overload with status 200.
            return Failure(Kind.TRANSIENT, f"an answer without content: {error_of(body)}")
        blocks = [block for block in content if isinstance(block, dict)]
        text = "".join(text_of(block.get("text")) for block in blocks if block.get("type") == "text")
        finish = text_of(body.get("stop_reason"))
        usage = body.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return Response(
            text=text,
            response_class=classify(text, refused=finish == "refusal", truncated=finish in _TRUNCATED),
            finish_reason=finish,
            refusal=text if finish == "refusal" else "",
            response_id=text_of(body.get("id")),
            served_model=text_of(body.get("model")),
            input_tokens=_input_tokens(usage),
            output_tokens=count_of(usage.get("output_tokens")),
        )


def _input_tokens(usage: dict[str, Any]) -> int | None:
    """Input tokens at the plain price; None if some were read from or written to a cache, which has prices of its own."""
    if any(usage.get(name) for name in _CACHE_COUNTS):
        return None
    return count_of(usage.get("input_tokens"))
