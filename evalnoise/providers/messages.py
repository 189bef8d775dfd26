"""Anthropic's messages: what a body, or a stream of events, comes to."""

from __future__ import annotations

from typing import Any, Final

from evalnoise.providers.reading import Reading, as_json, classify, count_of, joined, mapping, named_error, no_answer, objects
from evalnoise.providers.sse import Assembled, payloads, text_in, text_of
from schemas.records import Response

_TRUNCATED: Final = ("max_tokens", "model_context_window_exceeded", "pause_turn")
"""`pause_turn`: the model would have gone on, had it been asked to."""
_APPENDED: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def read(body: dict[str, Any]) -> Reading:
    """The response in a decoded body."""
    error = named_error(body)
    if error:
        return error
    if not isinstance(body.get("content"), list):
        return no_answer("content")
    blocks = objects(body["content"])
    text = joined(block.get("text") for block in blocks if block.get("type") == "text")
    finish = text_of(body.get("stop_reason"))
    refused = finish == "refusal"
    usage = mapping(body.get("usage"))
    cached, written = count_of(usage.get("cache_read_input_tokens")), count_of(usage.get("cache_creation_input_tokens"))
    return Response(
        text=text,
        response_class=classify(text, refused=refused, filtered=False, truncated=finish in _TRUNCATED),
        finish_reason=finish,
        refusal=_refusal(text, mapping(body.get("stop_details"))) if refused else "",
        response_id=text_of(body.get("id")),
        served_model=text_of(body.get("model")),
        reasoning="\n\n".join(thought for block in blocks if (thought := text_of(block.get("thinking")))),
        input_tokens=_all_input(usage),
        output_tokens=count_of(usage.get("output_tokens")),
        cached_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=count_of(mapping(usage.get("output_tokens_details")).get("thinking_tokens")),
    )


class _Blocks:
    """The blocks of content of a stream. Their texts are joined at the end: to lengthen them piece by piece takes seconds."""

    def __init__(self) -> None:
        self._begun: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}

    def begin(self, event: dict[str, Any]) -> None:
        index, block = count_of(event.get("index")) or 0, dict(mapping(event.get("content_block")))
        self._begun[index] = block
        self._pieces |= {(index, field): [text_of(block.get(field))] for field in _APPENDED.values()}

    def add(self, event: dict[str, Any]) -> None:
        index, delta = count_of(event.get("index")) or 0, mapping(event.get("delta"))
        self._begun.setdefault(index, {"type": "text"})
        field = _APPENDED.get(text_of(delta.get("type")))
        if field:
            self._pieces.setdefault((index, field), []).append(text_of(delta.get(field)))

    def whole(self) -> list[dict[str, Any]]:
        for (index, field), texts in self._pieces.items():
            if any(texts):
                self._begun[index][field] = text_in(texts)
        return [self._begun[index] for index in sorted(self._begun)]


def assemble(stream: str) -> Assembled:
    """The body that a stream of events stands for. An answer is whole once its reason for ending has come."""
    made, blocks = Assembled(), _Blocks()
    for name, event in payloads(stream, made):
        kind = text_of(event.get("type")) or name
        if kind == "error" or event.get("error"):
            made.error = event.get("error") or event
        elif kind == "message_start":
            made.body = dict(mapping(event.get("message")))
        elif kind == "content_block_start":
            blocks.begin(event)
        elif kind == "content_block_delta":
            blocks.add(event)
        elif kind == "message_delta":
            made.body |= {key: value for key, value in mapping(event.get("delta")).items() if value is not None}
            # The counts so far; those that do not change are not said again.
            counts = {key: value for key, value in mapping(event.get("usage")).items() if value is not None}
            made.body["usage"] = {**mapping(made.body.get("usage")), **counts}
        elif kind == "message_stop":
            made.ended = True
    content = blocks.whole()
    if content or isinstance(made.body.get("content"), list):
        made.body["content"] = content
    made.ended = made.ended or bool(text_of(made.body.get("stop_reason")))
    return made


def _all_input(usage: dict[str, Any]) -> int | None:
    """All input tokens: the protocol counts those that went through its cache apart. None if a count is not legible."""
    counts = [usage.get(name) or 0 for name in ("cache_read_input_tokens", "cache_creation_input_tokens")]
    found = [count_of(value) for value in (usage.get("input_tokens"), *counts)]
    return None if any(count is None for count in found) else count_of(sum(count for count in found if count is not None))


def _refusal(text: str, details: dict[str, Any]) -> str:
    """What was said instead of an answer; where nothing was, the server's own words on it."""
    return text or text_of(details.get("explanation")) or (as_json(details) if details else "")
