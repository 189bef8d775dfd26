"""The plan of a study: which shards there are and in which order they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from schemas.study import CellSource, Condition, Study


@dataclass(frozen=True, slots=True)
class Shard:
    """The cells of one (stack, condition, replicate, block of tasks): one Prefect task run, one file per table."""

    stack: str
    condition: str
    replicate: int
    start: int
    """Position of the block's first task."""
    stop: int
    """Position after its last task."""
    purpose: str = "measure"
    """`measure`; `reverify`, which generates nothing; `judge`: the condition is a judge condition, and the replicate a repeat;
    `probes`: the judge condition's probes, which are no cells of the tasks named."""

    @property
    def name(self) -> str:
        """A name that a person can read and a file can bear."""
        return f"{self.purpose}~{self.stack}~{self.condition}~r{self.replicate:04d}~{self.part}"

    @property
    def part(self) -> str:
        """Which tasks, for file names: positions of the first and the last."""
        return f"t{self.start:05d}-{self.stop - 1:05d}"

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.stop - self.start


def measured_shards(study: Study, n_tasks: int) -> list[Shard]:
    """All shards of cells in the order in which they run: permuted blocks.

    Replicate by replicate and block by block, every (stack, condition) once, in an order drawn from the study's seed, so that a
    drift in time does not become a difference between conditions. A replay or reverification of this study's own cells moves
    behind the replicate that it comes from.
    """
    rng = np.random.default_rng([study.analysis.seed, 0x0DE2])
    pairs = [(stack.name, condition) for condition in study.conditions for stack in study.stacks]
    ordered: list[Shard] = []
    waiting: list[Shard] = []
    for replicate in range(study.replicates):
        for start, stop in _blocks(n_tasks, study.limits.shard_cells):
            for index in rng.permutation(len(pairs)):
                stack, condition = pairs[int(index)]
                shard = _measured(stack, condition, replicate, start, stop)
                (waiting if _must_wait(study, condition, replicate) else ordered).append(shard)
        ready = [s for s in waiting if not _must_wait(study, study.condition(s.condition), replicate + 1)]
        # A reverification of a replay may become ready together with it.
        ordered += sorted(ready, key=lambda s: len(_origins(study, study.condition(s.condition))))
        waiting = [s for s in waiting if s not in ready]
    return ordered


def judge_shards(study: Study, n_tasks: int) -> list[Shard]:
    """All judge shards in the order in which they run: repeat by repeat, judge conditions permuted."""
    if study.judge is None:
        return []
    rng = np.random.default_rng([study.analysis.seed, 0x0D9E])
    pairs = [(stack.name, condition.name) for condition in study.judge.conditions for stack in study.stacks]
    return [
        Shard(*pairs[int(index)], repeat, start, stop, "judge")
        for repeat in range(study.judge.repeats)
        for start, stop in _blocks(n_tasks, study.limits.shard_cells)
        for index in rng.permutation(len(pairs))
    ]


def probe_shards(study: Study) -> list[Shard]:
    """The shards of probes, one for each judge condition, before all others. Stacks do not matter to them: the first bears them."""
    if study.judge is None or study.judge.probes is None:
        return []
    return [Shard(study.stacks[0].name, condition.name, 0, 0, 1, "probes") for condition in study.judge.conditions]


def source_shards(study: Study, shard: Shard, n_tasks: int) -> list[Shard]:
    """The shards of this study that a shard's cells come from; empty for fresh cells and for replays of a file.

    A replay's recording holds a whole replicate; a reverification needs its own block of tasks alone.
    """
    condition = study.condition(shard.condition)
    if condition.source is None:
        return []
    own = [(shard.start, shard.stop)] if condition.kind == "reverify" else _blocks(n_tasks, study.limits.shard_cells)
    origin = study.condition(condition.source.condition)
    return [_measured(shard.stack, origin, condition.source.replicate, start, stop) for start, stop in own]


def shards_before(study: Study, shard: Shard, n_tasks: int) -> list[Shard]:
    """The shards that must be sealed before a shard, of cells or of verdicts, can be made."""
    if shard.purpose == "probes":
        return []
    if shard.purpose != "judge":
        return source_shards(study, shard, n_tasks)
    probes = [one for one in probe_shards(study) if one.condition == shard.condition]
    return [*probes, Shard(shard.stack, study.judged_condition().name, 0, shard.start, shard.stop)]


def cells_from(study: Study, shard: Shard) -> Shard | None:
    """The shard that holds the very cells that a shard replays, verifies again or judges; None for fresh cells and files."""
    if shard.purpose == "judge":
        return Shard(shard.stack, study.judged_condition().name, 0, shard.start, shard.stop)
    source = study.condition(shard.condition).source
    if source is None:
        return None
    return _measured(shard.stack, study.condition(source.condition), source.replicate, shard.start, shard.stop)


def with_what_is_before(study: Study, shards: Iterable[Shard], n_tasks: int) -> set[Shard]:
    """The shards, and all that must be sealed before them."""
    found: set[Shard] = set()
    waiting = list(shards)
    while waiting:
        shard = waiting.pop()
        if shard not in found:
            found.add(shard)
            waiting += shards_before(study, shard, n_tasks)
    return found


def _measured(stack: str, condition: Condition, replicate: int, start: int, stop: int) -> Shard:
    purpose = "reverify" if condition.kind == "reverify" else "measure"
    return Shard(stack, condition.name, replicate, start, stop, purpose)


def _origins(study: Study, condition: Condition) -> list[CellSource]:
    """Where a condition's cells come from, and where those come from in turn."""
    source = condition.source
    return [] if source is None else [source, *_origins(study, study.condition(source.condition))]


def _must_wait(study: Study, condition: Condition, finished_replicates: int) -> bool:
    return any(source.replicate >= finished_replicates for source in _origins(study, condition))


def _blocks(n_tasks: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size, n_tasks)) for start in range(0, n_tasks, size))
