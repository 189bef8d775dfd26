"""Comparing two stores of one protocol: the same bytes where nothing is measured, the same stable columns elsewhere."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from evalnoise.store.store import Store, StudyStore
from schemas.tables import CALLS, ESTIMATES, EXECUTIONS, GENERATIONS, OUTCOMES, TASKS, VERDICTS, Table

SAME_BYTES = (TASKS, GENERATIONS, OUTCOMES, ESTIMATES)
SAME_ROWS = (CALLS, EXECUTIONS, VERDICTS)


def only_study(root: Path) -> StudyStore:
    """The store's one protocol."""
    (study,) = Store.open(root, create=False).studies()
    return study


def file_digests(study: StudyStore, table: Table) -> dict[str, str]:
    """SHA-256 of every sealed file of a table as it lies on disk, by path."""
    return {file.path: hashlib.sha256((study.path / file.path).read_bytes()).hexdigest() for file in study.files(table)}


def stable_rows(study: StudyStore, table: Table) -> list[dict[str, Any]]:
    """The rows without the columns marked `measured`, with their partition keys, in order.

    Of `calls` those that got an answer: a kill leaves rows of others, and the number of the one that did is then higher.
    """
    names = [name for name in (*table.partition, *table.stable_columns) if (table.name, name) != (CALLS.name, "sending")]
    found = [row for row in study.read(table).to_pylist() if table.name != CALLS.name or (row["answered"] and not row["error"])]
    return sorted(({name: row[name] for name in names} for row in found), key=repr)


def differences(one: Path, other: Path) -> list[str]:
    """What differs between the only protocols of two stores; empty if they are the same study."""
    a, b = only_study(one), only_study(other)
    found = [f"bytes of {table.name}" for table in SAME_BYTES if file_digests(a, table) != file_digests(b, table)]
    found += [f"rows of {table.name}" for table in SAME_ROWS if stable_rows(a, table) != stable_rows(b, table)]
    found += [f"no {table.name}" for table in (*SAME_BYTES, *SAME_ROWS) if not a.files(table)]
    return found
