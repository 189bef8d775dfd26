"""Runs candidates one after another, each in a fresh process with its own user, limits and directory. Standard library alone.

Started as PID 1 of a container, or as a plain process. Talks to the host over standard input and output; candidates get neither
descriptor. A forked process starts with a copy of the supervisor's memory, so the supervisor must never know a job: of each it
reads limits alone, the forked process reads its own job, and output is sent on unread (`wires`).
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
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

_ROOT = str(Path(__file__).resolve().parents[2])
sys.path.insert(0, _ROOT)

from verifiers.supervisor import child  # noqa: E402 - the path must be set before
from verifiers.supervisor.processes import Container, Home, Host, Tally  # noqa: E402
from verifiers.supervisor.syscalls import confine  # noqa: E402
from verifiers.supervisor.wipe import JOB_DIRECTORY, sizes, wipe  # noqa: E402
from verifiers.supervisor.wires import Header, HostGoneError, open_output, pass_on, read_exactly, read_header, send  # noqa: E402

# A candidate should find no more to import than a plain Python offers.
sys.path[:] = [entry for entry in sys.path if entry not in {_ROOT, str(Path(__file__).resolve().parent)}]

# Imported before any fork, because nearly every candidate imports some of them and an import costs more than a fork. Not `queue`,
# which imports `threading`: its work in each forked process costs more than is saved where a candidate wants it.
_PRELOADED = (
    "bisect collections collections.abc copy dataclasses datetime decimal enum fractions functools hashlib heapq itertools math "
    "numbers operator random re statistics string textwrap time typing unicodedata"
)
_REHEARSALS = 12
_REHEARSED = {
    "mode": "calls",
    "preamble": "",
    "source": "def f(*values):\n    return [value for value in values]\n",
    "entry_point": "f",
    "inputs": ['[1,-2.5,"text",null,true,[[],["a"]]]', '[{"t":[1,2]},{"d":[["k",[3]]]},{"s":[1]},{"i":"0x20000000000001"}]', "[]"],
    "input_limits": [],
    "keywords": False,
    "arguments": "look",
    "stop": True,
    "skip": False,
    "output": 2**16,
    "outputs": 0,
}
_PACKAGES = "/opt/evalnoise-packages"
_UIDS = 1000
_TICK_SECONDS = 0.1
_IDLE_SHARE = 0.01
_FILE_BYTES = 33 * 2**20
"""More than any job may return, so that a flood of output is seen to go over."""
_FILES = 256
_PROCESSES = 48
_STARTED = b"+"
# The plain function below the module's own, which makes an enum's member of the old handler: a tenth of a forked process's cost.
_set_handler = getattr(signal.signal, "__wrapped__", signal.signal)


class NotStartedError(Exception):
    """A candidate's process could not read its job or take its place. Nobody's verdict, and the connection is out of step."""


def _end(*_: object) -> None:
    raise HostGoneError


class Supervisor:
    """Serves jobs until the host goes away."""

    def __init__(self, home: Home, scratch: str, first_uid: int) -> None:
        self._home = home
        self._private = os.path.join(scratch, JOB_DIRECTORY)
        self._folders = [scratch, *(["/dev/mqueue"] if isinstance(home, Container) else [])]
        self._empty = sizes(self._folders) if isinstance(home, Container) else None
        self._first_uid = first_uid
        self._jobs = 0
        self._wake, wake_write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, _end)

    def serve(self) -> Callable[[], None] | None:
        """Answer jobs one by one. Returns None at the end; and in a candidate's process what it has to do, with no frame below."""
        send({"ready": True, "python": platform.python_version()})
        with contextlib.suppress(HostGoneError):
            while (work := self._run(read_header())) is None:
                pass
            return work
        return None

    def _run(self, limits: Header) -> Callable[[], None] | None:
        uid = self._first_uid + self._jobs % _UIDS if self._first_uid else 0
        self._jobs += 1
        ooms = self._home.oom_kills()
        self._home.begin()
        started = time.monotonic()
        output = open_output()
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            return self._become_candidate(limits, uid, output, tell)
        os.close(tell)
        tally = Tally(main=pid)
        try:
            ended = self._watch(limits, told, tally)
        finally:
            self._home.kill_all(tally)
            wall = time.monotonic() - started
            cpu = self._home.total(tally)
        os.close(told)
        clean = wipe(self._folders, partial(self._become_wiper, uid), self._empty)
        written = os.fstat(output).st_size
        if ended == "exited" and written > limits.total:
            ended = "overflow"
        elif ended == "exited" and os.WIFSIGNALED(tally.status or 0):
            ended = "signalled"
        body = min(written, limits.total)
        os.ftruncate(output, body)  # what else it holds is the candidate's, and must not be counted as ours
        send(
            {
                "job": limits.job,
                "ended": ended,
                "status": _status(tally.status or 0),
                "cpu": cpu,
                "wall": wall,
                "peak": tally.peak,
                "oom": self._home.oom_kills() > ooms,
                "leftovers": self._home.leftovers(body) + ([] if clean else ["files"]),
                "body": body,
            }
        )
        pass_on(output, body)
        os.close(output)
        return None

    def _watch(self, limits: Header, told: int, tally: Tally) -> str:
        """Wait until the candidate ends or crosses a limit; which of the two."""
        os.set_blocking(told, False)
        poll = select.poll()
        for descriptor in (told, self._wake):
            poll.register(descriptor, select.POLLIN)
        watch: _Watch | None = None
        ended = ""
        while not ended:
            ready = {descriptor for descriptor, _ in poll.poll(_TICK_SECONDS * 1000)}
            if self._wake in ready:
                self._reap(tally)
            if watch is None and _has_started(told, ended=tally.status is not None):
                watch = _Watch(limits)
                poll.unregister(told)
                poll.register(0, select.POLLIN)  # not before: until then the job's body stands there
            if 0 in ready:
                raise HostGoneError  # nothing is sent while a job runs, so this is the end of the connection
            ended = self._end_of(tally, watch)
        return ended

    def _end_of(self, tally: Tally, watch: _Watch | None) -> str:
        if tally.status is not None:
            return "exited"
        return watch.crossed(lambda: self._home.cpu(tally)) if watch is not None else ""

    def _reap(self, tally: Tally) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)
        with contextlib.suppress(ChildProcessError):
            while tally.reap():
                pass

    def _become_wiper(self, uid: int) -> None:
        """In the process that wipes: what the candidate left may be all the memory that there is."""
        _be_killed_first()
        self._home.become(uid)

    def _become_candidate(self, limits: Header, uid: int, output: int, tell: int) -> Callable[[], None]:
        """In the new process: read the job and take the place of a candidate; what is left to do."""
        try:
            signal.set_wakeup_fd(-1)
            _set_handler(signal.SIGCHLD, signal.SIG_DFL)
            _set_handler(signal.SIGINT, signal.default_int_handler)
            _set_handler(signal.SIGTERM, signal.SIG_DFL)
            job = json.loads(read_exactly(limits.length))
            output, tell = _only_descriptors(output, tell)
            os.setsid()
            _be_killed_first()
            _limit(limits, own_user=bool(uid) and isinstance(self._home, Host))
            self._home.become(uid)
            os.mkdir(self._private, 0o700)
            os.chdir(self._private)
            os.write(tell, _STARTED)
            os.close(tell)
        except BaseException as error:
            os.write(tell, f"{type(error).__name__}: {error}"[:200].encode("ascii", "replace"))
            os._exit(1)
        return partial(child.run, job, output)


class _Watch:
    """Notices a crossed limit; looks at the CPU only every so often."""

    def __init__(self, limits: Header) -> None:
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
        if used >= self._limits.cpu:
            return "cpu"
        if used - self._progress > _IDLE_SHARE * self._limits.idle:
            self._progress, self._progress_at = used, now
        if now - self._started > self._limits.wall:
            return "wall"
        return "idle" if now - self._progress_at > self._limits.idle else ""


def _has_started(told: int, *, ended: bool) -> bool:
    """Whether the candidate's process has read its job and begun. Raises NotStartedError when it cannot any more."""
    try:
        word = os.read(told, 512)
    except BlockingIOError:
        word = b""
        if not ended:
            return False
    if word != _STARTED:
        raise NotStartedError(word.decode("ascii", "replace") or "the candidate's process ended before its start")
    return True


def _status(status: int) -> int:
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _only_descriptors(output: int, tell: int) -> tuple[int, int]:
    """Close every descriptor but these two, which become 3 and 4; 0 to 2 lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    high = os.dup2(output, 200), os.dup2(tell, 201)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.dup2(high[0], 3)
    os.dup2(high[1], 4)
    os.closerange(5, 1024)
    return 3, 4


def _be_killed_first() -> None:
    """When memory runs out the kernel should take the candidate, not the supervisor."""
    with contextlib.suppress(OSError):
        file = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(file, b"1000")
        os.close(file)


def _limit(limits: Header, *, own_user: bool) -> None:
    whole = int(limits.backstop)
    pairs = {
        "RLIMIT_CPU": (whole, whole + 1),
        "RLIMIT_FSIZE": (_FILE_BYTES, _FILE_BYTES),
        "RLIMIT_NOFILE": (_FILES, _FILES),
        "RLIMIT_CORE": (0, 0),
        "RLIMIT_MSGQUEUE": (0, 0),
    }
    if own_user:
        # Counted per user of the whole machine, so not in containers, which have a limit of their own and may share ids.
        pairs["RLIMIT_NPROC"] = (_PROCESSES, _PROCESSES)
    if limits.memory:
        pairs["RLIMIT_DATA"] = (limits.memory, limits.memory)
    for name, (soft, hard) in pairs.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        ceiling = resource.getrlimit(kind)[1]
        if ceiling == resource.RLIM_INFINITY:
            ceiling = hard
        resource.setrlimit(kind, (min(soft, ceiling), min(hard, ceiling)))


def _rehearse() -> None:
    """Run a harmless job here, some times, before any other comes.

    Each forked process then begins with warm code. Code that runs for the first time is rewritten by the interpreter, which costs
    the forked process a copy of every page that it lies on.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for _ in range(_REHEARSALS):
        child.run(json.loads(json.dumps(_REHEARSED)), nowhere)
    os.close(nowhere)
    del sys.modules["candidate"]


def serve(arguments: list[str]) -> Callable[[], None] | None:
    """Serve until the host is gone; in a candidate's process return at once what it has to do.

    Arguments: `container` or `process`, the scratch folder, the first user id (0: keep this one), the folder of packages if any.
    """
    home, scratch, first_uid, *packages = arguments
    # At the end, so that no package takes the place of a module of the standard library.
    sys.path += filter(os.path.isdir, [_PACKAGES] if home == "container" else packages)
    for name in _PRELOADED.split():
        __import__(name)
    if sys.platform == "linux":
        confine()
    site.setquit()  # a plain process runs without site, whose `exit` candidates may expect
    supervisor = Supervisor(Container() if home == "container" else Host(packages), scratch, int(first_uid))
    os.environ["HOME"] = str(Path(scratch, JOB_DIRECTORY))
    _rehearse()
    gc.collect()
    gc.freeze()
    work = None
    try:
        work = supervisor.serve()
    except Exception as error:
        send({"fault": f"{type(error).__name__}: {error}"[:500]})
        raise
    finally:
        if work is None and home == "process":  # the host may have died before it could
            shutil.rmtree(scratch, ignore_errors=True)
    return work


def main(arguments: list[str]) -> None:
    """Serve; and in a candidate's process, run the candidate."""
    work = serve(arguments)
    if work is not None:
        try:
            work()
        finally:
            os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
