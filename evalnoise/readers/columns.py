"""Columns of a table file as arrays, and the mistakes in them, each named with its file, row and column."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from schemas.errors import DataError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_WHOLE: Final = re.compile(r"\d{1,18}", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(T|\Z)", re.ASCII)
MEND: Final = "Mend the row, or leave it out."


def codes(table: pa.Table, key: str) -> tuple[tuple[str, ...], Ints]:
    """Distinct texts of a column in the order of their first row, and each row's place among them, -1 where it has none."""
    array = table[key].combine_chunks()
    return tuple(array.dictionary.to_pylist()), np.asarray(array.indices.fill_null(-1), dtype=np.int64)


def time_order(labels: Sequence[str]) -> tuple[Ints, str]:
    """Places of labels in the order of time, and what gives it: their numbers, their dates, or else the file's own order."""
    if all(_WHOLE.fullmatch(label) for label in labels):
        return np.array(sorted(range(len(labels)), key=lambda at: int(labels[at])), dtype=np.int64), "in the order of their numbers"
    if all(_DATE.match(label) for label in labels):
        return np.array(sorted(range(len(labels)), key=lambda at: labels[at]), dtype=np.int64), "in the order of their dates"
    return np.arange(len(labels)), "in the order of the file, which must be that of time"


def numbers(table: pa.Table, key: str) -> tuple[Floats, NDArray[np.bool_]]:
    """A column's numbers, 0 where there is none, and where there is one."""
    array = table[key].combine_chunks()
    return np.asarray(array.fill_null(0.0), dtype=np.float64), ~np.asarray(array.is_null(), dtype=np.bool_)


def number_in(text: str) -> float | None:
    """The finite number that a text is, as in a column of numbers: Python alone would take 1_0 and digits of other scripts."""
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def refuse_outside(
    path: Path,
    column: str,
    values: Floats,
    scale: tuple[float, float],
    *,
    remedy: str,
    known: NDArray[np.bool_],
    what: str = "a score",
) -> None:
    """Raise DataError at the first known value that is out of scale."""
    low, high = scale
    bad = np.flatnonzero(known & ((values < low) | (values > high)))
    if bad.size:
        more = f" (and {bad.size - 1} more out of range)" if bad.size > 1 else ""
        limits = f" from {low:g}" + (f" to {high:g}" if math.isfinite(high) else "")
        raise at_row(path, int(bad[0]), column, expected=f"{what}{limits}", found=f"{float(values[bad[0]])!r}{more}", remedy=remedy)


def refuse_missing(path: Path, column: str, known: NDArray[np.bool_], remedy: str = MEND) -> None:
    """Raise DataError at the first row without a number."""
    if not known.all():
        raise at_row(path, int(np.flatnonzero(~known)[0]), column, expected="a number", found="nothing", remedy=remedy)


def refuse_repeats(path: Path, columns: Sequence[str], places: Ints, *, expected: str, remedy: str) -> None:
    """Raise DataError at the first row whose place an earlier row has."""
    order = np.argsort(places, kind="stable")
    again = order[1:][places[order][1:] == places[order][:-1]]
    if not again.size:
        return
    row = int(again.min())
    first = int(np.flatnonzero(places == places[row])[0])
    found = f"the same as in row {first + 1}" + (f" ({again.size} rows are such)" if again.size > 1 else "")
    named = f"column {columns[0]!r}" if len(columns) == 1 else f"columns {', '.join(columns)}"
    raise DataError(f"{path}, row {row + 1}, {named}", expected=expected, found=found, remedy=remedy)


def at_row(path: Path, row: int, column: str, *, expected: str, found: str, remedy: str = MEND) -> DataError:
    """The error for one value; `row` counts from 0, the message from 1, without a header."""
    return DataError(f"{path}, row {row + 1}, column {column!r}", expected=expected, found=found, remedy=remedy)
