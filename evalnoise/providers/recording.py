"""Recorded responses and the provider that replays them: strict, with no way to a network.

A recording is imported from a file of generations (its requests are task ids: what was sent is not in the file), or made from the
rows of a live condition of the same study (its requests are that condition's, by key).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from evalnoise.canonical import canonical_json, restore_surrogates, sha256_text
from evalnoise.providers.base import CallContext, Prompt, Request, RequestMaker, sendable
from evalnoise.providers.generations import read_generations
from schemas.errors import DataError, ReplayMissError
from schemas.provider import RecordingProvider as RecordingSpec
from schemas.records import Response, ResponseClass

Order = Literal["time", "unknown"]
Pairing = Literal["occurrence", "fixed"]

_PATHS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Recording:
    """Responses by task and request key, in the order of their occurrence."""

    responses: Mapping[tuple[str, str], Mapping[int, Response]]
    """By (task id, request key), then by occurrence. The task is part of it, since two tasks may ask the same question. The
    key is empty in an imported file, which does not say what was asked."""
    keyed: bool
    """Whether request keys were recorded."""
    occurrences: int
    """Answers recorded of every request; 1 for a recording of one replicate."""
    order: Order
    """Whether occurrences are in the order of their recording."""
    sha256: str
    """Digest of the file, or over the rows."""
    size: int
    """Bytes of the file, or of the rows in canonical JSON."""
    source: str
    """Where the responses came from, for messages."""
    requests: Mapping[str, Any] = field(default_factory=dict)
    """Normalised requests by key, where they were recorded; for messages about a miss."""

    @classmethod
    def from_generations_file(cls, spec: RecordingSpec, task_ids: Sequence[str], *, replicates: int = 1) -> Recording:
        """Import a file of recorded generations.

        Args:
            spec: Where the file is, which digest it must have and how it is paired.
            task_ids: Tasks that must be in it; others in it are checked and left out.
            replicates: Replicates that will ask; pairing ``occurrence`` needs as many occurrences.
        """
        path = Path(spec.path)
        contents = read_generations(path, wanted=frozenset(task_ids), sha256=spec.sha256)
        _require_tasks(path, task_ids, contents.generations)
        needed = spec.occurrence + 1 if spec.pairing == "fixed" else replicates
        if contents.occurrences < needed:
            raise DataError(
                str(path),
                expected=f"at least {needed} generations for each task (pairing {spec.pairing})",
                found=f"{contents.occurrences}",
                remedy="Lower `replicates`, name a smaller `occurrence`, or use `pairing: fixed`.",
            )
        responses = {
            (task_id, ""): {n: _recorded(text) for n, text in enumerate(contents.generations[task_id])} for task_id in task_ids
        }
        return cls(
            responses,
            keyed=False,
            occurrences=contents.occurrences,
            order=spec.order,
            sha256=contents.sha256,
            size=contents.size,
            source=str(path),
        )

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], *, source: str = "the recorded condition") -> Recording:
        """Make a recording of one replicate from its generation rows; the attempt is the occurrence.

        A row has `task_id`, `attempt`, `request_key`, `text` and `response_class`; it may have `text_escaped`, the columns of
        `calls` about the answer, and `request` (canonical JSON), which makes the message of a miss say what differs.
        """
        responses: dict[tuple[str, str], dict[int, Response]] = {}
        requests: dict[str, Any] = {}
        facts: list[list[Any]] = []
        for row in rows:
            key, task_id, attempt = str(row["request_key"]), str(row["task_id"]), int(row["attempt"])
            answers = responses.setdefault((task_id, key), {})
            if attempt in answers:
                raise DataError(
                    f"{source}, task {task_id}, attempt {attempt}",
                    expected="one recorded answer",
                    found="two",
                    remedy="Record one replicate of one condition.",
                )
            answers[attempt] = _from_row(row)
            facts.append([key, sendable(task_id), attempt, str(row["response_class"]), sha256_text(answers[attempt].text)])
            if row.get("request"):
                requests[key] = json.loads(row["request"])
        body = canonical_json(sorted(facts))
        return cls(
            responses,
            keyed=True,
            occurrences=1,
            order="time",
            sha256=hashlib.sha256(body).hexdigest(),
            size=len(body),
            source=source,
            requests=requests,
        )

    def answers(self, task_id: str, request_key: str) -> Mapping[int, Response] | None:
        """The recorded answers to one request of a task, by occurrence."""
        return self.responses.get((task_id, request_key if self.keyed else ""))


def task_request_maker(model: str) -> RequestMaker:
    """Requests of an imported recording: the task is all that is known of what was asked."""

    def make(_prompt: Prompt, context: CallContext) -> Request:
        return Request("recording", model, {"task": sendable(context.task.id)})

    return make


class RecordingProvider:
    """Replays a recording. It holds no client, so a miss cannot become a live call."""

    journalled = False
    address = ""
    max_retries = 0

    def __init__(self, recording: Recording, make: RequestMaker, *, name: str, pick: Callable[[CallContext], int | None]) -> None:
        self.name = name
        """Kind of provider whose requests are replayed."""
        self._recording = recording
        self._make = make
        self._pick = pick

    @classmethod
    def imported(cls, recording: Recording, spec: RecordingSpec, make: RequestMaker) -> RecordingProvider:
        """Replay an imported file: replicate r gets occurrence r, or all get one. A second attempt was not recorded."""

        def pick(context: CallContext) -> int | None:
            if context.attempt:
                return None
            return spec.occurrence if spec.pairing == "fixed" else context.replicate

        return cls(recording, make, name="recording", pick=pick)

    @classmethod
    def of_condition(cls, recording: Recording, make: RequestMaker, *, name: str) -> RecordingProvider:
        """Replay a live condition: every replicate gets the recorded replicate's answers, attempt by attempt."""
        return cls(recording, make, name=name, pick=lambda context: context.attempt)

    def request(self, prompt: Prompt, context: CallContext) -> Request:
        """The request that the recording must hold."""
        return self._make(prompt, context)

    def occurrence(self, context: CallContext) -> int:
        """The recorded occurrence that answers. Raises ReplayMissError if there can be none."""
        picked = self._pick(context)
        if picked is None:
            self._miss(self._make("", context), context, None)
        return picked

    async def send(self, request: Request, context: CallContext) -> Response:
        """The recorded answer. Raises ReplayMissError."""
        occurrence = self.occurrence(context)
        answers = self._recording.answers(context.task.id, request.key())
        if answers is None or occurrence not in answers:
            self._miss(request, context, occurrence)
        return answers[occurrence]

    async def close(self) -> None:
        """Nothing to let go of."""

    def _miss(self, request: Request, context: CallContext, occurrence: int | None) -> NoReturn:
        where = (
            f"replay of {self._recording.source}, stack {context.stack}, condition {context.condition}, task {context.task.id}, "
            f"replicate {context.replicate}, attempt {context.attempt}"
        )
        key = request.key()
        answers = self._recording.answers(context.task.id, key)
        if occurrence is None:
            expected, found = "a first attempt", "a retry, of which an imported recording has no answer"
            remedy = "Set the stack's `retry` to none."
        elif answers is not None:
            expected, found = f"occurrence {occurrence} of request {key[:12]}", f"occurrences {sorted(answers)}"
            remedy = "Record a condition with the same retry rule, or ask for fewer replicates."
        else:
            expected, found = f"a recorded answer to request {key[:12]}", self._nearest(request, context)
            remedy = "Make the replay's requests equal to the recorded ones, or record anew; a replay never calls live."
        raise ReplayMissError(where, expected=expected, found=found, remedy=remedy)

    def _nearest(self, request: Request, context: CallContext) -> str:
        """The recorded request that is least different, and where it differs."""
        keys = [key for task_id, key in self._recording.responses if task_id == context.task.id]
        if not keys:
            keys = list(dict.fromkeys(key for _, key in self._recording.responses))
        if not keys:
            return "an empty recording"
        if not self._recording.keyed:
            return "no generations for this task"
        asked = json.loads(request.canonical())
        compared = [(differing_paths(asked, self._recording.requests[key]), key) for key in keys if key in self._recording.requests]
        if not compared:
            return f"none; nearest is request {keys[0][:12]}, whose fields were not recorded"
        paths, nearest = min(compared, key=lambda pair: (len(pair[0]), pair[1]))
        shown = ", ".join(paths[:_PATHS_SHOWN]) + (f" and {len(paths) - _PATHS_SHOWN} more" if len(paths) > _PATHS_SHOWN else "")
        return f"none; nearest is request {nearest[:12]}, which differs at {shown or 'no field'}"


def differing_paths(left: Any, right: Any, path: str = "$") -> list[str]:
    """JSON paths at which two JSON values differ, in order."""
    if isinstance(left, dict) and isinstance(right, dict):
        names = sorted(left.keys() | right.keys())
        absent = object()
        return [p for n in names for p in differing_paths(left.get(n, absent), right.get(n, absent), f"{path}.{n}")]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [p for n, (a, b) in enumerate(zip(left, right, strict=True)) for p in differing_paths(a, b, f"{path}[{n}]")]
    return [] if type(left) is type(right) and left == right else [path]


def _require_tasks(path: Path, task_ids: Sequence[str], found: Collection[str]) -> None:
    missing = [task_id for task_id in task_ids if task_id not in found]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise DataError(
            str(path),
            expected=f"generations for all {len(task_ids)} tasks",
            found=f"none for {', '.join(missing[:5])}{more}",
            remedy="Use the recording of this benchmark, whole.",
        )


def _recorded(text: str) -> Response:
    # Reading a recording costs nothing now; what it cost then is not in the file.
    return Response(text=text, response_class=ResponseClass.COMPLETE if text.strip() else ResponseClass.EMPTY, cost_usd=0.0)


def _from_row(row: Mapping[str, Any]) -> Response:
    return Response(
        text=restore_surrogates(str(row["text"]), escaped=bool(row.get("text_escaped"))),
        response_class=ResponseClass(row["response_class"]),
        finish_reason=str(row.get("finish_reason") or ""),
        refusal=str(row.get("refusal") or ""),
        response_id=str(row.get("response_id") or ""),
        served_model=str(row.get("served_model") or ""),
        fingerprint=str(row.get("fingerprint") or ""),
        input_tokens=row.get("input_tokens"),
        output_tokens=row.get("output_tokens"),
        cost_usd=0.0,
        raw=str(row.get("response") or ""),
        error=str(row.get("error") or ""),
    )
