"""A store with protocols of chosen stacks and conditions, and outcomes written as letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalnoise.store.partition import PartitionWrite
from evalnoise.store.store import Store, StudyStore
from schemas.protocol import Protocol
from schemas.tables import BUDGETS, CHECKS, CONTRASTS, ESTIMATES, OUTCOMES, TASKS, Table
from tests.support.small_store import protocol, row

LETTERS = {"p": ("pass", 1.0), "f": ("fail", 0.0), "h": ("pass", 0.5), "u": ("unmeasured", None)}
"""Passed, failed, passed with a score of one half, unmeasured."""
LIVE = ({"name": "live", "kind": "live"},)


def _row(table: Table, made: StudyStore, position: int, task: str, **values: Any) -> dict[str, Any]:
    return row(table, made, 0, **values) | {"task_id": task, "position": position}


def frozen_plan(
    study: str, *, stacks: Sequence[Mapping[str, Any]], conditions: Sequence[Mapping[str, Any]], n_tasks: int, seed: int
) -> Protocol:
    """What `measured` freezes."""
    facts = {"study": study, "night": None, "seed": seed, "stacks": list(stacks), "conditions": list(conditions)}
    return protocol(study, n_tasks=n_tasks).model_copy(update={"study": facts})


def measured(
    root: Path,
    study: str,
    cells: Mapping[tuple[str, str], Sequence[str]],
    *,
    stacks: Sequence[Mapping[str, Any]] = ({"name": "a"},),
    conditions: Sequence[Mapping[str, Any]] = LIVE,
    tasks: Sequence[str] = (),
    complete: bool = True,
    checks: Sequence[Mapping[str, Any]] = (),
    seed: int = 0,
) -> StudyStore:
    """Freeze a protocol and seal its cells: by stack and condition a text per task, a letter per replicate (a space: not sealed).

    `seed` makes another protocol of the same study.
    """
    store = Store.open(root)
    names = tasks or [f"t/{i}" for i in range(max(map(len, cells.values()), default=0))]
    frozen = frozen_plan(study, stacks=stacks, conditions=conditions, n_tasks=len(names), seed=seed)
    store.freeze(frozen)
    made = store.study(study, frozen.digest())
    shards = {f"{stack}-{condition}-{r}" for (stack, condition), texts in cells.items() for r in range(max(map(len, texts)))}
    made.plan(["tasks", *sorted(shards), *(["analyse"] if complete else ["analyse", "more"])])
    rows = [_row(TASKS, made, i, name, cluster=f"c{i % 2}") for i, name in enumerate(names)]
    made.commit("tasks", [PartitionWrite(TASKS, {}, rows, "000")])
    for (stack, condition), texts in cells.items():
        for replicate in range(max(map(len, texts))):
            outcomes = []
            for i, text in enumerate(texts):
                letter = text[replicate : replicate + 1].strip()
                if letter:
                    outcome, score = LETTERS[letter]
                    outcomes.append(_row(OUTCOMES, made, i, names[i], outcome=outcome, score=score, reason="x"))
            keys = {"stack": stack, "condition": condition, "replicate": replicate}
            made.commit(f"{stack}-{condition}-{replicate}", [PartitionWrite(OUTCOMES, keys, outcomes, "000")])
    found = [row(CHECKS, made, 0, **check) for check in checks]
    writes = [PartitionWrite(table, {}, [], "all") for table in (ESTIMATES, CONTRASTS, BUDGETS)]
    made.commit("analyse", [*writes, PartitionWrite(CHECKS, {}, found, "all")])
    return made
