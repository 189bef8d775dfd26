"""Intervals for w of one condition, in more simulated studies than the rest of the ladder: a miss of 3.5 % a side must show."""

from __future__ import annotations

import numpy as np

from evalnoise.stats.intervals import w_benchmark, w_gaffke, w_population, w_population_limit
from perf.coverage.rates import Family
from perf.coverage.tally import Found, Place, Tally


def simulate(family: Family, tasks: int, replicates: int, *, sims: int, resamples: int, seed: int) -> Found:
    """Each interval for w, and what a reader quotes by the rules of docs/validity.md."""
    found: Found = {}
    runs = np.full(tasks, replicates)
    for sim in range(sims):
        generator = np.random.default_rng([seed, sim])
        rates = family.draw(generator, tasks)
        passes = generator.binomial(replicates, rates)
        options = {"seed": sim, "resamples": resamples}
        truths = {"population": family.w, "benchmark": float(np.mean(rates * (1 - rates)))}
        made = [w_population(passes, runs, **options), w_gaffke(passes, runs, **options), w_benchmark(passes, runs)]
        for result in made:
            # The benchmark interval is one of three methods, whichever fits the counts: they are judged as one procedure.
            method = "by the counts" if result.covers != "population" else result.method
            place = Place("w", method, result.covers or "benchmark", family.name, tasks, replicates)
            found.setdefault(place, Tally()).add(truths[place.covers], result)
        # The limit for when nothing varied is promised over all studies, so those in which something did count as covered.
        limit = found.setdefault(Place("w", "limit, nothing varied", "population", family.name, tasks, replicates), Tally())
        if np.any((passes > 0) & (passes < runs)):
            limit.n += 1
        else:
            limit.add(family.w, w_population_limit(passes, runs))
    return found
