"""What all readers of answers share: careful ways to take values out of a body, and the class of an answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from evalnoise.extraction import answer_beyond_thinking
from evalnoise.providers.base import Failure, Kind
from evalnoise.providers.sse import text_of
from schemas.records import Response, ResponseClass


@dataclass(frozen=True, slots=True)
class NamedError:
    """An error that a server reports inside an answer, whatever the HTTP status says."""

    error: Any


Reading = Response | Failure | NamedError
"""What a body comes to: `Response` without what is not in the body (raw text, headers)."""

FILTERED: Final = frozenset({"content_filter", "content_filtered", "safety", "sensitive", "guardrail_intervened"})
"""Reasons for the end of an answer by which a filter of the provider took it away."""


def classify(text: str, *, refused: bool, filtered: bool, truncated: bool) -> ResponseClass:
    """The class of an answer that arrived whole. Thinking that never ends is an answer cut off, whatever the server says."""
    if refused:
        return ResponseClass.REFUSAL
    if filtered:
        return ResponseClass.FILTERED
    answer = answer_beyond_thinking(text)
    if truncated or answer is None:
        return ResponseClass.TRUNCATED
    return ResponseClass.COMPLETE if answer.strip() else ResponseClass.EMPTY


def named_error(body: dict[str, Any]) -> NamedError | None:
    """The error that a body reports in the place of an answer, in any of the shapes that servers use."""
    if body.get("error"):
        return NamedError(body["error"])
    return NamedError(body) if "error" in (body.get("object"), body.get("type")) else None


def no_answer(what: str) -> Failure:
    """The failure of a body that is JSON and neither an answer nor an error."""
    return Failure(Kind.MALFORMED, f"an answer without {what}, and without an error")


def mapping(value: object) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list; none of what is no list."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def count_of(value: object) -> int | None:
    """The value if it is a plausible token count, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def all_output(usage: dict[str, Any], asked: str, answered: str, reasoning: int | None) -> int | None:
    """All output tokens. Some servers count reasoning apart from the answer, which their total gives away.

    None where more was counted than the parts explain: what it was, and cost, is not known.

    Args:
        usage: The counts.
        asked: Name of the count of input tokens.
        answered: Name of the count of output tokens.
        reasoning: Tokens of reasoning, if they are told.
    """
    before, after, total = (count_of(usage.get(name)) for name in (asked, answered, "total_tokens"))
    if before is None or after is None or total is None or total <= before + after:
        return after
    return after + reasoning if reasoning is not None and total == before + after + reasoning else None


def joined(parts: Iterable[object]) -> str:
    """The texts among the parts, one after the other."""
    return "".join(text_of(part) for part in parts)


def as_json(value: object) -> str:
    """A value as JSON text, for messages and for the record."""
    return json.dumps(value, ensure_ascii=True)
