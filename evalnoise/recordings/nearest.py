"""What differs between two requests, and which recorded request is nearest to one that was not recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

PATHS_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Nearest:
    """The recorded request that is least different."""

    key: str
    paths: tuple[str, ...]
    """JSON paths at which it differs."""

    def __str__(self) -> str:
        shown = ", ".join(self.paths[:PATHS_SHOWN])
        more = f" and {len(self.paths) - PATHS_SHOWN} more" if len(self.paths) > PATHS_SHOWN else ""
        return f"request {self.key[:12]}, which differs at {shown or 'no field'}{more}"


def nearest(asked: str, candidates: Iterable[tuple[str, str]]) -> Nearest | None:
    """The candidate with the fewest differing paths; None without candidates.

    Args:
        asked: A request, JSON.
        candidates: Keys with their requests, JSON; those without a request are passed over.
    """
    body = json.loads(asked)
    compared = [Nearest(key, tuple(differing_paths(body, json.loads(text)))) for key, text in candidates if text]
    return min(compared, key=lambda found: (len(found.paths), found.key), default=None)


def differing_paths(left: Any, right: Any, path: str = "$") -> list[str]:
    """JSON paths at which two JSON values differ, in order."""
    if isinstance(left, dict) and isinstance(right, dict):
        names = sorted(left.keys() | right.keys())
        absent = object()
        return [p for n in names for p in differing_paths(left.get(n, absent), right.get(n, absent), f"{path}.{n}")]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [p for n, (a, b) in enumerate(zip(left, right, strict=True)) for p in differing_paths(a, b, f"{path}[{n}]")]
    return [] if type(left) is type(right) and left == right else [path]
