"""Numbers in words: how estimates and intervals are printed, with undefined shown as such."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

UNDEFINED = "undefined"
GAFFKE_BELOW = 20
"""With fewer variable tasks the percentile interval of w covers less often than it says."""
MAX_W = 0.25
"""The largest w that can be true: p (1-p) at p = 1/2."""
ABOVE = "! w is above 1/4, which no true w is: too few replicates. Its interval for new runs ends at 1/4, so it leaves w out."
STAR = f"* Gaffke's interval, because fewer than {GAFFKE_BELOW} tasks varied; the percentile interval is in w_lo and w_hi."


def counted(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 task`, `2 tasks`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def number(value: float | None, digits: int = 4) -> str:
    """A number with a fixed count of decimals, or `undefined`."""
    return UNDEFINED if value is None else f"{value:.{digits}f}"


def marked_w(w: float | None, digits: int = 5) -> str:
    """An estimate of w, with a mark where it is larger than a true w can be."""
    return number(w, digits) + ("!" if above(w) else "")


def above(w: float | None) -> bool:
    """Whether an estimate of w is larger than any true w."""
    return w is not None and w > MAX_W


def interval(low: float | None, high: float | None, digits: int = 4) -> str:
    """An interval in brackets, or nothing where there is none."""
    return "" if low is None or high is None else f"[{low:.{digits}f}, {high:.{digits}f}]"


def runs(row: Mapping[str, Any]) -> str:
    """The rerun budget of a row of `noise_floor`, with its interval if w's has a width; where nothing varied: one at least."""
    value, low, high = row["runs"], row["runs_lo"], row["runs_hi"]
    if value is None:
        return UNDEFINED
    if row["variable_tasks"] == 0:
        return f">= {value}"
    # Tasks of one variance give an interval of width zero, which says nothing.
    if low is None or high is None or row["w_lo"] == row["w_hi"]:
        return str(value)
    return f"{value} [{low}, {high}]"


def for_new_tasks(row: Mapping[str, Any], digits: int = 5) -> str:
    """The interval of w for new tasks to quote: the paper's percentile interval, or Gaffke's, starred, where few tasks varied."""
    if row["variable_tasks"] is None or row["variable_tasks"] >= GAFFKE_BELOW:
        return interval(row["w_lo"], row["w_hi"], digits)
    gaffke = interval(row["w_gaffke_lo"], row["w_gaffke_hi"], digits)
    return f"{gaffke}*" if gaffke else ""


def missing_reasons(rows: Iterable[Mapping[str, Any]], name: Callable[[Mapping[str, Any]], str]) -> list[str]:
    """Why w or an interval of it is undefined in rows of `noise_floor`: a sentence per reason, with those that it is about."""
    names: dict[str, list[str]] = {}
    for row in rows:
        if row["w_undefined"] and None in (row["w"], row["w_lo"], row["w_bench_lo"]):
            names.setdefault(row["w_undefined"], []).append(name(row))
    return [f"{UNDEFINED} for {', '.join(who)}: {reason}." for reason, who in names.items()]


def planning_advice(rows: Iterable[Mapping[str, Any]], name: Callable[[Mapping[str, Any]], str]) -> list[str]:
    """Conditions of `noise_floor` whose pilot was too small for the budget in the table, with the runs to plan with instead."""
    told = [
        f"{name(row)} {row['runs_recommended']}"
        for row in rows
        if row["w"] and row["runs_recommended"] is not None and row["runs_recommended"] != row["runs"]
    ]
    small = "Small pilots, under 10 replicates or 10 variable tasks; plan with the cautious budget of runs: "
    return [f"{small}{', '.join(told)}."] if told else []
