"""Rows of `budgets`: runs per arm that resolve the study's differences of score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from evalnoise.readers.counts import Counts, Ints, Judged
from evalnoise.stats.estimate import Covers, Estimate, Method
from evalnoise.stats.intervals import GAFFKE_FIRST, w_gaffke, w_gaffke_limit
from evalnoise.stats.planning.budget import CAUTIOUS_LEVEL, budget_for, run_plan
from evalnoise.stats.planning.pilot import pilot_runs
from evalnoise.stats.variance import within_task_variance
from tasks.analysis.rows import Row, protocol_fields
from tasks.workshop import Workshop


def budget_rows(
    shop: Workshop, estimates: Sequence[Row], counts: Mapping[tuple[str, str], Counts], judged: Sequence[Judged]
) -> Iterator[Row]:
    """The rerun budget of every condition and judge condition for every delta, from w and the interval of it to quote.

    The cautious budget beside it is from the counts: at the one-sided 90 % Gaffke limit of w, by the study's seed.
    """
    pilots = {("w", *key): (found.passes, found.runs) for key, found in counts.items()}
    pilots |= {("verdict_w", found.stack, found.condition): _verdicts(found) for found in judged}
    made = {(row["estimate"], row["stack"], row["condition"], row["method"]): row for row in estimates}
    for row in estimates:
        key = row["estimate"], row["stack"], row["condition"]
        if key in pilots and row["method"] == Method.PERCENTILE:
            yield from _rows(shop, row, made.get((*key, Method.GAFFKE)), *pilots[key])


def _verdicts(judged: Judged) -> tuple[Ints, Ints]:
    """Passes and parsed verdicts of each candidate."""
    return (judged.verdicts == 1).sum(axis=1), (judged.verdicts >= 0).sum(axis=1)


def _rows(shop: Workshop, row: Row, gaffke: Row | None, passes: Ints, runs: Ints) -> Iterator[Row]:
    """From the row with the percentile interval, and the one with Gaffke's, which verdicts do not have."""
    analysis = shop.plan.study.analysis
    found = within_task_variance(passes, runs)
    if found.variable_tasks < GAFFKE_FIRST and gaffke is None:
        estimate = w_gaffke(passes, runs, seed=analysis.seed, resamples=analysis.resamples, level=1 - analysis.alpha)
    else:
        quoted = row if gaffke is None or found.variable_tasks >= GAFFKE_FIRST else gaffke
        estimate = Estimate(**{name: quoted[name] for name in Estimate.__dataclass_fields__})
    varied = None if found.undefined else found.variable_tasks
    pilot = pilot_runs((passes, runs))
    limit = w_gaffke_limit(passes, runs, seed=analysis.seed, resamples=analysis.resamples, level=CAUTIOUS_LEVEL)
    for index, delta in enumerate(analysis.deltas):
        budget = budget_for(
            estimate,
            n_tasks=max(1, estimate.n_tasks),
            delta=delta,
            alpha=analysis.alpha,
            power=analysis.power,
            variable_tasks=varied,
            pilot=pilot,
        )
        plan = run_plan(budget, limit, variable_tasks=varied, pilot=pilot)
        yield {
            **protocol_fields(shop),
            "stack": row["stack"],
            "condition": row["condition"],
            "first_delta": index == 0,
            **asdict(budget),
            "covers": budget.covers or Covers.NOTHING,
            "n_tasks": estimate.n_tasks,
            "w_cautious": plan.w_cautious,
            "runs_cautious": plan.runs_cautious,
            "recommended": plan.recommended,
            "mde": plan.mde,
        }
