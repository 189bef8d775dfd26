"""Numbers in words: how estimates and intervals are printed, with undefined shown as such."""

from __future__ import annotations

UNDEFINED = "undefined"


def number(value: float | None, digits: int = 4) -> str:
    """A number with a fixed count of decimals, or `undefined`."""
    return UNDEFINED if value is None else f"{value:.{digits}f}"


def interval(low: float | None, high: float | None, digits: int = 4) -> str:
    """An interval in brackets, or nothing where there is none."""
    return "" if low is None or high is None else f"[{low:.{digits}f}, {high:.{digits}f}]"


def runs(value: int | None, low: int | None, high: int | None) -> str:
    """A rerun budget with its interval."""
    if value is None:
        return UNDEFINED
    return str(value) if low is None or high is None else f"{value} [{low}, {high}]"
