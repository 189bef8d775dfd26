"""Deletes what a candidate wrote, as the candidate's own user: the supervisor has no right to. Standard library alone."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

_SECONDS = 10.0
JOB_DIRECTORY = "job"


def sizes(folders: list[str]) -> list[int]:
    """Sizes of the folders. Where folders are kept in memory alone, the size tells how many entries there are."""
    return [_size(folder) for folder in folders]


def wipe(folders: list[str], become: Callable[[], None], empty: list[int] | None) -> bool:
    """Empty the folders, in a process that first calls `become`. Whether they are empty now.

    No name in them is read by this process, because a candidate chose it. Where `empty` gives the sizes of the empty folders,
    and no others, the usual case costs no process.
    """
    with contextlib.suppress(OSError):
        Path(folders[0], JOB_DIRECTORY).rmdir()
    if empty is not None and sizes(folders) == empty:
        return True
    pid = os.fork()
    if pid == 0:
        left = True
        try:
            become()
            for folder in folders:
                _flatten(folder)
            left = not all(map(_is_empty, folders))
        finally:
            os._exit(left)
    return _wait(pid) == 0


def _size(folder: str) -> int:
    try:
        return os.stat(folder).st_size
    except FileNotFoundError:
        return 0
    except OSError:
        return -1


def _is_empty(folder: str) -> bool:
    try:
        return not os.listdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _flatten(top: str) -> None:
    """Delete all that may be deleted. Subdirectories are emptied by moving their entries up, so that depth costs nothing."""
    fresh = 0
    progress = True
    while progress:
        progress = False
        for path in _entries(top):
            with contextlib.suppress(OSError):
                if _is_folder(path):
                    os.chmod(path, 0o700)
                    for inner in _entries(path):
                        if _is_folder(inner):
                            os.chmod(inner, 0o700)
                        fresh += 1
                        os.rename(inner, os.path.join(top, f"evalnoise-{fresh}"))
                    os.rmdir(path)
                else:
                    os.unlink(path)
                progress = True


def _entries(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _wait(pid: int) -> int:
    """Reap the process, by force after a while; its wait status."""
    deadline = time.monotonic() + _SECONDS
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1]
        time.sleep(0.0005)
