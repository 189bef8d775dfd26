"""Retries of a protocol: which sealed cells were asked again, when, and whether that came to its end. The manifest holds them.

A line ``retry`` is written before the first cell is asked again, a line ``retried`` after the last shard is sealed again. What lies
between is an open retry, which whatever runs next goes on with: its shards that were sealed again bear its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evalnoise.store.manifest import Manifest

LINEAGE_KEY = "retry"
"""In the lineage of a shard's files: the number of the retry that sealed them again."""

Cells = Mapping[str, frozenset[str]]
"""Ids of tasks by the name of a shard."""


@dataclass(frozen=True, slots=True)
class Retry:
    """One retry."""

    number: int
    """From 1, within the protocol."""
    at: str
    """When it began, ISO 8601, UTC."""
    asked: Cells
    """Cells without an outcome that are asked, or verified, again."""
    redone: Cells
    """Cells that depend on those: replays, reverifications and verdicts of them."""
    open: bool = False
    """Whether it has not come to its end."""

    @property
    def shards(self) -> tuple[str, ...]:
        """Every shard that is sealed again."""
        return tuple(dict.fromkeys([*self.asked, *self.redone]))

    @property
    def n_asked(self) -> int:
        """Cells that are asked again."""
        return sum(map(len, self.asked.values()))

    def cells(self, shard: str) -> frozenset[str]:
        """The tasks of a shard whose cells are made again."""
        return self.asked.get(shard, frozenset()) | self.redone.get(shard, frozenset())

    def line(self) -> dict[str, Any]:
        """The facts of the manifest's line."""
        parts = {name: {shard: sorted(ids) for shard, ids in getattr(self, name).items()} for name in ("asked", "redone")}
        return {"number": self.number, "at": self.at, **parts}

    @classmethod
    def of_line(cls, line: Mapping[str, Any], *, ended: bool) -> Retry:
        """The retry that a line tells of."""
        asked, redone = ({shard: frozenset(ids) for shard, ids in line[name].items()} for name in ("asked", "redone"))
        return cls(line["number"], line["at"], asked, redone, open=not ended)


def retries(manifest: Manifest) -> list[Retry]:
    """Every retry of a protocol in order, without those that its predecessor made."""
    return _retries(manifest.others)


def _retries(lines: Iterable[Mapping[str, Any]]) -> list[Retry]:
    lines = list(lines)
    ended = {line["number"] for line in lines if line.get("kind") == "retried"}
    return [Retry.of_line(line, ended=line["number"] in ended) for line in lines if line.get("kind") == "retry"]


def open_retry(manifest: Manifest) -> Retry | None:
    """The retry that has not come to its end."""
    return next((retry for retry in retries(manifest) if retry.open), None)


def pending(manifest: Manifest, retry: Retry) -> frozenset[str]:
    """The shards of a retry that are still as they were before it, or not sealed at all."""
    live = manifest.live
    done = {shard for shard, files in live.items() if files[0].lineage.get(LINEAGE_KEY) == retry.number}
    return frozenset(retry.shards) - done
