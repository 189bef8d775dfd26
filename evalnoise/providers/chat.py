"""Chat completions: what a body, or a stream of its pieces, comes to."""

from __future__ import annotations

from typing import Any, Final

from evalnoise.providers.base import Failure, Kind
from evalnoise.providers.reading import (
    FILTERED,
    NamedError,
    Reading,
    all_output,
    classify,
    count_of,
    joined,
    mapping,
    named_error,
    no_answer,
    objects,
)
from evalnoise.providers.sse import Assembled, events, payloads, text_in, text_of
from schemas.records import Response

DONE: Final = "[DONE]"
"""The last event of a stream."""
_TRUNCATED: Final = ("length", "max_tokens", "model_length")
_BROKEN: Final = ("error", "abort", "aborted", "cancelled", "insufficient_system_resource")
"""Reasons for the end of an answer that the server itself could not finish."""
_APPENDED: Final = ("content", "refusal", "reasoning_content", "reasoning")


def read(body: dict[str, Any]) -> Reading:
    """The response in a decoded body."""
    error = named_error(body)
    if error:
        return error
    choices = objects(body.get("choices"))
    if not choices:
        return no_answer("choices")
    choice = choices[0]
    if choice.get("error"):
        return NamedError(choice["error"])
    message = choice.get("message")
    if not isinstance(message, dict):
        return no_answer("a message")
    finish, refusal, text = text_of(choice.get("finish_reason")), text_of(message.get("refusal")), _text(message)
    ended = finish.lower()
    if ended in _BROKEN:
        return Failure(Kind.TRANSIENT, f"an answer that the server broke off: {finish}")
    usage = mapping(body.get("usage"))
    asked, made = mapping(usage.get("prompt_tokens_details")), mapping(usage.get("completion_tokens_details"))
    refused = bool(refusal) or ended == "refusal"
    reasoning_tokens = count_of(made.get("reasoning_tokens"))
    return Response(
        text=text,
        response_class=classify(text, refused=refused, filtered=ended in FILTERED, truncated=ended in _TRUNCATED),
        finish_reason=finish,
        refusal=refusal,
        response_id=text_of(body.get("id")),
        served_model=text_of(body.get("model")),
        fingerprint=text_of(body.get("system_fingerprint")),
        reasoning=_reasoning(message),
        input_tokens=count_of(usage.get("prompt_tokens")),
        output_tokens=all_output(usage, "prompt_tokens", "completion_tokens", reasoning_tokens),
        cached_tokens=_first(asked.get("cached_tokens"), usage.get("prompt_cache_hit_tokens")),
        cache_write_tokens=count_of(asked.get("cache_write_tokens")),
        reasoning_tokens=reasoning_tokens,
    )


def assemble(stream: str) -> Assembled:
    """The body that a stream of chunks stands for. An answer is whole once its reason for ending has come."""
    made = Assembled(ended=any(event.data.strip() == DONE for event in events(stream)))
    message: dict[str, Any] = {"role": "assistant", "content": None}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": None}
    pieces: dict[str, list[str]] = {}
    for _, chunk in payloads(stream, made):
        error = named_error(chunk)
        if error:
            made.error = error.error
        made.body |= {name: value for name, value in chunk.items() if name not in ("choices", "object") and value is not None}
        for part in objects(chunk.get("choices")):
            if part.get("index", 0) == 0:
                made.body["choices"] = [choice]
                _add(choice, message, part, pieces)
    for name in _APPENDED:
        _join(message, name, pieces)
    made.ended = made.ended or choice["finish_reason"] is not None
    return made


def _add(choice: dict[str, Any], message: dict[str, Any], part: dict[str, Any], pieces: dict[str, list[str]]) -> None:
    for name in ("finish_reason", "error"):
        if part.get(name) is not None:
            choice[name] = part[name]
    delta = mapping(part.get("delta"))
    for name in _APPENDED:
        value = delta.get(name)
        if isinstance(value, list) and name == "content":
            _join(message, name, pieces)
            before = message.get(name)
            if not isinstance(before, list):
                before = message[name] = [{"type": "text", "text": before}] if before else []
            before += value
        elif isinstance(value, str):
            # Joined at the end: to lengthen a text by each of a hundred thousand pieces takes seconds.
            pieces.setdefault(name, []).append(value)
    if isinstance(delta.get("reasoning_details"), list):
        message.setdefault("reasoning_details", []).extend(delta["reasoning_details"])


def _join(message: dict[str, Any], name: str, pieces: dict[str, list[str]]) -> None:
    """Put the pieces of text that have gathered behind what is there."""
    if name not in pieces:
        return
    text, before = text_in(pieces.pop(name)), message.get(name)
    if isinstance(before, list):
        before.append({"type": "text", "text": text})
    else:
        message[name] = (before or "") + text


def _text(message: dict[str, Any]) -> str:
    """The answer's text, whether the content is a text or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return joined(part.get("text") for part in objects(content) if part.get("type") == "text")
    return text_of(content)


def _reasoning(message: dict[str, Any]) -> str:
    """The model's thinking, from the first of the fields in which servers put it."""
    for name in ("reasoning_content", "reasoning"):
        if text_of(message.get(name)):
            return text_of(message[name])
    details = joined(part.get("text", part.get("summary")) for part in objects(message.get("reasoning_details")))
    if details:
        return details
    parts = [part.get("thinking") for part in objects(message.get("content")) if part.get("type") == "thinking"]
    return joined(text for part in parts for text in ([inner.get("text") for inner in objects(part)] or [part]))


def _first(*values: object) -> int | None:
    return next((count for value in values if (count := count_of(value)) is not None), None)
