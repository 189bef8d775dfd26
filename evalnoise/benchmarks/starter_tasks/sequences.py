"""Starter tasks about lists, tuples and sets."""

from __future__ import annotations

from evalnoise.benchmarks.starter_tasks.declare import task


@task(
    "03-missing-between",
    inputs=[
        ([],),
        ([4],),
        ([1, 3],),
        ([5, 1],),
        ([3, 3, 3],),
        ([1, 2, 3],),
        ([-2, 2],),
        ([10, 7, 8, 12, 7],),
        ([0, -5, -3],),
        ([100, 90, 95],),
    ],
)
def missing_between(values: list[int]) -> list[int]:
    """Integers that lie between the smallest and the largest value but are not in the list, in ascending order."""
    if not values:
        return []
    present = set(values)
    return [number for number in range(min(values), max(values)) if number not in present]


@task(
    "10-merge-spans",
    inputs=[
        ([],),
        ([(1, 3)],),
        ([(1, 3), (2, 5)],),
        ([(1, 3), (3, 5)],),
        ([(1, 3), (4, 5)],),
        ([(4, 5), (1, 3)],),
        ([(1, 10), (2, 3), (4, 5)],),
        ([(2, 2), (2, 2)],),
        ([(2, 2), (1, 4), (6, 6)],),
        ([(-5, -1), (-2, 0), (0, 1), (3, 4)],),
        ([(1, 4), (1, 2), (4, 4), (5, 9)],),
    ],
)
def merge_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge half-open spans (start, end) that overlap or touch; give them back in ascending order.

    A span holds start but not end, so one whose start equals its end is empty and is left out. (1, 3) and (3, 5)
    touch and become (1, 5).
    """
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if start == end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


@task(
    "17-rotate-groups",
    inputs=[
        ([1, 2, 3, 4, 5, 6], 3),
        ([1, 2, 3, 4, 5, 6, 7], 3),
        ([1, 2], 3),
        ([], 2),
        ([1, 2, 3], 1),
        (["a", "b", "c", "d"], 2),
        ([1, 2, 3, 4, 5], 5),
        ([1, 2, 3, 4, 5], 4),
        ([None, True, 0, "x"], 4),
        ([[1], [2], [3]], 2),
    ],
)
def rotate_groups(items: list[object], size: int) -> list[object]:
    """Cut a list into groups of `size` and rotate each by one to the left; an incomplete last group stays as it is.

    rotate_groups([1, 2, 3, 4, 5], 2) is [2, 1, 4, 3, 5].
    """
    result: list[object] = []
    for start in range(0, len(items), size):
        group = items[start : start + size]
        result += group[1:] + group[:1] if len(group) == size else group
    return result


@task(
    "24-compare-sets",
    inputs=[
        (set(), set()),
        ({1}, set()),
        (set(), {1}),
        ({1, 2}, {2, 3}),
        ({"a", "b"}, {"a", "b"}),
        ({(1, 2)}, {(1, 2), (2, 1)}),
        ({1, 2, 3}, {4}),
        ({None, 0}, {None}),
        ({"x"}, {"X"}),
        ({1, 2, 3, 4}, {2, 4, 6, 8}),
    ],
)
def compare_sets(first: set[object], second: set[object]) -> tuple[set[object], set[object], set[object]]:
    """Three sets: what only the first holds, what both hold, what only the second holds."""
    return first - second, first & second, second - first


@task(
    "31-plateau-peaks",
    inputs=[
        ([],),
        ([5],),
        ([1, 3, 2],),
        ([1, 3, 3, 2],),
        ([1, 3, 3, 4],),
        ([3, 1, 2],),
        ([1, 2, 1, 2, 1],),
        ([2, 2, 2],),
        ([0, 5, 5, 5, 0, 7, 7],),
        ([1, 2, 2, 1, 1, 4, 4, 3],),
        ([-3, -1, -2, -2, -1, -5],),
    ],
)
def plateau_peaks(values: list[int]) -> list[int]:
    """Where the peaks of a sequence begin.

    A peak is a run of one or more equal values with a smaller value directly before it and a smaller value directly
    after it. A run at either end of the list is no peak. The result has the index of each peak's first value, in
    ascending order.
    """
    peaks = []
    start = 0
    for place in range(1, len(values)):
        if values[place] == values[place - 1]:
            continue
        if start > 0 and values[start - 1] < values[start] and values[place] < values[start]:
            peaks.append(start)
        start = place
    return peaks


@task(
    "38-average-ranks",
    inputs=[
        ([],),
        ([7],),
        ([10, 20, 30],),
        ([30, 20, 10],),
        ([1, 1],),
        ([5, 1, 5, 9],),
        ([2, 2, 2, 1],),
        ([0, -1, 0, -1],),
        ([3, 3, 1, 1, 2],),
        ([100, 4, 4, 4, 8, 8],),
    ],
)
def average_ranks(values: list[int]) -> list[float]:
    """Rank of each value, as a float; the smallest has rank 1.0, and equal values share the mean of their ranks.

    average_ranks([5, 1, 5]) is [2.5, 1.0, 2.5].
    """
    ranks = []
    for value in values:
        below = sum(other < value for other in values)
        equal = sum(other == value for other in values)
        ranks.append(below + (equal + 1) / 2)
    return ranks


@task(
    "45-window-favourites",
    inputs=[
        ([1, 2, 1, 2, 2], 3),
        ([1, 2, 3], 3),
        ([1, 2, 3], 4),
        ([], 1),
        ([4, 4, 5], 1),
        ([1, 2, 2, 1], 4),
        ([2, 1, 1, 2, 2, 3], 4),
        (["a", "b", "b", "a", "c"], 2),
        ([0, 0, 1, 1, 1, 0, 0], 5),
        ([7, 8, 8, 7, 7, 9, 9, 9], 6),
    ],
)
def window_favourites(values: list[object], size: int) -> list[object]:
    """Most frequent value in each window of `size` consecutive values.

    Among equally frequent ones the value that comes first in the window wins. A list shorter than `size` has no window.
    """
    result = []
    for start in range(len(values) - size + 1):
        window = values[start : start + size]
        # max() keeps the first of equals.
        result.append(max(window, key=window.count))
    return result
