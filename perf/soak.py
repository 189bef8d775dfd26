"""`python -m perf.soak`: 20,000 candidates through one pool; what grows, and what is left at the end.

Two parts. `recycled`: a mix in which some candidates end abnormally, so that containers are replaced all the time. `one container`:
candidates that end normally, through a single container that is never replaced, so that its supervisor has time to grow. Memory is
compared from a tenth of the way on, and not before a whole lot has been sent: until then it has not held as much as it will.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from schemas.records import Outcome, Reason, Reference, Task, TaskKind
from schemas.values import encode
from schemas.verifier import VerifierSpec
from verifiers.sandbox.engine import connect, labels
from verifiers.verify import Verifier, resolve_executor

INPUTS = tuple(range(20))
TASK = Task("soak", TaskKind.FUNCTION, "", "", "f", inputs=tuple(encode([n]) for n in INPUTS))
REFERENCE = Reference(
    "soak", Outcome.PASS, Reason.PASS, outputs=tuple(encode([n] * 20) for n in INPUTS), inputs_used=tuple(range(len(INPUTS)))
)
NORMAL = {
    Reason.PASS: "def f(x): return [x] * 20",
    Reason.MISMATCH: "def f(x): return [x] * 19 + [None]",
    Reason.EXCEPTION: "def f(x):\n    open(str(x), 'w').write('left behind')\n    raise KeyError(x)",
    Reason.EARLY_EXIT: "import os\nos._exit(0)",
}
ABNORMAL = {
    Reason.SIGNAL: "import os\nos.kill(os.getpid(), 9)",
    Reason.OUTPUT_LIMIT: "import os\ndef f(x):\n    while True: os.write(3, b'x' * 65536)",
    Reason.PASS: "import ctypes\nctypes.CDLL(None).shmget(7, 4096, 0o1666)\ndef f(x): return [x] * 20",
}
ABNORMAL_EVERY = 60
MOST_PER_THOUSAND = 2**20
LOT = 500
"""Candidates sent at once, as a shard sends them."""


@dataclass(frozen=True, slots=True)
class Use:
    """What is in use while the pool rests."""

    host: int
    """Bytes of resident memory of this process."""
    container: int
    """Bytes of the largest container of this process, without the cache of files."""
    descriptors: int
    """Open descriptors of a container's supervisor, of the one that has most."""


@dataclass(frozen=True, slots=True)
class Soak:
    """What a part came to."""

    candidates: int
    seconds: float
    wrong: int
    """Candidates whose verdict was not the expected one, or that had to be run again."""
    containers: int
    early: Use
    """After a tenth, or the first lot."""
    late: Use
    left: dict[str, int]
    """Descriptors, containers, volumes and processes more than there were before."""

    def growth(self, part: str) -> float:
        """Bytes per thousand candidates."""
        return (getattr(self.late, part) - getattr(self.early, part)) / ((self.candidates - warming(self.candidates)) / 1000)


def warming(candidates: int) -> int:
    """Candidates before memory is looked at for the first time."""
    return max(LOT, candidates // 10)


def soak(candidates: int, *, recycled: bool, workers: int = 2) -> Soak:
    """Send so many candidates through one pool."""
    spec = VerifierSpec(executor="docker", workers=workers if recycled else 1, recycle=200 if recycled else 100_000, memory_mb=128)
    info = resolve_executor(spec, [])
    before = _holdings()
    begun = time.monotonic()
    used: Counter[str] = Counter()
    with Verifier(spec, "differential", info) as verifier:
        first = warming(candidates)
        wrong = _send(verifier, range(first), used, abnormal=recycled)
        early = _use()
        wrong += _send(verifier, range(first, candidates), used, abnormal=recycled)
        late = _use()
    seconds = time.monotonic() - begun
    left = {name: count - before[name] for name, count in _holdings().items()}
    return Soak(candidates, seconds, wrong, len(used), early, late, left)


def _send(verifier: Verifier, numbers: Sequence[int], used: Counter[str], *, abnormal: bool) -> int:
    """In lots; how many verdicts were not the expected ones."""
    wrong = 0
    for lot in (numbers[start : start + LOT] for start in range(0, len(numbers), LOT)):
        chosen = [_candidate(number, abnormal=abnormal) for number in lot]
        futures = [
            verifier.check(TASK, REFERENCE, f"{source}\n# {number}\n") for number, (_, source) in zip(lot, chosen, strict=True)
        ]
        for (expected, _), future in zip(chosen, futures, strict=True):
            check = future.result()
            used[check.container] += 1
            wrong += check.reason is not expected or bool(check.rechecks)
    return wrong


def _candidate(number: int, *, abnormal: bool) -> tuple[Reason, str]:
    kinds, place = NORMAL, number
    if abnormal and number % ABNORMAL_EVERY == 0:
        kinds, place = ABNORMAL, number // ABNORMAL_EVERY
    return list(kinds.items())[place % len(kinds)]


def _use() -> Use:
    gc.collect()
    # What is free but held by the C library's arenas is no growth; only glibc has the call, and elsewhere the figure is as it is.
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    client = connect()
    containers = [0]
    descriptors = [0]
    for container in client.containers.list(filters={"label": [f"{key}={value}" for key, value in labels().items()]}):
        memory = client.api.stats(container.id, stream=False, one_shot=True)["memory_stats"]
        facts = memory["stats"]
        containers.append(memory["usage"] - max(0, facts.get("cache", facts.get("file", 0)) - facts.get("shmem", 0)))
        listed = container.exec_run(["python3", "-c", "import os; print(len(os.listdir('/proc/1/fd')))"])
        descriptors.append(int(listed.output))
    client.close()
    return Use(psutil.Process().memory_info().rss, max(containers), max(descriptors))


def _holdings() -> dict[str, int]:
    gc.collect()
    client = connect()
    own = {"label": [f"{key}={value}" for key, value in labels().items()]}
    containers, volumes = len(client.containers.list(all=True, filters=own)), len(client.volumes.list())
    client.close()
    return {
        "descriptors": psutil.Process().num_fds(),
        "containers": containers,
        "volumes": volumes,
        "processes": len(psutil.Process().children(recursive=True)),
    }


def report(title: str, done: Soak) -> bool:
    """Print the figures; whether they are as they should be."""
    print(
        f"{title}: {done.candidates} candidates in {done.seconds:.0f} s ({done.candidates / done.seconds:.0f} a second) "
        f"in {done.containers} containers; unexpected verdicts: {done.wrong}"
    )
    for part in ("host", "container"):
        early, late = (f"{getattr(use, part) / 2**20:.2f} MB" for use in (done.early, done.late))
        print(f"  {part} memory: {early} early, {late} at the end: {done.growth(part) / 2**20:+.3f} MB per 1,000")
    print(f"  a supervisor's descriptors: {done.early.descriptors} early, {done.late.descriptors} at the end")
    print("  left at the end: " + ", ".join(f"{count} {name}" for name, count in done.left.items()), flush=True)
    grown = any(done.growth(part) >= MOST_PER_THOUSAND for part in ("host", "container"))
    return (
        not grown
        and not done.wrong
        and done.late.descriptors <= done.early.descriptors
        and not any(count > 0 for count in done.left.values())
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=20_000)
    count = parser.parse_args().candidates
    good = [report(title, soak(count, recycled=recycled)) for title, recycled in (("recycled", True), ("one container", False))]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
