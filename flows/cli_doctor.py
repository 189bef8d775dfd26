"""`evalnoise doctor`: is everything there that a run needs, and if not, what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli_options import DEFAULT_STORE, StoreOption


def doctor(
    study: Annotated[Path | None, typer.Argument(help="A study file: check what this study needs.", metavar="[STUDY]")] = None,
    store: StoreOption = DEFAULT_STORE,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="Change a value of the study: path=value. Repeatable.", metavar="PATH=VALUE")
    ] = None,
) -> None:
    """Check Python, engine, Prefect server, keys, disk, store and data, and say the remedy of what is wrong.

    The exit code is that of the first failed check; warnings do not count.
    """
    from flows.cli_errors import printable
    from flows.doctor_checks import Level, examine

    colours = {Level.OK: typer.colors.GREEN, Level.WARN: typer.colors.YELLOW, Level.FAIL: typer.colors.RED}
    code = 0
    for finding in examine(study, store, overrides or ()):
        typer.secho(f"{finding.level:5}", fg=colours[finding.level], nl=False)
        typer.echo(printable(f"{finding.subject}: {finding.text}"))
        if finding.remedy:
            typer.echo(printable(f"      {finding.remedy}"))
        if finding.level is Level.FAIL and not code:
            code = int(finding.exit_code)
    raise typer.Exit(code)
