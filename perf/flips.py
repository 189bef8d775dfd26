"""`python -m perf.flips`: a candidate at 80 % of its CPU limit, verified again and again while other work wants the cores.

The candidate's work is fixed: so many turns of a loop, found beforehand so that they take 0.8 s of CPU on the machine as it is. Its
limit is 1 s, so its verdict should be a pass. While 1, 2 and 4 times as many processes burn CPU as there are cores, it is verified
100 times each: how often would the first run alone have said otherwise, and how often does the settled verdict? At most one in 300
may.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from schemas.records import Check, Outcome, Reason, Reference, Task, TaskKind
from schemas.values import encode
from schemas.verifier import VerifierSpec
from verifiers.verify import Verifier, resolve_executor

LIMIT_SECONDS = 1.0
SHARE = 0.8
LOADS = (1, 2, 4)
MOST_FLIPS = 1 / 300
TASK = Task("flips", TaskKind.FUNCTION, "", "", "f", inputs=(encode([]),))
REFERENCE = Reference("flips", Outcome.PASS, Reason.PASS, outputs=("1",), inputs_used=(0,))
_TURNS = 2_000_000
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Verified:
    """One candidate, verified under load."""

    first: bool
    """Whether the first run alone would have passed it."""
    settled: bool
    """Whether it passed."""
    cpu_seconds: tuple[float, ...]
    """Of every run; the first one is the one that counts."""


def source(turns: int, number: int = 0) -> str:
    """A program that does a fixed amount of work; the number makes it another text."""
    return f"# {number}\ndef f():\n    x = 1\n    for _ in range({turns}):\n        x = x * 3 % 7919\n    return 1\n"


def calibrate(verifier: Verifier) -> int:
    """Turns that take 0.8 s of CPU, by the fastest of some tries: load can only add to it."""
    turns = _TURNS
    for _ in range(2):
        checks = [verifier.check(TASK, REFERENCE, source(turns)).result() for _ in range(_TRIES)]
        turns = int(turns * SHARE * LIMIT_SECONDS / min(check.cpu_seconds for check in checks))
    return turns


def run(verifier: Verifier, turns: int, runs: int, burners: int) -> list[Check]:
    """The checks of so many candidates while so many processes burn."""
    with _burning(burners):
        futures = [verifier.check(TASK, REFERENCE, source(turns, number)) for number in range(runs)]
        return [future.result() for future in futures]


def verified(check: Check) -> Verified:
    """What the record of a check says of its runs."""
    earlier = [each for each in check.rechecks if each["reason"] != Reason.INFRASTRUCTURE.value]
    cpu = (check.cpu_seconds, *(float(str(each["cpu_seconds"])) for each in earlier))
    passed = check.outcome is Outcome.PASS
    return Verified(first=passed and not earlier, settled=passed, cpu_seconds=cpu)


def verifier_for(workers: int = 0) -> Verifier:
    """A verifier whose CPU limit is the one that matters here."""
    spec = VerifierSpec(executor="docker", cpu_seconds=LIMIT_SECONDS, workers=workers)
    return Verifier(spec, "differential", resolve_executor(spec, []))


@contextmanager
def _burning(count: int) -> Iterator[None]:
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def report(load: int, results: Sequence[Verified]) -> int:
    """Print a load's figures; its flips after settlement."""
    before = sum(not each.first for each in results)
    after = sum(not each.settled for each in results)
    inflation = [seconds / (SHARE * LIMIT_SECONDS) for each in results for seconds in each.cpu_seconds]
    cuts = statistics.quantiles(inflation, n=100, method="inclusive")
    print(
        f"{load} times the cores busy: {len(results)} candidates, {len(inflation)} runs\n"
        f"  flips before settlement {before}, after {after}\n  CPU over what it should be: "
        f"median {cuts[49]:.2f}, 90 % {cuts[89]:.2f}, 99 % {cuts[98]:.2f}, most {max(inflation):.2f}",
        flush=True,
    )
    return after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    cores = len(os.sched_getaffinity(0))
    with verifier_for() as verifier:
        turns = calibrate(verifier)
        flips = 0
        for load in LOADS:
            flips += report(load, [verified(check) for check in run(verifier, turns, runs, load * cores)])
    print(f"after settlement {flips} flips in {len(LOADS) * runs}; at most 1 in 300 may")
    return 0 if flips <= max(1, MOST_FLIPS * len(LOADS) * runs) else 1


if __name__ == "__main__":
    sys.exit(main())
