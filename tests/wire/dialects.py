"""The wire protocols: how a server says the same as chat completions, as responses and as messages, in one piece or streamed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from wire.server import Reply

HTML = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


class Dialect(Protocol):
    """What a test needs to know of a protocol."""

    name: ClassVar[str]
    """The provider that speaks it."""
    api: ClassVar[str]
    path: ClassVar[str]
    prefix: ClassVar[str]
    options: ClassVar[dict[str, Any]]
    """Provider options that choose it."""

    def answer(self, text: str | None = "hello", **fields: Any) -> Reply: ...

    def stream(self, text: str | None = "hello", **fields: Any) -> Reply: ...

    def hollow(self) -> Reply: ...

    def overloaded_200(self) -> Reply: ...

    def error(self, status: int, kind: str, message: str = "no", **headers: str) -> Reply: ...

    def error_event(self, kind: str, message: str = "no") -> bytes: ...


def event(data: Any, name: str = "") -> bytes:
    """One event of a stream."""
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def pieces(text: str | None, size: int = 4) -> list[str]:
    """A text in the pieces in which it is streamed."""
    return [text[at : at + size] for at in range(0, len(text or ""), size)] if text else []


def streamed(events: Iterable[bytes], **reply: Any) -> Reply:
    return Reply(events=tuple(events), content_type="text/event-stream", **reply)


def error_reply(body: dict[str, Any], status: int, headers: dict[str, str]) -> Reply:
    return Reply(status, json.dumps(body).encode(), {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass(frozen=True)
class OpenAIDialect:
    """Chat completions."""

    name: ClassVar[str] = "openai"
    api: ClassVar[str] = "chat"
    path: ClassVar[str] = "/v1/chat/completions"
    prefix: ClassVar[str] = "/v1"
    options: ClassVar[dict[str, Any]] = {}

    def body(
        self,
        text: str | None,
        *,
        finish: str = "stop",
        model: str = "served-1",
        refusal: str | None = None,
        usage: tuple[int, int] | None = (11, 7),
        details: tuple[int, int] | None = None,
        message: dict[str, Any] | None = None,
        reasoning: str | None = None,
        answer_id: str = "chatcmpl-1",
        more: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        if finish == "refusal":
            finish, refusal, text = "stop", refusal or text or "I will not", None
        finish = {"filtered": "content_filter"}.get(finish, finish)
        said: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal, **(message or {})}
        if reasoning is not None:
            said["reasoning_content"] = reasoning
        choice = {"index": 0, "message": said, "finish_reason": finish, "logprobs": None}
        body: dict[str, Any] = {
            "id": answer_id, "object": "chat.completion", "created": 1_700_000_000, "model": model, "system_fingerprint": "fp_1",
            "choices": [choice],
        }  # fmt: skip
        if usage:
            body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
            if details:
                body["usage"]["prompt_tokens_details"] = {"cached_tokens": details[0]}
                body["usage"]["completion_tokens_details"] = {"reasoning_tokens": details[1]}
        return body | (more or {})

    def answer(self, text: str | None = "hello", **fields: Any) -> Reply:
        said, reply = _split(fields)
        return Reply(body=json.dumps(self.body(text, **said)).encode(), **reply)

    def stream(self, text: str | None = "hello", **fields: Any) -> Reply:
        said, reply = _split(fields)
        return streamed(self.events(self.body(text, **said)), **reply)

    def events(self, body: dict[str, Any]) -> Iterable[bytes]:
        (choice,), message = body["choices"], body["choices"][0]["message"]
        common = {name: value for name, value in body.items() if name not in ("choices", "usage")}
        common["object"] = "chat.completion.chunk"

        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            return event({**common, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None})

        yield chunk({"role": "assistant", "content": ""})
        for field in ("reasoning_content", "refusal", "content"):
            for piece in pieces(message.get(field)):
                yield chunk({field: piece})
        yield chunk({}, choice["finish_reason"])
        if "usage" in body:
            yield event({**common, "choices": [], "usage": body["usage"]})
        yield event("[DONE]")

    def hollow(self) -> Reply:
        return Reply(body=json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": []}).encode())

    def overloaded_200(self) -> Reply:
        return Reply(body=json.dumps({"error": {"type": "overloaded_error", "message": "Overloaded"}}).encode())

    def error(self, status: int, kind: str, message: str = "no", **headers: str) -> Reply:
        return error_reply({"error": {"message": message, "type": kind, "param": None, "code": kind}}, status, headers)

    def error_event(self, kind: str, message: str = "no") -> bytes:
        return event({"error": {"message": message, "type": kind, "code": kind}})


@dataclass(frozen=True)
class ResponsesDialect:
    """OpenAI's responses."""

    name: ClassVar[str] = "openai"
    api: ClassVar[str] = "responses"
    path: ClassVar[str] = "/v1/responses"
    prefix: ClassVar[str] = "/v1"
    options: ClassVar[dict[str, Any]] = {"api": "responses"}

    def body(
        self,
        text: str | None,
        *,
        finish: str = "stop",
        model: str = "served-1",
        refusal: str | None = None,
        usage: tuple[int, int] | None = (11, 7),
        details: tuple[int, int] | None = None,
        reasoning: str | None = None,
        answer_id: str = "resp_1",
        more: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        if finish == "refusal":
            refusal, text = refusal or text or "I will not", None
        cut = {"length": "max_output_tokens", "filtered": "content_filter"}.get(finish)
        parts: list[dict[str, Any]] = [] if text is None else [{"type": "output_text", "text": text, "annotations": []}]
        parts += [{"type": "refusal", "refusal": refusal}] if refusal else []
        summary = [{"type": "summary_text", "text": reasoning}]
        output: list[dict[str, Any]] = [] if reasoning is None else [{"type": "reasoning", "id": "rs_1", "summary": summary}]
        output += (
            [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts}] if parts else []
        )
        body: dict[str, Any] = {
            "id": answer_id, "object": "response", "created_at": 1_700_000_000, "model": model, "error": None, "output": output,
            "status": "incomplete" if cut else "completed", "incomplete_details": {"reason": cut} if cut else None,
        }  # fmt: skip
        if usage:
            body["usage"] = {
                "input_tokens": usage[0], "output_tokens": usage[1], "total_tokens": sum(usage),
                "input_tokens_details": {"cached_tokens": details[0] if details else 0},
                "output_tokens_details": {"reasoning_tokens": details[1] if details else 0},
            }  # fmt: skip
        return body | (more or {})

    def answer(self, text: str | None = "hello", **fields: Any) -> Reply:
        said, reply = _split(fields)
        return Reply(body=json.dumps(self.body(text, **said)).encode(), **reply)

    def stream(self, text: str | None = "hello", **fields: Any) -> Reply:
        said, reply = _split(fields)
        return streamed(self.events(self.body(text, **said)), **reply)

    def events(self, body: dict[str, Any]) -> Iterable[bytes]:
        started = {**body, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        yield _typed({"type": "response.created", "response": started})
        for index, item in enumerate(body["output"]):
            place = {"item_id": item["id"], "output_index": index}
            yield _typed(
                {"type": "response.output_item.added", "output_index": index, "item": {**item, "content": [], "summary": []}}
            )
            for number, part in enumerate([*item.get("summary", ()), *item.get("content", ())]):
                kind = {"summary_text": "reasoning_summary_text", "output_text": "output_text", "refusal": "refusal"}[part["type"]]
                at = {"summary_index" if kind.startswith("reasoning") else "content_index": number}
                for piece in pieces(part.get("text", part.get("refusal"))):
                    yield _typed({"type": f"response.{kind}.delta", **place, **at, "delta": piece})
            yield _typed({"type": "response.output_item.done", "output_index": index, "item": item})
        yield _typed({"type": f"response.{body['status']}", "response": body})

    def hollow(self) -> Reply:
        return Reply(body=json.dumps({"id": "x", "object": "response", "model": "m", "output": None}).encode())

    def overloaded_200(self) -> Reply:
        error = {"code": "server_error", "message": "The server is overloaded"}
        return Reply(body=json.dumps({"id": "x", "object": "response", "status": "failed", "error": error, "output": []}).encode())

    def error(self, status: int, kind: str, message: str = "no", **headers: str) -> Reply:
        return OpenAIDialect().error(status, kind, message, **headers)

    def error_event(self, kind: str, message: str = "no") -> bytes:
        return _typed({"type": "error", "code": kind, "message": message, "param": None})


@dataclass(frozen=True)
class AnthropicDialect:
    """Messages."""

    name: ClassVar[str] = "anthropic"
    api: ClassVar[str] = "messages"
    path: ClassVar[str] = "/v1/messages"
    prefix: ClassVar[str] = ""
    options: ClassVar[dict[str, Any]] = {}

    def body(
        self,
        text: str | None,
        *,
        finish: str = "end_turn",
        model: str = "served-1",
        usage: tuple[int, int] | None = (11, 7),
        details: tuple[int, int] | None = None,
        content: list[dict[str, Any]] | None = None,
        reasoning: str | None = None,
        cache_read: int = 0,
        cache_write: int = 0,
        answer_id: str = "msg_1",
        more: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        finish = {"length": "max_tokens", "stop": "end_turn"}.get(finish, finish)
        if content is None:
            content = [] if reasoning is None else [{"type": "thinking", "thinking": reasoning, "signature": "sig"}]
            content += [] if text is None else [{"type": "text", "text": text}]
        body: dict[str, Any] = {
            "id": answer_id, "type": "message", "role": "assistant", "model": model, "content": content, "stop_reason": finish,
            "stop_sequence": None,
        }  # fmt: skip
        if usage:
            cached = details[0] if details else cache_read
            body["usage"] = {
                "input_tokens": usage[0] - (details[0] if details else 0), "output_tokens": usage[1],
                "cache_creation_input_tokens": cache_write, "cache_read_input_tokens": cached,
            }  # fmt: skip
            if details:
                body["usage"]["output_tokens_details"] = {"thinking_tokens": details[1]}
        return body | (more or {})

    def answer(self, text: str | None = "hello", **fields: Any) -> Reply:
        said, reply = _split(fields)
        return Reply(body=json.dumps(self.body(text, **said)).encode(), **reply)

    def stream(self, text: str | None = "hello", **fields: Any) -> Reply:
        said, reply = _split(fields)
        return streamed(self.events(self.body(text, **said)), **reply)

    def events(self, body: dict[str, Any]) -> Iterable[bytes]:
        usage = body.get("usage")
        first = {**usage, "output_tokens": 1} if usage else None
        yield _typed({"type": "message_start", "message": {**body, "content": [], "stop_reason": None, "usage": first}})
        yield _typed({"type": "ping"})
        for index, block in enumerate(body["content"]):
            field = "thinking" if block["type"] == "thinking" else "text"
            yield _typed({"type": "content_block_start", "index": index, "content_block": {"type": block["type"], field: ""}})
            for piece in pieces(block[field]):
                yield _typed({"type": "content_block_delta", "index": index, "delta": {"type": f"{field}_delta", field: piece}})
            yield _typed({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": body["stop_reason"], "stop_sequence": None, "stop_details": body.get("stop_details")}
        counts = {name: value for name, value in (usage or {}).items() if name.startswith("output")}
        yield _typed({"type": "message_delta", "delta": delta, "usage": counts})
        yield _typed({"type": "message_stop"})

    def hollow(self) -> Reply:
        return Reply(body=json.dumps({"id": "x", "type": "message", "model": "m", "content": None}).encode())

    def overloaded_200(self) -> Reply:
        return Reply(body=json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}).encode())

    def error(self, status: int, kind: str, message: str = "no", **headers: str) -> Reply:
        return error_reply({"type": "error", "error": {"type": kind, "message": message}}, status, headers)

    def error_event(self, kind: str, message: str = "no") -> bytes:
        return _typed({"type": "error", "error": {"type": kind, "message": message}})


def _typed(data: dict[str, Any]) -> bytes:
    return event(data, data["type"])


_OF_REPLY = ("status", "headers", "delay", "late", "pace", "cut_after", "endless", "drop", "note")


def _split(fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the body says, and what is done with it."""
    return {k: v for k, v in fields.items() if k not in _OF_REPLY}, {k: v for k, v in fields.items() if k in _OF_REPLY}


DIALECTS = (OpenAIDialect(), ResponsesDialect(), AnthropicDialect())
