"""Running a study from the command line: the server first, then the flow, then the summary."""

from __future__ import annotations

from pathlib import Path

import typer

from evalnoise.report.summary import Summary, read_summary
from evalnoise.report.terminal import print_summary
from flows.progress_view import watching
from flows.server import apply_client_environment, ensure_server
from schemas.errors import BlockedError
from schemas.study import Study


def run_study(study: Study, *, store: Path, limit: int | None, replicates: int | None) -> None:
    """Run or resume a study and print what it found.

    Raises the typed errors of the run; BlockedError when it ended but its numbers must not be used.
    """
    server = ensure_server()
    apply_client_environment(server)
    typer.echo(f"Prefect dashboard: {server.dashboard_url}", err=True)
    # Prefect reads its settings from the environment when it is imported, so not before this line.
    from flows.study import WATCHER, noise_study  # noqa: PLC0415

    with watching() as watcher:
        token = WATCHER.set(watcher)
        try:
            result = noise_study(study, store=str(store), limit=limit, replicates=replicates)
        finally:
            WATCHER.reset(token)
    summary = read_summary(store, result.study, result.protocol)
    print_summary(summary, store)
    _refuse_blocked(summary)


def _refuse_blocked(summary: Summary) -> None:
    blocking = [check for check in summary.checks if check["blocks"]]
    if blocking:
        raise BlockedError(
            f"study {summary.study}, protocol {summary.protocol[:12]}",
            expected="no blocking check",
            found=f"{len(blocking)}: {blocking[0]['sentence'].rstrip('.')}",
            remedy="The numbers above are kept, but do not decide anything on them.",
        )
