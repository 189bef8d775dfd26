"""Statistics: arrays in, frozen dataclasses out. Each module is loaded when it is first named: ``evalnoise.stats.budget``."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    # Each module is loaded when it is first named: SciPy takes its time.
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
