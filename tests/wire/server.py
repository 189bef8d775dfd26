"""An HTTP server that answers by a script: one `Reply` per call, the last one for all further calls; or what a function says.

It runs on asyncio, so that thousands of calls and hundreds of open connections cost little: in a thread of its own for tests, or as
a process of its own (`wire.process`).
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

PING = b": ping\n\n"


@dataclass(frozen=True)
class Received:
    """One request as it came over the wire."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)


@dataclass(frozen=True)
class Reply:
    """What the server does with one call."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    events: tuple[bytes, ...] | None = None
    """In the place of a body: an event stream in these pieces."""
    pace: float = 0.0
    """Seconds between two pieces of a stream."""
    delay: float = 0.0
    """Seconds before anything is sent."""
    late: float = 0.0
    """Seconds between the headers and the first byte of the body."""
    cut_after: int | None = None
    """Announce the whole body, send so many bytes of it, then reset the connection."""
    endless: bool = False
    """Announce a body that never ends and send a byte of it now and then; of a stream, pings after its last piece."""
    drop: bool = False
    """Reset the connection before anything is sent."""
    note: dict[str, Any] = field(default_factory=dict)
    """What a script wants to know of the reply when it is sent; not sent itself."""

    @property
    def pieces(self) -> tuple[bytes, ...]:
        return (self.body,) if self.events is None else self.events


Script = Sequence[Reply] | Callable[[Received], Reply]
Sent = Callable[[Received, Reply, bool], None]
"""Told of each reply when it is done with, and whether all of it was handed to the network."""


class WireServer:
    """The running server: what it received, and where it listens."""

    def __init__(self, script: Script, *, sent: Sent | None = None, keep: bool = True) -> None:
        self._script = script
        self._sent = sent
        self._keep = keep
        self.received: list[Received] = []
        """Every request, unless the server was told not to keep them."""
        self.count = 0
        self.connections = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, port: int = 0, *, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until cancelled."""
        server = await asyncio.start_server(self._talk, "127.0.0.1", port, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        ready()
        async with server:
            await server.serve_forever()

    @contextmanager
    def running(self) -> Iterator[WireServer]:
        """Serve in a thread."""
        loop, up = asyncio.new_event_loop(), threading.Event()

        def work() -> None:
            asyncio.set_event_loop(loop)
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(serving)
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()

        serving = loop.create_task(self.serve(ready=up.set))
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        if not up.wait(timeout=10):
            raise RuntimeError("the wire server did not start")
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(serving.cancel)
            thread.join(timeout=5)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (received := await _read(reader)) is not None:
                if self._keep:
                    self.received.append(received)
                self.count += 1
                number, script = self.count - 1, self._script
                reply = script(received) if callable(script) else script[min(number, len(script) - 1)]
                whole = False
                try:
                    whole = await self._answer(writer, reply)
                finally:
                    if self._sent is not None:
                        self._sent(received, reply, whole)
                if not whole:
                    return
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, reply: Reply) -> bool:
        """Send the reply; whether the connection can go on."""
        await asyncio.sleep(reply.delay)
        if reply.drop:
            _reset(writer)
            return False
        writer.write(_head(reply))
        if reply.late:
            await writer.drain()
            await asyncio.sleep(reply.late)
        left = reply.cut_after
        for number, piece in enumerate(reply.pieces):
            if number and reply.pace:
                await asyncio.sleep(reply.pace)
            part = piece if left is None else piece[:left]
            writer.write(part if reply.events is None else b"%x\r\n%b\r\n" % (len(part), part) if part else b"")
            await writer.drain()
            if left is not None:
                left -= len(part)
                if left <= 0:
                    break
        if left is not None:
            await asyncio.sleep(0.01)  # what was sent is read before the reset comes
            _reset(writer)
            return False
        while reply.endless:
            await asyncio.sleep(0.02)
            writer.write(b" " if reply.events is None else b"%x\r\n%b\r\n" % (len(PING), PING))
            await writer.drain()
        if reply.events is not None:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


async def _read(reader: asyncio.StreamReader) -> Received | None:
    """The next request; None where the client has closed."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(first.split(" ")[1], headers, raw)


def _head(reply: Reply) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} Said", f"content-type: {reply.content_type}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    length = 10**9 if reply.endless else len(reply.body)
    lines.append(f"content-length: {length}" if reply.events is None else "transfer-encoding: chunked")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _reset(writer: asyncio.StreamWriter) -> None:
    # Linger 0 makes the close a reset.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextmanager
def serve(*replies: Reply, script: Callable[[Received], Reply] | None = None) -> Iterator[WireServer]:
    """A server that gives these replies in turn, or that asks `script` for each."""
    with WireServer(script or replies).running() as server:
        yield server


def refused_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
