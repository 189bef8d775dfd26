"""Export: views, tables and queries as CSV or Parquet files, each whole or not at all, with rows in the same order every time."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb

from evalnoise.store.files import TEMPORARY, make_folder, remove_abandoned, sync_folder, writing
from schemas.errors import StoreError
from schemas.tables import TABLES
from schemas.views import load_views

T = TypeVar("T")
_FORMULA: Final = "^[=+@\\t\\r\\n\uff1d\uff0b\uff20\uff0d-]"
"""Texts that a spreadsheet takes for a formula: it takes full-width signs for the plain ones."""
_NESTED: Final = ("STRUCT(", "MAP(", "UNION(")


class ExportFormat(StrEnum):
    """How files are written."""

    CSV = "csv"
    PARQUET = "parquet"


class QueryError(ValueError):
    """What was asked for is no query that can be exported; the message says why."""


def exportable() -> tuple[str, ...]:
    """Every view and table, in the order of the reference."""
    return (*reversed([view.name for view in load_views()]), *TABLES)


def ordered(connection: Any, query: str) -> str:
    """The query, and if it does not say in what order its rows come, with all columns as the order.

    Raises:
        QueryError: It is not one SELECT.
    """
    try:
        statements = connection.extract_statements(query)
    except duckdb.Error as error:
        raise QueryError(str(error)) from None
    if len(statements) != 1:
        raise QueryError(f"expected one query, found {len(statements) or 'nothing'}")
    # DuckDB says it in JSON, because a word of the text could also stand in a name, a comment or a part of the query.
    said = connection.execute("SELECT json_serialize_sql($1::VARCHAR)", [query]).fetchall()[0][0]
    parsed = json.loads(said)
    if parsed.get("error"):
        raise QueryError(f"{parsed.get('error_message', 'this cannot be exported')}: export takes a SELECT")
    node = parsed["statements"][0]["node"]
    kinds = {modifier.get("type") for modifier in node.get("modifiers", [])}
    text = query.strip().rstrip(";")
    # A comment in the last line must not swallow the bracket.
    return text if "ORDER_MODIFIER" in kinds else f"SELECT * FROM (\n{text}\n) ORDER BY ALL"  # noqa: S608 - the user's own query


def spreadsheet_text(text: str) -> str:
    """The text with an apostrophe before it if a spreadsheet would take it for a formula."""
    return f"'{text}" if re.match(_FORMULA, text) else text


def export(connection: Any, sources: Mapping[Path, str], form: ExportFormat, *, spreadsheet_safe: bool = False) -> dict[Path, int]:
    """Write the rows of each query to its file; all are written under temporary names before the first takes its place.

    CSV is that of RFC 4180 with a header and line feeds: NULL is an empty field and the empty text is quoted, lists are JSON.

    Args:
        connection: A connection to a catalog, as of `evalnoise.connect`.
        sources: Queries by the file that gets their rows; a file that is there is replaced.
        form: How files are written.
        spreadsheet_safe: CSV only: put an apostrophe before texts and names of columns that a spreadsheet would take for formulas.

    Returns:
        Rows by file.

    Raises:
        QueryError: DuckDB refuses a query.
        StoreError: A file cannot be written, or one that a query needs cannot be read.
    """
    temporary = {path: path.with_name(f".{os.getpid()}-{uuid.uuid4().hex}{TEMPORARY}") for path in sources}
    rows: dict[Path, int] = {}
    try:
        for path, query in sources.items():
            make_folder(path.parent)
            remove_abandoned(path.parent)
            rows[path] = _copy(connection, query, path, temporary[path], form, spreadsheet_safe=spreadsheet_safe)
            with writing(path):
                _sync(temporary[path])
        for path in sources:
            with writing(path):
                temporary[path].replace(path)
        for folder in {path.parent for path in sources}:
            with writing(folder):
                sync_folder(folder)
    finally:
        for leftover in temporary.values():
            with suppress(OSError):
                leftover.unlink(missing_ok=True)
    return rows


def _copy(connection: Any, query: str, path: Path, target: Path, form: ExportFormat, *, spreadsheet_safe: bool) -> int:
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM (\n{query}\n)").fetchall()  # noqa: S608 - the user's own query
        csv = form is ExportFormat.CSV
        columns = [
            _csv_column(name, kind, safe=spreadsheet_safe) if csv else _parquet_column(name, kind) for name, kind, *_ in described
        ]
        options = "FORMAT csv, HEADER, NULL ''" if csv else "FORMAT parquet, COMPRESSION zstd"
        # Names are quoted; the order of a query inside brackets is kept, because DuckDB preserves it.
        statement = f"COPY (SELECT {', '.join(columns)} FROM (\n{query}\n)) TO {_literal(target)} ({options})"  # noqa: S608
        return int(interruptible(connection, lambda: connection.execute(statement).fetchall())[0][0])
    except duckdb.IOException as error:
        remedy = "Free some space or choose another place; the file that was there is as it was."
        raise StoreError(str(path), expected="files that can be read and written", found=str(error), remedy=remedy) from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        raise QueryError(str(error)) from None


def interruptible(connection: Any, work: Callable[[], T]) -> T:
    """What `work` with the connection gives, in a thread: in the main one DuckDB may not see Ctrl-C until it is done."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _csv_column(name: str, kind: str, *, safe: bool) -> str:
    column = _quoted(name)
    called = _quoted(spreadsheet_text(name)) if safe else column
    if kind.endswith("]") or kind.startswith(_NESTED):
        return f"to_json({column})::VARCHAR AS {called}"
    if kind == "BLOB":
        return f"lower(hex({column})) AS {called}"
    if safe and kind.startswith(("VARCHAR", "ENUM")):
        text = f"{column}::VARCHAR"
        return f"CASE WHEN regexp_matches({text}, {_literal(_FORMULA)}) THEN '''' || {text} ELSE {text} END AS {called}"
    return f"{column} AS {called}"


def _parquet_column(name: str, kind: str) -> str:
    # Parquet has no integers of 128 bits; DuckDB would write floats, which lose digits.
    column = _quoted(name)
    return f"{column}::DECIMAL(38, 0) AS {column}" if kind in {"HUGEINT", "UHUGEINT"} else column


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _literal(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
