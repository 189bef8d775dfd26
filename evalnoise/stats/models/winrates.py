"""Win rates of one model over another, over all pairs of samples of a task: exact counts, never rounded to whole wins."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats.models.noise import NO_TASK, ONE_SAMPLE, ONE_TASK
from evalnoise.stats.models.samples import Floats, Ints

_CHUNK = 4_000_000
"""Comparisons at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WinRates:
    """How often a sample of one model beats a sample of another on the same task, and the variance of win minus loss."""

    q_a: float | None
    """Mean over tasks of the share of pairs of samples in which the first has the higher score."""
    q_b: float | None
    """The same for the second. The rest are ties."""
    total: float | None
    """q_a + q_b - (q_a - q_b)^2: variance of win minus loss of one pair of samples on a task drawn at random."""
    data: float | None
    """Variance over tasks of the expected win minus loss, by distinct samples: unbiased at any K, and below 0 by chance."""
    prediction: float | None
    """total - data."""
    data_raw: float | None
    """The paper's formula with shares for probabilities, mean (q_ai - q_bi - (q_a - q_b))^2: too large at small K."""
    prediction_raw: float | None
    """The same: mean q_ai + q_bi - (q_ai - q_bi)^2; too small at small K."""
    n_tasks: int
    """Tasks that both have."""
    undefined: str
    """Why the rates and the total are None; empty otherwise."""
    parts_undefined: str
    """Why data and prediction are None; empty otherwise."""

    def se(self, variance: float | None) -> float | None:
        """sqrt(variance / N); None where it is None or below 0."""
        return None if variance is None or variance < 0 or not self.n_tasks else float(np.sqrt(variance / self.n_tasks))


def win_rates(a: ArrayLike, b: ArrayLike, measured_a: ArrayLike | None = None, measured_b: ArrayLike | None = None) -> WinRates:
    """Win rates of two models' scores (N, K_A) and (N, K_B), `measured` (N, K) saying which samples there are.

    A task's win minus loss, squared, is estimated over pairs of samples that share none: (s^2 - sum_j s_j.^2 - sum_k s_.k^2 +
    sum s_jk^2) / (K_A (K_A-1) K_B (K_B-1)), s_jk the sign of sample j against sample k. For scores of 0 and 1 that is the data
    variance of `paired_noise`. It needs two samples of both in every task. All counts are integers. Source: Wang 2025, table 3.
    """
    one, known_one = _sides(a, measured_a)
    other, known_other = _sides(b, measured_b)
    if len(one) != len(other):
        raise ValueError(f"two models need the same tasks, not {len(one)} and {len(other)}")
    both = known_one.any(axis=1) & known_other.any(axis=1)
    n = int(both.sum())
    if not n:
        return _nothing(0, NO_TASK)
    counts = _counts(one[both], other[both], known_one[both], known_other[both])
    pairs = counts.runs_a * counts.runs_b
    q_a, q_b = _mean_of(counts.wins, pairs), _mean_of(counts.losses, pairs)
    if n < 2:
        return _nothing(n, ONE_TASK, q_a=float(q_a), q_b=float(q_b))
    total = q_a + q_b - (q_a - q_b) ** 2
    net = counts.wins - counts.losses
    twice = bool(np.all((counts.runs_a >= 2) & (counts.runs_b >= 2)))
    data = _mean_of(counts.distinct, pairs * (counts.runs_a - 1) * (counts.runs_b - 1)) - (q_a - q_b) ** 2 if twice else None
    # At one sample each the formula would give all noise to the data.
    raw = None if bool(np.all(pairs == 1)) else _mean_of(net * net, pairs * pairs) - (q_a - q_b) ** 2
    return WinRates(
        q_a=float(q_a),
        q_b=float(q_b),
        total=float(total),
        data=None if data is None else float(data),
        prediction=None if data is None else float(total - data),
        data_raw=None if raw is None else float(raw),
        prediction_raw=None if raw is None else float(total - raw),
        n_tasks=n,
        undefined="",
        parts_undefined="" if twice else ONE_SAMPLE,
    )


def _nothing(n: int, reason: str, q_a: float | None = None, q_b: float | None = None) -> WinRates:
    return WinRates(
        q_a=q_a, q_b=q_b, total=None, data=None, prediction=None, data_raw=None, prediction_raw=None, n_tasks=n,
        undefined=reason, parts_undefined=reason,
    )  # fmt: skip


def _sides(scores: ArrayLike, measured: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    values = np.asarray(scores, dtype=np.float64)
    known = np.ones(values.shape, dtype=np.bool_) if measured is None else np.asarray(measured, dtype=np.bool_)
    if values.ndim != 2 or known.shape != values.shape:
        raise ValueError(f"scores and measured need one shape (N, K), not {values.shape} and {known.shape}")
    if not np.isfinite(values[known]).all():
        raise ValueError("a measured score is a finite number")
    return values, known


@dataclass(frozen=True, slots=True)
class _Counts:
    """Per task, shape (N,)."""

    runs_a: Ints
    runs_b: Ints
    wins: Ints
    losses: Ints
    distinct: Ints
    """Sum of s_jk s_j'k' over j != j', k != k'."""


def _counts(a: Floats, b: Floats, known_a: NDArray[np.bool_], known_b: NDArray[np.bool_]) -> _Counts:
    step = max(1, _CHUNK // max(1, a.shape[1] * b.shape[1]))
    parts = [_part(a[i : i + step], b[i : i + step], known_a[i : i + step], known_b[i : i + step]) for i in range(0, len(a), step)]
    wins, losses, distinct = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Counts(known_a.sum(axis=1, dtype=np.int64), known_b.sum(axis=1, dtype=np.int64), wins, losses, distinct)


def _part(a: Floats, b: Floats, known_a: NDArray[np.bool_], known_b: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    known = known_a[:, :, None] & known_b[:, None, :]
    signs = (np.where(a[:, :, None] > b[:, None, :], 1, 0) - np.where(a[:, :, None] < b[:, None, :], 1, 0)) * known
    net = signs.sum(axis=(1, 2))
    rows, columns = signs.sum(axis=2), signs.sum(axis=1)
    distinct = net * net - (rows * rows).sum(axis=1) - (columns * columns).sum(axis=1) + (signs * signs).sum(axis=(1, 2))
    return (signs > 0).sum(axis=(1, 2)), (signs < 0).sum(axis=(1, 2)), distinct


def _mean_of(numerators: Ints, denominators: Ints) -> Fraction:
    """Mean of fractions, exactly: no order of tasks changes it."""
    sizes = np.unique(denominators)
    parts = (Fraction(int(numerators[denominators == size].sum()), int(size)) for size in sizes)
    return sum(parts, Fraction()) / len(numerators)
