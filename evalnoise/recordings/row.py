"""One recorded response with the cell that asked for it, and how it is stored as a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from evalnoise.canonical import escape_surrogates, restore_surrogates
from schemas.errors import DataError
from schemas.records import Response, ResponseClass

Asker = tuple[str, int, int]
"""Task, replicate and attempt: the cell and attempt that asked."""

FACTS: Final = ("finish_reason", "refusal", "reasoning", "error", "response_id", "request_id", "served_model", "fingerprint")
"""Texts of a response beside the answer; columns of `calls` and of recordings bear these names."""
COUNTS: Final = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
"""Its counts, likewise."""
NOT_ANSWERED: Final = (ResponseClass.INFRASTRUCTURE, ResponseClass.MALFORMED)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A response, what was asked, and who asked it."""

    task_id: str
    replicate: int
    """Counted from 0 inside the recording."""
    attempt: int
    response: Response
    request_key: str = ""
    """SHA-256 of the normalised request; empty where nobody knows what was asked."""
    request: str = ""
    """The normalised request, canonical JSON; empty where unknown."""
    position: int = 0
    """Place of the task in the benchmark's order, or in the imported file."""
    occurrence: int = 0
    """Which response to this request it is; without a key, to this task. `numbered` sets it."""

    @property
    def asker(self) -> Asker:
        """The cell and attempt that asked."""
        return self.task_id, self.replicate, self.attempt


def numbered(rows: Iterable[Recorded], *, source: str) -> list[Recorded]:
    """The rows with their occurrences counted: by replicate, then in the benchmark's order, then by attempt.

    That is the order in which a study asks, whatever was faster. Raises DataError if an asker is there twice.
    """
    ordered = sorted(rows, key=lambda row: (row.replicate, row.position, row.task_id, row.attempt))
    askers: set[Asker] = set()
    counts: dict[tuple[str, str], int] = {}
    found = []
    for row in ordered:
        if row.asker in askers:
            raise DataError(
                f"{source}, task {row.task_id}, replicate {row.replicate}, attempt {row.attempt}",
                expected="one recorded response",
                found="two",
                remedy="Record each replicate once; in a file, give the repeats of a task replicates of their own.",
            )
        askers.add(row.asker)
        key = (row.request_key, "" if row.request_key else row.task_id)
        found.append(replace(row, occurrence=counts.get(key, 0)))
        counts[key] = counts.get(key, 0) + 1
    return found


def to_row(recorded: Recorded) -> dict[str, Any]:
    """The row of table `recorded`."""
    response = recorded.response
    texts = {name: getattr(response, name) for name in ("text", *FACTS)} | {"task_id": recorded.task_id, "response": response.raw}
    escaped = []
    for name, text in texts.items():
        texts[name], changed = escape_surrogates(text)
        if changed:
            escaped.append(name)
    return {
        **texts,
        **{name: getattr(response, name) for name in COUNTS},
        "request_key": recorded.request_key,
        "occurrence": recorded.occurrence,
        "position": recorded.position,
        "replicate": recorded.replicate,
        "attempt": recorded.attempt,
        "request": recorded.request,
        "response_class": response.response_class.value,
        "from_cache": response.from_cache,
        # As ASCII, so that no header can hold what a column cannot.
        "headers": json.dumps(dict(response.headers), sort_keys=True),
        "escaped": sorted(escaped),
    }


def from_row(row: Mapping[str, Any]) -> Recorded:
    """What `to_row` was given. Its cost is 0: reading a recording costs nothing, whatever it cost then."""
    escaped = frozenset(row["escaped"])
    texts: dict[str, Any] = {
        name: restore_surrogates(row[name], escaped=name in escaped) for name in ("text", *FACTS, "task_id", "response")
    }
    response_class = ResponseClass(row["response_class"])
    return Recorded(
        task_id=texts.pop("task_id"),
        replicate=row["replicate"],
        attempt=row["attempt"],
        response=Response(
            response_class=response_class,
            raw=texts.pop("response"),
            **texts,
            **{name: row[name] for name in COUNTS},
            from_cache=row["from_cache"],
            headers=json.loads(row["headers"]),
            cost_usd=0.0,
            # Asking a recording again changes nothing.
            final=response_class in NOT_ANSWERED,
        ),
        request_key=row["request_key"],
        request=row["request"],
        position=row["position"],
        occurrence=row["occurrence"],
    )


def complete_replicates(rows: Sequence[Recorded]) -> int:
    """Replicates 0, 1, … of which every task has a first attempt."""
    first: dict[str, set[int]] = {}
    for row in rows:
        if row.attempt == 0:
            first.setdefault(row.task_id, set()).add(row.replicate)
    shared = set.intersection(*first.values()) if first else set()
    return next(n for n in range(len(shared) + 1) if n not in shared)
