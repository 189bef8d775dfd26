"""What goes between the host and the supervisor, and how a candidate's output passes without being read. Standard library alone.

The host sends a header of numbers and then a body, the job. The supervisor reads the header only: the body is for the process
that it forks. Back comes one frame, four bytes of length and JSON of the supervisor's own, and behind it so many bytes of the
candidate's as the JSON says. They lie in a file in memory that the candidate wrote; the kernel copies them from there, once every
process that could change them is dead. So the supervisor's memory, of which every later candidate gets a copy, never holds them,
and no length on the wire depends on anything but the file's size.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
from typing import Any, NamedTuple

_HEADER = struct.Struct(">2Q4d2Q")
_LENGTH = struct.Struct(">I")
LENGTH_BYTES = _LENGTH.size


class HostGoneError(Exception):
    """The host closed the connection, or asked for the end."""


class Header(NamedTuple):
    """All that the supervisor is told of a job."""

    job: int
    """Its number in this conversation, which comes back with its answer."""
    length: int
    """Bytes of the body that follows."""
    cpu: float
    """Seconds at which the job is stopped."""
    backstop: float
    """Seconds at which the kernel stops it."""
    wall: float
    idle: float
    total: int
    """Bytes that the candidate may write in all."""
    memory: int
    """Bytes; 0: not limited here."""

    def pack(self) -> bytes:
        """As it is sent."""
        return _HEADER.pack(*self)


def frame_length(data: bytes) -> int:
    """Length of the JSON behind these bytes."""
    length: int = _LENGTH.unpack(data)[0]
    return length


def read_exactly(size: int) -> bytes:
    """So many bytes of standard input, and none more. Raises HostGoneError at its end."""
    parts = []
    while size:
        part = os.read(0, min(size, 2**20))
        if not part:
            raise HostGoneError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_header() -> Header:
    """The next job's header."""
    return Header(*_HEADER.unpack(read_exactly(_HEADER.size)))


def send(facts: dict[str, Any]) -> None:
    """Send a frame of the supervisor's own."""
    text = json.dumps(facts).encode("ascii")
    _write(_LENGTH.pack(len(text)) + text)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def open_output() -> int:
    """A new file for a candidate's output, which has no name in any folder."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("output", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def pass_on(output: int, size: int) -> None:
    """Send the first bytes of a candidate's output, unread. There must be so many, and nobody left who could change them."""
    if not hasattr(os, "memfd_create"):
        _copy_in_a_process(output, size)
        return
    sent = 0
    while sent < size:
        count = os.sendfile(1, output, sent, size - sent)
        if not count:
            raise OSError("output could not be passed on")
        sent += count


def _copy_in_a_process(output: int, size: int) -> None:
    """Where the kernel does not copy from files to pipes: a process that is forked for it reads them, and then ends."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _write(os.pread(output, size, 0))
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError("output could not be passed on")
