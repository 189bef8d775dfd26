"""Builds the verifier's image once per content, on a Python from a registry or, where none is reached, on this machine's own.

`EVALNOISE_IMAGE_BASE` chooses: an image's name (best with its digest), or ``host`` for this machine's Python. Unset: an image
that is already built is used, whichever base it has; else the default base if it can be had; else this machine's Python.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import platform
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from docker import DockerClient
from docker.errors import ImageNotFound
from filelock import FileLock, Timeout

from schemas.errors import ExecutorError
from schemas.records import ExecutorInfo
from verifiers.image.rootfs import HOME, LIBRARIES, application_tar, python_tar, sources_digest
from verifiers.sandbox.base import SandboxError
from verifiers.sandbox.container import ContainerSandbox
from verifiers.sandbox.engine import ENGINE_ERRORS, connect
from verifiers.sandbox.process import ENVIRONMENT, interpreter_digest

DEFAULT_BASE: Final = "python:3.12-slim"
HOST_BASE: Final = "host"
REPOSITORY: Final = "evalnoise-verifier"
BASE_VARIABLE: Final = "EVALNOISE_IMAGE_BASE"
_RULES = "1"
"""Raise when the way of building changes what is in the image."""
_LABEL_BASE = "evalnoise.image.base"
_LABEL_INPUTS = "evalnoise.image.inputs"
_LABEL_PYTHON = "evalnoise.image.python"
_LOCK_SECONDS = 900
_REGISTRY_SECONDS = 8
_BUILD_SECONDS = 900
_PROBE_MB = 128
_SUPERVISOR = f"/{HOME}/verifiers/supervisor/supervisor.py"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Plan:
    """One way to an image."""

    base: str
    inputs: str
    """Digest of all that decides what will be in the image."""

    def tag(self) -> str:
        return self.inputs[:12]


def ensure_image(base: str | None = None) -> ExecutorInfo:
    """The verifier's image, built if it is missing. Raises ExecutorError.

    Args:
        base: What `EVALNOISE_IMAGE_BASE` would say; default: what it says.
    """
    wanted = base if base is not None else os.environ.get(BASE_VARIABLE, "")
    try:
        client = connect(_BUILD_SECONDS)
        try:
            with FileLock(Path(tempfile.gettempdir()) / f"evalnoise-image-{os.getuid()}.lock", timeout=_LOCK_SECONDS):
                return _ensure(client, wanted)
        finally:
            client.close()
    except (*ENGINE_ERRORS, SandboxError, Timeout) as error:
        raise _failed(str(error)) from None


def build_image(plan_base: str, tag: str) -> ExecutorInfo:
    """Build anew on that base, under that tag, whatever exists. Raises ExecutorError."""
    try:
        client = connect(_BUILD_SECONDS)
        try:
            return _build(client, _plan(client, plan_base), tag)
        finally:
            client.close()
    except (*ENGINE_ERRORS, SandboxError) as error:
        raise _failed(str(error)) from None


def _ensure(client: DockerClient, wanted: str) -> ExecutorInfo:
    for base in [wanted] if wanted else [DEFAULT_BASE, HOST_BASE]:
        found = _existing(client, base)
        if found is not None:
            return found
    base = wanted or (DEFAULT_BASE if _obtainable(client, DEFAULT_BASE) else HOST_BASE)
    if wanted and not _obtainable(client, wanted):
        raise _failed(f"the base image {wanted} is not on this machine and no registry gave it")
    plan = _plan(client, base)
    return _build(client, plan, plan.tag())


def _existing(client: DockerClient, base: str) -> ExecutorInfo | None:
    try:
        plan = _plan(client, base)
        return _info(client.images.get(f"{REPOSITORY}:{plan.tag()}").attrs)
    except ImageNotFound:
        return None


def _plan(client: DockerClient, base: str) -> _Plan:
    """Raises ImageNotFound when the base is not on this machine."""
    content = f"{interpreter_digest()} {platform.libc_ver()}" if base == HOST_BASE else client.images.get(base).id
    text = f"{_RULES}\n{base}\n{content}\n{sources_digest()}"
    return _Plan(base, hashlib.sha256(text.encode()).hexdigest())


def _obtainable(client: DockerClient, base: str) -> bool:
    """Whether the base is on this machine, after pulling it if a registry answers soon."""
    if base == HOST_BASE:
        return True
    try:
        client.images.get(base)
    except ImageNotFound:
        pass
    else:
        return True
    try:
        quick = connect(_REGISTRY_SECONDS)
        try:
            quick.images.get_registry_data(base)
        finally:
            quick.close()
        _LOG.warning("pulling %s for the verifier's image", base)
        repository, _, tag = base.partition("@") if "@" in base else base.partition(":")
        client.images.pull(repository, tag=tag or "latest")
    except ENGINE_ERRORS:
        return False
    return True


def _build(client: DockerClient, plan: _Plan, tag: str) -> ExecutorInfo:
    name = f"{REPOSITORY}:{tag}"
    labels = {_LABEL_BASE: plan.base, _LABEL_INPUTS: plan.inputs}
    if plan.base == HOST_BASE:
        _from_host(client, tag, labels)
    else:
        _from_base(client, plan.base, name, labels)
    attributes = client.images.get(name).attrs
    ContainerSandbox(attributes["Id"], _PROBE_MB).close()  # an image that cannot run is better found now than by every candidate
    return _info(attributes)


def _from_host(client: DockerClient, tag: str, labels: Mapping[str, str]) -> None:
    if sys.platform != "linux":
        raise _failed(f"this machine's Python is for {sys.platform}, and containers run Linux")
    version = platform.python_version()
    _LOG.warning("building the verifier's image from this machine's Python %s; once, some seconds", version)
    environment = ENVIRONMENT | {"LD_LIBRARY_PATH": f"/{LIBRARIES}"}
    changes = [
        *(f"ENV {name}={value}" for name, value in environment.items()),
        *(f"LABEL {name}={value}" for name, value in labels.items()),
        f"LABEL {_LABEL_PYTHON}={version}",
        f'ENTRYPOINT ["/usr/local/bin/python3", "-s", "{_SUPERVISOR}"]',
    ]
    with tempfile.TemporaryDirectory(prefix="evalnoise-image-") as folder:
        archive = Path(folder) / "rootfs.tar"
        python_tar(archive)
        # An import makes one layer of exactly these bytes, so the layer's digest is the archive's.
        client.api.import_image_from_file(str(archive), repository=REPOSITORY, tag=tag, changes=changes)


def _from_base(client: DockerClient, base: str, name: str, labels: Mapping[str, str]) -> None:
    _LOG.warning("building the verifier's image on %s; once", base)
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        for entry, content in (
            ("Dockerfile", Path(__file__).with_name("Dockerfile").read_bytes()),
            ("app.tar", application_tar()),
        ):
            info = tarfile.TarInfo(entry)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    context.seek(0)
    client.images.build(fileobj=context, custom_context=True, tag=name, rm=True, buildargs={"BASE": base}, labels=dict(labels))


def _info(attributes: Mapping[str, Any]) -> ExecutorInfo:
    layers = "\n".join(attributes["RootFS"]["Layers"])
    return ExecutorInfo(
        kind="docker",
        image_id=attributes["Id"],
        rootfs=hashlib.sha256(layers.encode()).hexdigest(),
        python=_python(attributes),
    )


def _python(attributes: Mapping[str, Any]) -> str:
    """The image's Python as it says itself; asked of a container where nothing is written down."""
    labelled = (attributes["Config"].get("Labels") or {}).get(_LABEL_PYTHON)
    if labelled:
        return str(labelled)
    for entry in attributes["Config"].get("Env") or []:
        if entry.startswith("PYTHON_VERSION="):
            return str(entry.partition("=")[2])
    probe = ContainerSandbox(attributes["Id"], _PROBE_MB)
    probe.close()
    return probe.python


def _failed(found: str) -> ExecutorError:
    return ExecutorError(
        "verifier image",
        expected="an image to run candidates in",
        found=found[:300],
        remedy=f"Set {BASE_VARIABLE} to a Python image of your registry, or to {HOST_BASE} for this machine's own Python (Linux)",
    )
