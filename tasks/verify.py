"""Verification: a candidate through the stack's verifier, and the rows that it and its cell leave."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from evalnoise.canonical import sha256_text
from schemas.records import Check, Outcome, Reference, Task
from tasks.generate import storable
from tasks.workshop import Workshop

_SCORES = {Outcome.PASS: 1.0, Outcome.FAIL: 0.0, Outcome.UNMEASURED: None}


async def verify(shop: Workshop, stack: str, task: Task, reference: Reference, candidate: str) -> Check:
    """The verdict on a candidate; waits for a free worker without blocking the loop."""
    check = await asyncio.wrap_future(shop.verifier(stack).check(task, reference, candidate))
    shop.progress.check(check)
    return check


def execution_row(shop: Workshop, stack: str, task: Task, *, attempt: int, candidate: str, check: Check) -> dict[str, Any]:
    """The row of `executions`."""
    info = shop.plan.executors[stack]
    return {
        **shop.lineage(task),
        "attempt": attempt,
        "candidate_sha256": sha256_text(candidate),
        "outcome": check.outcome.value,
        "reason": check.reason.value,
        "detail": storable(check.detail),
        "base_outcome": check.base_outcome and check.base_outcome.value,
        "mutated_inputs": check.mutated_inputs,
        "checker": shop.plan.checkers[stack],
        "executor": info.kind,
        "rootfs": info.rootfs,
        "python": info.python,
        "image_id": info.image_id,
        "wall_seconds": check.wall_seconds,
        "cpu_seconds": check.cpu_seconds,
        "cpu_limit_seconds": check.cpu_limit_seconds,
        "limit_share": check.limit_share,
        "peak_memory_bytes": check.peak_memory_bytes,
        "load": check.load,
        "container": check.container,
        "rechecks": json.dumps(list(check.rechecks), sort_keys=True),
        "leftovers": list(check.leftovers),
    }


def outcome_row(
    shop: Workshop, task: Task, check: Check, *, attempts: int, candidate: str | None, response_class: str = ""
) -> dict[str, Any]:
    """The row of `outcomes`: what the cell's last check came to, beside the class of the answer that it was about."""
    return {
        **shop.lineage(task),
        "outcome": check.outcome.value,
        "reason": check.reason.value,
        "response_class": response_class,
        "score": _SCORES[check.outcome],
        "attempts": attempts,
        "candidate_sha256": None if candidate is None else sha256_text(candidate),
    }
