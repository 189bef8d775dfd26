"""Ratings of a user's file as arrays: long (item, rater, rating, confidence, reference), or wide (item and a column per rater)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evalnoise.readers.tablefile import Texts, bad, bad_cell, column_names, floats, full, read_columns
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
        path: A .csv, .jsonl or .parquet file.
        confidence_max: What full confidence is called: 100 or 1.
        raters: Columns of a wide file that are raters; none: the file is long, or all its other columns are.

    Raises:
        DataError: A row, a column or the file is not as it should be.
    """
    if wide := tuple(raters) or _wide(column_names(path)):
        return _read_wide(path, wide)
    columns = read_columns(path, ("item", "rating"), ("rater", "confidence", "reference"))
    items = full(path, "item", columns["item"])
    rows = len(items)
    said_by = full(path, "rater", columns["rater"]) if "rater" in columns else np.full(rows, _ONE_RATER, dtype=object)
    given: dict[str, Texts] = {name: columns[name] for name in ("rating", "reference") if name in columns}
    categories, values, binary, codes = _coded(path, given)
    names, item_at = _numbered(items)
    rater_names, rater_at = _numbered(said_by)
    sure = _confidence(path, columns.get("confidence"), rows, confidence_max)
    made = tuple(
        _rater(name, item_at[rater_at == number], codes["rating"][rater_at == number], sure[rater_at == number], len(names))
        for number, name in enumerate(rater_names)
    )
    reference = None
    if "reference" in codes:
        reference = _reference(path, item_at, codes["reference"], columns["reference"], len(names))
    return Ratings(names, made, categories, values, binary, reference)


def _wide(names: Sequence[str]) -> tuple[str, ...]:
    """The raters of a wide file; none where it is a long one, perhaps with a misspelt name."""
    others = tuple(name for name in names if name not in _OWN)
    long = {"rating", "rater"} & set(names) or any(get_close_matches(name.strip().lower(), ("rating", "rater")) for name in others)
    return () if long or "item" not in names or len(set(others)) < 2 else others


def _read_wide(path: Path, raters: Sequence[str]) -> Ratings:
    if twice := [name for name in raters if list(raters).count(name) > 1 or name in _OWN]:
        raise bad(path, "distinct columns of raters, none of them item, confidence or reference", f"{twice[0]!r}")
    columns = read_columns(path, ("item", *raters), ("reference",))
    names, item_at = _numbered(full(path, "item", columns["item"]))
    categories, values, binary, codes = _coded(path, {name: columns[name] for name in columns if name != "item"})
    unsure = np.full(len(item_at), np.nan)
    made = tuple(_rater(name, item_at, codes[name], unsure, len(names)) for name in raters)
    reference = None
    if "reference" in codes:
        reference = _reference(path, item_at, codes["reference"], columns["reference"], len(names))
    return Ratings(names, made, categories, values, binary, reference)


def _numbered(texts: Texts) -> tuple[tuple[str, ...], Ints]:
    """Distinct texts in the order of their first row, and each row's place among them."""
    places: dict[str, int] = {}
    at = np.array([places.setdefault(str(text), len(places)) for text in texts], dtype=np.int64)
    return tuple(places), at


def _coded(path: Path, columns: dict[str, Texts]) -> tuple[tuple[str, ...], tuple[float, ...] | None, bool, dict[str, Ints]]:
    """Categories over all columns, their numbers if they have, whether they are pass and fail, and each column's codes."""
    said = {str(text) for column in columns.values() for text in column if text is not None}
    if not said:
        raise bad(path, "at least one rating", "none")
    if {word.lower() for word in said} <= PASSING | FAILING:
        place = {word: int(word.lower() in PASSING) for word in said}
        return ("fail", "pass"), None, True, {name: _codes(column, place) for name, column in columns.items()}
    if len(said) > _MOST_CATEGORIES:
        raise bad(path, f"at most {_MOST_CATEGORIES} different ratings", str(len(said)), "Round them.")
    numbers = {word: _number(word) for word in said}
    numeric = [word for word, value in numbers.items() if value is not None]
    if numeric and len(numeric) < len(said):
        _refuse_mixture(path, columns, numbers)
    if numeric:
        values = sorted({value for value in numbers.values() if value is not None})
        place = {word: values.index(value) for word, value in numbers.items() if value is not None}
        names = tuple(f"{value:g}" for value in values)
        return names, tuple(values), False, {name: _codes(column, place) for name, column in columns.items()}
    ordered = sorted(said)
    place = {word: number for number, word in enumerate(ordered)}
    return tuple(ordered), None, False, {name: _codes(column, place) for name, column in columns.items()}


def _codes(column: Texts, place: dict[str, int]) -> Ints:
    return np.array([NONE if text is None else place[text] for text in column], dtype=np.int64)


def _number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _refuse_mixture(path: Path, columns: dict[str, Texts], numbers: dict[str, float | None]) -> None:
    """Raise DataError at the first of the ratings that are of the rarer kind."""
    words = [word for word, value in numbers.items() if value is None]
    rare = set(words) if 2 * len(words) <= len(numbers) else set(numbers) - set(words)
    for name, column in columns.items():
        for row, text in enumerate(column):
            if text in rare:
                raise bad_cell(path, row, name, "numbers alone or words alone in all ratings", text)


def _confidence(path: Path, column: Texts | None, rows: int, most: float) -> Floats:
    """Confidence in [0, 1], NaN where none is stated. Raises DataError."""
    if column is None:
        return np.full(rows, np.nan)
    values = floats(path, "confidence", column, low=0.0, high=most, missing=True)
    stated = values[~np.isnan(values)]
    if most > 1 and stated.size and float(stated.max()) <= 1 and float(stated.max()) > 0:
        raise bad(
            f"{path}, column confidence",
            f"confidence from 0 to {most:g}",
            f"none above {stated.max():g}, so it seems to go from 0 to 1",
            "Say --confidence-max 1, or multiply by 100.",
        )
    return values / most


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


def _reference(path: Path, items: Ints, codes: Ints, texts: Texts, n_items: int) -> Ints:
    """The reference of each item. Raises DataError where two rows of one item differ."""
    found = np.full(n_items, NONE, dtype=np.int64)
    for row, (item, code) in enumerate(zip(items, codes, strict=True)):
        if code != NONE:
            if found[item] not in (NONE, code):
                raise bad_cell(path, row, "reference", "the same reference in all rows of an item", texts[row])
            found[item] = code
    return found


def unknown_rater(path: Path, ratings: Ratings, name: str) -> DataError:
    """The error for a rater that a file does not have."""
    known = ", ".join(rater.name for rater in ratings.raters[:20])
    return bad(path, f"a rater {name!r}", f"raters {known}", "Name one of them.")
