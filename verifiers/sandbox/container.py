"""A warm container with a supervisor as PID 1, driven over its attached standard input and output."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import struct
import time
import uuid
from datetime import datetime
from typing import Any

from docker import DockerClient
from docker.types import LogConfig

from verifiers.jobs import Ended, Job, Run
from verifiers.sandbox.base import Conversation, SandboxError
from verifiers.sandbox.engine import ENGINE_ERRORS, connect, labels, remove

_START_SECONDS = 60.0
_PROCESSES = 96
_SCRATCH = "/tmp"  # noqa: S108 - inside the container
_STDOUT = 1
_KILLED = 137
_LATE_SECONDS = 2
# Users' limits are counted per user id on the whole machine, so containers that run at once use different ids.
_FIRST_UIDS = itertools.cycle(range(20_000, 60_000, 1_000))
_SKIP = os.getpid() % 40


class ContainerSandbox:
    """One container, from its creation to its removal."""

    def __init__(self, image: str, memory_mb: int) -> None:
        self.name = ""
        # Known before the container is made, so that it can be removed even if the engine's answer is lost.
        self._handle = f"evalnoise-{uuid.uuid4().hex}"
        self._streams: _Streams | None = None
        try:
            self._client = connect()
        except ENGINE_ERRORS as error:
            raise SandboxError(f"no container engine: {error}") from None
        try:
            made = self._client.api.create_container(name=self._handle, **_configuration(self._client, image, memory_mb))
            self._id: str = made["Id"]
            self.name = self._id[:12]
            self._streams = _Streams(self._client, self._id)
            self._client.api.start(self._id)
            self._conversation = Conversation(_Attached(self._streams.socket, self.name), self.name)
            self.python = self._conversation.greet(_START_SECONDS)
        except ENGINE_ERRORS as error:
            self.close()
            raise SandboxError(f"the engine could not start a container: {error}", container=self.name) from None
        except SandboxError:
            self.close()
            raise

    def run(self, job: Job) -> Run:
        """Run one job. A container that the kernel ended for memory is the candidate's doing, every other end is a fault."""
        started = time.monotonic()
        try:
            return self._conversation.run(job)
        except SandboxError:
            if not self._out_of_memory():
                raise
        return Run(
            ended=Ended.OOM,
            status=0,
            body=b"",
            cpu_seconds=0.0,
            wall_seconds=time.monotonic() - started,
            peak_bytes=0,
            oom=True,
            cpu_limit_seconds=job.limits.cpu_seconds,
            load=os.getloadavg()[0],
            container=self.name,
        )

    def abort(self) -> None:
        """End the conversation, which ends the supervisor, and with it the container."""
        if self._streams is not None:
            with contextlib.suppress(OSError):
                self._streams.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Remove the container."""
        remove(self._client, self._handle)
        if self._streams is not None:
            self._streams.close()
        with contextlib.suppress(*ENGINE_ERRORS):
            self._client.close()

    def _out_of_memory(self) -> bool:
        """Whether the kernel ended the container for memory. The engine may hear of that after it heard of the end."""
        with contextlib.suppress(*ENGINE_ERRORS):
            state = self._client.api.inspect_container(self._id)["State"]
            if state["OOMKilled"] or state["ExitCode"] != _KILLED:
                return bool(state["OOMKilled"])
            ended = datetime.fromisoformat(f"{state['FinishedAt'][:19]}+00:00")
            until = int(ended.timestamp()) + _LATE_SECONDS
            wanted = {"container": self._id, "event": "oom"}
            return any(self._client.api.events(since=state["StartedAt"], until=until, filters=wanted))
        return False


def _configuration(client: DockerClient, image: str, memory_mb: int) -> dict[str, Any]:
    """What the container may: nothing that a candidate does not need."""
    memory = memory_mb * 2**20
    host = client.api.create_host_config(
        network_mode="none",
        ipc_mode="none",
        read_only=True,
        tmpfs={_SCRATCH: "rw,nosuid,nodev,noexec,size=64m,nr_inodes=16384,mode=1777"},
        mem_limit=memory,
        memswap_limit=memory,
        pids_limit=_PROCESSES,
        nano_cpus=10**9,
        cap_drop=["ALL"],
        cap_add=["SETUID", "SETGID", "KILL"],
        security_opt=["no-new-privileges:true"],
        log_config=LogConfig(type=LogConfig.types.NONE),
    )
    return {
        "image": image,
        "command": ["container", _SCRATCH, str(next(_FIRST_UIDS))],
        "hostname": "evalnoise",
        "labels": labels(),
        "stdin_open": True,
        "network_disabled": True,
        "host_config": host,
    }


class _Streams:
    """The container's standard input and output. Holds docker-py's response too, which closes the socket when it is collected."""

    def __init__(self, client: DockerClient, container_id: str) -> None:
        self._stream = client.api.attach_socket(container_id, {"stdin": 1, "stdout": 1, "stream": 1})
        # A file object over a Unix socket, the socket itself over TLS.
        self.socket: socket.socket = getattr(self._stream, "_sock", self._stream)

    def close(self) -> None:
        """Close every layer: a socket stays open until the last file object over it is closed."""
        response = getattr(self._stream, "_response", None)
        for layer in (response, self._stream, self.socket):
            if layer is not None:
                with contextlib.suppress(OSError, *ENGINE_ERRORS):
                    layer.close()


class _Attached:
    """The engine's multiplexed stream: eight bytes of header before every piece."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self._socket = connection
        self._name = name
        self._left = 0
        self._wanted = False
        self._buffer = bytearray()

    def send(self, data: bytes, deadline: float) -> None:
        """Send all of it."""
        try:
            self._socket.settimeout(_remaining(deadline))
            self._socket.sendall(data)
        except OSError as error:
            raise SandboxError(f"the container is gone: {error}", container=self._name) from None

    def receive(self, deadline: float) -> bytes:
        """Some bytes of the supervisor's standard output."""
        while True:
            if self._left and self._buffer:
                piece = bytes(self._buffer[: self._left])
                del self._buffer[: len(piece)]
                self._left -= len(piece)
                if self._wanted:
                    return piece
                continue
            if not self._left and len(self._buffer) >= 8:
                stream, self._left = struct.unpack(">BxxxI", self._buffer[:8])
                self._wanted = stream == _STDOUT
                del self._buffer[:8]
                continue
            self._buffer += self._more(deadline)

    def _more(self, deadline: float) -> bytes:
        try:
            self._socket.settimeout(_remaining(deadline))
            data = self._socket.recv(2**18)
        except TimeoutError:
            raise SandboxError("the supervisor did not answer in time", container=self._name) from None
        except OSError as error:
            raise SandboxError(f"the container is gone: {error}", container=self._name) from None
        if not data:
            raise SandboxError("the container ended", container=self._name)
        return data


def _remaining(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())


for _ in range(_SKIP):
    next(_FIRST_UIDS)
