"""The command `export`: views, tables and queries as CSV or Parquet files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from flows.cli_options import DEFAULT_STORE, IN_STORE, StoreOption, check_output, in_store, misuse


def export(
    *,
    what: Annotated[
        str | None,
        typer.Argument(help="A view or table, or a DuckDB query. Default: every view and table.", metavar="[TABLE|QUERY]"),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file; of everything, the folder.", metavar="PATH")],
    csv: Annotated[bool, typer.Option("--csv", help="CSV: NULL is an empty field, the empty text is quoted.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Parquet, with types.")] = False,
    store: StoreOption = DEFAULT_STORE,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    spreadsheet_safe: Annotated[
        bool, typer.Option("--spreadsheet-safe", help="CSV: put ' before texts that a spreadsheet takes for formulas.")
    ] = False,
) -> None:
    """Write views, tables or the rows of a query to files, each whole or not at all."""
    from contextlib import closing

    from evalnoise.readers.export import ExportFormat, QueryError
    from evalnoise.readers.export import export as write
    from evalnoise.report.numbers import counted
    from evalnoise.store.catalog import connect
    from flows.cli_errors import printable

    if csv == parquet:
        raise misuse("expected one of --csv and --parquet")
    if spreadsheet_safe and parquet:
        raise misuse("--spreadsheet-safe is about CSV: Parquet holds texts as texts")
    form = ExportFormat.CSV if csv else ExportFormat.PARQUET
    with closing(connect(store)) as connection:
        try:
            sources = _sources(connection, what, output, form, store=store, force=force)
            rows = write(connection, sources, form, spreadsheet_safe=spreadsheet_safe)
        except QueryError as error:
            raise misuse(str(error)) from None
    for path, number in rows.items():
        typer.echo(f"{printable(str(path))}  {counted(number, 'row')}")


def _sources(connection: object, what: str | None, output: Path, form: str, *, store: Path, force: bool) -> dict[Path, str]:
    """The query of each file."""
    from evalnoise.readers.export import exportable, ordered

    if what is None:
        if output.exists() and not output.is_dir():
            raise misuse(f"{output}: expected a folder, because every view and table gets a file of its own; found a file")
        if in_store(output, store):
            raise misuse(f"--output {output}: {IN_STORE}")
        found = {output / f"{name}.{form}": _whole(name) for name in exportable()}
    else:
        check_output("--output", output, store)
        if re.fullmatch(r"\w+", what) and what not in exportable():
            raise misuse(f"expected a query, or one of {', '.join(exportable())}; found {what!r}")
        found = {output: _whole(what) if what in exportable() else ordered(connection, what)}
    there = [str(path) for path in found if path.exists() or path.is_symlink()]
    if there and not force:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise misuse(f"{there[0]}{more}: there already; --force replaces them")
    return found


def _whole(name: str) -> str:
    return f'SELECT * FROM "{name}" ORDER BY ALL'  # noqa: S608 - a name of our own
