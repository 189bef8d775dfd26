"""Starter tasks that change an argument in place and give it back."""

from __future__ import annotations

from typing import Any

from evalnoise.benchmarks.starter_tasks.declare import task


@task(
    "05-drop-negatives",
    inputs=[
        ([],),
        ([1],),
        ([-1],),
        ([-1, -2],),
        ([1, -1, -2, 3],),
        ([-5, -5, -5, 0],),
        ([0, -0, 2],),
        ([3, -1, 4, -1, -5, 9],),
        ([-1, 2, -3, 4, -5],),
        ([7, 7, -7],),
    ],
    in_place=True,
)
def drop_negatives(values: list[int]) -> list[int]:
    """Remove all negative numbers from the list itself, keep the order of the others, and return that same list."""
    for place in range(len(values) - 1, -1, -1):
        if values[place] < 0:
            del values[place]
    return values


@task(
    "12-bubble-pass",
    inputs=[
        ([],),
        ([1],),
        ([2, 1],),
        ([1, 2],),
        ([3, 2, 1],),
        ([5, 1, 4, 2, 8],),
        ([1, 1, 0],),
        ([9, 9, 8, 9],),
        ([-1, -2, 0, -3],),
        ([4, 3, 5, 3, 4, 1],),
    ],
    in_place=True,
)
def bubble_pass(values: list[int]) -> list[int]:
    """Make one pass of bubble sort over the list itself and return that same list.

    One pass goes once from the front to the back and swaps neighbours that are in the wrong order.
    """
    for place in range(len(values) - 1):
        if values[place] > values[place + 1]:
            values[place], values[place + 1] = values[place + 1], values[place]
    return values


@task(
    "19-flip-square",
    inputs=[
        ([],),
        ([[1]],),
        ([[1, 2], [3, 4]],),
        ([[1, 2, 3], [4, 5, 6], [7, 8, 9]],),
        ([["a", "b"], ["c", "d"]],),
        ([[0, 0], [1, 1]],),
        ([[1, 2], [2, 1]],),
        ([[None, 1, 2], [3, None, 4], [5, 6, None]],),
        ([[1.5, -1.5], [2.5, -2.5]],),
        ([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]],),
    ],
    in_place=True,
)
def flip_square(square: list[list[object]]) -> list[list[object]]:
    """Mirror a square table at its other diagonal, in place, and return that same table.

    The other diagonal runs from the upper right to the lower left; its cells stay. [[1, 2], [3, 4]] becomes [[4, 2], [3, 1]].
    """
    size = len(square)
    for row in range(size):
        for column in range(size - row):
            mirror_row, mirror_column = size - 1 - column, size - 1 - row
            square[row][column], square[mirror_row][mirror_column] = square[mirror_row][mirror_column], square[row][column]
    return square


@task(
    "26-take-stock",
    inputs=[
        ({}, {}),
        ({"a": 3}, {}),
        ({"a": 3}, {"a": 1}),
        ({"a": 3}, {"a": 3}),
        ({"a": 3}, {"a": 4}),
        ({"a": 3}, {"b": 1}),
        ({"a": 3, "b": 2}, {"a": 1, "b": 3}),
        ({"a": 3, "b": 2}, {"b": 2, "a": 3}),
        ({"a": 0, "b": 5}, {"b": 2}),
        ({"a": 2}, {"a": 0, "z": 0}),
    ],
    in_place=True,
)
def take_stock(stock: dict[str, int], order: dict[str, int]) -> tuple[bool, dict[str, int]]:
    """Take an order out of the stock, all of it or nothing.

    If every ordered item is there in the ordered quantity, subtract the quantities from `stock` itself, delete the
    ordered items that reach zero, and return (True, stock). Otherwise change nothing and return (False, stock).
    Ordering zero of anything is always possible.
    """
    if any(stock.get(item, 0) < quantity for item, quantity in order.items()):
        return False, stock
    for item, quantity in order.items():
        if item not in stock:
            continue
        stock[item] -= quantity
        if stock[item] == 0:
            del stock[item]
    return True, stock


@task(
    "33-bounded-queue",
    inputs=[
        ([], [], 3),
        ([], [1, 2], 3),
        ([1, 2], [3], 3),
        ([1, 2, 3], [4], 3),
        ([1, 2, 3], [4, 5, 6, 7], 3),
        ([1, 2, 3], [], 2),
        ([1, 2, 3, 4], [5], 2),
        ([1], [2], 0),
        (["a"], ["b", "c"], 1),
        ([1, 2, 3, 4, 5], [6], 10),
    ],
    in_place=True,
)
def bounded_queue(queue: list[object], items: list[object], size: int) -> list[object]:
    """Append items one by one to the queue itself and return that same list.

    After each item the oldest entries (at the front) are removed until at most `size` are left. Without items the
    queue stays as it is, even if it is too long.
    """
    for item in items:
        queue.append(item)
        while len(queue) > size:
            queue.pop(0)
    return queue


@task(
    "40-fold-counts",
    inputs=[
        ([],),
        ([["a", 1]],),
        ([["a", 1], ["a", 2]],),
        ([["a", 1], ["b", 2], ["a", 3]],),
        ([["b", 1], ["a", 1], ["b", 1], ["a", 1]],),
        ([["a", 1], ["a", 1], ["a", 1], ["a", 1]],),
        ([["x", 0], ["y", -1], ["y", 1], ["x", 5]],),
        ([["A", 1], ["a", 2]],),
        ([["k", 2], ["k", -2]],),
        ([["p", 1], ["q", 2], ["r", 3], ["q", 4], ["p", 5]],),
    ],
    in_place=True,
)
def fold_counts(rows: list[list[Any]]) -> list[list[Any]]:
    """Fold rows [name, count] with one name into the first of them, in the list itself, and return that same list.

    The first row of a name gets the sum of all its counts; the later ones are deleted; the order of the rest stays.
    A sum of zero stays too.
    """
    first: dict[str, list[Any]] = {}
    place = 0
    while place < len(rows):
        name, count = rows[place]
        if name in first:
            first[name][1] += count
            del rows[place]
        else:
            first[name] = rows[place]
            place += 1
    return rows


@task(
    "47-rotate-list",
    inputs=[
        ([], 3),
        ([1], 5),
        ([1, 2, 3], 0),
        ([1, 2, 3], 1),
        ([1, 2, 3], -1),
        ([1, 2, 3, 4], 6),
        ([1, 2, 3, 4, 5], -7),
        (["a", "b", "c"], 3),
        ([1, 2], 10**9 + 1),
        ([0, 1, 2, 3, 4, 5, 6], 2),
    ],
    in_place=True,
)
def rotate_list(values: list[object], steps: int) -> list[object]:
    """Rotate the list itself by `steps` to the right, or to the left if negative, and return that same list.

    rotate_list([1, 2, 3], 1) is [3, 1, 2]. Steps may be larger than the list, which may be empty.
    """
    if values:
        shift = steps % len(values)
        values[:] = values[len(values) - shift :] + values[: len(values) - shift]
    return values
