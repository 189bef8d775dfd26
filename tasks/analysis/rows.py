"""What all rows of the analysis share."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from evalnoise.stats.estimate import Estimate
from tasks.workshop import Workshop

Row = dict[str, Any]


def protocol_fields(shop: Workshop) -> Row:
    """The columns that name the protocol."""
    return {"study": shop.plan.study.study, "protocol": shop.plan.digest, "benchmark": shop.plan.benchmark.name}


def estimate_row(shop: Workshop, stack: str, condition: str, name: str, estimate: Estimate) -> Row:
    """A row of `estimates`."""
    return {**protocol_fields(shop), "stack": stack, "condition": condition, "estimate": name, **asdict(estimate)}


def contrast_row(row: Row) -> Row:
    """A row of `contrasts` with what it leaves out: both sides of one stack, no standard error, no p-value."""
    return {"stack_b": row["stack"], "se": None, "p_value": None, "p_adjusted": None, **row}
