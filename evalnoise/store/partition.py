"""Partitions: rows checked against their table, ordered, and turned into Parquet bytes that are the same every time."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.columns import Column, Table
from schemas.errors import StoreError
from schemas.views import INTEGER_KEYS, reader_columns

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_FIELD_NUMBER = b"PARQUET:field_id"
_INT64 = 2**63
_EXACT_FLOAT = 2**53
_REMEDY = "This is a fault in the code that made the row; nothing of this shard was sealed."


@dataclass(frozen=True, slots=True)
class PartitionWrite:
    """The rows of one file to be."""

    table: Table
    keys: Mapping[str, str | int]
    """One value for each of the table's partition keys."""
    rows: Sequence[Mapping[str, Any]]
    """Without the partition keys: they live in the path."""
    part: str
    """Distinguishes files of the same keys, for instance ``000``."""

    def path(self) -> str:
        """Where the file lies, relative to the protocol's folder. Raises StoreError for keys that cannot be a path."""
        where = f"table {self.table.name}"
        if set(self.keys) != set(self.table.partition):
            found = ", ".join(map(str, self.keys)) or "none"
            expected = f"the partition keys {', '.join(self.table.partition) or '(none)'}"
            raise StoreError(where, expected=expected, found=found, remedy=_REMEDY)
        folders = [f"{key}={key_text(where, key, self.keys[key])}" for key in self.table.partition]
        return "/".join([self.table.name, *folders, f"part-{_name(where, 'part', self.part)}.parquet"])


def key_text(where: str, key: str, value: object) -> str:
    """A partition value as it stands in a path. Raises StoreError unless it is a plain name, or a whole number where one is due."""
    if key not in INTEGER_KEYS:
        return _name(where, key, value)
    if type(value) is not int or not 0 <= value < _INT64:
        raise StoreError(where, expected=f"a whole number from 0 for {key}", found=repr(value), remedy=_REMEDY)
    return str(value)


def _name(where: str, key: str, value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        expected = f"a plain name (letters, digits, dot, dash, underscore) for {key}"
        raise StoreError(where, expected=expected, found=repr(value)[:200], remedy=_REMEDY)
    return str(value)


def parquet_bytes(table: Table, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The rows as a Parquet file: same rows, same bytes, in whatever order they come. Raises StoreError."""
    return _written(arrow_table(table, rows))


def rewritten(data: bytes, protocol: str) -> bytes:
    """A sealed file's bytes with its rows under another protocol: what `parquet_bytes` makes of the same rows.

    A file of an older table keeps the columns that it has.
    """
    content = pq.read_table(io.BytesIO(data), partitioning=None)
    fields = [_as_declared(field) for field in content.schema]
    place = content.schema.get_field_index("protocol")
    content = content.set_column(place, fields[place], pa.array([protocol] * content.num_rows, pa.string()))
    return _written(content.cast(pa.schema(fields, content.schema.metadata)))


def _as_declared(field: pa.Field) -> pa.Field:
    """A field as it was before Parquet gave it, and the items of a list, numbers and names, which writing would keep."""
    kind = pa.list_(field.type.value_type) if pa.types.is_list(field.type) else field.type
    metadata = {name: text for name, text in (field.metadata or {}).items() if name != _FIELD_NUMBER}
    return pa.field(field.name, kind, field.nullable, metadata)


def _written(content: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        content,
        sink,
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        compression_level=3,
        use_dictionary=True,
        write_statistics=True,
        row_group_size=65_536,
    )
    return sink.getvalue()


def arrow_table(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows, checked and in the table's order. Raises StoreError that names table, column and row."""
    _check_keys(table, rows)
    ordered = _ordered(table, rows)
    arrays = [_array(table, column, [row[column.name] for row in ordered]) for column in table.columns]
    return pa.Table.from_arrays(arrays, schema=table.schema)


def _check_keys(table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    names = {column.name for column in table.columns}
    for number, row in enumerate(rows):
        if row.keys() != names:
            missing, unknown = sorted(names - row.keys()), sorted(row.keys() - names)
            told = [f"{word}: {', '.join(found)}" for word, found in (("missing", missing), ("not in the table", unknown)) if found]
            where = f"table {table.name}, row {number}"
            raise StoreError(where, expected="exactly the table's columns", found="; ".join(told), remedy=_REMEDY)


def _ordered(table: Table, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    def place(row: Mapping[str, Any]) -> list[Any]:
        return [row[name] for name in table.sort]

    try:
        ordered = sorted(rows, key=place)
    except TypeError as error:
        where = f"table {table.name}, columns {', '.join(table.sort)}"
        raise StoreError(where, expected="values that can be ordered", found=str(error), remedy=_REMEDY) from None
    if any(place(one) == place(other) for one, other in pairwise(ordered)):
        # Rows of one place have no order of their own, so their whole content decides.
        ordered.sort(key=lambda row: (place(row), json.dumps(row, sort_keys=True, default=str)))
    return ordered


def _array(table: Table, column: Column, values: list[Any]) -> pa.Array:
    check = _CHECKS[column.type]
    for number, value in enumerate(values):
        problem = ("null" if not column.nullable else None) if value is None else check(value)
        if problem is not None:
            expected = f"{column.type}{' or null' if column.nullable else ''}"
            where = f"table {table.name}, column {column.name}, row {number} in the table's order"
            raise StoreError(where, expected=expected, found=problem, remedy=_REMEDY)
    return pa.array(values, column.type)


def _check_text(value: object) -> str | None:
    if not isinstance(value, str):
        return f"{type(value).__name__} {value!r}"[:200]
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        return f"a lone surrogate at character {error.start} (evalnoise.canonical.escape_surrogates makes text that can be stored)"
    return None


def _check_integer(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return f"{type(value).__name__} {value!r}"[:200]
    return None if -_INT64 <= value < _INT64 else "an integer of more than 64 bits"


def _check_number(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{type(value).__name__} {value!r}"[:200]
    if isinstance(value, int):
        return None if -_EXACT_FLOAT <= value <= _EXACT_FLOAT else "an integer that no float holds exactly"
    return None if math.isfinite(value) else f"{value!r} (what is undefined is null, with a reason beside it)"


def _check_flag(value: object) -> str | None:
    return None if isinstance(value, bool) else f"{type(value).__name__} {value!r}"[:200]


def _check_time(value: object) -> str | None:
    if not isinstance(value, datetime):
        return f"{type(value).__name__} {value!r}"[:200]
    return None if value.utcoffset() is not None else f"{value.isoformat()} without a time zone"


def _check_list(check: Callable[[object], str | None]) -> Callable[[object], str | None]:
    def whole(value: object) -> str | None:
        if not isinstance(value, list | tuple):
            return f"{type(value).__name__} {value!r}"[:200]
        problems = ((number, "null" if item is None else check(item)) for number, item in enumerate(value))
        return next((f"item {number}: {problem}" for number, problem in problems if problem is not None), None)

    return whole


_CHECKS: Final[dict[pa.DataType, Callable[[object], str | None]]] = {
    pa.string(): _check_text,
    pa.int64(): _check_integer,
    pa.float64(): _check_number,
    pa.bool_(): _check_flag,
    pa.timestamp("us", "UTC"): _check_time,
    pa.list_(pa.string()): _check_list(_check_text),
    pa.list_(pa.int64()): _check_list(_check_integer),
    pa.list_(pa.float64()): _check_list(_check_number),
}


def read_partition(table: Table, keys: Mapping[str, str | int], data: bytes) -> pa.Table:
    """A sealed file's bytes as a table with every column that readers see; a column that is younger than the file is null."""
    content = pq.read_table(io.BytesIO(data), partitioning=None)
    arrays = []
    for column in reader_columns(table):
        if column.name in keys:
            arrays.append(pa.array([keys[column.name]] * content.num_rows, column.type))
        elif column.name in content.column_names:
            arrays.append(content.column(column.name).cast(column.type))
        else:
            arrays.append(pa.nulls(content.num_rows, column.type))
    return pa.Table.from_arrays(arrays, schema=reader_schema(table))


def reader_schema(table: Table) -> pa.Schema:
    """The schema of what readers get: every column may be null, because older files may lack one."""
    return pa.schema([pa.field(column.name, column.type) for column in reader_columns(table)])


def keys_of(table: Table, path: str) -> dict[str, str | int]:
    """The partition values in a file's relative path."""
    found: dict[str, str | int] = {}
    for part in path.split("/")[1:-1]:
        key, _, value = part.partition("=")
        if key in table.partition:
            found[key] = int(value) if key in INTEGER_KEYS else value
    return found
