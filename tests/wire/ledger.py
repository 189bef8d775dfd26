"""The server's own count of what it was asked and what it answered, in a file that survives it."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any


def body_hash(raw: bytes) -> str:
    """What requests are counted by: equal bodies are one request."""
    return hashlib.sha256(raw).hexdigest()


@dataclass
class Counts:
    """The sum of a ledger."""

    asked: Counter[str] = field(default_factory=Counter)
    """Requests by the hash of their body."""
    answered: Counter[str] = field(default_factory=Counter)
    """Answers that were sent whole, by the same."""
    faults: Counter[str] = field(default_factory=Counter)
    """Faults by name."""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Each answer that was sent whole, by its id: key, right, input and output tokens, cost."""
    unsent: int = 0
    """Answers that were not sent whole, because the client was gone."""

    @property
    def cost(self) -> float:
        """US dollars of all answers that were sent whole."""
        return float(sum((Fraction(answer["cost"]) for answer in self.answers.values()), Fraction()))


class Ledger:
    """Appends to the file; one write each, so that a killed server leaves whole lines."""

    def __init__(self, path: Path) -> None:
        self.counts = read(path)
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)

    def add(self, **line: Any) -> None:
        _count(self.counts, line)
        os.write(self._file, json.dumps(line).encode() + b"\n")


def read(path: Path) -> Counts:
    """The counts in a ledger; empty where there is none."""
    counts = Counts()
    if path.exists():
        for line in path.read_bytes().splitlines():
            _count(counts, json.loads(line))
    return counts


def _count(counts: Counts, line: dict[str, Any]) -> None:
    if line["what"] == "asked":
        counts.asked[line["key"]] += 1
    elif line["what"] == "fault":
        counts.faults[line["name"]] += 1
    elif line["whole"]:
        counts.answered[line["key"]] += 1
        counts.answers[line["id"]] = line
    else:
        counts.unsent += 1
