"""The command line. Heavy imports happen inside the commands, so that `--help` answers at once."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from flows import cli_doctor, cli_init, cli_query, cli_server
from flows.cli_errors import ShowWarnings, guarded
from flows.cli_options import DEFAULT_STORE, StoreOption

app = typer.Typer(
    name="evalnoise",
    help="Tell signal from noise in LLM evaluations: repeat an evaluation on purpose and measure how much of its score is noise.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

StudyFile = Annotated[Path, typer.Argument(help="The study file (YAML).", metavar="STUDY")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N tasks, in the benchmark's order.", metavar="N")]
Replicates = Annotated[int | None, typer.Option("--replicates", min=1, help="Replicates instead of the study's.", metavar="R")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="Change a value of the study: path=value. Repeatable.", metavar="PATH=VALUE")
]


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"evalnoise {version('evalnoise')}")
        raise typer.Exit


@app.callback()
def main(
    _show_version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Take the options that stand before a command."""
    warnings.showwarning = ShowWarnings()  # type: ignore[assignment]  # parameters that are passed by position only


@app.command()
@guarded
def plan(
    study: StudyFile,
    store: StoreOption = DEFAULT_STORE,
    limit: Limit = None,
    replicates: Replicates = None,
    overrides: Overrides = None,
) -> None:
    """Show the DAG, and how many calls, verifications, tokens and dollars a run takes, before anything is spent."""
    from evalnoise.studyfile.load import opened_study
    from flows.plan_view import print_plan
    from tasks.freeze import resolve

    with opened_study(study, overrides or ()) as found:
        print_plan(resolve(found, limit=limit, replicates=replicates), store)


@app.command()
@guarded
def freeze(
    study: StudyFile,
    store: StoreOption = DEFAULT_STORE,
    limit: Limit = None,
    replicates: Replicates = None,
    overrides: Overrides = None,
) -> None:
    """Write the protocol of a study and print its digest; nothing is called."""
    from evalnoise.store.store import Store
    from evalnoise.studyfile.load import opened_study
    from tasks.freeze import resolve

    with opened_study(study, overrides or ()) as found:
        frozen = resolve(found, limit=limit, replicates=replicates)
    path = Store.open(store).freeze(frozen.protocol)
    typer.echo(f"{frozen.digest}  {path}")


@app.command()
@guarded
def run(
    study: StudyFile,
    store: StoreOption = DEFAULT_STORE,
    limit: Limit = None,
    replicates: Replicates = None,
    overrides: Overrides = None,
) -> None:
    """Run a study, or resume it: the same command continues where a stopped run ended."""
    from evalnoise.studyfile.load import opened_study
    from flows.runner import run_study

    with opened_study(study, overrides or ()) as found:
        run_study(found, store=store, limit=limit, replicates=replicates)


app.command("init")(guarded(cli_init.init))
app.command("doctor")(guarded(cli_doctor.doctor))
app.command("status")(guarded(cli_query.status))
app.command("show")(guarded(cli_query.show))
app.command("sql")(guarded(cli_query.sql))
app.command("budget")(guarded(cli_query.budget))
app.command("catalog")(guarded(cli_query.catalog))
app.add_typer(cli_server.app, name="server", help="The background Prefect server: start, stop, status.")
