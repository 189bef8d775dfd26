"""`python -m perf.verify`: candidates per second and CPU per candidate of our verifiers and of EvalPlus's own check, in one run.

Every contender gets the same HumanEval+ candidates (each task's canonical solution and a mutant that fails), the same first 120
inputs per task and the same number of workers; they take turns in random order, and medians over the rounds are printed. The start
of a pool is not timed; what it does later (replacing containers) is. CPU is everybody's: this process, the sandboxes with their
supervisors, the engine with its helpers; for EvalPlus its whole process tree. The column `machine` is the busy time of all
processors, which misses nothing but counts whatever else runs.

EvalPlus stops at a candidate's first wrong result, because it holds the expected ones in the same process; ours cannot, and must
not tell a candidate that it is right so far. So where a task has a failing mutant that runs for a moment it is taken, else the
quickest. Over all candidates the pool must be as fast as EvalPlus at no more CPU; a few canonical solutions run for seconds, which
every check pays alike and which are half of EvalPlus's CPU. The goal of half its CPU is for candidates that take little themselves,
where the check is what costs. Ratios are to EvalPlus's check in one fork, in a process that holds what its command holds; `small`
is the same without all that.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

import verifiers.verify
from evalnoise.benchmarks.load import load_benchmark
from evalnoise.mutants import mutants
from perf.peer import Evalplus, data_file
from schemas.records import Outcome, Reference, Task
from schemas.study import EvalplusBenchmark
from schemas.verifier import VerifierSpec
from verifiers.sandbox.container import ContainerSandbox
from verifiers.verify import Verifier, resolve_executor

CAP = 120
LIGHT_SECONDS = 0.02
FRESH = 8
MUTANTS = 20
"""Tried for each task at most."""
PEER = "EvalPlus, one fork"
LEAST_RATE = 1.0
MOST_CPU, MOST_CPU_OF_ALL = 0.5, 1.0
PARTS = ("client", "sandbox", "engine")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program and what our checkers need to check it."""

    task: Task
    reference: Reference
    program: str
    seconds: float
    """CPU that it takes itself."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One contender's time on all candidates."""

    seconds: float
    cpu: dict[str, float]
    machine: float
    passed: tuple[bool, ...]


class Metered(ContainerSandbox):
    """A container whose CPU, and whose helper's, is kept when it is gone."""

    live: set[Metered] = set()  # noqa: RUF012 - one ledger for the whole run
    gone = {"sandbox": 0.0, "engine": 0.0}  # noqa: RUF012

    def __init__(self, image: str, memory_mb: int) -> None:
        super().__init__(image, memory_mb)
        self.live.add(self)

    def close(self) -> None:
        if self in self.live:
            self.live.discard(self)
            for name, seconds in self.spent().items():
                self.gone[name] += seconds
        super().close()

    def spent(self) -> dict[str, float]:
        usage = self._client.api.stats(self._id, stream=False, one_shot=True)["cpu_stats"]["cpu_usage"]["total_usage"]
        supervisor = self._client.api.inspect_container(self._id)["State"]["Pid"]
        engine = 0.0
        with suppress(psutil.NoSuchProcess):  # one that has just ended
            engine = _tree([psutil.Process(supervisor).parent()]) if supervisor else 0.0
        return {"sandbox": usage / 1e9, "engine": engine}


def _named(*names: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter(["name"]):
        if process.info["name"].startswith(names):
            yield process


def _tree(processes: list[psutil.Process | None]) -> float:
    """CPU seconds of the processes and of their children that ended."""
    return sum(sum(process.cpu_times()[:4]) for process in processes if process is not None)


class Contender:
    """Something that checks candidates."""

    def __init__(self, name: str, most: int | None = None) -> None:
        self.name = name
        self.most = most

    def check(self, candidates: list[Candidate]) -> list[bool]:
        raise NotImplementedError

    def sandbox(self) -> float:
        raise NotImplementedError

    def engine(self) -> float:
        return 0.0

    def spent(self) -> dict[str, float]:
        own = resource.getrusage(resource.RUSAGE_SELF)
        return {"client": own.ru_utime + own.ru_stime, "sandbox": self.sandbox(), "engine": self.engine()}

    def turn(self, candidates: list[Candidate]) -> Turn:
        chosen = candidates[: self.most]
        before, machine, begun = self.spent(), _busy(), time.monotonic()
        passed = self.check(chosen)
        seconds = time.monotonic() - begun
        busy, after = _busy() - machine, self.spent()
        return Turn(seconds, {part: after[part] - before[part] for part in PARTS}, busy, tuple(passed))

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Ours(Contender):
    """A verifier of ours with the differential checker."""

    def __init__(self, name: str, spec: VerifierSpec, most: int | None = None) -> None:
        super().__init__(name, most)
        self._docker = spec.executor == "docker"
        self._verifier = Verifier(spec, "differential", resolve_executor(spec, []))

    def check(self, candidates: list[Candidate]) -> list[bool]:
        futures = [self._verifier.check(each.task, each.reference, each.program) for each in candidates]
        return [future.result().outcome is Outcome.PASS for future in futures]

    def sandbox(self) -> float:
        if self._docker:
            return Metered.gone["sandbox"] + sum(each.spent()["sandbox"] for each in list(Metered.live))
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        supervisors = [each for each in psutil.Process().children() if "supervisor.py" in " ".join(each.cmdline())]
        return ended.ru_utime + ended.ru_stime + _tree(supervisors)

    def engine(self) -> float:
        if not self._docker:
            return 0.0
        engines = [each for each in _named("dockerd", "containerd") if "shim" not in each.name()]
        return _tree(engines) + Metered.gone["engine"] + sum(each.spent()["engine"] for each in list(Metered.live))

    def close(self) -> None:
        self._verifier.close()


class Theirs(Contender):
    """EvalPlus's own check."""

    def __init__(self, name: str, verb: str, workers: int, candidates: list[Candidate], *, small: bool = False) -> None:
        super().__init__(name)
        self._verb = verb
        self._peer = Evalplus("humaneval", workers=workers, inputs=CAP, small=small)
        self.check(candidates)  # learns expected outputs, and forks its workers

    def check(self, candidates: list[Candidate]) -> list[bool]:
        answer = self._peer.ask(self._verb, [(each.task.id, each.program) for each in candidates])
        return [result["base"] == result["plus"] == "pass" for result in answer["results"]]

    def sandbox(self) -> float:
        root = psutil.Process(self._peer.pid)
        return _tree([root, *root.children(recursive=True)])

    def close(self) -> None:
        self._peer.close()


@dataclass
class Rows:
    """The turns of one contender."""

    turns: list[Turn] = field(default_factory=list)

    def median(self, value: Callable[[Turn], float]) -> float:
        return statistics.median(value(turn) / len(turn.passed) for turn in self.turns)

    @property
    def rate(self) -> float:
        return 1 / self.median(lambda turn: turn.seconds)

    @property
    def cpu(self) -> float:
        return 1e3 * self.median(lambda turn: sum(turn.cpu.values()))


def _busy() -> float:
    """Busy seconds of all processors."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def learn(tasks: int | None) -> list[Candidate]:
    """Canonical solutions and failing mutants of the tasks whose first inputs all count, in an order that is random but fixed."""
    benchmark = load_benchmark(EvalplusBenchmark(name="evalplus", dataset="humaneval", path=str(data_file("humaneval"))))
    spec = VerifierSpec(executor="docker")
    with Verifier(spec, "differential", resolve_executor(spec, [])) as verifier:
        waiting = [(task, verifier.reference(task)) for task in benchmark.tasks[:tasks]]
        known = [(task, future.result()) for task, future in waiting]
        usable = [(task, reference) for task, reference in known if len(reference.inputs_used) == min(CAP, len(task.inputs))]
        canonicals = [(task, reference, verifier.check(task, reference, task.reference)) for task, reference in usable]
        found = [Candidate(task, reference, task.reference, check.result().cpu_seconds) for task, reference, check in canonicals]
        found += failing(verifier, usable)
    print(f"{len(usable)} of {len(known)} tasks, whose first {CAP} inputs all count: {len(found)} candidates")
    random.Random(0).shuffle(found)  # noqa: S311 - no secret
    return found


def failing(verifier: Verifier, tasks: list[tuple[Task, Reference]]) -> Iterator[Candidate]:
    """For each task the first mutant that fails within a moment; if there is none, the failing one that took the least."""
    left = [(task, reference, iter(mutants(task))) for task, reference in tasks]
    quickest: dict[str, Candidate] = {}
    for _ in range(MUTANTS):
        tried = [(*each, text) for each in left if (text := next(each[2], None)) is not None]
        checks = [(each, verifier.check(each[0], each[1], each[3])) for each in tried]
        left = []
        for (task, reference, others, text), future in checks:
            check = future.result()
            found, best = Candidate(task, reference, text, check.cpu_seconds), quickest.get(task.id)
            if check.outcome is Outcome.FAIL and (best is None or found.seconds < best.seconds):
                quickest[task.id] = best = found
            if best is None or best.seconds >= LIGHT_SECONDS:
                left.append((task, reference, others))
    yield from quickest.values()


def contest(candidates: list[Candidate], workers: int, rounds: int) -> dict[str, Rows]:
    """Let all contenders check the candidates, round after round in random order."""
    pool = VerifierSpec(executor="docker", workers=workers)
    with ExitStack() as stack:
        contenders: list[Contender] = [
            Ours("pool", pool),
            Ours("isolation: fresh", pool.model_copy(update={"isolation": "fresh"}), FRESH * workers),
            Ours("executor: process", pool.model_copy(update={"executor": "process"})),
            Theirs(PEER, "merged", workers, candidates),
            Theirs("EvalPlus, base and plus", "check", workers, candidates),
            Theirs("EvalPlus, one fork, small", "merged", workers, candidates, small=True),
        ]
        rows = {contender.name: Rows() for contender in contenders}
        for contender in contenders:
            stack.enter_context(contender)
            contender.check(candidates[: 2 * workers])
        for _ in range(rounds):
            for contender in random.sample(contenders, len(contenders)):
                rows[contender.name].turns.append(contender.turn(candidates))
    return rows


def report(rows: dict[str, Rows], workers: int, most_cpu: float) -> bool:
    """Print the figures; whether the pool reaches the goals."""
    peer, pool = rows[PEER], rows["pool"]
    title = f"workers: {workers}"
    print(f"{title:<25}   per s  ms CPU = client  sandbox engine  rate  CPU  machine  verdicts unlike the pool's")
    for name, row in rows.items():
        client, sandbox, engine = (1e3 * row.median(lambda turn, part=part: turn.cpu.get(part, 0.0)) for part in PARTS)
        first = row.turns[0].passed
        unlike = sum(a != b for a, b in zip(first, pool.turns[0].passed, strict=False))
        print(
            f"{name:<25} {row.rate:7.1f} {row.cpu:7.2f} = {client:6.2f} {sandbox:8.2f} {engine:6.2f} {row.rate / peer.rate:5.2f} "
            f"{row.cpu / peer.cpu:4.2f} {1e3 * row.median(lambda turn: turn.machine):8.2f}  {unlike} of {len(first)}"
        )
    return pool.rate >= LEAST_RATE * peer.rate and pool.cpu <= most_cpu * peer.cpu


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, help="the first so many tasks; default all")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--light", action="store_true", help="only the candidates that take little themselves")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    warnings.simplefilter("ignore", UserWarning)  # the process executor says that it is no sandbox, which is known here
    verifiers.verify.ContainerSandbox = Metered  # type: ignore[misc]
    everything = learn(options.tasks)
    light = [each for each in everything if each.seconds < LIGHT_SECONDS]
    sets = [(f"those that take under {1e3 * LIGHT_SECONDS:.0f} ms of CPU themselves", light, MOST_CPU)]
    if not options.light:
        sets.append(("all", everything, MOST_CPU_OF_ALL))
    reached = []
    for title, candidates, most_cpu in sets:
        own = 1e3 * statistics.mean(each.seconds for each in candidates)
        print(f"\n{len(candidates)} candidates, {title}: {own:.1f} ms of CPU each, measured in the sandbox")
        for workers in options.workers:
            reached.append(report(contest(candidates, workers, options.rounds), workers, most_cpu))
            print(f"rate at least {LEAST_RATE}, CPU at most {most_cpu}: {'reached' if reached[-1] else 'NOT reached'}")
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
