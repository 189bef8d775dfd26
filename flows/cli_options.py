"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_STORE = Path("evalnoise-store")

StudyFile = Annotated[Path, typer.Argument(help="The study file (YAML).", metavar="STUDY")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N tasks, in the benchmark's order.", metavar="N")]
Replicates = Annotated[int | None, typer.Option("--replicates", min=1, help="Replicates instead of the study's.", metavar="R")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="Change a value of the study: path=value. Repeatable.", metavar="PATH=VALUE")
]
StoreOption = Annotated[Path, typer.Option("--store", envvar="EVALNOISE_STORE", help="Folder that holds results.", metavar="DIR")]


def misuse(message: str) -> typer.Exit:
    """Print what is wrong with the command, and give the exception to raise for it: exit code 2."""
    from flows.cli_errors import printable
    from schemas.errors import ExitCode

    typer.secho(f"error: {printable(message)}", fg=typer.colors.RED, err=True)
    return typer.Exit(ExitCode.USAGE)
