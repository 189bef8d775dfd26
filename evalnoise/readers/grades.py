"""Grades: scores of tasks, generations and repeated grades, from a table file of any origin or from a store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evalnoise.readers.arms import find_arm, find_protocol
from evalnoise.readers.columns import at_row, codes, numbers, refuse_outside, refuse_repeats
from evalnoise.readers.counts import Judged, read_judged
from evalnoise.readers.fitness import unfit_for_decisions, unfit_place
from evalnoise.readers.tablefile import Kind, Wanted, read_table
from evalnoise.stats.nested.sums import LARGEST_SCORE
from evalnoise.store.store import SHORT, Store
from schemas.errors import DataError

Ints = NDArray[np.int64]

CLUSTER: Final = "cluster"
"""The column of clusters that a file may have."""
ABSENT: Final = "-"
"""Name of a column that the file does without: one generation of each task, or one grade of each generation."""
_SCALE: Final = "Say the smallest and largest score with --scale LOW HIGH, or mend the row."
_UNIT: Final = "Larger ones cannot be added up exactly: write the scores in a larger unit."
_NAME_IT: Final = "Name it with --task, --generation, --grade or --score; `--grade -` says that each generation has one grade."


@dataclass(frozen=True, slots=True, kw_only=True)
class Grades:
    """Grades in long form; arrays have one entry per grade that exists."""

    source: str
    """Where they come from, for people."""
    tasks: tuple[str, ...]
    """All tasks, also those without a grade."""
    task: Ints
    """Place in `tasks`."""
    output: Ints
    """Number of the output over all tasks."""
    scores: NDArray[np.float64]
    """Scores."""
    clusters: tuple[str, ...] = ()
    """Cluster of each task, an empty text where it has none; nothing where no task has one."""
    missing: int
    """Grades that are missing: unmeasured cells, unparsed verdicts, empty fields. They are in no number."""
    notes: tuple[str, ...] = ()
    """What a reader must know of them."""
    against: tuple[str, ...] = ()
    """What speaks against deciding by them: sentences of `fitness`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a file of grades; `ABSENT` for a generation or grade that there is only one of."""

    task: str = "task"
    """Which task."""
    generation: str = "generation"
    """Which generation of the task; any text, distinct within a task."""
    grade: str = "grade_repeat"
    """Which grade of the generation; any text, distinct within a generation."""
    score: str = "score"
    """The score; empty or null where the grade is missing."""
    cluster: str = CLUSTER
    """Which tasks belong together; empty for a task on its own. A file may do without the column of this name."""


def read_grades(path: Path, columns: Columns | None = None, *, scale: tuple[float, float] = (0.0, 1.0)) -> Grades:
    """Grades of a file, one row per grade; tasks may differ in their generations, and generations in their grades.

    Args:
        path: A table as of `read_table`.
        columns: What its columns are called.
        scale: Smallest and largest score that there can be.

    Raises:
        DataError: The file is no such table, holds no row, a score is out of scale, or a grade is there twice; file, row and
            column are named.
    """
    names = columns or Columns()
    wanted = {"task": Wanted(names.task), "score": Wanted(names.score, Kind.NUMBER)}
    optional = {"generation": names.generation, "grade": names.grade}
    wanted |= {key: Wanted(name) for key, name in optional.items() if name != ABSENT}
    if names.cluster != ABSENT:
        wanted["cluster"] = Wanted(names.cluster, Kind.HOLES, optional=names.cluster == CLUSTER)
    try:
        table = read_table(path, wanted)
    except DataError as error:
        if not error.expected.startswith("a column"):
            raise
        raise DataError(error.where, expected=error.expected, found=error.found, remedy=_NAME_IT) from None
    tasks, task = codes(table, "task")
    generation, grade = (codes(table, key)[1] if key in wanted else np.zeros(len(task), dtype=np.int64) for key in optional)
    output = _number(task, generation)
    given = [name for name in (names.task, *optional.values()) if name != ABSENT]
    missing = "" if len(given) == 3 else " If tasks have several generations or grades, name the column that numbers them."
    copies = f"Number the grades of a generation, or take the copies out.{missing}"
    refuse_repeats(path, given, _number(output, grade), expected="each grade once", remedy=copies)
    values, known = numbers(table, "score")
    refuse_outside(path, names.score, values, scale, known=known, remedy=_SCALE)
    refuse_outside(path, names.score, values, (-LARGEST_SCORE, LARGEST_SCORE), known=known, remedy=_UNIT)
    return Grades(
        source=str(path),
        tasks=tasks,
        task=task[known],
        output=output[known],
        scores=values[known],
        clusters=_clusters(path, table, names, tasks, task) if "cluster" in table.column_names else (),
        missing=int((~known).sum()),
    )


def _clusters(path: Path, table: Any, names: Columns, tasks: tuple[str, ...], task: Ints) -> tuple[str, ...]:
    """The cluster of each task; a task that stands in two is a mistake."""
    texts, cluster = codes(table, "cluster")
    first = np.unique(task, return_index=True)[1]
    other = np.flatnonzero(cluster != cluster[first][task])
    if other.size:
        row, before = int(other[0]), int(first[task[other[0]]])
        mine, earlier = (repr(texts[cluster[at]]) if cluster[at] >= 0 else "none" for at in (row, before))
        found = f"{mine}, and {earlier} in row {before + 1}, of the same task {tasks[task[row]]!r}"
        remedy = f"Mend the row, or say with `--cluster {ABSENT}` that tasks have no clusters."
        raise at_row(path, row, names.cluster, expected="one cluster for all rows of a task", found=found, remedy=remedy)
    named = tuple(texts[at] if at >= 0 else "" for at in cluster[first].tolist())
    return named if any(named) else ()


def _number(outer: Ints, inner: Ints) -> Ints:
    """One number for each pair."""
    pairs = outer * (int(inner.max(initial=0)) + 1) + inner
    return np.asarray(np.unique(pairs, return_inverse=True)[1], dtype=np.int64).ravel()


# --- from a store --------------------------------------------------------------------------------------------------------


def find_grades(connection: Any, store: str | Path, text: str) -> Grades:
    """The grades of STUDY/STACK/CONDITION, where CONDITION may be a judge's; names as of `find_arm`. Raises StoreError."""
    parts = text.split("/")
    if 2 <= len(parts) <= 3 and all(parts):
        study, digest, status = find_protocol(connection, store, text, parts[0])
        judge = Store.open(store, create=False).protocol(digest).study.get("judge") or {}
        if parts[-1] in {condition["name"] for condition in judge.get("conditions", ())}:
            wanted = parts[1] if len(parts) == 3 else None
            found = [
                one for one in read_judged(connection, study, digest) if one.condition == parts[-1] and wanted in {None, one.stack}
            ]
            if len(found) == 1:
                complete, place = status == "complete", (study, digest, found[0].stack, found[0].condition)
                clusters = _task_clusters(connection, study, digest)
                made = _of_verdicts(found[0], f"{study} ({digest[:SHORT]})", clusters, complete=complete)
                return replace(made, against=tuple(unfit_place(connection, place, made.source, complete=complete)))
    arm = find_arm(connection, store, text)
    frozen = arm.one_draw
    cells, measured = arm.cells, arm.cells.measured
    task, replicate = np.nonzero(measured)
    notes = [] if arm.complete else [_INCOMPLETE]
    if frozen:
        notes.append("its replicates verify one frozen output of each task: they are grades, and the verifier is the grader")
    else:
        notes.append("each replicate is a generation with one grade: the verifier's")
    if not cells.binary:
        notes.append("scores are graded here, and pass or fail in the rows of `estimates`")
    return Grades(
        source=arm.label,
        tasks=cells.task_ids,
        task=task.astype(np.int64),
        output=(task if frozen else task * measured.shape[1] + replicate).astype(np.int64),
        scores=cells.scores[measured],
        clusters=cells.clusters if any(cells.clusters) else (),
        missing=int((~measured).sum()),
        notes=tuple(notes),
        against=tuple(unfit_for_decisions(connection, arm, arm.label)),
    )


_CLUSTERS: Final = "SELECT position, cluster FROM tasks WHERE study = $study AND protocol = $protocol"
_INCOMPLETE: Final = "the protocol is not complete yet, so these numbers may change"


def _task_clusters(connection: Any, study: str, digest: str) -> dict[int, str]:
    """Cluster of each place in the benchmark; nothing where no task has one."""
    found = connection.execute(_CLUSTERS, {"study": study, "protocol": digest}).fetchall()
    return dict(found) if any(cluster for _, cluster in found) else {}


def _of_verdicts(judged: Judged, study: str, clusters: dict[int, str], *, complete: bool) -> Grades:
    parsed = judged.verdicts >= 0
    task, _ = np.nonzero(parsed)
    frozen = "the judge grades one frozen output of each task: task and generation are confounded"
    return Grades(
        source=f"{study}, {judged.stack}, {judged.condition}",
        tasks=tuple(str(position) for position in judged.positions),
        task=task.astype(np.int64),
        output=task.astype(np.int64),
        scores=(judged.verdicts[parsed] == 1).astype(np.float64),
        clusters=tuple(clusters[int(position)] for position in judged.positions) if clusters else (),
        missing=int((~parsed).sum()),
        notes=(*(() if complete else (_INCOMPLETE,)), frozen),
    )
