"""Ratings of a user's file as arrays: long (item, rater, rating, confidence, reference), or wide (item and a column per rater)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evalnoise.readers.columns import at_row, codes, number_in, numbers, refuse_outside
from evalnoise.readers.tablefile import Kind, Wanted, column_names, read_table
from schemas.errors import DataError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NONE: Final = -1
"""Code where there is no rating."""
PASSING: Final = frozenset({"pass", "1", "1.0", "true", "yes", "correct", "accept"})
FAILING: Final = frozenset({"fail", "0", "0.0", "false", "no", "incorrect", "reject"})
"""Words for pass and fail, in any case."""
_ONE_RATER: Final = "rater"
_OWN: Final = ("item", "confidence", "reference")
"""Columns of a wide file that are no raters."""
_MOST_CATEGORIES = 1_000
_LONG: Final = {
    "item": Wanted("item"),
    "rating": Wanted("rating", Kind.HOLES),
    "rater": Wanted("rater", optional=True),
    "confidence": Wanted("confidence", Kind.NUMBER, optional=True),
    "reference": Wanted("reference", Kind.HOLES, optional=True),
}


@dataclass(frozen=True, slots=True)
class Rater:
    """What one rater said; the first axis is the item, the second its repeats in the file's order."""

    name: str
    codes: Ints
    """Shape (N, J): places in `Ratings.categories`, -1 where there is none. Of pass and fail: 1 pass, 0 fail."""
    confidence: Floats
    """Shape (N, J): stated confidence in [0, 1]; 0 where none was stated."""
    stated: NDArray[np.bool_]
    """Shape (N, J): whether one was stated."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """A file of ratings."""

    items: tuple[str, ...]
    """The N items, in the file's order."""
    raters: tuple[Rater, ...]
    """In the file's order."""
    categories: tuple[str, ...]
    """What was rated, in ascending order; ("fail", "pass") for words of pass and fail."""
    values: tuple[float, ...] | None
    """The categories as numbers; None if they are words."""
    binary: bool
    """Whether the ratings are pass and fail."""
    reference: Ints | None
    """Shape (N,): code of the right rating, -1 where it is not known; None: the file says nothing of it."""

    def rater(self, name: str) -> Rater | None:
        """The rater of that name."""
        return next((rater for rater in self.raters if rater.name == name), None)


def read_ratings(path: Path, *, confidence_max: float = 100.0, raters: Sequence[str] = ()) -> Ratings:
    """Read `item`, `rating`, and where they are there `rater`, `confidence` and `reference`.

    A file without a column `rating` may be wide: `item`, a column of ratings per rater, and perhaps `reference`.

    Rows of one item and rater are repeats. An empty rating is one that could not be read: it is left out and never a fail. A
    reference that stands in one row of an item is the item's.

    Args:
        path: A table file, as of `read_table`.
        confidence_max: What full confidence is called: 100 or 1.
        raters: Columns of a wide file that are raters; none: the file is long, or all its other columns are.

    Raises:
        DataError: A row, a column or the file is not as it should be.
    """
    if wide := tuple(raters) or _wide(column_names(path)):
        return _read_wide(path, wide)
    table = read_table(path, _LONG)
    names, item_at = codes(table, "item")
    one_rater = ((_ONE_RATER,), np.zeros(len(item_at), dtype=np.int64))
    rater_names, rater_at = codes(table, "rater") if "rater" in table.column_names else one_rater
    given = {name: codes(table, name) for name in ("rating", "reference") if name in table.column_names}
    said = _coded(path, given)
    rating, sure = said.codes["rating"], _confidence(path, table, confidence_max)
    made = tuple(
        _rater(name, item_at[rater_at == number], rating[rater_at == number], sure[rater_at == number], len(names))
        for number, name in enumerate(rater_names)
    )
    return _ratings(path, names, item_at, made, said)


def _wide(names: Sequence[str]) -> tuple[str, ...]:
    """The raters of a wide file; none where it is a long one, perhaps with a misspelt name."""
    others = tuple(name for name in names if name not in _OWN)
    long = {"rating", "rater"} & set(names) or any(get_close_matches(name.strip().lower(), ("rating", "rater")) for name in others)
    return () if long or "item" not in names or len(set(others)) < 2 else others


def _read_wide(path: Path, raters: Sequence[str]) -> Ratings:
    if twice := [name for name in raters if list(raters).count(name) > 1 or name in _OWN]:
        raise _bad(path, "distinct columns of raters, none of them item, confidence or reference", f"{twice[0]!r}")
    wanted = {"item": Wanted("item")} | {f"rater {name}": Wanted(name, Kind.HOLES) for name in raters}
    table = read_table(path, wanted | {"reference": Wanted("reference", Kind.HOLES, optional=True)})
    names, item_at = codes(table, "item")
    said = _coded(path, {key.removeprefix("rater "): codes(table, key) for key in table.column_names if key != "item"})
    unsure = np.full(len(item_at), np.nan)
    made = tuple(_rater(name, item_at, said.codes[name], unsure, len(names)) for name in raters)
    return _ratings(path, names, item_at, made, said)


def _ratings(path: Path, names: tuple[str, ...], item_at: Ints, raters: tuple[Rater, ...], said: _Said) -> Ratings:
    reference = None
    if "reference" in said.codes:
        reference = _reference(path, item_at, said, len(names))
    return Ratings(names, raters, said.categories, said.values, said.binary, reference)


@dataclass(frozen=True, slots=True)
class _Said:
    """What stands in all columns of ratings together."""

    categories: tuple[str, ...]
    values: tuple[float, ...] | None
    binary: bool
    codes: dict[str, Ints]
    """Of each column, places in `categories`."""


def _coded(path: Path, columns: dict[str, tuple[tuple[str, ...], Ints]]) -> _Said:
    """The categories over all columns, given as `codes` gives them. Raises DataError."""
    said = {word for words, _ in columns.values() for word in words}
    if not said:
        raise _bad(path, "at least one rating", "none")
    if {word.lower() for word in said} <= PASSING | FAILING:
        passing = {word: int(word.lower() in PASSING) for word in said}
        return _Said(categories=("fail", "pass"), values=None, binary=True, codes=_placed(columns, passing))
    if len(said) > _MOST_CATEGORIES:
        raise _bad(path, f"at most {_MOST_CATEGORIES} different ratings", str(len(said)), "Round them.")
    values = {word: number_in(word) for word in said}
    numeric = sorted({value for value in values.values() if value is not None})
    if not numeric:
        ordered = tuple(sorted(said))
        places = _placed(columns, {word: place for place, word in enumerate(ordered)})
        return _Said(categories=ordered, values=None, binary=False, codes=places)
    if None in values.values():
        _refuse_mixture(path, columns, values)
    place = {word: numeric.index(value) for word, value in values.items() if value is not None}
    categories = tuple(f"{value:g}" for value in numeric)
    return _Said(categories=categories, values=tuple(numeric), binary=False, codes=_placed(columns, place))


def _placed(columns: dict[str, tuple[tuple[str, ...], Ints]], place: dict[str, int]) -> dict[str, Ints]:
    # The last entry is what code -1 takes: no rating.
    return {name: np.array([*(place[word] for word in words), NONE], dtype=np.int64)[at] for name, (words, at) in columns.items()}


def _refuse_mixture(path: Path, columns: dict[str, tuple[tuple[str, ...], Ints]], numbers_of: dict[str, float | None]) -> None:
    """Raise DataError at the first of the ratings that are of the rarer kind."""
    plain = [word for word, value in numbers_of.items() if value is None]
    rare = set(plain) if 2 * len(plain) <= len(numbers_of) else set(numbers_of) - set(plain)
    for name, (words, at) in columns.items():
        rows = np.flatnonzero(np.array([*(word in rare for word in words), False])[at])
        if rows.size:
            row = int(rows[0])
            expected = "numbers alone or words alone in all ratings"
            raise at_row(path, row, name, expected=expected, found=repr(words[at[row]])[:100])


def _confidence(path: Path, table: pa.Table, most: float) -> Floats:
    """Confidence in [0, 1], NaN where none is stated. Raises DataError."""
    if "confidence" not in table.column_names:
        return np.full(table.num_rows, np.nan)
    values, known = numbers(table, "confidence")
    remedy = "Mend the row, leave the field empty, or say --confidence-max."
    refuse_outside(path, "confidence", values, (0.0, most), known=known, remedy=remedy, what="a number")
    largest = float(values.max())
    if most > 1 and 0 < largest <= 1:
        raise _bad(
            f"{path}, column confidence",
            f"confidence from 0 to {most:g}",
            f"none above {largest:g}, so it seems to go from 0 to 1",
            "Say --confidence-max 1, or multiply by 100.",
        )
    return np.where(known, values / most, np.nan)


def _rater(name: str, items: Ints, codes: Ints, sure: Floats, n_items: int) -> Rater:
    order = np.argsort(items, kind="stable")
    items, codes, sure = items[order], codes[order], sure[order]
    sizes = np.bincount(items, minlength=n_items)
    repeat = np.arange(len(items)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shape = (n_items, int(sizes.max()))
    table, confidence = np.full(shape, NONE, dtype=np.int64), np.full(shape, np.nan)
    table[items, repeat], confidence[items, repeat] = codes, sure
    stated = ~np.isnan(confidence)
    return Rater(name, table, np.where(stated, confidence, 0.0), stated)


def _reference(path: Path, items: Ints, said: _Said, n_items: int) -> Ints:
    """The reference of each item. Raises DataError where two rows of one item differ."""
    known = np.flatnonzero(said.codes["reference"] != NONE)
    where, which = items[known], said.codes["reference"][known]
    found = np.full(n_items, NONE, dtype=np.int64)
    found[where[::-1]] = which[::-1]  # the first row of an item is written last
    other = np.flatnonzero(found[where] != which)
    if other.size:
        word = said.categories[which[other[0]]]
        expected = "the same reference in all rows of an item"
        raise at_row(path, int(known[other[0]]), "reference", expected=expected, found=repr(word)[:100])
    return found


def unknown_rater(path: Path, ratings: Ratings, name: str) -> DataError:
    """The error for a rater that a file does not have."""
    known = ", ".join(rater.name for rater in ratings.raters[:20])
    return _bad(path, f"a rater {name!r}", f"raters {known}", "Name one of them.")


def _bad(where: Path | str, expected: str, found: str, remedy: str = "docs/guide/agreement.md shows the format.") -> DataError:
    """The error for a whole file."""
    return DataError(str(where)[:400], expected=expected, found=found[:300], remedy=remedy)
