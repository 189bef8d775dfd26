"""A/A: what one arm, measured against itself, says of the smallest difference that can be seen; and a published rule made of it.

Splits of an arm's runs that are drawn within each task apart have a mean squared difference of 4 w / (N R) exactly, so drawing
them adds nothing to w. Splits by whole runs have Q / (R-1) times that, Q being Cochran's: they show drift from run to run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from evalnoise.stats.bootstrap import joint_task_bootstrap
from evalnoise.stats.estimate import Covers, alpha_of
from evalnoise.stats.gates.gate import Decision
from evalnoise.stats.gates.side import Side, on_common_tasks
from evalnoise.stats.models.samples import samples_of
from evalnoise.stats.planning.budget import detectable
from evalnoise.stats.variance import Floats

ARTICLE_SEED = 7
ARTICLE_RESAMPLES = 2_000
ONE_RUN = "an A/A comparison splits the runs of an arm: that needs 2 runs of a task"
NO_SPLIT = "the published rule needs two sets of runs of BASE: two runs at least"
UNEVEN = "tasks differ in their number of runs: run scores are not comparable, so the drift ratio is undefined"
NOTHING_VARIED = "nothing varied: nothing can be derived from that"
ARTICLE_NOTE = (
    "the published rule: it almost never blocks what has not changed, but it finds a loss as large as its own minimum "
    "detectable effect only about every other time, and a pass does not show that nothing was lost"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AaMde:
    """The smallest difference that two arms like this one can tell from nothing, over new runs of these tasks."""

    covers: str
    """Always these tasks, new runs."""
    w: float | None
    """Within-task variance of the scores."""
    n_tasks: int
    """Tasks with at least two runs; where there are none, tasks that were measured."""
    n_replicates: int
    """Runs per such task; the smallest, if they differ. The differences below are made with each task's own runs."""
    most_replicates: int
    """The most runs of such a task."""
    alpha: float
    """Two-sided error level."""
    power: float
    """Power."""
    split_variance: float | None
    """Mean squared difference of two halves of this arm that are drawn within tasks: 4 w / (N R) for one even R."""
    whole_run_variance: float | None
    """The same when halves are made of whole runs."""
    drift_ratio: float | None
    """The second over the first, Cochran's Q / (R-1): near 1 without drift."""
    significant: float | None
    """Difference of two arms with this one's runs of each task that is just significant; it is found every other time."""
    detectable: float | None
    """Difference of two such arms that is found with the power: the minimum detectable effect."""
    undefined: str
    """Why w, or the differences that follow from it, are None; empty otherwise."""
    drift_undefined: str
    """Why the drift ratio is None; empty otherwise."""


def aa_mde(arm: Side, *, alpha: float = 0.05, power: float = 0.8) -> AaMde:
    """Analytic A/A minimum detectable effect of two arms like this one: (z_(1-alpha/2) + z_power) sqrt(2 sum_i s2_i / R_i) / N.

    With R runs of every task that is (z_(1-alpha/2) + z_power) sqrt(2 w / (N R)). Split into h_i and R_i - h_i runs of task i,
    h_i = floor(R_i/2), the mean squared difference of the halves over all splits within tasks is
    sum_i s2_i (1/h_i + 1/(R_i-h_i)) / N^2; over all splits by whole runs, S^2 (1/h + 1/(R-h)), S^2 the variance (ddof 1) of the
    run scores, so that the ratio is N S^2 / w = Q / (R-1). Source: notes on Calibrate the Noise Floor; Cochran 1950.
    """
    twice = arm.take(arm.runs >= 2)
    nothing = {"covers": Covers.BENCHMARK, "alpha": alpha, "power": power}
    if not twice.n_tasks:
        empty = dict.fromkeys(("w", "split_variance", "whole_run_variance", "drift_ratio", "significant", "detectable"))
        once = int(np.count_nonzero(arm.runs))
        few = dict.fromkeys(("n_replicates", "most_replicates"), min(1, once))
        return AaMde(**nothing, **empty, **few, n_tasks=once, undefined=ONE_RUN, drift_undefined=ONE_RUN)  # type: ignore[arg-type]
    n, runs, s2 = twice.n_tasks, twice.runs, twice.variances
    w = math.fsum(s2) / n
    halves = 1 / (runs // 2) + 1 / (runs - runs // 2)
    whole = _run_score_variance(twice)
    # Variance of a task's mean, averaged over the tasks: w / R at equal R. Stands for w where R is 1.
    of_mean = min(math.fsum(s2 / runs) / n, 0.5)
    ratio = whole * n / w if whole is not None and w > 0 else None
    return AaMde(
        **nothing,  # type: ignore[arg-type]
        w=w,
        n_tasks=n,
        n_replicates=int(runs.min()),
        most_replicates=int(runs.max()),
        split_variance=math.fsum(s2 * halves) / n**2,
        whole_run_variance=None if whole is None else whole * float(halves[0]),
        drift_ratio=ratio,
        significant=-NormalDist().inv_cdf(alpha / 2) * math.sqrt(2 * of_mean / n) if w else None,
        detectable=detectable(of_mean, of_mean, n, 1, alpha=alpha, power=power) if w else None,
        undefined="" if w else NOTHING_VARIED,
        drift_undefined="" if ratio is not None else (UNEVEN if whole is None else NOTHING_VARIED),
    )


def _run_score_variance(arm: Side) -> float | None:
    """Variance (ddof 1) of the scores of whole runs; None unless every task has the same runs."""
    complete = arm.measured.all(axis=0)
    if not np.array_equal(arm.measured, np.broadcast_to(complete, arm.measured.shape)) or int(complete.sum()) < 2:
        return None
    # Runs in the place of tasks: their sums are integers where scores lie on a grid, so that equal ones have a variance of 0.
    runs = samples_of(arm.scores[:, complete].T[None])
    totals = [Fraction(total) for total in runs.sums[0].tolist()]
    spread = len(totals) * sum(total * total for total in totals) - sum(totals) ** 2
    return float(spread / (len(totals) * (len(totals) - 1) * (arm.n_tasks * runs.unit) ** 2))


# --- the published rule --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """The published rule: two thresholds, one from an A/A bootstrap of BASE, the other from an A/B bootstrap."""

    decision: Decision
    """Block: worse, above the A/A effect, and the A/B interval excludes 0. Inconclusive: above it, not excluded. Else pass."""
    covers: str
    """Bootstraps over tasks speak of new tasks (`population`)."""
    mde: float | None
    """max(|lo|, |hi|) of the A/A interval."""
    aa_lo: float | None
    """Lower end of the A/A interval."""
    aa_hi: float | None
    """Upper end."""
    difference: float | None
    """Score of new minus score of base, the mean of the bootstrap's differences as published."""
    measured: float | None
    """The same of the records themselves, all grades of an arm together, as the rule has them."""
    level: float
    """Confidence level of both intervals."""
    lo: float | None
    """Lower end of the A/B interval."""
    hi: float | None
    """Upper end."""
    power_at_mde: float | None
    """Chance that a true loss as large as its own effect is blocked, by the normal formula."""
    n_tasks: int
    """Common tasks."""
    seed: int
    """Seed of the bootstraps."""
    resamples: int
    """Resamples of each."""
    undefined: str
    """Why there is no effect; empty otherwise."""
    note: str = ARTICLE_NOTE
    """What the rule can and cannot do."""
    against_pass: str = ""
    """Why its pass does not hold, in words: what unmeasured cells and absent tasks could hide; empty where it does."""

    @property
    def reason(self) -> str:
        """Why it decided so, in words."""
        if self.against_pass:
            return self.against_pass
        if self.undefined or self.difference is None or self.mde is None:
            return self.undefined
        if abs(self.difference) <= self.mde:
            return "the A/B difference is not above the A/A effect"
        if self.decision is Decision.INCONCLUSIVE:
            return "the A/B difference is above the A/A effect, but its interval holds 0"
        return f"{'worse' if self.difference < 0 else 'better'}: above the A/A effect, and the A/B interval excludes 0"


def bootstrap_delta(
    a: Side, b: Side, *, resamples: int = ARTICLE_RESAMPLES, seed: int = ARTICLE_SEED, level: float = 0.95
) -> tuple[float, float, float]:
    """Mean, lower and upper end of a's pass rate minus b's when tasks are resampled, samples staying with their task.

    Ends are the published order statistics, numbers int(alpha/2 resamples) and int((1 - alpha/2) resamples) - 1 from 0. A rate
    is the mean over all grades drawn, as published. Source: Calibrate the Noise Floor, `bootstrap_delta`.
    """
    columns = np.column_stack([a.scores.sum(axis=1), a.runs, b.scores.sum(axis=1), b.runs])
    means = joint_task_bootstrap(columns, resamples=resamples, seed=seed)
    deltas: Floats = np.sort(means[:, 0] / means[:, 1] - means[:, 2] / means[:, 3])
    tail = alpha_of(level) / 2
    low, high = int(tail * resamples + 1e-9), int((1 - tail) * resamples + 1e-9) - 1
    return float(deltas.mean()), float(deltas[low]), float(deltas[max(high, 0)])


def halves(arm: Side) -> tuple[Side, Side] | None:
    """Runs 0, 2, 4, … and runs 1, 3, 5, … as two arms, as if the same commit had been run twice; None without two runs."""
    if arm.scores.shape[1] < 2:
        return None
    even, odd = (Side(scores=arm.scores[:, i::2], measured=arm.measured[:, i::2]) for i in (0, 1))
    return even, odd


def article_rule(
    new: Side,
    base: Side,
    again: Side | None = None,
    *,
    resamples: int = ARTICLE_RESAMPLES,
    seed: int = ARTICLE_SEED,
    level: float = 0.95,
) -> Article:
    """The published two-threshold rule; `again` is a second run of BASE's commit, else BASE's own runs are split into halves.

    Halves hold half the runs, so their effect is larger than that of two whole arms, by up to sqrt 2. Source: Calibrate the
    Noise Floor, `should_alert`.
    """
    a, b, _ = on_common_tasks(new, base)
    pair = (base, again) if again is not None else halves(base)
    one, other, _ = on_common_tasks(*pair) if pair else (None, None, None)
    undefined = "" if one is not None and one.n_tasks else NO_SPLIT
    if not a.n_tasks or one is None or other is None or undefined:
        empty = dict.fromkeys(("mde", "aa_lo", "aa_hi", "difference", "measured", "lo", "hi", "power_at_mde"))
        reason = undefined or "no task was measured in both arms"
        counts = {"n_tasks": a.n_tasks, "level": level, "seed": seed, "resamples": resamples, "undefined": reason}
        return Article(decision=Decision.INCONCLUSIVE, covers=Covers.POPULATION, **empty, **counts)  # type: ignore[arg-type]
    _, aa_lo, aa_hi = bootstrap_delta(one, other, resamples=resamples, seed=seed, level=level)
    delta, lo, hi = bootstrap_delta(a, b, resamples=resamples, seed=seed, level=level)
    mde = max(abs(aa_lo), abs(aa_hi))
    above = abs(delta) > mde
    excluded = hi < 0 if delta < 0 else lo > 0
    decision = Decision.PASS
    if above and not excluded:
        decision = Decision.INCONCLUSIVE
    elif above and delta < 0:
        decision = Decision.BLOCK
    return Article(
        decision=decision,
        covers=Covers.POPULATION,
        mde=mde,
        aa_lo=aa_lo,
        aa_hi=aa_hi,
        difference=delta,
        measured=math.fsum(a.scores.ravel()) / int(a.runs.sum()) - math.fsum(b.scores.ravel()) / int(b.runs.sum()),
        level=level,
        lo=lo,
        hi=hi,
        power_at_mde=_power_at(mde, (hi - lo) / 2, level),
        n_tasks=a.n_tasks,
        seed=seed,
        resamples=resamples,
        undefined="",
    )


def _power_at(mde: float, half: float, level: float) -> float | None:
    """Chance that a difference with mean `mde` comes out above both `mde` and half the width of its own interval."""
    normal = NormalDist()
    se = half / -normal.inv_cdf(alpha_of(level) / 2)
    return normal.cdf((mde - max(mde, half)) / se) if se > 0 else None
