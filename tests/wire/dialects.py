"""The two wire protocols: how a server says the same thing as OpenAI's chat completions and as Anthropic's messages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from wire.server import Reply

HTML = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


class Dialect(Protocol):
    """What a test needs to know of a protocol."""

    name: str
    path: str
    prefix: str

    def answer(self, text: str | None = "hello", **fields: Any) -> Reply: ...

    def error(self, status: int, kind: str, message: str = "no", **headers: str) -> Reply: ...


@dataclass(frozen=True)
class OpenAIDialect:
    name: str = "openai"
    path: str = "/v1/chat/completions"
    prefix: str = "/v1"

    def answer(
        self,
        text: str | None = "hello",
        *,
        finish: str = "stop",
        model: str = "served-1",
        refusal: str | None = None,
        usage: tuple[int, int] | None = (11, 7),
        message: dict[str, Any] | None = None,
        answer_id: str = "chatcmpl-1",
        **reply: Any,
    ) -> Reply:
        finish = {"length": "length", "refusal": "content_filter"}.get(finish, finish)
        body: dict[str, Any] = {
            "id": answer_id,
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": model,
            "system_fingerprint": "fp_1",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text, "refusal": refusal, **(message or {})},
                    "finish_reason": finish,
                    "logprobs": None,
                }
            ],
        }
        if usage:
            body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
        return Reply(body=json.dumps(body).encode(), **reply)

    def hollow(self) -> Reply:
        return Reply(body=json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": []}).encode())

    def overloaded_200(self) -> Reply:
        return Reply(body=json.dumps({"error": {"type": "overloaded_error", "message": "Overloaded"}}).encode())

    def error(self, status: int, kind: str, message: str = "no", **headers: str) -> Reply:
        body = {"error": {"message": message, "type": kind, "param": None, "code": kind}}
        return Reply(status, json.dumps(body).encode(), {k.replace("_", "-"): v for k, v in headers.items()})


@dataclass(frozen=True)
class AnthropicDialect:
    name: str = "anthropic"
    path: str = "/v1/messages"
    prefix: str = ""

    def answer(
        self,
        text: str | None = "hello",
        *,
        finish: str = "end_turn",
        model: str = "served-1",
        usage: tuple[int, int] | None = (11, 7),
        content: list[dict[str, Any]] | None = None,
        cache_read: int = 0,
        **reply: Any,
    ) -> Reply:
        finish = {"length": "max_tokens", "stop": "end_turn"}.get(finish, finish)
        body: dict[str, Any] = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content if content is not None else [] if text is None else [{"type": "text", "text": text}],
            "stop_reason": finish,
            "stop_sequence": None,
        }
        if usage:
            body["usage"] = {
                "input_tokens": usage[0],
                "output_tokens": usage[1],
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": cache_read,
            }
        return Reply(body=json.dumps(body).encode(), **reply)

    def hollow(self) -> Reply:
        return Reply(body=json.dumps({"id": "x", "type": "message", "model": "m", "content": None}).encode())

    def overloaded_200(self) -> Reply:
        return Reply(body=json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}).encode())

    def error(self, status: int, kind: str, message: str = "no", **headers: str) -> Reply:
        body = {"type": "error", "error": {"type": kind, "message": message}}
        return Reply(status, json.dumps(body).encode(), {k.replace("_", "-"): v for k, v in headers.items()})


DIALECTS = (OpenAIDialect(), AnthropicDialect())
