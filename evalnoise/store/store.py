"""The store: a folder of frozen protocols, and one folder per study and protocol."""

from __future__ import annotations

import hashlib
import re
import socket
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from evalnoise.store.files import git_commit, make_folder, package_version, reading, remove_stale, write_file
from evalnoise.store.manifest import Manifest
from evalnoise.store.partition import PartitionWrite
from evalnoise.store.study import StudyStatus, StudyStore
from schemas.errors import StoreError
from schemas.protocol import Protocol

__all__ = ["PartitionWrite", "Store", "StudyStatus", "StudyStore"]

SHORT = 12
"""Digits of a protocol's digest that name its folder."""

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PREFIX = re.compile(r"[0-9a-f]{4,64}")


class Store:
    """A store in a local folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def open(cls, root: str | Path, *, create: bool = True) -> Store:
        """Open a store.

        Args:
            root: The folder.
            create: Whether to make it if it is missing.

        Raises:
            StoreError: A URL, a path that is no folder, a missing folder, or one that cannot be made.
        """
        text = str(root)
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text):
            remedy = "Stores on object storage are not supported yet; use a local or mounted folder."
            raise StoreError(text, expected="a local folder", found="a URL", remedy=remedy)
        folder = Path(root).absolute()
        if folder.exists() and not folder.is_dir():
            remedy = "Name another place with --store or EVALNOISE_STORE."
            raise StoreError(text, expected="a folder", found="a file", remedy=remedy)
        if not folder.exists():
            if not create:
                remedy = "Name the right folder with --store or EVALNOISE_STORE, or run a study first."
                raise StoreError(text, expected="a store", found="no such folder", remedy=remedy)
            make_folder(folder)
        return cls(folder)

    def freeze(self, protocol: Protocol) -> Path:
        """Write the protocol, durably and once, and the first line of its manifest. Freezing it again changes nothing.

        Raises:
            StoreError: The file is there with other bytes, or the store cannot be written.
        """
        digest, data = protocol.digest(), protocol.canonical()
        path = self._protocol_path(digest)
        if path.exists():
            with reading(path):
                there = path.read_bytes()
            if there != data:
                found = f"bytes with SHA-256 {hashlib.sha256(there).hexdigest()[:SHORT]}"
                raise StoreError(str(path), expected=f"the protocol {digest[:SHORT]}", found=found, remedy=_DAMAGED)
        else:
            make_folder(path.parent)
            remove_stale(path.parent)
            write_file(path, data)
        self._manifest(study_name(protocol), digest).freeze(
            {
                "protocol": digest,
                "study": study_name(protocol),
                "frozen_at": datetime.now(UTC).isoformat(timespec="microseconds"),
                "host": socket.gethostname(),
                "package_version": package_version(),
                "git_commit": git_commit(),
            }
        )
        return path

    def protocol(self, digest_or_prefix: str) -> Protocol:
        """A frozen protocol by its digest or the digest's first digits (four at least). Raises StoreError."""
        folder = self.root / "protocols"
        found = []
        if _PREFIX.fullmatch(digest_or_prefix) and folder.is_dir():
            found = sorted(path for path in folder.glob(f"{digest_or_prefix}*.json") if _DIGEST.fullmatch(path.stem))
        if len(found) != 1:
            told = f"{len(found)} protocols that begin so" if found else "none"
            where = f"{folder}, {digest_or_prefix[:64]!r}"
            remedy = "Give more digits of the digest; `evalnoise status` lists the protocols."
            raise StoreError(where, expected="one frozen protocol", found=told, remedy=remedy)
        return load_protocol(found[0])

    def study(self, study: str, digest: str) -> StudyStore:
        """The folder of one protocol of one study; it need not exist yet. Raises StoreError for names that cannot be."""
        self._check(study, digest)
        return StudyStore(self._folder(study, digest), study, digest)

    def studies(self) -> list[StudyStore]:
        """Every frozen protocol of every study, by study and then in the order of freezing. Raises StoreError."""
        found = []
        for path in sorted(self.root.glob("studies/*/*/manifest.jsonl")):
            frozen = Manifest(path).frozen
            if frozen is not None:
                found.append((frozen["study"], frozen["frozen_at"], StudyStore(path.parent, frozen["study"], frozen["protocol"])))
        return [study for _, _, study in sorted(found, key=lambda entry: entry[:2])]

    def _protocol_path(self, digest: str) -> Path:
        return self.root / "protocols" / f"{digest}.json"

    def _folder(self, study: str, digest: str) -> Path:
        return self.root / "studies" / study / digest[:SHORT]

    def _manifest(self, study: str, digest: str) -> Manifest:
        self._check(study, digest)
        return Manifest(self._folder(study, digest) / "manifest.jsonl")

    def _check(self, study: str, digest: str) -> None:
        if not _SLUG.fullmatch(study):
            remedy = "Use lower-case letters, digits, dot, dash and underscore."
            raise StoreError("study", expected="a name that can be a folder", found=repr(study)[:200], remedy=remedy)
        if not _DIGEST.fullmatch(digest):
            remedy = "Give the whole digest; `Store.protocol` finds it by its first digits."
            raise StoreError("protocol", expected="a SHA-256 in hex", found=repr(digest)[:200], remedy=remedy)


_DAMAGED = (
    "The file was changed after the freeze, or the disk is failing. Restore it from a copy, or remove it and run the study again."
)


def study_name(protocol: Protocol) -> str:
    """The study's name as the protocol holds it. Raises StoreError."""
    name = protocol.study.get("study")
    if not isinstance(name, str):
        raise StoreError("protocol", expected="a study with a name", found=repr(name)[:200], remedy="Freeze a valid study.")
    return name


def load_protocol(path: Path) -> Protocol:
    """Read a frozen protocol and check that its bytes are what its name says. Raises StoreError."""
    with reading(path):
        data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != path.stem:
        found = f"bytes with SHA-256 {digest[:SHORT]}"
        raise StoreError(str(path), expected=f"the protocol {path.stem[:SHORT]}", found=found, remedy=_DAMAGED)
    try:
        return Protocol.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        found = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        remedy = "It was frozen by another version of evalnoise; use that version for it."
        raise StoreError(str(path), expected="a protocol of this version", found=found, remedy=remedy) from None
