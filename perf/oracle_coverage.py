"""How often the `benchmark` interval for w covers the truth: 200 oracle seeds, the statistics alone, nothing executed.

Each seed is another oracle: other pass rates for the starter tasks, known to us, so the true w of these tasks is known. Outcomes
are drawn from those rates and go through the interval that `noise_floor` shows as w_bench_lo and w_bench_hi.

    python -m perf.oracle_coverage [--seeds 200] [--replicates 10] [--retry resample]

Exit code 1 when a condition's interval covers the truth in less than 90 % of the seeds.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from evalnoise.benchmarks.starter import load_starter
from evalnoise.providers.oracle import true_rates, true_w
from evalnoise.stats.estimate import Estimate
from evalnoise.stats.intervals import w_benchmark
from schemas.provider import OracleProvider

REQUIRED = 0.90
CONDITIONS = {"live": 0.7, "temperature-zero": 0.0}


@dataclass(slots=True)
class Tally:
    """What became of the interval over all seeds of one condition."""

    covered: int = 0
    below: int = 0
    """The truth lies under the lower end."""
    above: int = 0
    """The truth lies over the upper end."""
    undefined: int = 0
    degenerate: int = 0
    """No task varied: the interval is a one-sided limit. Counted among the others too."""
    width: float = 0.0
    truth: float = 0.0

    @property
    def seeds(self) -> int:
        return self.covered + self.below + self.above + self.undefined

    @property
    def coverage(self) -> float:
        return self.covered / self.seeds

    def add(self, truth: float, found: Estimate) -> None:
        self.truth += truth
        self.degenerate += found.value == 0
        if found.lo is None or found.hi is None:
            self.undefined += 1
            return
        self.width += found.hi - found.lo
        self.below += truth < found.lo
        self.above += truth > found.hi
        self.covered += found.lo <= truth <= found.hi


def measure(seeds: int, replicates: int, retry: str, level: float = 0.95) -> tuple[int, dict[str, Tally]]:
    """Number of tasks, and a tally for each condition."""
    task_ids = [task.id for task in load_starter().tasks]
    runs = np.full(len(task_ids), replicates)
    tallies = {name: Tally() for name in CONDITIONS}
    for seed in range(seeds):
        for place, (name, temperature) in enumerate(CONDITIONS.items()):
            rates = true_rates(OracleProvider(name="oracle", seed=seed, temperature=temperature), task_ids, retry)
            generator = np.random.default_rng([seed, place, replicates])
            tallies[name].add(true_w(rates), w_benchmark(generator.binomial(replicates, rates), runs, level=level))
    return len(task_ids), tallies


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--retry", choices=("none", "resample"), default="resample")
    options = parser.parse_args()
    tasks, tallies = measure(options.seeds, options.replicates, options.retry)
    print(
        f"oracle seeds 0 to {options.seeds - 1}, N = {tasks} starter tasks, R = {options.replicates}, retry {options.retry}; "
        f"benchmark interval at 95 %, required coverage {REQUIRED:.0%}"
    )
    for name, tally in tallies.items():
        n = tally.seeds
        print(
            f"{name:<17} covers {tally.coverage:6.1%}   truth below {tally.below / n:5.1%}, above {tally.above / n:5.1%}, "
            f"no interval {tally.undefined / n:5.1%}   nothing varied {tally.degenerate / n:5.1%}   "
            f"mean true w {tally.truth / n:.5f}, mean width {tally.width / n:.5f}"
        )
    return 0 if all(tally.coverage >= REQUIRED for tally in tallies.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
