"""The journal of a shard: every provider call, fsynced before it is sent and before its answer counts.

Calls that end at about the same time share one write and one fsync (group commit): a thread writes what has gathered while the
last fsync ran. It ends by itself when nothing more comes, so a journal needs no closing.

On a full disk the reserve (`evalnoise.store.reserve`) makes room for the answers of calls in flight; no further call is let out.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from evalnoise.store.files import make_folder, reading, sync_folder, write_all, writing
from evalnoise.store.lines import encode_line, parse_lines
from evalnoise.store.reserve import is_full, reserve_in
from schemas.errors import StoreError

_LOG = logging.getLogger(__name__)
_IDLE_SECONDS = 1.0
_BATCH = 512
_REMEDY = (
    "The journal was changed by something else than evalnoise, or the disk is failing. Restore it from a copy; or move it aside, "
    "and this shard's calls are made again."
)


@dataclass(frozen=True, slots=True)
class _Line:
    kind: str
    data: bytes
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]


class Journal:
    """Append-only record of the calls of one shard. Use it from one process at a time; any event loop or thread may append."""

    def __init__(self, path: Path) -> None:
        """Open the journal, made at the first append; cut what a killed writer left unfinished.

        Raises:
            StoreError: A line is damaged; it names the line.
        """
        self.path = path
        self._answers: dict[str, dict[str, Any]] = {}
        self._sent: dict[str, dict[str, Any]] = {}
        self._size = 0
        self._reserve = reserve_in(path.parent)
        self._queue: queue.SimpleQueue[_Line] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._writer: threading.Thread | None = None
        self._broken: StoreError | None = None
        if path.exists():
            self._load()

    @property
    def shard(self) -> str:
        """The shard whose calls they are."""
        return unquote(self.path.stem)

    def answers(self) -> dict[str, dict[str, Any]]:
        """The answered records by the id of their call; of several for one call the latest."""
        return dict(self._answers)

    def sent_ids(self) -> tuple[str, ...]:
        """Ids of the calls that were sent, in the order of their sending."""
        return tuple(self._sent)

    def sent_record(self, call: str) -> dict[str, Any] | None:
        """What was noted when the call was sent; None: it was not."""
        return self._sent.get(call)

    def answered_record(self, call: str) -> dict[str, Any] | None:
        """What was noted when the call was answered; None: it was not."""
        return self._answers.get(call)

    def unanswered(self) -> dict[str, dict[str, Any]]:
        """Records of calls that were sent and never answered: they may have been billed."""
        return {call: record for call, record in self._sent.items() if call not in self._answers}

    async def sent(self, call: str, record: Mapping[str, Any]) -> None:
        """Note that a call is about to be sent; returns when that is on disk.

        Raises:
            StoreError: It is not on disk, or there is no room for the answer: do not send the call.
        """
        await self._append("sent", call, record)
        self._sent[call] = dict(record)

    async def answered(self, call: str, record: Mapping[str, Any]) -> None:
        """Note a call's answer; returns when it is on disk, and only then does it count. Raises StoreError."""
        await self._append("answered", call, record)
        self._answers[call] = dict(record)

    def _load(self) -> None:
        with reading(self.path):
            data = self.path.read_bytes()
        # A complete line that does not fit its checksum may be a paid answer, so it is never dropped silently, not even at the end.
        parsed = parse_lines(self.path, data, remedy=_REMEDY, last_may_be_bad=False)
        for number, line in enumerate(parsed.records, 1):
            records = {"sent": self._sent, "answered": self._answers}.get(str(line.get("kind")))
            if records is None or not isinstance(line.get("id"), str) or not isinstance(line.get("record"), dict):
                where = f"{self.path}, line {number}"
                expected = "kind sent or answered, an id and a record"
                raise StoreError(where, expected=expected, found=f"the keys {', '.join(line)}", remedy=_REMEDY)
            records[line["id"]] = line["record"]
        self._size = parsed.good_bytes
        if len(data) > parsed.good_bytes:
            _LOG.warning("%s: cut %d bytes of an unfinished line", self.path, len(data) - parsed.good_bytes)
            with writing(self.path), self.path.open("r+b") as file:
                file.truncate(parsed.good_bytes)
                os.fsync(file.fileno())

    async def _append(self, kind: str, call: str, record: Mapping[str, Any]) -> None:
        try:
            data = encode_line({"kind": kind, "id": call, "record": dict(record)})
        except ValueError as error:
            remedy = "This is a fault in the code that made the record; the journal is unchanged."
            where = f"{self.path}, call {call}"
            raise StoreError(where, expected="a record that JSON can hold", found=str(error), remedy=remedy) from None
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        with self._guard:
            if self._broken is not None:
                raise self._broken
            self._queue.put(_Line(kind, data, loop, done))
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_loop, name=f"journal {self.path.name}", daemon=True)
                self._writer.start()
        await done

    def _write_loop(self) -> None:
        end = _End(self.path)
        try:
            while batch := self._next_batch():
                try:
                    self._take(end, batch)
                except StoreError as error:
                    self._fail(error, batch)
                    return
        finally:
            end.close()

    def _take(self, end: _End, batch: list[_Line]) -> None:
        """Write a batch and settle its lines. Raises StoreError when the journal cannot go on."""
        sent = [line for line in batch if line.kind == "sent"]
        answered = [line for line in batch if line.kind == "answered"]
        if sent:
            try:
                self._reserve.ensure()
            except StoreError as error:
                _settle(sent, error)
                sent, batch = [], answered
        if not batch or self._written(end, batch):
            return
        _settle(sent, self._reserve.refusal())
        for line in answered:
            # One by one: each that still fits is saved.
            if not self._written(end, [line]):
                self._reserve.count(lost=1)
                _settle([line], self._reserve.refusal())

    def _written(self, end: _End, lines: list[_Line]) -> bool:
        """Whether the lines are on disk, and settled; if not, the disk is full. Raises StoreError for any other trouble."""
        data = b"".join(line.data for line in lines)
        with writing(self.path):
            try:
                end.append(data)
            except OSError as error:
                if not is_full(error):
                    with suppress(OSError):
                        end.cut(self._size)
                    raise
                # Before the cut, because some file systems need room even for that.
                self._reserve.release()
                end.cut(self._size)
                return False
        self._size += len(data)
        self._reserve.count(saved=sum(line.kind == "answered" for line in lines))
        _settle(lines, None)
        return True

    def _next_batch(self) -> list[_Line]:
        """Everything that has gathered, at least one line; empty when nothing came for a while, and then the writer is gone."""
        try:
            batch = [self._queue.get(timeout=_IDLE_SECONDS)]
        except queue.Empty:
            with self._guard:
                if self._queue.empty():
                    self._writer = None
                    return []
            batch = [self._queue.get()]
        with suppress(queue.Empty):
            while len(batch) < _BATCH:
                batch.append(self._queue.get_nowait())
        return batch

    def _fail(self, error: StoreError, batch: list[_Line]) -> None:
        """After a failed write nothing is known of the disk, so this journal takes no more lines."""
        with self._guard:
            self._broken = error
            self._writer = None
            with suppress(queue.Empty):
                while True:
                    batch.append(self._queue.get_nowait())
        _settle(batch, error)


class _End:
    """The end of the file, open for one writer. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def append(self, data: bytes) -> None:
        """Write and fsync."""
        if self._descriptor is None:
            make_folder(self._path.parent)
            new = not self._path.exists()
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            if new:
                sync_folder(self._path.parent)
        write_all(self._descriptor, data)
        os.fsync(self._descriptor)

    def cut(self, size: int) -> None:
        """Remove what a failed append left: a line after half a line would read as damage."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        """Close the file if it was opened."""
        if self._descriptor is not None:
            os.close(self._descriptor)


def _settle(batch: list[_Line], error: StoreError | None) -> None:
    # Each loop is woken once, for waking it costs more than all else here.
    waiting: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for line in batch:
        waiting.setdefault(line.loop, []).append(line.done)
    for loop, futures in waiting.items():
        with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(_resolve, futures, error)


def _resolve(futures: list[asyncio.Future[None]], error: StoreError | None) -> None:
    for done in futures:
        if done.done():  # cancelled by its waiter
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
