"""A shard of cells: generate, verify, retry what failed, settle, seal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evalnoise.extraction import Extraction, extract
from evalnoise.prompts import render
from evalnoise.providers.base import CallContext, Prompt, Provider
from evalnoise.store.journal import Journal
from evalnoise.store.partition import PartitionWrite
from schemas.errors import ReplayMissError
from schemas.records import Check, Outcome, Reason, Reference, Response, ResponseClass, Task
from schemas.study import Stack
from schemas.tables import CALLS, EXECUTIONS, GENERATIONS, OUTCOMES
from tasks.again import cells_to_make, seal
from tasks.answers import ATTEMPTS, next_prompt, reason_of, settled
from tasks.generate import call, call_rows, gather_cells, generation_row
from tasks.plan import Shard
from tasks.services import Failures, count_earlier, may_work_later, refuse_failures
from tasks.unused import unused_rows
from tasks.verify import execution_row, outcome_row, verify
from tasks.workshop import Workshop


@dataclass(slots=True)
class _Cell:
    """What a cell has left so far."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Of its calls, in the journal."""
    generations: list[dict[str, Any]] = field(default_factory=list)
    executions: list[dict[str, Any]] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)
    failed: Response | None = None
    """What its last call came to, if that is no answer."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """What an attempt came to."""

    check: Check
    response: Response | None = None
    """None: nothing was generated, or nothing recorded."""
    candidate: str | None = None


@dataclass(frozen=True, slots=True)
class _Bench:
    """What the cells of a shard share."""

    shop: Workshop
    shard: Shard
    provider: Provider
    journal: Journal
    stack: Stack


def measure_shard(shop: Workshop, shard: Shard, *, last_chance: bool = True) -> None:
    """Measure and seal a shard.

    Raises UnfinishedShardError when a service failed for some cells and this is not the last chance; and what stops a study:
    ProviderError, ExecutorError, ReplayMissError, ShareError, StoreError.
    """
    shop.progress.stage(shard.name)
    condition = shop.plan.study.condition(shard.condition)
    provider = shop.provider(shard.stack, condition)
    if provider.journalled:
        count_earlier(shop, shard)
    bench = _Bench(shop, shard, provider, shop.study_store.journal(shard.name), shop.stack(shard.stack))
    tasks = cells_to_make(shop, shard)
    cells = shop.run(_measure(bench, tasks))
    refuse_failures(shop, shard, _failures(cells), cells=len(cells), last_chance=last_chance)
    used = {name for cell in cells for name in cell.names}
    unused = unused_rows(shop, shard, provider, bench.journal, tasks=tasks, used=used) if provider.journalled else ()
    keys: dict[str, str | int] = {"stack": shard.stack, "condition": shard.condition, "replicate": shard.replicate}
    seal(
        shop,
        shard,
        [
            PartitionWrite(CALLS, keys, [*(row for cell in cells for row in cell.calls), *unused], shard.part),
            PartitionWrite(GENERATIONS, keys, [row for cell in cells for row in cell.generations], shard.part),
            PartitionWrite(EXECUTIONS, keys, [row for cell in cells for row in cell.executions], shard.part),
            PartitionWrite(OUTCOMES, keys, [cell.outcome for cell in cells], shard.part),
        ],
        inputs=[shop.plan.digest],
    )


async def _measure(bench: _Bench, tasks: tuple[Task, ...]) -> list[_Cell]:
    return await gather_cells(_measure_cell(bench, task) for task in tasks)


def _failures(cells: list[_Cell]) -> Failures:
    failed = [(cell.failed, cell.outcome) for cell in cells if cell.failed is not None]
    malformed = [outcome for response, outcome in failed if response.response_class is ResponseClass.MALFORMED]
    return Failures(
        down=sum(may_work_later(response) for response, _ in failed),
        malformed=sum(outcome["outcome"] == Outcome.UNMEASURED.value for outcome in malformed),
        verifier=sum(cell.outcome["reason"] == Reason.INFRASTRUCTURE.value for cell in cells),
    )


async def _measure_cell(bench: _Bench, task: Task) -> _Cell:
    cell = _Cell()
    reference = bench.shop.reference(bench.shard.stack, task)
    tried = _Tried(Check(Outcome.UNMEASURED, Reason.REFERENCE_UNUSABLE, reference.reason.value))
    attempts = 0
    if reference.outcome is Outcome.PASS:
        first = render(bench.stack.prompt, task=task)
        tried = await _attempt(bench, cell, task, reference, attempt=0, prompt=first)
        attempts = 1
        while attempts < ATTEMPTS[bench.stack.retry] and tried.response is not None and _to_replace(tried):
            prompt = next_prompt(bench.stack, task, first, tried.response, check=tried.check, candidate=tried.candidate)
            tried = await _attempt(bench, cell, task, reference, attempt=attempts, prompt=prompt)
            attempts += 1
    answered = tried.response.response_class.value if tried.response else ""
    cell.outcome = outcome_row(bench.shop, task, tried.check, attempts=attempts, candidate=tried.candidate, response_class=answered)
    bench.shop.progress.cell(tried.check.outcome)
    return cell


def _to_replace(tried: _Tried) -> bool:
    """Whether the retry rule fires: for an answer that failed, not for a request that got none."""
    return tried.check.outcome is Outcome.FAIL and tried.check.reason not in (Reason.PROVIDER, Reason.MALFORMED)


async def _attempt(bench: _Bench, cell: _Cell, task: Task, reference: Reference, *, attempt: int, prompt: Prompt) -> _Tried:
    shard, shop = bench.shard, bench.shop
    context = CallContext(task, shard.stack, shard.condition, shard.replicate, attempt, reference, None)
    try:
        made = await call(shop, bench.provider, bench.journal, prompt, context)
    except ReplayMissError as error:
        if attempt == 0:
            raise
        # The source passed at its first attempt and this replay did not: there is no recorded retry, and none is invented.
        return _Tried(Check(Outcome.UNMEASURED, Reason.REPLAY_MISS, str(error)))
    response = made.response
    if bench.provider.journalled:
        cell.calls += call_rows(shop, made, "generate")
        cell.names.append(made.name)
        no_answer = response.response_class in (ResponseClass.INFRASTRUCTURE, ResponseClass.MALFORMED)
        cell.failed = response if no_answer else None
    check = settled(bench.stack.responses, response)
    extraction = extract(response.text, task) if check is None else Extraction(None, "none")
    cell.generations.append(generation_row(shop, made, bench.provider.occurrence(context), extraction))
    if check is not None:
        return _Tried(check, response)
    if extraction.candidate is None:
        return _Tried(Check(Outcome.FAIL, reason_of(response)), response)
    check = await verify(shop, shard.stack, task, reference, extraction.candidate)
    cell.executions.append(execution_row(shop, shard.stack, task, attempt=attempt, candidate=extraction.candidate, check=check))
    return _Tried(check, response, extraction.candidate)
