"""How much one arm may have lost against another on these tasks: the difference of scores, and a one-sided limit of the loss.

The plain standard error of a difference is too small where few tasks varied: it takes tasks that have not varied yet for tasks
that cannot. An arm with fewer than 20 varying tasks is therefore counted with the upper limit of its w, not with w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from evalnoise.stats.estimate import alpha_of
from evalnoise.stats.gates.side import Side, on_common_tasks
from evalnoise.stats.intervals import equal_p_ends
from evalnoise.stats.limits import MAX_VARIANCE, groups, none_varied_benchmark
from evalnoise.stats.variance import clopper_pearson

ENOUGH_VARIABLE = 20
"""With so many varying tasks the plain variance of an arm is good enough."""
NO_COMMON_TASK = "no task was measured in both arms"
SINGLE_RUNS = "an arm has one run per task: its noise is taken from the tasks in which the arms disagree, which is cautious"
FEW_VARIABLE = "fewer than 20 tasks varied in an arm: the upper limit of its w stands in for w, which is cautious"


PLAIN = "difference +- z SE over new runs"
CAUTIOUS = f"{PLAIN}, SE with the upper limit of w"
DISAGREEING = f"{PLAIN}, SE by the upper limit of disagreement between the arms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The difference of scores, new minus base, over new runs of these tasks, and the largest loss that the runs allow."""

    difference: float | None
    """Score of new minus score of base over the common tasks: the mean of the tasks' differences of mean scores."""
    se: float | None
    """Its standard error over new runs."""
    lo: float | None
    """Lower end of the two-sided interval of the difference."""
    hi: float | None
    """Upper end."""
    limit: float | None
    """Upper limit of the loss, base minus new, one-sided at `level`."""
    method: str
    """How interval and limit were made."""
    level: float
    """Confidence level of the interval, and of the one-sided limit."""
    w_new: float | None
    """Variance of one run of new on one task that the error was made with."""
    w_base: float | None
    """The same of base."""
    n_tasks: int
    """Tasks that both arms have measured."""
    undefined: str
    """Why the numbers are None; empty otherwise."""
    note: str
    """When not to trust it; empty otherwise."""


@dataclass(frozen=True, slots=True)
class _Noise:
    squared: float
    """Squared standard error of the arm's score."""
    w: float
    """Variance of one run that it was made with."""
    few: bool
    """Whether w's upper limit stood in."""


def loss_limit(new: Side, base: Side, *, level: float = 0.95) -> Loss:
    """Difference of scores d, d +- z_((1+level)/2) SE, and the limit -d + z_level SE of the loss. Covers new runs (`benchmark`).

    SE^2 is the sum over both arms of [sum_i s2_i / n_i + (w' - w) sum_i 1 / n_i] / N^2. w' is w, or, with fewer than 20 varying
    tasks, the upper end of w's benchmark interval at the same one-sided level. A task with one run has w for its s2. If no task
    of an arm was run twice, SE^2 = q' / N, q' the upper limit (Clopper-Pearson) of the mean of p_a (1-p_b) + p_b (1-p_a),
    which is at least the sum of both variances. Independent runs are assumed.

    Args:
        new: The arm that may have lost.
        base: The arm that it is compared with; row i is the same task.
        level: Confidence level, above 1/2.
    """
    if not 0.5 < level < 1:
        raise ValueError(f"a one-sided level lies between 1/2 and 1, not {level!r}")
    a, b, _ = on_common_tasks(new, base)
    if not a.n_tasks:
        return _none(level)
    difference = math.fsum(a.means - b.means) / a.n_tasks
    single = min(int(a.runs.max()), int(b.runs.max())) < 2
    if single:
        w = _disagreement(a, b, level)
        squared, w_new, w_base, note = w / a.n_tasks, w / 2, w / 2, SINGLE_RUNS
        method = DISAGREEING
    else:
        one, other = _noise(a, level), _noise(b, level)
        squared, w_new, w_base = one.squared + other.squared, one.w, other.w
        note, method = (FEW_VARIABLE, CAUTIOUS) if one.few or other.few else ("", PLAIN)
    se = math.sqrt(squared)
    half = float(-ndtri(alpha_of(level) / 2)) * se
    return Loss(
        difference=difference,
        se=se,
        lo=max(-1.0, difference - half),
        hi=min(1.0, difference + half),
        limit=min(1.0, -difference + float(ndtri(level)) * se),
        method=method,
        level=level,
        w_new=w_new,
        w_base=w_base,
        n_tasks=a.n_tasks,
        undefined="",
        note=note,
    )


def _none(level: float) -> Loss:
    nothing = dict.fromkeys(("difference", "se", "lo", "hi", "limit", "w_new", "w_base"))
    return Loss(**nothing, method=PLAIN, level=level, n_tasks=0, undefined=NO_COMMON_TASK, note="")


def _noise(arm: Side, level: float) -> _Noise:
    twice = arm.runs >= 2
    runs, s2 = arm.runs[twice], arm.variances[twice]
    w = math.fsum(s2) / len(s2)
    plain = math.fsum(s2 / runs) + w * int(np.count_nonzero(~twice))
    few = int(np.count_nonzero(arm.varied[twice])) < ENOUGH_VARIABLE
    upper = max(w, _upper(arm.take(twice), w, level)) if few else w
    return _Noise((plain + (upper - w) * math.fsum(1 / arm.runs)) / arm.n_tasks**2, upper, few)


def _upper(arm: Side, w: float, level: float) -> float:
    """One-sided upper limit of w over new runs; 1/4 where the runs allow nothing less."""
    if not arm.varied.any():
        limit = none_varied_benchmark(*groups(arm.runs), alpha_of(level))
        return MAX_VARIANCE if limit is None else limit
    ends = equal_p_ends(w, arm.runs, float(ndtri(level)))
    return MAX_VARIANCE if ends is None else ends[1]


def _disagreement(a: Side, b: Side, level: float) -> float:
    """Upper limit of the mean over tasks of E(x - y)^2 for one run x of a and one run y of b.

    Its estimate is (mean a - mean b)^2 + var a + var b, variances ddof 0. The limit is for a binomial number, which is cautious
    for a sum of different tasks (Hoeffding 1956).
    """
    inner = [arm.variances * np.maximum(arm.runs - 1, 0) / arm.runs for arm in (a, b)]
    total = math.fsum((a.means - b.means) ** 2 + inner[0] + inner[1])
    successes = min(a.n_tasks, math.ceil(total - 1e-9))
    return clopper_pearson(successes, a.n_tasks, level=2 * level - 1)[1]
