"""How many runs a difference of scores needs: the paper's budget for a fixed benchmark, its interval, and the cautious one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from evalnoise.stats.estimate import Covers, Estimate, Method, joined

_ROUNDING = 1e-12
"""Relative room for rounding: a difference that is exactly resolvable by R runs must not ask for R + 1."""
_FEW_RUNS = 10
_FEW_VARIABLE = 10
CAUTIOUS_LEVEL = 0.9
"""One-sided level of the limit of w that the cautious budget plans with."""
_MAX_VARIANCE = 0.25
"""The largest p (1-p)."""
_ZERO_W = "a w of 0 says that nothing varied in the runs that were seen; it does not prove that nothing can"
_IMPOSSIBLE_W = "w is above 1/4, which no true w is: the budget is higher than any can be"


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotRuns:
    """Runs per task of a pilot, over the tasks behind its w and, of a pair, over both arms; `pilot.pilot_runs` makes them."""

    least: int
    """The fewest of a task."""
    most: int
    """The most of a task."""
    median: int
    """The median, the lower of the two in the middle: it decides whether the pilot is small."""
    effective: float | None
    """So many runs of every task would make a score as sure as these do; None where nothing varied."""

    @property
    def words(self) -> str:
        """For instance ``6 runs``, or ``2 to 6 runs``."""
        ends = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        return f"{ends} {'run' if self.most == 1 else 'runs'}"


def even_runs(runs: int) -> PilotRuns:
    """A pilot with as many runs of every task."""
    return PilotRuns(least=runs, most=runs, median=runs, effective=runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Runs per arm that resolve a difference of scores, with the budgets at the ends of w's interval."""

    delta: float
    """Difference of scores to resolve."""
    alpha: float
    """Two-sided error level."""
    power: float
    """Power."""
    w: float | None
    """Within-task variance of each arm."""
    runs: int | None
    """Runs per arm; None when w is undefined."""
    runs_lo: int | None
    """Runs per arm at the lower end of w's interval."""
    runs_hi: int | None
    """Runs per arm at the upper end."""
    level: float | None
    """Confidence level of w's interval."""
    method: str
    """Method of w's interval."""
    covers: str
    """What the budget is for: these tasks. The ends follow w's interval."""
    n_tasks: int
    """Tasks per run."""
    n_replicates: int
    """Runs per task behind w; the smallest, if they differ."""
    seed: int | None
    """Seed behind w's interval."""
    resamples: int | None
    """Resamples behind w's interval."""
    undefined: str
    """Why the budget is None; empty otherwise."""
    note: str
    """When not to trust it; empty otherwise."""


def rerun_budget(w_a: float, w_b: float, n_tasks: int, delta: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Smallest R >= 1 with delta >= (z_(1-alpha/2) + z_power) sqrt((w_a + w_b) / (N R)).

    For a difference between two arms on the same N tasks with independent runs; it does not speak of other tasks. In one
    expression: max(1, ceil((1 - 1e-12) z^2 (w_a + w_b) / (N delta^2))), where 1e-12 is room for rounding. Source: Noise Floor,
    equations 2 and A3.

    Args:
        w_a: Within-task variance of one arm, in [0, 1/2].
        w_b: Within-task variance of the other.
        n_tasks: Tasks N in the benchmark.
        delta: Difference of scores to resolve, in (0, 1].
        alpha: Two-sided error level.
        power: Power, above alpha/2.
    """
    check_plan(w_a, w_b, n_tasks, delta, alpha=alpha, power=power)
    z = z_sum(alpha, power)
    return smallest(z / delta * (z / delta) * (w_a + w_b) / n_tasks, delta)


def smallest(needed: float, delta: float) -> int:
    """The smallest whole number of at least 1 that is not below `needed`, with room for rounding."""
    if not math.isfinite(needed):
        raise ValueError(f"a difference of {delta!r} is too small to plan for")
    number = max(1, math.ceil(needed * (1 - _ROUNDING)))
    while number > 1 and _resolves(number - 1, needed):
        number -= 1
    while not _resolves(number, needed):
        number += 1
    return number


def detectable(
    w_a: float, w_b: float, n_tasks: int, runs_a: float, *, runs_b: float | None = None, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Minimum detectable effect: (z_(1-alpha/2) + z_power) sqrt((w_a/R_a + w_b/R_b) / N), in score; covers new runs of these tasks.

    `runs_b` None: as many as `runs_a`. Runs that differ from task to task enter as `PilotRuns.effective`. The inverse of
    `rerun_budget`.
    """
    return z_sum(alpha, power) * _se(w_a, w_b, n_tasks, runs_a, runs_b, alpha=alpha, power=power)


def formula_power(
    w_a: float, w_b: float, n_tasks: int, delta: float, runs_a: float, *, runs_b: float | None = None, alpha: float = 0.05
) -> float:
    """Power that the formula promises: Phi(delta/SE - z_(1-alpha/2)), SE^2 = (w_a/R_a + w_b/R_b) / N; 1 where nothing varies.

    The chance of a significant difference in the right direction, in the normal approximation with known w. Runs that differ from
    task to task enter by their harmonic mean.
    """
    check_plan(w_a, w_b, n_tasks, delta, alpha=alpha, power=0.5 + alpha / 4)
    se = _se(w_a, w_b, n_tasks, runs_a, runs_b, alpha=alpha, power=0.5 + alpha / 4)
    normal = NormalDist()
    return normal.cdf(delta / se + normal.inv_cdf(alpha / 2)) if se else 1.0


def _se(w_a: float, w_b: float, n_tasks: int, runs_a: float, runs_b: float | None, *, alpha: float, power: float) -> float:
    check_plan(w_a, w_b, n_tasks, 1.0, alpha=alpha, power=power)
    runs_b = runs_a if runs_b is None else runs_b
    if runs_a < 1 or runs_b < 1:
        raise ValueError(f"an arm has at least 1 run, not {min(runs_a, runs_b)!r}")
    return math.sqrt((w_a / runs_a + w_b / runs_b) / n_tasks)


def z_sum(alpha: float, power: float) -> float:
    """z_(1-alpha/2) + z_power: 2.8015852181 for alpha 0.05 and power 0.8."""
    # The lower tail keeps its digits where 1 - alpha/2 would round to 1.
    # The standard library's quantile spares the command line the import of SciPy.
    quantile = NormalDist().inv_cdf
    return quantile(power) - quantile(alpha / 2)


def _resolves(runs: int, needed: float) -> bool:
    return runs >= needed * (1 - _ROUNDING)


def check_plan(w_a: float, w_b: float, n_tasks: int, delta: float, *, alpha: float, power: float) -> None:
    """Refuse what no plan can be made of, with a ValueError that says why."""
    for name, w in (("w_a", w_a), ("w_b", w_b)):
        if not 0.0 <= w <= 0.5:
            raise ValueError(f"{name} is a variance of outcomes between 0 and 1: it lies in [0, 0.5], not {w!r}")
    if n_tasks < 1:
        raise ValueError(f"a benchmark has at least 1 task, not {n_tasks!r}")
    if not 0.0 < delta <= 1.0:
        raise ValueError(f"delta is a difference of scores in (0, 1], not {delta!r}")
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha lies between 0 and 1, not {alpha!r}")
    if not alpha / 2 < power < 1.0:
        raise ValueError(f"power lies between alpha/2 and 1, not {power!r}")


def budget_for(
    w: Estimate,
    *,
    n_tasks: int,
    delta: float,
    alpha: float = 0.05,
    power: float = 0.8,
    variable_tasks: int | None = None,
    pilot: PilotRuns | None = None,
) -> Budget:
    """The budget of two arms with the same w, and the budgets at the ends of w's interval.

    `variable_tasks`, when given, and the `pilot`'s runs decide whether the note warns of a small pilot. None: w's `n_replicates` of
    every task.
    """
    check_plan(0.0, 0.0, n_tasks, delta, alpha=alpha, power=power)

    def runs_at(value: float | None) -> int | None:
        # A variance above 1/2 cannot be; an interval's end never is, but a bound may round past it.
        return None if value is None else rerun_budget(min(value, 0.5), min(value, 0.5), n_tasks, delta, alpha=alpha, power=power)

    return Budget(
        delta=delta,
        alpha=alpha,
        power=power,
        w=w.value,
        runs=runs_at(w.value),
        runs_lo=runs_at(w.lo),
        runs_hi=runs_at(w.hi),
        level=w.level,
        method=w.method if w.lo is not None else Method.EXACT,
        covers=Covers.BENCHMARK if w.value is not None else Covers.NOTHING,
        n_tasks=n_tasks,
        n_replicates=w.n_replicates,
        seed=w.seed,
        resamples=w.resamples,
        undefined=w.undefined if w.value is None else "",
        note=_note(w, variable_tasks, pilot or even_runs(w.n_replicates)),
    )


def _note(w: Estimate, variable_tasks: int | None, pilot: PilotRuns) -> str:
    if w.value is None:
        return ""
    small = w.value > 0 and small_pilot(pilot.median, variable_tasks)
    said = "small pilot (fewer than 10 runs or 10 variable tasks): the budget may well be too low" if small else ""
    return joined(note_of_w(w.value), said)


def note_of_w(*w: float) -> str:
    """What a budget for these within-task variances, one of each arm, does not prove; empty where there is nothing to say."""
    return joined(_ZERO_W if min(w) == 0 else "", _IMPOSSIBLE_W if max(w) > _MAX_VARIANCE else "")


def small_pilot(runs: int, variable_tasks: int | None) -> bool:
    """Whether a pilot is too small to plan with its w itself: fewer than 10 runs, in the median, or 10 variable tasks."""
    return runs < _FEW_RUNS or (variable_tasks is not None and variable_tasks < _FEW_VARIABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What to plan with: the paper's budget or the cautious one, and what the runs at hand can resolve."""

    budget: Budget
    """The paper's budget."""
    w_cautious: float | None
    """One-sided upper limit of w that the cautious budget is for."""
    level: float | None
    """Its level."""
    runs_cautious: int | None
    """Runs per arm at that limit; None when there is none."""
    recommended: int | None
    """Runs per arm to plan with."""
    cautious: bool
    """Whether that is the cautious budget."""
    why: str
    """Why the one and not the other, in a sentence."""
    mde: float | None
    """Minimum detectable effect of two arms with the pilot's runs of each task; None where w is undefined or nothing varied."""
    mde_one: float | None
    """The same for one run per arm."""
    pilot: PilotRuns
    """The pilot's runs of each task."""


def run_plan(budget: Budget, limit: Estimate, *, variable_tasks: int | None, pilot: PilotRuns | None = None) -> RunPlan:
    """The plan from the paper's budget and a one-sided limit of w (`intervals.w_gaffke_limit` at `CAUTIOUS_LEVEL`).

    The cautious budget is recommended when the pilot had fewer than 10 runs or fewer than 10 variable tasks: from a pilot of
    R = 3 the point budget misses 80 % power about one time in three. `pilot` None: `n_replicates` runs of every task.
    """
    pilot = pilot or even_runs(budget.n_replicates)
    n, alpha, power = budget.n_tasks, budget.alpha, budget.power
    runs = None if limit.hi is None else rerun_budget(limit.hi, limit.hi, n, budget.delta, alpha=alpha, power=power)
    careful = small_pilot(pilot.median, variable_tasks) and runs is not None
    w = min(budget.w, 0.5) if budget.w else None
    as_many = pilot.effective or budget.n_replicates
    return RunPlan(
        budget=budget,
        w_cautious=limit.hi,
        level=limit.level,
        runs_cautious=runs,
        recommended=runs if careful else budget.runs,
        cautious=careful,
        why=_why(budget, variable_tasks, pilot, careful=careful),
        mde=None if w is None else detectable(w, w, n, as_many, alpha=alpha, power=power),
        mde_one=None if w is None else detectable(w, w, n, 1, alpha=alpha, power=power),
        pilot=pilot,
    )


def _why(budget: Budget, variable_tasks: int | None, runs: PilotRuns, *, careful: bool) -> str:
    if budget.runs is None:
        return f"no budget: {budget.undefined}"
    varied = "" if variable_tasks is None else f" and {variable_tasks} variable {'task' if variable_tasks == 1 else 'tasks'}"
    median = "" if runs.least == runs.most else f" of a task ({runs.median} in the median)"
    pilot = f"the pilot had {runs.words}{median}{varied}"
    if careful:
        return f"the cautious budget, because {pilot}, and with under 10 of either w itself is too unsure to plan with"
    return f"the paper's budget, because {pilot}, and 10 of each are enough to plan with w itself"
