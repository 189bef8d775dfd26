"""What `evalnoise show` shows of one task, gathered from the sealed files of the newest protocol that has it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.report.numbers import counted
from evalnoise.store.files import reading
from evalnoise.store.partition import keys_of
from evalnoise.store.store import Store, StudyStore
from schemas.columns import Table
from schemas.errors import DataError, StoreError
from schemas.records import Task
from schemas.study import StarterBenchmark, Study
from schemas.tables import EXECUTIONS, GENERATIONS, OUTCOMES, PREFLIGHT, TASKS, VERDICTS

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task of one protocol."""

    study: str
    protocol: str
    task: Row
    """Its row of `tasks`."""
    preflight: list[Row]
    """By stack."""
    outcomes: list[Row]
    """By stack, condition and replicate."""
    generations: list[Row]
    """By stack, condition, replicate and attempt. Of a condition that generates nothing, those that made what it verifies."""
    executions: list[Row]
    """By stack, condition, replicate and attempt."""
    verdicts: list[Row]
    """By judge condition, stack and repeat."""
    given: Task | None = None
    """The task with its inputs, which the store does not keep; None where the benchmark is not at hand."""
    not_given: str = ""
    """Why it is not; empty otherwise."""


def find_task(root: Path, task_id: str, *, study: str | None = None, condition: str | None = None) -> TaskView:
    """The task in the protocol that was frozen last among those that have it. Raises StoreError."""
    protocols = [found for found in Store.open(root, create=False).studies() if study in (None, found.study)]
    known: set[str] = set()
    for candidate in sorted(protocols, key=lambda found: str((found.manifest.frozen or {}).get("frozen_at")), reverse=True):
        rows = _rows(candidate, TASKS, task_id)
        if rows:
            return _view(candidate, rows[0], condition)
        known.update(row["task_id"] for row in _rows(candidate, TASKS, None))
    near = difflib.get_close_matches(task_id, sorted(known), n=3, cutoff=0.5)
    where = f"{root}, study {study}" if study else str(root)
    remedy = f"Did you mean {' or '.join(near)}?" if near else 'The ids: evalnoise sql "select distinct task_id from tasks".'
    if not known:
        remedy = "No protocol there has its tasks loaded yet; `evalnoise status` lists the protocols."
    raise StoreError(where, expected=f"a task {task_id[:100]!r}", found=counted(len(known), "other task"), remedy=remedy)


def with_inputs(view: TaskView, root: Path, study: Study | None) -> TaskView:
    """The view with the task as its benchmark has it: the starter set's, or that of the study whose file was named."""
    try:
        protocol = Store.open(root, create=False).protocol(view.protocol)
    except StoreError:
        return replace(view, not_given="the protocol cannot be read")
    starter = protocol.study.get("benchmark", {}).get("name") == "starter"
    if study is None and not starter:
        return replace(view, not_given="only the benchmark's file has them: name the study's file, --study FILE")
    try:
        benchmark = load_benchmark(StarterBenchmark(name="starter") if study is None else study.benchmark)
    except DataError as error:
        return replace(view, not_given=str(error))
    if benchmark.sha256 != protocol.benchmark_sha256:
        return replace(view, not_given="the benchmark is not the one that was run")
    return replace(view, given=next((task for task in benchmark.tasks if task.id == view.task["task_id"]), None))


def _view(found: StudyStore, task: Row, condition: str | None) -> TaskView:
    task_id = task["task_id"]
    tables = {table.name: _rows(found, table, task_id) for table in (PREFLIGHT, OUTCOMES, GENERATIONS, EXECUTIONS, VERDICTS)}
    names = sorted({row["condition"] for name in ("outcomes", "generations", "verdicts") for row in tables[name]})
    if condition is not None:
        if condition not in names:
            remedy = f"There are: {', '.join(names)}." if names else "Nothing of this task is sealed yet."
            raise StoreError(f"task {task_id}", expected=f"the condition {condition!r}", found="no sealed row of it", remedy=remedy)
        for name in ("outcomes", "executions", "verdicts"):
            tables[name] = [row for row in tables[name] if row["condition"] == condition]
        tables["generations"] = _made_under(condition, tables["generations"], tables["executions"])
    return TaskView(
        study=found.study,
        protocol=found.protocol,
        task=task,
        preflight=tables["preflight"],
        outcomes=tables["outcomes"],
        generations=tables["generations"],
        executions=tables["executions"],
        verdicts=tables["verdicts"],
    )


def _made_under(condition: str, generations: list[Row], executions: list[Row]) -> list[Row]:
    """The generations of a condition; of one that generates nothing, those that made the candidates that it verified."""
    own = [row for row in generations if row["condition"] == condition]
    verified = {(row["stack"], row["candidate_sha256"]) for row in executions}
    return own or [row for row in generations if (row["stack"], row["candidate_sha256"]) in verified]


def _rows(found: StudyStore, table: Table, task_id: str | None) -> list[Row]:
    """The sealed rows of a task, or of all tasks, with their partition keys; in the order of keys, then of the table."""
    order = (*table.partition, *table.sort)
    rows = [row for file in found.files(table) for row in _file_rows(found.path / file.path, keys_of(table, file.path), task_id)]
    return sorted(rows, key=lambda row: [row[key] for key in order])


def _file_rows(path: Path, keys: dict[str, str | int], task_id: str | None) -> Iterator[Row]:
    only = None if task_id is None else [("task_id", "=", task_id)]
    try:
        with reading(path):
            # One file with its own schema: what stands in its path is added below, never guessed.
            table = pq.ParquetFile(path).read() if only is None else pq.read_table(path, filters=only, partitioning=None)
    except pa.ArrowInvalid as error:
        remedy = "Run the study again with the same command: the shard is quarantined and redone."
        raise StoreError(str(path), expected="a Parquet file", found=str(error)[:200], remedy=remedy) from None
    for row in table.to_pylist():
        yield row | keys
