"""Running a command and measuring what it cost: wall, CPU by who burnt it, peak memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
EVALNOISE = [sys.executable, "-m", "flows"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command cost."""

    wall_seconds: float
    command_cpu_seconds: float
    """CPU of the command and of its own children: the client, Prefect's client in it, the statistics."""
    server_cpu_seconds: float
    """CPU of the background Prefect server meanwhile."""
    engine_cpu_seconds: float
    """CPU of the container engine and its helpers meanwhile; 0 without one."""
    peak_memory_bytes: int
    """Largest resident memory of the command's processes together, sampled five times a second."""


def run(arguments: list[str], *, env: dict[str, str] | None = None) -> tuple[subprocess.CompletedProcess[str], Cost]:
    """Run evalnoise with the arguments and measure it."""
    before_server, before_engine = _cpu_of(_is_server), _cpu_of(_is_engine)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    process = subprocess.Popen(
        [*EVALNOISE, *arguments], cwd=ROOT, env=os.environ | (env or {}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    peak = _Peak(process.pid)
    peak.start()
    out, err = process.communicate()
    peak.stop()
    wall = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cost = Cost(wall, cpu, _cpu_of(_is_server) - before_server, _cpu_of(_is_engine) - before_engine, peak.bytes)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err), cost


def evalnoise(*arguments: str, env: dict[str, str] | None = None) -> str:
    """Run evalnoise to success and return what it printed."""
    done = subprocess.run(
        [*EVALNOISE, *arguments], cwd=ROOT, env=os.environ | (env or {}), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"evalnoise {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


class _Peak(threading.Thread):
    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._ended = threading.Event()
        self.bytes = 0

    def run(self) -> None:
        while not self._ended.wait(0.2):
            try:
                root = psutil.Process(self._pid)
                # The background server outlives the command and is no part of it.
                family = [root, *(child for child in root.children(recursive=True) if not _is_server(child))]
                self.bytes = max(self.bytes, sum(member.memory_info().rss for member in family))
            except psutil.NoSuchProcess:
                continue

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _is_server(process: psutil.Process) -> bool:
    line = " ".join(process.cmdline())
    return "prefect" in line and ("server" in line or "uvicorn" in line)


def _is_engine(process: psutil.Process) -> bool:
    return process.name().startswith(("dockerd", "containerd"))


def _cpu_of(wanted: object) -> float:
    total = 0.0
    for process in psutil.process_iter():
        try:
            if wanted(process):  # type: ignore[operator]
                times = process.cpu_times()
                total += times.user + times.system
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total
