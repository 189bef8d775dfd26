"""The container engine as something that a test may kill: only where it was started for the tests alone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from verifiers.sandbox.engine import engine_answers

DEFAULT_SOCKET = "unix:///var/run/docker.sock"


class DisposableEngine:
    """The engine that the environment names, and how it was started."""

    def __init__(self, log: Path) -> None:
        socket = os.environ.get("DOCKER_HOST", DEFAULT_SOCKET)
        found = [pid for pid in _processes("dockerd") if socket in _command(pid)]
        assert len(found) == 1, f"dockerd of {socket}: {found}"
        self._pid = found[0]
        self._arguments = _command(self._pid)
        self._log = log

    def kill(self) -> None:
        """End it as a crash does."""
        os.kill(self._pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while is_alive(self._pid):
            assert time.monotonic() < deadline, "dockerd outlived SIGKILL"
            time.sleep(0.05)

    def start(self) -> None:
        """Start it again, unless it lives, and wait until it answers."""
        if not is_alive(self._pid):
            self._remove_stale_pid_files()
            with self._log.open("ab") as log:
                command = subprocess.Popen(
                    self._arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
                )
            self._pid = command.pid
        deadline = time.monotonic() + 60
        while (problem := engine_answers()) is not None:
            assert is_alive(self._pid), self._log.read_text()[-2000:]
            assert time.monotonic() < deadline, problem
            time.sleep(0.2)

    def _remove_stale_pid_files(self) -> None:
        """A killed engine's pid files stop the next one, even where the process that they name is gone or another's."""
        state = self._option("--exec-root", "/var/run/docker")
        for path, name in (
            (self._option("--pidfile", "/var/run/docker.pid"), "dockerd"),
            (f"{state}/containerd/containerd.pid", "containerd"),
        ):
            file = Path(path)
            if file.exists():
                pid = int("".join(filter(str.isdigit, file.read_text())) or 0)
                if not (is_alive(pid) and _name(pid) == name):
                    file.unlink()

    def _option(self, name: str, default: str) -> str:
        pairs = zip(self._arguments, self._arguments[1:], strict=False)
        return next((value for option, value in pairs if option == name), default)


def is_alive(pid: int) -> bool:
    """Whether the process runs. A zombie does not: nobody may ever reap it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


def _processes(name: str) -> list[int]:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _name(pid) == name and is_alive(pid)]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _command(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
