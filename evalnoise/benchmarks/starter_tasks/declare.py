"""The mark that makes a function of this package a starter task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def task(
    slug: str, *, inputs: list[tuple[Any, ...]], atol: float = 0.0, cluster: str = "", in_place: bool = False
) -> Callable[[F], F]:
    """Declare a task: the function is its canonical solution, signature and docstring are its prompt.

    Args:
        slug: ``NN-name``; NN is the task's place in the benchmark.
        inputs: Argument tuples, as literals; ten or more.
        atol: Absolute tolerance for floats in results.
        cluster: Group of tasks that are not independent.
        in_place: What the arguments hold after the call is part of the result.
    """
    del slug, inputs, atol, cluster, in_place  # read from the source text, not here
    return lambda function: function
