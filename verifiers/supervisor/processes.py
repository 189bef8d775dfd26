"""The processes of one candidate: what CPU they used, how they are killed to the last one, what they left. Standard library alone.

Two homes: a container, where the supervisor is PID 1 and every other process belongs to the candidate, and a plain host
process, where the supervisor adopts orphans (Linux) and may touch its own descendants only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_PR_SET_CHILD_SUBREAPER = 36
_TICK = os.sysconf("SC_CLK_TCK")
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
        """Collect one ended child; whether there was one. Raises ChildProcessError when no child is left at all."""
        pid, status, usage = os.wait4(-1, 0 if block else os.WNOHANG)
        if pid == 0:
            return False
        self.cpu += usage.ru_utime + usage.ru_stime
        self.peak = max(self.peak, usage.ru_maxrss * _PEAK_UNIT)
        if pid == self.main:
            self.status = status
        return True


class Home(Protocol):
    """Where candidates run."""

    def begin(self) -> None:
        """A job starts."""

    def cpu(self, tally: Tally) -> float:
        """CPU seconds that the job's processes have used so far."""

    def total(self, tally: Tally) -> float:
        """The same, when all of them are reaped."""

    def oom_kills(self) -> int:
        """Processes that the kernel killed for memory so far."""

    def kill_all(self, tally: Tally) -> None:
        """Kill every process but the supervisor, and reap them all."""

    def leftovers(self) -> list[str]:
        """What outlived the processes and cannot be wiped."""


class Container:
    """PID 1 of a container."""

    def __init__(self) -> None:
        self._usage = _open("/sys/fs/cgroup/cpuacct/cpuacct.usage", "/sys/fs/cgroup/cpu.stat")
        self._oom = _open("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")
        self._before = 0.0
        self._ipc = [Path(f"/proc/sysvipc/{kind}") for kind in ("shm", "sem", "msg")]

    def _others(self) -> float:
        """CPU seconds of every process but this one since the container's start; 0 without a cgroup to ask."""
        if self._usage is None:
            return 0.0
        text = os.pread(self._usage, 4096, 0)
        total = _field(text, b"usage_usec") / 1e6 if b"usage_usec" in text else int(text) / 1e9
        return total - time.process_time()

    def begin(self) -> None:
        self._before = self._others()

    def cpu(self, tally: Tally) -> float:
        return self._others() - self._before if self._usage is not None else _tree_cpu(os.getpid()) + tally.cpu

    def total(self, tally: Tally) -> float:
        # A process that ignores SIGCHLD hides its children from wait4, but not from the cgroup.
        return max(tally.cpu, self._others() - self._before)

    def oom_kills(self) -> int:
        return _field(os.pread(self._oom, 4096, 0), b"oom_kill") if self._oom is not None else 0

    def kill_all(self, tally: Tally) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
                tally.reap(block=True)

    def leftovers(self) -> list[str]:
        return ["sysv"] if any(len(path.read_bytes().splitlines()) > 1 for path in self._ipc if path.exists()) else []


class Host:
    """A process among others on this machine."""

    def __init__(self) -> None:
        if sys.platform == "linux":
            import ctypes  # noqa: PLC0415 - a container's supervisor has no use for it

            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def begin(self) -> None:
        pass

    def cpu(self, tally: Tally) -> float:
        return _tree_cpu(os.getpid()) + tally.cpu

    def total(self, tally: Tally) -> float:
        return tally.cpu

    def oom_kills(self) -> int:
        return 0

    def kill_all(self, tally: Tally) -> None:
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

    def leftovers(self) -> list[str]:
        return []


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
