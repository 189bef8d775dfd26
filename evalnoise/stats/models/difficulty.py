"""Tasks by difficulty against models by accuracy: the matrix behind a heat map, thinned to what a picture can show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalnoise.stats.models.samples import Floats, Ints, Samples


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Difficulty:
    """Mean scores, tasks from the easiest to the hardest, models from the weakest to the strongest."""

    tasks: Ints
    """Task of each row of all, shape (N,): indices in the order of difficulty."""
    models: Ints
    """Model of each column of all, shape (M,): indices in the order of accuracy."""
    accuracy: Floats
    """Accuracy of those models over the tasks that each has, shape (M,)."""
    task_means: Floats
    """Mean over models of those tasks, shape (N,)."""
    cells: Floats
    """Shape (rows, M): mean over a row's tasks; NaN where the model has none of them."""
    row_starts: Ints
    """First task, counted from 0 in the order of difficulty, of each row."""


def difficulty(samples: Samples, *, most_rows: int = 200) -> Difficulty:
    """The matrix of a heat map with at most `most_rows` rows; neighbouring tasks share one where there are more.

    Ties are broken by the order that tasks and models came in. Models and tasks without a sample are left out. Source: Wang
    2025, figure 3.
    """
    if most_rows < 1:
        raise ValueError(f"a matrix has at least one row, not {most_rows}")
    known = samples.runs > 0
    kept_models, kept_tasks = np.flatnonzero(known.any(axis=1)), np.flatnonzero(known.any(axis=0))
    means, there = samples.means[np.ix_(kept_models, kept_tasks)], known[np.ix_(kept_models, kept_tasks)]
    accuracy = means.sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    of_task = means.sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    by_accuracy, by_ease = np.argsort(accuracy, kind="stable"), np.argsort(-of_task, kind="stable")
    means, there = means[np.ix_(by_accuracy, by_ease)], there[np.ix_(by_accuracy, by_ease)]
    n = len(by_ease)
    starts = np.unique(np.linspace(0, n, min(most_rows, n), endpoint=False).astype(np.int64))
    if n:
        sums, counts = np.add.reduceat(means, starts, axis=1), np.add.reduceat(there.astype(np.int64), starts, axis=1)
    else:
        sums, counts = means, there.astype(np.int64)
    cells = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).T
    return Difficulty(
        tasks=kept_tasks[by_ease],
        models=kept_models[by_accuracy],
        accuracy=accuracy[by_accuracy],
        task_means=of_task[by_ease],
        cells=cells,
        row_starts=starts,
    )
