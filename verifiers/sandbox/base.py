"""Talks to a supervisor in frames: what containers and plain processes have in common."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any, Protocol

from verifiers.jobs import Ended, Job, Run
from verifiers.supervisor.wires import LENGTH_BYTES, frame_length

_MAX_FACTS = 2**16
GRACE_SECONDS = 30.0
"""Beyond a job's wall limit: for killing, wiping and the way back."""
_LAST_WORDS_SECONDS = 2.0


class SandboxError(Exception):
    """A sandbox failed for reasons outside the candidate. Never a verdict."""

    def __init__(self, detail: str, *, container: str = "") -> None:
        self.detail = detail
        self.container = container
        super().__init__(detail)


class Sandbox(Protocol):
    """Runs jobs one after another. Raises SandboxError when it cannot; it is of no use after that."""

    name: str

    def run(self, job: Job) -> Run:
        """Run one job."""

    def abort(self) -> None:
        """From another thread: make `run` fail at once. Never raises."""

    def close(self) -> None:
        """Remove whatever there is of it. Never raises."""


class Channel(Protocol):
    """Bytes to and from a supervisor. Both methods raise SandboxError at the deadline or when the other side is gone."""

    def send(self, data: bytes, deadline: float) -> None:
        """Send all of it."""

    def receive(self, deadline: float) -> bytes:
        """Some bytes, at least one."""


class Conversation:
    """The host's side of the supervisor's protocol over a channel."""

    def __init__(self, channel: Channel, name: str) -> None:
        self._channel = channel
        self._name = name
        self._buffer = bytearray()
        self._jobs = 0

    def greet(self, seconds: float) -> str:
        """Wait until the supervisor is ready; the version of its Python."""
        header = self._facts(time.monotonic() + seconds)
        if header.get("ready") is not True:
            raise SandboxError("the supervisor did not greet", container=self._name)
        return str(header.get("python"))

    def run(self, job: Job) -> Run:
        """Send a job, wait for its end."""
        deadline = time.monotonic() + job.limits.wall_seconds + GRACE_SECONDS
        if self._buffer:
            # Whatever it is, it was sent before this job and must not be taken for its answer.
            raise SandboxError("the supervisor sent more than its job's frames", container=self._name)
        body = job.body()
        self._jobs += 1
        self._send(job.header(self._jobs, len(body)).pack() + body, deadline)
        facts = self._facts(deadline)
        if facts.get("job") != self._jobs:
            raise SandboxError("the supervisor answered another job", container=self._name)
        try:
            body = self._take(_size(facts, job.limits.total_bytes), deadline)
            return _run(facts, body, job, self._name)
        except (KeyError, ValueError, TypeError) as error:
            raise SandboxError(f"the supervisor sent facts that cannot be: {error}", container=self._name) from None

    def _send(self, data: bytes, deadline: float) -> None:
        """Send a job. A supervisor that ends meanwhile may have said why, and that is worth more than that it is gone."""
        try:
            self._channel.send(data, deadline)
        except SandboxError:
            self._facts(time.monotonic() + _LAST_WORDS_SECONDS)
            raise

    def _facts(self, deadline: float) -> dict[str, Any]:
        """What the supervisor says next. Raises SandboxError, for its own fault too."""
        size = frame_length(self._take(LENGTH_BYTES, deadline))
        if size > _MAX_FACTS:
            raise SandboxError("the supervisor sent a malformed frame", container=self._name)
        try:
            facts: dict[str, Any] = json.loads(self._take(size, deadline))
        except ValueError:
            raise SandboxError("the supervisor sent malformed facts", container=self._name) from None
        if "fault" in facts:
            raise SandboxError(f"the supervisor failed: {facts['fault']}", container=self._name)
        return facts

    def _take(self, size: int, deadline: float) -> bytes:
        while len(self._buffer) < size:
            self._buffer += self._channel.receive(deadline)
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data


def _size(facts: Mapping[str, Any], most: int) -> int:
    size = int(facts["body"])
    if 0 <= size <= most:
        return size
    raise ValueError(f"{size} bytes of output")


def _run(header: Mapping[str, Any], body: bytes, job: Job, name: str) -> Run:
    return Run(
        ended=Ended(header["ended"]),
        status=int(header["status"]),
        body=body,
        cpu_seconds=float(header["cpu"]),
        wall_seconds=float(header["wall"]),
        peak_bytes=int(header["peak"]),
        oom=bool(header["oom"]),
        cpu_limit_seconds=job.limits.cpu_seconds,
        load=os.getloadavg()[0],
        container=name,
        leftovers=tuple(header["leftovers"]),
    )
