"""What `evalnoise budget` prints from one or two measured arms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from evalnoise.readers.pairing import shared_tasks
from evalnoise.report.numbers import counted, interval, number
from evalnoise.stats.estimate import Estimate
from evalnoise.stats.intervals import w_gaffke_limit, w_quoted
from evalnoise.stats.planning.budget import CAUTIOUS_LEVEL, Budget, PilotRuns, RunPlan, budget_for, check_plan, run_plan
from evalnoise.stats.planning.pilot import pilot_runs
from evalnoise.stats.planning.population import PopulationBudget, population_budget
from evalnoise.stats.planning.power import AchievedPower, Effect, achieved_power
from evalnoise.stats.planning.two_arms import TwoArms, pair_for, pair_pilot
from evalnoise.stats.variance import within_task_variance
from flows.cli_options import misuse
from flows.views.budget import BENCHMARK, pair_sentence
from flows.views.fitness import Known, arm_facts, find_known
from flows.views.folding import say
from flows.views.power import power_lines

_MOST_RUNS = 100_000
"""Runs per arm above which power is not simulated."""


@dataclass(frozen=True, slots=True)
class _Pilot:
    """What one arm, or two together, say about noise."""

    w: Estimate
    limit: Estimate
    variable_tasks: int
    passes: NDArray[Any]
    """Passes of the first arm on the tasks that entered."""
    runs: tuple[NDArray[Any], ...]
    """Runs of each arm on these tasks."""
    of_tasks: PilotRuns
    """The same in few numbers."""
    own_w: tuple[float | None, ...]
    """w of each arm on these tasks."""


@dataclass(frozen=True, slots=True)
class _Found:
    """All that `budget` says of measured arms."""

    known: Known
    plan: RunPlan
    pilot: _Pilot
    power: tuple[AchievedPower, ...]
    pair: TwoArms | None
    population: PopulationBudget | None


def print_arms_budget(
    store: Path,
    texts: Sequence[str],
    *,
    delta: float | None,
    alpha: float | None,
    power: float | None,
    runs_a: int | None,
    prices: tuple[float, float] | None,
    as_json: bool,
) -> None:
    """The paper's budget, the cautious one and which to plan with; for two arms also the one for new tasks."""
    known = find_known(store, texts)
    arms = known.arms
    analysis = arms[0].frozen.study["analysis"]
    delta = float(analysis["deltas"][0]) if delta is None else delta
    if len(arms) == 2 and arms[0].label == arms[1].label:
        raise misuse(f"expected two arms, found {arms[0].label} twice: give it once")
    options = {"alpha": float(analysis["alpha"] if alpha is None else alpha)}
    options["power"] = float(analysis["power"] if power is None else power)
    check_plan(0.0, 0.0, 1, delta, **options)
    found = _found(known, delta, runs_a=runs_a, prices=prices, **options)
    if as_json:
        typer.echo(json.dumps(_facts(found), allow_nan=False))
        return
    for line in _lines(found, priced=prices is not None):
        say(line)


def _found(
    known: Known, delta: float, *, alpha: float, power: float, runs_a: int | None, prices: tuple[float, float] | None
) -> _Found:
    arms = known.arms
    analysis = arms[0].frozen.study["analysis"]
    drawn: dict[str, Any] = {"seed": int(analysis["seed"]), "resamples": int(analysis["resamples"]), "level": 1 - alpha}
    shared = shared_tasks([arm.cells for arm in arms])
    passes, runs = shared.counts([arm.cells for arm in arms])
    pilot = _pilot(passes, runs, **drawn)
    n_tasks, varied = max(1, pilot.w.n_tasks), pilot.variable_tasks if pilot.w.value is not None else None
    of_pilot: dict[str, Any] = {"variable_tasks": varied, "pilot": pilot.of_tasks}
    budget = budget_for(pilot.w, n_tasks=n_tasks, delta=delta, alpha=alpha, power=power, **of_pilot)
    if pilot.w.value is None:
        measured = runs.min(axis=0)[(runs >= 1).all(axis=0)]
        budget = replace(budget, n_tasks=len(measured), n_replicates=int(measured.min()) if len(measured) else 0)
    plan = run_plan(budget, pilot.limit, **of_pilot)
    w = [min(one, 0.5) for one in pilot.own_w if one is not None]
    pair = population = None
    if len(arms) == 2:
        counts = passes[0], runs[0], passes[1], runs[1]
        population = population_budget(*counts, delta=delta, alpha=alpha, power=power, **drawn)
        if len(w) == 2:
            pair = pair_for((w[0], w[1]), n_tasks, delta, alpha=alpha, power=power, runs_a=runs_a, prices=prices)
    simulated = _simulated(plan, pilot, delta=delta, alpha=alpha, seed=drawn["seed"])
    return _Found(replace(known, unmatched=shared.unmatched), plan, pilot, tuple(simulated), pair, population)


def _pilot(passes: NDArray[Any], runs: NDArray[Any], *, seed: int, resamples: int, level: float) -> _Pilot:
    if len(passes) == 1:
        found = within_task_variance(passes[0], runs[0])
        w = w_quoted(passes[0], runs[0], seed=seed, resamples=resamples, level=level)
        limit = w_gaffke_limit(passes[0], runs[0], seed=seed, resamples=resamples, level=CAUTIOUS_LEVEL)
        return _Pilot(w, limit, found.variable_tasks, passes[0], (runs[0],), pilot_runs((passes[0], runs[0])), (found.w,))
    both = pair_pilot(passes[0], runs[0], passes[1], runs[1], seed=seed, resamples=resamples, level=level)
    common = (runs >= 2).all(axis=0)
    of_tasks = pilot_runs(*zip(passes, runs, strict=True))
    kept = passes[0][common], (runs[0][common], runs[1][common])
    return _Pilot(both.mean_w, both.limit, both.variable_tasks, *kept, of_tasks, (both.w_a, both.w_b))


def _simulated(plan: RunPlan, pilot: _Pilot, *, delta: float, alpha: float, seed: int) -> Iterator[AchievedPower]:
    """Power at the runs of the pilot, of each task in each arm, and at those to plan with, for every kind of effect."""
    if plan.budget.w is None:
        return
    own, seen = pilot.of_tasks, plan.recommended
    sides = [(pilot.runs[0], pilot.runs[-1])]
    if seen is not None and seen <= _MOST_RUNS and (seen, seen) != (own.least, own.most):
        sides.insert(0 if seen < own.median else 1, (np.full_like(pilot.runs[0], seen),) * 2)
    for a, b in sides:
        for effect in Effect:
            yield from achieved_power(
                pilot.passes, pilot.runs[0], delta=delta, runs_a=a, runs_b=b, effect=effect, alpha=alpha, seed=seed
            )


def _facts(found: _Found) -> dict[str, Any]:
    return {
        "arms": [
            {"label": arm.label, **arm_facts(arm), "unmatched": lost}
            for arm, lost in zip(found.known.arms, found.known.unmatched, strict=True)
        ],
        **found.known.facts(),
        "w_of_arms": found.pilot.own_w,
        **asdict(found.plan),
        "variable_tasks": found.pilot.variable_tasks,
        "pair": None if found.pair is None else asdict(found.pair),
        "population": None if found.population is None else asdict(found.population),
        "simulated": [asdict(one) for one in found.power],
    }


def _lines(found: _Found, *, priced: bool) -> Iterator[str]:
    plan, budget = found.plan, found.plan.budget
    arms = found.known.arms
    for arm, w in zip(arms, found.pilot.own_w, strict=True):
        yield f"{arm.label}: w {number(w, 5)}"
    yield from found.known.lines()
    yield ""
    yield from _benchmark_lines(plan, budget)
    if found.pair is not None:
        yield pair_sentence(found.pair, priced=priced)
    yield BENCHMARK
    if found.power:
        yield ""
        yield from power_lines(found.power)
        if len(arms) == 2:
            yield f"  simulated with the rates of {arms[0].label}, and with the same made worse"
    if found.population is not None:
        yield ""
        yield from _population_lines(found.population)


def _benchmark_lines(plan: RunPlan, budget: Budget) -> Iterator[str]:
    if budget.runs is None:
        yield f"There is no budget: {budget.undefined}."
        return
    pilot = f"{counted(budget.n_tasks, 'task')}, from {plan.pilot.words}"
    ends = "" if budget.runs_lo is None else f" [{budget.runs_lo}, {budget.runs_hi}]"
    least = "at least " if budget.w == 0 else ""
    yield f"To resolve a difference of {budget.delta!r} (alpha {budget.alpha:.4g}, power {budget.power:.4g}) on {pilot}:"
    of_w = (
        ""
        if budget.level is None
        else f"; the interval is the budget at the ends of w's, {100 * budget.level:.4g} % over new tasks ({budget.method})"
    )
    yield f"  the paper's budget: {least}{counted(budget.runs, 'run')} per arm{ends}{of_w}"
    if plan.runs_cautious is not None and plan.level is not None:
        at = f"at w {number(plan.w_cautious, 5)}, Gaffke's one-sided {100 * plan.level:.4g} % limit"
        yield f"  the cautious budget: {counted(plan.runs_cautious, 'run')} per arm, {at}"
    yield f"  plan with {plan.recommended}: {plan.why}"
    if budget.note:
        yield f"  note: {budget.note}"
    if plan.mde is not None:
        as_many = "" if plan.pilot.least == plan.pilot.most else ", as many of each task as there are,"
        yield (
            f"{plan.pilot.words} per arm{as_many} resolve differences from {number(plan.mde)} on, "
            f"one run per arm from {number(plan.mde_one)} on."
        )


def _population_lines(found: PopulationBudget) -> Iterator[str]:
    between = found.between
    if between.value is None:
        yield f"For new tasks there is no budget: {found.undefined}."
        return
    ends = interval(between.lo, between.hi, 5)
    yield f"For new tasks: the true differences vary between tasks with variance {number(between.value, 5)} {ends}".rstrip() + "."
    if found.runs is None:
        yield f"  {found.undefined}."
    else:
        high = "no number suffices" if found.runs_hi is None else str(found.runs_hi)
        at = "" if found.runs_lo is None and found.runs_hi is None else f" [{found.runs_lo}, {high}] at the ends of that variance"
        yield f"  {counted(found.runs, 'run')} per arm resolve it for tasks like these{at}."
    if found.note:
        yield f"  note: {found.note}"
