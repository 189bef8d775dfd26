"""Cells that are made again in a sealed shard: the others keep their rows, and all are sealed as the shard's new files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evalnoise.store.partition import PartitionWrite
from evalnoise.store.retries import LINEAGE_KEY
from schemas.columns import Table
from schemas.records import Task
from tasks.plan import Shard
from tasks.workshop import Workshop


def cells_to_make(shop: Workshop, shard: Shard) -> tuple[Task, ...]:
    """The tasks of the shard whose cells are to be made: all, unless a retry makes some of a sealed shard again."""
    tasks = shop.tasks(shard.start, shard.stop)
    chosen = _again(shop, shard)
    return tasks if chosen is None else tuple(task for task in tasks if task.id in chosen)


def seal(shop: Workshop, shard: Shard, writes: Sequence[PartitionWrite], inputs: Sequence[str]) -> None:
    """Seal the rows of the cells that were made, beside those of the cells that were not. Raises StoreError."""
    chosen = _again(shop, shard)
    if chosen is not None:
        writes = [replace(write, rows=[*write.rows, *_kept(shop, shard, write.table, chosen)]) for write in writes]
    retry = shop.retry
    lineage = {LINEAGE_KEY: retry.number} if retry and shard.name in retry.shards else {}
    shop.study_store.commit(shard.name, writes, inputs=inputs, lineage=lineage)


def _again(shop: Workshop, shard: Shard) -> frozenset[str] | None:
    """The tasks whose cells are made again; None: the shard is made whole."""
    if shop.retry is None or shard.name not in shop.retry.shards or shard.name not in shop.study_store.manifest.live:
        return None
    return shop.retry.cells(shard.name)


def _kept(shop: Workshop, shard: Shard, table: Table, chosen: frozenset[str]) -> list[dict[str, Any]]:
    rows = shop.study_store.read_shard(table, shard.name).drop_columns(list(table.partition)).to_pylist()
    return [row for row in rows if row["task_id"] not in chosen]
