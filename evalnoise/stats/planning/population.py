"""The budget for new tasks: reruns lessen the noise within tasks, but not how differently two arms do on different tasks."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats.bootstrap import RESAMPLES, joint_task_bootstrap, percentile_interval
from evalnoise.stats.contrasts import NO_COMMON_PAIR
from evalnoise.stats.estimate import PROVES_NOTHING, Covers, Estimate, Method, joined
from evalnoise.stats.intervals import ONE_TASK
from evalnoise.stats.planning.budget import check_plan, smallest, z_sum
from evalnoise.stats.variance import Ints, checked_counts, task_variances, within_task_variance

FEW_DIFFER = 15
NONE_SUFFICES = "no number of reruns suffices"


def twice_in_both(passes_a: ArrayLike, runs_a: ArrayLike, passes_b: ArrayLike, runs_b: ArrayLike) -> tuple[Ints, Ints, Ints, Ints]:
    """The counts of both arms on the tasks that each has measured at least twice; row i of all arrays (N,) is one task."""
    ka, na = checked_counts(passes_a, runs_a)
    kb, nb = checked_counts(passes_b, runs_b)
    if ka.shape != kb.shape:
        raise ValueError(f"the two arms need one row per task, in one order: {ka.shape} and {kb.shape}")
    both = (na >= 2) & (nb >= 2)
    return ka[both], na[both], kb[both], nb[both]


def between_task_variance(
    passes_a: ArrayLike,
    runs_a: ArrayLike,
    passes_b: ArrayLike,
    runs_b: ArrayLike,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """Variance over tasks of the true difference p_a - p_b, without the noise of the runs; untruncated, so it may be below 0.

    var(k_a/n_a - k_b/n_b, ddof 1) - mean(s2_a/n_a + s2_b/n_b): unbiased, exact before the last rounding. Its interval is that of
    the task bootstrap, the same formula on resampled tasks. All arrays have shape (N,). Source: Two Sources of Eval Noise's
    method of moments, for paired arms; Measuring all the Noises, data variance.
    """
    ka, na, kb, nb = twice_in_both(passes_a, runs_a, passes_b, runs_b)
    base = Estimate(
        value=None,
        method=Method.PERCENTILE,
        n_tasks=len(na),
        n_replicates=int(min(na.min(), nb.min())) if len(na) else 0,
        undefined=NO_COMMON_PAIR if not len(na) else ONE_TASK if len(na) == 1 else "",
    )
    if base.undefined:
        return base
    d = ka / na - kb / nb
    noise = task_variances(ka, na) / na + task_variances(kb, nb) / nb
    means = joint_task_bootstrap(np.column_stack([d, d * d, noise]), resamples=resamples, seed=seed)
    n = len(d)
    draws = (means[:, 1] - means[:, 0] ** 2) * n / (n - 1) - means[:, 2]
    lo, hi = percentile_interval(draws, level=level)
    base = dataclasses.replace(base, value=_exactly(ka, na, kb, nb), seed=seed, resamples=resamples)
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=_note(ka * nb - kb * na))


def _note(differing: Ints) -> str:
    count = int(np.count_nonzero(differing))
    if not count:
        return PROVES_NOTHING + "no task differs between the arms"
    tasks = "1 task differs" if count == 1 else f"{count} tasks differ"
    return f"only {tasks}: under {FEW_DIFFER} the interval covers less often than it says" if count < FEW_DIFFER else ""


def _exactly(ka: Ints, na: Ints, kb: Ints, nb: Ints) -> float:
    """The estimate from integers: sums by distinct numbers of runs, as fractions."""
    n = len(na)
    total, squares, noise = Fraction(), Fraction(), Fraction()
    sizes, which = np.unique(np.column_stack([na, nb]), axis=0, return_inverse=True)
    for group, (ra, rb) in enumerate(sizes.tolist()):
        a, b = ka[which.ravel() == group].astype(object), kb[which.ravel() == group].astype(object)
        d = a * rb - b * ra
        total += Fraction(int(d.sum()), ra * rb)
        squares += Fraction(int((d * d).sum()), (ra * rb) ** 2)
        noise += Fraction(int((a * (ra - a)).sum()), ra * ra * (ra - 1)) + Fraction(int((b * (rb - b)).sum()), rb * rb * (rb - 1))
    return float((squares - total * total / n) / (n - 1) - noise / n)


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationBudget:
    """Runs per arm that resolve a difference for new tasks like these, or how many tasks it would take."""

    delta: float
    """Difference of scores to resolve."""
    alpha: float
    """Two-sided error level."""
    power: float
    """Power."""
    w_a: float | None
    """Within-task variance of the first arm, on the tasks that both arms have."""
    w_b: float | None
    """The same of the second."""
    between: Estimate
    """Between-task variance of the true differences, untruncated, with its interval."""
    between_clipped: float | None
    """The same, not below 0: what the budget is for."""
    runs: int | None
    """Runs per arm; None where no number suffices."""
    runs_lo: int | None
    """The same at the lower end of the between-task variance."""
    runs_hi: int | None
    """The same at its upper end; None where no number suffices there."""
    smallest_delta: float | None
    """Differences up to this one cannot be resolved on so many tasks, however many runs there are."""
    tasks_needed: int | None
    """Fewest tasks with which some number of reruns suffices."""
    tasks_at_runs: int | None
    """Tasks with which the runs at hand suffice."""
    n_tasks: int
    """Tasks that both arms have measured twice."""
    n_replicates: int
    """Runs per task and arm; the smallest, if they differ."""
    covers: str
    """New tasks from the same source."""
    undefined: str
    """Why there is no number of runs; empty otherwise."""
    note: str
    """When not to trust it; empty otherwise."""


def population_budget(
    passes_a: ArrayLike,
    runs_a: ArrayLike,
    passes_b: ArrayLike,
    runs_b: ArrayLike,
    *,
    delta: float,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    alpha: float = 0.05,
    power: float = 0.8,
) -> PopulationBudget:
    """Smallest R with delta >= z sqrt((sd2 + (w_a + w_b)/R) / N), sd2 = `between_task_variance` clipped at 0. Covers new tasks.

    There is none when N delta^2 <= z^2 sd2: then the difference drowns in how differently the arms do on different tasks, and
    only more tasks help. z = z_(1-alpha/2) + z_power. The ends are the budgets at the ends of sd2's interval; w is held.
    """
    check_plan(0.0, 0.0, 1, delta, alpha=alpha, power=power)
    between = between_task_variance(passes_a, runs_a, passes_b, runs_b, seed=seed, resamples=resamples, level=level)
    ka, na, kb, nb = twice_in_both(passes_a, runs_a, passes_b, runs_b)
    w_a, w_b = within_task_variance(ka, na).w, within_task_variance(kb, nb).w
    z, n = z_sum(alpha, power), len(na)
    found: dict[str, float | int | None] = dict.fromkeys(
        ("between_clipped", "runs", "runs_lo", "runs_hi", "smallest_delta", "tasks_needed", "tasks_at_runs")
    )
    undefined = between.undefined
    if between.value is not None and w_a is not None and w_b is not None:
        sd2 = max(0.0, between.value)
        ends = [runs_for_new_tasks(max(0.0, end or 0.0), w_a + w_b, n, delta, z=z) for end in (between.lo, between.hi)]
        noise = float(np.mean(task_variances(ka, na) / na + task_variances(kb, nb) / nb))
        found = {
            "between_clipped": sd2,
            "runs": runs_for_new_tasks(sd2, w_a + w_b, n, delta, z=z),
            "runs_lo": ends[0],
            "runs_hi": ends[1],
            "smallest_delta": z * math.sqrt(sd2 / n),
            "tasks_needed": max(2, math.floor(sd2 * (z / delta) ** 2) + 1),
            "tasks_at_runs": max(2, smallest((z / delta) ** 2 * (sd2 + noise), delta)),
        }
        undefined = "" if found["runs"] is not None else _none_suffices(n, found)
    return PopulationBudget(
        delta=delta,
        alpha=alpha,
        power=power,
        w_a=w_a,
        w_b=w_b,
        between=between,
        **found,  # type: ignore[arg-type]  # each value has its field's type
        n_tasks=n,
        n_replicates=between.n_replicates,
        covers=Covers.POPULATION if between.value is not None else Covers.NOTHING,
        undefined=undefined,
        note=_budget_note(between, found),
    )


def runs_for_new_tasks(sd2: float, w_sum: float, n_tasks: int, delta: float, *, z: float) -> int | None:
    """Smallest R >= 1 with N delta^2 >= z^2 (sd2 + w_sum/R); None where no number of reruns suffices, N delta^2 <= z^2 sd2."""
    room = n_tasks * (delta / z) ** 2
    if room <= sd2 * (1 + 1e-12):
        return None
    return smallest(w_sum / (room - sd2), delta)


def _none_suffices(n: int, found: dict[str, float | int | None]) -> str:
    return (
        f"{NONE_SUFFICES}: on {n} tasks only differences above {found['smallest_delta']:.4f} can be resolved for new tasks; "
        f"at least {found['tasks_needed']} tasks are needed, or {found['tasks_at_runs']} with the runs at hand"
    )


def _budget_note(between: Estimate, found: dict[str, float | int | None]) -> str:
    if between.value is None:
        return ""
    unsure = (
        f"at the upper end of the between-task variance {NONE_SUFFICES}"
        if found["runs"] is not None and found["runs_hi"] is None
        else ""
    )
    low = (
        f"at its lower end {found['runs_lo']} runs per arm would suffice"
        if found["runs"] is None and found["runs_lo"] is not None
        else ""
    )
    nothing = "the estimated between-task variance is not above 0, and 0 stands in for it" if between.value <= 0 else ""
    return joined(between.note, nothing, unsure, low)
