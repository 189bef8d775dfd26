"""Sums of the replicates in their order, read in SQL: what the statistics of drift need of the outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from evalnoise.readers.counts import Counts
from evalnoise.stats.drift import RunSums

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
