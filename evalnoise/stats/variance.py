"""Score and within-task variance of binary outcomes, exact from pass counts.

A condition is two integer arrays of shape (N,): `passes`, how many measured runs of each task passed, and `runs`, how many
were measured. Unmeasured runs are in neither, so they are never failures; a task without a measured run has ``runs == 0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from evalnoise.stats.estimate import Covers, Estimate, Method, alpha_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NO_TASK = "no task was measured"
ONE_RUN = "no task was measured twice: a variance needs 2 runs"
MOST_COUNTED = 1 << 30
"""The most runs of an arm, or items of a table, in all: products of two such counts, and their sums, then fit into 64 bits."""
_ROUNDING = 1e-12
"""How far numbers that are equal may lie apart as floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Mean over tasks of the share of passes."""

    value: float | None
    """The score; None when no task was measured."""
    n_tasks: int
    """Tasks with at least one measured run."""
    n_replicates: int
    """Runs per such task; the smallest, if they differ."""
    passes: int | None
    """Passes in all, when every such task has the same number of runs: the score is exactly passes/cells."""
    cells: int | None
    """Measured cells, under the same condition."""
    undefined: str
    """Why the score is None; empty otherwise."""


def harmonic_mean(runs: Ints) -> float:
    """Harmonic mean of the runs per task (N,), N and each run count at least 1: the variance of a score goes with its inverse."""
    return float(runs[0]) if (runs == runs[0]).all() else float(len(runs) / np.sum(1 / runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinTaskVariance:
    """w, the mean over tasks of the sample variance over runs."""

    w: float | None
    """The estimate; None when no task was measured twice."""
    score_run_sd: float | None
    """sqrt(w/N): how far the score of one run lies from the next, as a standard deviation."""
    n_tasks: int
    """Tasks with at least two measured runs: only they enter."""
    n_replicates: int
    """Runs per such task; the smallest, if they differ."""
    variable_tasks: int
    """Tasks that both passed and failed."""
    lattice_sum: int | None
    """The integer sum of k(R-k) when every such task has R runs: w is exactly this over `lattice_size`."""
    lattice_size: int | None
    """N R (R-1), under the same condition."""
    undefined: str
    """Why w is None; empty otherwise."""


def checked_counts(passes: ArrayLike, runs: ArrayLike) -> tuple[Ints, Ints]:
    """Both arrays as int64 of one shape (N,), with 0 <= passes <= runs and at most `MOST_COUNTED` runs; ValueError for all else."""
    k, n = _integers(passes, "passes"), _integers(runs, "runs")
    if k.ndim != 1 or k.shape != n.shape:
        raise ValueError(f"passes and runs need one shape (N,), not {k.shape} and {n.shape}")
    if np.any(k < 0) or np.any(k > n):
        at = int(np.flatnonzero((k < 0) | (k > n))[0])
        raise ValueError(f"task {at}: {int(k[at])} passes of {int(n[at])} runs cannot be")
    return k, n


def refuse_endless(counts: NDArray[Any], name: str) -> None:
    """ValueError for counts, integers of any shape, of more than `MOST_COUNTED` in all: their products would wrap around unseen."""
    most = int(counts.max(initial=0))
    if most * counts.size > MOST_COUNTED:
        total = sum(counts.ravel().tolist()) if most > MOST_COUNTED else int(counts.sum())
        if total > MOST_COUNTED:
            raise ValueError(f"{total} {name} in all are more than the {MOST_COUNTED} that are counted")


def same_difference(above_a: Ints, below_a: Ints, above_b: Ints, below_b: Ints) -> bool:
    """Whether above_a/below_a - above_b/below_b, arrays (N,) of integers, is the same for all, exactly: 0.3-0.1 is 0.4-0.2."""
    rough = above_a / below_a - above_b / below_b
    if not rough.size or float(np.ptp(rough)) > _ROUNDING:
        return not rough.size
    distinct = np.unique(np.column_stack([above_a, below_a, above_b, below_b]), axis=0).tolist()
    return len({Fraction(a, m) - Fraction(b, n) for a, m, b, n in distinct}) == 1


def _integers(values: ArrayLike, name: str) -> Ints:
    array = np.asarray(values)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} are counts: integers, not {array.dtype}")
    refuse_endless(array, name)
    return array.astype(np.int64)


def task_variances(passes: ArrayLike, runs: ArrayLike) -> Floats:
    """Sample variance of each task's outcomes, shape (N,); every task needs two runs.

    s2 = k (n-k) / (n (n-1)) for k passes of n runs: unbiased for p (1-p). Source: Noise Floor, equation 1.
    """
    k, n = checked_counts(passes, runs)
    if np.any(n < 2):
        raise ValueError(f"task {int(np.argmax(n < 2))}: a variance needs 2 measured runs")
    return np.asarray(k * (n - k) / (n * (n - 1)), dtype=np.float64)


def score(passes: ArrayLike, runs: ArrayLike) -> Score:
    """Mean over tasks of k/n, each task with weight one whatever its number of runs; exact before the last rounding."""
    k, n = checked_counts(passes, runs)
    k, n = k[n >= 1], n[n >= 1]
    if not n.size:
        return Score(value=None, n_tasks=0, n_replicates=0, passes=None, cells=None, undefined=NO_TASK)
    least, most = int(n.min()), int(n.max())
    balanced = least == most
    total = sum((Fraction(int(k[n == size].sum()), int(size)) for size in np.unique(n)), Fraction())
    return Score(
        value=float(total / n.size),
        n_tasks=int(n.size),
        n_replicates=least,
        passes=int(k.sum()) if balanced else None,
        cells=int(n.sum()) if balanced else None,
        undefined="",
    )


def exact_mean_variance(passes: Ints, runs: Ints) -> Fraction:
    """Mean of k (n-k) / (n (n-1)) over tasks with n >= 2 each, at least one task, as a fraction: w before its rounding."""
    products = passes * (runs - passes)
    sizes = [int(size) for size in np.unique(runs)]
    total = sum((Fraction(int(products[runs == size].sum()), size * (size - 1)) for size in sizes), Fraction())
    return total / runs.size


def within_task_variance(passes: ArrayLike, runs: ArrayLike) -> WithinTaskVariance:
    """Mean w of k (n-k) / (n (n-1)) over the tasks with n >= 2, exact before the last rounding.

    With R runs for every task, w N R (R-1) is an integer. Source: Noise Floor, equations 1 and A1.
    """
    k, n = checked_counts(passes, runs)
    k, n = k[n >= 2], n[n >= 2]
    if not n.size:
        return WithinTaskVariance(
            w=None,
            score_run_sd=None,
            n_tasks=0,
            n_replicates=0,
            variable_tasks=0,
            lattice_sum=None,
            lattice_size=None,
            undefined=ONE_RUN,
        )
    least, most = int(n.min()), int(n.max())
    products = k * (n - k)
    w = float(exact_mean_variance(k, n))
    return WithinTaskVariance(
        w=w,
        score_run_sd=float(np.sqrt(w / n.size)),
        n_tasks=int(n.size),
        n_replicates=least,
        variable_tasks=int(np.count_nonzero(products)),
        lattice_sum=int(products.sum()) if least == most else None,
        lattice_size=int(n.size) * least * (least - 1) if least == most else None,
        undefined="",
    )


def clopper_pearson(successes: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """Exact binomial interval for a proportion: Beta quantiles (a/2; x, n-x+1) and (1-a/2; x+1, n-x)."""
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} of {trials} is no proportion")
    alpha = alpha_of(level)
    lo = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, alpha / 2))
    hi = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1 - alpha / 2))
    return lo, hi


def variable_share(passes: ArrayLike, runs: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Share V/N of tasks that both passed and failed, with its Clopper-Pearson interval.

    It is the share at this number of runs: with more runs, more tasks vary. Source: Noise Floor, table A1.
    """
    found = within_task_variance(passes, runs)
    if found.w is None:
        return Estimate(value=None, method=Method.CLOPPER_PEARSON, n_tasks=0, n_replicates=0, undefined=found.undefined)
    lo, hi = clopper_pearson(found.variable_tasks, found.n_tasks, level=level)
    _, n = checked_counts(passes, runs)
    uneven = found.lattice_sum is None and n.size > 0
    return Estimate(
        value=found.variable_tasks / found.n_tasks,
        lo=lo,
        hi=hi,
        level=level,
        method=Method.CLOPPER_PEARSON,
        covers=Covers.POPULATION,
        n_tasks=found.n_tasks,
        n_replicates=found.n_replicates,
        note="tasks differ in their number of runs, and so in their chance to be seen to vary" if uneven else "",
    )
