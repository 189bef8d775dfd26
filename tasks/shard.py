"""A shard of cells: generate, verify, retry what failed, settle, seal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evalnoise.extraction import Extraction, extract
from evalnoise.prompts import render
from evalnoise.providers.base import CallContext, Provider
from evalnoise.store.journal import Journal
from evalnoise.store.partition import PartitionWrite
from schemas.errors import ReplayMissError
from schemas.records import Check, Outcome, Reason, Reference, ResponseClass, Task
from schemas.tables import CALLS, EXECUTIONS, GENERATIONS, OUTCOMES
from tasks.again import cells_to_make, seal
from tasks.generate import call, call_rows, gather_cells, generation_row
from tasks.plan import Shard
from tasks.services import may_work_later, refuse_failures
from tasks.verify import execution_row, outcome_row, verify
from tasks.workshop import Workshop

_ATTEMPTS = {"none": 1, "resample": 2}


@dataclass(slots=True)
class _Cell:
    """What a cell has left so far."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    generations: list[dict[str, Any]] = field(default_factory=list)
    executions: list[dict[str, Any]] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)
    may_work_later: bool = False
    """Whether its last call failed for a reason that can pass."""


@dataclass(frozen=True, slots=True)
class _Bench:
    """What the cells of a shard share."""

    shop: Workshop
    shard: Shard
    provider: Provider
    journal: Journal
    prompt: str
    attempts: int


def measure_shard(shop: Workshop, shard: Shard, *, last_chance: bool = True) -> None:
    """Measure and seal a shard.

    Raises UnfinishedShardError when a service failed for some cells and this is not the last chance; and what stops a study:
    ProviderError, ExecutorError, ReplayMissError, StoreError.
    """
    shop.progress.stage(shard.name)
    condition = shop.plan.study.condition(shard.condition)
    stack = shop.stack(shard.stack)
    journal = shop.study_store.journal(shard.name)
    bench = _Bench(shop, shard, shop.provider(shard.stack, condition), journal, stack.prompt, _ATTEMPTS[stack.retry])
    cells = shop.run(_measure(bench, cells_to_make(shop, shard)))
    down = sum(cell.may_work_later for cell in cells)
    broken = sum(cell.outcome["reason"] == Reason.INFRASTRUCTURE.value for cell in cells)
    refuse_failures(shop, shard, cells=len(cells), provider=down, verifier=broken, last_chance=last_chance)
    keys: dict[str, str | int] = {"stack": shard.stack, "condition": shard.condition, "replicate": shard.replicate}
    seal(
        shop,
        shard,
        [
            PartitionWrite(CALLS, keys, [row for cell in cells for row in cell.calls], shard.part),
            PartitionWrite(GENERATIONS, keys, [row for cell in cells for row in cell.generations], shard.part),
            PartitionWrite(EXECUTIONS, keys, [row for cell in cells for row in cell.executions], shard.part),
            PartitionWrite(OUTCOMES, keys, [cell.outcome for cell in cells], shard.part),
        ],
        inputs=[shop.plan.digest],
    )


async def _measure(bench: _Bench, tasks: tuple[Task, ...]) -> list[_Cell]:
    return await gather_cells(_measure_cell(bench, task) for task in tasks)


async def _measure_cell(bench: _Bench, task: Task) -> _Cell:
    cell = _Cell()
    reference = bench.shop.reference(bench.shard.stack, task)
    check, attempts, candidate = Check(Outcome.UNMEASURED, Reason.REFERENCE_UNUSABLE, reference.reason.value), 0, None
    if reference.outcome is Outcome.PASS:
        for attempt in range(bench.attempts):
            check, candidate = await _attempt(bench, cell, task, reference, attempt)
            attempts = attempt + 1
            if check.outcome is not Outcome.FAIL:
                break
    cell.outcome = outcome_row(bench.shop, task, check, attempts=attempts, candidate=candidate)
    bench.shop.progress.cell(check.outcome)
    return cell


async def _attempt(bench: _Bench, cell: _Cell, task: Task, reference: Reference, attempt: int) -> tuple[Check, str | None]:
    shard, shop = bench.shard, bench.shop
    context = CallContext(task, shard.stack, shard.condition, shard.replicate, attempt, reference, None)
    try:
        made = await call(shop, bench.provider, bench.journal, render(bench.prompt, task=task), context)
    except ReplayMissError as error:
        if attempt == 0:
            raise
        # The source passed at its first attempt and this replay did not: there is no recorded retry, and none is invented.
        return Check(Outcome.UNMEASURED, Reason.REPLAY_MISS, str(error)), None
    if bench.provider.journalled:
        cell.calls += call_rows(shop, made, "generate")
    failed = made.response.response_class in (ResponseClass.INFRASTRUCTURE, ResponseClass.MALFORMED)
    extraction = Extraction(None, "none") if failed else extract(made.response.text, task)
    cell.generations.append(generation_row(shop, made, bench.provider.occurrence(context), extraction))
    if failed:
        cell.may_work_later = may_work_later(made.response)
        return Check(Outcome.UNMEASURED, Reason.PROVIDER, made.response.error), None
    if extraction.candidate is None:
        return Check(Outcome.FAIL, Reason.NO_CANDIDATE, made.response.response_class.value), None
    check = await verify(shop, shard.stack, task, reference, extraction.candidate)
    cell.executions.append(execution_row(shop, shard.stack, task, attempt=attempt, candidate=extraction.candidate, check=check))
    return check, extraction.candidate
