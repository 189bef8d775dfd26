"""What `evalnoise design` prints: half widths over tasks, generations and grades, and the cheapest design."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer

from evalnoise.readers.grades import find_grades
from evalnoise.report.numbers import counted
from evalnoise.stats.nested.components import Component
from evalnoise.stats.nested.components import components as components_of
from evalnoise.stats.nested.sums import from_long
from evalnoise.stats.planning.design import (
    Bounds,
    Design,
    Prices,
    Variances,
    cheapest_for_effect,
    cheapest_for_half_width,
    floor,
    table,
)
from evalnoise.store.catalog import connect
from flows.cli_errors import printable
from flows.cli_options import misuse
from flows.views.fitness import warn
from flows.views.folding import folded, width
from flows.views.sql import aligned

_TASKS, _GENERATIONS, _GRADES = (100, 200, 400, 800), (1, 3, 5), (1, 3, 5)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a design is for."""

    half_width: float | None
    effect: float | None
    level: float
    alpha: float
    power: float


def measured(store: Path, text: str) -> tuple[Variances, Bounds, dict[str, Sequence[str]]]:
    """The variances of an arm, negative ones as 0, what its design leaves no choice of, and its notes and warnings.

    Where grades are not told from generations, each generation has one grade in the plan too; where generations are not told from
    tasks, each task has one generation.
    """
    with closing(connect(store)) as connection:
        grades = find_grades(connection, store, text)
    warn(grades.against)
    found = components_of(from_long(grades.task, grades.output, grades.scores, n_tasks=len(grades.tasks)))
    notes = [f"variances of {grades.source}", *grades.notes]

    def clipped(part: Component | None) -> float | None:
        if part is not None and part.raw is not None and part.raw < 0:
            notes.append(f"the estimate of {part.of} is negative, {part.raw:.5f}: 0 stands in for it")
        return None if part is None else part.clipped

    task, generation, grader = clipped(found.task), clipped(found.generation), clipped(found.grader)
    together = clipped(found.together)
    if together is not None and found.together is not None:
        notes.append(f"{found.together.of} is one number here, {together:.5f}")
    said: dict[str, Sequence[str]] = {"notes": notes, "warnings": grades.against}
    if task is not None and generation is not None and grader is not None:
        return Variances(task=task, generation=generation, grader=grader), Bounds(), said
    if task is not None and together is not None:
        return Variances(task=task, generation=together, grader=0.0), Bounds(grades=1), said
    if grader is not None and together is not None:
        return Variances(task=together, generation=0.0, grader=grader), Bounds(generations=1), said
    reasons = dict.fromkeys(part.undefined for part in (found.task, found.generation, found.grader) if part.undefined)
    raise misuse(f"{text}: no design can be planned from it: {'; '.join(reasons) or found.undefined}")


def print_design(
    components: Variances,
    prices: Prices,
    bounds: Bounds,
    wanted: Wanted,
    *,
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
    as_json: bool,
) -> None:
    """The table of half widths, and the cheapest design for what is wanted, if something is."""
    found = _cheapest(components, prices, bounds, wanted)
    tasks = sorted({*_TASKS, *([bounds.tasks] if bounds.tasks else []), *([found.n_tasks] if found and found.n_tasks else [])})
    grades = _GRADES if components.grader > 0 else (1,)
    generations = (1,) if bounds.generations == 1 else _GENERATIONS
    cells = table(components, tasks, generations, grades, level=wanted.level)
    floors = {n: floor(components, n, level=wanted.level) for n in tasks}
    if as_json:
        facts: dict[str, Any] = {
            "components": asdict(components),
            "prices": asdict(prices),
            "bounds": asdict(bounds),
            "wanted": asdict(wanted),
        }
        facts |= {"table": [asdict(cell) for cell in cells], "floors": floors, "covers": "population"}
        facts |= {"notes": list(notes), "warnings": list(warnings)}
        typer.echo(json.dumps(facts | {"cheapest": None if found is None else asdict(found)}, allow_nan=False))
        return
    for note in notes:
        typer.echo(folded(printable(note)))
    widths = {(cell.n_tasks, cell.generations, cell.grades): cell.half_width for cell in cells}
    header = ["tasks", "generations", *(f"{g} {'grade' if g == 1 else 'grades'}" for g in grades), "floor"]
    rows = [[str(n), str(k), *(f"{widths[n, k, g]:.5f}" for g in grades), f"{floors[n]:.5f}"] for n in tasks for k in generations]
    of = "a mean score" if wanted.effect is None else "a difference of two arms' mean scores"
    head = f"Half width of {of}, {100 * wanted.level:.4g} %, by tasks, generations of a task and grades of a generation:"
    typer.echo(folded(head))
    for line in aligned(header, rows, [True] * len(header), room=width()):
        typer.echo(line)
    floor_is = "The floor is what no number of generations and grades of so many tasks gets below. It covers new tasks too."
    for line in (floor_is, *(_sentences(found, wanted) if found else ())):
        typer.echo(folded(line))


def _cheapest(components: Variances, prices: Prices, bounds: Bounds, wanted: Wanted) -> Design | None:
    if wanted.half_width is not None:
        return cheapest_for_half_width(components, prices, wanted.half_width, level=wanted.level, bounds=bounds)
    if wanted.effect is not None:
        return cheapest_for_effect(components, prices, wanted.effect, alpha=wanted.alpha, power=wanted.power, bounds=bounds)
    return None


def _sentences(found: Design, wanted: Wanted) -> Iterator[str]:
    if found.n_tasks is None or found.generations is None or found.grades is None or found.half_width is None or found.cost is None:
        yield f"{found.undefined[:1].upper()}{found.undefined[1:]}."
        return
    shape = f"{counted(found.n_tasks, 'task')} x {counted(found.generations, 'generation')} x {counted(found.grades, 'grade')}"
    if wanted.effect is None:
        head = f"Cheapest for a half width of {wanted.half_width!r}"
        yield f"{head}: {shape}, for {found.cost:.6g}; its half width is {found.half_width:.5f}."
    else:
        test = f"alpha {wanted.alpha!r}, power {wanted.power!r}"
        yield (
            f"Cheapest for an effect of {wanted.effect!r} ({test}): {shape} in each of two arms, for {found.cost:.6g}; "
            f"the smallest effect that it detects is {found.half_width:.5f}."
        )
    tried = counted(found.tried, "pair")
    yield f"No design costs less: {tried} of generations and grades tried, all others cost more by a bound."
