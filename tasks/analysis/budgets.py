"""Rows of `budgets`: runs per arm that resolve the study's differences of score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from evalnoise.stats.budget import budget_for
from evalnoise.stats.estimate import Covers, Estimate, Method
from tasks.analysis.rows import Row, protocol_fields
from tasks.workshop import Workshop


def budget_rows(shop: Workshop, estimates: list[Row]) -> Iterator[Row]:
    """The rerun budget of every condition and judge condition for every delta, from w and its population interval."""
    analysis = shop.plan.study.analysis
    for row in estimates:
        if row["estimate"] not in {"w", "verdict_w"} or row["method"] != Method.PERCENTILE:
            continue
        estimate = Estimate(**{name: row[name] for name in Estimate.__dataclass_fields__})
        prefix = row["estimate"].removesuffix("w")
        place = (row["stack"], row["condition"], f"{prefix}variable_tasks")
        varied = [other["value"] for other in estimates if (other["stack"], other["condition"], other["estimate"]) == place]
        for index, delta in enumerate(analysis.deltas):
            budget = budget_for(
                estimate,
                n_tasks=max(1, estimate.n_tasks),
                delta=delta,
                alpha=analysis.alpha,
                power=analysis.power,
                variable_tasks=int(varied[0]) if varied and varied[0] is not None else None,
            )
            fields = {**asdict(budget), "covers": budget.covers or Covers.NOTHING, "n_tasks": estimate.n_tasks}
            yield {
                **protocol_fields(shop), "stack": row["stack"], "condition": row["condition"], "first_delta": index == 0, **fields,
            }  # fmt: skip
