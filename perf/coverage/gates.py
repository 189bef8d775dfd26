"""Decisions of the gate where nothing was lost and where something was, and false alarms of the night rule."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from evalnoise.stats.estimate import Covers
from evalnoise.stats.gates.gate import GateRule
from evalnoise.stats.gates.power import GatePower, simulate_article_power, simulate_gate_power
from evalnoise.stats.nights import Rule, false_alarms
from evalnoise.stats.planning.budget import z_sum
from evalnoise.stats.planning.power import Effect, lowered
from perf.coverage.rates import FAMILIES

EFFECTS = (None, *Effect)
"""None: nothing is lost."""
RULES = ("benchmark", "population", "article")


@dataclass(frozen=True)
class Decisions:
    """What became of one kind of comparison."""

    family: str
    tasks: int
    replicates: int
    effect: str
    rule: str
    found: GatePower | None
    """None: the effect cannot be had at these rates."""


def decisions(family_index: int, tasks: int, replicates: int, rule: str, *, sims: int, seed: int) -> list[Decisions]:
    """Nothing lost, and the loss that two arms of so many runs show with a power of 80 % by the formula, in three shapes."""
    family = FAMILIES[family_index]
    rates = family.draw(np.random.default_rng([seed, tasks]), tasks)
    w = float(np.mean(rates * (1 - rates)))
    loss = z_sum(0.05, 0.8) * float(np.sqrt(2 * w / (tasks * replicates)))
    made = []
    for effect in EFFECTS:
        new = rates if effect is None else lowered(rates, loss, effect)
        found = None
        if new is not None and rule == "article":
            found = simulate_article_power(rates, new, runs=replicates, trials=sims, seed=seed, resamples=500)
        elif new is not None:
            claim = GateRule(claim=Covers(rule), margin=min(1.0, max(loss, 1e-6)))
            found = simulate_gate_power(rates, new, runs_base=replicates, runs_new=replicates, rule=claim, trials=sims, seed=seed)
        made.append(Decisions(family.name, tasks, replicates, "nothing" if effect is None else effect.value, rule, found))
    return made


def measure_gates(pool: Executor, *, sims: int, small: bool) -> list[Decisions]:
    """The rules over a grid of sizes."""
    sizes = [(50, 5)] if small else [(50, 5), (164, 5), (164, 20), (1000, 5)]
    families = range(1 if small else 2)
    jobs = [
        pool.submit(decisions, family, *size, rule, sims=sims, seed=number)
        for number, (family, size) in enumerate((family, size) for family in families for size in sizes)
        for rule in RULES
    ]
    return [row for job in jobs for row in job.result()]


def print_gates(rows: list[Decisions]) -> None:
    """A line for each comparison."""
    print("\ngate: shares of decisions; the loss is what the formula's 80 % is for, the margin is the same")
    print(f"  {'rates':>22} {'N':>5} {'R':>3} {'lost':>13} {'rule':>11} {'loss':>7} {'block':>6} {'pass':>6} {'incon.':>6}")
    for row in rows:
        head = f"  {row.family:>22} {row.tasks:>5} {row.replicates:>3} {row.effect:>13} {row.rule:>11}"
        if row.found is None:
            print(f"{head}  cannot be had at these rates")
            continue
        found = row.found
        print(f"{head} {found.loss:7.4f} {found.block:6.3f} {found.passed:6.3f} {found.inconclusive:6.3f}")


def print_nights(*, months: int) -> None:
    """Months with a false alarm, with and without variance from night to night."""
    rates = FAMILIES[0].draw(np.random.default_rng(1), 164)
    print("\nnights: share of months without any change in which the rule alarms (30 nights after a baseline of 20)")
    run_sd = float(np.sqrt(np.mean(rates * (1 - rates)) / len(rates)))
    for runs in (1, 5):
        for share in (0.0, 0.5, 1.0, 2.0):
            alone = run_sd / np.sqrt(runs)
            told = []
            for rule in Rule:
                found = false_alarms(rates, runs, night_sd=share * alone, rule=rule, months=months, seed=1)
                told.append(f"{rule.value} {found.rule:.3f}")
            told.append(f"nightly tests {found.nightly:.3f}")
            print(f"  N = 164, R = {runs}, night SD {share:g} times that of the runs: {', '.join(told)}")
