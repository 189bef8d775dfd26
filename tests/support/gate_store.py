"""Stores for gates, made by hand: a protocol with any scores, any names and any differences, sealed without a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.store.store import PartitionWrite, Store
from schemas.protocol import Lineage
from schemas.tables import CHECKS, OUTCOMES, TASKS
from tests.support.small_store import protocol, row

PROVIDER = {"name": "openai", "temperature": 0.7, "base_url": None, "api": "chat", "seed": None}
STACK: dict[str, Any] = {
    "name": "a", "provider": PROVIDER, "model": "m", "prompt": "p", "max_tokens": 100, "retry": "none", "retry_prompt": "again",
    "responses": {"empty": "fail"}, "verifier": {"checker": "auto", "cpu_seconds": 10.0, "executor": "auto"},
}  # fmt: skip
LIVE: dict[str, Any] = {"name": "live", "kind": "live", "provider": {}, "source": None}


def seal(
    root: Path,
    study: str,
    scores: ArrayLike,
    *,
    stack: dict[str, Any] | None = None,
    condition: dict[str, Any] | None = None,
    tasks: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    prompts: Sequence[str] | None = None,
    blocking: Sequence[str] = (),
    complete: bool = True,
    predecessor: str | None = None,
    judge: Any = None,
    **frozen: Any,
) -> str:
    """Seal an arm with scores of shape (N, R), NaN for unmeasured ones, and return its protocol's digest."""
    values = np.asarray(scores, dtype=np.float64)
    n, runs = values.shape
    stacks, conditions = [STACK | (stack or {})], [LIVE | (condition or {})]
    body = {"study": study, "night": None, "stacks": stacks, "conditions": conditions, "judge": judge}
    facts: dict[str, Any] = {
        "benchmark_sha256": "1" * 64,
        "executors": {"a": {"kind": "docker", "python": "3.12"}},
        "checkers": {"a": {"name": "differential", "version": 1}},
        "measurement": {"extractor": 1, "checker": 4},
    }
    facts |= {"n_tasks": n, "replicates": runs} | frozen
    if predecessor is not None:
        facts["lineage"] = Lineage(predecessor=predecessor, why="more")
    store = Store.open(root)
    made = protocol(study, **facts).model_copy(update={"study": body})
    store.freeze(made)
    sealed = store.study(study, made.digest())
    names = list(tasks) if tasks is not None else [f"T/{i}" for i in range(n)]
    groups = list(clusters) if clusters is not None else [""] * n
    asked = list(prompts) if prompts is not None else [""] * n
    common = {"benchmark": made.benchmark}
    place = {"stack": stacks[0]["name"], "condition": conditions[0]["name"]}
    shards = ["tasks", *(f"live-{r}" for r in range(runs)), "analyse"]
    sealed.plan(shards if complete else [*shards, "live-more"])
    task = row(TASKS, sealed, 0, kind="function") | common
    rows = [task | {"task_id": names[i], "position": i, "cluster": groups[i], "prompt": asked[i]} for i in range(n)]
    sealed.commit("tasks", [PartitionWrite(TASKS, {}, rows, "000")])
    for r in range(runs):
        cells = [_cell(sealed, values[i, r]) | common | {"task_id": names[i], "position": i} for i in range(n)]
        sealed.commit(f"live-{r}", [PartitionWrite(OUTCOMES, place | {"replicate": r}, cells, "000")])
    found = [
        row(CHECKS, sealed, 0) | common | place | {"check": "made_up", "severity": "error", "blocks": True, "sentence": text}
        for text in blocking
    ]
    sealed.commit("analyse", [PartitionWrite(CHECKS, {}, found, "all")])
    return made.digest()


def _cell(sealed: Any, score: float) -> dict[str, Any]:
    if np.isnan(score):
        return row(OUTCOMES, sealed, 0, outcome="unmeasured", reason="gone")
    return row(OUTCOMES, sealed, 0, outcome="pass" if score == 1 else "fail", reason="", score=float(score), attempts=1)


def draws(rates: ArrayLike, runs: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Binary scores (N, R) at these rates."""
    p = np.asarray(rates, dtype=np.float64)
    return np.asarray((np.random.default_rng(seed).random((len(p), runs)) < p[:, None]).astype(np.float64))
