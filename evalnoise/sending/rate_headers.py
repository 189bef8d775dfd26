"""What a server's headers say of its limits: how much is left of each, and when it is whole again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

KINDS: Final = ("requests", "tokens", "input-tokens", "output-tokens")
"""What servers limit."""

_FORMS: Final = (("x-ratelimit-{what}-{kind}", KINDS[:2]), ("anthropic-ratelimit-{kind}-{what}", KINDS))
"""How the names of headers are made: OpenAI's way, which most others follow, and Anthropic's."""
_LONGEST_RESET: Final = 86_400.0
"""Seconds; a longer time is no limit of a rate."""
_NUMBER: Final = re.compile(r"\d{1,15}(\.\d{1,9})?", re.ASCII)
_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(h|ms|m|s|us|µs|ns)", re.ASCII)
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_LONGEST_TEXT: Final = 64


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of one limit."""

    remaining: float
    reset: float
    """Seconds until it is whole again."""
    limit: float | None
    """The whole; None: not said."""


def allowances(headers: Mapping[str, str], *, now: datetime) -> dict[str, Allowance]:
    """What the headers, named in lower case, say of each kind of limit. What cannot be read or cannot be meant is left out."""
    found: dict[str, Allowance] = {}
    if not headers:
        return found
    for form, kinds in _FORMS:
        for kind in kinds:
            remaining = number(headers.get(form.format(kind=kind, what="remaining")))
            reset = seconds_until(headers.get(form.format(kind=kind, what="reset")), now=now)
            if remaining is None or reset is None:
                continue
            limit = number(headers.get(form.format(kind=kind, what="limit")))
            found[kind] = Allowance(remaining, reset, limit if limit and limit >= remaining else None)
    return found


def number(text: str | None) -> float | None:
    """A plain number that is not negative, else None."""
    return float(text) if text is not None and _NUMBER.fullmatch(text) else None


def seconds_until(text: str | None, *, now: datetime) -> float | None:
    """Seconds in a duration (``1s``, ``6m0s``, ``20ms``, ``3``) or until an RFC 3339 time; None for anything else."""
    if text is None or not text or len(text) > _LONGEST_TEXT:
        return None
    seconds = number(text)
    if seconds is None:
        seconds = _duration(text) if _PART.match(text) and "T" not in text else _until(text, now)
    return seconds if seconds is not None and seconds <= _LONGEST_RESET else None


def _duration(text: str) -> float | None:
    parts = _PART.findall(text)
    if "".join(amount + unit for amount, unit in parts) != text:
        return None
    return sum(float(amount) * _UNITS[unit] for amount, unit in parts)


def _until(text: str, now: datetime) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return max(0.0, (moment - now).total_seconds())
