"""Judging: frozen candidates of the replay condition, judged again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evalnoise.canonical import escape_surrogates, sha256_text
from evalnoise.judging import parse_verdict, verdict_of
from evalnoise.prompts import render
from evalnoise.providers.base import CallContext
from evalnoise.store.journal import Journal
from evalnoise.store.partition import PartitionWrite
from schemas.records import Outcome, ResponseClass, Task, Verdict
from schemas.study import JudgeCondition
from schemas.tables import CALLS, VERDICTS
from tasks.again import cells_to_make, seal
from tasks.frozen import sealed_cells
from tasks.generate import Call, call, call_rows, gather_cells
from tasks.plan import Shard
from tasks.services import Failures, count_earlier, may_work_later, refuse_failures
from tasks.workshop import Workshop


@dataclass(frozen=True, slots=True)
class Frozen:
    """A candidate that no longer changes, and what execution said of it."""

    task: Task
    candidate: str
    sha256: str
    executed: Outcome


def judge_shard(shop: Workshop, shard: Shard, *, last_chance: bool = True) -> None:
    """Judge the shard's frozen candidates once and seal the verdicts. Raises as `tasks.shard.measure_shard` does."""
    shop.progress.stage(shard.name)
    judge = shop.plan.study.judge
    if judge is None:
        raise ValueError(f"{shard.name}: the study has no judge")
    condition = {c.name: c for c in judge.conditions}[shard.condition]
    wanted = {task.id for task in cells_to_make(shop, shard)}
    candidates = frozen_candidates(shop, shard)
    count_earlier(shop, shard)
    journal = shop.study_store.journal(shard.name)
    judged = shop.run(
        gather_cells(_judge(shop, shard, condition, journal, frozen) for frozen in candidates if frozen.task.id in wanted)
    )
    failures = Failures(
        down=sum(may_work_later(made.response) for made, _ in judged),
        malformed=sum(made.response.response_class is ResponseClass.MALFORMED for made, _ in judged),
    )
    refuse_failures(shop, shard, failures, cells=len(judged), last_chance=last_chance)
    keys: dict[str, str | int] = {"condition": shard.condition}
    cell: dict[str, str | int] = {"stack": shard.stack, "condition": shard.condition, "replicate": shard.replicate}
    seal(
        shop,
        shard,
        [
            PartitionWrite(CALLS, cell, [row for made, _ in judged for row in call_rows(shop, made, "judge")], shard.part),
            PartitionWrite(VERDICTS, keys | {"repeat": shard.replicate}, [row for _, row in judged], f"{shard.stack}-{shard.part}"),
        ],
        inputs=[frozen.sha256 for frozen in candidates],
    )


def frozen_candidates(shop: Workshop, shard: Shard) -> list[Frozen]:
    """The final candidates of the judged replay condition's replicate 0, with their executed outcomes.

    Cells that ended unmeasured or without a candidate have nothing to judge and are left out.
    """
    replay = Shard(shard.stack, shop.plan.study.judged_condition().name, 0, shard.start, shard.stop)
    return [
        Frozen(cell.task, cell.candidate, sha256_text(cell.candidate), cell.outcome)
        for cell in sealed_cells(shop, replay)
        if cell.outcome is not Outcome.UNMEASURED and cell.candidate is not None
    ]


async def _judge(
    shop: Workshop, shard: Shard, condition: JudgeCondition, journal: Journal, frozen: Frozen
) -> tuple[Call, dict[str, Any]]:
    context = CallContext(frozen.task, shard.stack, shard.condition, shard.replicate, 0, None, frozen.executed)
    prompt = render(condition.prompt, task=frozen.task, candidate=frozen.candidate)
    made = await call(shop, shop.judge_provider(condition), journal, prompt, context)
    parsed = verdict_of(made.response, read_truncated=condition.truncated == "read")
    shop.progress.cell(Outcome.UNMEASURED if parsed.verdict is Verdict.UNPARSED else Outcome.PASS)
    row = {
        **shop.lineage(frozen.task),
        "stack": shard.stack,
        "candidate_sha256": frozen.sha256,
        "verdict": parsed.verdict.value,
        "confidence": parsed.confidence,
        "reason": parsed.reason,
        "response_class": made.response.response_class.value,
        "stated": parse_verdict(made.response.text).verdict.value,
        "text": escape_surrogates(made.response.text)[0],
        "request_key": made.request.key(),
        "reference_outcome": frozen.executed.value,
    }
    return made, row
