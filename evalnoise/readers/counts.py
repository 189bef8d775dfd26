"""Counts: what the statistics need of the sealed outcomes and verdicts, as arrays, read in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


_COUNTS = """
select stack, condition, position, passes, runs, unmeasured from task_counts where study = $study and protocol = $protocol
"""
_COUNT = """
create temp table task_counts as
select $study as study, $protocol as protocol, any_value(benchmark) as benchmark, stack, condition,
    any_value(task_id) as task_id, position, count(*) filter (where outcome = 'pass') as passes,
    count(*) filter (where outcome in ('pass', 'fail')) as runs, count(*) filter (where outcome = 'unmeasured') as unmeasured
from outcomes
where study = $study and protocol = $protocol
group by stack, condition, position
"""
"""The view `task_counts` of one protocol, with no more keys than tell its rows apart: text is slow to group by."""
_COUNTED = "select count(*) from duckdb_tables() where temporary and table_name = 'task_counts'"
_VERDICTS = """
select stack, condition, position::bigint as position, repeat::bigint as repeat,
    (case verdict when 'pass' then 1 when 'fail' then 0 else -1 end)::bigint as verdict, confidence::double as confidence,
    (reference_outcome = 'pass')::bigint as reference
from verdicts where study = $study and protocol = $protocol
order by stack, condition, position, repeat
"""


@contextmanager
def counted_once(connection: Any, study: str, protocol: str) -> Iterator[None]:
    """Within it `task_counts` is a table of this protocol's counts, made from the outcomes once, instead of a view.

    A temporary table goes before a view of its name. Within another such context it does nothing.
    """
    if connection.execute(_COUNTED).fetchall()[0][0]:
        yield
        return
    connection.execute(_COUNT, {"study": study, "protocol": protocol})
    try:
        yield
    finally:
        connection.execute("drop table temp.task_counts")


def read_counts(connection: Any, study: str, protocol: str, n_tasks: int) -> dict[tuple[str, str], Counts]:
    """Counts by (stack, condition), in alphabetical order."""
    rows = connection.sql(_COUNTS, params={"study": study, "protocol": protocol}).to_arrow_table()
    numbers = [rows[name].to_numpy() for name in ("position", "passes", "runs", "unmeasured")]
    of_row, known = _keyed(rows)
    found = {}
    for code in np.unique(of_row):
        position, *counted = (column[of_row == code] for column in numbers)
        passes, runs, unmeasured = (_placed(position, column, n_tasks) for column in counted)
        stack, condition = known[code]
        found[stack, condition] = Counts(stack, condition, passes, runs, int(unmeasured.sum()))
    return dict(sorted(found.items()))


def _placed(positions: Ints, values: Ints, n_tasks: int) -> Ints:
    """Values by task, 0 where a task has none."""
    placed = np.zeros(n_tasks, dtype=np.int64)
    placed[positions] = values
    return placed


def read_judged(connection: Any, study: str, protocol: str) -> list[Judged]:
    """Verdicts of each stack under each judge condition, in order."""
    rows = connection.sql(_VERDICTS, params={"study": study, "protocol": protocol}).to_arrow_table()
    of_row, known = _keyed(rows)
    said = rows["confidence"].combine_chunks()
    sure, stated = said.fill_null(0.0).to_numpy(), ~np.asarray(said.is_null(), dtype=np.bool_)
    columns = [rows[name].to_numpy() for name in ("position", "repeat", "verdict", "reference")]
    found = []
    for code in np.unique(of_row):
        here = of_row == code
        found.append(_judged(known[code], *(column[here] for column in (*columns, sure, stated))))
    return sorted(found, key=lambda one: (one.stack, one.condition))


def _keyed(rows: Any) -> tuple[Ints, list[tuple[str, str]]]:
    """Each row's place among all pairs of a stack and a condition, and these pairs."""
    stacks, conditions = (rows[name].combine_chunks().dictionary_encode() for name in ("stack", "condition"))
    known = [(stack, condition) for stack in stacks.dictionary.to_pylist() for condition in conditions.dictionary.to_pylist()]
    return stacks.indices.to_numpy() * (len(conditions.dictionary) or 1) + conditions.indices.to_numpy(), known


def _judged(key: tuple[str, str], position: Ints, repeat: Ints, *said: NDArray[Any]) -> Judged:
    verdict, executed, sure, known = said
    positions, place = np.unique(position, return_inverse=True)
    shape = (len(positions), 1 + int(repeat.max()))
    verdicts, confidence = np.full(shape, -1, dtype=np.int64), np.zeros(shape)
    stated, reference = np.zeros(shape, dtype=np.bool_), np.zeros(len(positions), dtype=np.int64)
    verdicts[place, repeat], reference[place] = verdict, executed
    confidence[place, repeat], stated[place, repeat] = sure, known
    return Judged(*key, verdicts=verdicts, confidence=confidence, stated=stated, reference=reference, positions=positions)


def common_verdicts(first: Judged, second: Judged) -> tuple[Ints, Ints]:
    """The verdicts of two judge conditions of one stack on the candidates that both have judged, row by row."""
    _, a, b = np.intersect1d(first.positions, second.positions, assume_unique=True, return_indices=True)
    return first.verdicts[a], second.verdicts[b]
