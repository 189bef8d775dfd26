"""Counts: what the statistics need of the sealed outcomes and verdicts, as arrays, read in SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counts:
    """One stack under one condition; arrays have one entry per task of the protocol, in the benchmark's order."""

    stack: str
    condition: str
    passes: Ints
    runs: Ints
    """Measured replicates."""
    unmeasured: int
    """Cells without an outcome, over all tasks."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One stack's frozen candidates under one judge condition; the first axis is the judged task, the second the repeat."""

    stack: str
    condition: str
    verdicts: Ints
    """1 pass, 0 fail, -1 unparsed."""
    confidence: NDArray[np.float64]
    """Stated confidences, 0 to 100; 0 where none was stated."""
    stated: NDArray[np.bool_]
    """Whether a confidence was stated."""
    reference: Ints
    """What execution said of each candidate: 1 pass, 0 fail."""
    positions: Ints
    """Place of each judged task in the benchmark's order, ascending."""


_COUNTS = (
    "select stack, condition, position, passes, runs, unmeasured from task_counts where study = $study and protocol = $protocol"
)
_VERDICTS = """
select stack, condition, position, repeat, case verdict when 'pass' then 1 when 'fail' then 0 else -1 end, confidence,
    (reference_outcome = 'pass')::int
from verdicts where study = $study and protocol = $protocol
order by stack, condition, position, repeat
"""


def read_counts(connection: Any, study: str, protocol: str, n_tasks: int) -> dict[tuple[str, str], Counts]:
    """Counts by (stack, condition)."""
    found: dict[tuple[str, str], tuple[Ints, Ints, Ints]] = {}
    rows = connection.execute(_COUNTS, {"study": study, "protocol": protocol}).fetchall()
    for stack, condition, position, *numbers in rows:
        empty = tuple(np.zeros(n_tasks, dtype=np.int64) for _ in range(3))
        arrays = found.setdefault((stack, condition), empty)  # type: ignore[arg-type]
        for array, value in zip(arrays, numbers, strict=True):
            array[position] = value
    return {
        key: Counts(*key, passes=passes, runs=runs, unmeasured=int(unmeasured.sum()))
        for key, (passes, runs, unmeasured) in found.items()
    }


def read_judged(connection: Any, study: str, protocol: str) -> list[Judged]:
    """Verdicts of each stack under each judge condition, in order."""
    rows = connection.execute(_VERDICTS, {"study": study, "protocol": protocol}).fetchall()
    keys = dict.fromkeys((row[0], row[1]) for row in rows)
    return [_judged(key, [row[2:] for row in rows if (row[0], row[1]) == key]) for key in keys]


def _judged(key: tuple[str, str], rows: list[tuple[Any, ...]]) -> Judged:
    places = {position: place for place, position in enumerate(sorted({row[0] for row in rows}))}
    shape = (len(places), 1 + max(row[1] for row in rows))
    verdicts = np.full(shape, -1, dtype=np.int64)
    confidence = np.zeros(shape)
    stated = np.zeros(shape, dtype=np.bool_)
    reference = np.zeros(len(places), dtype=np.int64)
    for position, repeat, verdict, sure, executed in rows:
        at = places[position], repeat
        verdicts[at] = verdict
        reference[at[0]] = executed
        if sure is not None:
            confidence[at], stated[at] = sure, True
    return Judged(
        *key, verdicts=verdicts, confidence=confidence, stated=stated, reference=reference, positions=np.array(list(places))
    )


def common_verdicts(first: Judged, second: Judged) -> tuple[Ints, Ints]:
    """The verdicts of two judge conditions of one stack on the candidates that both have judged, row by row."""
    _, a, b = np.intersect1d(first.positions, second.positions, assume_unique=True, return_indices=True)
    return first.verdicts[a], second.verdicts[b]
