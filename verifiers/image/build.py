"""Builds the verifier's image once per content, on a Python from a registry or, where none is reached, on this machine's own.

`EVALNOISE_IMAGE_BASE` chooses: an image's name (best with its digest), or ``host`` for this machine's Python. Unset: an image
that is already built is used, whichever base it has; else the default base if it can be had; else this machine's Python. Each
set of packages is an image of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import os
import platform
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, Final

from docker import DockerClient
from docker.errors import BuildError, ImageNotFound
from filelock import FileLock, Timeout

from schemas.errors import ExecutorError
from schemas.records import ExecutorInfo
from verifiers.image.install import REPORT
from verifiers.image.packages import install_here, normalised, not_installed, packages_digest
from verifiers.image.rootfs import HOME, LIBRARIES, application_tar, python_tar, sources_digest
from verifiers.sandbox.base import SandboxError
from verifiers.sandbox.container import ContainerSandbox
from verifiers.sandbox.engine import ENGINE_ERRORS, connect
from verifiers.sandbox.process import ENVIRONMENT, interpreter_digest

DEFAULT_BASE: Final = "python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea"
HOST_BASE: Final = "host"
REPOSITORY: Final = "evalnoise-verifier"
BASE_VARIABLE: Final = "EVALNOISE_IMAGE_BASE"
LABEL_BASE: Final = "evalnoise.image.base"
LABEL_PACKAGES: Final = "evalnoise.image.packages"
LABEL_PYTHON: Final = "evalnoise.image.python"
LABEL_INPUTS: Final = "evalnoise.image.inputs"
_LABEL_CONTENT = "evalnoise.image.base-content"
_RULES = "2"
"""Raise when the way of building changes what is in the image."""
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
    content: str
    """What the base holds: an image's id, or a digest of this machine's Python."""
    packages: tuple[str, ...]
    """In their normal form."""

    def inputs(self) -> str:
        """Digest of all that decides what will be in the image."""
        parts = (_RULES, self.base, self.content, sources_digest(), *self.packages, packages_digest(self.packages))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def tag(self) -> str:
        """The image's tag."""
        return self.inputs()[:12]

    def labels(self) -> dict[str, str]:
        """What the image says of itself."""
        return {
            LABEL_BASE: self.base,
            LABEL_PACKAGES: " ".join(self.packages),
            _LABEL_CONTENT: self.content,
            LABEL_INPUTS: self.inputs(),
        }


def ensure_image(base: str | None = None, packages: Iterable[str] = ()) -> ExecutorInfo:
    """The verifier's image, built if it is missing. Raises ExecutorError.

    Args:
        base: What `EVALNOISE_IMAGE_BASE` would say; default: what it says.
        packages: What candidates may import beside the standard library, each `name==version`.
    """
    wanted = base if base is not None else os.environ.get(BASE_VARIABLE, "")
    named = normalised(packages)

    def work(client: DockerClient) -> ExecutorInfo:
        found = existing_image(client, wanted, named)  # looked for without the lock: nobody waits for another image's build
        if found is not None:
            return _info(found)
        with _turn():
            return _ensure(client, wanted, named)

    return _with_engine(work)


def build_image(base: str, tag: str, packages: Iterable[str] = ()) -> ExecutorInfo:
    """Build anew on that base, under that tag, whatever exists. Raises ExecutorError."""
    named = normalised(packages)

    def work(client: DockerClient) -> ExecutorInfo:
        with _turn():
            return _build(client, _plan(client, base, named), tag, anew=True)

    return _with_engine(work)


def _with_engine(work: Callable[[DockerClient], ExecutorInfo]) -> ExecutorInfo:
    try:
        client = connect(_BUILD_SECONDS)
        try:
            return work(client)
        finally:
            client.close()
    except (*ENGINE_ERRORS, SandboxError, CalledProcessError, Timeout) as error:
        raise _failed(str(error)) from None


def _turn() -> FileLock:
    """One build of this user's at a time."""
    return FileLock(Path(tempfile.gettempdir()) / f"evalnoise-image-{os.getuid()}.lock", timeout=_LOCK_SECONDS)


def _ensure(client: DockerClient, wanted: str, packages: tuple[str, ...]) -> ExecutorInfo:
    found = existing_image(client, wanted, packages)
    if found is not None:
        return _info(found)
    base = wanted or (DEFAULT_BASE if _obtainable(client, DEFAULT_BASE) else HOST_BASE)
    if wanted and not _obtainable(client, wanted):
        raise _failed(f"the base image {wanted} is not on this machine and no registry gave it")
    plan = _plan(client, base, packages)
    return _build(client, plan, plan.tag())


def existing_image(client: DockerClient, wanted: str, packages: tuple[str, ...]) -> dict[str, Any] | None:
    """What the engine says of the image that would be used if it is there already. Raises one of ENGINE_ERRORS.

    Args:
        client: The engine.
        wanted: The base, or empty for whichever there is.
        packages: In their normal form.
    """
    for base in [wanted] if wanted else [DEFAULT_BASE, HOST_BASE]:
        with contextlib.suppress(ImageNotFound):
            attributes: dict[str, Any] = client.images.get(f"{REPOSITORY}:{_plan(client, base, packages).tag()}").attrs
            return attributes
    return None


def _plan(client: DockerClient, base: str, packages: tuple[str, ...]) -> _Plan:
    """Raises ImageNotFound when the base is not on this machine."""
    content = f"{interpreter_digest()} {' '.join(platform.libc_ver())}" if base == HOST_BASE else str(client.images.get(base).id)
    return _Plan(base, content, packages)


def _obtainable(client: DockerClient, base: str) -> bool:
    """Whether the base is on this machine, after pulling it if a registry answers soon."""
    if base == HOST_BASE:
        return True
    with contextlib.suppress(ImageNotFound):
        client.images.get(base)
        return True
    try:
        quick = connect(_REGISTRY_SECONDS)
        try:
            quick.images.get_registry_data(base)
        finally:
            quick.close()
        _LOG.warning("pulling %s for the verifier's image", base)
        client.images.pull(base)
    except ENGINE_ERRORS:
        return False
    return True


def _build(client: DockerClient, plan: _Plan, tag: str, *, anew: bool = False) -> ExecutorInfo:
    """Build, try, and only then name the image: one without its name is never taken for the image of that plan."""
    try:
        image_id = _from_host(client, plan) if plan.base == HOST_BASE else _from_base(client, plan, cached=not anew)
        ContainerSandbox(image_id, _PROBE_MB).close()  # an image that cannot run is better found now than by every candidate
        found = _info(client.images.get(image_id).attrs)
        if not anew:
            with contextlib.suppress(ImageNotFound):  # another user's build, which this lock does not stop, was faster
                return _info(client.images.get(f"{REPOSITORY}:{tag}").attrs)
        client.api.tag(image_id, REPOSITORY, tag, force=True)
        return found
    finally:
        _remove_nameless(client, plan)


def _remove_nameless(client: DockerClient, plan: _Plan) -> None:
    """What has no name is of no use: stages, images that cannot run, and those of builds that were killed.

    One by one, because the engine refuses a prune while another one runs; without force, so that none in use is removed.
    """
    with contextlib.suppress(*ENGINE_ERRORS):
        for image in client.images.list(filters={"dangling": True, "label": f"{LABEL_INPUTS}={plan.inputs()}"}):
            with contextlib.suppress(*ENGINE_ERRORS):
                client.images.remove(str(image.id))


def _from_host(client: DockerClient, plan: _Plan) -> str:
    if sys.platform != "linux":
        raise _failed(f"this machine's Python is for {sys.platform}, and containers run Linux")
    version = platform.python_version()
    _LOG.warning("building the verifier's image from this machine's Python %s; once, some seconds", version)
    environment = ENVIRONMENT | {"LD_LIBRARY_PATH": f"/{LIBRARIES}"}
    changes = [
        *(f"ENV {name}={value}" for name, value in environment.items()),
        *(f'LABEL {name}="{value}"' for name, value in (plan.labels() | {LABEL_PYTHON: version}).items()),
        f'ENTRYPOINT ["/usr/local/bin/python3", "-s", "{_SUPERVISOR}"]',
    ]
    with _scratch() as folder:
        packages = folder / "packages" if plan.packages else None
        if packages is not None:
            install_here(plan.packages, packages)
        archive = folder / "rootfs.tar"
        python_tar(archive, packages)
        # An import makes one layer of exactly these bytes, so the layer's digest is the archive's.
        said = client.api.import_image_from_file(str(archive), changes=changes)
    last = json.loads(said.strip().splitlines()[-1])
    if "error" in last:
        raise _failed(str(last["error"]))
    return str(last["status"])


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for one build. The caller has the lock, so older ones are of builds that were killed."""
    prefix = f"evalnoise-build-{os.getuid()}-"
    for leftover in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if leftover.lstat().st_uid == os.getuid():
            shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        yield Path(folder)


def _from_base(client: DockerClient, plan: _Plan, *, cached: bool) -> str:
    _LOG.warning("building the verifier's image on %s; once", plan.base)
    entries = {"Dockerfile": _file("Dockerfile"), "app.tar": application_tar()}
    if plan.packages:
        entries |= {"install.py": _file("install.py"), "requirements.txt": "\n".join(plan.packages).encode()}
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        for entry, content in entries.items():
            info = tarfile.TarInfo(entry)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    context.seek(0)
    try:
        image, _ = client.images.build(
            fileobj=context,
            custom_context=True,
            target="packaged" if plan.packages else "plain",
            rm=True,
            forcerm=True,
            nocache=not cached,
            use_config_proxy=True,
            buildargs={"BASE": plan.content, "INPUTS": plan.inputs()},
            labels=plan.labels(),
        )
    except BuildError as error:
        raise _refused(plan, error) from None
    return str(image.id)


def _file(name: str) -> bytes:
    return Path(__file__).with_name(name).read_bytes()


def _refused(plan: _Plan, error: BuildError) -> ExecutorError:
    """What a build said when it failed; where `install` ended it, that one's report."""
    lines = [str(entry.get("stream", "")).strip() for entry in error.build_log if isinstance(entry, dict)]
    for line in lines:
        if line.startswith(REPORT):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                report = json.loads(line.removeprefix(REPORT))
                missing = tuple(map(str, report["missing"]))
                return not_installed(plan.packages, str(report["found"]), missing, f"the Python of {plan.base}")
    return _failed(f"{error.msg}; {' '.join(filter(None, lines[-3:]))}")


def _info(attributes: Mapping[str, Any]) -> ExecutorInfo:
    layers = "\n".join(attributes["RootFS"]["Layers"])
    return ExecutorInfo(
        kind="docker",
        image_id=attributes["Id"],
        rootfs=hashlib.sha256(layers.encode()).hexdigest(),
        python=_python(attributes),
    )


def _python(attributes: Mapping[str, Any]) -> str:
    """The image's Python, asked of a container where nothing is written down."""
    if written := written_python(attributes):
        return written
    probe = ContainerSandbox(attributes["Id"], _PROBE_MB)
    probe.close()
    return probe.python


def written_python(attributes: Mapping[str, Any]) -> str:
    """The image's Python as its label or its environment says; empty where neither does."""
    labelled = (attributes["Config"].get("Labels") or {}).get(LABEL_PYTHON)
    if labelled:
        return str(labelled)
    for entry in attributes["Config"].get("Env") or []:
        if entry.startswith("PYTHON_VERSION="):
            return str(entry.partition("=")[2])
    return ""


def _failed(found: str) -> ExecutorError:
    return ExecutorError(
        "verifier image",
        expected="an image to run candidates in",
        found=found[:300],
        remedy=f"Set {BASE_VARIABLE} to a Python image of your registry, or to {HOST_BASE} for this machine's own Python (Linux)",
    )
