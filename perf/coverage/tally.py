"""Counting misses, each side apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evalnoise.stats.estimate import Estimate
from evalnoise.stats.intervals import GAFFKE_NOTE


@dataclass(slots=True)
class Tally:
    """What became of one kind of interval."""

    n: int = 0
    """Simulated studies."""
    below: int = 0
    """The truth lies under the lower end."""
    above: int = 0
    """The truth lies over the upper end."""
    undefined: int = 0
    """No interval."""
    warned: int = 0
    """An interval with a note that says when not to trust it."""
    warned_missed: int = 0
    """Of those, how many missed."""
    width: float = 0.0

    def add(self, truth: float, found: Estimate) -> None:
        self.n += 1
        if found.lo is None or found.hi is None:
            self.undefined += 1
            return
        # Room for rounding: a truth of 0 is not missed by an end of 1e-18.
        below, above = truth < found.lo - 1e-12, truth > found.hi + 1e-12
        self.below += below
        self.above += above
        self.width += found.hi - found.lo
        # That Gaffke's interval is a conjecture is said of each, and is no warning about these counts.
        warned = bool(found.note.replace(GAFFKE_NOTE, "").strip("; "))
        self.warned += warned
        self.warned_missed += warned and (below or above)

    def merged(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    @property
    def defined(self) -> int:
        return self.n - self.undefined

    def share(self, count: int) -> float:
        return count / self.defined if self.defined else 0.0

    @property
    def silent_misses(self) -> float | None:
        """Share of misses, both sides, among intervals that came without a warning; None for fewer than a hundred of them."""
        silent = self.defined - self.warned
        return (self.below + self.above - self.warned_missed) / silent if silent >= 100 else None

    @property
    def coverage(self) -> float:
        return 1 - self.share(self.below + self.above)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Which interval, where."""

    part: str
    """w, score, contrast of w, …"""
    method: str
    covers: str
    family: str
    tasks: int
    replicates: int


Found = dict[Place, Tally]


def merge(parts: Iterable[Found]) -> Found:
    total: Found = {}
    for part in parts:
        for place, tally in part.items():
            total[place] = total[place].merged(tally) if place in total else tally
    return total
