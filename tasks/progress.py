"""Progress: what the shards tell the outside while they work."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Protocol

from schemas.records import Check, Outcome


@dataclass(slots=True)
class Tally:
    """Counts of a run so far."""

    cells_planned: int = 0
    """Cells and verdicts of the whole study."""
    cells_resumed: int = 0
    """Of them, sealed by an earlier run."""
    cells_done: int = 0
    """Of them, settled by this run."""
    failures: int = 0
    """Cells that ended unmeasured."""
    calls: int = 0
    """Calls that this run made."""
    calls_reused: int = 0
    """Answers taken from the journal of an earlier run instead of being paid again."""
    sendings_repeated: int = 0
    """Requests that this run sent again after a failure or a lost answer."""
    cost_usd: float = 0.0
    """Known cost of what this run sent, failed sendings too."""
    cost_unknown: int = 0
    """Sendings of this run whose cost is not known; they are not in `cost_usd`."""
    max_cost: float | None = None
    """What the protocol may cost; None: no limit."""
    spent: float = 0.0
    """Of that limit, what all runs are known to have taken."""
    held: float = 0.0
    """Of it, what their sendings of unknown cost can have taken at most."""
    rechecks: int = 0
    """Verifications that were run again."""
    stage: str = ""
    """What is being done, for instance the name of a shard."""


class Watcher(Protocol):
    """Shown the tally whenever it changes."""

    def update(self, tally: Tally) -> None:
        """Take note; must be quick and must not raise."""

    def say(self, text: str) -> None:
        """Show a sentence at once; must not raise."""


class NoWatcher:
    """Looks away."""

    def update(self, tally: Tally) -> None:
        """Do nothing."""

    def say(self, text: str) -> None:
        """Do nothing."""


@dataclass(slots=True)
class Progress:
    """The tally behind a lock, so that shards in several threads may count."""

    watcher: Watcher = field(default_factory=NoWatcher)
    tally: Tally = field(default_factory=Tally)
    _again: set[str] = field(default_factory=set)
    """Names of shards that are measured for the second time."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def plan(self, cells: int, resumed: int) -> None:
        """State the size of the study."""
        with self._lock:
            self.tally.cells_planned = cells
            self.tally.cells_resumed = resumed
            self.watcher.update(self.tally)

    def stage(self, name: str) -> None:
        """Say what is being done."""
        with self._lock:
            self.tally.stage = name
            self.watcher.update(self.tally)

    def limit_cost(self, max_cost: float | None, *, spent: float, held: float) -> None:
        """State what the protocol may cost, and what is taken of it."""
        with self._lock:
            self.tally.max_cost, self.tally.spent, self.tally.held = max_cost, spent, held

    def call(self, shard: str, *, sent_before: bool, reused: bool) -> None:
        """Count a call, or an answer that the journal already held; once, though its shard is measured twice."""
        with self._lock:
            if not (sent_before and shard in self._again):
                self.tally.calls_reused += reused
                self.tally.calls += not reused
            self.watcher.update(self.tally)

    def sending(self, cost: float | None, again: bool) -> None:  # noqa: FBT001 - the sender's callback
        """Count a request that was sent: what it cost, and whether it was sent before."""
        with self._lock:
            self.tally.sendings_repeated += again
            self.tally.cost_usd += cost or 0.0
            self.tally.cost_unknown += cost is None
            self.watcher.update(self.tally)

    def check(self, check: Check) -> None:
        """Count the re-checks of a verification."""
        with self._lock:
            self.tally.rechecks += len(check.rechecks)

    def say(self, text: str) -> None:
        """Tell whoever watches."""
        with self._lock:
            self.watcher.say(text)

    def forget(self, shard: str, cells: int, failures: int) -> None:
        """Take back the cells of a shard that is measured again later; what was sent for it stays counted."""
        with self._lock:
            self._again.add(shard)
            self.tally.cells_done -= cells
            self.tally.failures -= failures
            self.watcher.update(self.tally)

    def cell(self, outcome: Outcome) -> None:
        """Count a settled cell or verdict."""
        with self._lock:
            self.tally.cells_done += 1
            self.tally.failures += outcome is Outcome.UNMEASURED
            self.watcher.update(self.tally)
