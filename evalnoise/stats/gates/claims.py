"""Two arms tested on a declared claim: about these tasks and new runs (`benchmark`), or about new tasks too (`population`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from evalnoise.stats.bootstrap import dirichlet_task_means
from evalnoise.stats.clusters import clustered_mean, named_labels
from evalnoise.stats.estimate import Covers, alpha_of, joined
from evalnoise.stats.gates.cmh import cmh_test
from evalnoise.stats.gates.loss import loss_limit
from evalnoise.stats.gates.permutation import RESAMPLES, permutation_test
from evalnoise.stats.gates.side import Side, on_common_tasks
from evalnoise.stats.models.samples import on_one_denominator
from evalnoise.stats.planning.budget import rerun_budget, smallest, z_sum
from evalnoise.stats.variance import Floats, Ints, harmonic_mean

PLANNED_POWER = 0.8
NO_COMMON_TASK = "no task was measured in both arms"
ONE_TASK = "one task says nothing about other tasks"
NO_VARIATION = "every task differs by the same amount: there is no variation to compare the difference with"
THE_TEST_DECIDES = "interval and p disagree about 0: whether the difference is significant, the test decides"
RARE_LOSSES = "the limit of the loss is Gaffke's, which also reckons with tasks that break and are too rare to be among these"
GAFFKE_RESAMPLES = 10_000
T_OVER_TASKS = "difference +- t SE over tasks"
T_OVER_CLUSTERS = "difference +- t SE over clusters of tasks"
_LARGEST_W = 0.5
_MANY = 2_000
_ROUNDING = 1e-12
"""Scores that do not lie on a grid are equal, and an error is 0, up to this."""


class HowTested(StrEnum):
    """How a difference was tested."""

    CMH = "Cochran-Mantel-Haenszel by task, exact, mid-p"
    MCNEMAR = "McNemar, exact, mid-p"
    PERMUTATION = "permutation within tasks"
    NORMAL = "permutation within tasks, by its exact mean and variance"
    PAIRED_T = "paired t over tasks"
    CLUSTER_T = "t over clusters of tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A difference of scores, new minus base, with its test, interval, and the largest loss that the records allow."""

    test: str
    """A `HowTested`."""
    covers: str
    """Which noise all of it covers: benchmark or population."""
    difference: float | None
    """Score of new minus score of base over the common tasks."""
    se: float | None
    """Standard error of the difference, as the interval has it."""
    lo: float | None
    """Lower end of the two-sided interval."""
    hi: float | None
    """Upper end."""
    interval_method: str
    """How interval and limit were made."""
    level: float
    """Confidence level of the interval, and of the one-sided limit."""
    loss_limit: float | None
    """Largest loss (base minus new) that is not excluded, one-sided."""
    p: float | None
    """Two-sided p of no difference."""
    p_worse: float | None
    """One-sided p against "new is worse"."""
    n_tasks: int
    """Tasks that both arms have measured."""
    n_informative: int
    """Of them, tasks that the test learns from."""
    runs_new: int
    """Runs per task of new; the smallest, if they differ."""
    runs_base: int
    """Runs per task of base; the smallest, if they differ."""
    most_runs_new: int
    """The largest number of runs of a task of new."""
    most_runs_base: int
    """The same of base."""
    mean_runs_new: float | None
    """Harmonic mean of the runs per task of new, which plans are made with: the error goes with the mean of 1/n."""
    mean_runs_base: float | None
    """The same of base."""
    w_new: float | None
    """Variance of one run of new on one task that plans are made with; None for `population`."""
    w_base: float | None
    """The same of base."""
    seed: int | None
    """Seed of the resampling: of the test, or of the limit for new tasks; None where nothing is random."""
    resamples: int | None
    """Resamples; None where nothing is resampled."""
    clusters: int | None
    """Clusters of tasks; None where tasks count alone."""
    undefined: str
    """Why p, or all of it, is None; empty otherwise."""
    note: str
    """When not to trust it; empty otherwise."""

    def power_at(self, loss: float, alpha: float) -> float | None:
        """Chance that a true loss is found significant, two-sided: Phi(loss / SE - z_(1-alpha/2)). None without an error."""
        if not self.se:
            return None
        normal = NormalDist()
        return normal.cdf(loss / self.se + normal.inv_cdf(alpha / 2))

    def runs_for(self, margin: float, alpha: float) -> int | None:
        """Runs per arm with which 80 % of new arms that lost nothing pass, and of those that lost the margin are blocked.

        The rerun budget for a difference of the margin. None for `population`, or for a margin of 0.
        """
        if self.w_new is None or self.w_base is None or not self.n_tasks or margin <= 0:
            return None
        w_new, w_base = min(self.w_new, _LARGEST_W), min(self.w_base, _LARGEST_W)
        return rerun_budget(w_new, w_base, self.n_tasks, margin, alpha=alpha, power=PLANNED_POWER)

    def tasks_for(self, margin: float, alpha: float) -> int | None:
        """The same in tasks, at the runs per task of now, for `population`: their differences then vary as those of now.

        At least log alpha / log(1 - margin): with fewer, a share of the margin of tasks that break may well be missed.
        """
        if self.covers != Covers.POPULATION or not self.se or margin <= 0:
            return None
        fewest = math.ceil(math.log(alpha) / math.log1p(-margin)) if margin < 1 else 1
        return max(fewest, smallest((z_sum(alpha, PLANNED_POWER) * self.se / margin) ** 2 * self.n_tasks, margin))


def benchmark_test(new: Side, base: Side, *, level: float = 0.95, seed: int = 0, resamples: int = RESAMPLES) -> Tested:
    """These tasks, new runs: CMH by task for binary scores (McNemar at one run), else permutation within tasks.

    Interval and limit are `loss_limit`'s; `seed` and `resamples` are for the permutation.
    """
    loss = loss_limit(new, base, level=level)
    a, b, _ = on_common_tasks(new, base)
    used: tuple[int | None, int | None] = (None, None)
    if a.binary and b.binary:
        cmh = cmh_test(a.passes, a.runs, b.passes, b.runs)
        test = HowTested.MCNEMAR if cmh.mcnemar else HowTested.CMH
        p, p_worse, informative, undefined = cmh.p_two_sided, cmh.p_less, cmh.n_informative, cmh.undefined
    else:
        dealt = permutation_test(a, b, seed=seed, resamples=resamples)
        test = HowTested.NORMAL if dealt.resamples is None and not dealt.undefined else HowTested.PERMUTATION
        used = (dealt.seed, dealt.resamples)
        p, p_worse, informative, undefined = dealt.p_two_sided, dealt.p_less, dealt.n_informative, dealt.undefined
    return Tested(
        test=test,
        covers=Covers.BENCHMARK,
        difference=loss.difference,
        se=loss.se,
        lo=loss.lo,
        hi=loss.hi,
        interval_method=loss.method,
        level=level,
        loss_limit=loss.limit,
        p=p,
        p_worse=p_worse,
        n_tasks=loss.n_tasks,
        n_informative=informative,
        **_runs(a, b),
        w_new=loss.w_new,
        w_base=loss.w_base,
        seed=used[0],
        resamples=used[1],
        clusters=None,
        undefined=undefined,
        note=joined(loss.note, THE_TEST_DECIDES if _disagree(p, loss.lo, loss.hi, alpha_of(level)) else ""),
    )


def population_test(new: Side, base: Side, *, level: float = 0.95, clusters: Sequence[str] | None = None, seed: int = 0) -> Tested:
    """New tasks too: t over the tasks' differences of mean scores, or over clusters of tasks where there are any.

    The limit of the loss is the larger of t's and Gaffke's, by `seed`: the quantile of the mean loss under Dirichlet(1, ..., 1)
    weights over the tasks, or the means of clusters, and one more that loses 1. Tasks that break are few, and where none or one
    of them is among the N, t's limit alone lies under a loss that is there in up to 22 of 100 studies (5 promised). Source: Gaffke
    2005; Learned-Miller and Thomas, arXiv 1905.06208.

    Without clusters t = d / (sd / sqrt N) with N - 1 degrees of freedom; with G clusters the error is `clustered_mean`'s, with
    G - 1. A task without a cluster is one of its own.

    Raises:
        ValueError: There are clusters, but fewer than 2.
    """
    a, b, both = on_common_tasks(new, base)
    differences, common = _differences(a, b)
    labels = None if clusters is None else named_labels(clusters)
    labels = None if labels is None else labels[both]
    n = a.n_tasks
    spread = _spread(differences, common, labels) if n > 1 else None
    found = math.fsum(differences) / common / n if n else None
    undefined = NO_COMMON_TASK if not n else ONE_TASK if n == 1 else "" if spread and spread.se > 0 else NO_VARIATION
    numbers: dict[str, float | None] = dict.fromkeys(("lo", "hi", "loss_limit", "p", "p_worse"))
    rare = False
    if found is not None and spread and not undefined:
        by_t = float(stdtrit(spread.df, level)) * spread.se - found
        limit = max(by_t, _rare_losses(-differences / common, labels, level=level, seed=seed))
        rare = limit > by_t
        half = float(-stdtrit(spread.df, alpha_of(level) / 2)) * spread.se
        below = float(stdtr(spread.df, found / spread.se))
        numbers = {
            "lo": max(-1.0, found - half),
            "hi": min(1.0, found + half),
            "loss_limit": min(1.0, limit),
            "p": min(1.0, 2 * float(stdtr(spread.df, -abs(found) / spread.se))),
            "p_worse": below,
        }
    return Tested(
        test=HowTested.CLUSTER_T if spread and spread.clusters is not None else HowTested.PAIRED_T,
        covers=Covers.POPULATION,
        difference=found,
        se=spread.se if spread else None,
        lo=numbers["lo"],
        hi=numbers["hi"],
        loss_limit=numbers["loss_limit"],
        p=numbers["p"],
        p_worse=numbers["p_worse"],
        interval_method=T_OVER_CLUSTERS if spread and spread.clusters is not None else T_OVER_TASKS,
        level=level,
        n_tasks=n,
        n_informative=int(np.count_nonzero(differences)),
        **_runs(a, b),
        w_new=None,
        w_base=None,
        seed=None if undefined else seed,
        resamples=None if undefined else GAFFKE_RESAMPLES,
        clusters=spread.clusters if spread else None,
        undefined=undefined,
        note=joined(spread.note if spread else "", RARE_LOSSES if rare else ""),
    )


def _rare_losses(losses: Floats, clusters: Ints | None, *, level: float, seed: int) -> float:
    """Gaffke's upper limit of a mean of losses (N,), each at most 1; of clusters, by their totals over the mean size."""
    values, most = losses, 1.0
    if clusters is not None:
        _, at, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
        scale = len(sizes) / len(losses)
        values, most = np.asarray(np.bincount(at, weights=losses) * scale, dtype=np.float64), float(sizes.max()) * scale
    if len(values) > _MANY:
        # Rounded up, which is cautious: the cost goes with the number of distinct values.
        values = np.asarray(np.minimum(np.ceil(values * _MANY - _ROUNDING) / _MANY, most), dtype=np.float64)
    means = dirichlet_task_means(values, most, resamples=GAFFKE_RESAMPLES, seed=seed)
    return float(np.quantile(means, level))


@dataclass(frozen=True, slots=True)
class _Spread:
    se: float
    df: int
    clusters: int | None
    note: str


def _differences(a: Side, b: Side) -> tuple[Floats, int]:
    """The tasks' differences of mean scores, times a denominator, and it: integers wherever the scores allow it."""
    above, below = zip(*(side.fractions for side in (a, b)), strict=True)
    numerators, common = on_one_denominator(np.stack(above), np.stack(below))
    return numerators[0] - numerators[1], common


def _spread(differences: Floats, common: int, clusters: Ints | None) -> _Spread:
    """Standard error of the mean of differences / common, over tasks or over clusters of them."""
    n = len(differences)
    # Integers are equal or not; what else differs by no more than rounding is the same too.
    if float(np.ptp(differences)) <= (_ROUNDING if common == 1 else 0.0):
        return _Spread(0.0, n - 1, None, "")
    if clusters is None:
        away = differences / common - math.fsum(differences) / common / n
        return _Spread(math.sqrt(math.fsum(away * away) / (n - 1) / n), n - 1, None, "")
    found = clustered_mean(differences, clusters)
    se = (found.se or 0.0) / common
    return _Spread(se if se > _ROUNDING else 0.0, found.n_clusters - 1, found.n_clusters, found.result.note)


def _disagree(p: float | None, lo: float | None, hi: float | None, alpha: float) -> bool:
    """Whether the test finds a difference and the interval holds 0, or the other way round."""
    return p is not None and lo is not None and hi is not None and (p <= alpha) == (lo <= 0 <= hi)


def _runs(a: Side, b: Side) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, runs in (("new", a.runs), ("base", b.runs)):
        known = bool(len(runs))
        found[f"runs_{name}"], found[f"most_runs_{name}"] = (int(runs.min()), int(runs.max())) if known else (0, 0)
        found[f"mean_runs_{name}"] = harmonic_mean(runs) if known else None
    return found
