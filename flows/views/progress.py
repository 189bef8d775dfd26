"""Progress on the command line: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evalnoise.report.numbers import counted
from tasks.progress import Tally, Watcher

_SECONDS_BETWEEN_LINES = 10.0
_BAR_LEAST, _BAR_MOST = 10, 30
_STAGE_LEAST = 12
"""Characters of a shard's name that are worth showing."""
_CENT = 0.01


@contextmanager
def watching() -> Iterator[Watcher]:
    """A watcher that writes to stderr while the block runs."""
    console = Console(stderr=True)
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        yield _Lines()
        return
    bar = Bar()
    with Live(bar, console=console, refresh_per_second=4, transient=True):
        yield bar


def describe(tally: Tally, elapsed: float) -> str:
    """Everything that is known, in one line."""
    parts = [_cells(tally)]
    if tally.cells_resumed:
        parts.append(f"{tally.cells_resumed} resumed")
    parts.append(f"{tally.failures} unmeasured or unparsed")
    again = f" ({counted(tally.sendings_repeated, 'request')} sent again)" if tally.sendings_repeated else ""
    parts.append(f"{counted(tally.calls, 'call')}{again}, {_cost(tally, digits=4)}")
    if tally.calls_reused:
        parts.append(f"{counted(tally.calls_reused, 'answer')} from the journal")
    if tally.rechecks:
        parts.append(counted(tally.rechecks, "re-check"))
    parts.append(f"{_left(tally, elapsed)} left")
    return ", ".join(parts)


def describe_briefly(tally: Tally, elapsed: float) -> str:
    """What a narrow terminal must show."""
    spent = tally.cost_usd if tally.max_cost is None else tally.spent
    cost = _cost(tally, digits=2 if spent == 0 or spent >= _CENT else 4)
    return f"{_cells(tally)}, {tally.failures} unmeasured, {cost}, {_left(tally, elapsed)} left"


def _cost(tally: Tally, *, digits: int) -> str:
    """What this run spent, with the number of sendings of unknown cost; under a limit what all runs took of it, known and held."""
    if tally.max_cost is None:
        return f"${tally.cost_usd:.{digits}f}" + (f" + {tally.cost_unknown} unpriced" if tally.cost_unknown else "")
    held = f" + ${tally.held:.{digits}f} held" if tally.held else ""
    return f"${tally.spent:.{digits}f}{held} of ${tally.max_cost:.2f}"


def _done(tally: Tally) -> int:
    return tally.cells_resumed + tally.cells_done


def _cells(tally: Tally) -> str:
    return f"{_done(tally)}/{counted(tally.cells_planned, 'cell')}"


def _left(tally: Tally, elapsed: float) -> str:
    missing = tally.cells_planned - _done(tally)
    if tally.cells_planned and missing <= 0:
        return "0:00"
    if not tally.cells_done:
        return "?"
    minutes, seconds = divmod(max(0, round(elapsed * missing / tally.cells_done)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


@dataclass(slots=True)
class _Lines:
    """A line at most every ten seconds, and one at the end of the cells."""

    begun: float = field(default_factory=time.monotonic)
    last: float = -math.inf

    def update(self, tally: Tally) -> None:
        now = time.monotonic()
        ended = tally.cells_planned > 0 and _done(tally) == tally.cells_planned
        if now - self.last < _SECONDS_BETWEEN_LINES and not (ended and tally.cells_done):
            return
        self.last = now
        stage = f" [{tally.stage}]" if tally.stage else ""
        self.say(f"{describe(tally, now - self.begun)}{stage}")

    def say(self, text: str) -> None:
        sys.stderr.write(f"evalnoise: {text}\n")
        sys.stderr.flush()


@dataclass(slots=True)
class Bar:
    """A bar and as much of the tally as the terminal is wide, made anew at every refresh."""

    tally: Tally = field(default_factory=Tally)
    begun: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Above the bar."""
        sys.stderr.write(f"evalnoise: {text}\n")

    def update(self, tally: Tally) -> None:
        """Remember the tally; it is drawn at the next refresh."""
        self.tally = tally

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        tally, elapsed = self.tally, time.monotonic() - self.begun
        if not tally.cells_planned:
            text, stage = tally.stage or "preparing", ""
        else:
            text, stage = _that_fits(tally, elapsed, options.max_width - _BAR_LEAST - 1)
        width = max(1, min(_BAR_MOST, options.max_width - len(text) - 1 - (len(stage) + 1 if stage else 0)))
        bar = ProgressBar(tally.cells_planned or None, _done(tally), width=width, animation_time=time.monotonic())
        line = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
        for column in (width, len(text), len(stage)):
            line.add_column(width=column, no_wrap=True, overflow="crop")
        line.add_row(bar, Text(text), Text(stage, style="dim"))
        yield line


def _that_fits(tally: Tally, elapsed: float, room: int) -> tuple[str, str]:
    """What is said beside the bar, and the shard's name: the fullest that there is room for. The name is cut first."""
    brief, full = describe_briefly(tally, elapsed), describe(tally, elapsed)
    for text in (full, brief):
        if len(text) + 1 + len(tally.stage) <= room:
            return text, tally.stage
    left = room - len(brief) - 1
    # Of a long name the end tells most: which replicate and which tasks.
    return brief, f"…{tally.stage[1 - left :]}" if left >= _STAGE_LEAST else ""
