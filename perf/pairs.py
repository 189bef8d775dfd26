"""`python -m perf.pairs`: all pairs of 200 models x 1,000 questions x 10 samples; time, memory, and a plain loop beside it.

The loop takes the paper's formulas pair by pair with NumPy, over a subset of the models; both must agree to 1e-12.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from evalnoise.stats.models.noise import AllPairs
from evalnoise.stats.models.pairs import all_pairs
from evalnoise.stats.models.samples import samples_of

LIMIT_SECONDS = 3.0
TOLERANCE = 1e-12
_NAMES = ("mean", "total", "data", "prediction")


def scores(models: int, tasks: int, samples: int) -> Any:
    """Outcomes of models of rising strength on tasks of rates from Beta(0.3, 0.2), shape (M, N, K)."""
    generator = np.random.default_rng(20251224)
    rates = generator.beta(0.3, 0.2, size=tasks)
    strength = generator.uniform(-0.3, 0.3, size=(models, 1))
    p = np.clip(rates + strength * generator.uniform(0, 1, (models, tasks)), 0, 1)
    return (generator.random((models, tasks, samples)) < p[:, :, None]).astype(np.int8)


def plain_loop(table: Any) -> dict[tuple[int, int], tuple[float, ...]]:
    """The paper's formulas, a pair at a time."""
    made = {}
    for a in range(len(table)):
        for b in range(a + 1, len(table)):
            one, other = table[a].astype(float), table[b].astype(float)
            k_a, k_b = one.shape[1], other.shape[1]
            within = np.var(one, axis=1).mean(), np.var(other, axis=1).mean()
            correction = within[0] / (k_a - 1) + within[1] / (k_b - 1)
            means = one.mean(axis=1), other.mean(axis=1)
            total = np.var(one) + np.var(other) - 2 * np.mean((means[0] - means[0].mean()) * (means[1] - means[1].mean()))
            data = np.var(means[0] - means[1]) - correction
            prediction = within[0] + within[1] + correction
            made[a, b] = (means[0].mean() - means[1].mean(), total, data, prediction)
    return made


def largest_gap(found: AllPairs, loop: dict[tuple[int, int], tuple[float, ...]]) -> float:
    """The largest difference of any number between the two."""
    gap = 0.0
    for index, (a, b) in enumerate(zip(found.a.tolist(), found.b.tolist(), strict=True)):
        ours = [float(getattr(found, name)[index]) for name in _NAMES]
        gap = max(gap, *(abs(x - y) for x, y in zip(ours, loop[a, b], strict=True)))
    return gap


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came of it."""
    begun = time.perf_counter()
    made = work()
    return time.perf_counter() - begun, made


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--subset", type=int, default=30, help="models of the plain loop")
    options = parser.parse_args()
    table = scores(options.models, options.tasks, options.samples)
    shape = f"{options.models} models x {options.tasks} tasks x {options.samples} samples"
    seconds, found = min((timed(lambda: all_pairs(samples_of(table))) for _ in range(3)), key=lambda one: one[0])
    tracemalloc.start()
    all_pairs(samples_of(table))
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    small = table[: options.subset]
    loop_seconds, loop = timed(lambda: plain_loop(small))
    gap = largest_gap(all_pairs(samples_of(small)), loop)
    per_pair = loop_seconds / len(loop)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"all pairs of {shape}: {len(found)} pairs in {seconds:.2f} s (best of 3; at most {LIMIT_SECONDS:g})")
    print(f"memory: {peak:.0f} MB for arrays at the peak, {resident:.0f} MB resident with the scores ({table.nbytes / 1e6:.0f} MB)")
    print(f"plain loop: {len(loop)} pairs in {loop_seconds:.2f} s, {1e3 * per_pair:.2f} ms a pair, so all pairs would take")
    print(f"  {per_pair * len(found):.1f} s: {per_pair * len(found) / seconds:.0f} times as long")
    print(f"largest difference between the two: {gap:.1e} (at most {TOLERANCE:g})")
    return int(seconds > LIMIT_SECONDS or gap > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
