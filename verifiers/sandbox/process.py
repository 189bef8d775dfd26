"""A supervisor in a plain process of this machine: limits, but no sandbox. For machines without a container engine."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import platform
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

from verifiers.jobs import Job, Run
from verifiers.sandbox.base import Conversation, SandboxError

_SUPERVISOR = Path(__file__).resolve().parents[1] / "supervisor" / "supervisor.py"
_START_SECONDS = 30.0
# Sandboxes that run at once use different ids, so that no candidate can end another's process.
_FIRST_UIDS = itertools.cycle(range(100_000, 200_000, 1_000))
_SKIP = os.getpid() % 100
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "TZ": "UTC",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    # Numeric libraries start a thread per processor, which a limit on processes ends with an error.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
NO_SANDBOX = (
    "candidates run as plain processes of this machine: no sandbox keeps them from files, network or other processes. "
    "Install Docker, or run only code that you would run yourself."
)


class NoSandboxWarning(UserWarning):
    """Candidates run without a sandbox."""


def warn_no_sandbox() -> None:
    """Say it once per process."""
    warnings.warn(NO_SANDBOX, NoSandboxWarning, stacklevel=3)


def interpreter_digest() -> str:
    """Digest over this interpreter's version and build: what stands for an image where there is none."""
    facts = (sys.version, sys.implementation.cache_tag or "", platform.machine(), platform.system())
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


class ProcessSandbox:
    """A supervisor as a child process. Candidates get a user of their own where this process is root (Linux)."""

    def __init__(self, memory_mb: int, packages: Path | None = None) -> None:
        self.name = ""
        self._memory = memory_mb * 2**20
        self._scratch = Path(tempfile.mkdtemp(prefix="evalnoise-"))
        own_users = os.geteuid() == 0 and sys.platform == "linux"
        self._scratch.chmod(0o1777 if own_users else 0o700)
        first_uid = next(_FIRST_UIDS) if own_users else 0
        # -S keeps this environment's packages from candidates: they see the standard library, as in the image.
        command = [sys.executable, "-S", str(_SUPERVISOR), "process", str(self._scratch), str(first_uid)]
        command += [str(packages)] if packages else []
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=ENVIRONMENT,
                cwd="/",
                bufsize=0,
            )
            self._channel = _Pipes(self._process)
            self._conversation = Conversation(self._channel, self.name)
            self._conversation.greet(_START_SECONDS)
        except OSError as error:
            self._remove_scratch()
            raise SandboxError(f"the supervisor could not be started: {error}") from None
        except SandboxError:
            self.close()
            raise

    def run(self, job: Job) -> Run:
        """Run one job."""
        return self._conversation.run(replace(job, limits=replace(job.limits, memory_bytes=self._memory)))

    def abort(self) -> None:
        """End the supervisor, which ends its candidate first."""
        self._process.terminate()

    def close(self) -> None:
        """End the supervisor, which ends its candidate first, and remove the scratch folder."""
        self._channel.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._remove_scratch()

    def _remove_scratch(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)


class _Pipes:
    """A child's standard input and output, with deadlines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)

    def send(self, data: bytes, deadline: float) -> None:
        """Send all of it."""
        view = memoryview(data)
        while view:
            self._wait(self._stdin.fileno(), selectors.EVENT_WRITE, deadline)
            try:
                view = view[os.write(self._stdin.fileno(), view) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise SandboxError(f"the supervisor is gone: {error}") from None

    def receive(self, deadline: float) -> bytes:
        """Some bytes, at least one."""
        self._wait(self._stdout.fileno(), selectors.EVENT_READ, deadline)
        data = os.read(self._stdout.fileno(), 2**20)
        if not data:
            raise SandboxError("the supervisor is gone")
        return data

    def close(self) -> None:
        """Close both ends."""
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                stream.close()

    @staticmethod
    def _wait(descriptor: int, event: int, deadline: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, event)
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise SandboxError("the supervisor did not answer in time")


for _ in range(_SKIP):
    next(_FIRST_UIDS)
