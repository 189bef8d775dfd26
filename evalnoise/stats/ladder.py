"""The determinism ladder: every estimate of every condition of one stack, and every contrast, from one joint task bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats import contrasts as between
from evalnoise.stats import intervals
from evalnoise.stats.bootstrap import RESAMPLES, joint_task_bootstrap
from evalnoise.stats.contrasts import Contrast
from evalnoise.stats.estimate import Estimate
from evalnoise.stats.variance import Floats, Ints, checked_counts, variable_share, within_task_variance


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEstimate:
    """An estimate of one condition and what it is of."""

    condition: int
    """Row of the condition."""
    estimate: str
    """score, score_run_sd, w, variable_tasks or variable_share."""
    result: Estimate
    """The number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedContrast:
    """A contrast of two conditions and what it is of."""

    a: int
    """Row of the first condition."""
    b: int
    """Row of the second, which is subtracted."""
    estimate: str
    """score or w."""
    contrast: Contrast
    """The number and its finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """All that the ladder says of one stack."""

    estimates: tuple[NamedEstimate, ...]
    """By condition, estimate and method."""
    contrasts: tuple[NamedContrast, ...]
    """By pair, estimate and method."""

    def find(self, condition: int, estimate: str, *, method: str | None = None, covers: str | None = None) -> Estimate:
        """The one estimate of that kind; KeyError when there is none, or more than one."""
        found = [
            named.result
            for named in self.estimates
            if named.condition == condition
            and named.estimate == estimate
            and method in {None, named.result.method}
            and covers in {None, named.result.covers}
        ]
        if len(found) != 1:
            raise KeyError((condition, estimate, method, covers, len(found)))
        return found[0]


def ladder(
    passes: ArrayLike,
    runs: ArrayLike,
    *,
    seed: int,
    pairs: Sequence[tuple[int, int]] | None = None,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Ladder:
    """Estimates and contrasts of C conditions on the same tasks.

    Conditions that have measured the same tasks share their resamples: the draws of a contrast are the differences of the draws
    of its two conditions. A contrast of conditions that have not is made on the tasks that both have.

    Args:
        passes: Passes, shape (C, N), column i being the same task in every row.
        runs: Measured runs, shape (C, N); 0 where a condition has not measured a task.
        seed: Seed of all resampling.
        pairs: Rows (a, b) of the contrasts a - b; every a before b when None.
        resamples: Number of resamples.
        level: Confidence level.
    """
    k, n = _table(passes, runs)
    draws = _Draws(k, n, seed, resamples)
    chosen = list(combinations(range(len(k)), 2)) if pairs is None else list(pairs)
    return Ladder(
        estimates=tuple(named for c in range(len(k)) for named in _condition(c, draws, level)),
        contrasts=tuple(named for a, b in chosen for named in _pair(a, b, draws, level)),
    )


def _table(passes: ArrayLike, runs: ArrayLike) -> tuple[Ints, Ints]:
    k, n = np.asarray(passes), np.asarray(runs)
    if k.ndim != 2 or k.shape != n.shape:
        raise ValueError(f"passes and runs need one shape (C, N), not {k.shape} and {n.shape}")
    flat_k, flat_n = checked_counts(k.ravel(), n.ravel())
    return flat_k.reshape(k.shape), flat_n.reshape(n.shape)


@dataclass(slots=True)
class _Draws:
    """Joint bootstrap draws, made once for each set of tasks."""

    k: Ints
    n: Ints
    seed: int
    resamples: int
    made: dict[bytes, dict[tuple[str, int], Floats]] = field(default_factory=dict)

    def tasks(self, estimate: str, *conditions: int) -> NDArray[np.bool_]:
        """Tasks that enter an estimate over these conditions, shape (N,)."""
        return np.asarray((self.n[list(conditions)] >= (2 if estimate == "w" else 1)).all(axis=0))

    def of(self, estimate: str, tasks: NDArray[np.bool_], condition: int) -> Floats | None:
        """Means of the estimate over resampled tasks, shape (resamples,); None for less than two tasks."""
        if int(tasks.sum()) < 2:
            return None
        key = tasks.tobytes()
        if key not in self.made:
            self.made[key] = self._make(tasks)
        return self.made[key][estimate, condition]

    def _make(self, tasks: NDArray[np.bool_]) -> dict[tuple[str, int], Floats]:
        names, columns, divisors = [], [], []
        for estimate, column in (("w", intervals.variance_column), ("score", intervals.score_column)):
            for condition in range(len(self.k)):
                if not (tasks <= self.tasks(estimate, condition)).all():
                    continue
                values, divisor = column(self.k[condition, tasks], self.n[condition, tasks])
                names.append((estimate, condition))
                columns.append(values)
                divisors.append(divisor)
        means = joint_task_bootstrap(np.column_stack(columns), resamples=self.resamples, seed=self.seed)
        return {name: means[:, i] / divisors[i] for i, name in enumerate(names)}


def _condition(c: int, draws: _Draws, level: float) -> list[NamedEstimate]:
    k, n, seed, resamples = draws.k[c], draws.n[c], draws.seed, draws.resamples
    found = within_task_variance(k, n)
    share = variable_share(k, n, level=level)
    named: list[tuple[str, Estimate]] = [
        ("score", intervals.score_benchmark(k, n, level=level)),
        (
            "score",
            intervals.score_population(
                k, n, seed=seed, resamples=resamples, level=level, draws=draws.of("score", draws.tasks("score", c), c)
            ),
        ),
        ("score_run_sd", intervals.score_run_sd(k, n, level=level)),
        ("w", intervals.w_benchmark(k, n, level=level)),
        (
            "w",
            intervals.w_population(k, n, seed=seed, resamples=resamples, level=level, draws=draws.of("w", draws.tasks("w", c), c)),
        ),
        ("w", intervals.w_gaffke(k, n, seed=seed, resamples=resamples, level=level)),
        ("variable_tasks", share.times(found.n_tasks)),
        ("variable_share", share),
    ]
    if found.w is not None and found.variable_tasks < intervals.PLUG_IN_VARIABLE:
        named.append(("score", intervals.score_cautious(k, n, level=level)))
    if found.w == 0:
        named.append(("w", intervals.w_population_limit(k, n, level=level)))
    return [NamedEstimate(condition=c, estimate=estimate, result=result) for estimate, result in named]


def _pair(a: int, b: int, draws: _Draws, level: float) -> list[NamedContrast]:
    arrays = (draws.k[a], draws.n[a], draws.k[b], draws.n[b])
    options = {"seed": draws.seed, "resamples": draws.resamples}

    def difference(estimate: str) -> Floats | None:
        tasks = draws.tasks(estimate, a, b)
        first, second = draws.of(estimate, tasks, a), draws.of(estimate, tasks, b)
        return None if first is None or second is None else first - second

    named = (
        ("score", between.score_contrast(*arrays, level=level, draws=difference("score"), **options)),
        ("score", between.score_contrast_benchmark(*arrays, level=level)),
        ("score", between.paired_t(*arrays, of="score", level=level)),
        ("w", between.w_contrast(*arrays, level=level, draws=difference("w"), **options)),
        ("w", between.w_contrast_benchmark(*arrays, level=level)),
        ("w", between.paired_t(*arrays, of="w", level=level)),
    )
    return [NamedContrast(a=a, b=b, estimate=estimate, contrast=contrast) for estimate, contrast in named]
