"""w, score and their contrasts, against both targets, and two batches of the same rates, whose contrast is nothing."""

from __future__ import annotations

import numpy as np

from evalnoise.stats.estimate import Covers, Estimate
from evalnoise.stats.ladder import ladder
from perf.coverage.rates import Family, colder, colder_truth
from perf.coverage.tally import Found, Place, Tally

LIVE, COLD, BATCH = 0, 1, 2

Truths = dict[Covers, dict[tuple[str, int], float]]
"""What is true of a condition, by the target and the name of the number."""


def simulate(family: Family, tasks: int, replicates: int, *, sims: int, resamples: int, seed: int) -> Found:
    """Studies of three conditions: live, the same tasks colder, and live again."""
    found: Found = {}
    cold_w, cold_score = colder_truth(family)
    population = {("w", LIVE): family.w, ("w", COLD): cold_w, ("score", LIVE): family.score, ("score", COLD): cold_score}
    for name in ("w", "score"):
        population[name, BATCH] = population[name, LIVE]
    runs = np.full((3, tasks), replicates)
    where = (family, tasks, replicates)
    for sim in range(sims):
        generator = np.random.default_rng([seed, sim])
        live = family.draw(generator, tasks)
        rates = np.stack([live, colder(live), live])
        passes = generator.binomial(replicates, rates)
        made = ladder(passes, runs, seed=sim, pairs=[(LIVE, COLD), (LIVE, BATCH)], resamples=resamples)
        truths = {
            Covers.POPULATION: population,
            Covers.BENCHMARK: {("w", c): float(np.mean(rates[c] * (1 - rates[c]))) for c in range(3)}
            | {("score", c): float(np.mean(rates[c])) for c in range(3)},
        }
        for named in made.estimates:
            # Intervals for w have a part of their own.
            if named.condition == LIVE and named.estimate == "score":
                _count(found, named.estimate, named.result, truths=truths, conditions=(LIVE,), where=where)
        for pair in made.contrasts:
            what = "batch - batch" if pair.b == BATCH else "live - colder"
            part = f"{pair.estimate}, {what}"
            _count(found, part, pair.contrast.result, truths=truths, conditions=(pair.a, pair.b), where=where)
    return found


def _count(
    found: Found, part: str, result: Estimate, *, truths: Truths, conditions: tuple[int, ...], where: tuple[Family, int, int]
) -> None:
    if not result.covers:
        return  # no interval was offered, so none is counted
    truth = truths[Covers(result.covers)]
    values = [truth[part.partition(",")[0], condition] for condition in conditions]
    place = Place(part, result.method, result.covers, where[0].name, *where[1:])
    found.setdefault(place, Tally()).add(values[0] - (values[1] if len(values) == 2 else 0.0), result)
