"""`python -m perf.analyse`: the analyse step of a study of ten million cells, from sealed Parquet, and its growth from one million.

Three conditions, 20 replicates, 166,667 tasks with rates from Beta(0.3, 0.2). The cells are written as shards would seal them, at
most 100,000 to a file; sealing and digesting them is not counted, reading them is. `--calls` seals what a run seals beside the
outcomes too: generations and executions, which the checks read. Each size is analysed in a process of its own.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evalnoise.canonical import sha256_text
from evalnoise.store.catalog import build_catalog, connect
from evalnoise.store.partition import PartitionWrite
from evalnoise.store.store import Store
from evalnoise.store.study import Content
from perf.measure import ROOT
from schemas.study import Study
from schemas.tables import EXECUTIONS, GENERATIONS, OUTCOMES, Table
from tasks.analyse import SHARD, analyse
from tasks.freeze import resolve
from tasks.load import SHARD as TASKS_SHARD
from tasks.load import write_tasks
from tasks.plan import Shard, measured_shards
from tasks.progress import NoWatcher, Progress
from tasks.workshop import Workshop

REPLICATES, CONDITIONS = 20, 3
TASKS = 166_667
SECONDS, PEAK_MB = 15.0, 2_000.0
SMALL = 10
"""The small study has a tenth of the tasks."""
_GROUP_BY = "SELECT stack, condition, position, count(*) FILTER (WHERE outcome = 'pass') FROM outcomes GROUP BY ALL"


def study() -> Study:
    """Three live conditions of one model, whose answers are compared as texts."""
    return Study.model_validate(
        {
            "study": "large",
            "benchmark": {"name": "jsonl", "path": "tasks.jsonl"},
            "stacks": [{"name": "a", "model": "m", "provider": {"name": "openai"}}],
            "conditions": [{"name": name, "kind": "live"} for name in ("one", "two", "three")],
            "replicates": REPLICATES,
            "limits": {"shard_cells": 100_000},
        }
    )


@contextmanager
def workshop(folder: Path) -> Iterator[Workshop]:
    """The study's workshop; its benchmark and store lie in the folder."""
    frozen = study()
    spec = frozen.benchmark.model_copy(update={"path": str(folder / "tasks.jsonl")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = resolve(frozen.model_copy(update={"benchmark": spec}))
    with Workshop(plan, Store.open(folder / "store"), Progress(NoWatcher())) as shop:
        yield shop


def build(folder: Path, n_tasks: int, *, calls: bool) -> None:
    """Seal everything but the analysis."""
    lines = (json.dumps({"id": f"t/{n}", "kind": "answer", "prompt": f"{n}?", "reference": str(n)}) for n in range(n_tasks))
    (folder / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    rates = np.random.default_rng(1).beta(0.3, 0.2, size=n_tasks)
    with workshop(folder) as shop:
        shop.store.freeze(shop.plan.protocol)
        shards = measured_shards(shop.plan.study, n_tasks)
        shop.study_store.plan([TASKS_SHARD, *(shard.name for shard in shards), SHARD])
        write_tasks(shop)
        for number, shard in enumerate(shards):
            passed = np.random.default_rng([2, number]).random(shard.stop - shard.start) < rates[shard.start : shard.stop]
            tables = (OUTCOMES, GENERATIONS, EXECUTIONS) if calls else (OUTCOMES,)
            shop.study_store.commit_bytes(shard.name, [_content(shop, table, shard, passed) for table in tables])


def _content(shop: Workshop, table: Table, shard: Shard, passed: NDArray[np.bool_]) -> Content:
    positions = np.arange(shard.start, shard.stop)
    said = np.where(passed, "pass", "fail")
    digests = np.array([sha256_text("right"), sha256_text("wrong")])[np.where(passed, 0, 1)]
    given: dict[str, Any] = {
        "study": "large", "protocol": shop.plan.digest, "benchmark": "jsonl", "position": positions,
        "task_id": [f"t/{n}" for n in positions], "outcome": said, "reason": np.where(passed, "pass", "mismatch"),
        "score": passed.astype(np.float64), "attempts": 1, "response_class": "complete", "text_sha256": digests,
        "candidate_sha256": digests, "candidate": np.where(passed, "right", "wrong"), "text": np.where(passed, "right", "wrong"),
        "request_key": [f"{n:064x}" for n in positions], "rechecks": "[]", "limit_share": 0.01,
    }  # fmt: skip
    arrays = [_array(given.get(column.name), column.type, len(positions), nullable=column.nullable) for column in table.columns]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=table.schema), sink, compression="zstd", row_group_size=65_536)
    keys = {"stack": shard.stack, "condition": shard.condition, "replicate": shard.replicate}
    path = PartitionWrite(table, keys, [], f"{shard.start:06d}").path()
    return Content(path, table.name, len(positions), sink.getvalue())


def _array(value: Any, kind: pa.DataType, rows: int, *, nullable: bool) -> pa.Array:
    """A column: given values, one value for all rows, or something plain."""
    plain = {pa.string(): "", pa.int64(): 0, pa.float64(): 0.0, pa.bool_(): False}
    if value is None and nullable:
        return pa.nulls(rows, kind)
    if isinstance(value, np.ndarray | list):
        return pa.array(value, kind)
    return (
        pa.array([[]] * rows, kind)
        if pa.types.is_list(kind)
        else pa.repeat(pa.scalar(plain[kind] if value is None else value, kind), rows)
    )


def measure(folder: Path) -> dict[str, Any]:
    """Analyse a sealed study, and say what that took."""
    with workshop(folder) as shop:
        # The catalog remembers the digests of sealed files: checking them once is part of sealing.
        build_catalog(shop.store.root)
        with closing(connect(shop.store.root)) as connection:
            begun = time.perf_counter()
            connection.execute(_GROUP_BY).fetchnumpy()
            bare = time.perf_counter() - begun
        begun, worked = time.perf_counter(), time.process_time()
        analyse(shop)
        seconds, cpu = time.perf_counter() - begun, time.process_time() - worked
        with closing(connect(shop.store.root)) as connection:
            rows = {
                table: connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]  # noqa: S608 - names of our own
                for table in ("estimates", "contrasts", "budgets", "checks")
            }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "cpu": cpu, "bare": bare, "peak_mb": peak, "rows": rows}


def run(n_tasks: int, *, calls: bool) -> dict[str, Any]:
    """Build a study, and analyse it in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="perf-analyse-") as folder:
        begun = time.perf_counter()
        build(Path(folder), n_tasks, calls=calls)
        built = time.perf_counter() - begun
        arguments = [sys.executable, "-m", "perf.analyse", "--measure", folder]
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
    cells = n_tasks * REPLICATES * CONDITIONS
    rows = ", ".join(f"{number} {table}" for table, number in found["rows"].items())
    print(
        f"{cells:>11,} cells: {found['seconds']:6.2f} s, CPU {found['cpu']:.2f} s (a bare group-by: {found['bare']:.2f} s), "
        f"peak memory {found['peak_mb']:,.0f} MB with Python, NumPy and DuckDB\n{'':>19}{rows}; building took {built:.0f} s",
        flush=True,
    )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--measure", type=Path, help="analyse the study that was built in this folder, and print JSON")
    parser.add_argument("--calls", action="store_true", help="seal generations and executions as well")
    parser.add_argument("--tasks", type=int, default=TASKS, help="tasks of the large study")
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(asked.measure)))
        return 0
    small = run(max(2, asked.tasks // SMALL), calls=asked.calls)
    large = run(asked.tasks, calls=asked.calls)
    growth = large["seconds"] / small["seconds"]
    met = large["seconds"] < SECONDS and large["peak_mb"] < PEAK_MB and growth <= SMALL
    print(f"ten times the cells take {growth:.1f} times as long (goals: under {SECONDS:.0f} s, {PEAK_MB:,.0f} MB, 10 times)")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
