"""Progress on the command line: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tasks.progress import Tally, Watcher

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def watching() -> Iterator[Watcher]:
    """A watcher that writes to stderr while the block runs."""
    if sys.stderr.isatty():
        with _bar() as bar:
            yield bar
    else:
        yield _Lines()


def describe(tally: Tally, elapsed: float) -> str:
    """Cells, failures, cost and time left in one line."""
    done = tally.cells_resumed + tally.cells_done
    parts = [f"{done}/{tally.cells_planned} cells"]
    if tally.cells_resumed:
        parts.append(f"{tally.cells_resumed} resumed")
    parts.append(f"{tally.failures} unmeasured or unparsed")
    parts.append(f"{tally.calls} calls, {describe_cost(tally)}")
    if tally.calls_reused:
        parts.append(f"{tally.calls_reused} answers from the journal")
    if tally.rechecks:
        parts.append(f"{tally.rechecks} re-checks")
    parts.append(f"{_left(tally, elapsed)} left")
    return ", ".join(parts)


def describe_cost(tally: Tally) -> str:
    """Dollars spent, and how many calls are not in the sum because their price is unknown."""
    known = f"${tally.cost_usd:.4f}"
    return known if not tally.cost_unknown else f"{known} + {tally.cost_unknown} calls of unknown cost"


def _left(tally: Tally, elapsed: float) -> str:
    if not tally.cells_done:
        return "?"
    missing = tally.cells_planned - tally.cells_resumed - tally.cells_done
    seconds = max(0, round(elapsed * missing / tally.cells_done))
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes}:{seconds:02d}"


@dataclass(slots=True)
class _Lines:
    """A line at most every ten seconds, and one at the end of the cells."""

    begun: float = field(default_factory=time.monotonic)
    last: float = 0.0

    def update(self, tally: Tally) -> None:
        now = time.monotonic()
        ended = tally.cells_planned > 0 and tally.cells_resumed + tally.cells_done == tally.cells_planned
        if now - self.last < _SECONDS_BETWEEN_LINES and not (ended and tally.cells_done):
            return
        self.last = now
        stage = f" [{tally.stage}]" if tally.stage else ""
        sys.stderr.write(f"evalnoise: {describe(tally, now - self.begun)}{stage}\n")
        sys.stderr.flush()


@dataclass(slots=True)
class _Bar:
    """Feeds a rich progress bar."""

    progress: Progress
    task: TaskID
    begun: float = field(default_factory=time.monotonic)

    def update(self, tally: Tally) -> None:
        self.progress.update(
            self.task,
            total=tally.cells_planned or None,
            completed=tally.cells_resumed + tally.cells_done,
            text=describe(tally, time.monotonic() - self.begun),
            stage=tally.stage,
        )


@contextmanager
def _bar() -> Iterator[_Bar]:
    columns = (
        BarColumn(),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[stage]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=4, transient=True) as progress:
        yield _Bar(progress, progress.add_task("cells", total=None, text="", stage=""))
