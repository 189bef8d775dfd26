"""The folder of a recording: one Parquet file and a manifest, sealed together, never replaced, the same wherever it lies."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
from pydantic import ValidationError

from evalnoise.canonical import canonical_json
from evalnoise.providers.base import sendable
from evalnoise.recordings.row import Recorded, complete_replicates, from_row, numbered, to_row
from evalnoise.store.files import TEMPORARY, make_folder, reading, sync_folder, write_file, writing
from evalnoise.store.partition import parquet_bytes, read_partition
from schemas.errors import RecordingDigestError, RecordingFormatError, StoreError
from schemas.recording import RECORDING_FORMAT, RecordingManifest, SealedResponses
from schemas.tables import RECORDED
from schemas.versions import REQUEST_NORMALISER, RESPONSE_MAPPING

RESPONSES: Final = "responses.parquet"
MANIFEST: Final = "manifest.json"
_OLD_MANIFEST: Final = "manifest.jsonl"
_NAME = re.compile(r"[a-z0-9][a-z0-9._~-]{0,199}")
_STALE_SECONDS = 3600.0
_ANEW = "Restore the folder from a copy, or make it anew: `evalnoise recording make`, or `import` from the original files."


def is_name(name: str) -> bool:
    """Whether a recording may be called so."""
    return _NAME.fullmatch(name) is not None


def is_folder(path: Path) -> bool:
    """Whether there is a folder; not, where the system cannot even look for such a name."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


class RecordingFolder:
    """One recording on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def named(cls, store: Path, name: str) -> RecordingFolder:
        """The recording of that name in a store, which need not exist. Raises StoreError for what cannot be a name."""
        if not is_name(name):
            raise StoreError(
                f"recording {name!r}"[:200],
                expected="a name of at most 200 lower-case letters, digits, dots, dashes, underscores and tildes",
                found=repr(name)[:200],
                remedy="Begin with a letter or a digit.",
            )
        return cls(store / "recordings" / name)

    @property
    def exists(self) -> bool:
        """Whether something was sealed here."""
        return (self.path / MANIFEST).is_file()

    @cached_property
    def manifest(self) -> RecordingManifest:
        """The checked manifest.

        Raises:
            RecordingFormatError: There is none, or of another format.
            RecordingDigestError: It is not what its own digest says.
        """
        path = self.path / MANIFEST
        if not path.is_file():
            found, remedy = "no manifest", "`evalnoise recording list` shows the recordings of a store."
            if (self.path / _OLD_MANIFEST).is_file():
                found, remedy = "one of format 1, which held parts of the responses only", f"Move the folder aside. {_ANEW}"
            raise RecordingFormatError(
                str(self.path), expected=f"a recording: {MANIFEST} and {RESPONSES}", found=found, remedy=remedy
            )
        with reading(path):
            data = path.read_bytes()
        facts = _facts(path, data)
        try:
            manifest = RecordingManifest.model_validate(facts)
        except ValidationError as error:
            first = error.errors()[0]
            found = f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
            raise RecordingDigestError(str(path), expected="the facts of a recording", found=found, remedy=_ANEW) from None
        if _digest(manifest) != manifest.digest:
            found = f"facts with the digest {_digest(manifest)[:12]}"
            raise RecordingDigestError(str(path), expected=f"the facts {manifest.digest[:12]}", found=found, remedy=_ANEW)
        return manifest

    def write(
        self,
        rows: Sequence[Recorded],
        *,
        source: Mapping[str, Any],
        order: Literal["time", "unknown"],
        not_asked: Sequence[str] = (),
        request_normaliser: int = REQUEST_NORMALISER,
        response_mapping: int = RESPONSE_MAPPING,
    ) -> RecordingManifest:
        """Seal the rows. Sealing the same recording again changes nothing.

        Args:
            rows: In any order; their occurrences are counted here.
            source: Where they come from, JSON.
            order: Whether the replicates are in the order of time.
            not_asked: Tasks that have no row, and should not have one.
            request_normaliser: Version of the rule that made the keys.
            response_mapping: Version of the rule that made the responses.

        Raises:
            DataError: Two rows of one asker.
            StoreError: Another recording is there, or the folder cannot be written.
        """
        counted = numbered(rows, source=f"recording {self.path.name}")
        table_rows = [to_row(row) for row in counted]
        data, contents = parquet_bytes(RECORDED, table_rows), _contents(table_rows)
        keys = {row.request_key for row in counted}
        keyed = "" not in keys
        manifest = RecordingManifest(
            contents=hashlib.sha256(contents).hexdigest(),
            contents_size=len(contents),
            keyed=keyed,
            order=order,
            request_normaliser=request_normaliser if keyed else None,
            response_mapping=response_mapping,
            tasks=len({row.task_id for row in counted}),
            replicates=complete_replicates(counted),
            requests=len(keys) if keyed else None,
            occurrences=len(counted),
            not_asked=tuple(sendable(task_id) for task_id in not_asked),
            source=dict(source),
            file=SealedResponses(sha256=hashlib.sha256(data).hexdigest(), size=len(data)),
        )
        manifest = manifest.model_copy(update={"digest": _digest(manifest)})
        if not self._there(manifest):
            self._seal(manifest, data)
        self.__dict__.pop("manifest", None)
        return self.manifest

    def read(self) -> list[Recorded]:
        """The sealed rows, which are those of the manifest's digest.

        Raises what `manifest` raises, and StoreError and RecordingDigestError for the Parquet file.
        """
        path, manifest = self.path / RESPONSES, self.manifest
        with reading(path):
            data = path.read_bytes()
        found = hashlib.sha256(data).hexdigest()
        if found != manifest.file.sha256:
            raise RecordingDigestError(
                str(path),
                expected=f"{manifest.file.size} bytes with the SHA-256 {manifest.file.sha256[:12]}, as the manifest says",
                found=f"{len(data)} bytes with {found[:12]}",
                remedy=_ANEW,
            )
        try:
            rows = [from_row(row) for row in read_partition(RECORDED, {}, data).to_pylist()]
        except (pa.ArrowException, ValueError, TypeError, KeyError) as error:
            found = f"{type(error).__name__}: {error}"[:300]
            raise RecordingDigestError(str(path), expected="the rows of a recording", found=found, remedy=_ANEW) from None
        # The seal of the bytes is no part of the digest that a protocol pins; the rows are.
        contents = hashlib.sha256(_contents([to_row(row) for row in rows])).hexdigest()
        if contents != manifest.contents:
            expected, found = f"responses with the digest {manifest.contents[:12]}, as the manifest says", contents[:12]
            raise RecordingDigestError(f"{path}, contents", expected=expected, found=found, remedy=_ANEW)
        return rows

    def verify(self) -> None:
        """Check every count of the manifest against the rows, too. Raises RecordingDigestError."""
        rows, manifest = self.read(), self.manifest
        found = {
            "occurrences": len(rows),
            "tasks": len({row.task_id for row in rows}),
            "replicates": complete_replicates(rows),
            "requests": len({row.request_key for row in rows}) if manifest.keyed else None,
            "keyed": all(row.request_key for row in rows),
        }
        for name, value in found.items():
            told = getattr(manifest, name)
            if told != value:
                raise RecordingDigestError(
                    f"{self.path}, {name}", expected=f"{told}, as the manifest says", found=f"{value}", remedy=_ANEW
                )
        counted = numbered(rows, source=str(self.path))
        if {row.asker: row.occurrence for row in counted} != {row.asker: row.occurrence for row in rows}:
            where = f"{self.path}, occurrence"
            raise RecordingDigestError(where, expected="occurrences in the order of the askers", found="another", remedy=_ANEW)

    def _there(self, manifest: RecordingManifest) -> bool:
        """Whether this very recording is sealed already. Raises StoreError if another one is."""
        if not self.path.exists() or not any(self.path.iterdir()):
            return False
        there = self.manifest.digest
        if there != manifest.digest:
            raise StoreError(
                str(self.path),
                expected=f"the recording {manifest.digest[:12]}, or nothing",
                found=f"another one, {there[:12]}",
                remedy="A recording is never replaced: give another name, or move the folder aside if you know why it differs.",
            )
        # The same responses may lie there in other bytes, written by another version of the Parquet library.
        self.read()
        return True

    def _seal(self, manifest: RecordingManifest, data: bytes) -> None:
        """Write the whole folder beside its place and rename it: it is there as a whole or not at all."""
        make_folder(self.path.parent)
        _remove_stale(self.path.parent)
        staging = self.path.parent / f".{os.getpid()}-{uuid.uuid4().hex}{TEMPORARY}"
        try:
            write_file(staging / RESPONSES, data)
            write_file(staging / MANIFEST, canonical_json(manifest.model_dump(mode="json")) + b"\n")
            with writing(self.path):
                try:
                    staging.rename(self.path)
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not self._there(manifest):
                        raise
                sync_folder(self.path.parent)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def recordings_in(store: Path) -> list[RecordingFolder]:
    """The recordings of a store by name, damaged ones too."""
    folder = store / "recordings"
    if not folder.is_dir():
        return []
    return [RecordingFolder(path) for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]


def _facts(path: Path, data: bytes) -> dict[str, Any]:
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise RecordingDigestError(str(path), expected="one JSON object", found=f"{len(data)} other bytes", remedy=_ANEW)
    if facts.get("format") != RECORDING_FORMAT:
        raise RecordingFormatError(
            str(path),
            expected=f"format {RECORDING_FORMAT}",
            found=f"format {str(facts.get('format'))[:20]}",
            remedy=f"Use the version of evalnoise that made it. {_ANEW}",
        )
    return facts


def _digest(manifest: RecordingManifest) -> str:
    return hashlib.sha256(canonical_json(manifest.model_dump(mode="json", exclude={"digest", "file"}))).hexdigest()


def _contents(table_rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The rows in the table's order, one JSON array each."""
    names = [column.name for column in RECORDED.columns]
    ordered = sorted(table_rows, key=lambda row: [row[name] for name in RECORDED.sort])
    return "".join(json.dumps([row[name] for name in names]) + "\n" for row in ordered).encode()


def _remove_stale(folder: Path) -> None:
    """Remove what killed processes left unfinished; younger folders may belong to one that is at work."""
    for path in folder.glob(f".*{TEMPORARY}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(path)
