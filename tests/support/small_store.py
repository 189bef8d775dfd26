"""A store made by hand: three tasks, one stack, two conditions, two replicates, one judge; with hostile text in it."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from evalnoise.store.store import PartitionWrite, Store, StudyStore
from schemas.protocol import Protocol
from schemas.tables import CALLS, EXECUTIONS, GENERATIONS, OUTCOMES, PREFLIGHT, TASKS, VERDICTS, Table

HOSTILE = 'def f(x):\n\treturn "[bold red]x[/] \x1b[2J\x1b]0;owned\x07 \u202e \\u0000"\n'
GOOD = "def f(x):\n    return x\n"
TASK_IDS = ("Human/0", "Human/1", "Human/2")
SENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PLAN = ("tasks", "live-0", "live-1", "replay-0", "replay-1", "judge-0", "analysis")
SEALED = PLAN[:-1]


def protocol(study: str = "demo", **changes: Any) -> Protocol:
    facts: dict[str, Any] = {
        "study": {"study": study, "night": None},
        "replicates": 2,
        "limit": None,
        "benchmark": "tiny",
        "benchmark_sha256": "0" * 64,
        "benchmark_files": (),
        "n_tasks": 3,
        "recordings": {},
        "prompts": {},
        "executors": {},
        "checkers": {},
        "measurement": {},
    }
    return Protocol(**(facts | changes))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def row(table: Table, study: StudyStore, position: int, **values: Any) -> dict[str, Any]:
    """A row of a table: the values given, and something plain for the others."""
    plain = {pa.string(): "", pa.int64(): 0, pa.float64(): 0.0, pa.bool_(): False}
    base = {column.name: None if column.nullable else plain.get(column.type) for column in table.columns}
    base |= {"study": study.study, "protocol": study.protocol, "benchmark": "tiny"}
    if "task_id" in base:
        base |= {"task_id": TASK_IDS[position], "position": position}
    base |= {column.name: [] for column in table.columns if pa.types.is_list(column.type)}
    assert not values.keys() - base.keys()
    return base | values


def build(root: Path, *, study: str = "demo", replicates: int = 2) -> StudyStore:
    """Freeze and seal all but the analysis."""
    store = Store.open(root)
    frozen = protocol(study, replicates=replicates)
    store.freeze(frozen)
    made = store.study(study, frozen.digest())
    made.plan(PLAN)
    prompts = [f"Write f for task {i}.\n[red]\x1b[31m" for i in range(3)]
    tasks = [row(TASKS, made, i, kind="function", prompt=prompt, entry_point="f") for i, prompt in enumerate(prompts)]
    known = [("pass", "pass"), ("pass", "pass"), ("unmeasured", "oom")]
    preflight = [row(PREFLIGHT, made, i, stack="a", outcome=outcome, reason=reason) for i, (outcome, reason) in enumerate(known)]
    made.commit("tasks", [PartitionWrite(TASKS, {}, tasks, "000"), PartitionWrite(PREFLIGHT, {}, preflight, "000")])
    for condition in ("live", "replay"):
        for replicate in range(2):
            _commit_cells(made, condition, replicate)
    frozen_text = {"stack": "a", "candidate_sha256": digest(GOOD), "text": "x", "reference_outcome": "pass"}
    verdicts = [
        row(VERDICTS, made, 0, verdict="pass", confidence=80.0, **frozen_text),
        row(VERDICTS, made, 1, verdict="unparsed", reason="no verdict line", **frozen_text),
    ]
    made.commit("judge-0", [PartitionWrite(VERDICTS, {"condition": "judge", "repeat": 0}, verdicts, "000")])
    return made


def _commit_cells(made: StudyStore, condition: str, replicate: int) -> None:
    """Task 0 passes, task 1 fails in live's replicate 1 only, by a hostile candidate; task 2 cannot be measured."""
    keys = {"stack": "a", "condition": condition, "replicate": replicate}
    bad = (condition, replicate) == ("live", 1)
    generations, executions, outcomes, calls = [], [], [], []
    for i in range(2):
        text = HOSTILE if bad and i == 1 else GOOD
        verdict = {"outcome": "fail", "reason": "mismatch"} if text is HOSTILE else {"outcome": "pass", "reason": "pass"}
        facts = {"candidate_sha256": digest(text)}
        generations.append(row(GENERATIONS, made, i, candidate=text, response_class="complete", text=text, **facts))
        detail = "input 0: expected 1, found \x1b[5m2" if text is HOSTILE else ""
        executions.append(row(EXECUTIONS, made, i, detail=detail, rechecks="[]", **facts, **verdict))
        outcomes.append(row(OUTCOMES, made, i, score=float(verdict["outcome"] == "pass"), attempts=1, **facts, **verdict))
        calls.append(row(CALLS, made, i, provider="openai", cost_usd=0.125 if i == 0 else None, sent_at=SENT, answered_at=SENT))
    outcomes.append(row(OUTCOMES, made, 2, outcome="unmeasured", reason="reference-unusable"))
    tables = [(GENERATIONS, generations), (EXECUTIONS, executions), (OUTCOMES, outcomes)]
    if condition == "live":
        tables.append((CALLS, calls))
    made.commit(f"{condition}-{replicate}", [PartitionWrite(table, keys, rows, "000") for table, rows in tables])
