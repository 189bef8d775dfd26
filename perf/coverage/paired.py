"""Differences of two models' scores with the intervals of `evalnoise compare`: for a real difference and for none."""

from __future__ import annotations

import numpy as np

from evalnoise.stats.estimate import Covers, Estimate, Method
from evalnoise.stats.models.pair_intervals import intervals
from evalnoise.stats.models.pairs import all_pairs
from evalnoise.stats.models.samples import samples_of
from perf.coverage.rates import Family, colder, colder_truth
from perf.coverage.tally import Found, Place, Tally

METHODS = {Covers.POPULATION: Method.PAIRED_T, Covers.BENCHMARK: Method.PLUG_IN}


def simulate(family: Family, tasks: int, replicates: int, *, sims: int, resamples: int, seed: int) -> Found:  # noqa: ARG001 - one call for all
    """A model against one that leans more to either end, and against its own like."""
    found: Found = {}
    gap = family.score - colder_truth(family)[1]
    for sim in range(sims):
        generator = np.random.default_rng([seed, sim])
        rates = family.draw(generator, tasks)
        for name, other, population in (("A - B", colder(rates), gap), ("A - A", rates, 0.0)):
            truths = {Covers.POPULATION: population, Covers.BENCHMARK: float(np.mean(rates - other))}
            scores = np.stack([generator.random((tasks, replicates)) < p[:, None] for p in (rates, other)]).astype(np.int64)
            pairs = all_pairs(samples_of(scores))
            for covers, truth in truths.items():
                lo, hi = (None if np.isnan(end[0]) else float(end[0]) for end in intervals(pairs, covers=covers))
                result = Estimate(value=float(pairs.mean[0]), lo=lo, hi=hi, n_tasks=tasks, n_replicates=replicates)
                place = Place(f"paired difference, {name}", METHODS[covers], covers, family.name, tasks, replicates)
                found.setdefault(place, Tally()).add(truth, result)
    return found
