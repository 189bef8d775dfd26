"""Loading: the benchmark's tasks as a sealed table."""

from __future__ import annotations

from evalnoise.store.partition import PartitionWrite
from schemas.tables import TASKS
from tasks.generate import storable
from tasks.workshop import Workshop

SHARD = "tasks"


def write_tasks(shop: Workshop) -> None:
    """Seal the table `tasks`."""
    rows = [
        {
            **shop.lineage(task),
            "kind": task.kind.value,
            "prompt": storable(task.prompt),
            "reference": storable(task.reference),
            "entry_point": task.entry_point,
            "cluster": task.cluster,
            "n_inputs": len(task.inputs),
        }
        for task in shop.plan.benchmark.tasks
    ]
    inputs = [source.sha256 for source in shop.plan.benchmark.sources]
    shop.study_store.commit(SHARD, [PartitionWrite(TASKS, {}, rows, "tasks")], inputs=inputs)
