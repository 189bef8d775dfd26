"""The processes of one candidate: what CPU they used, how they are killed to the last one, what they left. Standard library alone.

Two homes: a container, where the supervisor is PID 1 and every other process belongs to the candidate, and a plain host
process, where the supervisor adopts orphans (Linux) and may touch its own descendants only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PR_SET_KEEPCAPS = 8
_PR_SET_CHILD_SUBREAPER = 36
_CAPABILITY_VERSION = 0x20080522
_READ_ANYTHING = 1 << 2
"""CAP_DAC_READ_SEARCH: reading files and searching folders of any user."""
_TICK = os.sysconf("SC_CLK_TCK")
_MEMORY_SLACK = 16 * 2**20
"""What all candidates of a container together may leave in the kernel."""
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass
class Tally:
    """What the reaped processes of one job came to."""

    main: int
    """Process id of the candidate itself."""
    status: int | None = None
    """Its wait status, once it ended."""
    cpu: float = 0.0
    peak: int = 0

    def reap(self, *, block: bool = False) -> bool:
        """Collect one ended child; whether there was news of one. Raises ChildProcessError when no child is left at all."""
        pid, status, usage = os.wait4(-1, 0 if block else os.WNOHANG)
        if pid == 0:
            return False
        if os.WIFSTOPPED(status):
            return True  # a process that chose to be traced by its parent; it lives on
        self.cpu += usage.ru_utime + usage.ru_stime
        self.peak = max(self.peak, usage.ru_maxrss * _PEAK_UNIT)
        if pid == self.main:
            self.status = status
        return True


class Home(ABC):
    """Where candidates run; the methods with a body are for homes without a cgroup."""

    def begin(self) -> None:  # noqa: B027 - most homes need no preparation
        """A job starts."""

    def cpu(self, tally: Tally) -> float:
        """CPU seconds that the job's processes have used so far."""
        return _tree_cpu(os.getpid()) + tally.cpu

    def total(self, tally: Tally) -> float:
        """The same, when all of them are reaped."""
        return tally.cpu

    def oom_kills(self) -> int:
        """Processes that the kernel killed for memory so far."""
        return 0

    def leftovers(self, output: int) -> list[str]:
        """What outlived the processes and cannot be wiped, given the bytes that the output takes."""
        del output
        return []

    def become(self, uid: int) -> None:
        """Take the user id, for good; 0: keep this one."""
        if uid:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)

    @abstractmethod
    def kill_all(self, tally: Tally) -> None:
        """Kill every process but the supervisor, and reap them all."""


class Container(Home):
    """PID 1 of a container."""

    def __init__(self) -> None:
        if os.getpid() != 1:
            # Elsewhere `kill_all` would kill every process of the machine.
            raise RuntimeError("a container's supervisor must be its first process")
        # Version 2 shows the whole machine's clock where the engine was told to share its name space: then there is no cgroup.
        second = ["/sys/fs/cgroup/cpu.stat"] if Path("/sys/fs/cgroup/cgroup.events").exists() else []
        self._usage = _open("/sys/fs/cgroup/cpuacct/cpuacct.usage", *second)
        self._oom = _open("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")
        self._ipc = [file for file in map(_open, (f"/proc/sysvipc/{kind}" for kind in ("shm", "sem", "msg"))) if file is not None]
        self._usage_now = _open("/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory.current")
        self._memory = _open("/sys/fs/cgroup/memory/memory.stat", "/sys/fs/cgroup/memory.stat")
        self._before = 0.0
        self._held_at_first: int | None = None

    def begin(self) -> None:
        """Note where the cgroup's clock stands."""
        self._before = self._others()
        if self._held_at_first is None:
            self._held_at_first = self._held()

    def cpu(self, tally: Tally) -> float:
        """By the cgroup, which no process escapes."""
        return super().cpu(tally) if self._usage is None else self._others() - self._before

    def total(self, tally: Tally) -> float:
        """A process that ignores SIGCHLD hides its children from wait4, but not from the cgroup."""
        return tally.cpu if self._usage is None else max(tally.cpu, self._others() - self._before)

    def oom_kills(self) -> int:
        """As the cgroup counts them."""
        return _field(os.pread(self._oom, 4096, 0), b"oom_kill") if self._oom is not None else 0

    def leftovers(self, output: int) -> list[str]:
        """What belongs to no process: objects of System V, and memory, as for names that were asked for and are not there.

        There is no mercy for their container: they would be held against the next candidate.
        """
        sysv = any(os.pread(file, 4096, 0).count(b"\n") > 1 for file in self._ipc)
        return [name for name, left in (("sysv", sysv), ("memory", self._has_grown(output))) if left]

    def kill_all(self, tally: Tally) -> None:
        """To PID 1, -1 means all others."""
        with contextlib.suppress(ChildProcessError):
            while True:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
                tally.reap(block=True)

    def _has_grown(self, output: int) -> bool:
        first = self._held_at_first or 0
        # The usage alone is the cheap question; most often it suffices.
        return self._in_use() - output - first > _MEMORY_SLACK and self._held() - output - first > _MEMORY_SLACK

    def _in_use(self) -> int:
        return int(os.pread(self._usage_now, 64, 0)) if self._usage_now is not None else 0

    def _held(self) -> int:
        """Bytes that the kernel cannot take back: all but its cache of files."""
        if self._memory is None:
            return 0
        text = os.pread(self._memory, 16384, 0)
        return self._in_use() - _field(text, b"active_file") - _field(text, b"inactive_file")

    def _others(self) -> float:
        """CPU seconds of every process but this one since the container's start; 0 without a cgroup to ask."""
        if self._usage is None:
            return 0.0
        text = os.pread(self._usage, 4096, 0)
        total = _field(text, b"usage_usec") / 1e6 if b"usage_usec" in text else int(text) / 1e9
        return total - time.process_time()


class Host(Home):
    """A process among others on this machine."""

    def __init__(self, folders: Sequence[str]) -> None:
        """Prepare.

        Args:
            folders: Besides the standard library, what candidates must be able to read.
        """
        self._libc: Any = None
        self._must_read = not all(_is_readable_by_all(Path(name)) for name in (os.__file__, *folders))
        if sys.platform == "linux":
            import ctypes  # noqa: PLC0415 - a container's supervisor has no use for it

            self._libc = ctypes.CDLL(None, use_errno=True)
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def become(self, uid: int) -> None:
        """A Python in root's home is one that other users cannot import from, so root's right to read is kept: it alone."""
        if uid and self._must_read:
            self._libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0)
        super().become(uid)
        if uid and self._must_read:
            rights = struct.pack("=6I", _READ_ANYTHING, _READ_ANYTHING, 0, 0, 0, 0)
            if self._libc.capset(struct.pack("=Ii", _CAPABILITY_VERSION, 0), rights) != 0:
                raise PermissionError("the right to read could not be kept")

    def kill_all(self, tally: Tally) -> None:
        """The candidate's process group, then whatever descends from this process, until nothing does."""
        if tally.status is None or sys.platform != "linux":  # else its id may already belong to a stranger
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(tally.main, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                while tally.reap():
                    pass
                for pid, _ in _descendants(os.getpid()):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.001)


def _is_readable_by_all(path: Path) -> bool:
    """Whether a user without rights can read the file or folder."""
    return all(folder.stat().st_mode & 0o001 for folder in path.parents) and bool(path.stat().st_mode & 0o004)


def _open(*candidates: str) -> int | None:
    for name in candidates:
        with contextlib.suppress(OSError):
            return os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    return None


def _field(text: bytes, name: bytes) -> int:
    for line in text.splitlines():
        key, _, value = line.partition(b" ")
        if key == name:
            return int(value)
    return 0


def _descendants(root: int) -> Iterator[tuple[int, float]]:
    """Process id and CPU seconds (its own and its reaped children's) of each live descendant, from /proc where there is one."""
    children: dict[int, list[tuple[int, float]]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
            ticks = sum(map(int, fields[11:15]))
            children.setdefault(int(fields[1]), []).append((int(entry.parent.name), ticks / _TICK))
    waiting = [root]
    while waiting:
        for pid, cpu in children.get(waiting.pop(), []):
            waiting.append(pid)
            yield pid, cpu


def _tree_cpu(root: int) -> float:
    return sum(cpu for _, cpu in _descendants(root))
