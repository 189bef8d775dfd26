"""Runs candidates one after another, each in a fresh process with its own user, limits and directory. Standard library alone.

Started as PID 1 of a container, or as a plain process. Talks to the host over standard input and output in frames: four
bytes of length, four bytes of the header's length, the header in JSON, then raw bytes. Candidates get neither descriptor.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import platform
import resource
import select
import shutil
import signal
import site
import struct
import sys
import time
from pathlib import Path
from typing import Any

_ROOT = str(Path(__file__).resolve().parents[2])
sys.path.insert(0, _ROOT)

from verifiers.supervisor import child  # noqa: E402 - the path must be set before
from verifiers.supervisor.processes import Container, Home, Host, Tally  # noqa: E402
from verifiers.supervisor.wipe import JOB_DIRECTORY, wipe  # noqa: E402

# A candidate should find no more to import than a plain Python offers.
sys.path[:] = [entry for entry in sys.path if entry not in {_ROOT, str(Path(__file__).resolve().parent)}]

# Imported before any fork, because nearly every candidate imports some of them and an import costs more than a fork.
_PRELOADED = (
    "bisect collections collections.abc copy dataclasses datetime decimal enum fractions functools hashlib heapq itertools math "
    "numbers operator queue random re statistics string textwrap time typing unicodedata"
)
_UIDS = 1000
_TICK_SECONDS = 0.1
_IDLE_SHARE = 0.01
_FILE_BYTES = 32 * 2**20
_FILES = 256
_PROCESSES = 48
_MAX_FRAME = 256 * 2**20


class _HostGoneError(Exception):
    """The host closed the connection, or asked for the end."""


def _end(*_: object) -> None:
    raise _HostGoneError


def _read(size: int) -> bytes:
    parts = []
    while size:
        part = os.read(0, min(size, 2**20))
        if not part:
            raise _HostGoneError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _read_job() -> dict[str, Any]:
    (size,) = struct.unpack(">I", _read(4))
    if size > _MAX_FRAME:
        raise _HostGoneError
    job: dict[str, Any] = json.loads(_read(size))
    return job


def _send(header: dict[str, Any], body: bytes = b"") -> None:
    text = json.dumps(header).encode("ascii")
    data = memoryview(struct.pack(">II", 4 + len(text) + len(body), len(text)) + text + body)
    while data:
        data = data[os.write(1, data) :]


class Supervisor:
    """Serves jobs until the host goes away."""

    def __init__(self, home: Home, scratch: str, first_uid: int) -> None:
        self._home = home
        self._scratch = scratch
        self._folders = [scratch, *(["/dev/mqueue"] if isinstance(home, Container) else [])]
        self._first_uid = first_uid
        self._jobs = 0
        self._wake, wake_write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, _end)

    def serve(self) -> None:
        """Answer jobs one by one."""
        _send({"ready": True, "python": platform.python_version()})
        with contextlib.suppress(_HostGoneError):
            while True:
                header, body = self._run(_read_job())
                _send(header, body)

    def _run(self, job: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        uid = self._first_uid + self._jobs % _UIDS if self._first_uid else 0
        self._jobs += 1
        ooms = self._home.oom_kills()
        self._home.begin()
        started = time.monotonic()
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become_candidate(job, uid, write_end)
        os.close(write_end)
        tally = Tally(main=pid)
        try:
            ended, body = self._watch(job["limits"], read_end, tally)
        finally:
            self._home.kill_all(tally)
            wall = time.monotonic() - started
            cpu = self._home.total(tally)
            rest = _drain(read_end)
            os.close(read_end)
        body += rest[: max(0, job["limits"]["total"] - len(body))]
        clean = wipe(self._folders, lambda: _become_user(uid))
        if ended == "exited" and os.WIFSIGNALED(tally.status or 0):
            ended = "signalled"
        header = {
            "ended": ended,
            "status": _status(tally.status or 0),
            "cpu": cpu,
            "wall": wall,
            "peak": tally.peak,
            "oom": self._home.oom_kills() > ooms,
            "leftovers": self._home.leftovers() + ([] if clean else ["files"]),
        }
        return header, body

    def _watch(self, limits: dict[str, Any], pipe: int, tally: Tally) -> tuple[str, bytes]:
        """Collect output until the candidate ends or crosses a limit; which of the two, and what it wrote."""
        os.set_blocking(pipe, False)
        poll = select.poll()
        for descriptor in (0, pipe, self._wake):
            poll.register(descriptor, select.POLLIN)
        body = bytearray()
        watch = _Watch(limits)
        ended = ""
        while not ended:
            ready = {descriptor for descriptor, _ in poll.poll(_TICK_SECONDS * 1000)}
            if 0 in ready:
                raise _HostGoneError  # nothing is sent while a job runs, so this is the end of the connection
            if self._wake in ready:
                self._reap(tally)
            if pipe in ready:
                data = _read_available(pipe)
                body += data
                if not data:
                    poll.unregister(pipe)
            if len(body) > limits["total"]:
                ended = "overflow"
            elif tally.status is not None:
                ended = "exited"
            else:
                ended = watch.crossed(lambda: self._home.cpu(tally))
        return ended, bytes(body[: limits["total"]])

    def _reap(self, tally: Tally) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)
        with contextlib.suppress(ChildProcessError):
            while tally.reap():
                pass

    def _become_candidate(self, job: dict[str, Any], uid: int, pipe: int) -> None:
        """In the new process: take the place of a candidate, run it, never return."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            pipe = _only_descriptor(pipe)
            os.setsid()
            try:
                _be_killed_first()
                _limit(job["limits"], own_user=bool(uid))
                _become_user(uid)
                private = Path(self._scratch, JOB_DIRECTORY)
                private.mkdir(0o700)
                os.chdir(private)
            except Exception as error:
                os.write(pipe, f"!{type(error).__name__}: {error}\n".encode("ascii", "replace"))
                return
            os.write(pipe, b"+\n")
            child.run(job, pipe)
        finally:
            os._exit(0)


class _Watch:
    """Notices a crossed limit; looks at the CPU only every so often."""

    def __init__(self, limits: dict[str, Any]) -> None:
        self._limits = limits
        self._started = self._next_look = self._progress_at = time.monotonic()
        self._next_look += _TICK_SECONDS
        self._progress = 0.0

    def crossed(self, cpu: Any) -> str:
        now = time.monotonic()
        if now < self._next_look:
            return ""
        self._next_look = now + _TICK_SECONDS
        used = cpu()
        if used >= self._limits["cpu"]:
            return "cpu"
        if used - self._progress > _IDLE_SHARE * self._limits["idle"]:
            self._progress, self._progress_at = used, now
        if now - self._started > self._limits["wall"]:
            return "wall"
        return "idle" if now - self._progress_at > self._limits["idle"] else ""


def _read_available(pipe: int) -> bytes:
    try:
        return os.read(pipe, 2**20)
    except BlockingIOError:
        return b""


def _drain(pipe: int) -> bytes:
    """What is still in the pipe. Every writer is dead, so this ends."""
    parts = []
    while data := _read_available(pipe):
        parts.append(data)
    return b"".join(parts)


def _status(status: int) -> int:
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _only_descriptor(pipe: int) -> int:
    """Close every descriptor but the pipe, which becomes 3; 0 to 2 lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    high = os.dup2(pipe, 200)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.dup2(high, 3)
    os.closerange(4, 1024)
    return 3


def _be_killed_first() -> None:
    """When memory runs out the kernel should take the candidate, not the supervisor."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def _limit(limits: dict[str, Any], *, own_user: bool) -> None:
    whole = limits["cpu_backstop"]
    pairs = {
        "RLIMIT_CPU": (whole, whole + 1),
        "RLIMIT_FSIZE": (_FILE_BYTES, _FILE_BYTES),
        "RLIMIT_NOFILE": (_FILES, _FILES),
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_MSGQUEUE": (0, 0),
    }
    if own_user:
        pairs["RLIMIT_NPROC"] = (_PROCESSES, _PROCESSES)
    if limits["memory"]:
        pairs["RLIMIT_DATA"] = (limits["memory"], limits["memory"])
    for name, (soft, hard) in pairs.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        ceiling = resource.getrlimit(kind)[1]
        if ceiling == resource.RLIM_INFINITY:
            ceiling = hard
        resource.setrlimit(kind, (min(soft, ceiling), min(hard, ceiling)))


def _become_user(uid: int) -> None:
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def main(arguments: list[str]) -> None:
    """Serve. Arguments: `container` or `process`, the scratch folder, the first user id (0: keep this one)."""
    home, scratch, first_uid = arguments
    for name in _PRELOADED.split():
        __import__(name)
    site.setquit()  # a plain process runs without site, whose `exit` candidates may expect
    supervisor = Supervisor(Container() if home == "container" else Host(), scratch, int(first_uid))
    os.environ["HOME"] = str(Path(scratch, JOB_DIRECTORY))
    gc.collect()
    gc.freeze()
    try:
        supervisor.serve()
    except Exception as error:
        _send({"fault": f"{type(error).__name__}: {error}"[:500]})
        raise
    finally:
        if home == "process":  # the host may have died before it could
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
