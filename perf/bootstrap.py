"""`python -m perf.bootstrap`: 20,000 joint percentile resamples of w in three conditions, against `scipy.stats.bootstrap`.

Rates are drawn from Beta(0.3, 0.2). SciPy's is paired, vectorised and percentile, with its best batch of several. Where it would
take minutes, its time is measured on fewer resamples and scaled up, which the line says; `--whole` runs all of them.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evalnoise.stats.bootstrap import joint_task_bootstrap, percentile_interval

RESAMPLES = 20_000
GOALS = {(5, 200): 2, (5, 5_000): 8, (5, 100_000): 50, (20, 200): 2, (20, 5_000): 3, (20, 100_000): 10}
"""How many times faster, by (R, N)."""
PEAK_MB = 300
_BATCHES = {200: (100, 500, 2_000), 5_000: (10, 50, 200), 100_000: (1, 4, 16)}
_SCIPY = {200: RESAMPLES, 5_000: 2_000, 100_000: 48}
"""Resamples of SciPy's that are measured."""
_ROUNDS = 3

Floats = NDArray[np.float64]


def counts(n_tasks: int, replicates: int) -> Floats:
    """k (R-k) of three conditions, shape (N, 3)."""
    generator = np.random.default_rng(replicates * n_tasks)
    rates = generator.beta(0.3, 0.2, size=n_tasks)
    k = np.stack([generator.binomial(replicates, rates) for _ in range(3)], axis=1)
    return np.asarray(k * (replicates - k), dtype=np.float64)


def ours(table: Floats) -> list[tuple[float, float]]:
    """The three intervals, before the division by R (R-1)."""
    means = joint_task_bootstrap(table, resamples=RESAMPLES, seed=1)
    return [percentile_interval(column) for column in means.T]


def scipys(table: Floats, resamples: int, batch: int) -> list[tuple[float, float]]:
    """The same from SciPy."""

    def statistic(*columns: Floats, axis: int = -1) -> Floats:
        return np.stack([column.mean(axis=axis) for column in columns])

    found = stats.bootstrap(
        tuple(table.T), statistic, paired=True, vectorized=True, n_resamples=resamples, method="percentile", batch=batch,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    return list(zip(found.confidence_interval.low, found.confidence_interval.high, strict=True))


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def compare(replicates: int, n_tasks: int, *, whole: bool) -> bool:
    """Measure one size, print it, and say whether its goal is met."""
    table = counts(n_tasks, replicates)
    resamples = RESAMPLES if whole else _SCIPY[n_tasks]
    batches = _BATCHES[n_tasks]
    scale = RESAMPLES / resamples
    # In turns, so that whatever else the machine does falls on both.
    mine, theirs = [], []
    for _ in range(1 if whole and n_tasks > 5_000 else _ROUNDS):
        mine += [seconds(lambda: ours(table)) for _ in range(_ROUNDS)]
        theirs += [(seconds(lambda b=batch: scipys(table, resamples, b)) * scale, batch) for batch in batches]  # type: ignore[misc]
    least, batch = min(theirs)
    ratio, goal = least / min(mine), GOALS[replicates, n_tasks]
    how = "" if resamples == RESAMPLES else f", measured on {resamples} resamples and scaled"
    print(
        f"R {replicates:>2}  N {n_tasks:>7,}: ours {min(mine):8.4f} s, scipy {least:9.3f} s (batch {batch}{how}): "
        f"{ratio:6.1f} times faster, goal {goal}{'' if ratio >= goal else '  MISSED'}",
        flush=True,
    )
    return ratio >= goal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--whole", action="store_true", help="run SciPy's whole 20,000 resamples everywhere: about ten minutes")
    whole = parser.parse_args().whole
    # Ours first and alone, because the peak of a process never falls again.
    for replicates, n_tasks in GOALS:
        ours(counts(n_tasks, replicates))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    met = [compare(replicates, n_tasks, whole=whole) for replicates, n_tasks in GOALS]
    print(f"peak memory of ours, all sizes: {peak:.0f} MB (goal: under {PEAK_MB}), Python, NumPy and SciPy included")
    return 0 if all(met) and peak < PEAK_MB else 1


if __name__ == "__main__":
    sys.exit(main())
