"""Running a study from the command line: the server first, then the flow, then the summary."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import typer

from evalnoise.report.summary import refuse_blocked
from evalnoise.report.terminal import print_summary
from evalnoise.store.store import Store
from flows.progress_view import watching
from flows.server import apply_client_environment, ensure_server
from schemas.study import Study
from tasks.freeze import check_keys, resolve


def run_study(study: Study, *, store: Path, limit: int | None, replicates: int | None) -> None:
    """Run or resume a study and print what it found.

    Raises the typed errors of the run; BlockedError when it ended but its numbers must not be used.
    """
    # Everything that can be wrong with the study, its data, its engine and its keys is said before a server is started.
    check_keys(resolve(study, limit=limit, replicates=replicates))
    Store.open(store)
    server = ensure_server()
    apply_client_environment(server)
    # The command line says what went wrong in a sentence; Prefect's traceback goes to the run's page only.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    typer.echo(f"Prefect dashboard: {server.dashboard_url}", err=True)
    # Prefect reads its settings from the environment when it is imported, so not before this line.
    from flows.study import WATCHER, noise_study  # noqa: PLC0415

    with watching() as watcher:
        token = WATCHER.set(watcher)
        try:
            result = noise_study(study, store=str(store), limit=limit, replicates=replicates)
        finally:
            WATCHER.reset(token)
    print_summary(result.summary, store, command=_command())
    refuse_blocked(result.summary)


def _command() -> str:
    """How the user can call evalnoise again."""
    return "evalnoise" if shutil.which("evalnoise") or not sys.argv[0].endswith("evalnoise") else sys.argv[0]
