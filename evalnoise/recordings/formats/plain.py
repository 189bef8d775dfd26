"""Plain JSON Lines: one response a line, with what is known of it. docs/guide/recordings.md lists the fields."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from evalnoise.recordings.formats.lines import (
    Imported,
    Line,
    Watch,
    bad,
    count_field,
    keyed_request,
    object_field,
    only_fields,
    read_lines,
    text_field,
    text_response,
)
from evalnoise.recordings.row import NOT_ANSWERED, Recorded
from schemas.errors import RequestNormaliserError
from schemas.records import Response, ResponseClass
from schemas.versions import REQUEST_NORMALISER

_TEXTS: Final = (
    "finish_reason",
    "refusal",
    "reasoning",
    "response_id",
    "request_id",
    "served_model",
    "fingerprint",
    "error",
    "raw",
)
_COUNTS: Final = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
FIELDS: Final = (
    "task_id", "text", "replicate", "attempt", "request", "response_class", *_TEXTS, *_COUNTS, "from_cache", "headers",
)  # fmt: skip
_REMEDY: Final = "docs/guide/recordings.md lists the fields; `task_id` and `text` are enough."
_CLASSES: Final = tuple(kind.value for kind in ResponseClass)


def read_plain(paths: Sequence[Path]) -> Imported:
    """The responses of files, read one after the other. Without `replicate`, repeats of a task are counted by their order.

    Raises:
        DataError: It names file and line.
    """
    rows: list[Recorded] = []
    places: dict[str, int] = {}
    counts: dict[tuple[str, int], int] = {}
    sources: list[dict[str, Any]] = []
    first = ""
    for path in paths:
        watch = Watch(path)
        for line in read_lines(path, remedy=_REMEDY, watch=watch):
            only_fields(line, FIELDS, _REMEDY)
            task_id, attempt = text_field(line, "task_id", _REMEDY), count_field(line, "attempt", _REMEDY) or 0
            counted = counts.get((task_id, attempt), 0)
            counts[task_id, attempt] = counted + 1
            replicate = count_field(line, "replicate", _REMEDY)
            key, request = _request(line)
            if rows and bool(key) != bool(rows[0].request_key):
                bad(line.where, f"`request` on every line or on none (first seen: {first})", "a mixture", _REMEDY)
            first = first or line.where
            rows.append(
                Recorded(
                    task_id,
                    counted if replicate is None else replicate,
                    attempt,
                    _response(line),
                    request_key=key,
                    request=request,
                    position=places.setdefault(task_id, len(places)),
                )
            )
        sources.append(watch.source())
    if not rows:
        bad(", ".join(map(str, paths)), "at least one response", "none", _REMEDY)
    return Imported(rows, sources)


def _request(line: Line) -> tuple[str, str]:
    if line.value.get("request") is None:
        return "", ""
    request = object_field(line, "request", _REMEDY)
    inner = Line(f"{line.where}, request", line.number, request)
    only_fields(inner, ("provider", "model", "body", "normaliser"), _REMEDY)
    version = request.get("normaliser", REQUEST_NORMALISER)
    if version != REQUEST_NORMALISER:
        raise RequestNormaliserError(
            inner.where,
            expected=f"a request of version {REQUEST_NORMALISER} of the normaliser",
            found=f"version {version!r}"[:80],
            remedy="Take `normaliser` away if provider, model and body are as they were sent.",
        )
    provider, model = text_field(inner, "provider", _REMEDY), text_field(inner, "model", _REMEDY)
    return keyed_request(inner.where, provider, model, object_field(inner, "body", _REMEDY), _REMEDY)


def _response(line: Line) -> Response:
    text = text_field(line, "text", _REMEDY)
    told: dict[str, Any] = {name: text_field(line, name, _REMEDY, "") for name in _TEXTS}
    told |= {name: count_field(line, name, _REMEDY) for name in _COUNTS}
    named = text_field(line, "response_class", _REMEDY, text_response(text).response_class.value)
    if named not in _CLASSES:
        bad(line.where, f"`response_class`, one of {', '.join(_CLASSES)}", repr(named)[:80], _REMEDY)
    from_cache, headers = line.value.get("from_cache", False), line.value.get("headers", {})
    if not isinstance(from_cache, bool):
        bad(line.where, "`from_cache`, true or false", repr(from_cache)[:80], _REMEDY)
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        bad(line.where, "`headers`, an object of texts", repr(headers)[:80], _REMEDY)
    kind = ResponseClass(named)
    return Response(
        text=text, response_class=kind, from_cache=from_cache, headers=headers, cost_usd=0.0, final=kind in NOT_ANSWERED, **told
    )
