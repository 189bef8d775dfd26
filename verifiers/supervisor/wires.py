"""What goes between the host and the supervisor, and how a candidate's output passes without being read. Standard library alone.

The host sends a header of numbers and then a body, the job. The supervisor reads the header only: the body is for the process
that it forks. Back come frames: a letter, four bytes of length, a payload. `h` carries JSON of the supervisor's own, `o` a
piece of what the candidate wrote. A process that is forked for it and then ends copies it; so the supervisor's memory, of which
every later candidate gets a copy, never holds any of it.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any, NamedTuple

_HEADER = struct.Struct(">Q4d2Q")
_FRAME = struct.Struct(">cI")
_COUNT = struct.Struct(">I")
FRAME_BYTES = _FRAME.size
PIECE_BYTES = 2**16
"""A piece of output is not longer."""
_AT_ONCE_BYTES = 2**20
"""More is not copied without a look at the job's limits."""


class HostGoneError(Exception):
    """The host closed the connection, or asked for the end."""


class Header(NamedTuple):
    """All that the supervisor is told of a job."""

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


def frame_head(data: bytes) -> tuple[bytes, int]:
    """Letter and length of the payload of a frame that begins so."""
    letter, size = _FRAME.unpack(data)
    return letter, size


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
    _write(_FRAME.pack(b"h", len(text)) + text)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def relay(pipe: int, most: int) -> int:
    """Pass on what is in a candidate's pipe, at most so many bytes; how many there were, 0 at its end too.

    A process that is forked for it reads the pipe, says how much it read and writes that: so every length on the wire is that of
    bytes in hand, whatever tricks the candidate plays with its pipe, and no memory that outlives the process has seen them. (The
    kernel could move the bytes from pipe to pipe unread; but a candidate can mark them as packets, whose rest a short read drops,
    and then what it writes next would stand where the host expects a head.)
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write_end, _COUNT.pack(_copy(pipe, min(most, _AT_ONCE_BYTES))))
        finally:
            os._exit(0)
    os.close(write_end)
    try:
        count = os.read(read_end, _COUNT.size)
    finally:
        os.close(read_end)
        os.waitpid(pid, 0)
    if len(count) != _COUNT.size:
        raise OSError("output could not be passed on")
    return int(_COUNT.unpack(count)[0])


def _copy(pipe: int, most: int) -> int:
    copied = 0
    while copied < most:
        try:
            data = os.read(pipe, min(most - copied, PIECE_BYTES))
        except BlockingIOError:
            break
        if not data:
            break
        _write(_FRAME.pack(b"o", len(data)) + data)
        copied += len(data)
    return copied
