"""Batches of OpenAI and Anthropic: requests, answers, errors and names, in any order and in any number of files, joined by id."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from evalnoise.providers import chat, messages, responses
from evalnoise.providers.base import Failure, Kind
from evalnoise.providers.failures import of_error, of_status
from evalnoise.providers.reading import NamedError, Reading, as_json
from evalnoise.providers.sse import text_of
from evalnoise.recordings.formats.lines import (
    Imported,
    Line,
    Watch,
    bad,
    count_field,
    keyed_request,
    object_field,
    read_lines,
    text_field,
)
from evalnoise.recordings.row import Recorded
from schemas.records import Response, ResponseClass

_SHOWN: Final = 10
_ID: Final = re.compile(r"(?P<task>.+)#(?P<replicate>[0-9]{1,9})", re.DOTALL)
_MAP: Final = "a map: JSON Lines with `custom_id`, `task_id` and, if not 0, `replicate` and `attempt`"
_REMEDY: Final = (
    "Name the batch's input file, its output, its file of errors, and a map from ids to tasks if ids are no task ids, in any "
    "order; docs/guide/recordings.md shows each."
)


@dataclass(slots=True)
class _Batch:
    """Lines by id."""

    requests: dict[str, Line] = field(default_factory=dict)
    answers: dict[str, Line] = field(default_factory=dict)
    names: dict[str, Line] = field(default_factory=dict)
    sources: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Dialect:
    provider: str
    asked: str
    """The field that only a request has."""
    answered: tuple[str, ...]
    """Fields that only an answer has."""
    request: Callable[[Line], tuple[str, Mapping[str, Any]]]
    """Model and body of a request."""
    response: Callable[[Line, Line | None], Response]
    """The response on a line, given its request's."""


def read_openai_batch(paths: Sequence[Path], *, allow_missing: bool = False) -> Imported:
    """The answers of an OpenAI batch. Raises DataError that names file and line, or the ids without an answer."""
    return _joined(paths, _OPENAI, allow_missing=allow_missing)


def read_anthropic_batch(paths: Sequence[Path], *, allow_missing: bool = False) -> Imported:
    """The answers of an Anthropic batch. Raises DataError that names file and line, or the ids without an answer."""
    return _joined(paths, _ANTHROPIC, allow_missing=allow_missing)


def _joined(paths: Sequence[Path], dialect: _Dialect, *, allow_missing: bool) -> Imported:
    batch = _Batch()
    for path in paths:
        _read(path, dialect, batch)
    files = ", ".join(map(str, paths))
    if not batch.answers:
        bad(files, "at least one answer", "none", _REMEDY)
    # The map names tasks, the input tells what was asked: an id that one of them has and the answers lack is missing.
    known = batch.requests or batch.names
    missing = tuple(custom_id for custom_id in known if custom_id not in batch.answers)
    if missing and not allow_missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        found = f"none for {len(missing)}: {', '.join(missing[:_SHOWN])}{more}"
        remedy = "Add the other files of the batch, also the file of errors; or pass --allow-missing to leave these ids out."
        bad(files, f"an answer or an error for each of {len(known)} ids", found, remedy)
    in_order = [custom_id for custom_id in dict.fromkeys([*known, *batch.answers]) if custom_id in batch.answers]
    rows: list[Recorded] = []
    places: dict[str, int] = {}
    for custom_id in in_order:
        line, asked = batch.answers[custom_id], batch.requests.get(custom_id)
        key, request = "", ""
        if batch.requests:
            if asked is None:
                bad(line.where, "an id of the input file", custom_id, _REMEDY)
            model, body = dialect.request(asked)
            key, request = keyed_request(asked.where, dialect.provider, model, body, _REMEDY)
        task_id, replicate, attempt = _cell(custom_id, line, batch.names)
        response = dialect.response(line, asked)
        rows.append(Recorded(task_id, replicate, attempt, response, key, request, places.setdefault(task_id, len(places))))
    return Imported(rows, batch.sources, missing)


def _read(path: Path, dialect: _Dialect, batch: _Batch) -> None:
    watch = Watch(path)
    for line in read_lines(path, remedy=_REMEDY, watch=watch):
        custom_id = text_field(line, "custom_id", _REMEDY)
        if dialect.asked in line.value:
            part = batch.requests
        elif any(name in line.value for name in dialect.answered):
            part = batch.answers
        elif "task_id" in line.value:
            part = batch.names
        else:
            told = f"`{dialect.asked}` (a request), {' or '.join(f'`{n}`' for n in dialect.answered)} (an answer), or {_MAP}"
            bad(line.where, told, f"the fields {', '.join(line.value)}", _REMEDY)
        if custom_id in part:
            bad(line.where, "each id once", f"{custom_id} again (first in {part[custom_id].where})", _REMEDY)
        part[custom_id] = line
    batch.sources.append(watch.source())


def _cell(custom_id: str, line: Line, names: Mapping[str, Line]) -> tuple[str, int, int]:
    if names:
        named = names.get(custom_id)
        if named is None:
            bad(line.where, "an id of the map", custom_id, _REMEDY)
        replicate, attempt = count_field(named, "replicate", _REMEDY), count_field(named, "attempt", _REMEDY)
        return text_field(named, "task_id", _REMEDY), replicate or 0, attempt or 0
    found = _ID.fullmatch(custom_id)
    return (found["task"], int(found["replicate"]), 0) if found else (custom_id, 0, 0)


def _openai_request(line: Line) -> tuple[str, Mapping[str, Any]]:
    return _body(line, "body")


def _anthropic_request(line: Line) -> tuple[str, Mapping[str, Any]]:
    return _body(line, "params")


def _body(line: Line, name: str) -> tuple[str, Mapping[str, Any]]:
    body = object_field(line, name, _REMEDY)
    model = body.get("model")
    if not isinstance(model, str):
        bad(line.where, f"`{name}.model`, a text", repr(model)[:80], _REMEDY)
    return model, {key: value for key, value in body.items() if key != "model"}


_READERS: Final[dict[str, Callable[[dict[str, Any]], Reading]]] = {
    "/v1/chat/completions": chat.read,
    "/v1/responses": responses.read,
    "chat.completion": chat.read,
    "response": responses.read,
}
"""By the address of the request, or by the kind of object that the answer says it is."""


def _openai_response(line: Line, asked: Line | None) -> Response:
    answer = line.value.get("response")
    if answer is None:
        error = line.value.get("error")
        if not isinstance(error, dict):
            bad(line.where, "`response` or `error`, an object", repr(error)[:80], _REMEDY)
        return _unanswered(f"batch: {as_json(error)}", as_json(error))
    body, status = (answer.get("body"), answer.get("status_code")) if isinstance(answer, dict) else (None, None)
    if not isinstance(body, dict) or type(status) is not int:
        bad(line.where, "`response` with `status_code` and `body`", repr(answer)[:80], _REMEDY)
    raw, request_id = as_json(body), text_of(answer.get("request_id"))
    if status != 200:
        return replace(_settled(of_status(status, raw, raw=raw, headers={}, env="its variable"), raw), request_id=request_id)
    place = str(asked.value.get("url")) if asked is not None else str(body.get("object"))
    reader = _READERS.get(place)
    if reader is None:
        bad((asked or line).where, "chat completions or responses", place, "Other kinds of answers hold no text to verify.")
    return replace(_settled(reader(body), raw), request_id=request_id)


def _anthropic_response(line: Line, _asked: Line | None) -> Response:
    result = object_field(line, "result", _REMEDY)
    kind = result.get("type")
    if kind == "succeeded" and isinstance(result.get("message"), dict):
        return _settled(messages.read(result["message"]), as_json(result["message"]))
    if kind == "errored":
        error = result.get("error")
        inner = error.get("error", error) if isinstance(error, dict) else error
        return _settled(NamedError(inner), as_json(error))
    if kind in ("canceled", "expired"):
        return _unanswered(f"batch: {kind}", as_json(result))
    return bad(line.where, "a result that succeeded with a message, errored, was canceled or expired", repr(result)[:120], _REMEDY)


def _settled(reading: Reading, raw: str) -> Response:
    """What a body comes to, in a batch that is over: nothing of it is asked again."""
    found = of_error(reading.error, raw=raw, headers={}, env="its variable") if isinstance(reading, NamedError) else reading
    if isinstance(found, Failure):
        kind = ResponseClass.MALFORMED if found.kind is Kind.MALFORMED else ResponseClass.INFRASTRUCTURE
        return replace(_unanswered(found.text, raw), response_class=kind)
    return replace(found, raw=raw, cost_usd=0.0)


def _unanswered(error: str, raw: str) -> Response:
    return Response(text="", response_class=ResponseClass.INFRASTRUCTURE, error=error, raw=raw, cost_usd=0.0, final=True)


_OPENAI: Final = _Dialect("openai", "body", ("response", "error"), _openai_request, _openai_response)
_ANTHROPIC: Final = _Dialect("anthropic", "params", ("result",), _anthropic_request, _anthropic_response)
