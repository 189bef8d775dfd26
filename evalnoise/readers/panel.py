"""Panels: what a comparison compares, many models on the same tasks, from arms of a store or from a table file."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evalnoise.readers.arms import Arm
from evalnoise.readers.columns import codes, numbers, refuse_outside, refuse_repeats
from evalnoise.readers.pairing import shared_tasks
from evalnoise.readers.tablefile import Kind, Wanted, read_table
from evalnoise.stats.models.samples import Samples, samples_of, samples_of_cells
from schemas.errors import DataError

_LISTED = 10
"""Models that a message lists."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Models and tasks with their scores."""

    source: str
    """Where they come from."""
    models: tuple[str, ...]
    task_ids: tuple[str, ...]
    samples: Samples
    """A row per model, a column per task."""
    unmatched: tuple[int, ...]
    """Of each model: how many tasks it has that the others lack, or, in a file, how many of all tasks it has not."""
    unmeasured: tuple[int, ...]
    """Of each model: its samples without a score; they are in no number."""
    notes: tuple[str, ...] = ()
    """What a reader must know of the whole."""
    once_drawn: tuple[bool, ...] = ()
    """Of each model: whether its samples repeat one recorded draw, so that they say nothing about new runs."""
    absent: tuple[int, ...] = ()
    """Of each model of a file: how many of all tasks have no row of it, not even one without a score."""


def panel_of_arms(arms: Sequence[Arm]) -> Panel:
    """The tasks that all arms have. Raises StoreError if they are of different benchmarks or share no task."""
    shared = shared_tasks([arm.cells for arm in arms])
    most = max(arm.cells.outcomes.shape[1] for arm in arms)
    shape = (len(arms), len(shared.task_ids), most)
    scores, known = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    for number, (arm, rows) in enumerate(zip(arms, shared.rows, strict=True)):
        width = arm.cells.outcomes.shape[1]
        scores[number, :, :width] = arm.cells.scores[rows]
        known[number, :, :width] = arm.cells.measured[rows]
    unfinished = [arm.label for arm in arms if not arm.complete]
    notes = [f"not complete yet, so its numbers may change: {'; '.join(unfinished)}"] if unfinished else []
    if not all(arm.cells.binary for arm in arms):
        notes.append("scores are graded: a score is the mean of the cells' scores, not the share of passes")
    return Panel(
        source=f"benchmark {arms[0].cells.benchmark}",
        models=_names(arms),
        task_ids=shared.task_ids,
        samples=samples_of(scores, known),
        unmatched=shared.unmatched,
        unmeasured=tuple(int((~arm.cells.measured[rows]).sum()) for arm, rows in zip(arms, shared.rows, strict=True)),
        notes=tuple(notes),
        once_drawn=tuple(arm.one_draw for arm in arms),
    )


def _names(arms: Sequence[Arm]) -> tuple[str, ...]:
    """Stacks where all else is the same; what else differs before or after them; the whole labels where that names two alike."""
    cells = [arm.cells for arm in arms]
    studies, conditions = ({getattr(one, field) for one in cells} for field in ("study", "condition"))
    names = tuple(
        "/".join([*([one.study] if len(studies) > 1 else []), one.stack, *([one.condition] if len(conditions) > 1 else [])])
        for one in cells
    )
    return names if len(set(names)) == len(names) else tuple(arm.label for arm in arms)


def panel_of_file(
    path: Path,
    *,
    names: Sequence[str] = (),
    model: str = "model",
    task: str = "task",
    sample: str = "sample",
    score: str = "score",
) -> Panel:
    """A long table: one row per sample, with the columns' names as given; `sample` may be missing.

    Scores lie between 0 and 1. A row without a score is an unmeasured sample.

    Args:
        path: The file.
        names: The models to take, in this order, on the tasks that one of them has; none: all, in the file's order.
        model: Column of models.
        task: Column of tasks.
        sample: Column of samples.
        score: Column of scores.

    Raises:
        DataError: The file is no such table, a score is out of range, a sample is there twice, a named model is not there, or no
            two models have a task in common; row and column are named.
    """
    wanted = {
        "model": Wanted(model),
        "task": Wanted(task),
        "sample": Wanted(sample, optional=True),
        "score": Wanted(score, Kind.NUMBER),
    }
    table = read_table(path, wanted)
    values, known = numbers(table, "score")
    refuse_outside(path, score, values, (0.0, 1.0), known=known, remedy="Divide the scores by the largest that there can be.")
    (models, model_codes), (tasks, task_codes) = codes(table, "model"), codes(table, "task")
    if "sample" in table.column_names:
        which, number = codes(table, "sample")
        places = (model_codes * len(tasks) + task_codes) * len(which) + number
        expected, remedy = "each sample of a model and task once", "Number the samples of a task, or take the copies out."
        refuse_repeats(path, [sample], places, expected=expected, remedy=remedy)
    if names:
        rows = _rows_of(path, models, names)[model_codes]
        chosen = rows >= 0
        there, task_codes = np.unique(task_codes[chosen], return_inverse=True)
        tasks = tuple(tasks[int(at)] for at in there)
        models, model_codes, known, values = tuple(names), rows[chosen], known[chosen], values[chosen]
    shape = (len(models), len(tasks))
    samples = samples_of_cells(model_codes[known], task_codes[known], values[known], shape=shape)
    _refuse_apart(path, samples)
    notes = [] if "sample" in table.column_names else [f"no column {sample!r}: every row counts as a sample of its own"]
    some = np.zeros(shape, dtype=np.bool_)
    some[model_codes, task_codes] = True
    return Panel(
        source=str(path),
        models=models,
        task_ids=tasks,
        samples=samples,
        unmatched=tuple(int(count) for count in (samples.runs == 0).sum(axis=1)),
        unmeasured=tuple(int(count) for count in np.bincount(model_codes[~known], minlength=len(models))),
        notes=tuple(notes),
        once_drawn=(False,) * len(models),
        absent=tuple(int(count) for count in (~some).sum(axis=1)),
    )


def _rows_of(path: Path, models: Sequence[str], names: Sequence[str]) -> Any:
    """Of each model of the file its place among `names`, -1 for none. Raises DataError for a name that it does not have."""
    for name in names:
        if name not in models:
            near = difflib.get_close_matches(name, models, n=1) or list(models[:1])
            listed = ", ".join(models[:_LISTED]) + (f", and {len(models) - _LISTED} more" if models[_LISTED:] else "")
            raise DataError(
                str(path), expected=f"a model {name!r}", found=f"models {listed}"[:300], remedy=f"Name them as there: {near[0]}."
            )
    return np.array([list(names).index(model) if model in names else -1 for model in models], dtype=np.int64)


def _refuse_apart(path: Path, samples: Samples) -> None:
    """Raise DataError if there are two models or more, and no two have a task in common."""
    if len(samples.runs) > 1 and not (np.count_nonzero(samples.runs, axis=0) > 1).any():
        raise DataError(
            str(path),
            expected="a task with scores of two models",
            found="none: no two models have a task in common",
            remedy="Check that the tasks of all models are named alike.",
        )
