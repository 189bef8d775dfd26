"""The instrument: providers, recordings, store, benchmarks, statistics and reports. No Prefect in it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalnoise import stats
    from evalnoise.store.catalog import connect

__all__ = ["connect", "stats"]


def __getattr__(name: str) -> Any:
    # DuckDB and Arrow take a quarter of a second to load, and the command line's help must not wait for them.
    if name == "connect":
        return importlib.import_module("evalnoise.store.catalog").connect
    if name == "stats":
        return importlib.import_module("evalnoise.stats")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
