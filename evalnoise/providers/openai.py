"""Provider ``openai``: chat completions through the openai SDK, from OpenAI or any server that speaks its protocol."""

from __future__ import annotations

from typing import Any, Final

from evalnoise.providers.base import CallContext, Failure, Kind, Prompt, Request, RequestMaker, messages
from evalnoise.providers.http import HttpProvider, SdkErrors, classify, count_of, error_of, text_of
from evalnoise.providers.options import request_body
from schemas.provider import OpenAIProvider
from schemas.records import Response

_RESERVED: Final = ("model", "messages", "max_tokens", "temperature", "top_p", "seed", "n", "stream", "stream_options")


def request_maker(spec: OpenAIProvider, model: str, max_tokens: int) -> RequestMaker:
    """How requests are made. Newer models know the limit as `max_completion_tokens`: in `extra`, it takes `max_tokens`' place."""
    limit = None if "max_completion_tokens" in spec.extra else max_tokens
    named = {"max_tokens": limit, "temperature": spec.temperature, "top_p": spec.top_p, "seed": spec.seed}
    body = request_body(spec, named, reserved=_RESERVED)

    def make(prompt: Prompt, _context: CallContext) -> Request:
        return Request("openai", model, {"messages": messages(prompt), **body})

    return make


class OpenAIChat(HttpProvider):
    """Chat completions."""

    def __init__(self, spec: OpenAIProvider, make: RequestMaker) -> None:
        import openai  # noqa: PLC0415  the SDK takes half a second to import, which only its users should wait for

        errors = SdkErrors(openai.APIStatusError, openai.APITimeoutError, openai.APIConnectionError, openai.OpenAIError)
        super().__init__(spec, make, errors)
        self._client = openai.AsyncOpenAI(
            api_key=self._secret.reveal(), base_url=spec.base_url, timeout=spec.timeout, max_retries=0
        )

    async def close(self) -> None:
        """Close the client's connections."""
        await self._client.close()

    async def _send(self, request: Request) -> bytes:
        body = dict(request.body)
        answer = await self._client.chat.completions.with_raw_response.create(
            model=request.model, messages=body.pop("messages"), extra_body=body
        )
        return answer.content

    def _read(self, body: dict[str, Any]) -> Response | Failure:
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices:
            # Some servers report an overload with status 200.
            return Failure(Kind.TRANSIENT, f"an answer without choices: {error_of(body)}")
        message = choices[0].get("message") if isinstance(choices[0], dict) else None
        if not isinstance(message, dict):
            return Failure(Kind.TRANSIENT, "a choice without a message")
        finish, refusal, text = text_of(choices[0].get("finish_reason")), text_of(message.get("refusal")), _text(message)
        usage = body.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return Response(
            text=text,
            response_class=classify(text, refused=bool(refusal) or finish == "content_filter", truncated=finish == "length"),
            finish_reason=finish,
            refusal=refusal,
            response_id=text_of(body.get("id")),
            served_model=text_of(body.get("model")),
            fingerprint=text_of(body.get("system_fingerprint")),
            input_tokens=count_of(usage.get("prompt_tokens")),
            output_tokens=count_of(usage.get("completion_tokens")),
        )


def _text(message: dict[str, Any]) -> str:
    """The answer's text. Reasoning stands in fields of its own and stays in the raw body."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(part for part in parts if isinstance(part, str))
    return text_of(content)
