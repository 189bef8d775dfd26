"""Nights of a study: the protocols that carry a night's label, in order, as far as they were measured alike; or of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evalnoise.readers.arms import Arm, find_arm, find_protocol
from evalnoise.readers.cells import Cells
from evalnoise.readers.columns import at_row, codes, numbers, refuse_outside, refuse_repeats, time_order
from evalnoise.readers.sameness import same_measurement
from evalnoise.readers.tablefile import Kind, Wanted, read_table
from evalnoise.store.store import Store
from schemas.errors import BlockedError, DataError, StoreError

_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_NIGHTS: Final = """
SELECT protocol, night, frozen_at, status FROM protocols
WHERE study = $study AND night IS NOT NULL AND night <> ''
ORDER BY frozen_at, protocol
"""
# One query for all nights, because each query looks at every file of the store.
_SCORES: Final = """
SELECT protocol, position, coalesce(sum(score), 0) AS total, count(score) AS runs
FROM outcomes WHERE study = $study AND stack = $stack AND condition = $condition
GROUP BY protocol, position
"""
_BLOCKING: Final = """
SELECT protocol, min(sentence) FROM checks
WHERE study = $study AND blocks AND stack IN ('', $stack) AND condition IN ('', $condition)
GROUP BY protocol
"""


@dataclass(frozen=True, slots=True)
class Night:
    """One night that counts."""

    label: str
    """The night's label."""
    protocol: str
    """SHA-256 of its protocol; empty in a file."""
    score: float
    """Mean over the tasks that every night has measured."""
    unmeasured: int
    """Cells of these tasks without an outcome."""
    changes: tuple[str, ...]
    """What is another model, prompt or (in a file) n than on the first night, in words."""


@dataclass(frozen=True, slots=True)
class Nights:
    """Nights of one stack under one condition, in order."""

    label: str
    """Study, stack and condition, or the file."""
    nights: tuple[Night, ...]
    """Those that count."""
    left_out: tuple[tuple[str, str], ...]
    """Label and reason of each night that does not count."""
    newest_left_out: bool
    """Whether the newest night is among them: then nothing is said about it."""
    n_tasks: int | None
    """Tasks that every night has measured: only they count. None: a file, which does not say."""
    n_dropped: int
    """Tasks that some night has not measured at all."""
    replicates: int | None
    """Runs of each task a night; None in a file."""
    note: str = ""
    """What else must be known."""

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores in order, shape (T,)."""
        return np.array([night.score for night in self.nights])


def read_nights(connection: Any, store: Path, text: str, *, since: str | None = None) -> Nights:
    """The nights of the study that a text names, as STUDY, STUDY/CONDITION or STUDY/STACK/CONDITION.

    Of two protocols with one label the newer one that is complete counts. Labels that are dates give the order, others the time of
    freezing. A night that is not complete, or that a check blocks, does not count, and is listed.

    Args:
        connection: A connection to the store's catalog, as of `evalnoise.connect`.
        store: The store's folder.
        text: What the user wrote.
        since: Label of the first night that counts; None: the first there is.

    Raises:
        StoreError: There is no such study, or it has no nights.
        BlockedError: The nights were not measured alike: other tasks, graders, judges, sampling, or numbers of replicates.
    """
    name, _, rest = text.partition("/")
    study, _, _ = find_protocol(connection, store, text, name)
    found = _since(_in_order(connection.execute(_NIGHTS, {"study": study}).fetchall()), since, store, study)
    complete = [protocol for _, protocol, status in found if status == "complete"]
    if not complete:
        said = f"{len(found)} of which none is complete" if found else "no protocol with the label of a night"
        raise _no_nights(store, text, said)
    newest = find_arm(connection, store, "/".join(part for part in (complete[-1], rest) if part)).cells
    place = {"study": study, "stack": newest.stack, "condition": newest.condition}
    blocked: dict[str, str] = dict(connection.execute(_BLOCKING, place).fetchall())
    arms, left_out = _sorted_out(Store.open(store, create=False), found, newest, blocked)
    if not arms:
        raise _no_nights(store, text, f"{len(left_out)} that do not count; {left_out[-1][0]}: {left_out[-1][1]}")
    changes = _alike(store, text, arms)
    totals, runs = _by_task(connection, place, [arm for _, arm in arms])
    measured = (runs > 0).all(axis=0)
    if not measured.any():
        raise _no_nights(store, text, "none that has measured the same task as every other; begin later, with --since NIGHT")
    scores = (totals[:, measured] / runs[:, measured]).mean(axis=1)
    replicates = arms[-1][1].frozen.replicates
    missing = (replicates - runs[:, measured]).sum(axis=1)
    return Nights(
        label=f"{study}, {newest.stack}, {newest.condition}",
        nights=tuple(
            Night(label, arm.cells.protocol, float(scores[i]), int(missing[i]), changes[label])
            for i, (label, arm) in enumerate(arms)
        ),
        left_out=tuple(left_out),
        newest_left_out=found[-1][0] != arms[-1][0],
        n_tasks=int(measured.sum()),
        n_dropped=int((~measured).sum()),
        replicates=replicates,
    )


def _sorted_out(
    store: Store, found: Sequence[tuple[str, str, str]], of: Cells, blocked: dict[str, str]
) -> tuple[list[tuple[str, Arm]], list[tuple[str, str]]]:
    """The nights that count, and the others with the reason."""
    arms: list[tuple[str, Arm]] = []
    left_out: list[tuple[str, str]] = []
    for label, protocol, status in found:
        if status != "complete":
            left_out.append((label, f"its protocol is {status}"))
            continue
        arm = _arm(store, protocol, of)
        if protocol in blocked:
            left_out.append((label, f"a check blocks it: {blocked[protocol]}"))
        elif not _has(arm):
            left_out.append((label, f"it has no {of.stack} under {of.condition}"))
        else:
            arms.append((label, arm))
    return arms, left_out


def _has(arm: Arm) -> bool:
    names = [{one["name"] for one in arm.frozen.study[part]} for part in ("stacks", "conditions")]
    return arm.cells.stack in names[0] and arm.cells.condition in names[1]


def _arm(store: Store, protocol: str, of: Cells) -> Arm:
    """A night's arm without its cells: enough to say what was measured."""
    cells = replace(of, protocol=protocol, outcomes=np.empty((0, 0), dtype=np.int8), scores=np.empty((0, 0)))
    return Arm(f"{of.study}, {of.stack}, {of.condition}", cells, store.protocol(protocol), complete=True)


def _by_task(connection: Any, place: dict[str, str], arms: Sequence[Arm]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum of scores and measured runs of each night and task, shape (T, N)."""
    rows = {arm.cells.protocol: row for row, arm in enumerate(arms)}
    shape = (len(arms), arms[-1].frozen.n_tasks)
    totals, runs = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    for protocol, position, total, count in connection.execute(_SCORES, place).fetchall():
        if protocol in rows:
            totals[rows[protocol], position], runs[rows[protocol], position] = total, count
    return totals, runs


def _in_order(rows: Sequence[tuple[str, str, datetime, str]]) -> list[tuple[str, str, str]]:
    """Label, protocol and status of each night; of one label the newest complete protocol, or the newest."""
    nights: dict[str, tuple[str, str, datetime, str]] = {}
    for row in rows:
        known = nights.get(row[1])
        if known is None or row[3] == "complete" or known[3] != "complete":
            nights[row[1]] = row
    chosen = list(nights.values())
    if all(_DATE.fullmatch(row[1]) for row in chosen):
        chosen.sort(key=lambda row: row[1])
    else:
        chosen.sort(key=lambda row: (row[2], row[0]))
    return [(label, protocol, status) for protocol, label, _, status in chosen]


def _since(nights: list[tuple[str, str, str]], since: str | None, store: Path, study: str) -> list[tuple[str, str, str]]:
    if since is None:
        return nights
    labels = [label for label, _, _ in nights]
    if since not in labels:
        last = ", ".join(labels[-5:]) or "none"
        remedy = "Name the first night that counts by its label."
        raise StoreError(f"{store}, {study}", expected=f"a night labelled {since!r}", found=f"nights {last}", remedy=remedy)
    return nights[labels.index(since) :]


def _alike(store: Path, text: str, arms: list[tuple[str, Arm]]) -> dict[str, tuple[str, ...]]:
    """Changes of model and prompt by night; raises if anything else differs from the newest night."""
    newest_label, newest = arms[-1]
    runs = newest.frozen.replicates
    for label, arm in reversed(arms):
        demands = list(same_measurement(arm, newest).demands)
        if arm.frozen.replicates != runs:
            demands.append(f"replicates are {arm.frozen.replicates} in BASE and {runs} in NEW")
        if demands:
            after = arms[[one for one, _ in arms].index(label) + 1][0]
            raise BlockedError(
                f"{store}, {text!r}"[:300],
                expected="nights that were measured alike",
                found=f"differences between night {label} (BASE) and night {newest_label} (NEW): {'; '.join(demands)}",
                remedy=f"A change needs a baseline of its own: --since {after} begins one.",
            )
    first = arms[0][1]
    return {label: same_measurement(first, arm).allowed for label, arm in arms}


def _no_nights(store: Path, text: str, found: str) -> StoreError:
    remedy = "Nights come from the deployment nightly-noise-study (docs/guide/schedules.md), or from `night:` in a study."
    return StoreError(f"{store}, {text!r}"[:300], expected="nights of a study", found=found, remedy=remedy)


# --- from a file ---------------------------------------------------------------------------------------------------------


def read_nights_file(path: Path, *, since: str | None = None) -> Nights:
    """One row a night: `night`, `score` from 0 to 1, and perhaps `n`, what the score is the mean of.

    Nights that are numbers or dates stand in their order, others in the file's. A night without a score does not count.

    Args:
        path: The file.
        since: The first night that counts; None: the first there is.

    Raises:
        DataError: The file is no such table, a night is there twice, a score or an n cannot be, or no night has a score.
    """
    wanted = {"night": Wanted("night"), "score": Wanted("score", Kind.NUMBER), "n": Wanted("n", Kind.NUMBER, optional=True)}
    table = read_table(path, wanted)
    labels, at = codes(table, "night")
    refuse_repeats(path, ["night"], at, expected="each night once", remedy="Take the copies out, or keep one arm's rows.")
    scores, known = numbers(table, "score")
    refuse_outside(path, "score", scores, (0.0, 1.0), known=known, remedy="Divide the scores by the largest that there can be.")
    sizes = _sizes(path, table)
    order, how = time_order(labels)
    if since is not None:
        first = [place for place, row in enumerate(order) if labels[row] == since]
        if not first:
            found = f"nights {', '.join(labels[row] for row in order[-5:])}"[:300]
            raise DataError(str(path), expected=f"a night {since!r}", found=found, remedy="Name a night as it stands there.")
        order = order[first[0] :]
    counted = [int(row) for row in order if known[row]]
    if not counted:
        raise DataError(str(path), expected="nights with a score", found="none", remedy="Fill in the column 'score'.")
    usual = sizes[counted[0]]
    unlike = len({sizes[row] for row in counted}) > 1
    return Nights(
        label=str(path),
        nights=tuple(Night(labels[row], "", float(scores[row]), 0, _other_size(sizes[row], usual)) for row in counted),
        left_out=tuple((labels[row], "it has no score") for row in order if not known[row]),
        newest_left_out=not known[order[-1]],
        n_tasks=None,
        n_dropped=0,
        replicates=None,
        note=f"nights are {how}"
        + ("; n differs, and scores of another n spread otherwise: the limits are rough" if unlike else ""),
    )


def _sizes(path: Path, table: Any) -> list[int | None]:
    """N of each row, None where it is not said."""
    if "n" not in table.column_names:
        return [None] * int(table.num_rows)
    values, known = numbers(table, "n")
    bad = np.flatnonzero(known & ((values < 1) | (values != np.floor(values))))
    if bad.size:
        raise at_row(path, int(bad[0]), "n", expected="a whole number from 1 on, or nothing", found=repr(float(values[bad[0]])))
    return [int(value) if there else None for value, there in zip(values, known, strict=True)]


def _other_size(size: int | None, usual: int | None) -> tuple[str, ...]:
    return () if size == usual else (f"n is {'not said' if size is None else size}",)
