"""Frozen candidates: the final candidates of sealed cells, for the conditions that judge them or verify them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalnoise.canonical import restore_surrogates, sha256_text
from schemas.records import Outcome, Reason, Task
from schemas.tables import GENERATIONS, OUTCOMES
from tasks.plan import Shard
from tasks.workshop import Workshop


@dataclass(frozen=True, slots=True)
class SealedCell:
    """A cell that no longer changes, and what it ended with."""

    task: Task
    outcome: Outcome
    reason: Reason
    attempt: int
    """The last attempt, from 0; -1 where none was made."""
    candidate: str | None
    """The candidate of that attempt; None where there was none."""


def sealed_cells(shop: Workshop, source: Shard) -> list[SealedCell]:
    """The cells of a sealed shard in the benchmark's order, with their final candidates."""
    texts = {
        row["candidate_sha256"]: _candidate(row)
        for row in shop.study_store.read_shard(GENERATIONS, source.name).to_pylist()
        if row["candidate_sha256"] is not None
    }
    outcomes = {row["task_id"]: row for row in shop.study_store.read_shard(OUTCOMES, source.name).to_pylist()}
    return [_cell(task, outcomes[task.id], texts) for task in shop.tasks(source.start, source.stop)]


def source_digests(shop: Workshop, sources: Sequence[Shard]) -> list[str]:
    """SHA-256 of the sealed files that the cells are read from: what a shard that stands on them was made from."""
    tables = (GENERATIONS, OUTCOMES)
    return [file.sha256 for source in sources for table in tables for file in shop.study_store.shard_files(table, source.name)]


def _cell(task: Task, row: dict[str, Any], texts: dict[str, str]) -> SealedCell:
    digest = row["candidate_sha256"]
    candidate = None if digest is None else texts[digest]
    return SealedCell(task, Outcome(row["outcome"]), Reason(row["reason"]), row["attempts"] - 1, candidate)


def _candidate(row: dict[str, Any]) -> str:
    stored: str = row["candidate"]
    # The column is escaped only where the candidate itself held lone surrogates; its digest tells.
    return restore_surrogates(stored, escaped=sha256_text(stored) != row["candidate_sha256"])
