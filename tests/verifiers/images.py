"""Images and a registry on this machine for tests of building: nothing is fetched from elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pip
from docker import DockerClient

from tests.verifiers.wheels import add
from verifiers.jobs import Job, Limits, Mode
from verifiers.sandbox.container import ContainerSandbox

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"


def lines_of(image: str, code: str, memory_mb: int = 128) -> list[str]:
    """What a candidate in that image answers to one call with 1."""
    sandbox = ContainerSandbox(image, memory_mb)
    try:
        return [letter + text for letter, text in sandbox.run(Job(Mode.CALLS, code, Limits(5.0), "f", ("[1]",))).lines()]
    finally:
        sandbox.close()


def make_base(client: DockerClient, name: str, parent: str, wheels: Path) -> None:
    """An image like python:slim for our purposes: a parent with Python, plus pip, which finds wheels in the image alone."""
    extra = io.BytesIO()
    with tarfile.open(fileobj=extra, mode="w") as archive:
        site = f"usr/local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/pip"
        archive.add(Path(pip.__file__).parent, site, filter=lambda entry: None if "__pycache__" in entry.name else entry)
        add(archive, "etc/pip.conf", b"[global]\nno-index = true\nfind-links = /wheels\n")
        for wheel in wheels.iterdir():
            add(archive, f"wheels/{wheel.name}", wheel.read_bytes())
    build(client, name, {"Dockerfile": f"FROM {parent}\nADD extra.tar /\n".encode(), "extra.tar": extra.getvalue()})


def build(client: DockerClient, name: str, files: Mapping[str, bytes]) -> None:
    """Build an image from a context in memory."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        for entry, content in files.items():
            add(archive, entry, content)
    context.seek(0)
    client.images.build(fileobj=context, custom_context=True, tag=name, rm=True)


class Registry:
    """What a registry serves: one small image behind an index of platforms."""

    def __init__(self, architecture: str) -> None:
        self.requests: list[str] = []
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as archive:
            add(archive, "hello", b"from a registry")
        packed = gzip.compress(layer.getvalue(), mtime=0)
        config = {
            "architecture": architecture,
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer.getvalue())]},
        }
        self._stored: dict[str, tuple[str, bytes]] = {}
        layers = [self._store("application/vnd.docker.image.rootfs.diff.tar.gzip", packed)]
        described = self._store("application/vnd.docker.container.image.v1+json", json.dumps(config).encode())
        manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": described, "layers": layers}
        one = self._store(_MANIFEST, json.dumps(manifest).encode())
        platform = {"platform": {"architecture": architecture, "os": "linux"}}
        index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [{**one, **platform}]}
        self.digest = str(self._store(_INDEX, json.dumps(index).encode())["digest"])
        """Of the index, which is what people pin."""
        self._stored["1"] = self._stored[self.digest]

    def _store(self, kind: str, content: bytes) -> dict[str, object]:
        self._stored[_digest(content)] = (kind, content)
        return {"mediaType": kind, "size": len(content), "digest": _digest(content)}

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, kind and content for a path."""
        self.requests.append(path)
        if path == "/v2/":
            return 200, "application/json", b"{}"
        kind, content = self._stored.get(path.rpartition("/")[2], ("", b""))
        return (200, kind, content) if kind else (404, "application/json", b'{"errors": []}')


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@contextmanager
def serving(registry: Registry) -> Iterator[str]:
    """Serve it on this machine alone; gives host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, content = registry.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Content-Digest", _digest(content))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
