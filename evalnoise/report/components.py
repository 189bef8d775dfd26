"""The report on variance components: all numbers of one set of grades, as facts for JSON and as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from evalnoise.readers.grades import Grades
from evalnoise.report.numbers import UNDEFINED, counted, interval, number
from evalnoise.stats.clusters import named_labels
from evalnoise.stats.estimate import Estimate
from evalnoise.stats.intervals import GAFFKE_NOTE
from evalnoise.stats.nested.components import Component, Components, Level, components
from evalnoise.stats.nested.intervals import ALONE, bootstrap_intervals, gaffke_intervals, mls_intervals, none_varied_limit
from evalnoise.stats.nested.next_sample import NOTHING_VARIES, Advice, Step, next_sample
from evalnoise.stats.nested.repeats import (
    FlipCompression,
    KSelection,
    Repeats,
    dependability,
    flip_compression,
    k_selection,
    repeats_needed,
)
from evalnoise.stats.nested.sums import Nested, from_long
from evalnoise.stats.planning.design import Prices, Variances

NO_GRADER: Final = "the grader's variance is not identified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user asks for."""

    prices: Prices
    """What a generation, a grade and a new task cost."""
    seed: int = 0
    """Seed of the task bootstrap."""
    resamples: int = 20_000
    """Its resamples."""
    level: float = 0.95
    """Confidence level."""
    tol: float = 0.05
    """How small the grader's term must be beside the tasks'."""
    target: float = 0.9
    """Dependability to reach."""
    fixed_tasks: bool = False
    """Whether there are no more tasks to be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentReport:
    """All that is said of one set of grades."""

    grades: Grades
    found: Components
    intervals: dict[Level, Estimate]
    """Task bootstrap."""
    normal: dict[Level, Estimate]
    """Modified large sample, where it may be quoted."""
    gaffke: dict[Level, Estimate]
    """Gaffke's, of generation and grader of balanced binary scores."""
    clustered: dict[Level, Estimate]
    """Cluster bootstrap; empty where no task has a cluster."""
    limit: dict[Level, Estimate]
    """One-sided limit of what never varied."""
    repeats: KSelection | None
    """None: the grader is not identified."""
    reach: Repeats | None
    """Grades that reach the dependability that was asked for; None as above."""
    phi: float | None
    """Dependability of the mean of the grades that a generation has, at least; None as above, or where nothing varies."""
    flips: FlipCompression | None
    """None: the grader is not identified."""
    advice: Advice | None
    """None: the parts cannot be told apart, or there is only one task."""


def component_report(grades: Grades, wishes: Wishes) -> ComponentReport:
    """Estimate everything."""
    data = from_long(grades.task, grades.output, grades.scores, n_tasks=len(grades.tasks))
    found = components(data)
    drawn: dict[str, Any] = {"seed": wishes.seed, "resamples": wishes.resamples}
    graded = found.grader.raw is not None and found.n_tasks > 1
    return ComponentReport(
        grades=grades,
        found=found,
        intervals=bootstrap_intervals(data, **drawn, level=wishes.level, found=found),
        normal=_normal(data, found, wishes.level),
        gaffke=gaffke_intervals(data, **drawn, level=wishes.level, found=found) if found.n_tasks > 1 else {},
        clustered=_clustered(data, grades, {**drawn, "level": wishes.level, "found": found}),
        limit=none_varied_limit(data, level=wishes.level, found=found),
        repeats=_selected(found, wishes.tol) if graded else None,
        reach=repeats_needed(*_three(found), target=wishes.target) if graded else None,
        phi=dependability(*_three(found), k=max(1, int(found.n_grades[0]))) if graded else None,
        flips=_flips(found) if graded else None,
        advice=_advice(data, found, wishes),
    )


def _clustered(data: Nested, grades: Grades, drawn: dict[str, Any]) -> dict[Level, Estimate]:
    labels = named_labels(grades.clusters)
    return {} if labels is None else bootstrap_intervals(data, **drawn, clusters=labels[np.unique(grades.task)])


def _normal(data: Nested, found: Components, level: float) -> dict[Level, Estimate]:
    return {of: one for of, one in mls_intervals(data, level=level, found=found).items() if one.lo is not None}


def _three(found: Components) -> tuple[float, float, float]:
    """Task (or task+generation), generation (0 where the first holds it) and grader, raw."""
    parts = {part.of: part.raw or 0.0 for part in found.parts}
    between = parts.get(Level.TASK, parts.get(Level.TASK_GENERATION, 0.0))
    return between, parts.get(Level.GENERATION, 0.0), parts[Level.GRADER]


def _selected(found: Components, tol: float) -> KSelection:
    question, model, grader = _three(found)
    return k_selection(question, grader, n_tasks=found.n_tasks, model=model, completions=found.n_generations[0], tol=tol)


def _flips(found: Components) -> FlipCompression:
    task, generation, _ = (part.raw for part in (found.task, found.generation, found.grader))
    together = found.together.raw if found.together else None
    between = together if task is None else task
    return flip_compression(
        grader=found.grader.raw or 0.0, task=between, generation=generation, score=found.mean, binary=found.binary
    )


def _advice(data: Nested, found: Components, wishes: Wishes) -> Advice | None:
    if found.n_tasks < 2 or Level.ALL in {part.of for part in found.parts}:
        return None
    clipped = {part.of: part.clipped or 0.0 for part in found.parts}
    parts = Variances(
        task=clipped.get(Level.TASK, clipped.get(Level.TASK_GENERATION, 0.0)),
        generation=clipped.get(Level.GENERATION, clipped.get(Level.GENERATION_GRADER, 0.0)),
        grader=clipped.get(Level.GRADER, 0.0),
    )
    unknown = [
        *([Step.TASKS] if wishes.fixed_tasks else []),
        *([Step.GENERATIONS] if found.generation.raw is None and found.squares.df[1] == 0 else []),
        *([Step.GRADES] if found.grader.raw is None else []),
    ]
    # With unequal generations the mean's variance goes with 1/K, so their harmonic mean stands in.
    outputs, grades = float(data.n / np.sum(1 / data.outputs)), data.n_grades / data.n_outputs
    return next_sample(parts, wishes.prices, n_tasks=found.n_tasks, generations=outputs, grades=grades, without=unknown)


# --- JSON ----------------------------------------------------------------------------------------------------------------


def facts(report: ComponentReport) -> dict[str, Any]:
    """Everything, as JSON can hold it."""
    found = report.found
    return {
        "source": report.grades.source,
        "design": {
            "tasks": found.n_tasks,
            "generations": list(found.n_generations),
            "grades": list(found.n_grades),
            "grades_in_all": found.grades,
            "missing": report.grades.missing,
            "tasks_without_a_grade": found.dropped,
            "balanced": found.balanced,
            "binary": found.binary,
        },
        "components": [_component(report, part) for part in _listed(found)],
        "total": found.total,
        "mean": found.mean,
        "se": found.se,
        "variance_of_mean": found.variance_of_mean,
        "icc": found.icc,
        "icc_undefined": found.icc_undefined,
        "mean_squares": asdict(found.squares),
        "k_selection": _undefined_or(report.repeats),
        "dependability": report.phi,
        "repeats_needed": _undefined_or(report.reach),
        "flip_compression": _undefined_or(report.flips),
        "advice": asdict(report.advice) if report.advice else {"undefined": _no_advice(found)},
        "notes": [*report.grades.notes, *_notes(report)],
        "warnings": list(report.grades.against),
    }


def _undefined_or(value: Any) -> dict[str, Any]:
    return {"undefined": NO_GRADER} if value is None else asdict(value)


def _intervals(report: ComponentReport) -> tuple[dict[Level, Estimate], ...]:
    return report.clustered, report.intervals, report.gaffke, report.normal, report.limit


def _component(report: ComponentReport, part: Component) -> dict[str, Any]:
    estimates = [made[part.of] for made in _intervals(report) if part.of in made]
    return {**asdict(part), "intervals": [asdict(one) for one in estimates]}


def _listed(found: Components) -> list[Component]:
    """Task, generation and grader, and what stands in for those of them that cannot be told apart."""
    return [found.task, found.generation, found.grader, *([found.together] if found.together else [])]


def _no_advice(found: Components) -> str:
    if found.n_tasks < 2:
        return found.task.undefined
    return found.together.undefined or found.task.undefined if found.together else NOTHING_VARIES


# --- text ----------------------------------------------------------------------------------------------------------------


def lines(report: ComponentReport) -> Iterator[str]:
    """The report for people: lines of any length."""
    found = report.found
    yield f"Variance components of {report.grades.source}"
    yield _design(report)
    if found.undefined:
        yield f"{UNDEFINED}: {found.undefined}."
        return
    yield ""
    yield from _table(report)
    for part in (found.task, found.generation, found.grader):
        if part.raw is None:
            yield f"{part.of}: {UNDEFINED}: {part.undefined}."
    yield ""
    of_one = f"variance of one grade {number(found.total, 5)}"
    yield f"mean {number(found.mean)}, standard error over new tasks {number(found.se)}, {of_one}"
    icc = f"{number(found.icc)}" if found.icc is not None else f"{UNDEFINED}: {found.icc_undefined}"
    yield f"agreement of two grades of one generation (1 - grader/total; ICC(1,1) at one generation): {icc}"
    yield from _repeats(report)
    yield ""
    yield report.advice.sentence if report.advice else f"No advice: {_no_advice(found)}."
    if report.advice and not report.advice.undefined:
        taken = report.advice.prices
        yield f"Prices taken: generation {taken.generation!r}, grade {taken.grade!r}, task {taken.task!r}."
    for note in (*report.grades.notes, *_notes(report)):
        yield f"note: {note}"


def _design(report: ComponentReport) -> str:
    found = report.found
    generations, grades = _span(*found.n_generations, "generation"), _span(*found.n_grades, "grade")
    missing = f", {counted(report.grades.missing, 'grade')} missing" if report.grades.missing else ""
    dropped = f", {counted(found.dropped, 'task')} without a grade" if found.dropped else ""
    each = f"{generations} of each task, {grades} of each generation"
    return f"{counted(found.n_tasks, 'task')}, {each}{'' if found.balanced else ' (unbalanced)'}{missing}{dropped}"


def _span(low: float, high: float, noun: str) -> str:
    return f"{low:g} {noun}{'' if low == 1 else 's'}" if low == high else f"{low:.3g} to {high:.3g} {noun}s"


def _table(report: ComponentReport) -> Iterator[str]:
    parts = report.found.parts
    over = "clusters" if report.clustered else "tasks"
    rows = [("component", "raw", "clipped", "share", f"{_level(report)} over new {over}, of the raw one")]
    quoted = report.clustered or report.intervals
    for part in parts:
        one, limit = quoted[part.of], report.limit.get(part.of)
        shown = interval(one.lo, one.hi, 5) or f"none: {one.undefined}"
        if part.of in report.gaffke and one.note and not report.clustered:
            shown = f"{interval(report.gaffke[part.of].lo, report.gaffke[part.of].hi, 5)}*"
        if limit is not None:
            shown = f"it never varied: at most {number(limit.hi, 5)}, one-sided"
        share = UNDEFINED if part.share is None else f"{100 * part.share:.1f} %"
        rows.append((part.of.value, number(part.raw, 5), number(part.clipped, 5), share, shown))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in (1, 2, 3)), row[4]]
        yield "  ".join(cells).rstrip()


def _level(report: ComponentReport) -> str:
    level = next((one.level for one in report.intervals.values() if one.level is not None), None)
    return "interval" if level is None else f"{100 * level:.4g} %"


def _repeats(report: ComponentReport) -> Iterator[str]:
    if report.repeats is None or report.reach is None or report.flips is None:
        yield f"grades needed: {UNDEFINED}: {NO_GRADER}"
        return
    yield report.repeats.sentence
    have = max(1, int(report.found.n_grades[0]))
    phi = UNDEFINED if report.phi is None else f"{report.phi:.4f}"
    needed = report.reach.undefined if report.reach.k is None else f"{counted(report.reach.k, 'grade')}"
    each = counted(have, "grade")
    yield f"Dependability of the mean of {each} of a generation {phi}; for {report.reach.target:g} it takes: {needed}."
    flips = report.flips
    if flips.flip is None:
        yield f"If the judge flips at random: {UNDEFINED}: {flips.undefined}."
        return
    if flips.flip > 0:
        generation = "" if flips.generation is None else f", generation {number(flips.generation, 5)}"
        yield (
            f"If the judge flips at random, it flips {100 * flips.flip:.1f} % of verdicts, and real differences show at "
            f"{100 * (flips.scale or 0):.0f} % of their size; without flips the score would be {number(flips.score)}, the variance "
            f"between tasks {number(flips.task, 5)}{generation}. A judge that errs the same way each time does not show here. "
            "(The chance that one verdict flips; flip_rate of `evalnoise agreement` is the share of items that ever do.)"
        )


def _notes(report: ComponentReport) -> Iterator[str]:
    quoted = report.clustered or report.intervals
    for part in report.found.parts:
        note = quoted[part.of].note
        if not note or part.of in report.limit:
            continue
        yield f"{part.of}: {note}"
        if part.of in report.gaffke and not report.clustered:
            bootstrap = interval(report.intervals[part.of].lo, report.intervals[part.of].hi, 5)
            yield f"* Gaffke's interval, for that reason; {GAFFKE_NOTE}; the task bootstrap's is {bootstrap}"
    alone = f"; {ALONE}" if report.clustered else ""
    for of, one in report.limit.items():
        yield f"{of}: {one.note}{alone}"
    for of, one in report.normal.items():
        yield f"{of}: normal limits {interval(one.lo, one.hi, 5)}; {one.note}{alone}"
    if report.clustered:
        yield "clusters of tasks are named: the standard error, what grades are needed and the advice take tasks as independent"
    if report.found.squares.generation == 0:
        yield "no two generations of a task differed: served from a cache, generations look the same as steady ones"
    if not report.found.balanced and report.found.n_tasks > 1:
        yield "the design is unbalanced: components weigh grades alike (sequential sums of squares), the mean weighs tasks alike"
