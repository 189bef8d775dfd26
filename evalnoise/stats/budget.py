"""How many runs a difference of scores needs: the paper's budget for a fixed benchmark, and its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from evalnoise.stats.estimate import Covers, Estimate, Method, joined

_ROUNDING = 1e-12
"""Relative room for rounding: a difference that is exactly resolvable by R runs must not ask for R + 1."""
_FEW_RUNS = 10
_FEW_VARIABLE = 10
_MAX_VARIANCE = 0.25
"""The largest p (1-p)."""


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
    """Runs per task behind w."""
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

    For a difference between two arms on the same N tasks with independent runs; it does not speak of other tasks. Source:
    Noise Floor, equations 2 and A3.

    Args:
        w_a: Within-task variance of one arm, in [0, 1/2].
        w_b: Within-task variance of the other.
        n_tasks: Tasks N in the benchmark.
        delta: Difference of scores to resolve, in (0, 1].
        alpha: Two-sided error level.
        power: Power, above alpha/2.
    """
    _check(w_a, w_b, n_tasks, delta, alpha=alpha, power=power)
    z = z_sum(alpha, power)
    needed = z / delta * (z / delta) * (w_a + w_b) / n_tasks
    if not math.isfinite(needed):
        raise ValueError(f"a difference of {delta!r} is too small to plan for")
    runs = max(1, math.ceil(needed * (1 - _ROUNDING)))
    while runs > 1 and _resolves(runs - 1, needed):
        runs -= 1
    while not _resolves(runs, needed):
        runs += 1
    return runs


def z_sum(alpha: float, power: float) -> float:
    """z_(1-alpha/2) + z_power: 2.8015852181 for alpha 0.05 and power 0.8."""
    # The lower tail keeps its digits where 1 - alpha/2 would round to 1.
    # The standard library's quantile spares the command line the import of SciPy.
    quantile = NormalDist().inv_cdf
    return quantile(power) - quantile(alpha / 2)


def _resolves(runs: int, needed: float) -> bool:
    return runs >= needed * (1 - _ROUNDING)


def _check(w_a: float, w_b: float, n_tasks: int, delta: float, *, alpha: float, power: float) -> None:
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
    w: Estimate, *, n_tasks: int, delta: float, alpha: float = 0.05, power: float = 0.8, variable_tasks: int | None = None
) -> Budget:
    """The budget of two arms with the same w, and the budgets at the ends of w's interval (the paper's interval).

    `variable_tasks`, when given, decides whether the note warns of a small pilot.
    """
    _check(0.0, 0.0, n_tasks, delta, alpha=alpha, power=power)

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
        note=_note(w, variable_tasks),
    )


def _note(w: Estimate, variable_tasks: int | None) -> str:
    if w.value is None:
        return ""
    nothing = "nothing varied: one run is the formula's minimum, not a proof that one is enough" if w.value == 0 else ""
    impossible = "w is above 1/4, which no true w is: the budget is higher than any can be" if w.value > _MAX_VARIANCE else ""
    small = w.value > 0 and (w.n_replicates < _FEW_RUNS or (variable_tasks is not None and variable_tasks < _FEW_VARIABLE))
    pilot = "small pilot (fewer than 10 runs or 10 variable tasks): the budget may well be too low" if small else ""
    return joined(nothing, impossible, pilot)
