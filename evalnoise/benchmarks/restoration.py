"""Restores MBPP+ arguments: JSON has no tuples, sets or complex numbers, so the tasks that take them say here which they take.

The types follow from each task's own assertions. Tasks 98, 104, 140 and 145 are called with tuples in their assertions too, but
EvalPlus passes lists to them; published results are with lists, so they are left as they are. Ids that later releases dropped
are kept, for a study that names an older one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Restore = Callable[[Any], Any]


def _list_of_tuples(value: list[Any]) -> list[Any]:
    return [tuple(item) for item in value]


def _tuple_of_tuples(value: list[Any]) -> tuple[Any, ...]:
    return tuple(tuple(item) for item in value)


def _tuple_with_tuples(value: list[Any]) -> tuple[Any, ...]:
    """A tuple of which some members are tuples and others are plain."""
    return tuple(tuple(item) if isinstance(item, list) else item for item in value)


def _deep_tuple(value: Any) -> Any:
    return tuple(map(_deep_tuple, value)) if isinstance(value, list) else value


def _dict_of_tuples(value: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(item) for key, item in value.items()}


def _list_of_sets(value: list[Any]) -> list[Any]:
    # The task asks whether all dictionaries of a list are empty; what is not empty is a set in its assertions.
    return [set(item) if isinstance(item, list) and item else {} for item in value]


def _keep(value: Any) -> Any:
    return value


_EVERY_ARGUMENT: dict[Restore, tuple[int, ...]] = {
    tuple: (
        2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809,
    ),
    _list_of_tuples: (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780),
    _tuple_of_tuples: (259, 401, 445),
    _tuple_with_tuples: (278,),
    _deep_tuple: (580, 615, 791),
    _list_of_sets: (115,),
    complex: (252,),
}  # fmt: skip
_FIRST_ARGUMENTS: dict[tuple[Restore, ...], tuple[int, ...]] = {
    (tuple,): (250, 307, 405, 446, 617, 720, 763, 808),
    (_list_of_tuples,): (75, 413, 444, 753),
    (_keep, tuple): (106, 750),
    (_dict_of_tuples,): (722,),
    (float, complex): (124,),
}
_BY_ID: dict[str, Restore | tuple[Restore, ...]] = {
    **{f"Mbpp/{number}": restore for restore, numbers in _EVERY_ARGUMENT.items() for number in numbers},
    **{f"Mbpp/{number}": restores for restores, numbers in _FIRST_ARGUMENTS.items() for number in numbers},
}


def restore_mbpp(task_id: str, arguments: list[Any]) -> list[Any]:
    """The arguments as the task's function takes them. Raises TypeError or ValueError for data of another shape."""
    rule = _BY_ID.get(task_id)
    if rule is None:
        return arguments
    if isinstance(rule, tuple):
        restored = [restore(argument) for restore, argument in zip(rule, arguments, strict=False)]
        return restored + arguments[len(restored) :]
    return [rule(argument) for argument in arguments]
