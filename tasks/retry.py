"""Retry: sealed cells without an outcome whose reason can pass are asked again, and what was made from them is made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from evalnoise.providers.base import Kind
from evalnoise.store.inherit import notes
from evalnoise.store.journal import Journal
from evalnoise.store.retries import Cells, Retry, retries
from evalnoise.store.store import StudyStore
from schemas.provider import RecordingProvider
from schemas.records import Outcome, Reason, ResponseClass, Verdict
from schemas.tables import OUTCOMES, VERDICTS
from tasks.freeze import Plan
from tasks.plan import Shard, cells_from, judge_shards, measured_shards
from tasks.unused import calls_of
from tasks.workshop import Workshop

_VERIFIER: Final = {Reason.INFRASTRUCTURE.value}
_ASKED: Final = {Reason.INFRASTRUCTURE.value, Reason.MALFORMED.value, Reason.PROVIDER.value}
_REFUSED: Final = {Kind.REFUSED.value, Kind.THIS_PROMPT.value}


def next_retry(plan: Plan, store: StudyStore) -> Retry | None:
    """What a retry would make again now; None: there is nothing that asking again could change. Raises StoreError."""
    n_tasks = plan.protocol.n_tasks
    asked: dict[str, frozenset[str]] = {}
    redone: dict[str, frozenset[str]] = {}
    for shard in (*measured_shards(plan.study, n_tasks), *judge_shards(plan.study, n_tasks)):
        if shard.name not in store.manifest.live:
            continue
        own = _askable(plan, store, shard)
        origin = cells_from(plan.study, shard)
        # Sources come before what is made from them.
        passed_on = frozenset() if origin is None else asked.get(origin.name, frozenset()) | redone.get(origin.name, frozenset())
        if own:
            asked[shard.name] = own
        if passed_on:
            redone[shard.name] = passed_on
    if not asked:
        return None
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Retry(len(retries(store.manifest)) + 1, at, asked, redone, open=True)


def begin_retry(shop: Workshop) -> None:
    """Note in the manifest what is made again, unless a retry is open; then the shop's shards make those cells alone."""
    if shop.retry is None:
        shop.retry = next_retry(shop.plan, shop.study_store)
        if shop.retry is not None:
            shop.study_store.mark("retry", **shop.retry.line())


def end_retry(shop: Workshop) -> None:
    """Note that all of it is sealed again."""
    if shop.retry is not None:
        shop.study_store.mark("retried", number=shop.retry.number, at=datetime.now(UTC).isoformat(timespec="seconds"))


def unmeasured_reasons(store: StudyStore) -> Counter[str]:
    """How many sealed cells have no outcome, by reason."""
    rows = store.read(OUTCOMES).select(["outcome", "reason"]).to_pylist()
    return Counter(row["reason"] for row in rows if row["outcome"] == Outcome.UNMEASURED.value)


def _askable(plan: Plan, store: StudyStore, shard: Shard) -> frozenset[str]:
    if shard.purpose == "judge":
        rows = store.read_shard(VERDICTS, shard.name).to_pylist()
        return frozenset(row["task_id"] for row in rows if _no_verdict(row))
    rows = [row for row in store.read_shard(OUTCOMES, shard.name).to_pylist() if row["outcome"] == Outcome.UNMEASURED.value]
    if not _asks(plan, shard):
        return frozenset(row["task_id"] for row in rows if row["reason"] in _VERIFIER)
    chosen = [row for row in rows if row["reason"] in _ASKED]
    journal = store.journal(shard.name) if any(row["reason"] == Reason.PROVIDER.value for row in chosen) else None
    return frozenset(row["task_id"] for row in chosen if journal is None or not _refused(journal, row))


def _no_verdict(row: Mapping[str, Any]) -> bool:
    """Whether the judge sent, each time, what is no answer."""
    return bool(row["verdict"] == Verdict.UNPARSED.value and row.get("response_class") == ResponseClass.MALFORMED.value)


def _asks(plan: Plan, shard: Shard) -> bool:
    """Whether the shard's cells are asked of a model, so that it can be asked again."""
    condition = plan.study.condition(shard.condition)
    stack = next(stack for stack in plan.study.stacks if stack.name == shard.stack)
    return condition.source is None and not isinstance(plan.study.provider(stack, condition), RecordingProvider)


def _refused(journal: Journal, row: Mapping[str, Any]) -> bool:
    """Whether the server would not take the request of the cell's last attempt: it would not take it again."""
    if row["reason"] != Reason.PROVIDER.value:
        return False
    # The last of them, because what a second attempt asks depends on how the first one ended.
    calls = [call for call, cell in calls_of(journal).items() if cell == (row["task_id"], row["attempts"] - 1)]
    call, number, last = calls[-1] if calls else "", 0, None
    while journal.sent_record(f"{call}/{number}") is not None:
        last = journal.answered_record(f"{call}/{number}")
        number += 1
    return last is not None and last.get("failure", {}).get("kind") in _REFUSED


def rerun_findings(shop: Workshop) -> Iterator[tuple[str, str, str, float | None]]:
    """Name, sentence, severity and value of what a reader must know of retries and of conditions that ran apart."""
    lines = notes(shop.study_store)
    for line in lines:
        if line["kind"] == "retry":
            retry = Retry.of_line(line, ended=True)
            yield "retried", _retried(shop, retry), "warning", float(retry.n_asked)
    apart = sorted({name for line in lines if line["kind"] == "only" for name in line["conditions"]})
    if apart:
        ran = "ran apart from the other conditions (`run --only`): what drifts in time is part of what differs between them"
        yield "not_interleaved", f"{', '.join(apart)} {ran}.", "info", None


def _retried(shop: Workshop, retry: Retry) -> str:
    measured = sum(_measured_now(shop.study_store, retry.asked))
    when = retry.at[:16].replace("T", " ")
    cells = "cell without an outcome was" if retry.n_asked == 1 else "cells without an outcome were"
    return (
        f"{retry.n_asked} {cells} asked again on {when} UTC, after {'it was' if retry.n_asked == 1 else 'they were'} sealed;"
        f" {measured} {'has' if measured == 1 else 'have'} one now. Such cells are not missing at random, and they are later than"
        " the others."
    )


def _measured_now(store: StudyStore, asked: Cells) -> Iterator[bool]:
    for shard, ids in asked.items():
        for table, column, without in (
            (OUTCOMES, "outcome", Outcome.UNMEASURED.value),
            (VERDICTS, "verdict", Verdict.UNPARSED.value),
        ):
            for row in store.read_shard(table, shard).to_pylist():
                if row["task_id"] in ids:
                    yield row[column] != without
