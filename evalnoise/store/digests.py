"""Digests of files, remembered with what the file system says of them, so that only what has changed is read again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

_TYPES = {"size": pa.int64(), "mtime_ns": pa.int64(), "ctime_ns": pa.int64(), "inode": pa.uint64()}
SEEN_SCHEMA = pa.schema([("path", pa.string()), *_TYPES.items(), ("sha256", pa.string())])
"""How a catalog keeps what was seen; the stamp is null for a file that was not there."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes when a file does. Its time of change cannot be set back by the usual calls, unlike that of modification."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, facts: os.stat_result) -> Self:
        """The stamp in the facts of a file."""
        return cls(facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)


@dataclass(frozen=True, slots=True)
class Seen:
    """A file when it was looked at."""

    stamp: Stamp | None
    """None if it was not there."""
    sha256: str
    """Empty if it was not read."""


class Digests:
    """Digests of the files of a store, by path relative to its root; remembers every file that it was asked about."""

    def __init__(self, root: Path, known: Mapping[str, Seen] | None = None) -> None:
        self._root = root
        self._known = known or {}
        self._seen: dict[str, Seen] = {}

    def sha256(self, path: Path) -> str:
        """The file's SHA-256, from memory if its stamp is the same as then. Raises OSError."""
        name = self.note(path)
        then, now = self._known.get(name), self._seen[name]
        if then is not None and then.sha256 and then.stamp == now.stamp:
            self._seen[name] = then
            return then.sha256
        with path.open("rb") as file:
            # Before it is read: what is changed meanwhile looks changed afterwards.
            stamp = Stamp.of(os.fstat(file.fileno()))
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._seen[name] = Seen(stamp, digest)
        return digest

    def note(self, path: Path) -> str:
        """Remember how a file looks without reading it; returns its name here."""
        name = path.relative_to(self._root).as_posix()
        self._seen[name] = Seen(_stamp(path), "")
        return name

    def table(self) -> pa.Table:
        """All that was seen, as a catalog keeps it."""
        rows = []
        for name, seen in self._seen.items():
            stamp = {column: getattr(seen.stamp, column) if seen.stamp else None for column in _TYPES}
            rows.append({"path": name, **stamp, "sha256": seen.sha256})
        return pa.Table.from_pylist(rows, schema=SEEN_SCHEMA)


def seen_of(rows: Iterable[tuple[Any, ...]]) -> dict[str, Seen]:
    """What a catalog keeps: rows in the order of `SEEN_SCHEMA`."""
    return {path: Seen(None if size is None else Stamp(size, *rest), digest) for path, size, *rest, digest in rows}


def unchanged(root: Path, seen: Mapping[str, Seen]) -> bool:
    """Whether every file looks as it did; reads none of them."""
    return all(_stamp(f"{root}/{name}") == then.stamp for name, then in seen.items())


def _stamp(path: str | Path) -> Stamp | None:
    try:
        return Stamp.of(os.stat(path))  # noqa: PTH116 - to make a thousand Paths takes longer than to look at the files
    except OSError:
        return None
