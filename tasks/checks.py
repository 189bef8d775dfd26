"""Rows of `checks`: what a reader of the numbers must know, found by SQL over the sealed tables and by the plan itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from evalnoise.readers.counts import counted_once
from evalnoise.recordings.opening import recorded_order
from schemas.checks import check_queries
from schemas.provider import RecordingProvider
from schemas.responses import MaxShare
from schemas.study import Condition, Stack, Study
from tasks.analysis.components import Graded, component_findings
from tasks.recorded import recorded_findings
from tasks.retry import rerun_findings
from tasks.workshop import Workshop

Row = dict[str, Any]
_COLUMNS = ("stack", "condition", "severity", "blocks", "sentence", "value")


def check_rows(shop: Workshop, connection: Any, grades: Sequence[Graded] = ()) -> Iterator[Row]:
    """Every finding of every check. A query that finds nothing gives no row; `grades` are for the findings about components."""
    protocol = {"study": shop.plan.study.study, "protocol": shop.plan.digest, "benchmark": shop.plan.benchmark.name}
    for name, row in sql_findings(connection, protocol["study"], protocol["protocol"]):
        yield {**protocol, "check": name, **_allowed(shop, name, row)}
    for check, stack, condition, sentence, number in recorded_findings(shop, connection):
        yield {
            **protocol, "check": check, "stack": stack, "condition": condition, "severity": "error", "blocks": True,
            "sentence": sentence, "value": number,
        }  # fmt: skip
    for stack, condition, sentence in _order_findings(shop.plan.study):
        yield {
            **protocol, "check": "order_unknown", "stack": stack, "condition": condition, "severity": "info", "blocks": False,
            "sentence": sentence, "value": None,
        }  # fmt: skip
    for check, stack, condition, severity, sentence, value in component_findings(grades):
        yield {
            **protocol, "check": check, "stack": stack, "condition": condition, "severity": severity, "blocks": False,
            "sentence": sentence, "value": value,
        }  # fmt: skip
    for check, sentence, severity, value in (*_plan_findings(shop), *rerun_findings(shop)):
        yield {
            **protocol, "check": check, "stack": "", "condition": "", "severity": severity, "blocks": False, "sentence": sentence,
            "value": value,
        }  # fmt: skip


def sql_findings(connection: Any, study: str, protocol: str) -> Iterator[tuple[str, Row]]:
    """Name and finding of each check in SQL."""
    names = {"study": study, "protocol": protocol}
    # Many checks ask for counts by task.
    with counted_once(connection, study, protocol):
        for name, query in check_queries().items():
            for row in connection.execute(query, names).fetchall():
                yield name, dict(zip(_COLUMNS, row, strict=True))


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


def order_unknown(study: Study, stack: Stack, condition: Condition) -> bool:
    """Whether the replicates of a stack under a condition are in no order of time, so that statistics of order are undefined.

    Those of a reverification always are: it verifies now what may have been recorded in any order.
    """
    provider = study.provider(stack, condition)
    return condition.kind != "reverify" and isinstance(provider, RecordingProvider) and recorded_order(provider) == "unknown"


def _order_findings(study: Study) -> Iterator[tuple[str, str, str]]:
    """Stack, condition and sentence."""
    for stack, condition in product(study.stacks, study.conditions):
        if order_unknown(study, stack, condition):
            said = "the recorded order is no time order: statistics of order are undefined."
            yield stack.name, condition.name, f"{stack.name}, {condition.name}: {said}"
