"""A store whose shards are sealed by hand, and its catalog."""

from __future__ import annotations

from pathlib import Path

from evalnoise.store.catalog import CATALOG_FILE, connect
from evalnoise.store.partition import PartitionWrite
from evalnoise.store.store import Store
from schemas.tables import OUTCOMES

IDS = ["HumanEval/0", 'it\'s "x"', "a%2Fb", "ключ ☃ \u2028\n\x00"]


def query(store: Store | Path, sql: str) -> list[tuple[object, ...]]:
    connection = connect(store.root if isinstance(store, Store) else store)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def commit(study, outcome_rows, replicate: int = 0, condition: str = "0.7", outcomes: str = "pfup") -> None:
    keys = {"stack": "s", "condition": condition, "replicate": replicate}
    shard = f"{condition}-{replicate}"
    study.commit(shard, [PartitionWrite(OUTCOMES, keys, outcome_rows(study, outcomes, IDS), "a")])


def inode(store: Store) -> int:
    return (store.root / CATALOG_FILE).stat().st_ino
