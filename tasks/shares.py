"""Shares of answers that are not complete: counted over all runs of a protocol, and more than the study allows end the run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from evalnoise.store.files import reading
from evalnoise.store.store import StudyStore
from schemas.errors import ShareError, StoreError
from schemas.records import ResponseClass
from schemas.responses import MaxShare
from schemas.tables import GENERATIONS, VERDICTS

FROM: Final = 50
"""Answers from which on a share counts; in fewer, chance makes too much of it."""

_LIMITED: Final = tuple(ResponseClass(name) for name in MaxShare.model_fields)
_ANSWERED: Final = frozenset(ResponseClass) - {ResponseClass.INFRASTRUCTURE}
_REMEDIES: Final = {
    ResponseClass.TRUNCATED: "Raise `max_tokens`, which makes another protocol",
    ResponseClass.MALFORMED: "Find out what the server sends in the place of answers",
}
_REMEDY: Final = "Read some of the answers in the journal, and mend the prompt or take another model"


@dataclass(frozen=True, slots=True)
class Planned:
    """What a study plans for a stack under a condition."""

    shards: tuple[str, ...]
    """Names of its shards."""
    answers: int
    """Answers that there can be, second attempts aside."""


class AnswerShares:
    """Counts of answers by class, of each stack under each condition or judge condition. Safe to use from several threads."""

    def __init__(self, limits: MaxShare) -> None:
        self._limits = limits
        self._counts: dict[tuple[str, str], Counter[ResponseClass]] = {}
        self._from: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def begin(self, store: StudyStore, stack: str, condition: str, planned: Callable[[], Planned]) -> None:
        """Count what earlier runs left, unless that is done. Call it before the first of the condition's calls is sent.

        Args:
            store: Where it lies.
            stack: The stack.
            condition: The condition or judge condition.
            planned: Says what is planned for them.

        Raises:
            ShareError: One share is over its limit: nothing more is to be asked.
            StoreError: What earlier runs left cannot be read.
        """
        key = (stack, condition)
        with self._lock:
            if key not in self._counts:
                plan = planned()
                self._counts[key] = Counter(_earlier(store, plan.shards))
                self._from[key] = min(FROM, plan.answers)
            self._refuse(key)

    def count(self, stack: str, condition: str, response_class: ResponseClass) -> None:
        """Count an answer that this run got. Raises ShareError when one share is over its limit."""
        key = (stack, condition)
        with self._lock:
            self._counts.setdefault(key, Counter())[response_class] += 1
            self._refuse(key)

    def _refuse(self, key: tuple[str, str]) -> None:
        counts = self._counts[key]
        answers = sum(counts[one] for one in _ANSWERED)
        if answers == 0 or answers < self._from.get(key, FROM):
            return
        for one in _LIMITED:
            limit: float = getattr(self._limits, one.value)
            if counts[one] > limit * answers:
                raise ShareError(
                    f"stack {key[0]}, condition {key[1]}",
                    expected=f"at most {100 * limit:g} % of the answers to be {one.value} (limits.max_share.{one.value})",
                    found=f"{counts[one]} of {answers}, {100 * counts[one] / answers:.0f} %, so nothing more is asked",
                    remedy=f"{_REMEDIES.get(one, _REMEDY)}; or raise limits.max_share.{one.value} and run the same command again: "
                    "the answers so far are in the journal and are not asked for again.",
                )


def _earlier(store: StudyStore, shards: tuple[str, ...]) -> Iterator[ResponseClass]:
    """Classes of the answers in sealed files, and in the journals of shards that are not sealed."""
    # One look at the manifest for both sources: a shard that is sealed meanwhile must not count twice, or not at all.
    live = store.manifest.live
    for shard in shards:
        if shard in live:
            for file in live[shard]:
                if file.table in {GENERATIONS.name, VERDICTS.name}:
                    yield from _sealed(store, file.path)
        else:
            yield from _journalled(store, shard)


def _sealed(store: StudyStore, name: str) -> Iterator[ResponseClass]:
    path = store.path / name
    try:
        with reading(path):
            column: Any = pq.ParquetFile(path).read(columns=["response_class"]).column("response_class")
    except pa.ArrowInvalid as error:
        remedy = "Run the same command again: the damaged shard is redone."
        raise StoreError(str(path), expected="a Parquet file", found=str(error)[:200], remedy=remedy) from None
    yield from (ResponseClass(value) for value in column.to_pylist())


def _journalled(store: StudyStore, shard: str) -> Iterator[ResponseClass]:
    for record in store.journal(shard).answers().values():
        if "response" in record:
            yield ResponseClass(record["response"]["response_class"])
