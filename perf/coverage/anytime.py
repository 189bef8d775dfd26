"""Intervals that are looked at after every observation: how often they miss at any look. One observation is one new task."""

from __future__ import annotations

import numpy as np

from evalnoise.stats.estimate import Covers, Estimate
from evalnoise.stats.sequential import Sequence, betting, robbins
from evalnoise.stats.variance import clopper_pearson
from perf.coverage.rates import Family
from perf.coverage.tally import Found, Place, Tally

FIRST_LOOK = 5


def simulate(family: Family, tasks: int, replicates: int, *, sims: int, resamples: int, seed: int) -> Found:  # noqa: ARG001 - one call for all
    """Outcomes of one run of each new task (Robbins; Clopper-Pearson for contrast), and mean scores of R runs (betting)."""
    found: Found = {}
    for sim in range(sims):
        generator = np.random.default_rng([seed, sim])
        rates = family.draw(generator, tasks)
        outcomes = (generator.random(tasks) < rates).astype(np.int64)
        means = generator.binomial(replicates, rates) / replicates
        made = {
            "robbins": _looks(robbins(outcomes, covers=Covers.POPULATION)),
            "betting": _looks(betting(means, covers=Covers.POPULATION)),
            "clopper-pearson (not valid at every look)": _fixed(outcomes),
        }
        for method, result in made.items():
            place = Place("score at every look", method, "population", family.name, tasks, replicates)
            found.setdefault(place, Tally()).add(family.score, result)
    return found


def _looks(sequence: Sequence) -> Estimate:
    """The intersection of all looks, which holds the truth when every look does."""
    return Estimate(value=sequence.mean, lo=sequence.running_lo, hi=sequence.running_hi, n_tasks=sequence.n, n_replicates=1)


def _fixed(outcomes: np.ndarray) -> Estimate:
    """The same of an interval that is made for one look, from the fifth observation on."""
    passes = np.cumsum(outcomes)
    ends = np.array([clopper_pearson(int(passes[n - 1]), n) for n in range(FIRST_LOOK, len(outcomes) + 1)])
    lo, hi = float(ends[:, 0].max()), float(ends[:, 1].min())
    return Estimate(value=None, lo=lo, hi=hi, n_tasks=len(outcomes), n_replicates=1)
