"""Views of the catalog: the SQL files beside this module, in the order of their making, with grain and columns for the reference.

Macros are made after them: `schemas.macros`. Both use only what DuckDB 1.4 knows, because an analyst's own command line reads the
catalog too: CASE, for instance, and not `if(a, b, c)`.

Run as a program it prints ``docs/reference/views.md``.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

import pyarrow as pa

from schemas.columns import Column, Table
from schemas.macros import load_macros, macros_markdown
from schemas.tables import TABLES

INTEGER_KEYS: Final = frozenset({"replicate", "repeat"})
"""Partition keys that are integers; the others are text."""

_ORDER: Final = (
    "protocols", "partitions", "progress", "task_counts", "task_noise", "answer_counts", "costs", "near_limit_tasks",
    "verifier_noise", "verifier_noise_summary", "noise_floor_all", "noise_floor",
)  # fmt: skip
"""Each may use the ones before it and every view over a table of `schemas.tables`."""

_KEY_DOCS: Final = {
    "stack": "Name of the stack.",
    "condition": "Name of the condition.",
    "replicate": "Replicate, from 0.",
    "repeat": "Repeat of the judge condition, from 0.",
}

_SQL_TYPES: Final = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us", "UTC"): "TIMESTAMP WITH TIME ZONE",
    pa.list_(pa.string()): "VARCHAR[]",
    pa.list_(pa.int64()): "BIGINT[]",
    pa.list_(pa.float64()): "DOUBLE[]",
}

_HEADER = re.compile(r"-- (?P<key>table|view|grain): (?P<value>.+)")
_COLUMN = re.compile(r"--   (?P<name>\w+): (?P<doc>.+)")


@dataclass(frozen=True, slots=True)
class View:
    """One SQL file: a view, or a table that the catalog fills."""

    name: str
    grain: str
    about: str
    """Further sentences of the header; may be empty."""
    columns: tuple[tuple[str, str], ...]
    """Name and meaning of each column, in order."""
    sql: str
    """The statement that makes it."""


def reader_columns(table: Table) -> tuple[Column, ...]:
    """The columns of a table as readers see them: partition keys stand after study, protocol and benchmark."""
    keys = tuple(Column(key, pa.int64() if key in INTEGER_KEYS else pa.string(), _KEY_DOCS[key]) for key in table.partition)
    return (*table.columns[:3], *keys, *table.columns[3:])


def sql_type(column: Column) -> str:
    """The column's type in DuckDB."""
    return _SQL_TYPES[column.type]


@cache
def load_views() -> tuple[View, ...]:
    """Every SQL file, in the order of making."""
    folder = resources.files("schemas") / "sql"
    return tuple(parse_view((folder / f"{name}.sql").read_text("utf-8")) for name in _ORDER)


def parse_view(text: str) -> View:
    """A SQL file: comment lines that name the view, its grain and its columns, then one statement. Raises ValueError."""
    facts: dict[str, str] = {}
    about: list[str] = []
    columns: list[tuple[str, str]] = []
    lines = text.splitlines()
    body = next((number for number, line in enumerate(lines) if not line.startswith("--")), len(lines))
    for line in lines[:body]:
        if column := _COLUMN.fullmatch(line):
            columns.append((column["name"], column["doc"]))
        elif header := _HEADER.fullmatch(line):
            facts["name" if header["key"] != "grain" else "grain"] = header["value"]
        elif line != "-- columns:":
            about.append(line.removeprefix("-- "))
    sql = "\n".join(lines[body:]).strip()
    if not facts.keys() >= {"name", "grain"} or not columns or not sql:
        raise ValueError(f"a SQL file needs a name, a grain, columns and a statement: {text[:80]!r}")
    return View(facts["name"], facts["grain"], " ".join(about), tuple(columns), sql)


def reference_markdown() -> str:
    """The reference page of all views."""
    parts = [
        "# Views",
        "",
        "`evalnoise sql` and `evalnoise.connect(store)` show these views. This page is made from `schemas/tables.py` and",
        "`schemas/sql/` by `python -m schemas.views`. Columns marked *measured* are times, loads and ids that a repeat of the same",
        "study cannot reproduce; every other column comes out the same. Times are UTC. What is undefined is null, with a reason",
        "beside it, never NaN; a cell without an outcome is `unmeasured`, never a failure.",
        "",
        "The catalog is a DuckDB file, `evalnoise.duckdb` in the store. DuckDB's own command line, from 1.4 on, reads its views",
        "and macros too: docs/guide/sql.md shows how.",
        "",
        "Derived: " + ", ".join(f"[{view.name}](#{view.name})" for view in reversed(load_views())) + ".",
        "As stored: " + ", ".join(f"[{name}](#{name})" for name in TABLES) + ".",
        "Macros: " + ", ".join(f"[{macro.name}](#{_anchor(macro.signature)})" for macro in load_macros()) + ".",
    ]
    for view in reversed(load_views()):
        rows = [f"| `{name}` | {doc} |" for name, doc in view.columns]
        about = ["", view.about] if view.about else []
        parts += ["", f"## {view.name}", "", f"One row per {view.grain}.", *about, "", "| column | meaning |", "|---|---|", *rows]
    for table in TABLES.values():
        rows = [
            f"| `{column.name}` | {sql_type(column)} | {column.doc}{' *measured*' if column.measured else ''} |"
            for column in reader_columns(table)
        ]
        head = ["| column | type | meaning |", "|---|---|---|"]
        parts += ["", f"## {table.name}", "", f"One row per {table.grain}.", "", *head, *rows]
    parts += macros_markdown()
    return "\n".join(parts) + "\n"


def _anchor(heading: str) -> str:
    """The address that a page gives to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    sys.stdout.write(reference_markdown())
