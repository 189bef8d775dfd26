"""The command line. Heavy imports happen inside the commands, so that `--help` answers at once."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from flows import (
    cli_agreement,
    cli_budget,
    cli_compare,
    cli_components,
    cli_doctor,
    cli_export,
    cli_gate,
    cli_init,
    cli_order,
    cli_query,
    cli_recording,
    cli_rerun,
    cli_server,
)
from flows.cli_errors import ShowWarnings, guarded
from flows.cli_options import DEFAULT_STORE, Limit, Overrides, Replicates, StoreOption, StudyFile

app = typer.Typer(
    name="evalnoise",
    help="Tell signal from noise in LLM evaluations: repeat an evaluation on purpose and measure how much of its score is noise.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    from flows.views.plan import print_plan
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


app.command("run")(guarded(cli_rerun.run))
app.command("extend")(guarded(cli_rerun.extend))
app.command("retry")(guarded(cli_rerun.retry))
app.command("init")(guarded(cli_init.init))
app.command("doctor")(guarded(cli_doctor.doctor))
app.command("status")(guarded(cli_query.status))
app.command("show")(guarded(cli_query.show))
app.command("sql")(guarded(cli_query.sql))
app.command("export")(guarded(cli_export.export))
app.command("budget")(guarded(cli_budget.budget))
app.command("power")(guarded(cli_budget.power))
app.command("ranking")(guarded(cli_budget.ranking))
app.command("design")(guarded(cli_budget.design))
app.command("compare")(guarded(cli_compare.compare))
app.command("components")(guarded(cli_components.components))
app.command("agreement")(guarded(cli_agreement.agreement))
app.command("gate")(guarded(cli_gate.gate))
app.command("aa")(guarded(cli_gate.aa))
app.command("drift")(guarded(cli_order.drift))
app.command("tasks")(guarded(cli_order.tasks))
app.command("nights")(guarded(cli_order.nights))
app.command("sequential")(guarded(cli_order.sequential))
app.command("catalog")(guarded(cli_query.catalog))
app.command("coupling")(guarded(cli_recording.coupling))
app.add_typer(cli_recording.app, name="recording", help="Recordings: make, import, list, show, diff, verify.")
app.add_typer(cli_server.app, name="server", help="The background Prefect server: start, stop, status.")
