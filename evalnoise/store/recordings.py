"""Recordings made from a condition: one folder with one Parquet file and a manifest, sealed and portable."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalnoise.store.files import reading, remove_stale, write_file
from evalnoise.store.manifest import Manifest, SealedFile
from evalnoise.store.partition import parquet_bytes, read_partition
from schemas.errors import StoreError
from schemas.tables import RECORDED

_SHARD = "recording"
_FILE = "responses.parquet"
_NAME = re.compile(r"[a-z0-9][a-z0-9._~-]{0,250}")


class RecordingFolder:
    """The folder of one recording."""

    def __init__(self, store: Path, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise StoreError(
                f"recording {name!r}",
                expected="a name of lower-case letters, digits, dot, dash, underscore and tilde",
                found=repr(name)[:200],
                remedy="This is a fault in the code that names recordings; nothing was written.",
            )
        self.path = store / "recordings" / name
        self._manifest = Manifest(self.path / "manifest.jsonl")

    @property
    def digest(self) -> str | None:
        """SHA-256 of the sealed file; None before it is sealed."""
        sealed = self._manifest.live.get(_SHARD)
        return sealed[0].sha256 if sealed else None

    def write(self, rows: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> str:
        """Seal the rows and return their digest. Writing the same rows again changes nothing. Only under the study's lock.

        Raises:
            StoreError: Other rows are sealed already, or the folder cannot be written.
        """
        data = parquet_bytes(RECORDED, rows)
        digest = hashlib.sha256(data).hexdigest()
        there = self.digest
        if there is not None and there != digest:
            raise StoreError(
                str(self.path),
                expected=f"the recording {digest[:12]} of these cells",
                found=f"another one, {there[:12]}",
                remedy="A recording is never replaced: move the folder aside if you know why it differs.",
            )
        remove_stale(self.path, older_than=0)
        write_file(self.path / _FILE, data)
        if there is None:
            self._manifest.seal([SealedFile(_SHARD, _FILE, RECORDED.name, len(rows), digest, len(data), 1, 0, (), dict(facts))])
        return digest

    def read(self) -> list[dict[str, Any]]:
        """The sealed rows. Raises StoreError when they are missing or damaged."""
        path = self.path / _FILE
        with reading(path):
            data = path.read_bytes()
        found = hashlib.sha256(data).hexdigest()
        if found != self.digest:
            raise StoreError(
                str(path),
                expected=f"the sealed recording {(self.digest or 'none')[:12]}",
                found=f"{len(data)} bytes with SHA-256 {found[:12]}",
                remedy="Restore the file from a copy, or remove the folder: the next run records the same cells again.",
            )
        rows: list[dict[str, Any]] = read_partition(RECORDED, {}, data).to_pylist()
        return rows
