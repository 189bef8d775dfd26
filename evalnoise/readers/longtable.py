"""Long tables: files of millions of rows (CSV, JSON Lines, Parquet) as Arrow columns by DuckDB, with bad rows named.

For small files whose rows are looked at one by one there is `tablefile`; here no row ever becomes a Python object.
"""

from __future__ import annotations

import csv
import glob
import gzip
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.errors import DataError

FORMATS: Final = ".csv, .tsv, .jsonl, .ndjson or .parquet (the first four also .gz)"
_READERS: Final = {
    ".csv": "read_csv($path, header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"', columns = {columns})",
    ".tsv": "read_csv($path, header = true, auto_detect = false, delim = '\t', quote = '\"', escape = '\"', columns = {columns})",
    ".jsonl": "read_json($path, format = 'newline_delimited', columns = {columns})",
    ".ndjson": "read_json($path, format = 'newline_delimited', columns = {columns})",
    ".parquet": "(FROM read_parquet($path)) AS t({columns})",
}
_YES: Final = ("true", "pass", "passed")
_NO: Final = ("false", "fail", "failed")
_SHOWN = 80


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    """Anything, as text; an empty field is an error."""
    NUMBER = "number"
    """A number; true, pass and passed are 1, their opposites 0, whatever their case. An empty field or null is null."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One column that is looked for."""

    column: str
    """Its name in the file."""
    kind: Kind = Kind.TEXT
    optional: bool = False
    """Whether the file may do without it; then it is not in the result."""


def read_long_table(path: Path, wanted: Mapping[str, Wanted]) -> pa.Table:
    """The wanted columns under the names of `wanted`, in the file's order: text as dictionaries, numbers as doubles.

    Raises:
        DataError: The file is missing or no table, lacks a column, or a value is not what it ought to be; the message names the
            column and the row, counted from 1 without the header.
    """
    reader = _reader(path)
    with closing(duckdb.connect()) as connection:
        try:
            return _read(connection, path, reader, wanted)
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except (duckdb.Error, pa.ArrowException, UnicodeError) as error:
            said = _said(error)
            raise DataError(
                str(path), expected=f"a table in {FORMATS}", found=said, remedy="Check the file, and that its name says its format."
            ) from None


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "state machine reached an invalid state" in text:
        return "lines that are no CSV: line ends of more than one kind (LF, CR LF, CR), or a quotation mark out of place"
    if "cannot encode str as UTF-8" in text:
        return "a name of a file or column that is not UTF-8"
    return text[:300]


def _reader(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    suffix = next((suffix for suffix in _READERS if name.endswith(suffix)), None)
    if suffix is None or (suffix == ".parquet" and path.name.lower().endswith(".gz")):
        raise DataError(str(path), expected=f"a file whose name ends in {FORMATS}", found="another name", remedy="Rename it.")
    if not path.is_file():
        raise DataError(str(path), expected="a file", found="none", remedy="Check the path.")
    return _READERS[suffix]


def _read(connection: Any, path: Path, reader: str, wanted: Mapping[str, Wanted]) -> pa.Table:
    source = _Source(connection, path, reader.replace("{columns}", _columns(path, reader, wanted)))
    columns = {str(row[0]): str(row[1]) for row in source.rows("DESCRIBE SELECT * FROM {source}")}
    found = dict(_present(source, wanted, columns, typed="read_json" in reader))
    parts = ", ".join(f"{_value(want, columns[want.column])} AS {_quoted(key)}" for key, want in found.items())
    content = source.relation(f"SELECT {parts} FROM {{source}}").to_arrow_table()  # noqa: S608 - names are quoted
    made = {key: content[key].combine_chunks() for key in found}
    for key, want in found.items():
        _refuse_bad(source, want, made[key])
    return pa.table({key: array.dictionary_encode() if found[key].kind is Kind.TEXT else array for key, array in made.items()})


def _columns(path: Path, reader: str, wanted: Mapping[str, Wanted]) -> str:
    """The columns that DuckDB is told, in its language: those that a file has, or, of JSON, those that are looked for."""
    if "read_parquet" in reader:
        with path.open("rb") as file:
            names = list(pq.read_schema(file).names)
        return ", ".join(_quoted(name) for name in _distinct(path, names, wanted))
    is_csv = "read_csv" in reader
    there = _header(path, "\t" if "\t" in reader else ",", wanted) if is_csv else [one.column for one in wanted.values()]
    return "{" + ", ".join(f"{_quoted(name, mark=chr(39))}: 'VARCHAR'" for name in there) + "}"


def _header(path: Path, mark: str, wanted: Mapping[str, Wanted]) -> list[str]:
    """The names in a file's first line, distinct."""
    opening = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opening(path, "rt", encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file, delimiter=mark), None)
            ends = file.newlines
    except (csv.Error, OSError, EOFError) as error:
        raise DataError(str(path), expected="a header line", found=str(error)[:200], remedy="Check the file.") from None
    if not names:
        found = "an empty file" if names is None else "an empty line"
        raise DataError(str(path), expected="a header in the first line", found=found, remedy="Begin the file with its header.")
    broken = next((name for name in names if "\n" in name or "\r" in name), None)
    if broken is not None and ends != "\n":
        # DuckDB would take the rows for a part of the header.
        found = f"a line end in the name {broken[:_SHOWN]!r}"
        raise DataError(str(path), expected="a header in one line", found=found, remedy="Rename the column.")
    return _distinct(path, names, wanted)


def _distinct(path: Path, names: list[str], wanted: Mapping[str, Wanted]) -> list[str]:
    """A file's names, empty and repeated ones made distinct; DataError if a wanted one stands twice."""
    for one in wanted.values():
        if names.count(one.column) > 1:
            found = f"{names.count(one.column)} of that name"
            raise DataError(str(path), expected=f"one column {one.column!r}", found=found, remedy="Rename the others.")
    # Case counts for us and not for DuckDB.
    folded = [name.casefold() for name in names]
    kept = {one.column for one in wanted.values()}
    return [name if name in kept or (name and folded.count(name.casefold()) == 1) else f"\x01{i}" for i, name in enumerate(names)]


@dataclass(frozen=True, slots=True)
class _Source:
    """A file as DuckDB reads it: rows in the file's order, which DuckDB keeps."""

    connection: Any
    path: Path
    reader: str

    def relation(self, query: str) -> Any:
        """A query with `{source}` for the file. The names in it are quoted, the path is a parameter."""
        return self.connection.sql(query.replace("{source}", self.reader), params={"path": glob.escape(str(self.path))})

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Its rows."""
        found: list[tuple[Any, ...]] = self.relation(query).fetchall()
        return found


def _present(source: _Source, wanted: Mapping[str, Wanted], columns: Mapping[str, str], *, typed: bool) -> Any:
    """The wanted columns that the file has. A column of JSON Lines is absent if no row has it."""
    for key, want in wanted.items():
        there = want.column in columns
        if there and typed:
            there = bool(source.rows(f"SELECT count({_quoted(want.column)}) > 0 FROM {{source}}")[0][0])  # noqa: S608 - quoted
        if there:
            yield key, want
        elif not want.optional:
            raise DataError(
                str(source.path),
                expected=f"a column {want.column!r} for the {key}",
                found="no value in any row" if typed else f"columns {', '.join(columns)}"[:300],
                remedy="Name the column that holds it.",
            )


def _value(want: Wanted, kind: str) -> str:
    column = _quoted(want.column)
    if want.kind is Kind.TEXT:
        return f"CAST({column} AS VARCHAR)"
    if kind != "VARCHAR":
        return f"CAST({column} AS DOUBLE)"
    text = f"lower(trim({column}))"
    cases = f"WHEN {text} IN {_YES} THEN 1 WHEN {text} IN {_NO} THEN 0"
    # What is no number becomes NaN, which is refused, as NaN itself is; only an empty field is null.
    return (
        f"CASE WHEN {column} IS NULL OR {text} = '' THEN NULL {cases} ELSE coalesce(try_cast({text} AS DOUBLE), 'nan') END::DOUBLE"
    )


def _refuse_bad(source: _Source, want: Wanted, values: pa.Array) -> None:
    empty = pc.or_kleene(pc.is_null(values), pc.equal(values, "")) if want.kind is Kind.TEXT else None
    bad = pc.invert(pc.is_finite(values)) if empty is None else empty
    places = np.flatnonzero(np.asarray(pc.fill_null(bad, want.kind is Kind.TEXT)))
    if not places.size:
        return
    row = int(places[0])
    column = _quoted(want.column)
    value = source.rows(f"SELECT CAST({column} AS VARCHAR) FROM {{source}} LIMIT 1 OFFSET {row}")[0][0]  # noqa: S608 - quoted
    more = f" (and {places.size - 1} more like it)" if places.size > 1 else ""
    number = want.kind is Kind.NUMBER
    raise DataError(
        f"{source.path}, row {row + 1}, column {want.column!r}",
        expected="a finite number, true or false, pass or fail, or nothing" if number else "text",
        found=f"{value[:_SHOWN]!r}{more}" if value else f"nothing{more}",
        remedy="Mend the row; leave the field empty where nothing was measured." if number else "Mend the row.",
    )


def _quoted(name: str, mark: str = '"') -> str:
    return mark + name.replace(mark, mark * 2) + mark
