"""Rows of `checks`: what a reader of the numbers must know, found by SQL over the sealed tables and by the plan itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalnoise.recordings.opening import recorded_order
from schemas.checks import check_queries
from schemas.provider import RecordingProvider
from schemas.responses import MaxShare
from tasks.recorded import recorded_findings
from tasks.retry import rerun_findings
from tasks.workshop import Workshop

Row = dict[str, Any]
_COLUMNS = ("stack", "condition", "severity", "blocks", "sentence", "value")


def check_rows(shop: Workshop, connection: Any) -> Iterator[Row]:
    """Every finding of every check. A query that finds nothing gives no row."""
    protocol = {"study": shop.plan.study.study, "protocol": shop.plan.digest, "benchmark": shop.plan.benchmark.name}
    for name, query in check_queries().items():
        found = connection.execute(query, {"study": protocol["study"], "protocol": protocol["protocol"]}).fetchall()
        for row in found:
            yield {**protocol, "check": name, **_allowed(shop, name, dict(zip(_COLUMNS, row, strict=True)))}
    for check, stack, condition, sentence, number in recorded_findings(shop, connection):
        yield {
            **protocol, "check": check, "stack": stack, "condition": condition, "severity": "error", "blocks": True,
            "sentence": sentence, "value": number,
        }  # fmt: skip
    for check, sentence, severity, value in (*_plan_findings(shop), *rerun_findings(shop)):
        yield {
            **protocol, "check": check, "stack": "", "condition": "", "severity": severity, "blocks": False, "sentence": sentence,
            "value": value,
        }  # fmt: skip


def _allowed(shop: Workshop, check: str, row: Row) -> Row:
    """The finding, as a warning where it is about a share of answers for which the study raises the limit: that is a decision."""
    if not row["blocks"] or check not in MaxShare.model_fields:
        return row
    limit: float = getattr(shop.plan.study.limits.max_share, check)
    if limit <= MaxShare.model_fields[check].default:
        return row
    said = f"{row['sentence']} The study allows that: limits.max_share.{check} is {limit:g}."
    return row | {"severity": "warning", "blocks": False, "sentence": said}


def _plan_findings(shop: Workshop) -> Iterator[tuple[str, str, str, None]]:
    study = shop.plan.study
    if study.replicates < 2:
        yield "one_replicate", "One replicate has no variance: w, budgets and benchmark intervals are undefined.", "warning", None
    for stack in study.stacks:
        if shop.plan.executors[stack.name].kind == "process":
            sentence = f"Stack {stack.name} ran its candidates as processes of this machine, which is no sandbox."
            yield "no_sandbox", sentence, "warning", None
    unordered = [
        condition.name
        for condition in study.conditions
        # The replicates of a reverification are in the order of their time.
        if condition.kind != "reverify" and any(_unordered(study.provider(stack, condition)) for stack in study.stacks)
    ]
    if unordered:
        names = ", ".join(unordered)
        yield (
            "order_unknown",
            f"The recorded order under {names} is no time order: statistics of order are undefined there.",
            "info",
            None,
        )


def _unordered(provider: Any) -> bool:
    return isinstance(provider, RecordingProvider) and recorded_order(provider) == "unknown"
