"""What goes between the host and the supervisor, and how a candidate's output passes without being read. Standard library alone.

The host sends a header of numbers and then a body, the job. The supervisor reads the header only: the body is for the process
that it forks. Back come frames: a letter, four bytes of length, a payload. `h` carries JSON of the supervisor's own, `o` a
piece of what the candidate wrote. The kernel moves such a piece from pipe to pipe; where it cannot, a process that is forked
for that one piece copies it. So the supervisor's memory, of which every later candidate gets a copy, never holds any of it.
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
    _write(_own(facts))


def _own(facts: dict[str, Any]) -> bytes:
    text = json.dumps(facts).encode("ascii")
    return _FRAME.pack(b"h", len(text)) + text


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


class Outlet:
    """Passes candidates' output on to standard output, unread.

    By way of two pipes of our own. In the first a piece is out of the candidate's reach, so that its length is certain; in the
    second it stands behind its head, so that all of a small job's answer goes out at once.
    """

    def __init__(self) -> None:
        self._count = os.pipe()
        self._out = os.pipe()
        # A pipe holds as little as two pages where its owner has many: what does not fit is flushed and tried again.
        os.set_blocking(self._out[1], False)
        self._waiting = 0
        self._splices = self._can_splice()

    def forward(self, pipe: int, most: int, *, last: bool = False) -> int:
        """Pass on what is in the pipe, at most so many bytes and one piece; how many there were, 0 at its end too.

        The last piece may wait for `finish`.
        """
        most = min(most, PIECE_BYTES)
        if not self._splices:
            return _relay(pipe, most)
        try:
            count = os.splice(pipe, self._count[1], most, flags=os.SPLICE_F_NONBLOCK)
        except BlockingIOError:
            return 0
        if count:
            self._queue(_FRAME.pack(b"o", count))
            self._move(count)
            if not last:
                self._flush()
        return count

    def finish(self, facts: dict[str, Any]) -> None:
        """Send what waits, and a frame of the supervisor's own behind it."""
        if self._waiting:
            self._queue(_own(facts))
            self._flush()
        else:
            send(facts)

    def _can_splice(self) -> bool:
        if not hasattr(os, "splice"):
            return False
        try:
            os.splice(self._out[0], 1, 1, flags=os.SPLICE_F_NONBLOCK)
        except BlockingIOError:
            return True  # there is nothing to move yet, but it could be
        except OSError:
            return False
        return True

    def _queue(self, data: bytes) -> None:
        while data:
            try:
                written = os.write(self._out[1], data)
            except BlockingIOError:
                self._flush()
                continue
            self._waiting += written
            data = data[written:]

    def _move(self, left: int) -> None:
        while left:
            try:
                moved = os.splice(self._count[0], self._out[1], left, flags=os.SPLICE_F_NONBLOCK)
            except BlockingIOError:
                self._flush()
                continue
            self._waiting += moved
            left -= moved

    def _flush(self) -> None:
        while self._waiting:
            self._waiting -= os.splice(self._out[0], 1, self._waiting)


def _relay(pipe: int, most: int) -> int:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            try:
                data = os.read(pipe, most)
            except BlockingIOError:
                data = b""
            if data:
                _write(_FRAME.pack(b"o", len(data)) + data)
            os.write(write_end, _COUNT.pack(len(data)))
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
