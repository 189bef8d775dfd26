"""One protocol of one study in the store: commits of shards, reads of what is sealed, the journal, the lock, the quarantine."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from evalnoise.store.files import TEMPORARY, git_commit, make_folder, package_version, reading, sync_folder, write_file, writing
from evalnoise.store.journal import Journal
from evalnoise.store.lock import Holder, study_lock
from evalnoise.store.manifest import Manifest, SealedFile
from evalnoise.store.partition import PartitionWrite, key_text, keys_of, parquet_bytes, read_partition, reader_schema
from evalnoise.store.reserve import RESERVE_BYTES, RESERVE_FILE, Reserve, reserve_in
from schemas.columns import Table
from schemas.errors import StoreError

_LOG = logging.getLogger(__name__)
_FAULT = "This is a fault in the code that commits; nothing of this shard was sealed."


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """How far a protocol has come, by its manifest alone."""

    planned: tuple[str, ...]
    """Shards of the whole study; empty if no plan was written."""
    sealed: tuple[str, ...]
    """Those of them that are sealed."""
    complete: bool
    """Whether all are sealed, the plan's last one (the analysis) after all the others."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file of a shard to be, in bytes."""

    path: str
    """Where it lies, relative to the protocol's folder, unless other bytes are sealed there."""
    table: str
    """Name of the table."""
    rows: int
    data: bytes
    """Parquet."""


class StudyStore:
    """The folder of one protocol of one study."""

    def __init__(self, path: Path, study: str, protocol: str) -> None:
        self.path = path
        self.study = study
        self.protocol = protocol
        self.manifest = Manifest(path / "manifest.jsonl")

    @contextmanager
    def lock(self, *, command: str = "", reserve: int = RESERVE_BYTES) -> Iterator[Holder]:
        """Hold the lock of the study, all protocols; tidy up after a killed run first.

        Args:
            command: What is running, for whoever finds the study locked.
            reserve: Bytes of disk to hold, from the first call on, for the answers of calls in flight.

        Raises:
            LockedError: Another run holds it.
            StoreError: The disk refuses; or it was full inside, and then the error says how many answers were saved by its end.
        """
        with study_lock(self.path.parent, command=command) as holder:
            self.recover()
            kept = self._reserve()
            kept.begin(reserve)
            try:
                yield holder
            except StoreError as error:
                if kept.full:
                    raise kept.refusal() from error
                raise
            finally:
                kept.remove()

    def _reserve(self) -> Reserve:
        return reserve_in(self.path / "journal")

    def recover(self) -> None:
        """Remove what a killed run left: unfinished files, files that a later commit replaced. Only under the lock."""
        self.manifest.cut_torn_tail()
        for path in self.path.rglob(f".*{TEMPORARY}"):
            with writing(path):
                path.unlink(missing_ok=True)
        for path in self.path.parent.glob(f"*/journal/{RESERVE_FILE}"):
            if path.parent.parent != self.path:
                with writing(path):
                    path.unlink(missing_ok=True)
        in_force = {file.path for files in self.manifest.live.values() for file in files}
        for name in self.manifest.superseded:
            if name not in in_force:
                with writing(self.path / name):
                    (self.path / name).unlink(missing_ok=True)

    def journal(self, shard: str) -> Journal:
        """The journal of a shard's calls. Raises StoreError if it is damaged."""
        return Journal(self.journal_path(shard))

    def journal_path(self, shard: str) -> Path:
        """Where the journal of a shard's calls lies. Raises StoreError for a name that cannot be a file's."""
        name = quote(shard, safe=" =+,@")
        if not shard or shard.startswith(".") or len(name) > 200:
            expected = "a name of 1 to 200 characters that does not begin with a dot"
            raise StoreError("shard", expected=expected, found=repr(shard)[:200], remedy=_FAULT)
        return self.path / "journal" / f"{name}.jsonl"

    def plan(self, shards: Sequence[str]) -> None:
        """Announce the shards of the whole study; the last is the analysis. Nothing is written if the plan stands already."""
        if self.manifest.planned != tuple(shards):
            self.manifest.append([{"kind": "planned", "shards": list(shards)}])

    def mark(self, kind: str, **facts: Any) -> None:
        """Append a line of one's own kind to the manifest. Raises StoreError."""
        if kind in {"frozen", "planned", "sealed", "quarantined"}:
            raise StoreError("manifest line", expected="a kind that is not the store's own", found=kind, remedy=_FAULT)
        self.manifest.append([{"kind": kind, **facts}])

    def status(self) -> StudyStatus:
        """What is planned and what is sealed, without a look at the files."""
        planned, live = self.manifest.planned, self.manifest.live
        sealed = tuple(shard for shard in planned if shard in live)
        return StudyStatus(planned, sealed, is_complete(planned, live))

    def sealed(self, shard: str) -> bool:
        """Whether every file of the shard is there with the bytes that were sealed.

        A file that is damaged goes to ``quarantine/`` and the manifest says so; the shard is then not sealed.

        Raises:
            StoreError: A file cannot be read or moved.
        """
        damaged = [(file, found) for file in self.manifest.live.get(shard, ()) if (found := self._damage(file)) is not None]
        if damaged:
            self.manifest.append([self._quarantine(file, found) for file, found in damaged])
        return shard in self.manifest.live

    def commit(
        self, shard: str, writes: Sequence[PartitionWrite], inputs: Sequence[str] = (), lineage: Mapping[str, Any] | None = None
    ) -> None:
        """Seal a shard: write its files durably, then announce all of them in one line group.

        A kill before the announcement leaves the shard as it was; the same commit may be made again. Committing a sealed shard
        again replaces it: a file whose bytes differ gets another name, so that no sealed file ever changes.

        Args:
            shard: The shard's name.
            writes: Its files; at least one, though a file may have no rows.
            inputs: What it was made from, for instance names of shards or digests.
            lineage: Further facts beside package version, git commit and time.

        Raises:
            StoreError: Rows that the table refuses, a path that another shard owns, a disk that is full. Nothing is sealed then.
        """
        contents = [
            Content(write.path(), write.table.name, len(write.rows), parquet_bytes(write.table, write.rows)) for write in writes
        ]
        self.commit_bytes(shard, contents, inputs, lineage)

    def commit_bytes(
        self, shard: str, contents: Sequence[Content], inputs: Sequence[str] = (), lineage: Mapping[str, Any] | None = None
    ) -> None:
        """Seal a shard whose files are in bytes already, as `commit` does. Raises StoreError."""
        if self._reserve().full:  # what little room is left is for answers; the journal has all that this shard needs
            raise self._reserve().refusal()
        if not contents or not shard:
            expected = "a name and at least one file"
            raise StoreError(f"shard {shard!r}", expected=expected, found=f"{len(contents)} files", remedy=_FAULT)
        facts = {
            "package_version": package_version(),
            "git_commit": git_commit(),
            "sealed_at": datetime.now(UTC).isoformat(timespec="microseconds"),
            **(lineage or {}),
        }
        owners = {file.path: file for files in self.manifest.live.values() for file in files}
        files: list[SealedFile] = []
        for one in contents:
            digest = hashlib.sha256(one.data).hexdigest()
            path = _free_path(shard, one.path, digest, owners)
            if any(path == other.path for other in files):
                raise StoreError(f"shard {shard}", expected="one file per path", found=f"{path} twice", remedy=_FAULT)
            files.append(SealedFile(shard, path, one.table, one.rows, digest, len(one.data), 0, 0, tuple(inputs), facts))
        for file, one in zip(files, contents, strict=True):
            write_file(self.path / file.path, one.data)
        self.manifest.seal(files)

    def files(self, table: Table, **keys: str | int) -> list[SealedFile]:
        """The sealed files of a table, those with the given partition values only, in the order of their keys."""
        for key, value in keys.items():
            if key not in table.partition:
                expected = f"a partition key of {table.name} ({', '.join(table.partition) or 'it has none'})"
                raise StoreError(f"table {table.name}", expected=expected, found=key, remedy="Filter the rows instead.")
            key_text(f"table {table.name}", key, value)
        found = []
        for files in self.manifest.live.values():
            for file in files:
                have = keys_of(table, file.path)
                if file.table == table.name and all(have.get(key) == value for key, value in keys.items()):
                    found.append((tuple(have[key] for key in table.partition), file.path, file))
        return [file for *_, file in sorted(found, key=lambda entry: entry[:2])]

    def read(self, table: Table, **keys: str | int) -> pa.Table:
        """The sealed rows of a table, partition keys as columns, each file checked against its digest.

        Args:
            table: The table.
            **keys: Partition values to select.

        Raises:
            StoreError: A sealed file is missing or damaged, or a key is not one of the table's.
        """
        return self._read(table, self.files(table, **keys))

    def shard_files(self, table: Table, shard: str) -> list[SealedFile]:
        """The files of a table that a shard sealed; none if it is not sealed."""
        return [file for file in self.manifest.live.get(shard, ()) if file.table == table.name]

    def read_shard(self, table: Table, shard: str) -> pa.Table:
        """The rows of a table that a shard sealed, as `read` gives them. Raises StoreError."""
        return self._read(table, self.shard_files(table, shard))

    def _read(self, table: Table, files: Sequence[SealedFile]) -> pa.Table:
        parts = [reader_schema(table).empty_table()]
        for file in files:
            path = self.path / file.path
            with reading(path):
                data = path.read_bytes()
            if hashlib.sha256(data).hexdigest() != file.sha256:
                expected, found = f"{file.bytes} bytes with SHA-256 {file.sha256[:12]}", f"{len(data)} other bytes"
                remedy = "Run the study again with the same command: the shard is quarantined and redone."
                raise StoreError(str(path), expected=expected, found=found, remedy=remedy)
            parts.append(read_partition(table, keys_of(table, file.path), data))
        return pa.concat_tables(parts).combine_chunks()

    def _damage(self, file: SealedFile) -> str | None:
        """What is wrong with a sealed file, or None."""
        path = self.path / file.path
        if not path.exists():
            return "missing"
        with reading(path):
            data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        return None if digest == file.sha256 else f"{len(data)} bytes with SHA-256 {digest}"

    def _quarantine(self, file: SealedFile, found: str) -> dict[str, Any]:
        source = self.path / file.path
        now = datetime.now(UTC)
        target = self.path / "quarantine" / f"{now:%Y%m%dT%H%M%S.%f}-{quote(file.path, safe='=')}"
        _LOG.warning("%s: expected SHA-256 %s, found %s; shard %s is redone", source, file.sha256[:12], found, file.shard)
        if source.exists():
            make_folder(target.parent)
            with writing(target):
                source.replace(target)
                for folder in (target.parent, source.parent):
                    sync_folder(folder)
        moved = target.name if target.exists() else ""
        facts = {"shard": file.shard, "path": file.path, "expected_sha256": file.sha256, "found": found, "moved_to": moved}
        return {"kind": "quarantined", **facts, "at": now.isoformat(timespec="microseconds")}


def is_complete(planned: Sequence[str], live: Mapping[str, Sequence[SealedFile]]) -> bool:
    """Whether every planned shard is sealed, and the last one, which sums the others up, after all of them."""
    if not planned or any(shard not in live for shard in planned):
        return False
    begun = {shard: live[shard][0].commit for shard in planned}
    return max(begun.values()) == begun[planned[-1]]


def _free_path(shard: str, path: str, digest: str, owners: Mapping[str, SealedFile]) -> str:
    """The path for a file of these bytes: its own, unless other bytes are sealed there. Raises StoreError."""
    owner = owners.get(path)
    if owner is not None and owner.shard != shard:
        raise StoreError(f"shard {shard}", expected=f"{path} to be free", found=f"a file of shard {owner.shard}", remedy=_FAULT)
    if owner is None or owner.sha256 == digest:
        return path
    return f"{path.removesuffix('.parquet')}.{digest[:12]}.parquet"
