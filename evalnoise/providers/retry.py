"""How long to wait before a call is tried again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_WAIT: Final = 30.0
"""Seconds between two attempts at most, if the server does not say."""
LONGEST_TOLD: Final = 300.0
"""A server that asks for more seconds than this is not waited for."""


def backoff(attempts: int, told: float | None, *, first: float, draw: float) -> float | None:
    """Seconds to wait after so many attempts; None: too long to wait.

    Args:
        attempts: Attempts that have failed.
        told: Seconds that the server asked for, if it did: waited for whole, and a little more so that clients spread.
        first: Seconds before the first retry.
        draw: A random number in [0, 1) that spreads the waits: half of each is fixed, half is drawn.
    """
    if told is not None:
        return told * (1 + 0.1 * draw) if told <= LONGEST_TOLD else None
    step = min(LONGEST_WAIT, first * 2.0 ** min(attempts - 1, 30))
    return step * (0.5 + 0.5 * draw)


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Seconds that the server asked to wait, by ``retry-after-ms`` or ``retry-after``; None if it did not say so legibly."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return _until(headers.get("retry-after"), now or datetime.now(UTC))


def _until(date: str | None, now: datetime) -> float | None:
    if date is None:
        return None
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
