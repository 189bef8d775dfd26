"""OpenAI's responses interface: what a body, or a stream of events, comes to."""

from __future__ import annotations

from itertools import starmap
from typing import Any, Final

from evalnoise.providers.base import Failure, Kind
from evalnoise.providers.reading import (
    FILTERED,
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
from evalnoise.providers.sse import Assembled, payloads, text_in, text_of
from schemas.records import Response

_TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_TRUNCATED: Final = ("max_output_tokens", "max_tokens")
_UNFINISHED: Final = ("queued", "in_progress", "cancelled", "failed")
_DELTAS: Final = {
    "response.output_text.delta": ("message", "content", "output_text", "text"),
    "response.refusal.delta": ("message", "content", "refusal", "refusal"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary", "summary_text", "text"),
    "response.reasoning_text.delta": ("reasoning", "content", "reasoning_text", "text"),
}
"""By event: kind of output item, the item's list of parts, kind of part, and the part's field that the piece belongs to."""


def read(body: dict[str, Any]) -> Reading:
    """The response in a decoded body."""
    error = named_error(body)
    if error:
        return error
    if not isinstance(body.get("output"), list):
        return no_answer("output")
    status = text_of(body.get("status"))
    if status in _UNFINISHED:
        return Failure(Kind.TRANSIENT, f"an answer that is not finished: {status}")
    items = objects(body["output"])
    parts = [part for item in items if item.get("type") == "message" for part in objects(item.get("content"))]
    text = joined(part.get("text") for part in parts if part.get("type") == "output_text")
    refusal = joined(part.get("refusal") for part in parts if part.get("type") == "refusal")
    cut = text_of(mapping(body.get("incomplete_details")).get("reason"))
    usage = mapping(body.get("usage"))
    asked, made = mapping(usage.get("input_tokens_details")), mapping(usage.get("output_tokens_details"))
    reasoning_tokens = count_of(made.get("reasoning_tokens"))
    return Response(
        text=text,
        response_class=classify(
            # A reason that is not known is a cut all the same: the answer says that it is incomplete.
            text, refused=bool(refusal), filtered=cut in FILTERED, truncated=cut in _TRUNCATED or status == "incomplete",
        ),
        finish_reason=cut or status,
        refusal=refusal,
        response_id=text_of(body.get("id")),
        served_model=text_of(body.get("model")),
        fingerprint=text_of(body.get("system_fingerprint")),
        reasoning=_reasoning(items),
        input_tokens=count_of(usage.get("input_tokens")),
        output_tokens=all_output(usage, "input_tokens", "output_tokens", reasoning_tokens),
        cached_tokens=count_of(asked.get("cached_tokens")),
        cache_write_tokens=count_of(asked.get("cache_write_tokens")),
        reasoning_tokens=reasoning_tokens,
    )  # fmt: skip


def assemble(stream: str) -> Assembled:
    """The body that a stream of events stands for: that of its last event; of a torn stream, what its pieces make."""
    made = Assembled()
    finished: list[Any] = []
    torn: dict[tuple[str, str, str], list[str]] = {}
    for name, event in payloads(stream, made):
        kind = text_of(event.get("type")) or name
        if kind == "error" or (not kind and event.get("error")):
            made.error = event.get("error") or event
        elif kind.startswith("response.") and isinstance(event.get("response"), dict):
            made.body = dict(event["response"])
            made.ended = made.ended or kind in _TERMINAL
        elif kind == "response.output_item.done":
            finished.append(event.get("item"))
        elif kind in _DELTAS:
            _add(torn, event, kind)
    if (made.body or finished or torn) and not made.body.get("output"):
        made.body["output"] = finished if made.ended and finished else [*finished, *starmap(_item, torn.items())]
    return made


def _add(torn: dict[tuple[str, str, str], list[str]], event: dict[str, Any], kind: str) -> None:
    place = (str(event.get("item_id")), str(event.get("content_index", event.get("summary_index"))), kind)
    torn.setdefault(place, []).append(text_of(event.get("delta")))


def _item(place: tuple[str, str, str], pieces: list[str]) -> dict[str, Any]:
    item, listed, part, field = _DELTAS[place[2]]
    return {"type": item, listed: [{"type": part, field: text_in(pieces)}]}


def _reasoning(items: list[dict[str, Any]]) -> str:
    """The model's thinking as far as it is shown: its own text, else the summary, one part a paragraph."""
    thinking = [item for item in items if item.get("type") == "reasoning"]
    for name in ("content", "summary"):
        texts = [text_of(part.get("text")) for item in thinking for part in objects(item.get(name))]
        if any(texts):
            return "\n\n".join(text for text in texts if text)
    return ""
