"""Pairs of arms that a user lists in a table file, a row for each benchmark of a gate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evalnoise.readers.columns import at_row, number_in
from evalnoise.readers.tablefile import Kind, Wanted, read_table
from schemas.errors import DataError

_OPTIONAL: Final = ("margin", "name")
MOST_PAIRS: Final = 1_000
_LONGEST: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One benchmark of a gate, as a user names it."""

    base: str
    """What NEW must not fall behind."""
    new: str
    """What asks to pass."""
    margin: float | None = None
    """Its own margin; None: that of the gate."""
    name: str = ""
    """What it is called; empty: the benchmark's own name."""


def read_pairs(path: Path) -> list[Pair]:
    """The rows of a table with columns `base`, `new` and, if there are any, `margin` and `name`, each name once.

    Raises:
        DataError: The file is no such table; the message names row and column.
    """
    wanted = {"base": Wanted("base"), "new": Wanted("new")}
    # A margin is read as text: of numbers `true` would be 1, with which all passes.
    wanted |= {key: Wanted(key, Kind.HOLES, optional=True) for key in _OPTIONAL}
    table = read_table(path, wanted)
    if not 1 <= table.num_rows <= MOST_PAIRS:
        remedy = "Write a row for each benchmark."
        raise DataError(str(path), expected=f"1 to {MOST_PAIRS} pairs", found=f"{table.num_rows} rows", remedy=remedy)
    columns = {
        key: [value or "" for value in table[key].to_pylist()] if key in table.column_names else [""] * table.num_rows
        for key in wanted
    }
    names: dict[str, int] = {}
    found = []
    for row in range(table.num_rows):
        name = columns["name"][row]
        if name and names.setdefault(name, row) != row:
            said = f"{name[:_LONGEST]!r}, as in row {names[name] + 1}"
            raise at_row(path, row, "name", expected="another name", found=said, remedy="Rename one.")
        margin = _margin(path, row, columns["margin"][row])
        found.append(Pair(base=columns["base"][row], new=columns["new"][row], margin=margin, name=name))
    return found


def _margin(path: Path, row: int, text: str) -> float | None:
    if not text.strip():
        return None
    value = number_in(text)
    if value is None or not 0 < value <= 1:
        raise at_row(path, row, "margin", expected="a loss of score in (0, 1], or nothing", found=repr(text[:_LONGEST]))
    return value
