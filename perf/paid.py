"""`python -m perf.paid`: a study of 5,000 paid calls through a server full of faults, killed with -9 five times.

Two stacks, one for each wire protocol, one of them streamed. The server keeps its own count, in a process of its own. At the end
every cell must be what the server meant it to be, every answer of the server be in a journal at most once, and only those not at
all that were in flight at a kill; the ledger's cost must be the server's. `--calls` and `--kills` for smaller ones.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import evalnoise as instrument
from perf.measure import EVALNOISE, ROOT

sys.path.insert(0, str(ROOT / "tests"))  # where the server that both tests and measurements use lies
from wire.ledger import Counts, read
from wire.process import wire_process
from wire.scripts import sums

REPLICATES = 20
CONCURRENCY = 32
KEYS = {"PAID_KEY": "sk-not-a-key-of-anyone-0123456789"}
_STUDY = """
study: paid
benchmark: {{name: jsonl, path: {tasks}}}
stacks:
  - name: openai
    model: served-1
    verifier: {{executor: process}}
    provider: {{name: openai, base_url: {url}/v1, api_key_env: PAID_KEY, stream: true, temperature: 0.7, max_retries: 8,
      input_usd_per_million: 3, output_usd_per_million: 15}}
  - name: anthropic
    model: served-1
    verifier: {{executor: process}}
    provider: {{name: anthropic, base_url: {url}, api_key_env: PAID_KEY, temperature: 0.7, max_retries: 8,
      input_usd_per_million: 3, output_usd_per_million: 15}}
conditions: [{{name: live, kind: live}}]
replicates: {replicates}
limits: {{concurrency: {concurrency}, shard_cells: 50, max_cost: {max_cost}}}
analysis: {{resamples: 1000}}
"""


@dataclass(frozen=True, slots=True)
class Result:
    """What the two ledgers say of each other."""

    cells: int
    wrong_cells: int
    """Cells whose outcome is not what the server meant the answer to be."""
    unmeasured: int
    journalled_twice: int
    """Answers of the server that stand in the journals more than once."""
    repeated: int
    """Answers that the server sent whole and no journal has."""
    in_flight: int
    """Sendings that were in flight at a kill, by the journals."""
    sendings: int
    faults: int
    """Faults that the server made."""
    cost: float
    """US dollars by the ledger's SQL."""
    server_cost: float
    """US dollars by the server's count, of the answers that arrived."""
    lost_cost: float
    """US dollars of the repeated answers, by the server's count."""

    @property
    def right(self) -> bool:
        """Whether nothing was lost, paid twice or mistaken but for what was in flight at a kill."""
        exact = not (self.wrong_cells or self.unmeasured or self.journalled_twice)
        return exact and self.repeated <= self.in_flight and abs(self.cost - self.server_cost) < 1e-9


def study(
    folder: Path, *, calls: int, kills: int, seed: int, replicates: int = REPLICATES, concurrency: int = CONCURRENCY,
    environment: Mapping[str, str] = os.environ,
) -> Result:  # fmt: skip
    """Run the study to its end through the kills. Raises SystemExit where a run fails."""
    tasks = folder / "tasks.jsonl"
    tasks.write_text("".join(json.dumps(line) + "\n" for line in sums(calls // (2 * replicates))))
    ledger, store = folder / "server.jsonl", folder / "store"
    with wire_process(ledger, "--seed", str(seed), "--latency", "0.05") as url:
        file = folder / "paid.yaml"
        file.write_text(_STUDY.format(tasks=tasks, url=url, replicates=replicates, concurrency=concurrency, max_cost=calls))
        rng = random.Random(seed)  # noqa: S311 - moments of a kill, no secret
        for number in range(kills):
            _killed(_run(file, store, environment), store, rng, answers=calls * (number + 1) // (kills + 2))
            print(f"kill {number + 1}: with {_answers(store)} of {calls} answers", flush=True)
        last = _run(file, store, environment)
        said = last.communicate()[1].decode()
        if last.returncode:
            raise SystemExit(f"the last run ended with {last.returncode}: {said}")
    return compare(store, read(ledger))


def compare(store: Path, server: Counts) -> Result:
    """Hold the store against the server's own count."""
    connection = instrument.connect(store)
    final = connection.execute(
        "SELECT o.outcome, c.response_id FROM outcomes o JOIN calls c USING (stack, condition, replicate, task_id)"
        " WHERE c.answered AND c.error = ''"
    ).fetchall()
    cells = connection.execute("SELECT count(*), count(*) FILTER (outcome = 'unmeasured') FROM outcomes").fetchone()
    (sendings, cost) = connection.execute("SELECT count(*), sum(cost_usd) FROM calls").fetchone() or (0, 0.0)
    journalled = Counter(_answer_ids(store))
    lost = server.answers.keys() - journalled.keys()
    lost_cost = sum(server.answers[name]["cost"] for name in lost)
    return Result(
        cells=cells[0] if cells else 0,
        wrong_cells=sum((outcome == "pass") is not server.answers[name]["right"] for outcome, name in final)
        + abs(len(final) - (cells[0] if cells else 0)),
        unmeasured=cells[1] if cells else 0,
        journalled_twice=sum(count > 1 for count in journalled.values()),
        repeated=len(lost),
        in_flight=_unanswered(store),
        sendings=sendings,
        faults=server.faults.total(),
        cost=cost,
        server_cost=server.cost - lost_cost,
        lost_cost=lost_cost,
    )


def _run(file: Path, store: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*EVALNOISE, "run", str(file), "--store", str(store)], cwd=ROOT, env={**environment, **KEYS},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def _killed(run: subprocess.Popen[bytes], store: Path, rng: random.Random, *, answers: int) -> None:
    while _answers(store) < answers and run.poll() is None:
        time.sleep(0.02)
    time.sleep(rng.uniform(0.0, 0.3))
    if run.poll() is not None:
        raise SystemExit(f"the run ended with {run.returncode} before it was killed: {run.communicate()[1].decode()}")
    run.send_signal(signal.SIGKILL)
    run.communicate()


def _records(store: Path) -> list[dict[str, object]]:
    """The journals' lines that are whole."""
    found = []
    for path in store.glob("studies/*/*/journal/*.jsonl"):
        found += [json.loads(line) | {"shard": path.stem} for line in path.read_bytes().split(b"\n")[:-1]]
    return found


def _answers(store: Path) -> int:
    """Answers so far, failures among them: quickly, because it is asked all the time."""
    return sum(path.read_bytes().count(b'"kind":"answered"') for path in store.glob("studies/*/*/journal/*.jsonl"))


def _answer_ids(store: Path) -> list[str]:
    records = [record["record"] for record in _records(store) if record["kind"] == "answered"]
    return [record["response"]["response_id"] for record in records if isinstance(record, dict) and "response" in record]


def _unanswered(store: Path) -> int:
    kinds: dict[str, set[tuple[object, object]]] = {"sent": set(), "answered": set()}
    for record in _records(store):
        kinds[str(record["kind"])].add((record["shard"], record["id"]))
    return len(kinds["sent"] - kinds["answered"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        result = study(Path(folder), calls=told.calls, kills=told.kills, seed=told.seed)
        print(f"{told.kills} kills, {time.monotonic() - begun:.0f} s")
    print(f"cells: {result.cells}; not as the server meant them: {result.wrong_cells}; unmeasured: {result.unmeasured}")
    print(f"sendings in the ledger: {result.sendings}; faults that the server made: {result.faults}")
    print(f"answers journalled twice: {result.journalled_twice}")
    print(f"answers repeated: {result.repeated}, of {result.in_flight} sendings in flight at a kill")
    print(f"cost by the ledger: {result.cost:.6f} USD; by the server: {result.server_cost:.6f} and {result.lost_cost:.6f} repeated")
    print("as it should be" if result.right else "NOT as it should be")
    return 0 if result.right else 1


if __name__ == "__main__":
    sys.exit(main())
