"""Plain tables with the columns of a store's views, and the checks over them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import duckdb

from schemas.checks import check_queries
from schemas.tables import CALLS, GENERATIONS, OUTCOMES, PREFLIGHT, PROBES, VERDICTS
from schemas.views import load_views, reader_columns, sql_type

TABLES = {table.name: table for table in (CALLS, GENERATIONS, OUTCOMES, PREFLIGHT, PROBES, VERDICTS)}
BASE: dict[str, Any] = {"study": "s", "protocol": "p", "benchmark": "b", "stack": "a", "condition": "live", "replicate": 0}
_VIEWS = ("protocols", "task_counts", "answer_counts")


def empty_tables() -> duckdb.DuckDBPyConnection:
    """A database with every table and view that a check reads. There is one for all tests, because binding views takes long."""
    connection = _made()
    for name in (*TABLES, "protocols"):
        connection.execute(f"delete from {name}")
    return connection


@cache
def _made() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table in TABLES.values():
        columns = ", ".join(f'"{column.name}" {sql_type(column)}' for column in reader_columns(table))
        connection.execute(f"create table {table.name} ({columns})")
    for view in load_views():
        if view.name in _VIEWS:
            connection.execute(view.sql)
    return connection


def put(connection: duckdb.DuckDBPyConnection, table: str, **values: Any) -> None:
    """A row with these values and those of `BASE`; null elsewhere."""
    put_all(connection, table, [values])


def put_all(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    """Such rows in one statement; all name the same columns."""
    names = {column.name for column in reader_columns(TABLES[table])} & (BASE | rows[0]).keys()
    columns = sorted(names)
    marks = ", ".join(f"({', '.join('?' for _ in columns)})" for _ in rows)
    values = [(BASE | row)[name] for row in rows for name in columns]
    connection.execute(f"insert into {table} ({', '.join(columns)}) values {marks}", values)


def found(connection: duckdb.DuckDBPyConnection, check: str) -> list[tuple[Any, ...]]:
    """(stack, condition, severity, blocks, value) of each finding; the sentence must name the condition or the stack."""
    rows = connection.execute(check_queries()[check], {"study": "s", "protocol": "p"}).fetchall()
    assert all(row[4].endswith(".") and row[0] in row[4] for row in rows)
    return [(row[0], row[1], row[2], row[3], row[5]) for row in rows]


def sentence(connection: duckdb.DuckDBPyConnection, check: str) -> str:
    """What the check's one finding says."""
    (row,) = connection.execute(check_queries()[check], {"study": "s", "protocol": "p"}).fetchall()
    return str(row[4])
