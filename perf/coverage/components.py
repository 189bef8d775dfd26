"""Nested variance components of pass and fail grades: intervals of each against the components of the source."""

from __future__ import annotations

import numpy as np

from evalnoise.stats.nested.components import Level
from evalnoise.stats.nested.intervals import bootstrap_intervals, gaffke_intervals
from evalnoise.stats.nested.sums import from_array
from perf.coverage.rates import Family
from perf.coverage.tally import Found, Place, Tally

GRADES, FLIP = 3, 0.1
"""Grades of each generation, by a judge that flips each verdict with this probability."""


def simulate(family: Family, tasks: int, replicates: int, *, sims: int, resamples: int, seed: int) -> Found:
    """Replicates are generations, each graded three times."""
    # A flip scales real differences by 1 - 2f, and so their variances by its square.
    scale = (1 - 2 * FLIP) ** 2
    truths = {
        Level.TASK: scale * (family.score * (1 - family.score) - family.w),
        Level.GENERATION: scale * family.w,
        Level.GRADER: FLIP * (1 - FLIP),
    }
    found: Found = {}
    for sim in range(sims):
        generator = np.random.default_rng([seed, sim])
        rates = family.draw(generator, tasks)
        right = generator.random((tasks, replicates)) < rates[:, None]
        grades = right[..., None] != (generator.random((tasks, replicates, GRADES)) < FLIP)
        data = from_array(grades.astype(np.int64))
        for interval in (bootstrap_intervals, gaffke_intervals):
            for level, result in interval(data, seed=sim, resamples=resamples).items():
                place = Place(f"component {level.value}", result.method, "population", family.name, tasks, replicates)
                found.setdefault(place, Tally()).add(truths[level], result)
    return found
