"""Rows of a query on standard output: a table for people, CSV and JSON for programs."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Protocol, TextIO

from flows.cli_errors import printable

BATCH = 1000
MAX_TABLE_ROWS = 1000
_MAX_CELL = 80
_LEAST_TEXT = 10
"""Characters of a value beside its name, however narrow the terminal."""
_QUOTED = re.compile(r'[",\r\n]|^\s|\s$')


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


class Cursor(Protocol):
    """What is used of a DuckDB connection that has run a query."""

    @property
    def description(self) -> Any:
        """Names first in each entry; None when the query gives no rows."""

    def fetchmany(self, size: int, /) -> Sequence[Sequence[Any]]:
        """The next rows."""


def write_rows(cursor: Cursor, form: Format, out: TextIO | None = None) -> None:
    """Write all rows of a finished query. Text is escaped where a terminal could take it for a command."""
    out = out or sys.stdout
    names = _distinct([str(column[0]) for column in cursor.description])
    writer = {Format.TABLE: _write_table, Format.CSV: _write_csv, Format.JSON: _write_json}[form]
    writer(names, _rows(cursor), out)
    out.flush()


def _rows(cursor: Cursor) -> Iterator[Sequence[Any]]:
    while batch := cursor.fetchmany(BATCH):
        yield from batch


def _distinct(names: list[str]) -> list[str]:
    """Column names as they are; a repeated one gets a number, so that no column is lost in an object."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        result.append(f"{name}_{seen[name]}" if seen[name] else name)
    return result


def _write_csv(names: list[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    """RFC 4180 with a header, but for plain line feeds: NULL is empty, floats keep every digit."""
    tidy = _terminal_safe if out.isatty() else str
    out.write(",".join(_csv_field(tidy(name)) for name in names) + "\n")
    out.writelines(",".join("" if value is None else _csv_field(tidy(_text(value))) for value in row) + "\n" for row in rows)


def _csv_field(text: str) -> str:
    """A field in quotes where it needs them; the empty text has them too, which tells it from NULL."""
    if text and not _QUOTED.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def _write_json(names: list[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    """One array of objects, a row a line, in ASCII so that no control character is ever raw."""
    out.write("[")
    for number, row in enumerate(rows):
        body = {name: _json_value(value) for name, value in zip(names, row, strict=True)}
        out.write(("," if number else "") + "\n" + json.dumps(body, allow_nan=False))
    out.write("\n]\n")


def _write_table(names: list[str], rows: Iterator[Sequence[Any]], out: TextIO) -> None:
    """Aligned columns, or one value below the other where those are too wide for a terminal.

    Long cells of columns are cut; what stands upright is whole.
    """
    whole: list[list[str]] = []
    numeric = [True] * len(names)
    more = False
    for row in rows:
        if len(whole) == MAX_TABLE_ROWS:
            more = True
            break
        whole.append([_line(value) for value in row])
        numeric = [
            flag and (value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool)))
            for flag, value in zip(numeric, row, strict=True)
        ]
    header = [_line(name) for name in names]
    lines = list(aligned([_cut(name) for name in header], [[_cut(text) for text in row] for row in whole], numeric))
    width = shutil.get_terminal_size().columns
    if out.isatty() and len(lines[1]) > width:
        lines = list(_upright(header, whole, width))
    out.writelines(line + "\n" for line in lines)
    if more:
        out.write(f"… more rows: the table stops at {MAX_TABLE_ROWS}; --format csv writes all\n")


def aligned(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], *, room: int | None = None
) -> Iterator[str]:
    """Lines of a table: header, rule, rows; columns as wide as their widest cell, some to the right.

    Where lines would be longer than `room`, headers and the texts of columns to the left are broken; numbers never.
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    if room is not None and sum(widths) + 2 * len(widths) - 2 > room:
        widths = _narrowed(header, rows, right, room)
    for line in (header, ["-" * width for width in widths], *rows):
        broken = [[text] if len(text) <= w else _broken(text, w) for text, w in zip(line, widths, strict=True)]
        for parts in zip_longest(*broken, fillvalue=""):
            cells = [text.rjust(w) if flag else text.ljust(w) for text, w, flag in zip(parts, widths, right, strict=True)]
            yield "  ".join(cells).rstrip()


def _narrowed(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], room: int) -> list[int]:
    """Widths of columns whose headers are broken at words, those of numbers first, and then the texts, the widest first."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    words = [max(map(len, name.split()), default=0) for name in header]
    numbers = [max([word, *map(len, cells)]) for word, (_, *cells) in zip(words, columns, strict=True)]
    least = [n if flag else min(w, max(word, _LEAST_TEXT)) for n, w, word, flag in zip(numbers, widths, words, right, strict=True)]
    for flag in (True, False):
        while sum(widths) + 2 * len(widths) - 2 > room:
            spare = [place for place, width in enumerate(widths) if right[place] is flag and width > least[place]]
            if not spare:
                break
            widths[max(spare, key=widths.__getitem__)] -= 1
    return widths


def _broken(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _upright(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """A value below the other, each broken at words so that nothing of it is lost."""
    names = max(map(len, header))
    room = max(_LEAST_TEXT, width - names - 2)
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, text in zip(header, row, strict=True):
            first, *more = _broken(text, room)
            yield f"{name.ljust(names)}  {first}".rstrip()
            yield from (f"{'':{names}}  {line}" for line in more)


def _line(value: Any) -> str:
    return "" if value is None else _terminal_safe(_text(value)).replace("\n", "\\n")


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 1] + "…"


def _terminal_safe(text: str) -> str:
    return printable(text.replace("\t", "    "))


def _text(value: Any) -> str:
    """A value as text: floats with the fewest digits that give them back, nested values as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list | tuple):
        return json.dumps(_json_value(value), allow_nan=False, ensure_ascii=False)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return repr(value) if isinstance(value, float) else str(value)


def _json_value(value: Any) -> Any:
    """A value that JSON carries; what is no number is null."""
    if value is None or isinstance(value, bool | int | str | float):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if isinstance(value, dict):
        return {_text(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.isoformat() if isinstance(value, datetime | date | time) else _text(value)
