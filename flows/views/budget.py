"""What `evalnoise budget` prints from numbers alone. Nothing of SciPy is imported for it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from evalnoise.report.numbers import counted, number
from evalnoise.stats.planning.budget import note_of_w, rerun_budget

if TYPE_CHECKING:
    from evalnoise.stats.planning.two_arms import TwoArms

BENCHMARK = "It covers new runs of these tasks, not other tasks."


def print_number_budget(
    w: tuple[float, float],
    tasks: int,
    delta: float,
    *,
    alpha: float,
    power: float,
    pair: TwoArms | None,
    priced: bool,
    as_json: bool,
) -> None:
    """The paper's budget for two within-task variances, and runs of each arm where they need not be as many (`pair`)."""
    runs = rerun_budget(*w, tasks, delta, alpha=alpha, power=power)
    if as_json:
        facts: dict[str, Any] = {"w": w[0], "tasks": tasks, "n_tasks": tasks, "delta": delta, "alpha": alpha, "power": power}
        arms = "equal w" if w[0] == w[1] else "unequal w"
        facts |= {
            "method": f"two-sided normal test of two independent arms of {arms}",
            "covers": "benchmark",
            "note": note_of_w(*w),
        }
        typer.echo(json.dumps({"runs": runs, **facts} | ({"w_b": w[1], "arms": asdict(pair)} if pair else {}), allow_nan=False))
        return
    enough = f"{counted(runs, 'run')} per arm {'resolves' if runs == 1 else 'resolve'} a difference of {delta!r}"
    typer.echo(f"{enough} on {counted(tasks, 'task')} (alpha {alpha!r}, power {power!r}).")
    if pair:
        typer.echo(pair_sentence(pair, priced=priced))
    typer.echo(BENCHMARK)
    if note := note_of_w(*w):
        typer.echo(f"Note: {note}.")


def pair_sentence(pair: TwoArms, *, priced: bool) -> str:
    """Runs of two arms that need not be as many."""
    if pair.runs_a is None or pair.runs_b is None:
        return f"{pair.undefined[:1].upper()}{pair.undefined[1:]}."
    both = f"{counted(pair.runs_a, 'run')} of the first arm and {pair.runs_b} of the second"
    if pair.cost is None:
        return f"{both} resolve it as well; the smallest difference that they resolve is {number(pair.detectable)}."
    ratio = "" if pair.ratio is None else f", {pair.ratio:.3g} of the second to one of the first before rounding"
    cost = f"cost least, {pair.cost:.6g}" if priced else "are the fewest together"
    return f"{both} {cost}{ratio}; the smallest difference that they resolve is {number(pair.detectable)}."
