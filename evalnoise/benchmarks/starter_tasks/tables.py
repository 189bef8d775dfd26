"""Starter tasks about dictionaries, rows and other nested data."""

from __future__ import annotations

from typing import Any

from evalnoise.benchmarks.starter_tasks.declare import task


@task(
    "04-word-index",
    inputs=[
        ({},),
        ({"a": []},),
        ({"a": ["x"]},),
        ({"a": ["x", "y"], "b": ["x"]},),
        ({"b": ["x"], "a": ["x"]},),
        ({"a": ["x", "x"]},),
        ({"one": ["red", "blue"], "two": ["blue", "blue"], "three": ["red"]},),
        ({"B": ["w"], "a": ["w"], "C": ["w"]},),
        ({"d": ["é", "e"], "e": ["é"]},),
        ({"p": ["k", "l"], "q": ["l", "m"], "r": ["m", "k"]},),
    ],
)
def word_index(documents: dict[str, list[str]]) -> dict[str, list[str]]:
    """Turn documents (name to words) into an index: word to the sorted names of the documents that hold it, each name once."""
    index: dict[str, list[str]] = {}
    for name in sorted(documents):
        for word in documents[name]:
            names = index.setdefault(word, [])
            if name not in names:
                names.append(name)
    return index


@task(
    "11-look-up",
    inputs=[
        ({"a": 1}, "a", None),
        ({"a": {"b": [10, 20]}}, "a.b.1", None),
        ({"a": {"b": [10, 20]}}, "a.b.2", "none"),
        ({"a": {"b": [10, 20]}}, "a.b.-1", "none"),
        ([[1, 2], [3]], "1.0", 0),
        ({"a": None}, "a", "default"),
        ({"a": None}, "a.b", "default"),
        ({"1": "text"}, "1", 0),
        ({"a": "text"}, "a.0", 0),
        ({}, "", "empty"),
        ({"": 5}, "", "empty"),
        ({"a": [{"b": False}]}, "a.0.b", True),
    ],
)
def look_up(data: Any, path: str, default: object) -> object:
    """Look up a value in nested dictionaries and lists by a path like ``a.b.1``.

    Each part of the path, split at the dots, is a key of a dictionary or, in a list, an index written with digits
    only. If a part cannot be followed (no such key, index out of range, not digits, or neither dictionary nor
    list), the result is `default`.
    """
    for part in path.split("."):
        if isinstance(data, dict) and part in data:
            data = data[part]
        elif isinstance(data, list) and part.isdigit() and int(part) < len(data):
            data = data[int(part)]
        else:
            return default
    return data


@task(
    "18-order-totals",
    inputs=[
        ([],),
        ([{"item": "pen", "price": 150}],),
        ([{"item": "pen", "price": 150, "quantity": 3}],),
        ([{"item": "pen", "price": 150, "quantity": 0}],),
        ([{"item": "pen", "price": 100}, {"item": "pen", "price": 120, "quantity": 2}],),
        ([{"item": "a", "price": 1}, {"item": "b", "price": 2, "quantity": 5}, {"item": "a", "price": 3}],),
        ([{"item": "x", "price": -50, "quantity": 2}, {"item": "x", "price": 100}],),
        ([{"item": "free", "price": 0, "quantity": 9}],),
        ([{"item": "b", "price": 7}, {"item": "a", "price": 7}],),
        ([{"item": "big", "price": 10**12, "quantity": 10**9}],),
    ],
)
def order_totals(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Add up price times quantity for each item, in cents.

    A row is a dictionary with `item`, `price` and perhaps `quantity`; without it the quantity is 1. Items whose
    total is 0 are part of the result too.
    """
    totals: dict[str, int] = {}
    for row in rows:
        totals[row["item"]] = totals.get(row["item"], 0) + row["price"] * row.get("quantity", 1)
    return totals


@task(
    "25-compare-settings",
    inputs=[
        ({}, {}),
        ({"a": 1}, {}),
        ({}, {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": True}),
        ({"a": 0, "b": 1}, {"a": 0.0, "b": 1}),
        ({"a": None}, {"b": None}),
        ({"a": [1], "b": "x"}, {"b": "x", "a": [1, 2]}),
        ({"x": 1, "y": 2, "z": 3}, {"y": 2, "z": 4, "w": 5}),
        ({"a": False, "b": ""}, {"a": 0, "b": ""}),
    ],
)
def compare_settings(old: dict[str, object], new: dict[str, object]) -> dict[str, Any]:
    """Say what changed between two dictionaries of settings.

    The result has three keys: ``added``, the settings only in `new`; ``removed``, those only in `old`; ``changed``,
    for keys in both with different values, the tuple (old value, new value). Values of different types are
    different: 1, 1.0 and True are three values. Types inside of lists do not matter.
    """
    changed = {
        key: (old[key], new[key]) for key in old if key in new and (type(old[key]) is not type(new[key]) or old[key] != new[key])
    }
    return {
        "added": {key: value for key, value in new.items() if key not in old},
        "removed": {key: value for key, value in old.items() if key not in new},
        "changed": changed,
    }


@task(
    "32-pivot-rows",
    inputs=[
        ([],),
        ([("r", "c", 1)],),
        ([("r", "c", 1), ("r", "d", 2)],),
        ([("r", "d", 1), ("r", "c", 2)],),
        ([("s", "c", 1), ("r", "d", 2)],),
        ([("r", "c", 1), ("r", "c", 5)],),
        ([("b", "x", 0), ("a", "y", 0), ("b", "y", 3)],),
        ([("r", "c", None), ("r", "d", 2)],),
        ([("n", "2023", 4), ("n", "2022", 3), ("m", "2023", 1)],),
        ([("z", "q", 1), ("y", "p", 2), ("z", "p", 3), ("x", "q", 4)],),
    ],
)
def pivot_rows(cells: list[tuple[str, str, int | None]]) -> list[list[object]]:
    """Make a table of cells (row, column, value).

    The first line is ``["", column, …]`` with the columns in ascending order. Then comes a line ``[row, value, …]``
    for each row, in the order in which the rows first occur. A cell that is not given is None; of cells given twice
    the later one counts.
    """
    columns = sorted({column for _, column, _ in cells})
    rows: dict[str, dict[str, int | None]] = {}
    for row, column, value in cells:
        rows.setdefault(row, {})[column] = value
    table: list[list[object]] = [["", *columns]]
    for row, values in rows.items():
        table.append([row, *(values.get(column) for column in columns)])
    return table


@task(
    "39-room-conflicts",
    inputs=[
        ({},),
        ({"r": []},),
        ({"r": [(9, 10, "a"), (10, 11, "b")]},),
        ({"r": [(9, 11, "a"), (10, 12, "b")]},),
        ({"r": [(9, 11, "a")], "s": [(9, 11, "b")]},),
        ({"r": [(9, 12, "a"), (10, 11, "b"), (11, 13, "c")]},),
        ({"r": [(9, 10, "a"), (9, 10, "a")]},),
        ({"r": [(1, 5, "x"), (2, 3, "y")], "s": [(1, 5, "y"), (4, 6, "z")]},),
        ({"r": [(3, 3, "a"), (1, 5, "b")]},),
        ({"r": [(1, 9, "a"), (2, 8, "b"), (3, 7, "c"), (4, 6, "d")]},),
    ],
)
def room_conflicts(bookings: dict[str, list[tuple[int, int, str]]]) -> set[frozenset[str]]:
    """Find who is in conflict: the pairs of different people whose bookings of one room overlap in time.

    A booking is (start, end, person) and holds the room from start up to but not including end; if start equals end
    it holds nothing. The result is a set of frozensets of two names.
    """
    conflicts = set()
    for entries in bookings.values():
        for first_start, first_end, first in entries:
            for second_start, second_end, second in entries:
                if first != second and max(first_start, second_start) < min(first_end, second_end):
                    conflicts.add(frozenset((first, second)))
    return conflicts


@task(
    "46-work-layers",
    inputs=[
        ({},),
        ({"a": []},),
        ({"b": ["a"], "a": []},),
        ({"b": ["a"]},),
        ({"a": ["a"]},),
        ({"a": ["b"], "b": ["a"]},),
        ({"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": []},),
        ({"x": [], "y": [], "z": ["x", "y"]},),
        ({"a": [], "b": ["c"], "c": ["d"], "d": ["b"]},),
        ({"w": ["v", "v"], "v": ["u"], "t": ["u"]},),
        ({"cake": ["batter", "oven"], "batter": ["egg", "milk"], "oven": []},),
    ],
)
def work_layers(needs: dict[str, list[str]]) -> list[list[str]]:
    """Arrange jobs in layers so that everything a job needs is in an earlier layer, each job as early as possible.

    `needs` maps a job to the jobs that it needs; a job that is only named as a need, itself needs nothing. Each
    layer is sorted. Raise ValueError if jobs need each other in a circle.
    """
    waiting = {job: set(needed) for job, needed in needs.items()}
    for needed in needs.values():
        for job in needed:
            waiting.setdefault(job, set())
    layers = []
    while waiting:
        layer = sorted(job for job, needed in waiting.items() if not needed & waiting.keys())
        if not layer:
            raise ValueError("jobs need each other in a circle")
        layers.append(layer)
        for job in layer:
            del waiting[job]
    return layers
