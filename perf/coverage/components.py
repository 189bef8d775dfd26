"""Nested variance components of pass and fail grades: intervals of each against the components of the source.

Two designs: replicates are generations, each graded three times; and replicates are grades of one frozen output of each task.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evalnoise.stats.nested.components import Level
from evalnoise.stats.nested.intervals import bootstrap_intervals, gaffke_intervals
from evalnoise.stats.nested.sums import from_array
from perf.coverage.rates import Family
from perf.coverage.tally import Found, Place, Tally

GRADES, FLIP = 3, 0.1
"""Grades of each generation, by a judge that flips each verdict with this probability."""


def simulate(family: Family, tasks: int, replicates: int, *, sims: int, resamples: int, seed: int) -> Found:
    """Both designs, each study with the same tasks."""
    # A flip scales real differences by 1 - 2f, and so their variances by its square.
    scale = (1 - 2 * FLIP) ** 2
    between = scale * (family.score * (1 - family.score) - family.w)
    truths = {
        Level.TASK: between,
        Level.GENERATION: scale * family.w,
        Level.TASK_GENERATION: between + scale * family.w,
        Level.GRADER: FLIP * (1 - FLIP),
    }
    found: Found = {}
    for sim in range(sims):
        generator = np.random.default_rng([seed, sim])
        rates = family.draw(generator, tasks)
        for design, grades in _grades(generator, rates, replicates):
            data = from_array(grades)
            for interval in (bootstrap_intervals, gaffke_intervals):
                for level, result in interval(data, seed=sim, resamples=resamples).items():
                    place = Place(f"{design} {level.value}", result.method, "population", family.name, tasks, replicates)
                    found.setdefault(place, Tally()).add(truths[level], result)
    return found


def _grades(generator: np.random.Generator, rates: NDArray[np.float64], replicates: int) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Each design's name and grades, shape (tasks, generations, grades)."""
    for name, generations, grades in (("component", replicates, GRADES), ("frozen component", 1, replicates)):
        right = generator.random((len(rates), generations)) < rates[:, None]
        flipped = generator.random((len(rates), generations, grades)) < FLIP
        yield name, (right[..., None] != flipped).astype(np.int64)
