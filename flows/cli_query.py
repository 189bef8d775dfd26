"""The commands that read a store: `sql`, `status`, `show`, `catalog`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli_options import DEFAULT_STORE, StoreOption, misuse

if TYPE_CHECKING:  # imported by the commands that need it, so that `--help` answers at once
    from schemas.study import Study

_FORMATS = "table, csv or json"


def sql(
    query: Annotated[str, typer.Argument(help="A DuckDB query; the views are in docs/reference/views.md.", metavar="QUERY")],
    store: StoreOption = DEFAULT_STORE,
    form: Annotated[str, typer.Option("--format", help=f"How rows are written: {_FORMATS}.", metavar="FORMAT")] = "table",
) -> None:
    """Run a DuckDB query over the store's views, read-only. NULL is an empty field in CSV."""
    from flows.views.sql import Format, write_rows

    if form not in set(Format):
        raise misuse(f"--format {form}: expected {_FORMATS}")
    import duckdb

    from evalnoise.readers.export import interruptible
    from evalnoise.store.catalog import connect

    connection = connect(store)
    try:
        connection.execute("set timezone = 'UTC'")
        statements = connection.extract_statements(query)
        if len(statements) != 1:
            raise misuse(f"expected one query, found {len(statements) or 'nothing'}")
        interruptible(connection, lambda: connection.execute(query))
        if connection.description:
            write_rows(connection, Format(form))
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        raise misuse(_sql_message(str(error))) from None
    finally:
        connection.close()


def _sql_message(said: str) -> str:
    if "read-only mode" not in said:
        return said
    return f"{said}\nThe catalog is read-only. To keep a result, redirect the output or use: copy (…) to 'file.parquet'"


def status(
    study: Annotated[str | None, typer.Argument(help="A study's name, or its file. Default: all.", metavar="[STUDY]")] = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Show how far each frozen protocol has come: sealed and missing shards, cost, and who is at work."""
    from flows.views.status import print_status

    print_status(store, study_name(study))


def show(
    task: Annotated[str, typer.Argument(help="The task's id, for instance HumanEval/0.", metavar="TASK")],
    condition: Annotated[str | None, typer.Option("--condition", help="Only this condition.", metavar="C")] = None,
    store: StoreOption = DEFAULT_STORE,
    study: Annotated[
        str | None,
        typer.Option("--study", help="A study's name, or its file, from which failing inputs are shown.", metavar="STUDY"),
    ] = None,
) -> None:
    """Show one task: its prompt, and candidates, outcomes and verdicts across replicates, side by side."""
    from flows.views.show import names_an_input, print_task
    from flows.views.show_data import find_task, with_inputs

    named = _study_of(study)
    view = find_task(store, task, study=named.study if named else study, condition=condition)
    # A benchmark can take seconds to read.
    print_task(with_inputs(view, store, named) if names_an_input(view) else view)


def study_name(text: str | None) -> str | None:
    """The name of a study that was given by name or by file."""
    named = _study_of(text)
    return named.study if named else text


def _study_of(text: str | None) -> Study | None:
    """The study that was given by its file; None where it was given by name, or not at all."""
    if text is None or not (text.endswith((".yaml", ".yml")) or "/" in text):
        return None
    from evalnoise.studyfile.load import load_study

    return load_study(Path(text))


def catalog(store: StoreOption = DEFAULT_STORE) -> None:
    """Rebuild the catalog of views, for instance after a store was moved."""
    from evalnoise.store.catalog import build_catalog
    from evalnoise.store.store import Store

    typer.echo(str(build_catalog(Store.open(store, create=False).root)))
