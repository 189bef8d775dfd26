"""Modules that are loaded when they are first named, as in ``evalnoise.stats.planning.budget``: SciPy takes its time."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType


def lazily(package: str) -> Callable[[str], ModuleType]:
    """The ``__getattr__`` of a package that loads its modules when they are named."""

    def attribute(name: str) -> ModuleType:
        if name.startswith("_") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")

    return attribute
