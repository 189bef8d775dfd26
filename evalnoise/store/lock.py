"""One writer per study: a lock that a killed holder gives up by itself, and the facts of the holder beside it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from evalnoise.store.files import make_folder, write_file, writing
from schemas.errors import LockedError

LOCK_FILE = "lock"
HOLDER_FILE = "lock.json"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock."""

    host: str
    pid: int
    started: str
    """When the lock was taken, ISO 8601, UTC."""
    command: str
    """What the holder runs, as it was told; holds no key."""


@contextmanager
def study_lock(path: Path, *, command: str = "") -> Iterator[Holder]:
    """Hold the lock of a study's folder.

    The lock is the operating system's, so it ends with the process, however that ends; the facts beside it are for people.

    Args:
        path: The study's folder, or that of one protocol; made if it is missing.
        command: What is running, for the message that a second run gets.

    Raises:
        LockedError: Another process, or another part of this one, holds it. Raised at once.
        StoreError: The folder cannot be written.
    """
    make_folder(path)
    lock = FileLock(path / LOCK_FILE, timeout=0)
    with writing(path / LOCK_FILE):
        try:
            lock.acquire()
        except Timeout:  # an OSError too, so it is taken before the disk's own errors
            raise _locked(path) from None
    try:
        holder = Holder(socket.gethostname(), os.getpid(), datetime.now(UTC).isoformat(timespec="seconds"), command)
        write_file(path / HOLDER_FILE, json.dumps(asdict(holder)).encode())
        yield holder
    finally:
        with suppress(OSError):
            (path / HOLDER_FILE).unlink()
        lock.release()


def holder_of(path: Path) -> Holder | None:
    """What the holder, or the last one that was killed, wrote of itself; None if nothing readable is there."""
    try:
        return Holder(**json.loads((path / HOLDER_FILE).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _locked(path: Path) -> LockedError:
    holder = holder_of(path)
    found = "one that has not written who it is yet"
    if holder is not None:
        command = f" ({holder.command})" if holder.command else ""
        found = f"process {holder.pid} on {holder.host} since {holder.started}{command}"
    remedy = "Wait until it ends, or stop it; a killed run gives the lock up by itself and the same command resumes."
    return LockedError(str(path), expected="no other run of this study", found=found, remedy=remedy)
