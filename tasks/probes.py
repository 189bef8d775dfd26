"""Probes of a judge: candidates whose verdict is known, asked once per protocol and judge condition, before all else.

They go through the same sender as verdicts: journalled, paid from the same purse, in the same ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evalnoise.canonical import escape_surrogates
from evalnoise.judging import verdict_of
from evalnoise.prompts import render
from evalnoise.providers.base import CallContext
from evalnoise.store.journal import Journal
from evalnoise.store.partition import PartitionWrite
from schemas.errors import DataError, ProviderError, UnfinishedShardError
from schemas.probes import EMPTY, KNOWN_GOOD, REFUSAL, REFUSAL_TEXT, Probes
from schemas.records import Outcome, ResponseClass, Task, Verdict
from schemas.study import JudgeCondition
from schemas.tables import CALLS, PROBES
from tasks.again import seal
from tasks.generate import Call, call, call_rows, gather_cells
from tasks.plan import Shard
from tasks.services import NOTHING_SEALED, may_work_later
from tasks.workshop import Workshop

PURPOSE = "probe"
"""Of its calls, in the table `calls`."""


@dataclass(frozen=True, slots=True)
class Known:
    """A candidate whose verdict is known."""

    number: int
    """From 1, in the order of the study; stands for the attempt, which of verdicts is 0."""
    name: str
    task: Task
    candidate: str
    expected: Outcome
    """Pass, or fail: not pass."""


def probe_judge(shop: Workshop, shard: Shard, *, last_chance: bool = True) -> None:
    """Put the probes to the shard's judge condition and seal what it said.

    Raises UnfinishedShardError when the service failed for some and this is not the last chance, ProviderError when it is: a probe
    is never sealed without an answer. Else as `tasks.shard.measure_shard`.
    """
    shop.progress.stage(shard.name)
    judge = shop.plan.study.judge
    if judge is None or judge.probes is None:
        raise ValueError(f"{shard.name}: the study has no probes")
    probes, condition = judge.probes, {c.name: c for c in judge.conditions}[shard.condition]
    journal = shop.study_store.journal(shard.name)
    known = list(known_verdicts(shop, shard.stack, probes))
    made = shop.run(gather_cells(_ask(shop, shard, condition, journal, one) for one in known))
    _refuse_unanswered(shop, shard, [asked for asked, _ in made], last_chance=last_chance)
    rows = [row | {"required": probes.required} for _, row in made]
    cell: dict[str, str | int] = {"stack": shard.stack, "condition": shard.condition, "replicate": shard.replicate}
    seal(
        shop,
        shard,
        [
            PartitionWrite(CALLS, cell, [row for asked, _ in made for row in call_rows(shop, asked, PURPOSE)], "probes"),
            PartitionWrite(PROBES, {}, rows, shard.condition),
        ],
        inputs=[shop.plan.digest],
    )
    shop.progress.cell(Outcome.PASS)
    failed = [row["probe"] for row in rows if not row["sound"]]
    if failed:
        shop.progress.say(f"judge {shard.condition} fails {len(failed)} of {len(rows)} probes: {', '.join(failed)}")


def known_verdicts(shop: Workshop, stack: str, probes: Probes) -> Iterator[Known]:
    """The probes in order, the built-in ones first. Raises DataError when no canonical solution passed preflight."""
    tasks = shop.plan.benchmark.tasks
    usable = next((task for task in tasks if shop.reference(stack, task).outcome is Outcome.PASS), None)
    if usable is None:
        raise DataError(
            f"probes of stack {stack}",
            expected="a canonical solution that passes preflight",
            found="none",
            remedy="`evalnoise sql 'from preflight'` says why.",
        )
    found = []
    if probes.built_in:
        found += [
            (EMPTY, usable, "", "fail"),
            (REFUSAL, usable, REFUSAL_TEXT, "fail"),
            (KNOWN_GOOD, usable, usable.reference, "pass"),
        ]
    by_id = {task.id: task for task in tasks}
    found += [(own.name, usable if own.task is None else by_id[own.task], own.candidate, own.expected) for own in probes.own]
    for number, (name, task, candidate, expected) in enumerate(found, start=1):
        yield Known(number, name, task, candidate, Outcome(expected))


async def _ask(
    shop: Workshop, shard: Shard, condition: JudgeCondition, journal: Journal, known: Known
) -> tuple[Call, dict[str, Any]]:
    context = CallContext(known.task, shard.stack, shard.condition, shard.replicate, known.number, None, known.expected)
    prompt = render(condition.prompt, task=known.task, candidate=known.candidate)
    made = await call(shop, shop.judge_provider(condition), journal, prompt, context)
    parsed = verdict_of(made.response, read_truncated=condition.truncated == "read")
    row = {
        **shop.lineage(known.task),
        "stack": shard.stack,
        "condition": shard.condition,
        "number": known.number,
        "probe": known.name,
        "candidate": escape_surrogates(known.candidate)[0],
        "expected": known.expected.value,
        "verdict": parsed.verdict.value,
        "sound": (parsed.verdict is Verdict.PASS) == (known.expected is Outcome.PASS),
        "reason": parsed.reason,
        "response_class": made.response.response_class.value,
        "text": escape_surrogates(made.response.text)[0],
        "request_key": made.request.key(),
    }
    return made, row


def _refuse_unanswered(shop: Workshop, shard: Shard, made: list[Call], *, last_chance: bool) -> None:
    lost = sum(may_work_later(one.response) or one.response.response_class is ResponseClass.MALFORMED for one in made)
    if not lost:
        return
    if not last_chance:
        shop.progress.forget(shard.name, 0, 0)
    kind = ProviderError if last_chance else UnfinishedShardError
    raise kind(
        f"shard {shard.name}",
        expected="the judge to answer its probes",
        found=f"{lost} of {len(made)} without an answer",
        remedy=NOTHING_SEALED,
    )
