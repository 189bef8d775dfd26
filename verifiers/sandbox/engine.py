"""The container engine: whether it answers, and the removal of containers whose owner died."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path

import docker
import requests
from docker import DockerClient
from docker.errors import DockerException, NotFound

LABEL = "evalnoise"
_OWNER = "evalnoise.owner"
_SECONDS = 60

ENGINE_ERRORS = (DockerException, requests.RequestException, OSError)
"""What docker-py raises when the engine is slow, gone or refuses."""
_unremoved: set[str] = set()
"""Containers of this process that should be gone. Its owner lives, so no other process would remove them."""


def connect(seconds: int = _SECONDS) -> DockerClient:
    """A client of the engine that the environment names. Raises one of ENGINE_ERRORS."""
    return docker.from_env(timeout=seconds)


def engine_answers(seconds: int = 5) -> str | None:
    """None when a container engine answers, else what is wrong, in a few words."""
    try:
        client = connect(seconds)
        try:
            client.ping()
        finally:
            client.close()
    except ENGINE_ERRORS as error:
        return f"none at {os.environ.get('DOCKER_HOST') or 'the default socket'} ({_cause(error)})"
    return None


def _cause(error: BaseException) -> str:
    """The innermost reason: docker-py wraps requests, which wraps urllib3, which wraps what the system said."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return f"{type(error).__name__}: {error}"[:120]


def labels() -> dict[str, str]:
    """Labels of our containers: whose they are, so that nobody removes those of a live owner."""
    return {LABEL: "1", _OWNER: f"{_home()}/{os.getpid()}/{_started(os.getpid())}"}


def remove_leftovers(client: DockerClient | None = None) -> int:
    """Remove containers of owners that are gone, and say how many. An engine that does not answer has none to remove."""
    removed = 0
    with contextlib.suppress(*ENGINE_ERRORS):
        own = client or connect()
        for container in own.containers.list(all=True, filters={"label": f"{LABEL}=1"}, ignore_removed=True):
            if _is_orphan(container.labels.get(_OWNER, ""), container.status):
                with contextlib.suppress(*ENGINE_ERRORS):
                    container.remove(force=True, v=True)
                    removed += 1
        if client is None:
            own.close()
    return removed


def remove(client: DockerClient, name: str) -> None:
    """Remove a container, whatever its state. Never raises: one that cannot be removed now is removed with the next one.

    If this process ends before that, `remove_leftovers` does it at the next start.
    """
    _unremoved.add(name)
    for each in tuple(_unremoved):
        with contextlib.suppress(*ENGINE_ERRORS):
            with contextlib.suppress(NotFound):
                client.api.remove_container(each, force=True, v=True)
            _unremoved.discard(each)


def finish_removals() -> None:
    """Remove those of this process's containers that could not be removed before, if there are any. Never raises."""
    for name in tuple(_unremoved)[:1]:
        with contextlib.suppress(*ENGINE_ERRORS):
            client = connect()
            remove(client, name)
            client.close()


def _is_orphan(owner: str, status: str) -> bool:
    """Whether the owner is known to be dead. Of another machine's or namespace's owner we know only that its containers ended."""
    home, _, rest = owner.partition("/")
    pid, _, started = rest.partition("/")
    if home != _home():
        return status in {"exited", "dead"}
    return not pid.isdigit() or _started(int(pid)) != started


@cache
def _home() -> str:
    """This boot of this machine, and this namespace of process ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}.{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return os.uname().nodename


def _started(pid: int) -> str:
    """When the process started, in ticks since boot; ids are used again, start times are not. Empty: no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[19]
    except FileNotFoundError:
        return "" if Path("/proc/self/stat").exists() else _alive(pid)
    except (OSError, IndexError):
        return ""


def _alive(pid: int) -> str:
    """Where there is no /proc: the same word for every live process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "live"
    return "live"
