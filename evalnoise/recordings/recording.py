"""A recording in memory: strict look-ups, each way of failing with its own error, and a rehearsal before anything is run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from evalnoise.providers.base import Request, sendable
from evalnoise.recordings.nearest import nearest
from evalnoise.recordings.row import Asker, Recorded, numbered
from schemas.errors import DataError, ReplayExhaustedError, ReplayMissError, ReplayOrderError, StudyError

Order = Literal["time", "unknown"]

_TASKS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which response an asker gets."""

    kind: Literal["occurrence", "fixed"] = "occurrence"
    """`occurrence`: the n-th request of a key gets its n-th response, the n-th being known by its asker, so that no order of calls
    can change it. `fixed`: one response for every asker."""
    occurrence: int = 0
    """Kind `fixed`: which response of each request."""
    replicate: int | None = None
    """Kind `occurrence`: the recorded replicate that every replicate repeats; None: each its own."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A cell's first request, as a study will make it."""

    task_id: str
    request: Request


@dataclass(frozen=True)
class Recording:
    """Responses by who asked and by what was asked."""

    rows: Sequence[Recorded]
    source: str
    """Where the responses came from, for messages."""
    keyed: bool = True
    """Whether it is known what was asked; else a task's responses are told apart by their number alone."""
    order: Order = "time"
    """Whether occurrences are in the order of time."""
    sha256: str = ""
    """Digest of the file, or the manifest's: what a protocol pins."""
    size: int = 0
    """Bytes of the file, or of the contents."""
    not_asked: frozenset[str] = frozenset()
    """Tasks that no response is expected for, as far as the recording can know."""
    pairing: Pairing = Pairing(replicate=0)
    """Which response an asker gets, as the study says."""
    _askers: dict[Asker, Recorded] = field(init=False, repr=False, compare=False)
    _keys: dict[str, list[Recorded]] = field(init=False, repr=False, compare=False)
    """By request key, or by task without keys; in the order of occurrences."""
    _tasks: dict[str, list[Recorded]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        askers = {row.asker: row for row in self.rows}
        keys: dict[str, list[Recorded]] = {}
        tasks: dict[str, list[Recorded]] = {}
        for row in sorted(self.rows, key=lambda row: row.occurrence):
            keys.setdefault(row.request_key if self.keyed else row.task_id, []).append(row)
            tasks.setdefault(row.task_id, []).append(row)
        for name, value in (("_askers", askers), ("_keys", keys), ("_tasks", tasks)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_rows(cls, rows: Iterable[Recorded], *, source: str = "the recorded condition") -> Self:
        """A recording of rows whose occurrences are not counted yet. Raises DataError for two rows of one asker."""
        return cls(numbered(rows, source=source), source)

    @property
    def occurrences(self) -> int:
        """Responses that every task has at least."""
        return min((len(rows) for rows in self._tasks.values()), default=0)

    @property
    def task_ids(self) -> frozenset[str]:
        """Tasks that have a response."""
        return frozenset(self._tasks)

    def find(self, request: Request, asker: Asker, *, where: str = "") -> Recorded:
        """The response for an asker.

        Args:
            request: What it asks.
            asker: Task, replicate and attempt.
            where: What asks, for messages.

        Raises:
            ReplayMissError: The request was not recorded.
            ReplayExhaustedError: It was not recorded that often.
            ReplayOrderError: Another cell asked it.
        """
        if not self.keyed:
            return self._unkeyed(asker, where)
        if self.pairing.kind == "fixed":
            return self._fixed(request, asker, where)
        task_id, replicate, attempt = asker
        if self.pairing.replicate is not None:
            replicate = self.pairing.replicate
        row = self._askers.get((task_id, replicate, attempt))
        if row is None or row.request_key != request.key():
            raise self._not_found(request, (task_id, replicate, attempt), row, where)
        return row

    def _fixed(self, request: Request, asker: Asker, where: str) -> Recorded:
        key, number = request.key(), self.pairing.occurrence
        recorded = self._keys.get(key)
        if recorded is None:
            raise self._miss(request, asker, where)
        if number >= len(recorded):
            raise self._exhausted(where, f"occurrence {number} of request {key[:12]}", f"{len(recorded)} recorded")
        return recorded[number]

    def _not_found(self, request: Request, asker: Asker, row: Recorded | None, where: str) -> DataError:
        """Why an asker gets nothing; `row`: what that asker asked when it was recorded."""
        task_id, replicate, attempt = asker
        key = request.key()
        recorded = self._keys.get(key)
        if row is None and attempt and (task_id, replicate, 0) in self._askers:
            return self._exhausted(where, f"attempt {attempt} of the cell", "a cell that was recorded with fewer attempts")
        if recorded is None or (row is not None and attempt):
            # What a second attempt asks depends on how the first one ended, so another request is no changed order.
            return self._miss(request, asker, where)
        same = [other for other in recorded if other.task_id == task_id]
        if row is None and same:
            return self._exhausted(where, f"replicate {replicate} of request {key[:12]}", f"replicates {_replicates(same)}")
        return self._changed_order(key, recorded[0], where)

    def check_retry(self, retry: str, *, where: str = "retry") -> None:
        """Raise StudyError for a retry rule whose second attempt has no answer of its own: by its key, or by its place."""
        if retry == "none" or (self.keyed and (retry == "with-feedback" or self.pairing.kind == "occurrence")):
            return
        if self.keyed:
            expected = "none or with-feedback, because under `pairing: fixed` a resampled answer is the very one that failed"
        else:
            expected = "none, because a recording that does not know what was asked has no second attempts"
        raise StudyError(where, expected=expected, found=retry, remedy="Change the stack's `retry`.")

    def rehearse(self, asks: Sequence[Ask], replicates: int, *, where: str) -> None:
        """Find every first response that a study will ask for, before anything is run. Raises what `find` raises.

        Tasks of `not_asked` are left out: the source could not measure them, and the study may not be able to either.
        """
        if not self.keyed:
            self._require_tasks([ask.task_id for ask in asks], where)
        again = self.pairing.kind == "occurrence" and self.pairing.replicate is None
        for ask in asks:
            if sendable(ask.task_id) in self.not_asked and ask.task_id not in self._tasks:
                continue
            for replicate in range(replicates if again else 1):
                cell = f"{where}, task {ask.task_id}, replicate {replicate}, attempt 0"
                self.find(ask.request, (ask.task_id, replicate, 0), where=cell)

    def _unkeyed(self, asker: Asker, where: str) -> Recorded:
        task_id, replicate, attempt = asker
        rows = self._tasks.get(task_id)
        if attempt:
            raise ReplayExhaustedError(
                self._where(where),
                expected="a first attempt",
                found="a retry, of which this recording has no answer",
                remedy="Set the stack's `retry` to none.",
            )
        if rows is None:
            raise ReplayMissError(
                self._where(where),
                expected="recorded generations of every task",
                found="no generations for this task",
                remedy="Use the recording of this benchmark, whole.",
            )
        own = replicate if self.pairing.replicate is None else self.pairing.replicate
        number = self.pairing.occurrence if self.pairing.kind == "fixed" else own
        # A second attempt is an answer to another question, and a replicate that is missing is no place for the next one.
        first = [row for row in rows if row.attempt == 0]
        if number >= len(first):
            expected = f"at least {number + 1} generations of each task (pairing {self.pairing.kind})"
            raise self._exhausted(where, expected, f"{len(first)} of {task_id}")
        found = first[number] if self.pairing.kind == "fixed" else self._askers.get((task_id, own, 0))
        if found is None:
            raise self._exhausted(where, f"replicate {own} of {task_id}", f"replicates {_replicates(first)}")
        return found

    def _require_tasks(self, task_ids: Sequence[str], where: str) -> None:
        missing = [task_id for task_id in task_ids if task_id not in self._tasks]
        if missing:
            more = f" and {len(missing) - _TASKS_SHOWN} more" if len(missing) > _TASKS_SHOWN else ""
            raise ReplayMissError(
                self._where(where),
                expected=f"generations of all {len(task_ids)} tasks",
                found=f"none of {', '.join(missing[:_TASKS_SHOWN])}{more}",
                remedy="Use the recording of this benchmark, whole.",
            )

    def _where(self, where: str) -> str:
        return f"replay of {self.source}{', ' if where else ''}{where}"

    def _exhausted(self, where: str, expected: str, found: str) -> ReplayExhaustedError:
        remedy = "Ask for fewer replicates, name a smaller `occurrence`, or record more; a replay never calls live."
        return ReplayExhaustedError(self._where(where), expected=expected, found=found, remedy=remedy)

    def _changed_order(self, key: str, recorded: Recorded, where: str) -> ReplayOrderError:
        return ReplayOrderError(
            self._where(where),
            expected=f"request {key[:12]} from the cell that it was recorded for",
            found=f"one that task {recorded.task_id}, replicate {recorded.replicate}, attempt {recorded.attempt} asked then",
            remedy="Pairing by occurrence needs the same cells to ask the same requests; `pairing: fixed` does not.",
        )

    def _miss(self, request: Request, asker: Asker, where: str) -> ReplayMissError:
        return ReplayMissError(
            self._where(where),
            expected=f"a recorded answer to request {request.key()[:12]}",
            found=self._nearest(request, asker[0]),
            remedy="Make the replay's requests equal to the recorded ones, or record anew; a replay never calls live.",
        )

    def _nearest(self, request: Request, task_id: str) -> str:
        """The recorded request that is least different, and where it differs."""
        if not self._keys:
            return "an empty recording"
        rows: Iterable[Recorded] = self._tasks.get(task_id) or (rows[0] for rows in self._keys.values())
        known: Mapping[str, str] = {row.request_key: row.request for row in rows}
        found = nearest(request.canonical().decode(), known.items())
        if found is None:
            return f"none; nearest is request {next(iter(known))[:12]}, whose fields were not recorded"
        return f"none; nearest is {found}"


def _replicates(rows: Iterable[Recorded]) -> str:
    """The replicates of some rows, as a reader says them."""
    numbers = sorted({row.replicate for row in rows})
    if numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))
