"""A study's stages in their order, without Prefect: the same functions that the DAG's nodes call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import evalnoise
from evalnoise.store.store import Store
from schemas.study import Study
from tasks.analyse import SHARD as ANALYSIS
from tasks.analyse import analyse
from tasks.freeze import resolve
from tasks.judge import judge_shard
from tasks.load import SHARD as TASKS
from tasks.load import write_tasks
from tasks.plan import judge_shards, measured_shards, probe_shards
from tasks.preflight import run_preflight, shard_name
from tasks.probes import probe_judge
from tasks.progress import NoWatcher, Progress
from tasks.record import record_source
from tasks.reverify import reverify_shard
from tasks.shard import measure_shard
from tasks.workshop import Workshop

PROCESS = {"executor": "process", "unsandboxed_providers": ["openai", "recording"], "workers": 1}


def body(**changes: Any) -> dict[str, Any]:
    """An oracle study of three conditions, small enough for a test."""
    plain: dict[str, Any] = {
        "study": "small",
        "benchmark": {"name": "starter"},
        "stacks": [
            {
                "name": "a",
                "model": "m",
                "provider": {"name": "oracle", "seed": 5, "stable": 0.0, "alpha": 1.0, "beta": 1.0},
                "retry": "resample",
                "verifier": PROCESS,
            }
        ],
        "conditions": [
            {"name": "live", "kind": "live"},
            {"name": "cold", "kind": "temperature-zero"},
            {"name": "replay", "kind": "replay", "source": {"condition": "live"}},
        ],
        "replicates": 3,
        "analysis": {"resamples": 500, "deltas": [0.1, 0.3]},
    }
    return plain | changes


@contextmanager
def opened(study: Study, root: Path, *, limit: int | None = 6) -> Iterator[Workshop]:
    """A workshop with the protocol frozen, the tasks loaded and preflight done."""
    plan = resolve(study, limit=limit)
    store = Store.open(root)
    with Workshop(plan, store, Progress(NoWatcher())) as shop:
        store.freeze(plan.protocol)
        shards = [*probe_shards(study), *measured_shards(study, plan.protocol.n_tasks), *judge_shards(study, plan.protocol.n_tasks)]
        preflights = [shard_name(stack.name) for stack in study.stacks]
        shop.study_store.plan([TASKS, *preflights, *(shard.name for shard in shards), ANALYSIS])
        write_tasks(shop)
        for stack in study.stacks:
            run_preflight(shop, stack.name)
        yield shop


def run(study: Study, root: Path, *, limit: int | None = 6, analysed: bool = True) -> str:
    """Every stage, and the protocol's digest. The analysis takes half the time: without it there are no estimates and no checks."""
    with opened(study, root, limit=limit) as shop:
        n_tasks = shop.plan.protocol.n_tasks
        for shard in probe_shards(study):
            probe_judge(shop, shard)
        recorded: set[tuple[str, str]] = set()
        for shard in measured_shards(study, n_tasks):
            condition = study.condition(shard.condition)
            if condition.kind == "replay" and condition.source is not None and (shard.stack, shard.condition) not in recorded:
                record_source(shop, shard.stack, shard.condition)
                recorded.add((shard.stack, shard.condition))
            (reverify_shard if shard.purpose == "reverify" else measure_shard)(shop, shard)
        for shard in judge_shards(study, n_tasks):
            judge_shard(shop, shard)
        if analysed:
            analyse(shop)
        return shop.plan.digest


def rows(root: Path, query: str) -> list[tuple[Any, ...]]:
    """What a query over the store's views gives."""
    connection = evalnoise.connect(root)
    try:
        found: list[tuple[Any, ...]] = connection.execute(query).fetchall()
        return found
    finally:
        connection.close()
