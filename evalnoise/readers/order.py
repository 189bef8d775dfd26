"""Replicates in their order: their sums, read in SQL, or the outcomes of a user's file; what the statistics of drift need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evalnoise.readers.columns import at_row, codes, numbers, refuse_repeats, time_order
from evalnoise.readers.counts import Counts
from evalnoise.readers.tablefile import Kind, Wanted, column_names, read_table
from evalnoise.stats.drift import RunSums
from schemas.errors import DataError

_RUNS: Final = """
SELECT stack, condition, replicate, count(*) FILTER (WHERE outcome = 'pass') AS passes
FROM outcomes
WHERE study = $study AND protocol = $protocol
GROUP BY stack, condition, replicate
"""
_COMPLETE_RUNS: Final = """
WITH complete AS (
    SELECT stack, condition, position
    FROM outcomes
    WHERE study = $study AND protocol = $protocol AND outcome <> 'unmeasured'
    GROUP BY stack, condition, position
    HAVING count(*) = $replicates
)
SELECT stack, condition, replicate, count(*) FILTER (WHERE outcome = 'pass') AS passes
FROM outcomes SEMI JOIN complete USING (stack, condition, position)
WHERE study = $study AND protocol = $protocol
GROUP BY stack, condition, replicate
"""


def read_run_sums(
    connection: Any, study: str, protocol: str, replicates: int, counts: Mapping[tuple[str, str], Counts]
) -> dict[tuple[str, str], RunSums]:
    """Sums of the runs over complete tasks, by (stack, condition).

    Args:
        connection: A connection to a catalog, as of `evalnoise.connect`.
        study: Name of the study.
        protocol: The protocol's whole digest.
        replicates: Replicates R that the protocol asks for; a task that has fewer outcomes is not complete.
        counts: The same cells by task, as of `read_counts`.
    """
    place: dict[str, Any] = {"study": study, "protocol": protocol}
    whole = all(bool(np.all(found.runs == replicates)) for found in counts.values())
    query, values = (_RUNS, place) if whole else (_COMPLETE_RUNS, place | {"replicates": replicates})
    runs = {key: np.zeros(replicates, dtype=np.int64) for key in counts}
    for stack, condition, replicate, passes in connection.execute(query, values).fetchall():
        runs[stack, condition][replicate] = passes
    return {key: _sums(found, runs[key], replicates) for key, found in counts.items()}


def _sums(found: Counts, run_passes: Any, replicates: int) -> RunSums:
    complete = found.runs == replicates
    return RunSums(
        run_passes=run_passes,
        tasks_by_passes=np.bincount(found.passes[complete], minlength=replicates + 1).astype(np.int64),
        left_out=int(np.count_nonzero(~complete)),
    )


# --- from a file ---------------------------------------------------------------------------------------------------------

_WORDS: Final = dict.fromkeys(("pass", "passed", "true", "1", "1.0"), 1) | dict.fromkeys(("fail", "failed", "false", "0", "0.0"), 0)
_HOLE: Final = "unmeasured"
_NAMES: Final = {1: "a pass", 0: "a failure", -1: "none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRuns:
    """Outcomes of a file."""

    source: str
    """The file."""
    outcomes: NDArray[np.int8]
    """Shape (N, R): 1 pass, 0 fail, -1 unmeasured or not there; replicates in the order of time."""
    note: str
    """What gives the order of the replicates."""


def read_runs(path: Path) -> FileRuns:
    """A long table `task`, `replicate` and `outcome` (pass, fail; empty or unmeasured: no outcome), or `score` (1 or 0) instead.

    Replicates that are numbers or dates stand in their order, others in the file's. Beside an outcome a score is not tested, but
    where it is 1 or 0 it must say the same.

    Raises:
        DataError: The file is no such table, a value is no outcome, a score says another one, or a task has a replicate twice; row
            and column are named.
    """
    names = column_names(path)
    said = "score" if "score" in names and "outcome" not in names else "outcome"
    wanted = {"task": Wanted("task"), "replicate": Wanted("replicate")}
    if said == "outcome":
        wanted |= {"outcome": Wanted("outcome", Kind.HOLES)}
    table = read_table(path, wanted | {"score": Wanted("score", Kind.NUMBER, optional=said == "outcome")})
    (tasks, task), (replicates, replicate) = codes(table, "task"), codes(table, "replicate")
    remedy = "Take the copies out, or keep the rows of one arm."
    places = task * len(replicates) + replicate
    refuse_repeats(path, ["task", "replicate"], places, expected="each replicate of a task once", remedy=remedy)
    order, how = time_order(replicates)
    outcomes = np.full((len(tasks), len(replicates)), -1, dtype=np.int8)
    outcomes[task, np.argsort(order)[replicate]] = _scores(path, table) if said == "score" else _outcomes(path, table)
    return FileRuns(source=str(path), outcomes=outcomes, note=f"replicates are {how}")


def _outcomes(path: Path, table: Any) -> NDArray[np.int8]:
    words, at = codes(table, "outcome")
    # The last entry is what code -1 takes: an empty field.
    values = np.array([*(-1 if word.lower() == _HOLE else _WORDS.get(word.lower(), -2) for word in words), -1], dtype=np.int8)[at]
    bad = np.flatnonzero(values == -2)
    if bad.size:
        raise _no_outcome(path, int(bad[0]), "outcome", repr(words[at[bad[0]]])[:100])
    if "score" in table.column_names:
        _refuse_another(path, values, *numbers(table, "score"))
    return values


def _refuse_another(path: Path, outcomes: NDArray[np.int8], scores: NDArray[np.float64], known: NDArray[np.bool_]) -> None:
    """DataError where a score of 1 or 0 is not that of its outcome; others are graded."""
    bad = np.flatnonzero(known & ((scores == 0) | (scores == 1)) & (scores != outcomes))
    if bad.size:
        row = int(bad[0])
        expected = f"no other outcome than column 'outcome' has, which is {_NAMES[int(outcomes[row])]}"
        remedy = "Take one of the two columns out, or mend the row."
        raise at_row(path, row, "score", expected=expected, found=f"{scores[row]:g}", remedy=remedy)


def _scores(path: Path, table: Any) -> NDArray[np.int8]:
    values, known = numbers(table, "score")
    bad = np.flatnonzero((values != 0) & (values != 1))
    if bad.size:
        raise _no_outcome(path, int(bad[0]), "score", repr(float(values[bad[0]])))
    return np.where(known, values, -1).astype(np.int8)


def _no_outcome(path: Path, row: int, column: str, found: str) -> DataError:
    remedy = "Drift is tested on outcomes: write 1 or 0, and leave the field empty where nothing was measured."
    return at_row(path, row, column, expected="pass or fail, 1 or 0, or nothing", found=found, remedy=remedy)
