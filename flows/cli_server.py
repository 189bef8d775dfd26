"""`evalnoise server`: start, stop and look at the background Prefect server."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from flows.cli_errors import guarded

app = typer.Typer(no_args_is_help=True)


@app.command()
@guarded
def start(
    export: Annotated[
        bool, typer.Option("--export", help='Print a shell line instead: eval "$(evalnoise server start --export)"')
    ] = False,
) -> None:
    """Start the background Prefect server, or say where the one that answers is."""
    from flows.server import ensure_server

    info = ensure_server()
    if export:
        # Prefect's own command line and workers find the server by this variable.
        typer.echo(f"export PREFECT_API_URL={shlex.quote(info.api_url)}")
        return
    if not info.started:
        typer.echo("A Prefect server answers already", err=True)
    typer.echo(f"api        {info.api_url}\ndashboard  {info.dashboard_url}")


@app.command()
@guarded
def stop() -> None:
    """Stop the background Prefect server; its records stay. A server named by PREFECT_API_URL is not touched."""
    from flows.server import stop_server

    pid = stop_server()
    typer.echo("No background Prefect server runs" if pid is None else f"Stopped the background Prefect server (process {pid})")


@app.command()
@guarded
def status() -> None:
    """Say which Prefect server a run would use. The exit code is 10 when one is configured or running but does not answer."""
    from flows.server import ServerState, server_status
    from schemas.errors import ExitCode

    found = server_status()
    typer.echo(f"state      {found.state}")
    if found.api_url is not None:
        typer.echo(f"api        {found.api_url}\ndashboard  {found.dashboard_url}")
    typer.echo(f"details    {found.detail}")
    if found.state is ServerState.STOPPED:
        typer.echo("The next run starts one; so does `evalnoise server start`")
    if found.state is ServerState.UNREACHABLE:
        raise typer.Exit(ExitCode.SERVER)
