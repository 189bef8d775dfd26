"""A threaded HTTP server that answers by a script: one `Reply` per call, the last one for all further calls."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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
    delay: float = 0.0
    """Seconds before the first byte."""
    cut_after: int | None = None
    """Announce the whole body, send so many bytes of it, then reset the connection."""
    endless: bool = False
    """Announce a body that never ends and send a byte of it now and then."""


Script = Sequence[Reply] | Callable[[Received], Reply]


class WireServer:
    """The running server: what it received, and where it listens."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self.received: list[Received] = []
        self.connections = 0
        self.stopping = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                with outer._lock:
                    outer.connections += 1

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer._answer(self, Received(self.path, headers, raw))

            def log_message(self, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def _answer(self, handler: BaseHTTPRequestHandler, received: Received) -> None:
        with self._lock:
            number = len(self.received)
            self.received.append(received)
        script = self._script
        reply = script(received) if callable(script) else script[min(number, len(script) - 1)]
        time.sleep(reply.delay)
        handler.send_response(reply.status)
        handler.send_header("content-type", reply.content_type)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(10**9 if reply.endless else len(reply.body)))
        handler.end_headers()
        if reply.endless:
            self._trickle(handler)
        elif reply.cut_after is not None:
            handler.wfile.write(reply.body[: reply.cut_after])
            handler.wfile.flush()
            # Linger 0 makes the close a reset.
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.close_connection = True
            handler.connection.close()
        else:
            handler.wfile.write(reply.body)

    def _trickle(self, handler: BaseHTTPRequestHandler) -> None:
        try:
            while not self.stopping.wait(0.02):
                handler.wfile.write(b" ")
                handler.wfile.flush()
        except OSError:
            handler.close_connection = True

    @contextmanager
    def running(self) -> Iterator[WireServer]:
        self._thread.start()
        try:
            yield self
        finally:
            self.stopping.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(timeout=5)


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
