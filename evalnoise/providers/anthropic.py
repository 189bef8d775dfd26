"""Provider ``anthropic``: messages through the anthropic SDK."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from evalnoise.providers import messages
from evalnoise.providers.base import CallContext, Prompt, Request, RequestMaker
from evalnoise.providers.base import messages as user_message
from evalnoise.providers.clients import Clients
from evalnoise.providers.http import Answer, HttpProvider, Reader, SdkErrors, pool
from evalnoise.providers.keys import refuse_hidden_headers
from evalnoise.providers.options import request_body
from schemas.provider import AnthropicProvider

_RESERVED: Final = ("model", "messages", "max_tokens", "temperature", "top_p", "stream")
_OWN_ADDRESS: Final = "https://api.anthropic.com"
"""Named, because the SDK would take another one from the environment: then neither address nor prices were those of the study."""


def request_maker(spec: AnthropicProvider, *, model: str, max_tokens: int) -> RequestMaker:
    """How requests are made. Raises StudyError for options that cannot be sent."""
    named = {"max_tokens": max_tokens, "temperature": spec.temperature, "top_p": spec.top_p, "stream": spec.stream or None}
    body = request_body(spec, named, reserved=_RESERVED)

    def make(prompt: Prompt, _context: CallContext) -> Request:
        return Request("anthropic", model, {"messages": user_message(prompt), **body})

    return make


class AnthropicModel(HttpProvider):
    """Messages."""

    request_maker = staticmethod(request_maker)

    def __init__(self, spec: AnthropicProvider, make: RequestMaker, *, concurrency: int) -> None:
        import anthropic  # noqa: PLC0415  the SDK takes half a second to import, which only its users should wait for

        errors = SdkErrors(anthropic.APIStatusError, anthropic.APITimeoutError)
        super().__init__(spec, make, errors, Reader(messages.read, messages.assemble))

        def client() -> anthropic.AsyncAnthropic:
            # With a timeout of our own, the SDK does not refuse a large max_tokens for fear of ten minutes.
            http, timeout = pool(anthropic.DefaultAsyncHttpxClient, spec, concurrency)
            key, address = self._secret.reveal(), spec.base_url or _OWN_ADDRESS
            return anthropic.AsyncAnthropic(api_key=key, base_url=address, timeout=timeout, max_retries=0, http_client=http)

        self._clients = Clients(client, concurrency=concurrency)

    @classmethod
    def provider(cls, options: AnthropicProvider, make: RequestMaker, *, concurrency: int) -> AnthropicModel:
        """The provider with its client. Raises ProviderError without a key in the environment, or with headers in it."""
        refuse_hidden_headers(options.name, "ANTHROPIC_CUSTOM_HEADERS")
        return cls(options, make, concurrency=concurrency)

    async def close(self) -> None:
        """Close the client's connections."""
        await self._clients.close()

    def _open(self, request: Request) -> AbstractAsyncContextManager[Answer]:
        # What the body holds takes the place of the named arguments. So the SDK does not take the messages apart, which is a tenth
        # of its time for a call.
        named: Any = {"model": request.model, "messages": (), "max_tokens": request.body["max_tokens"]}
        return self._clients.next().messages.with_streaming_response.create(**named, extra_body=request.body)
