"""The pace of one server: what the study allows in a minute, and what the server's own headers say is left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from evalnoise.sending.rate_headers import KINDS, Allowance, allowances

_MINUTE: Final = 60.0
_BELIEVED: Final = 60.0
"""Seconds for which a header can hold a sending back. A limit that lasts longer is learnt from refusals and their retry-after."""
_ROUNDING: Final = 1e-6
"""A smaller lack is one of arithmetic."""


@dataclass(frozen=True, slots=True)
class Load:
    """What one sending asks of a server, or turned out to have asked."""

    input_tokens: float
    output_tokens: float

    def of(self, kind: str) -> float:
        """The amount that counts against a kind of limit."""
        if kind == "requests":
            return 1.0
        if kind == "input-tokens":
            return self.input_tokens
        return self.output_tokens if kind == "output-tokens" else self.input_tokens + self.output_tokens


class Bucket:
    """An allowance per minute that fills evenly. What is taken may leave a debt, which later ones wait for."""

    def __init__(self, per_minute: float, *, now: float) -> None:
        self.per_minute = per_minute
        # A second's worth may gather, so that a late event loop loses nothing; the rate is lower by as much, so that no minute
        # sees more than was asked for.
        self._room = max(1.0, per_minute / _MINUTE)
        self._rate = (per_minute - self._room + 1.0) / _MINUTE
        self._level = self._room
        self._at = now

    def wait(self, amount: float, *, now: float) -> float:
        """Seconds until the amount may be taken. More than fits is let out when the bucket is full."""
        self._level = min(self._room, self._level + (now - self._at) * self._rate)
        self._at = now
        missing = min(amount, self._room) - self._level
        return missing / self._rate if missing > _ROUNDING else 0.0

    def take(self, amount: float) -> None:
        """Take it; give back with a negative amount."""
        self._level = min(self._room, self._level - amount)


class HeaderBucket:
    """What a server said is left of a limit, less what was sent since, plus what has come back since."""

    def __init__(self, said: Allowance, *, sent_since: float, now: float) -> None:
        self._level = said.remaining - sent_since
        self._room = math.inf if said.limit is None else said.limit
        self._rate = 0.0
        if said.limit is not None and said.reset > 0:
            self._rate = (said.limit - said.remaining) / said.reset
        self._at = now
        self._until = now + min(said.reset, _BELIEVED)

    def wait(self, amount: float, *, now: float) -> float:
        """Seconds until the amount may be sent."""
        if now >= self._until:
            return 0.0
        self._level = min(self._room, self._level + (now - self._at) * self._rate)
        self._at = now
        missing = min(amount, self._room) - self._level
        if missing <= _ROUNDING:
            return 0.0
        return min(self._until - now, missing / self._rate if self._rate else math.inf)

    def take(self, amount: float) -> None:
        """Count what is sent."""
        self._level -= amount


class Pacer:
    """Says how long a sending must wait, and learns from usage and headers."""

    def __init__(
        self, *, requests_per_minute: float | None = None, tokens_per_minute: float | None = None, now: float = 0.0
    ) -> None:
        limits = {"requests": requests_per_minute, "tokens": tokens_per_minute}
        self._buckets = {kind: Bucket(limit, now=now) for kind, limit in limits.items() if limit is not None}
        self._heard: dict[str, HeaderBucket] = {}
        self._heard_of = -1
        self._taken = dict.fromkeys(KINDS, 0.0)
        self._number = 0

    def wait(self, load: Load, *, now: float) -> float:
        """Seconds until the load may be sent."""
        longest = 0.0
        for kind, bucket in self._buckets.items():
            longest = max(longest, bucket.wait(load.of(kind), now=now))
        for kind, heard in self._heard.items():
            longest = max(longest, heard.wait(load.of(kind), now=now))
        return longest

    def take(self, load: Load) -> Taken:
        """Count a load that is sent now."""
        for kind, bucket in self._buckets.items():
            bucket.take(load.of(kind))
        for kind, heard in self._heard.items():
            heard.take(load.of(kind))
        for kind in KINDS:
            self._taken[kind] += load.of(kind)
        self._number += 1
        return Taken(self._number, load, tuple(self._taken.values()))

    def correct(self, taken: Taken, used: Load) -> None:
        """Put the estimate right by what the server counted."""
        bucket = self._buckets.get("tokens")
        if bucket is not None:
            # A count can be wrong: one answer holds nobody back for more than a minute.
            bucket.take(min(used.of("tokens") - taken.load.of("tokens"), bucket.per_minute))

    def hear(self, taken: Taken, headers: Mapping[str, str], *, now: float) -> None:
        """Take note of the headers of an answer, unless a later sending's were heard before."""
        if not headers or taken.number < self._heard_of:
            return
        said = allowances(headers, now=datetime.now(UTC))
        if not said:
            return
        self._heard_of = taken.number
        before = dict(zip(KINDS, taken.before, strict=True))
        self._heard = {
            kind: HeaderBucket(allowance, sent_since=self._taken[kind] - before[kind], now=now) for kind, allowance in said.items()
        }


@dataclass(frozen=True, slots=True)
class Taken:
    """A load that was sent, and how much had been sent then, itself included."""

    number: int
    load: Load
    before: tuple[float, ...]
    """By kind, in their order."""
