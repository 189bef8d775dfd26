"""The reserve: disk space held by a run for the answers of calls that are in flight when the disk fills up.

Answers are paid for when they arrive, so there must be room for them before their calls are sent. When an append fails for
want of space the reserve is given back: answers still go in, and no further call is let out.
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from evalnoise.store.files import make_folder, sync_folder, write_all, writing
from schemas.errors import StoreError

RESERVE_FILE: Final = ".reserve"
RESERVE_BYTES: Final = 8 * 1024 * 1024
"""Room for 16 calls in flight whose records take half a megabyte each."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_CANNOT_ALLOCATE: Final = frozenset({errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS})
_CHUNK: Final = 1024 * 1024
_REMEDY: Final = "Free some space, then give the same command again"

_SHARED: WeakValueDictionary[Path, Reserve] = WeakValueDictionary()
_SHARED_GUARD: Final = threading.Lock()


def is_full(error: OSError) -> bool:
    """Whether an error says that there is no room left, on the disk or in the quota."""
    return error.errno in _FULL


def reserve_in(folder: Path) -> Reserve:
    """The reserve of a folder of journals; the same object for everything in this process that uses it."""
    path = folder.absolute() / RESERVE_FILE
    with _SHARED_GUARD:
        found = _SHARED.get(path)
        if found is None:
            found = _SHARED[path] = Reserve(path)
        return found


class Reserve:
    """The reserve of one protocol's journals. Safe for threads."""

    def __init__(self, path: Path, size: int = RESERVE_BYTES) -> None:
        self.path = path
        self._guard = threading.RLock()
        self.begin(size)

    def begin(self, size: int) -> None:
        """Forget the run before. The file is made when the first call is about to be sent."""
        with self._guard:
            self._size = size
            self._made = False
            self._full = False
            self._saved = 0
            self._lost = 0

    @property
    def full(self) -> bool:
        """Whether the disk was full in this run. It stays so: what is freed meanwhile is for the answers."""
        return self._full

    def ensure(self) -> None:
        """Have the file, really allocated; one that a killed run left is used again. Raises StoreError: then send no call."""
        with self._guard:
            if self._full:
                raise self.refusal()
            if self._made:
                return
            make_folder(self.path.parent)
            try:
                with writing(self.path):
                    self._allocate()
            except StoreError as error:
                with suppress(OSError):
                    self.path.unlink(missing_ok=True)
                raise StoreError(
                    error.where,
                    expected=f"{self._size:,} bytes of free space, kept for the answers of calls in flight",
                    found=f"{error.found}; no call was sent without them",
                    remedy=error.remedy,
                ) from None
            self._made = True

    def release(self) -> None:
        """Give the space back, for answers only; from now on the disk counts as full."""
        with self._guard:
            if self._full:
                return
            self._full = True
            self.remove()

    def remove(self) -> None:
        """Remove the file, as far as the disk allows it."""
        with self._guard, suppress(OSError):
            self._made = False
            self.path.unlink(missing_ok=True)
            # Some file systems hand freed blocks out only after this.
            sync_folder(self.path.parent)

    def count(self, *, saved: int = 0, lost: int = 0) -> None:
        """Count answers of this run, for the message about a full disk."""
        with self._guard:
            self._saved += saved
            self._lost += lost

    def refusal(self) -> StoreError:
        """The error for whoever wants to write something else than an answer on a full disk."""
        with self._guard:
            answers = f"{self._saved} answer{'' if self._saved == 1 else 's'} of this run saved"
            lost = f", {self._lost} lost for want of space" if self._lost else ""
        return StoreError(
            str(self.path.parent),
            expected="room for the answers of further calls",
            found=f"no space left on device; {answers}{lost}",
            remedy=f"{_REMEDY}: saved answers are not paid again, and nothing that was sealed is lost.",
        )

    def _allocate(self) -> None:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                os.posix_fallocate(descriptor, 0, self._size)
            except (OSError, AttributeError) as error:  # macOS lacks the function
                if isinstance(error, OSError) and error.errno not in _CANNOT_ALLOCATE:
                    raise
                for start in range(0, self._size, _CHUNK):
                    # Random, because a file system that compresses would hold no space for zeros.
                    write_all(descriptor, os.urandom(min(_CHUNK, self._size - start)))
                os.fsync(descriptor)
            os.ftruncate(descriptor, self._size)
        finally:
            os.close(descriptor)
