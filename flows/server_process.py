"""The background Prefect server as a process: its state file, its start, its end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock, Timeout

from flows.server_api import probe
from schemas.errors import ServerError

HOST = "127.0.0.1"
PROGRESS_SECONDS = 10.0

QUIET = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
"""No telemetry, in the server or in its clients."""

SERVER_SETTINGS = QUIET | {
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
}
"""Settings of the background server. Recording task runs in batches costs a fifth of the processor time of one by one."""

PASSED_ON = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH", "TMPDIR", "TZ", "USER")
"""Variables that the background server gets. It outlives the run that starts it and must hold none of the run's keys."""


@dataclass(frozen=True, slots=True)
class Record:
    """The state file of the background server."""

    port: int
    """Kept after a stop, so that the dashboard's address stays the same."""
    pid: int | None = None
    """The server's process; None when it was stopped."""
    identity: str | None = None
    """What tells this process from a later one with the same id."""
    started: str = ""
    """When it was started, UTC."""
    prefect: str = ""
    """The Prefect version it runs."""

    @property
    def api_url(self) -> str:
        """Address of the API."""
        return f"http://{HOST}:{self.port}/api"

    @property
    def alive(self) -> bool:
        """Whether the very process that was started still runs; a later one with the same id does not count."""
        return self.pid is not None and self.identity is not None and _identity(self.pid) == self.identity


def evalnoise_home() -> Path:
    """Folder for what belongs to this machine rather than to a study: EVALNOISE_HOME, default ~/.evalnoise."""
    return Path(os.environ.get("EVALNOISE_HOME") or "~/.evalnoise").expanduser().resolve()


def start_process(port: int) -> Record:
    """Start the server as a process of its own session and note it before it is up, so that no second one is started."""
    folder = server_folder()
    log = log_path()
    if log.exists():
        log.replace(log.with_suffix(".log.1"))
    passed = {key: value for key, value in os.environ.items() if key in PASSED_ON}
    own = {"PREFECT_HOME": str(folder), "PREFECT_SERVER_API_HOST": HOST, "PREFECT_SERVER_API_PORT": str(port)}
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - a fixed command
            command,
            cwd=folder,  # a prefect.toml or .env of the user's folder is not meant for this server
            env=passed | SERVER_SETTINGS | own,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children[process.pid] = process
    started = datetime.now(UTC).isoformat(timespec="seconds")
    record = Record(port, process.pid, _identity(process.pid), started, version("prefect"))
    write_record(record)
    return record


_children: dict[int, subprocess.Popen[bytes]] = {}
"""Servers that this process started, kept so that a dead one can be reaped."""


def wait_ready(record: Record, say: Callable[[str], None], seconds: float) -> str | None:
    """Wait until the server answers: None, or what was found instead."""
    began = time.monotonic()
    shown = -PROGRESS_SECONDS
    while True:
        passed = time.monotonic() - began
        if record.alive and probe(record.api_url) is None:
            return None
        if not record.alive:
            return f"a server that ended ({_last_line()})"
        if passed > seconds:
            return f"no answer after {passed:.0f} s ({_last_line()})"
        if passed - shown >= PROGRESS_SECONDS:
            waited = f" ({passed:.0f} s)" if passed >= 1 else ""
            say(f"Starting the Prefect server, once; it usually takes 10 to 30 s{waited}")
            shown = passed
        time.sleep(0.2)


def kill_process(record: Record, seconds: float) -> None:
    """End the server's process group, politely for some seconds. Does nothing when the process is not ours any more."""
    for sign, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
        if record.pid is None or not record.alive:
            return
        os.killpg(record.pid, sign)
        end = time.monotonic() + patience
        while record.alive and time.monotonic() < end:
            time.sleep(0.1)


def _identity(pid: int) -> str | None:
    """What tells a live process from a later one with the same id: the boot and its start time; None when it is dead."""
    if pid in _children:
        _children[pid].poll()  # a dead child stays in the process table until it is reaped
    if Path("/proc/self/stat").exists():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        except OSError:
            return None
        return None if fields[0] in ("Z", "X") else f"{boot}:{fields[19]}"
    ps = shutil.which("ps") or "/bin/ps"
    # Systems without /proc. Both arguments are ours.
    shown = subprocess.run([ps, "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603
    stat, _, since = shown.stdout.strip().partition(" ")
    return None if not stat or stat.startswith("Z") else since.strip()


def is_free(port: int) -> bool:
    """Whether a server could listen there."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
    return True


def settled_port(port: int, seconds: float = 5.0) -> int:
    """The same port as before, or another one when it does not become free in some seconds.

    Running clients know the old address. A killed process counts as dead a moment before its last thread lets the port go.
    """
    end = time.monotonic() + seconds
    while port and time.monotonic() < end:
        if is_free(port):
            return port
        time.sleep(0.1)
    return free_port()


def free_port() -> int:
    """A port that is free now; another process may take it before the server does."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def server_folder() -> Path:
    """The server's own PREFECT_HOME: its database, log and state file."""
    return evalnoise_home() / "server"


def log_path() -> Path:
    """The server's log; the one before it ends in `.1`."""
    return server_folder() / "server.log"


def _last_line() -> str:
    try:
        lines = log_path().read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return "no log"
    told = [line.strip() for line in lines if line.strip() and "Server stopped" not in line]
    return f"last line of its log: {told[-1][:200]}" if told else "an empty log"


def read_record() -> Record | None:
    """The state file; None when there is none, or none that makes sense."""
    try:
        return Record(**json.loads((server_folder() / "server.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_record(record: Record) -> None:
    """Replace the state file as a whole."""
    path = server_folder() / "server.json"
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps(asdict(record), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    fresh.replace(path)


@contextmanager
def server_lock(seconds: float) -> Iterator[None]:
    """The lock under which the background server is started and stopped. Raises ServerError."""
    folder = server_folder()
    lock = FileLock(folder / "server.lock", timeout=seconds)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock.acquire()
    except Timeout:
        raise ServerError(
            lock.lock_file,
            expected="a free lock",
            found="another process that has been starting the server for minutes",
            remedy="Try again; if it stays so, end that process.",
        ) from None
    except OSError as error:
        raise ServerError(
            str(folder),
            expected="a folder that can be written",
            found=str(error),
            remedy="Set EVALNOISE_HOME to a folder of yours on a disk with room.",
        ) from None
    try:
        yield
    finally:
        lock.release()
