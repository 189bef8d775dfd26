"""Durable files: temporary name, fsync, rename, fsync of the folder; errors of the disk as StoreErrors; lineage facts."""

from __future__ import annotations

import errno
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from schemas.errors import StoreError

TEMPORARY = ".tmp"
"""Ending of files that are not finished. Whoever holds a study's lock may remove them."""
_UNFINISHED = re.compile(rf"\.([1-9]\d*)-[0-9a-f]{{32}}{re.escape(TEMPORARY)}")

_RETRY = "give the same command again; nothing that was sealed is lost."
_REMEDIES = {
    errno.ENOSPC: f"Free some space, then {_RETRY}",
    errno.EDQUOT: f"Raise the quota or free some space, then {_RETRY}",
    errno.EACCES: f"Give this user the right to write there, then {_RETRY}",
    errno.EPERM: f"Give this user the right to write there, then {_RETRY}",
    errno.EROFS: "Choose a store that can be written; nothing that was sealed is lost.",
}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an operating-system error while writing `path` into a StoreError that says what it means for the store."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, f"Look at the disk, then {_RETRY}")
        raise StoreError(str(path), expected="a place that can be written", found=_reason(error), remedy=remedy) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an operating-system error while reading `path` into a StoreError."""
    try:
        yield
    except OSError as error:
        remedy = "Check the path, its owner and the disk."
        raise StoreError(str(path), expected="a file that can be read", found=_reason(error), remedy=remedy) from error


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def make_folder(path: Path) -> None:
    """Create a folder and its parents; each new name is durable in its parent. Raises StoreError."""
    missing = []
    folder = path
    while not folder.is_dir():
        missing.append(folder)
        if folder.parent == folder:
            break
        folder = folder.parent
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        for new in reversed(missing):
            sync_folder(new.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file, given in one piece or several, whole or not at all, durably; no temporary file is left. Raises StoreError."""
    make_folder(path.parent)
    temporary = path.with_name(f".{os.getpid()}-{uuid.uuid4().hex}{TEMPORARY}")
    try:
        with writing(path):
            with temporary.open("wb") as file:
                file.writelines(_pieces(data))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_folder(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _pieces(data: bytes | Iterable[bytes]) -> Iterable[bytes]:
    return (data,) if isinstance(data, bytes) else data


def write_result(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file that a user named: as `write_file`; what is there and is no file, as a pipe, is written in its place.

    Raises:
        StoreError: It cannot be written.
    """
    if path.exists() and not path.is_file():
        with writing(path), path.open("wb") as file:
            file.writelines(_pieces(data))
        return
    make_folder(path.parent)
    remove_abandoned(path.parent)
    write_file(path, data)


def remove_abandoned(folder: Path) -> None:
    """Remove unfinished files of processes of this machine that are gone, as after `kill -9`, however young."""
    for path in folder.glob(f".*{TEMPORARY}"):
        found = _UNFINISHED.fullmatch(path.name)
        if found is not None and not _alive(int(found[1])):
            with suppress(OSError):
                path.unlink()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def remove_stale(folder: Path, *, older_than: float = 3600.0) -> None:
    """Remove unfinished files that a killed process left in a folder that several processes may write to."""
    for path in folder.glob(f".*{TEMPORARY}"):
        with suppress(OSError):  # another process may finish or remove it first
            if time.time() - path.stat().st_mtime > older_than:
                path.unlink()


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, also where the system takes them in pieces. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@cache
def package_version() -> str:
    """Version of the installed package, or empty when it runs from a bare checkout."""
    try:
        return metadata.version("evalnoise")
    except metadata.PackageNotFoundError:
        return ""


@cache
def git_commit() -> str:
    """Commit of the checkout that this code runs from, or empty. Reads two small files, starts no process."""
    git = Path(__file__).resolve().parents[2] / ".git"
    try:
        head = (git / "HEAD").read_text("utf-8").strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        loose = git / name
        if loose.is_file():
            return loose.read_text("utf-8").strip()
        for line in (git / "packed-refs").read_text("utf-8").splitlines():
            commit, _, ref = line.partition(" ")
            if ref == name:
                return commit
    except OSError:
        return ""
    return ""
