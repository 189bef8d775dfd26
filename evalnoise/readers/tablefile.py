"""Table files of users (CSV, JSON Lines, Parquet): columns as text first, typed afterwards; mistakes name row and column."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evalnoise.store.files import reading
from schemas.errors import DataError

Texts = NDArray[np.object_]
"""Texts, None where a value is missing: an empty CSV field, a JSON or Parquet null."""

SUFFIXES: Final = (".csv", ".jsonl", ".parquet")
_MOST_NAMES = 20


def read_columns(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Texts]:
    """The named columns of a file, one entry per row; optional ones only where the file has them, other columns not at all.

    Numbers come as their text, which `floats` reads; JSON's true and false come as `true` and `false`.

    Args:
        path: A .csv with a header line, a .jsonl with an object a line, or a .parquet file.
        required: Columns that must be there.
        optional: Columns that may be there.

    Raises:
        DataError: The file is missing, is of another kind, cannot be read, lacks a column, or has no row.
    """
    readers: dict[str, Callable[[Path, Sequence[str], Sequence[str]], dict[str, Texts]]] = {
        ".csv": _csv,
        ".jsonl": _jsonl,
        ".parquet": _parquet,
    }
    reader = readers[_kind(path)]
    with reading(path):
        columns = reader(path, required, optional)
    if not len(columns[required[0]]):
        raise bad(path, "at least one row", "none")
    return columns


def column_names(path: Path) -> list[str]:
    """The names of a file's columns, in its order. Raises DataError as `read_columns`."""
    kind = _kind(path)
    with reading(path):
        try:
            if kind == ".csv":
                with pa_csv.open_csv(path, parse_options=pa_csv.ParseOptions(newlines_in_values=True)) as opened:
                    return list(opened.schema.names)
            if kind == ".parquet":
                return list(pq.ParquetFile(path).schema_arrow.names)
        except (pa.ArrowInvalid, OSError) as error:
            raise bad(path, "a table with names of columns", str(error)) from None
        return list(dict.fromkeys(key for row in _objects(path) for key in row))


def _kind(path: Path) -> str:
    """One of `SUFFIXES`. Raises DataError for what is no such file."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise bad(path, f"a file named {', '.join(f'*{suffix}' for suffix in SUFFIXES)}", f"{path.suffix or 'no suffix'}")
    if not path.is_file():
        raise bad(path, "a file", "a folder" if path.is_dir() else "nothing there", "Check the path.")
    return suffix


def floats(
    path: Path, name: str, texts: Texts, *, low: float = -math.inf, high: float = math.inf, missing: bool = False
) -> NDArray[np.float64]:
    """The column as finite numbers from `low` to `high`, NaN where one is missing. Raises DataError that names row and column.

    Args:
        path: The file, for messages.
        name: The column.
        texts: Its texts, as of `read_columns`.
        low: Smallest number that may stand there.
        high: Largest.
        missing: Whether values may be missing.
    """
    values = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        if text is None and missing:
            continue
        try:
            values[row] = float("nan" if text is None else text)
        except ValueError:
            values[row] = math.nan
        if not (math.isfinite(values[row]) and low <= values[row] <= high):
            limits = "" if low == -math.inf and high == math.inf else f" from {low:g} to {high:g}"
            raise bad_cell(path, row, name, f"a number{limits}{' or nothing' if missing else ''}", text)
    return values


def full(path: Path, name: str, texts: Texts) -> Texts:
    """The column, which must have a text in every row. Raises DataError that names row and column."""
    for row, text in enumerate(texts):
        if text is None:
            raise bad_cell(path, row, name, "a value", text)
    return texts


def bad_cell(path: Path, row: int, name: str, expected: str, found: str | None) -> DataError:
    """The error for one value; rows count from 1, without a header."""
    said = "nothing" if found is None else repr(found)[:100]
    return bad(f"{path}, row {row + 1}, column {name}", expected, said, "Mend the row, or leave it out.")


def bad(where: Path | str, expected: str, found: str, remedy: str = "docs/guide/agreement.md shows the format.") -> DataError:
    """The error for a whole file."""
    return DataError(str(where)[:400], expected=expected, found=found[:300], remedy=remedy)


def _chosen(path: Path, have: Sequence[str], required: Sequence[str], optional: Sequence[str]) -> list[str]:
    """The wanted columns that the file has. Raises DataError for one that must be there, and for a name that stands twice."""
    for name in (*required, *optional):
        if have.count(name) > 1:
            raise bad(path, f"one column {name}", f"{have.count(name)} of that name", "Rename the others.")
    for name in required:
        if name not in have:
            near = difflib.get_close_matches(name, have, n=1) or [one for one in have if one.strip().lower() == name]
            shown = ", ".join(map(repr, have[:_MOST_NAMES])) or "none"
            raise bad(path, f"a column {name!r}", f"columns {shown}", f"Rename {near[0]!r}." if near else f"Add a column {name!r}.")
    return [name for name in (*required, *optional) if name in have]


def _csv(path: Path, required: Sequence[str], optional: Sequence[str]) -> dict[str, Texts]:
    parse = pa_csv.ParseOptions(newlines_in_values=True)
    try:
        # Arrow opens no name that is not UTF-8.
        with path.open("rb") as file, pa_csv.open_csv(file, parse_options=parse) as opened:
            have = opened.schema.names
        names = _chosen(path, have, required, optional)
        options = pa_csv.ConvertOptions(
            column_types={name: pa.string() for name in names},
            include_columns=names,
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            null_values=[""],
        )
        with path.open("rb") as file:
            table = pa_csv.read_csv(file, parse_options=parse, convert_options=options)
    except pa.ArrowInvalid as error:
        raise bad(path, "a CSV file in UTF-8 with a header line", str(error)) from None
    return {name: _texts(table.column(name)) for name in names}


def _parquet(path: Path, required: Sequence[str], optional: Sequence[str]) -> dict[str, Texts]:
    try:
        with path.open("rb") as file:
            opened = pq.ParquetFile(file)
            names = _chosen(path, opened.schema_arrow.names, required, optional)
            table = opened.read(columns=names)
    except (pa.ArrowInvalid, OSError) as error:
        raise bad(path, "a Parquet file", str(error)) from None
    found = {}
    for name in names:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            raise bad(f"{path}, column {name}", "texts or numbers", str(column.type))
        # Python's own text of a float is the shortest that gives the float back.
        found[name] = np.array([_scalar(value) for value in column.to_pylist()], dtype=object)
    return found


def _jsonl(path: Path, required: Sequence[str], optional: Sequence[str]) -> dict[str, Texts]:
    rows = list(_objects(path))
    have = list(dict.fromkeys(key for row in rows for key in row))
    names = _chosen(path, have, required, optional)
    found = {}
    for name in names:
        values = [row.get(name) for row in rows]
        for place, value in enumerate(values):
            if isinstance(value, list | dict):
                raise bad_cell(path, place, name, "a text or a number", json.dumps(value))
        found[name] = np.array([_scalar(value) for value in values], dtype=object)
    return found


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise bad(path, "UTF-8", str(error)) from None
    row = 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        row += 1
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:  # also for integers of more digits than Python reads
            raise bad(f"{path}, row {row}", "a JSON object", str(error), "Every line is one object.") from None
        if not isinstance(value, dict):
            raise bad(f"{path}, row {row}", "a JSON object", line, "Every line is one object.")
        yield value


def _texts(column: pa.ChunkedArray) -> Texts:
    return np.array(column.to_pylist(), dtype=object)


def _scalar(value: object) -> str | None:
    if value is None or value == "":
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
