"""What `evalnoise power` prints, and what all commands that plan from measured arms say of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import typer

from evalnoise.readers.arms import Arm, find_arm
from evalnoise.report.numbers import counted, interval, number
from evalnoise.stats.estimate import Method
from evalnoise.stats.planning.power import AchievedPower, Effect, achieved_power
from evalnoise.store.catalog import connect
from flows.cli_errors import printable
from flows.views.budget import BENCHMARK
from flows.views.fitness import warn_of_arms
from flows.views.sql import aligned

_DRAWN_ONCE = {"replay", "reverify"}


def say(text: str) -> None:
    """Print a line of text that may be hostile."""
    typer.echo(printable(text))


def find_arms(store: Path, texts: Sequence[str]) -> list[Arm]:
    """The arms that texts name, from one connection."""
    with closing(connect(store)) as connection:
        arms = [find_arm(connection, store, text) for text in texts]
        warn_of_arms(connection, arms)
    return arms


def arm_warnings(arms: Sequence[Arm], unmatched: Sequence[int] = ()) -> Iterator[str]:
    """What must be known of arms before their numbers are used."""
    for arm, lost in zip(arms, unmatched or [0] * len(arms), strict=True):
        if arm.kind in _DRAWN_ONCE:
            yield f"! {arm.label}: its replicates repeat one recorded run, so they say nothing about fresh runs."
        if not arm.complete:
            yield f"! {arm.label}: its protocol is not complete."
        if not arm.cells.binary:
            yield f"! {arm.label}: its scores are not all 0 or 1; what is counted here is whether a cell passed."
        if lost:
            yield f"! {arm.label}: {counted(lost, 'task')} of it that the other arm lacks left out."


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
    (arm,) = find_arms(store, [text])
    analysis = arm.frozen.study["analysis"]
    cells = arm.cells
    measured = cells.runs[cells.runs >= 2]
    own = int(measured.min()) if measured.size else 1
    found = [
        one
        for effect in Effect
        for one in achieved_power(
            cells.passes,
            cells.runs,
            delta=float(analysis["deltas"][0]) if delta is None else delta,
            runs_a=runs[0] or own,
            runs_b=runs[1],
            effect=effect,
            alpha=float(analysis["alpha"] if alpha is None else alpha),
            simulations=simulations,
            seed=int(analysis["seed"] if seed is None else seed),
        )
    ]
    if as_json:
        facts = {"arm": arm.label, "protocol": arm.frozen.digest(), "method": f"simulation, {Method.CLOPPER_PEARSON}"}
        typer.echo(json.dumps(facts | {"power": [asdict(one) for one in found]}, allow_nan=False))
        return
    for line in (arm.label, *arm_warnings([arm]), *power_lines(found), BENCHMARK):
        say(line)


def power_lines(found: Sequence[AchievedPower]) -> Iterator[str]:
    """A table of powers, a line for each number of runs and kind of effect, and what to know about them."""
    first = found[0]
    asked = "error level" if first.delta == 0 else f"power for a loss of {first.delta!r}"
    yield f"Simulated {asked}, {first.simulations} comparisons, seed {first.seed}, beside what the formula says:"
    groups: dict[tuple[int, int, str], list[AchievedPower]] = {}
    for one in found:
        groups.setdefault((one.runs_a, one.runs_b, one.effect), []).append(one)
    header = ["runs", "effect", "formula", *(str(one.test) for one in next(iter(groups.values()))), "w of the worse arm"]
    rows = []
    for (runs_a, runs_b, effect), tests in groups.items():
        sides = str(runs_a) if runs_a == runs_b else f"{runs_a} and {runs_b}"
        shares = [f"{number(one.value, 3)} {interval(one.lo, one.hi, 3)}".strip() for one in tests]
        rows.append([sides, str(effect), number(tests[0].formula, 3), *shares, number(tests[0].w_lowered, 5)])
    yield from aligned(header, rows, [True, False, True, *[False] * (len(header) - 4), True])
    said = dict.fromkeys(text for one in found for text in (one.undefined, one.note) if text)
    yield from (f"  note: {text}" for text in said)
