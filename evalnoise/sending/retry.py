"""How long to wait before a call is tried again."""

from __future__ import annotations

from typing import Final

FIRST_WAIT: Final = 0.5
"""Seconds before a request is sent again for the first time, if the server does not say; doubled for each further one."""
LONGEST_WAIT: Final = 30.0
"""Seconds between two sendings at most, if the server does not say."""
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
