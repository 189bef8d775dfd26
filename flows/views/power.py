"""What `evalnoise power` prints, and the table of powers of all commands that plan from measured arms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import typer

from evalnoise.report.numbers import interval, number
from evalnoise.stats.estimate import Method
from evalnoise.stats.planning.power import AchievedPower, Effect, achieved_power
from flows.views.budget import BENCHMARK
from flows.views.fitness import arm_facts, find_known
from flows.views.folding import say, width
from flows.views.sql import aligned


def print_power(
    store: Path,
    text: str,
    *,
    delta: float | None,
    runs: tuple[int | None, int | None],
    alpha: float | None,
    simulations: int,
    seed: int | None,
    as_json: bool,
) -> None:
    """Power of both tests for every kind of effect."""
    known = find_known(store, [text])
    (arm,) = known.arms
    analysis = arm.frozen.study["analysis"]
    cells = arm.cells
    own = np.maximum(cells.runs, 1)
    found = [
        one
        for effect in Effect
        for one in achieved_power(
            cells.passes,
            cells.runs,
            delta=float(analysis["deltas"][0]) if delta is None else delta,
            runs_a=own if runs[0] is None else runs[0],
            runs_b=runs[1],
            effect=effect,
            alpha=float(analysis["alpha"] if alpha is None else alpha),
            simulations=simulations,
            seed=int(analysis["seed"] if seed is None else seed),
        )
    ]
    if as_json:
        facts = {"arm": arm.label, **arm_facts(arm), "method": f"simulation, {Method.CLOPPER_PEARSON}", **known.facts()}
        typer.echo(json.dumps(facts | {"power": [asdict(one) for one in found]}, allow_nan=False))
        return
    for line in (arm.label, *known.lines(), *power_lines(found), BENCHMARK):
        say(line)


def power_lines(found: Sequence[AchievedPower]) -> Iterator[str]:
    """A table of powers, a line for each number of runs and kind of effect, and what to know about them."""
    first = found[0]
    asked = "error level" if first.delta == 0 else f"power for a loss of {first.delta!r}"
    yield f"Simulated {asked}, {first.simulations} comparisons, seed {first.seed}, beside what the formula says:"
    groups: dict[tuple[str, str], list[AchievedPower]] = {}
    for one in found:
        groups.setdefault((_sides(one), one.effect), []).append(one)
    header = ["runs", "effect", "formula", *(str(one.test) for one in next(iter(groups.values()))), "w of the worse arm"]
    rows = []
    for (sides, effect), tests in groups.items():
        shares = [f"{number(one.value, 3)} {interval(one.lo, one.hi, 3)}".strip() for one in tests]
        rows.append([sides, str(effect), number(tests[0].formula, 3), *shares, number(tests[0].w_lowered, 5)])
    yield from aligned(header, rows, [True, False, True, *[False] * (len(header) - 4), True], room=width())
    said = dict.fromkeys(text for one in found for text in (one.undefined, one.note) if text)
    yield from (f"  note: {text}" for text in said)


def _sides(one: AchievedPower) -> str:
    """Runs of both arms, the fewest and the most of a task where they differ."""
    ends = ((one.runs_a, one.most_runs_a), (one.runs_b, one.most_runs_b))
    sides = [str(least) if least == most else f"{least} to {most}" for least, most in ends]
    return sides[0] if sides[0] == sides[1] else " and ".join(sides)
