"""Rows of `estimates` and of `checks` about variance components: what each design identifies, and reasons for what it cannot.

Outcomes of fresh replicates are tasks x generations x one grade; replicates that repeat one recorded draw, and verdicts of a judge,
are tasks x one frozen output x grades.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalnoise.readers.counts import Counts, Ints, Judged
from evalnoise.stats.estimate import Estimate, Method, joined
from evalnoise.stats.nested.combined import combined_generation
from evalnoise.stats.nested.components import FEW_DEGREES, Component, Components, Level, components
from evalnoise.stats.nested.intervals import ALONE, bootstrap_intervals, gaffke_intervals, none_varied_limit
from evalnoise.stats.nested.sums import Nested, from_counts
from tasks.analysis.clusters import cluster_labels
from tasks.analysis.rows import Row, estimate_row
from tasks.workshop import Workshop

LEVELS = (Level.TASK, Level.GENERATION, Level.GRADER)


@dataclass(frozen=True, slots=True)
class Graded:
    """One condition's grades and what they are of."""

    stack: str
    condition: str
    data: Nested
    found: Components
    frozen: bool
    """Whether all grades of a task are of one frozen output."""
    judge: bool
    counts: tuple[Ints, Ints] | None = None
    """Passes and measured runs of each task of the benchmark, (N,); None for verdicts, whose tasks are not all of them."""
    clusters: Ints | None = None
    """Cluster of each task of `data`; None where the benchmark names none."""


def graded(shop: Workshop, counts: Mapping[tuple[str, str], Counts], judged: Sequence[Judged]) -> list[Graded]:
    """The grades of every stack under every condition and judge condition."""
    study, labels, made = shop.plan.study, cluster_labels(shop), []
    for stack in study.stacks:
        for condition in study.conditions:
            cells = counts.get((stack.name, condition.name))
            if cells is None:
                continue
            frozen = study.repeats_one_draw(stack, condition)
            data = from_counts(cells.passes, cells.runs, one_output=frozen)
            made.append(
                Graded(
                    stack.name, condition.name, data, components(data), frozen=frozen, judge=False,
                    counts=(cells.passes, cells.runs), clusters=None if labels is None else labels[cells.runs > 0],
                )
            )  # fmt: skip
    for verdicts in judged:
        parsed = (verdicts.verdicts >= 0).sum(axis=1)
        data = from_counts((verdicts.verdicts == 1).sum(axis=1), parsed, one_output=True)
        within = None if labels is None else labels[verdicts.positions[parsed > 0]]
        one = Graded(verdicts.stack, verdicts.condition, data, components(data), frozen=True, judge=True, clusters=within)
        made.append(one)
    return made


def component_rows(shop: Workshop, grades: Sequence[Graded]) -> Iterator[Row]:
    """Rows of `estimates`: component_task, component_generation, component_grader, and the sums that stand in for them.

    Raw values with the task bootstrap, and with the cluster bootstrap where the benchmark names clusters; `…_clipped` holds them to
    0. Where fresh runs and a reverification of one stack are there, `component_generation_combined` takes the verifier's variance
    from the reverification.
    """
    for one in grades:
        for name, estimate in _estimates(shop, one):
            yield estimate_row(shop, one.stack, one.condition, f"component_{name}", estimate)
    for one, other in _pairs(shop, grades):
        for estimate in _combined(shop, one, other):
            yield estimate_row(shop, one.stack, one.condition, "component_generation_combined", estimate)


def column(level: Level) -> str:
    """A component's name in `estimates`: task+generation is task_generation."""
    return level.value.replace("+", "_")


def _options(shop: Workshop) -> dict[str, Any]:
    analysis = shop.plan.study.analysis
    return {"seed": analysis.seed, "resamples": analysis.resamples, "level": 1 - analysis.alpha}


def _estimates(shop: Workshop, one: Graded) -> Iterator[tuple[str, Estimate]]:
    drawn = _options(shop)
    made = [bootstrap_intervals(one.data, **drawn, found=one.found), gaffke_intervals(one.data, **drawn, found=one.found)]
    made.append(none_varied_limit(one.data, level=drawn["level"], found=one.found))
    alone = ALONE if one.clusters is not None else ""
    for estimates in made:
        for of, estimate in estimates.items():
            yield column(of), replace(estimate, note=joined(estimate.note, alone))
    if one.clusters is not None:
        for of, estimate in bootstrap_intervals(one.data, **drawn, found=one.found, clusters=one.clusters).items():
            yield column(of), estimate
    for part in one.found.parts:
        yield f"{column(part.of)}_clipped", _plain(one.found, part.clipped, note=part.note)
    for part in (one.found.task, one.found.generation, one.found.grader):
        if part.raw is None:
            yield column(part.of), _plain(one.found, None, undefined=_why(one, part))


def _plain(found: Components, value: float | None, *, undefined: str = "", note: str = "") -> Estimate:
    repeats = max(found.n_generations[0], int(found.n_grades[0]))
    shape: dict[str, Any] = {"n_tasks": found.n_tasks, "n_replicates": repeats}
    return Estimate(value=value, method=Method.ANOVA, undefined=undefined, note=note, **shape)


def _why(one: Graded, part: Component) -> str:
    if one.frozen and part.of is not Level.GRADER and one.found.n_tasks > 1:
        what = "a judge condition grades" if one.judge else "its replicates verify"
        return f"{what} one frozen output of each task: task and generation are confounded, their sum is component_task_generation"
    return part.undefined


def _pairs(shop: Workshop, grades: Sequence[Graded]) -> Iterator[tuple[Graded, Graded]]:
    """Fresh runs of a stack, and the first reverification of it."""
    kinds = {condition.name: condition.kind for condition in shop.plan.study.conditions}
    for one in grades:
        again = [
            other
            for other in grades
            if other.stack == one.stack and not other.judge and kinds[other.condition] == "reverify" and other.found.grader.df
        ]
        if not one.frozen and again and one.found.squares.df[1] > 0:
            yield one, again[0]


def _combined(shop: Workshop, one: Graded, again: Graded) -> Iterator[Estimate]:
    """Generation as generation+grader of fresh runs minus grader of a reverification."""
    assumed = (
        f"generation+grader minus grader of {again.condition}: assumes that the verifier varies as much on these outputs as on the "
        "frozen ones"
    )
    assert one.counts is not None
    assert again.counts is not None
    labels, drawn = cluster_labels(shop), _options(shop)
    alone = ALONE if labels is not None else ""
    for estimate in combined_generation(one.counts, again.counts, **drawn):
        yield replace(estimate, note=joined(estimate.note, assumed, alone))
    if labels is not None:
        for estimate in combined_generation(one.counts, again.counts, **drawn, clusters=labels):
            yield replace(estimate, note=joined(estimate.note, assumed))


# --- findings --------------------------------------------------------------------------------------------------------------


def component_findings(grades: Sequence[Graded]) -> Iterator[tuple[str, str, str, str, str, float | None]]:
    """Check, stack, condition, severity, sentence and number of what a reader of components must know. None of them blocks."""
    for one in grades:
        where = f"{one.stack}, {one.condition}"
        for part in one.found.parts:
            if part.raw is not None and part.raw < 0:
                said = f"{where}: the variance component {part.of} is negative ({part.raw:.4g}): {_BELOW}."
                yield "component_negative", one.stack, one.condition, "info", said, part.raw
            if 0 < part.df < FEW_DEGREES:
                said = f"{where}: the variance component {part.of} has {part.df} degrees of freedom; take at least {FEW_DEGREES}."
                yield "component_few", one.stack, one.condition, "info", said, float(part.df)
        if one.judge and one.found.grader.raw == 0:
            limit = none_varied_limit(one.data, found=one.found).get(Level.GRADER)
            most = "" if limit is None or limit.hi is None else f" (a variance of at most {limit.hi:.4g}, if they are independent)"
            said = (
                f"{where}: no verdict ever differed from another on the same output{most}; a cache or a fixed seed looks the same."
            )
            yield "grades_constant", one.stack, one.condition, "info", said, one.found.grader.raw


_BELOW = "it is 0, or so small that these repeats cannot see it; more tasks or repeats tell"
