"""Starter tasks that ask for recursion: nested lists, trees, counting and enumeration."""

from __future__ import annotations

from typing import Any

from evalnoise.benchmarks.starter_tasks.declare import task


@task(
    "06-nesting-depth",
    inputs=[
        (5,),
        ([],),
        ([1, 2],),
        ([[], []],),
        ([1, [2, [3]]],),
        ([[[[]]]],),
        ("text",),
        ([(1, [2])],),
        ([1, [2], [[3], 4], 5],),
        ([{"a": [1]}],),
        (None,),
    ],
)
def nesting_depth(data: object) -> int:
    """How deeply lists are nested: 0 for anything but a list, 1 for a list that holds no lists, and so on.

    Only lists count and only lists are looked into: nesting_depth([(1, [2])]) is 1.
    """
    if not isinstance(data, list):
        return 0
    return 1 + max((nesting_depth(item) for item in data), default=0)


@task(
    "13-flatten-levels",
    inputs=[
        ([], 1),
        ([1, [2]], 0),
        ([1, [2]], 1),
        ([1, [2, [3, [4]]]], 1),
        ([1, [2, [3, [4]]]], 2),
        ([1, [2, [3, [4]]]], 9),
        ([[], [[]]], 1),
        ([(1, 2), [(3, [4])]], 2),
        (["ab", ["cd"]], 3),
        ([[[1]], [[2]], [[3]]], 1),
    ],
)
def flatten_levels(items: list[object], levels: int) -> list[object]:
    """Replace lists inside a list by their items, down to so many levels.

    Level 0 gives a copy of the list. Tuples, strings and other values are kept whole. flatten_levels([1, [2, [3]]],
    1) is [1, 2, [3]].
    """
    result: list[object] = []
    for item in items:
        if isinstance(item, list) and levels > 0:
            result.extend(flatten_levels(item, levels - 1))
        else:
            result.append(item)
    return result


@task(
    "20-broken-stairs",
    inputs=[
        (0, set()),
        (1, set()),
        (3, set()),
        (4, set()),
        (4, {2}),
        (5, {1, 3}),
        (5, {5}),
        (6, {2, 3, 4}),
        (10, {4, 9}),
        (30, {7, 8, 15}),
    ],
)
def broken_stairs(steps: int, broken: set[int]) -> int:
    """Count the ways to climb stairs with one, two or three steps at a time without treading on a broken step.

    Steps are numbered from 1; the climb ends exactly on step `steps`, so if that one is broken there is no way.
    There is one way to climb 0 steps.
    """
    known: dict[int, int] = {0: 1}

    def ways(step: int) -> int:
        if step < 0 or step in broken:
            return 0
        if step not in known:
            known[step] = ways(step - 1) + ways(step - 2) + ways(step - 3)
        return known[step]

    return ways(steps)


@task(
    "27-formula-value",
    inputs=[
        (7,),
        (("neg", 3),),
        (("+", 1, 2, 3),),
        (("+",),),
        (("*",),),
        (("*", 2, ("+", 3, 4)),),
        (("-", 10, 4),),
        (("/", 7, 2),),
        (("/", -7, 2),),
        (("/", 1, ("+", 1, ("neg", 1))),),
        (("-", ("*", 3, 3), ("/", 9, ("neg", 4))),),
        (("+", ("*", 2, 2, 2), ("-", 0, 1)),),
    ],
)
def formula_value(formula: Any) -> int:
    """Value of a formula made of integers and tuples.

    A tuple is an operator and its operands, which are formulas: "+" and "*" take any number of operands ("+" of
    none is 0, "*" of none is 1), "-" and "/" take two, "neg" takes one. "/" rounds down, and division by zero
    raises ZeroDivisionError.
    """
    if not isinstance(formula, tuple):
        return int(formula)
    operator, *operands = formula
    values = [formula_value(operand) for operand in operands]
    if operator == "+":
        return sum(values)
    if operator == "*":
        product = 1
        for value in values:
            product *= value
        return product
    if operator == "-":
        return values[0] - values[1]
    if operator == "/":
        return values[0] // values[1]
    return -values[0]


@task(
    "34-bracket-heights",
    inputs=[(0, 0), (1, 1), (1, 0), (2, 1), (2, 2), (3, 2), (3, 3), (4, 2), (4, 3), (2, 5), (5, 4)],
)
def bracket_heights(pairs: int, depth: int) -> list[str]:
    """All well-formed strings of so many pairs of round brackets whose deepest nesting is exactly `depth`, sorted.

    bracket_heights(2, 1) is ["()()"]; no pairs have depth 0 and one string, the empty one.
    """
    found = []

    def extend(text: str, opened: int, height: int, highest: int) -> None:
        if len(text) == 2 * pairs:
            if highest == depth:
                found.append(text)
            return
        if opened < pairs and height < depth:
            extend(text + "(", opened + 1, height + 1, max(highest, height + 1))
        if height > 0:
            extend(text + ")", opened, height - 1, highest)

    extend("", 0, 0, 0)
    return sorted(found)


@task(
    "41-leaf-paths",
    inputs=[
        ({},),
        ({"a": 1},),
        ({"b": 1, "a": 2},),
        ({"a": {"b": 1, "c": 2}},),
        ({"a": {}},),
        ({"a": {"b": {}}, "c": None},),
        ({"x": {"y": {"z": [1, 2]}}},),
        ({"a": {"z": 0}, "a0": 1},),
        ({"one": {"two": 3, "three": {"four": 5}}, "six": "seven"},),
        ({"k": {"": 1}},),
    ],
)
def leaf_paths(tree: dict[str, Any]) -> list[tuple[str, Any]]:
    """List the leaves of nested dictionaries as (path, value), sorted by path.

    A path is the keys from the root to the leaf joined by ``/``. A leaf is any value but a dictionary that holds
    something; an empty dictionary inside the tree is a leaf. The empty tree has no leaves.
    """
    leaves: list[tuple[str, Any]] = []
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            leaves += [(f"{key}/{path}", leaf) for path, leaf in leaf_paths(value)]
        else:
            leaves.append((key, value))
    return sorted(leaves, key=lambda leaf: leaf[0])


@task(
    "48-distinct-sums",
    inputs=[(0, 5), (1, 1), (3, 3), (5, 5), (5, 3), (6, 6), (7, 2), (10, 4), (10, 10), (12, 7), (4, 0)],
)
def distinct_sums(total: int, largest: int) -> list[list[int]]:
    """All ways to write `total` as a sum of different positive integers up to and including `largest`.

    Each way is a list in descending order; the ways are in descending order too. distinct_sums(5, 4) is [[4, 1],
    [3, 2]]. There is one way to make 0: the empty list.
    """
    if total == 0:
        return [[]]
    ways = []
    for part in range(min(total, largest), 0, -1):
        ways += [[part, *rest] for rest in distinct_sums(total - part, part - 1)]
    return ways
