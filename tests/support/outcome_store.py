"""A store of outcomes made from arrays, without running anything: for commands that read arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evalnoise.store.catalog import build_catalog
from evalnoise.store.store import PartitionWrite, Store
from schemas.protocol import Protocol
from schemas.tables import OUTCOMES, TASKS
from tests.support.small_store import protocol
from tests.support.small_store import row as plain_row

NAMES = {1: ("pass", "pass"), 0: ("fail", "mismatch"), -1: ("unmeasured", "provider-error")}


def build(
    root: Path,
    arms: Mapping[tuple[str, str], Any],
    *,
    study: str = "made",
    task_ids: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    passed: float = 1.0,
    complete: bool = True,
    **analysis: Any,
) -> Protocol:
    """Seal outcomes (N, R) of 1 pass, 0 fail, -1 unmeasured by (stack, condition); conditions are live unless `kinds` says.

    `passed` is the score of a pass.
    """
    shapes = [np.asarray(table).shape for table in arms.values()]
    n_tasks, replicates = shapes[0][0], max(shape[1] for shape in shapes)
    ids = list(task_ids or [f"t{i}" for i in range(n_tasks)])
    conditions = dict.fromkeys(condition for _, condition in arms)
    plan = {
        "study": study,
        "night": None,
        "stacks": [{"name": stack} for stack in dict.fromkeys(stack for stack, _ in arms)],
        "conditions": [_condition(name, (kinds or {}).get(name, "live")) for name in conditions],
        "analysis": {"resamples": 500, "alpha": 0.05, "power": 0.8, "deltas": [0.1], "seed": 7} | analysis,
    }
    store = Store.open(root)
    frozen = protocol(study)
    frozen = frozen.model_copy(update={"study": plan, "replicates": replicates, "n_tasks": n_tasks})
    store.freeze(frozen)
    made = store.study(study, frozen.digest())
    shards = [f"{stack}-{condition}" for stack, condition in arms]
    made.plan(["tasks", *shards, *([] if complete else ["more"])])
    tasks = [plain_row(TASKS, made, 0, kind="function") | {"task_id": name, "position": i} for i, name in enumerate(ids)]
    made.commit("tasks", [PartitionWrite(TASKS, {}, tasks, "000")])
    for (stack, condition), table in arms.items():
        writes = []
        for replicate, column in enumerate(np.asarray(table).T):
            rows = [
                plain_row(OUTCOMES, made, 0, outcome=NAMES[int(y)][0], reason=NAMES[int(y)][1], score=passed * (y == 1), attempts=1)
                | {"task_id": ids[i], "position": i}
                for i, y in enumerate(column)
            ]
            keys = {"stack": stack, "condition": condition, "replicate": replicate}
            writes.append(PartitionWrite(OUTCOMES, keys, rows, "000"))
        made.commit(f"{stack}-{condition}", writes)
    build_catalog(root)
    return frozen


def _condition(name: str, kind: str) -> dict[str, Any]:
    """A replay or reverification is of the live condition."""
    return {"name": name, "kind": kind, "source": {"condition": "live"} if kind in {"replay", "reverify"} else None}
