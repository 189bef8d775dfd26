"""How a server does: how many calls it bears at once, and how failures are kept from multiplying.

No clock and no waiting in here: every method is told the time, and says how long to wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evalnoise.providers.base import Failure, Kind
from evalnoise.sending.retry import LONGEST_TOLD, backoff

SHARE: Final = 0.2
"""Repeated sendings that each first sending allows."""
FLOOR: Final = 10.0
"""Repeated sendings that are allowed at the start; while the server answers, the allowance comes back up to here."""
_MOST: Final = 50.0
"""Repeated sendings that can gather."""
_REFILL: Final = 0.1
"""Of the floor, repeated sendings per second that come back."""
_STORM: Final = 10
"""Failed sendings in a row, none answered between them, after which first sendings wait too once the allowance is used up."""
_SPREAD: Final = 1.0
"""Seconds over which the first sendings after a pause are spread."""


@dataclass(slots=True)
class Start:
    """A sending that was let out."""

    at: float
    again: bool
    """Whether its request was sent before."""
    probe: bool
    """Whether it was let out to see if the server is back, without allowance."""


class Health:
    """The state of one server."""

    def __init__(self, *, concurrency: int, first_wait: float, draw: Callable[[], float]) -> None:
        self.failing_since: float | None = None
        """Since when every sending failed; None: the last one was answered, or none was sent."""
        self.cuts = 0
        """How often the number of calls at once was halved."""
        self._most = float(concurrency)
        self._limit = float(concurrency)
        self._quick_below = 0.0
        self._answered_since_cut = True
        self._cut_at = -math.inf
        self._pause_until = -math.inf
        self._spacing = False
        self._allowance = FLOOR
        self._refilled_at: float | None = None
        self._failed_in_a_row = 0
        self._probing = False
        self._failed_probes = 0
        self._probe_at = -math.inf
        self._first_wait = first_wait
        self._draw = draw

    @property
    def limit(self) -> int:
        """Calls at once that the server is taken to bear."""
        return int(self._limit)

    def wait(self, *, again: bool, in_flight: int, now: float) -> float:
        """Seconds until a sending may start; infinite: until another one ends."""
        if in_flight >= self.limit:
            return math.inf
        wait = max(0.0, self._pause_until - now)
        if self._must_probe(again=again, now=now):
            return math.inf if self._probing else max(wait, self._probe_at - now)
        return wait

    def _must_probe(self, *, again: bool, now: float) -> bool:
        if self._allowance < 1:
            self._refill(now)
        return self._allowance < 1 and (again or self._failed_in_a_row >= _STORM)

    def _refill(self, now: float) -> None:
        """The floor comes back with time, but not while nothing but failures comes."""
        if self._failed_in_a_row == 0 and self._refilled_at is not None and self._allowance < FLOOR:
            self._allowance = min(FLOOR, self._allowance + (now - self._refilled_at) * _REFILL)
        self._refilled_at = now

    def start(self, *, again: bool, now: float) -> Start:
        """Let a sending out, after `wait` said so."""
        probe = self._must_probe(again=again, now=now)
        if probe:
            self._probing = True
        elif again:
            self._allowance -= 1
        else:
            self._allowance = min(_MOST, self._allowance + SHARE)
        if self._spacing:
            # Those who waited for the same moment must not all come in it.
            self._pause_until = max(self._pause_until, now + self._draw() * _SPREAD / self._limit)
        return Start(now, again, probe)

    def drop(self, start: Start) -> None:
        """Nothing was sent after all."""
        if start.probe:
            self._probing = False
        elif start.again:
            self._allowance += 1

    def answered(self, start: Start) -> None:
        """A sending got its response."""
        self.failing_since, self._failed_in_a_row = None, 0
        self._spacing, self._answered_since_cut = False, True
        if start.probe:
            self._probing, self._failed_probes = False, 0
            # One more than it would have cost: two may follow where one was answered.
            self._allowance += 2
        elif start.again:
            self._allowance += 1
        if self._limit < self._most:
            self._limit = min(self._most, self._limit + (1.0 if self._limit < self._quick_below else 1.0 / self._limit))

    def failed(self, start: Start, failure: Failure, *, now: float) -> None:
        """A sending failed in a way that can pass."""
        self._failed_in_a_row += 1
        if self.failing_since is None:
            self.failing_since = start.at
        if failure.kind is Kind.OVERLOADED and start.at >= self._cut_at:
            # Once for all that were in flight together: they tell of the same moment.
            if self._answered_since_cut:
                self._quick_below = self._limit / 2
            self._answered_since_cut = False
            self._limit = max(1.0, self._limit / 2)
            self._cut_at = now
            self.cuts += 1
        if failure.wait is not None and failure.wait <= LONGEST_TOLD:
            self._pause_until = max(self._pause_until, now + failure.wait * (1 + 0.1 * self._draw()))
            self._spacing = True
        if start.probe:
            self._probing = False
            self._failed_probes += 1
            self._probe_at = now + (backoff(self._failed_probes, None, first=self._first_wait, draw=self._draw()) or 0.0)
