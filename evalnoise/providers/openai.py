"""Provider ``openai``: chat completions or responses through the openai SDK, from OpenAI or any server that speaks its protocol."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from evalnoise.providers import chat, responses
from evalnoise.providers.base import CallContext, Prompt, Request, RequestMaker, messages
from evalnoise.providers.clients import Clients
from evalnoise.providers.http import Answer, HttpProvider, Reader, SdkErrors, pool
from evalnoise.providers.options import request_body
from schemas.errors import StudyError
from schemas.provider import OpenAIProvider

_RESERVED: Final = {
    "chat": ("model", "messages", "max_tokens", "temperature", "top_p", "seed", "n", "stream", "stream_options"),
    "responses": (
        "model", "input", "max_output_tokens", "temperature", "top_p", "stream", "stream_options", "background",
        "previous_response_id", "conversation",
    ),
}  # fmt: skip
_OWN_ADDRESS: Final = "https://api.openai.com/v1"
"""Named, because the SDK would take another one from the environment: then neither address nor prices were those of the study."""
_READERS: Final = {"chat": Reader(chat.read, chat.assemble), "responses": Reader(responses.read, responses.assemble)}


def request_maker(spec: OpenAIProvider, *, model: str, max_tokens: int) -> RequestMaker:
    """How requests are made. Raises StudyError for options that cannot be sent.

    Newer models know the limit of chat completions as `max_completion_tokens`: in `extra`, it takes `max_tokens`' place.
    """
    named: dict[str, Any] = {"temperature": spec.temperature, "top_p": spec.top_p, "stream": spec.stream or None}
    if spec.api == "responses":
        named |= {"max_output_tokens": max_tokens, "store": None if "store" in spec.extra else False}
        _refuse_seed(spec)
    else:
        named |= {"max_tokens": None if "max_completion_tokens" in spec.extra else max_tokens, "seed": spec.seed}
        named |= {"stream_options": {"include_usage": True} if spec.stream else None}
    body = request_body(spec, named, reserved=_RESERVED[spec.api])
    field = "input" if spec.api == "responses" else "messages"

    def make(prompt: Prompt, _context: CallContext) -> Request:
        return Request("openai", model, {field: messages(prompt), **body})

    return make


def _refuse_seed(spec: OpenAIProvider) -> None:
    if spec.seed is not None:
        raise StudyError(
            "provider.seed",
            expected="no seed, because the responses interface has none",
            found=str(spec.seed),
            remedy="Take it away, or set `api: chat`.",
        )


class OpenAIModel(HttpProvider):
    """Chat completions or responses."""

    request_maker = staticmethod(request_maker)

    def __init__(self, spec: OpenAIProvider, make: RequestMaker, *, concurrency: int) -> None:
        import openai  # noqa: PLC0415  the SDK takes half a second to import, which only its users should wait for

        errors = SdkErrors(openai.APIStatusError, openai.APITimeoutError)
        super().__init__(spec, make, errors, _READERS[spec.api])

        def client() -> openai.AsyncOpenAI:
            http, timeout = pool(openai.DefaultAsyncHttpxClient, spec, concurrency)
            key, address = self._secret.reveal(), spec.base_url or _OWN_ADDRESS
            return openai.AsyncOpenAI(api_key=key, base_url=address, timeout=timeout, max_retries=0, http_client=http)

        self._clients = Clients(client, concurrency=concurrency)
        self._responses = spec.api == "responses"

    @classmethod
    def provider(cls, options: OpenAIProvider, make: RequestMaker, *, concurrency: int) -> OpenAIModel:
        """The provider with its client. Raises ProviderError without a key in the environment."""
        return cls(options, make, concurrency=concurrency)

    async def close(self) -> None:
        """Close the client's connections."""
        await self._clients.close()

    def _open(self, request: Request) -> AbstractAsyncContextManager[Answer]:
        # What the body holds takes the place of the named arguments. So the SDK does not take the messages apart, which is a tenth
        # of its time for a call.
        client = self._clients.next()
        if self._responses:
            return client.responses.with_streaming_response.create(model=request.model, input="", extra_body=request.body)
        return client.chat.completions.with_streaming_response.create(model=request.model, messages=(), extra_body=request.body)
