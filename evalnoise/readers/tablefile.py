"""Table files of users (CSV, TSV, JSON Lines, Parquet) as Arrow columns by DuckDB; each mistake names file, row and column.

Everything that reads a table of a user's own reads it here. No row becomes a Python object, so that there may be millions.
"""

from __future__ import annotations

import csv
import difflib
import glob
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

from evalnoise.readers.columns import at_row
from evalnoise.readers.tablelines import FORMATS, LONGEST_LINE, csv_fault, lines, opened, refuse_line, refuse_text, said
from schemas.errors import DataError


@dataclass(frozen=True, slots=True)
class _Format:
    """How DuckDB reads a format, which the end of a file's name says."""

    reader: str
    """In its language, with `{columns}` for the columns that it is told and the path as a parameter."""
    mark: str = ""
    """What separates the fields of a CSV file."""


_LONGEST: Final = f"maximum_object_size = {LONGEST_LINE}"


def _csv(mark: str) -> _Format:
    options = f"delim = '{mark}', quote = '\"', escape = '\"', columns = {{columns}}, max_line_size = {LONGEST_LINE}"
    return _Format(f"read_csv($path, header = true, auto_detect = false, {options})", mark)


_JSON: Final = _Format(f"read_json($path, format = 'newline_delimited', records = 'true', columns = {{columns}}, {_LONGEST})")
_PARQUET: Final = _Format("(FROM read_parquet($path)) AS t({columns})")
_FORMATS: Final = {".csv": _csv(","), ".tsv": _csv("\t"), ".jsonl": _JSON, ".ndjson": _JSON, ".parquet": _PARQUET}
_KEYS: Final = """
SELECT keys FROM (
    SELECT json_keys(json) AS keys, row_number() OVER () AS place
    FROM read_json_objects($path, format = 'newline_delimited', {longest})
)
GROUP BY keys ORDER BY min(place)
""".replace("{longest}", _LONGEST)
_YES: Final = ("true", "pass", "passed")
_NO: Final = ("false", "fail", "failed")
_SCORES: Final = (
    pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_string,
    pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null,
)  # fmt: skip
_SHOWN = 80
_MOST_NAMES = 20


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    """Anything, as text; an empty field is an error."""
    HOLES = "holes"
    """Text that may be missing: an empty field is null."""
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


def is_table_name(text: str) -> bool:
    """Whether a text ends as the name of a table file does."""
    return _suffix(text) is not None


def read_table(path: Path, wanted: Mapping[str, Wanted]) -> pa.Table:
    """The wanted columns under the names of `wanted`, in the file's order: text as dictionaries, numbers as doubles.

    Raises:
        DataError: The file is missing or no table, lacks a column, has no row, or a value is not what it ought to be; the message
            names the column and the row, counted from 1 without the header.
    """
    form = _format(path)
    with closing(duckdb.connect()) as connection:
        try:
            return _read(connection, path, form, wanted)
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except _FAULTS as error:
            raise _no_table(path, error) from None


def column_names(path: Path) -> list[str]:
    """The names of a file's columns, in its order; of JSON Lines, those of any row. Raises DataError as `read_table`."""
    form = _format(path)
    try:
        if form.mark:
            return _header(path, form.mark)
        if form is _PARQUET:
            return _parquet_names(path)
        with closing(duckdb.connect()) as connection:
            found = connection.execute(_KEYS, {"path": glob.escape(str(path))}).fetchall()
        return list(dict.fromkeys(str(key) for (keys,) in found for key in keys))
    except _FAULTS as error:
        raise _no_table(path, error) from None


# --- how a file is opened ------------------------------------------------------------------------------------------------

_FAULTS: Final = (duckdb.Error, pa.ArrowException, UnicodeError, OSError)


def _no_table(path: Path, error: Exception) -> DataError:
    """The error for a file that cannot be read; it names the row where that is known."""
    form = _format(path)
    if form is not _PARQUET:
        try:
            (refuse_line if form is _JSON else refuse_text)(path)
        except DataError as named:
            return named
    if form.mark and (fault := csv_fault(path, form.mark, " ".join(str(error).split()))) is not None:
        return fault
    remedy = "Check the file, and that its name says its format."
    return DataError(str(path), expected=f"a table in {FORMATS}", found=said(error), remedy=remedy)


def _suffix(name: str) -> str | None:
    lower = name.lower()
    plain = lower.removesuffix(".gz")
    suffix = next((suffix for suffix in _FORMATS if plain.endswith(suffix)), None)
    return None if suffix == ".parquet" and plain != lower else suffix


def _format(path: Path) -> _Format:
    suffix = _suffix(path.name)
    if suffix is None:
        raise DataError(str(path), expected=f"a file whose name ends in {FORMATS}", found="another name", remedy="Rename it.")
    if not path.is_file():
        found = "a folder" if path.is_dir() else "a pipe, socket or device" if path.exists() else "none"
        raise DataError(str(path), expected="a regular file" if path.exists() else "a file", found=found, remedy="Check the path.")
    return _FORMATS[suffix]


def _read(connection: Any, path: Path, form: _Format, wanted: Mapping[str, Wanted]) -> pa.Table:
    reader = form.reader.replace("{columns}", _columns(path, form, wanted))
    source = _Source(connection, path, reader, is_json=form is _JSON)
    columns = {str(row[0]): str(row[1]) for row in source.rows("DESCRIBE SELECT * FROM {source}")}
    found = dict(_present(source, wanted, columns))
    parts = ", ".join(f"{_value(want, columns[want.column])} AS {_quoted(key)}" for key, want in found.items())
    content = source.relation(f"SELECT {parts} FROM {{source}}").to_arrow_table()  # noqa: S608 - names are quoted
    if not content.num_rows:
        raise DataError(str(path), expected="at least one row", found="none", remedy="Check that it is the right file.")
    made = {key: content[key].combine_chunks() for key in found}
    for key, want in found.items():
        _refuse_bad(source, want, made[key])
    return pa.table({key: array if found[key].kind is Kind.NUMBER else array.dictionary_encode() for key, array in made.items()})


def _columns(path: Path, form: _Format, wanted: Mapping[str, Wanted]) -> str:
    """The columns that DuckDB is told, in its language: those that a file has, or, of JSON, those that are looked for."""
    if form is _PARQUET:
        names = _distinct(path, _parquet_names(path), wanted)
        _refuse_types(path, wanted)
        return ", ".join(_quoted(name) for name in names)
    asked = list(dict.fromkeys(one.column for one in wanted.values()))
    there = _distinct(path, _header(path, form.mark), wanted) if form.mark else asked
    return "{" + ", ".join(f"{_quoted(name, mark=chr(39))}: 'VARCHAR'" for name in there) + "}"


def _parquet_names(path: Path) -> list[str]:
    with path.open("rb") as file:
        return list(pq.read_schema(file).names)


def _refuse_types(path: Path, wanted: Mapping[str, Wanted]) -> None:
    """Raise DataError for a column of Parquet that DuckDB would take for numbers, or refuse in SQL: durations, dates, lists."""
    with path.open("rb") as file:
        schema = pq.read_schema(file)
    for want in wanted.values():
        kind = schema.field(want.column).type if want.column in schema.names else pa.null()
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        number = want.kind is Kind.NUMBER
        if pa.types.is_duration(plain) or (number and not any(allowed(plain) for allowed in _SCORES)):
            expected = "numbers, booleans or texts" if number else "texts or numbers"
            found = f"a column of type {str(kind)[:_SHOWN]}"
            remedy = "Write it as numbers, or name another column."
            raise DataError(f"{path}, column {want.column!r}", expected=expected, found=found, remedy=remedy)


def _header(path: Path, mark: str) -> list[str]:
    """The names in a file's first line."""
    try:
        with opened(path) as file:
            names = next(csv.reader(lines(path, file), delimiter=mark), None)
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
    return names


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
    is_json: bool
    """Whether it is JSON Lines, which has a column where a row has it."""

    def relation(self, query: str, reader: str = "") -> Any:
        """A query with `{source}` for the file. The names in it are quoted, the path is a parameter."""
        return self.connection.sql(query.replace("{source}", reader or self.reader), params={"path": glob.escape(str(self.path))})

    def rows(self, query: str, reader: str = "") -> list[tuple[Any, ...]]:
        """Its rows."""
        found: list[tuple[Any, ...]] = self.relation(query, reader).fetchall()
        return found


def _present(source: _Source, wanted: Mapping[str, Wanted], columns: Mapping[str, str]) -> Any:
    """The wanted columns that the file has. A column of JSON Lines is absent if no row has it."""
    have = list(columns)
    if source.is_json:
        have = column_names(source.path)
    for key, want in wanted.items():
        if want.column in have:
            yield key, want
        elif not want.optional:
            if source.is_json:
                refuse_line(source.path)
            near = difflib.get_close_matches(want.column, have, n=1) or [
                name for name in have if name.strip().lower() == want.column
            ]
            raise DataError(
                str(source.path),
                expected=f"a column {want.column!r} for the {key}",
                found=f"columns {', '.join(have[:_MOST_NAMES])}"[:300] if have else "no column",
                remedy=f"Rename {near[0]!r}, or name the column that holds it." if near else "Name the column that holds it.",
            )


def _value(want: Wanted, kind: str) -> str:
    column = _quoted(want.column)
    if want.kind is not Kind.NUMBER:
        text = f"CAST({column} AS VARCHAR)"
        return text if want.kind is Kind.TEXT else f"nullif({text}, '')"
    if kind != "VARCHAR":
        return f"CAST({column} AS DOUBLE)"
    text = f"lower(trim({column}))"
    cases = f"WHEN {text} IN {_YES} THEN 1 WHEN {text} IN {_NO} THEN 0"
    # What is no number becomes NaN, which is refused, as NaN itself is; only an empty field is null. DuckDB takes 1_0 for 10.
    number = f"CASE WHEN contains({text}, '_') THEN NULL ELSE try_cast({text} AS DOUBLE) END"
    return f"CASE WHEN {column} IS NULL OR {text} = '' THEN NULL {cases} ELSE coalesce({number}, 'nan') END::DOUBLE"


def _refuse_bad(source: _Source, want: Wanted, values: pa.Array) -> None:
    number = want.kind is Kind.NUMBER
    if number:
        bad = pc.fill_null(pc.invert(pc.is_finite(values)), fill_value=False)
    else:
        _refuse_nested(source, want, values)
        if want.kind is Kind.HOLES:
            return
        bad = pc.fill_null(pc.equal(values, ""), fill_value=True)
    places = np.flatnonzero(np.asarray(bad))
    if not places.size:
        return
    row = int(places[0])
    column = _quoted(want.column)
    value = source.rows(f"SELECT CAST({column} AS VARCHAR) FROM {{source}} LIMIT 1 OFFSET {row}")[0][0]  # noqa: S608 - quoted
    more = f" (and {places.size - 1} more like it)" if places.size > 1 else ""
    expected = "a finite number, true or false, pass or fail, or nothing" if number else "text"
    shown = repr(value[:_SHOWN]) if value else "nothing"
    remedy = "Mend the row; leave the field empty where nothing was measured." if number else "Mend the row."
    raise at_row(source.path, row, want.column, expected=expected, found=f"{shown}{more}", remedy=remedy)


def _refuse_nested(source: _Source, want: Wanted, values: pa.Array) -> None:
    """Raise DataError for a list or an object where a text should be."""
    column = _quoted(want.column)
    row = 0
    if source.is_json:
        if not pc.any(pc.match_substring_regex(values, r"^[\[{]")).as_py():
            return
        typed = source.reader.replace("'VARCHAR'", "'JSON'")
        query = f"SELECT json_type({column}) IN ('ARRAY', 'OBJECT') FROM {{source}}"  # noqa: S608 - quoted
        nested = np.flatnonzero([bool(one) for (one,) in source.rows(query, typed)])
        if not nested.size:
            return
        row = int(nested[0])
    else:
        kind = source.rows(f"SELECT typeof({column}) FROM {{source}} LIMIT 1")[0][0]  # noqa: S608 - quoted
        if (kind != "BLOB" and not kind.endswith(("]", ")"))) or kind.startswith(("DECIMAL", "ENUM")):
            return
    raise at_row(source.path, row, want.column, expected="a text or a number", found=str(values[row].as_py())[:_SHOWN])


def _quoted(name: str, mark: str = '"') -> str:
    return mark + name.replace(mark, mark * 2) + mark
