"""Drift over replicates: Cochran's Q, a trend, and a scan for a change point, each with its power.

The null hypothesis of all three: within each task, which of its runs passed is a matter of chance, so that the outcomes of a task
may be permuted over the runs. Only tasks that varied say anything about that. Only complete tasks count: a task with an
unmeasured run would shift the sums of the runs that it was measured in.

The sums of the runs are sufficient, and tasks with the same number of passes are exchangeable. So a permutation of all tasks is
drawn run by run, from how many tasks have j passes left for the runs that are left: a binomial draw for each j. That is exact,
and neither its time nor its memory grows with the number of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, chdtri, chndtr, ndtr, ndtri

from evalnoise.stats.estimate import joined
from evalnoise.stats.resampling import check_draws, stream
from evalnoise.stats.variance import Floats, Ints

RESAMPLES: Final = 9_999
"""Permutations by default, fewer where there are many runs."""
BLOCK: Final = 500
"""Permutations per random stream. Part of the result: another number gives other permutations."""
EFFECTS: Final = (0.01, 0.03, 0.05)
"""Differences of score whose chance to be seen is given."""

ORDER_UNKNOWN: Final = "the recorded order is no time order: statistics of order are undefined"
ONE_REPLICATE: Final = "fewer than two replicates have no order"
NO_COMPLETE: Final = "no task was measured in every replicate"
NONE_VARIED: Final = "no task varied: there is nothing that could have drifted"
GRADED: Final = "scores are not all 0 or 1, and these tests are of passes and failures alone"

_PERMUTED, _NORMAL = 11, 12
"""Purposes of random streams; the bootstrap has others."""
_DRAWS = 1_000_000
_LEAST_RESAMPLES = 999
_POWER_DRAWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSums:
    """What the order of the outcomes comes down to."""

    run_passes: Ints
    """Passes of each run over the complete tasks, in the order of the runs, shape (R,)."""
    tasks_by_passes: Ints
    """How many complete tasks passed in k runs, k = 0 to R, shape (R+1,)."""
    left_out: int
    """Tasks with an unmeasured run: they do not count."""

    @property
    def n_tasks(self) -> int:
        """Complete tasks."""
        return int(self.tasks_by_passes.sum())

    @property
    def n_replicates(self) -> int:
        """Runs."""
        return len(self.run_passes)

    @property
    def products(self) -> int:
        """Sum of k(R-k), which is w N R (R-1)."""
        k = np.arange(self.n_replicates + 1)
        return int((self.tasks_by_passes * k * (self.n_replicates - k)).sum())

    @property
    def variable_tasks(self) -> int:
        """Complete tasks that both passed and failed."""
        return int(self.tasks_by_passes[1:-1].sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftTest:
    """One test for drift."""

    statistic: float
    """Q; or the z of the trend, or of the largest change: positive where later runs pass more."""
    p: float | None
    """From the statistic's limiting distribution (chi-square or normal, two-sided); None for the scan, which has none."""
    p_permuted: float
    """(1 + b) / (1 + B), b of B permutations being at least as far out, two-sided."""
    power: tuple[float, ...]
    """Chance to see each of `Drift.effects` at level `Drift.alpha`, in the limit of many variable tasks."""
    note: str
    """When not to trust it; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Whether scores moved over the replicates. That nothing was seen is no proof: the power says what would have been."""

    q: DriftTest | None
    """Cochran's Q: any difference between runs. Its power is for a step in the middle."""
    trend: DriftTest | None
    """A steady drift. Its power is for one that comes to the effect from the first run to the last."""
    scan: DriftTest | None
    """A step after some run, whichever. Its power is for a step in the middle."""
    split_ratio: float | None
    """Q/(R-1): mean squared difference of whole-run A/A splits over 4w/(N R), which splits drawn within tasks have. About 1."""
    slope: float | None
    """Change of score per replicate, least squares."""
    change_point: int | None
    """Runs before the largest standardised change."""
    change: float | None
    """Mean score after it minus mean score before it."""
    effects: tuple[float, ...]
    """Differences of score that the power is for."""
    alpha: float
    """Level of each test that the power is for."""
    n_tasks: int
    """Complete tasks: only they enter."""
    left_out: int
    """Tasks with an unmeasured run."""
    n_replicates: int
    """Runs."""
    variable_tasks: int
    """Complete tasks that varied."""
    seed: int
    """Seed of permutations."""
    resamples: int | None
    """Permutations; None where nothing is defined."""
    undefined: str
    """Why the tests are None; empty otherwise."""

    @property
    def smallest_p(self) -> float | None:
        """Three times the smallest permutation p, at most 1: Bonferroni over the three tests."""
        tests = [test.p_permuted for test in (self.q, self.trend, self.scan) if test is not None]
        return min(1.0, len(tests) * min(tests)) if tests else None


def run_sums(outcomes: ArrayLike) -> RunSums:
    """Sums of the runs over complete tasks, for outcomes of shape (N, R): 1 pass, 0 fail, -1 unmeasured.

    Raises:
        ValueError: Another shape or code.
    """
    cells = np.asarray(outcomes)
    if cells.ndim != 2 or cells.dtype.kind not in "iu":
        raise ValueError(f"outcomes are integers of shape (N, R), not {cells.dtype} of {cells.shape}")
    if cells.size and (int(cells.min()) < -1 or int(cells.max()) > 1):
        raise ValueError("outcomes are 1 (pass), 0 (fail) or -1 (unmeasured)")
    complete = (cells >= 0).all(axis=1)
    kept = cells[complete]
    return RunSums(
        run_passes=kept.sum(axis=0, dtype=np.int64),
        tasks_by_passes=np.bincount(kept.sum(axis=1, dtype=np.int64), minlength=cells.shape[1] + 1).astype(np.int64),
        left_out=int((~complete).sum()),
    )


def drift(
    outcomes: ArrayLike | RunSums,
    *,
    order_known: bool = True,
    graded: bool = False,
    seed: int,
    resamples: int | None = None,
    alpha: float = 0.05,
    effects: Sequence[float] = EFFECTS,
) -> Drift:
    """Tests for drift over replicates; undefined, with the reason, where there is no order or nothing varied.

    With C_r the passes of run r over N complete tasks, k the passes of a task and S = sum k(R-k) = w N R (R-1):
    Q = (R-1) (R sum C^2 - (sum C)^2) / S = N sum (run score - mean)^2 / w, chi-square with R-1 degrees of freedom;
    trend z = sum c C / sqrt(sum c^2 N w), c = r - (R-1)/2; scan: the largest |z| over t of the passes before run t, whose
    conditional mean is t K/R and variance t (R-t)/R N w. All three also against permutations within tasks. Source: Cochran 1950
    (Biometrika 37); the identity with A/A splits follows from the variance of a split drawn at random.

    Args:
        outcomes: Shape (N, R): 1 pass, 0 fail, -1 unmeasured; or their `RunSums`.
        order_known: Whether the runs are in the order of time.
        graded: Whether the outcomes stand for scores beside 0 and 1: what drifts in those is not seen in them.
        seed: Seed of the permutations, 0 or more.
        resamples: Permutations; None: `RESAMPLES`, or fewer where many runs would make that slow.
        alpha: Level that the power is for.
        effects: Differences of score that the power is for; none: no power.

    Raises:
        ValueError: Outcomes, seed, level or effects that cannot be.
    """
    sums = outcomes if isinstance(outcomes, RunSums) else run_sums(outcomes)
    if not 0.0 < alpha < 1.0 or not all(0.0 < effect <= 1.0 for effect in effects):
        raise ValueError(f"alpha and effects lie between 0 and 1, not {alpha!r} and {tuple(effects)!r}")
    undefined = GRADED if graded else _undefined(sums, order_known=order_known)
    drawn = None if undefined else (default_resamples(sums.n_replicates) if resamples is None else resamples)
    q, trend, scan = (None, None, None) if drawn is None else _tests(sums, seed, drawn, alpha, tuple(effects))
    runs, tasks = sums.n_replicates, sums.n_tasks
    defined = q is not None
    at = _change_point(sums) if defined else None
    passes = sums.run_passes
    return Drift(
        q=q,
        trend=trend,
        scan=scan,
        split_ratio=None if q is None else q.statistic / (runs - 1),
        slope=6 * int((_weights(runs) * passes).sum()) / (runs * (runs * runs - 1) * tasks) if defined else None,
        change_point=at,
        change=None if at is None else float(passes[at:].mean() - passes[:at].mean()) / tasks,
        effects=tuple(effects),
        alpha=alpha,
        n_tasks=tasks,
        left_out=sums.left_out,
        n_replicates=runs,
        variable_tasks=sums.variable_tasks,
        seed=seed,
        resamples=drawn,
        undefined=undefined,
    )


def default_resamples(runs: int) -> int:
    """Permutations for R runs: a permutation takes about R^2/2 draws."""
    return int(min(RESAMPLES, max(_LEAST_RESAMPLES, _DRAWS // (runs * runs // 2 + 1))))


def _undefined(sums: RunSums, *, order_known: bool) -> str:
    if sums.n_replicates < 2:
        return ONE_REPLICATE
    if not order_known:
        return ORDER_UNKNOWN
    if not sums.n_tasks:
        return NO_COMPLETE
    return "" if sums.products else NONE_VARIED


def _weights(runs: int) -> Ints:
    """Twice the distance of each run from the middle: integers that add up to 0."""
    return 2 * np.arange(runs) - (runs - 1)


def _tests(
    sums: RunSums, seed: int, resamples: int, alpha: float, effects: tuple[float, ...]
) -> tuple[DriftTest, DriftTest, DriftTest]:
    runs, total = sums.n_replicates, sums.products
    passes = sums.run_passes
    observed = _distances(passes[None, :])
    beyond = _beyond(sums, tuple(column[0] for column in observed), seed, resamples)
    permuted = [(1 + count) / (1 + resamples) for count in beyond]
    # N w = total / (R (R-1)), and the run scores' standard deviation is sqrt(w/N).
    step = np.array(effects) * sums.n_tasks / np.sqrt(total / (runs * (runs - 1)))
    q = (runs - 1) * (runs * int((passes * passes).sum()) - int(passes.sum()) ** 2) / total
    weights = _weights(runs)
    z = int((weights * passes).sum()) / float(np.sqrt(int((weights * weights).sum()) * total / (runs * (runs - 1))))
    at = _change_point(sums)
    change = float(np.sqrt(observed[2][0] * (runs - 1) / total)) * (1 if _shift(sums, at) >= 0 else -1)
    left_out = f"{sums.left_out} tasks with an unmeasured run are left out" if sums.left_out else ""
    few = (
        "few variable tasks: the chi-square and normal p, and the power, are rough; quote the permutation p"
        if sums.variable_tasks * runs < 24 or sums.variable_tasks < 4
        else ""
    )
    note = joined(few, left_out)
    power_q, power_trend, power_scan = _power(step, runs, alpha)
    return (
        DriftTest(statistic=q, p=float(chdtrc(runs - 1, q)), p_permuted=permuted[0], power=power_q, note=note),
        DriftTest(statistic=z, p=float(2 * ndtr(-abs(z))), p_permuted=permuted[1], power=power_trend, note=note),
        DriftTest(statistic=change, p=None, p_permuted=permuted[2], power=power_scan, note=note),
    )


def _distances(columns: Ints) -> tuple[Ints, Ints, Floats]:
    """How far out passes per run (B, R) are, for the three tests, shape (B,) each: comparable where the sum is the same.

    The sum of squares, the size of the trend, and the largest (R T - t K)^2 / (t (R-t)) over t, with T the passes before run t.
    Equal ones compare equal: integers, and a correctly rounded quotient of integers.
    """
    runs = columns.shape[1]
    before = columns.cumsum(axis=1)
    t = np.arange(1, runs)
    off = (runs * before[:, :-1] - t * before[:, -1:]).astype(np.float64)
    return (columns * columns).sum(axis=1), np.abs(columns @ _weights(runs)), ((off * off) / (t * (runs - t))).max(axis=1)


def _change_point(sums: RunSums) -> int:
    """Runs before the largest standardised change; the first of equal ones."""
    runs = sums.n_replicates
    before = sums.run_passes.cumsum()
    t = np.arange(1, runs)
    off = (runs * before[:-1] - t * before[-1]).astype(np.float64)
    return 1 + int(np.argmax((off * off) / (t * (runs - t))))


def _shift(sums: RunSums, at: int) -> int:
    """Positive where the runs from `at` on pass more."""
    before = int(sums.run_passes[:at].sum())
    return at * int(sums.run_passes.sum()) - sums.n_replicates * before


def _beyond(sums: RunSums, observed: tuple[Ints, Ints, Floats], seed: int, resamples: int) -> tuple[int, int, int]:
    """How many permutations are at least as far out as the observed runs, for each test."""
    check_draws(resamples, seed)
    levels = sums.tasks_by_passes.copy()
    always = int(levels[-1])
    levels[0] = levels[-1] = 0
    counts = [0, 0, 0]
    for block, start in enumerate(range(0, resamples, BLOCK)):
        drawn = permuted_runs(levels, BLOCK, stream(seed, (_PERMUTED,), block))[: resamples - start] + always
        for test, (distance, seen) in enumerate(zip(_distances(drawn), observed, strict=True)):
            counts[test] += int(np.count_nonzero(distance >= seen))
    return counts[0], counts[1], counts[2]


def permuted_runs(tasks_by_passes: Ints, size: int, generator: np.random.Generator) -> Ints:
    """Passes of each run, shape (size, R), when each task's outcomes are permuted over the runs; `tasks_by_passes` (R+1,).

    Of the tasks with j passes left for m runs, a task passes in the next run with probability j/m, independently of the others.
    """
    runs = len(tasks_by_passes) - 1
    # One row per number of passes left: rows stay together in memory, and most are empty.
    left = np.repeat(tasks_by_passes[:, None], size, axis=1)
    columns = np.empty((size, runs), dtype=np.int64)
    for run in range(runs):
        remaining = runs - run
        passed = np.zeros(size, dtype=np.int64)
        for j in range(1, remaining + 1):
            if not left[j].any():
                continue
            drawn = generator.binomial(left[j], j / remaining)
            passed += drawn
            left[j] -= drawn
            # Upwards, so that a task that has just passed is not drawn again: its new row was dealt with before.
            left[j - 1] += drawn
        columns[:, run] = passed
    return columns


def _power(steps: Floats, runs: int, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Chance of each test to see differences of score, given in standard deviations of a run's score, shape (E,)."""
    if not steps.size:
        return (), (), ()
    middle = runs // 2
    noncentral = steps**2 * middle * (runs - middle) / runs
    q = 1 - chndtr(chdtri(runs - 1, alpha), runs - 1, noncentral)
    z = float(-ndtri(alpha / 2))
    # A straight line from 0 to the step: sum of squares around its mean is step^2 R (R+1) / (12 ).
    shift = steps * np.sqrt(runs * (runs + 1) / (12 * (runs - 1)))
    trend = ndtr(shift - z) + ndtr(-shift - z)
    return _rounded(q), _rounded(trend), _rounded(_scan_power(steps, runs, alpha))


def _scan_power(steps: Floats, runs: int, alpha: float) -> Floats:
    """The scan's power for a step in the middle, from normal runs: it has no formula."""
    noise = stream(0, (_NORMAL,), 0).standard_normal((_POWER_DRAWS, runs))
    t = np.arange(1, runs)

    def largest(values: Floats) -> Floats:
        before = values.cumsum(axis=1)
        return np.asarray(np.abs((runs * before[:, :-1] - t * before[:, -1:]) / np.sqrt(runs * t * (runs - t))).max(axis=1))

    limit = np.quantile(largest(noise), 1 - alpha)
    later = (np.arange(runs) >= runs // 2).astype(np.float64)
    return np.array([np.mean(largest(noise + step * later) > limit) for step in steps])


def _rounded(power: Floats) -> tuple[float, ...]:
    """To three decimals: the formulas are approximations, and the last digits of special functions differ between machines."""
    return tuple(round(float(chance), 3) for chance in power)
