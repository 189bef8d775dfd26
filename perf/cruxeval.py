"""`python -m perf.cruxeval`: the public recordings of two models re-executed in containers, against every published verdict."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import evalnoise as library
from perf.measure import evalnoise, run

STUDIES = {"codellama-7b": "studies/cruxeval.yaml", "gpt-3.5-turbo-0613": "studies/cruxeval-gpt-3.5-turbo.yaml"}
CONDITIONS = {"sampled-0.8": "0.8", "sampled-0.2": "0.2"}


def main() -> int:
    shared = Path(os.environ.get("EVALNOISE_SHARED", "../shared")).resolve()
    differ = 0
    for model, study in STUDIES.items():
        with tempfile.TemporaryDirectory() as folder:
            differ += measure(model, study, Path(folder) / "S", shared / "data" / "cruxeval")
    return differ


def measure(model: str, study: str, store: Path, data: Path) -> int:
    print(f"\n== {model}: evalnoise run {study} --store S")
    done, cost = run(["run", study, "--store", str(store)])
    print(done.stdout)
    if done.returncode:
        print(done.stderr)
        raise SystemExit(f"ended with {done.returncode}")
    query = "select condition, score, w, variable_tasks from noise_floor order by 1"
    print(evalnoise("sql", query, "--store", str(store), "--format", "csv"))
    contrast = (
        "select estimate, value, lo, hi from contrasts where condition_a = 'sampled-0.8' and condition_b = 'sampled-0.2' "
        "and estimate = 'w' and method = 'percentile task bootstrap'"
    )
    print(evalnoise("sql", contrast, "--store", str(store), "--format", "csv"))
    with library.connect(store) as connection:
        (cells,) = connection.execute("select count(*) from executions").fetchone()
        (executed,) = connection.execute("select sum(cpu_seconds) from executions").fetchone()
        reasons = connection.execute("select reason, count(*) from executions group by 1 order by 2 desc").fetchall()
        (executors,) = connection.execute("select string_agg(distinct executor, ', ') from executions").fetchone()
        measured = connection.execute("select condition, task_id, replicate, outcome = 'pass' from outcomes").fetchall()
    differ = compare(measured, model, data)
    total = cost.command_cpu_seconds + cost.server_cpu_seconds + cost.engine_cpu_seconds + executed
    print(f"{cells} candidates executed by {executors}; reasons: {dict(reasons)}")
    print(f"published verdicts that differ: {differ}")
    print(
        f"wall {cost.wall_seconds:.0f} s ({cells / cost.wall_seconds:.0f} candidates/s); "
        f"CPU s: command {cost.command_cpu_seconds:.0f}, "
        f"candidates {executed:.0f}, Prefect server {cost.server_cpu_seconds:.1f}, engine {cost.engine_cpu_seconds:.0f}; "
        f"server's share {cost.server_cpu_seconds / total:.1%}; peak memory {cost.peak_memory_bytes / 2**20:.0f} MB"
    )
    return differ


def compare(measured: list[tuple[str, str, int, bool]], model: str, data: Path) -> int:
    published = {}
    for condition, temperature in CONDITIONS.items():
        with (data / f"{model}_temp{temperature}_output.jsonl").open() as lines:
            for line in lines:
                row = json.loads(line)
                published |= {(condition, row["task_id"], r): passed for r, passed in enumerate(row["passed"])}
    ours = {(condition, task, replicate): passed for condition, task, replicate, passed in measured if condition in CONDITIONS}
    if ours.keys() != published.keys():
        raise SystemExit(f"{len(ours)} cells measured, {len(published)} published")
    return sum(ours[cell] != passed for cell, passed in published.items())


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
