"""`python -m perf.generate`: journalled calls beside bare loops over the same SDK and HTTP library, against a loopback server.

Each arm runs in a process of its own, so that none inherits another's memory. What is timed: from the first call to the last row.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perf.measure import ROOT

CONCURRENCY, LATENCY, TASKS = 64, 0.05, 500
PROMPT = "Work out the following step by step. " + "A vessel holds some water, and a part of it is poured out. " * 8
GOAL = 0.85


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of one arm."""

    rate: float
    """Calls per second."""
    cpu: float
    """Seconds of processor time per thousand calls."""
    early_memory: int
    """Resident bytes after a fifth of the calls."""
    late_memory: int
    """Resident bytes at the end."""


class Meter:
    """Counts calls and looks at the memory as they go by."""

    def __init__(self, calls: int) -> None:
        self._calls, self._done, self._early = calls, 0, 0
        self._lock = threading.Lock()
        self._begun, self._cpu = time.perf_counter(), time.process_time()

    def count(self) -> None:
        with self._lock:
            self._done += 1
            if self._done == max(1, self._calls // 5):
                self._early = _resident()

    def measured(self) -> Measured:
        seconds, cpu = time.perf_counter() - self._begun, time.process_time() - self._cpu
        if self._done != self._calls:
            raise SystemExit(f"{self._done} answers instead of {self._calls}")
        return Measured(self._calls / seconds, cpu * 1000 / self._calls, self._early, _resident())


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def _loop(calls: int, one: Callable[[int], Awaitable[None]]) -> Measured:
    """The plainest way to have so many calls in flight: as many workers, one after the other."""
    numbers, meter = iter(range(calls)), Meter(calls)

    async def work() -> None:
        for number in numbers:
            await one(number)
            meter.count()

    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return meter.measured()


def body(number: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": f"{PROMPT}({number})"}], "max_tokens": 1024, "temperature": 0.7}


async def sdk(url: str, calls: int) -> Measured:
    """A bare asyncio loop of parsed calls over the openai SDK."""
    import openai

    async with openai.AsyncOpenAI(api_key=os.environ["PERF_KEY"], base_url=url, max_retries=0, timeout=60) as client:

        async def one(number: int) -> None:
            answer = await client.chat.completions.create(model="m", **body(number))
            if not answer.choices[0].message.content or not answer.usage:
                raise SystemExit("an empty answer")

        return await _loop(calls, one)


async def http(url: str, calls: int) -> Measured:
    """A bare asyncio loop over the HTTP library that the SDK uses."""
    import httpx2

    limits = httpx2.Limits(max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY)
    async with httpx2.AsyncClient(limits=limits, timeout=60) as client:

        async def one(number: int) -> None:
            answer = await client.post(f"{url}/chat/completions", json={"model": "m", **body(number)})
            if not answer.json()["choices"]:
                raise SystemExit("an empty answer")

        return await _loop(calls, one)


def ours(url: str, calls: int) -> Measured:
    """Calls as a study makes them: keyed, paced, journalled twice with fsync, priced, made into rows; two shards at a time."""
    from schemas.study import Study

    with tempfile.TemporaryDirectory() as folder:
        tasks = Path(folder) / "tasks.jsonl"
        lines = [{"id": f"t/{n}", "kind": "answer", "prompt": f"{PROMPT}({n})", "reference": 42} for n in range(TASKS)]
        tasks.write_text("".join(json.dumps(line) + "\n" for line in lines))
        provider = {"name": "openai", "base_url": url, "api_key_env": "PERF_KEY", "temperature": 0.7}
        stack = {"name": "a", "model": "m", "provider": provider, "prompt": "{{ task.prompt }}"}
        prices = {"input_usd_per_million": 1.0, "output_usd_per_million": 4.0}
        stack["provider"] = provider | prices
        study = Study.model_validate(
            {
                "study": "perf",
                "benchmark": {"name": "jsonl", "path": str(tasks)},
                "stacks": [stack],
                "conditions": [{"name": "live", "kind": "live"}],
                "replicates": -(-calls // TASKS),
                "limits": {"concurrency": CONCURRENCY, "max_cost": 1e6},
            }
        )
        return _study(study, Path(folder) / "store", calls)


def _study(study: Any, store: Path, calls: int) -> Measured:
    from concurrent.futures import ThreadPoolExecutor

    from evalnoise.extraction import Extraction
    from evalnoise.prompts import render
    from evalnoise.providers.base import CallContext
    from evalnoise.store.store import Store
    from tasks.freeze import resolve
    from tasks.generate import call, call_rows, gather_cells, generation_row
    from tasks.progress import NoWatcher, Progress
    from tasks.workshop import Workshop

    plan, opened = resolve(study), Store.open(store)
    condition = plan.study.conditions[0]
    with Workshop(plan, opened, Progress(NoWatcher())) as shop:
        provider = shop.provider("a", condition)
        meter = Meter(calls)

        def shard(replicate: int) -> int:
            count = min(TASKS, calls - replicate * TASKS)
            journal = shop.study_store.journal(f"shard-{replicate}")

            async def cell(task: Any) -> int:
                context = CallContext(task, "a", "live", replicate, 0)
                made = await call(shop, provider, journal, render("{{ task.prompt }}", task=task), context)
                rows = [*call_rows(shop, made, "generate"), generation_row(shop, made, replicate, Extraction(None, "none"))]
                meter.count()
                return len(rows)

            return sum(shop.run(gather_cells(cell(task) for task in shop.tasks(0, count))))

        with ThreadPoolExecutor(max_workers=2) as pool:
            rows = sum(pool.map(shard, range(study.replicates)))
        if rows != 2 * calls:
            raise SystemExit(f"{rows} rows of {calls} calls")
        return meter.measured()


@contextmanager
def serving() -> Iterator[str]:
    """The server in a process of its own, and its address."""
    command = [sys.executable, "-m", "perf.loopback", "--latency", str(LATENCY)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise SystemExit("no pipes")
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.stdin.close()


def in_a_process(arm: str, url: str, calls: int) -> Measured:
    command = [sys.executable, "-m", "perf.generate", "--arm", arm, "--url", url, "--calls", str(calls)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PERF_KEY": "sk-perf-0123456789abcdefghijklmnopqrstuvwxyzABCDEF"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Measured(**json.loads(done.stdout))


def compare(calls: int, alternations: int) -> dict[str, list[Measured]]:
    """Every arm, in turn, so that a slow moment of the machine hits all."""
    found: dict[str, list[Measured]] = {"sdk": [], "ours": [], "http": []}
    with serving() as url:
        for turn in range(alternations):
            for arm in found if turn % 2 == 0 else reversed(found):
                found[arm].append(in_a_process(arm, url, calls))
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--alternations", type=int, default=5)
    parser.add_argument("--arm", choices=("sdk", "ours", "http"))
    parser.add_argument("--url", default="")
    options = parser.parse_args()
    if options.arm:
        arm = {"sdk": sdk, "http": http}.get(options.arm)
        measured = asyncio.run(arm(options.url, options.calls)) if arm else ours(options.url, options.calls)
        print(json.dumps({name: getattr(measured, name) for name in Measured.__slots__}))
        return 0
    return report(compare(options.calls, options.alternations), options.calls)


def report(found: dict[str, list[Measured]], calls: int) -> int:
    """Print it; 1 if the goal is missed."""
    ideal = CONCURRENCY / LATENCY
    names = {"sdk": "bare SDK loop", "ours": "evalnoise", "http": "bare HTTP loop"}
    print(f"{calls} calls, {CONCURRENCY} in flight, {LATENCY * 1000:.0f} ms latency, {len(body(0)['messages'][0]['content'])} "
          f"characters asked; median of {len(found['ours'])}")  # fmt: skip
    for arm, runs in found.items():
        rate, cpu = statistics.median(run.rate for run in runs), statistics.median(run.cpu for run in runs)
        grown = statistics.median(run.late_memory - run.early_memory for run in runs) / 2**20
        all_rates = " ".join(f"{run.rate:.0f}" for run in runs)
        print(f"{names[arm]:15} {rate:6.0f} calls/s ({all_rates}), {cpu:.2f} ms CPU a call, memory {grown:+.1f} MiB")
    ratios = {
        arm: statistics.median(a.rate / b.rate for a, b in zip(found["ours"], found[arm], strict=True)) for arm in ("sdk", "http")
    }
    share = statistics.median(run.rate for run in found["ours"]) / ideal
    print(
        f"evalnoise / bare SDK loop {ratios['sdk']:.2f} (goal {GOAL}), / bare HTTP loop {ratios['http']:.2f}, / ideal {share:.2f}"
    )
    return int(ratios["sdk"] < GOAL)


if __name__ == "__main__":
    sys.exit(main())
