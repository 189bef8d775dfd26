"""The manifest of one protocol of one study: which shards are sealed, by which files, with which digests.

It is the only truth about what is done. Lines are appended, never changed; one shard's lines go in one write, and a shard
counts only when all of its files are announced. A later commit of a shard replaces the earlier one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from evalnoise.store.files import make_folder, reading, sync_folder, write_all, writing
from evalnoise.store.lines import encode_line, parse_lines
from schemas.errors import StoreError

_LOG = logging.getLogger(__name__)
_REMEDY = (
    "The manifest was changed by something else than evalnoise, or the disk is failing. Restore it from a copy; or move the "
    "folder aside and run the study again."
)


@dataclass(frozen=True, slots=True)
class SealedFile:
    """One sealed file, as its manifest line says."""

    shard: str
    path: str
    """Relative to the manifest's folder, with slashes."""
    table: str
    rows: int
    sha256: str
    bytes: int
    of: int
    """Files of this commit of the shard."""
    commit: int
    """Number, in the manifest, of the line that begins this commit."""
    inputs: tuple[str, ...] = ()
    lineage: Mapping[str, Any] = field(default_factory=dict)

    def line(self) -> dict[str, Any]:
        """The manifest line."""
        facts = {name: getattr(self, name) for name in ("shard", "path", "table", "rows", "sha256", "bytes", "of", "commit")}
        return {"kind": "sealed", **facts, "inputs": list(self.inputs), "lineage": dict(self.lineage)}


@dataclass(slots=True)
class _State:
    """What the lines read so far come to."""

    size: int = 0
    lines: int = 0
    frozen: dict[str, Any] | None = None
    planned: tuple[str, ...] = ()
    live: dict[str, tuple[SealedFile, ...]] = field(default_factory=dict)
    open: dict[tuple[str, int], list[SealedFile]] = field(default_factory=dict)
    superseded: set[str] = field(default_factory=set)
    others: list[dict[str, Any]] = field(default_factory=list)


class Manifest:
    """The manifest file. Readers and one writing process may use it at the same time; safe for threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.RLock()
        self._state = _State()

    @property
    def frozen(self) -> dict[str, Any] | None:
        """The first line: protocol, study, frozen_at, host, package version, git commit. None before the freeze."""
        return self._read().frozen

    @property
    def planned(self) -> tuple[str, ...]:
        """Names of the shards of the whole study by the latest plan; empty without one."""
        return self._read().planned

    @property
    def live(self) -> dict[str, tuple[SealedFile, ...]]:
        """The sealed files of every sealed shard, latest commit, in the order of sealing."""
        return dict(self._read().live)

    @property
    def superseded(self) -> set[str]:
        """Paths of sealed files that a later commit replaced; some may be in force again."""
        return set(self._read().superseded)

    @property
    def others(self) -> list[dict[str, Any]]:
        """Lines of other kinds than frozen, planned and sealed, in order."""
        return list(self._read().others)

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Append lines in one write and fsync. Raises StoreError."""
        with self._writable() as descriptor:
            self._write(descriptor, records)

    def seal(self, files: Sequence[SealedFile]) -> None:
        """Append all lines of one commit of a shard; sets their `of` and `commit`. Raises StoreError."""
        with self._writable() as descriptor:
            number = self._state.lines + 1
            lines = [file.line() | {"of": len(files), "commit": number} for file in files]
            self._write(descriptor, lines)

    def freeze(self, facts: Mapping[str, Any]) -> None:
        """Write the first line unless it is there. Raises StoreError if another protocol was frozen here."""
        with self._writable() as descriptor:
            there = self._state.frozen
            if there is None:
                self._write(descriptor, [{"kind": "frozen", **facts}])
            elif there.get("protocol") != facts["protocol"]:
                found = f"protocol {there.get('protocol')}"
                remedy = "Two protocols share their first twelve digits; change the study a little, for instance its seed."
                raise StoreError(str(self.path), expected=f"protocol {facts['protocol']}", found=found, remedy=remedy)

    def cut_torn_tail(self) -> None:
        """Remove what a killed writer left unfinished. Raises StoreError."""
        if self.path.exists():
            with self._writable():
                pass

    @contextmanager
    def _writable(self) -> Iterator[int]:
        """The open file under an exclusive lock, its torn tail cut, the state up to date."""
        make_folder(self.path.parent)
        with self._guard:
            new = not self.path.exists()
            with writing(self.path):
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                with writing(self.path):
                    if new:
                        sync_folder(self.path.parent)
                    # Held for one append only, so it is taken at once unless another process of the same run appends.
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                    self._read()
                    size = os.fstat(descriptor).st_size
                    if size > self._state.size:
                        _LOG.warning("%s: cut %d bytes of an unfinished line", self.path, size - self._state.size)
                        os.ftruncate(descriptor, self._state.size)
                        os.fsync(descriptor)
                yield descriptor
            finally:
                os.close(descriptor)

    def _write(self, descriptor: int, records: Sequence[Mapping[str, Any]]) -> None:
        data = b"".join(encode_line(record) for record in records)
        try:
            with writing(self.path):
                write_all(descriptor, data)
                os.fsync(descriptor)
        except StoreError:
            # Half a commit would be ignored by every reader; removing it keeps the file tidy where the disk still allows it.
            with suppress(OSError):
                os.ftruncate(descriptor, self._state.size)
            raise
        self._read()

    def _read(self) -> _State:
        with self._guard:
            if not self.path.exists():
                self._state = _State()
                return self._state
            with reading(self.path):
                size = self.path.stat().st_size
                if size == self._state.size:
                    return self._state
                if size < self._state.size:
                    self._state = _State()
                with self.path.open("rb") as file:
                    file.seek(self._state.size)
                    data = file.read()
            before = self._state.lines
            parsed = parse_lines(self.path, data, remedy=_REMEDY, last_may_be_bad=True, first_line=before + 1)
            try:
                for record in parsed.records:
                    self._state.lines += 1
                    self._apply(record)
            except StoreError:
                self._state = _State()  # half-applied lines must not be applied twice by the next read
                raise
            self._state.size += parsed.good_bytes
            return self._state

    def _apply(self, record: dict[str, Any]) -> None:
        state = self._state
        kind = record.get("kind")
        if kind == "frozen":
            state.frozen = record
        elif kind == "planned":
            state.planned = tuple(record["shards"])
        elif kind == "sealed":
            file = self._sealed(record)
            group = state.open.setdefault((file.shard, file.commit), [])
            group.append(file)
            if len(group) == file.of:
                state.superseded.update(old.path for old in state.live.pop(file.shard, ()))
                state.live[file.shard] = tuple(state.open.pop((file.shard, file.commit)))
        else:
            if kind == "quarantined":
                state.live.pop(str(record.get("shard")), None)
            state.others.append(record)

    def _sealed(self, record: dict[str, Any]) -> SealedFile:
        try:
            body = {key: value for key, value in record.items() if key != "kind"}
            file = SealedFile(**(body | {"inputs": tuple(record["inputs"])}))
            parts = PurePosixPath(file.path).parts
            good = bool(parts) and ".." not in parts and not file.path.startswith("/") and file.of >= 1
        except (TypeError, KeyError):
            good = False
        if not good:
            where = f"{self.path}, line {self._state.lines}"
            expected = "the facts of a sealed file, with a path inside the folder"
            raise StoreError(where, expected=expected, found=f"the keys {', '.join(record)}", remedy=_REMEDY)
        return file
