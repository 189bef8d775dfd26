"""The Prefect server that runs talk to: the one that is configured, else a background one, started once and reused.

Nothing here imports Prefect: its settings are fixed at import, so a run calls `ensure_server`, then
`apply_client_environment`, and only then imports a flow.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from flows import server_process as background
from flows.server_api import LOCAL, dashboard, probe, settings
from schemas.errors import ServerError

START_SECONDS = 120.0
PORT_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A Prefect server that answers."""

    api_url: str
    """Address of the API, for PREFECT_API_URL."""
    dashboard_url: str
    """Address for a browser."""
    started: bool
    """Whether this call started it."""


class ServerState(StrEnum):
    """What `server_status` finds."""

    CONFIGURED = "configured"
    """A server that the user named answers."""
    RUNNING = "running"
    """The background server answers."""
    UNREACHABLE = "unreachable"
    """A server is configured, or the background server's process lives, but it does not answer."""
    STOPPED = "stopped"
    """Nothing is configured and no background server runs."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The server as it is now."""

    state: ServerState
    api_url: str | None
    """Address of the API; None when stopped."""
    dashboard_url: str | None
    """Address for a browser; None when stopped."""
    detail: str
    """Who set it, or the background server's process, start time and log; and what was found when it does not answer."""


@dataclass(frozen=True, slots=True)
class _Configured:
    """The server that the user named."""

    api_url: str
    dashboard_url: str
    origin: str
    found: str | None
    """None when it answers."""


def ensure_server(say: Callable[[str], None] | None = None, *, seconds: float = START_SECONDS) -> ServerInfo:
    """A server that answers: the configured one, else the background one, which is started when it is not up.

    Args:
        say: Takes progress lines; default: lines on standard error.
        seconds: How long a start may take.

    Raises:
        ServerError: The configured server does not answer, or the background server does not start.
    """
    named = _configured()
    if named is not None:
        if named.found is None:
            return ServerInfo(named.api_url, named.dashboard_url, started=False)
        raise ServerError(
            f"Prefect server {named.api_url} (from {named.origin})",
            expected="a Prefect API that answers",
            found=named.found,
            remedy="Start that server or correct the address; with an empty PREFECT_API_URL evalnoise runs its own server.",
        )
    record = background.read_record()
    if record is not None and record.alive and probe(record.api_url) is None:
        return _info(record, started=False)
    with background.server_lock(seconds + 60):
        return _reuse_or_start(say or _to_stderr, seconds)


def _spare_this_machine_the_proxy() -> None:
    """Exempt this machine from a proxy that the environment names. Raises ServerError for one that cannot be used."""
    named = os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")
    exempt = [entry for entry in map(str.strip, named.split(",")) if entry]
    if "*" not in exempt:
        # Both names, for readers disagree on which one counts.
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(dict.fromkeys([*exempt, *LOCAL]))
    import httpx  # noqa: PLC0415  Prefect's HTTP library, slow to import

    try:
        httpx.Client().close()
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise ServerError(
            "the proxy in the environment",
            expected="an http:// or https:// address in HTTP_PROXY, HTTPS_PROXY and ALL_PROXY",
            found=str(error),
            remedy="Correct or unset these variables; for a socks5:// proxy install httpx[socks] and httpx2[socks].",
        ) from None


def apply_client_environment(info: ServerInfo) -> None:
    """Point this process and its children at the server. Call it before Prefect is imported. Raises ServerError."""
    os.environ["PREFECT_API_URL"] = info.api_url
    _spare_this_machine_the_proxy()
    os.environ["PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"] = "false"
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "WARNING")
    # Prefect pickles the exception of a failed run even with persistence off; it goes where the rest of evalnoise's files are.
    os.environ.setdefault("PREFECT_LOCAL_STORAGE_PATH", str(background.evalnoise_home() / "failures"))
    os.environ.update(background.QUIET)


def stop_server(*, seconds: float = 15.0) -> int | None:
    """Stop the background server, if one runs; its process id, or None. A configured server is not touched."""
    if background.read_record() is None:
        return None
    with background.server_lock(START_SECONDS):
        record = background.read_record()
        if record is None or record.pid is None:
            return None
        was = record.pid if record.alive else None
        background.kill_process(record, seconds)
        background.write_record(background.Record(port=record.port))
        return was


def server_status() -> ServerStatus:
    """What a run would find now. Starts nothing."""
    named = _configured()
    if named is not None:
        state = ServerState.CONFIGURED if named.found is None else ServerState.UNREACHABLE
        return ServerStatus(state, named.api_url, named.dashboard_url, _with(f"set by {named.origin}", named.found))
    record = background.read_record()
    if record is None or not record.alive:
        return ServerStatus(ServerState.STOPPED, None, None, f"its folder is {background.server_folder()}")
    found = probe(record.api_url)
    state = ServerState.RUNNING if found is None else ServerState.UNREACHABLE
    detail = f"Prefect {record.prefect}, process {record.pid}, since {record.started}, log {background.log_path()}"
    return ServerStatus(state, record.api_url, dashboard(record.api_url), _with(detail, found))


def _configured() -> _Configured | None:
    """The server that the user named; None when evalnoise's own is wanted.

    The address of evalnoise's own server counts as none: a process that applied it may have to start that server again.
    """
    known: Mapping[str, str] = settings()
    url = known.get("PREFECT_API_URL", "").strip().rstrip("/")
    record = background.read_record()
    if not url or (record is not None and url == record.api_url):
        return None
    origin = "PREFECT_API_URL" if "PREFECT_API_URL" in os.environ else "the active Prefect profile"
    return _Configured(url, known.get("PREFECT_UI_URL") or dashboard(url), origin, probe(url, known))


def _reuse_or_start(say: Callable[[str], None], seconds: float) -> ServerInfo:
    """Under the lock: wait for a server that is alive, replace one that stays silent, start one when there is none."""
    record = background.read_record()
    if record is not None and record.alive:
        if background.wait_ready(record, say, seconds) is None:
            return _info(record, started=False)
        say(f"The Prefect server (process {record.pid}) lives but does not answer; it is replaced")
        background.kill_process(record, 5.0)
    port = record.port if record is not None else 0
    found: str | None = None
    for _ in range(PORT_ATTEMPTS):
        record = background.start_process(background.settled_port(port))
        found = background.wait_ready(record, say, seconds)
        if found is None:
            info = _info(record, started=True)
            say(f"Prefect server ready: {info.dashboard_url} (it stays up; `evalnoise server stop` stops it)")
            return info
        background.kill_process(record, 5.0)
        background.write_record(background.Record(port=record.port))
        if "already in use" not in found:
            break
        port = 0
    raise ServerError(
        f"background Prefect server, log {background.log_path()}",
        expected=f"a server that answers within {seconds:.0f} s",
        found=str(found),
        remedy="Read the log; make room if the disk is full; or set PREFECT_API_URL to a server that you run yourself.",
    )


def _info(record: background.Record, *, started: bool) -> ServerInfo:
    return ServerInfo(record.api_url, dashboard(record.api_url), started)


def _with(detail: str, found: str | None) -> str:
    return detail if found is None else f"{detail}; {found}"


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
