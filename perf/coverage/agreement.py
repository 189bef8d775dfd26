"""Agreement of a grader with itself (ICC, alpha) and with the truth (kappa)."""

from __future__ import annotations

import numpy as np

from evalnoise.stats.agreement.kappa import kappa_at_margins
from evalnoise.stats.agreement.margins import alpha_at_share, icc_at_share
from perf.coverage.rates import Family
from perf.coverage.tally import Found, Place, Tally

WRONG = 0.05
"""Share of items that the grader of the kappa gets wrong."""


def simulate(family: Family, tasks: int, replicates: int, *, sims: int, resamples: int, seed: int) -> Found:
    """Items whose chance of a passing verdict comes from the family; of kappa: items whose truth is a pass as often."""
    # Over endless items, both are 1 - E p (1-p) / (E p (1 - E p)).
    steady = 1 - family.w / (family.score * (1 - family.score))
    passed = family.score * (1 - WRONG) + (1 - family.score) * WRONG
    chance = family.score * passed + (1 - family.score) * (1 - passed)
    kappa = (1 - WRONG - chance) / (1 - chance)
    found: Found = {}
    runs = np.full(tasks, replicates)
    for sim in range(sims):
        generator = np.random.default_rng([seed, sim])
        passes = generator.binomial(replicates, family.draw(generator, tasks))
        verdicts = (np.arange(replicates) < passes[:, None]).astype(np.int64)
        truth = generator.random(tasks) < family.score
        verdict = truth != (generator.random(tasks) < WRONG)
        table = np.bincount(2 * truth + verdict, minlength=4).reshape(2, 2)
        made = (
            ("ICC(1,1)", steady, icc_at_share(passes, runs, seed=sim, resamples=resamples)),
            ("alpha", steady, alpha_at_share(verdicts, seed=sim, resamples=resamples)),
            (f"kappa, {WRONG:.0%} wrong", kappa, kappa_at_margins(table)),
        )
        for part, value, result in made:
            place = Place(part, result.method, "population", family.name, tasks, replicates)
            found.setdefault(place, Tally()).add(value, result)
    return found
