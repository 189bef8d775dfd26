"""A shard of reverification: frozen candidates through the verifier once more. Nothing is generated: only verification varies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evalnoise.store.partition import PartitionWrite
from schemas.records import Check, Outcome, Reason
from schemas.tables import EXECUTIONS, OUTCOMES
from tasks.again import cells_to_make, seal
from tasks.frozen import SealedCell, sealed_cells, source_digests
from tasks.generate import gather_cells
from tasks.plan import Shard, source_shards
from tasks.services import Failures, refuse_failures
from tasks.verify import execution_row, outcome_row, verify
from tasks.workshop import Workshop


@dataclass(frozen=True, slots=True)
class _Verified:
    """What a cell leaves."""

    outcome: dict[str, Any]
    execution: dict[str, Any] | None
    """None where there was nothing to verify."""


def reverify_shard(shop: Workshop, shard: Shard, *, last_chance: bool = True) -> None:
    """Verify the final candidates of the source's cells afresh, and seal the verdicts.

    Raises UnfinishedShardError when the verifier failed for some and this is not the last chance; ExecutorError and StoreError.
    """
    shop.progress.stage(shard.name)
    sources = source_shards(shop.plan.study, shard, shop.plan.protocol.n_tasks)
    wanted = {task.id for task in cells_to_make(shop, shard)}
    frozen = [cell for source in sources for cell in sealed_cells(shop, source) if cell.task.id in wanted]
    cells = shop.run(gather_cells(_verify(shop, shard, cell) for cell in frozen))
    broken = sum(cell.outcome["reason"] == Reason.INFRASTRUCTURE.value for cell in cells)
    refuse_failures(shop, shard, Failures(verifier=broken), cells=len(cells), last_chance=last_chance)
    keys: dict[str, str | int] = {"stack": shard.stack, "condition": shard.condition, "replicate": shard.replicate}
    seal(
        shop,
        shard,
        [
            PartitionWrite(EXECUTIONS, keys, [cell.execution for cell in cells if cell.execution is not None], shard.part),
            PartitionWrite(OUTCOMES, keys, [cell.outcome for cell in cells], shard.part),
        ],
        inputs=source_digests(shop, sources),
    )


async def _verify(shop: Workshop, shard: Shard, cell: SealedCell) -> _Verified:
    check, execution = _unverified(cell), None
    if cell.candidate is not None and cell.outcome is not Outcome.UNMEASURED:
        check = await verify(shop, shard.stack, cell.task, shop.reference(shard.stack, cell.task), cell.candidate)
        execution = execution_row(shop, shard.stack, cell.task, attempt=cell.attempt, candidate=cell.candidate, check=check)
    shop.progress.cell(check.outcome)
    return _Verified(outcome_row(shop, cell.task, check, attempts=0, candidate=cell.candidate), execution)


def _unverified(cell: SealedCell) -> Check:
    """What a cell comes to where there is nothing to verify: no outcome without one of the source, no candidate as there."""
    if cell.reason is Reason.REFERENCE_UNUSABLE:
        return Check(Outcome.UNMEASURED, cell.reason)
    if cell.outcome is Outcome.UNMEASURED:
        return Check(Outcome.UNMEASURED, Reason.SOURCE_UNMEASURED)
    return Check(Outcome.FAIL, cell.reason)
