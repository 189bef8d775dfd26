"""Differences of two models' scores: z intervals from the paired noise, for a real difference and for none."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from evalnoise.stats.estimate import Estimate
from evalnoise.stats.models.pairs import paired_noise
from perf.coverage.rates import Family, colder, colder_truth
from perf.coverage.tally import Found, Place, Tally

_Z = -float(ndtri(0.025))


def simulate(family: Family, tasks: int, replicates: int, *, sims: int, resamples: int, seed: int) -> Found:  # noqa: ARG001 - one call for all
    """A model against one that leans more to either end, and against its own like."""
    found: Found = {}
    gap = family.score - colder_truth(family)[1]
    for sim in range(sims):
        generator = np.random.default_rng([seed, sim])
        rates = family.draw(generator, tasks)
        for name, other, population in (("A - B", colder(rates), gap), ("A - A", rates, 0.0)):
            a, b = ((generator.random((tasks, replicates)) < p[:, None]).astype(np.int64) for p in (rates, other))
            noise = paired_noise(a, b)
            benchmark = float(np.mean(rates - other))
            for covers, truth, se, note in (
                ("population", population, noise.se_mean, noise.note), ("benchmark", benchmark, noise.se_runs, noise.note),
            ):  # fmt: skip
                assert noise.mean is not None
                half = _Z * (se or 0.0)
                lo, hi = (None, None) if not se else (noise.mean - half, noise.mean + half)
                result = Estimate(value=noise.mean, lo=lo, hi=hi, n_tasks=tasks, n_replicates=replicates, note=note)
                place = Place(f"paired difference, {name}", "z", covers, family.name, tasks, replicates)
                found.setdefault(place, Tally()).add(truth, result)
    return found
