"""`python -m perf.coverage`: how often each interval misses what it covers, each side apart; how the gate and the night rule err.

    python -m perf.coverage [--parts w,ladder,…] [--sims 2000] [--small] [--markdown]

The whole takes about an hour on two cores; `--small` a minute. Exit code 1 when a Gaffke interval misses on a side in more
than 3.5 % of the studies of any cell, with room for the luck of the simulation itself.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product

from perf.coverage import agreement, anytime, components, intervals, ladder, paired
from perf.coverage.gates import measure_gates, print_gates, print_nights
from perf.coverage.rates import FAMILIES
from perf.coverage.tally import Found, Place, Tally, merge

TASKS, REPLICATES = (20, 50, 164, 1000), (2, 5, 20)
SMALL_TASKS, SMALL_REPLICATES = (20, 164), (5,)
MOST = 0.035
FEWEST = 50
"""Intervals that a cell must have to be spoken of in short."""
LOTS = 4
"""Parts of a cell, which run side by side."""


@dataclass(frozen=True)
class Part:
    simulate: Callable[..., Found]
    share: float
    """Of `--sims`: how many studies are simulated in each cell; fewer where one costs more."""
    resamples: int


PARTS = {
    "w": Part(intervals.simulate, 1.0, 1000),
    "ladder": Part(ladder.simulate, 0.25, 1000),
    "components": Part(components.simulate, 0.25, 1000),
    "paired": Part(paired.simulate, 0.5, 0),
    "agreement": Part(agreement.simulate, 0.25, 500),
    "anytime": Part(anytime.simulate, 0.5, 0),
}
OTHERS = ("gates", "nights")


def _job(part: str, family: int, tasks: int, replicates: int, *, sims: int, seed: int) -> Found:
    made = PARTS[part]
    return made.simulate(FAMILIES[family], tasks, replicates, sims=sims, resamples=made.resamples, seed=seed)


def measure(parts: list[str], *, sims: int, small: bool) -> Found:
    """Every cell of every part."""
    grid = product(SMALL_TASKS, SMALL_REPLICATES) if small else product(TASKS, REPLICATES)
    jobs = [(part, family, *cell) for part, cell, family in product(parts, list(grid), range(len(FAMILIES)))]
    began = time.monotonic()
    with ProcessPoolExecutor(2) as pool:
        futures = []
        for number, job in enumerate(jobs):
            each = max(1, round(sims * PARTS[job[0]].share / LOTS))
            futures += [pool.submit(_job, *job, sims=each, seed=number * LOTS + lot) for lot in range(LOTS)]
        found = []
        for done, future in enumerate(as_completed(futures), 1):
            found.append(future.result())
            if done % 20 == 0:
                left = (time.monotonic() - began) / done * (len(futures) - done)
                print(f"  {done} of {len(futures)} lots, about {left / 60:.0f} minutes left", file=sys.stderr, flush=True)
    return merge(found)


def report(found: Found, *, markdown: bool) -> None:
    """A line for each interval and cell: misses below and above, coverage, width."""
    groups: dict[tuple[str, str, str], list[tuple[Place, Tally]]] = {}
    for place, tally in sorted(found.items()):
        groups.setdefault((place.part, place.method, place.covers), []).append((place, tally))
    for (part, method, covers), rows in groups.items():
        print(f"\n{'### ' if markdown else ''}{part}: {method} (covers: {covers})")
        if markdown:
            print("\n| rates | N | R | studies | truth below | truth above | covered | undefined | with a warning | mean width |")
            print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        for place, tally in rows:
            cells = (
                place.family, str(place.tasks), str(place.replicates), str(tally.n), f"{tally.share(tally.below):.3f}",
                f"{tally.share(tally.above):.3f}", f"{tally.coverage:.3f}", f"{tally.undefined / tally.n:.2f}",
                f"{tally.share(tally.warned):.2f}", f"{tally.share(1) * tally.width:.4f}",
            )  # fmt: skip
            widths = (22, 5, 3, 5, 6, 6, 6, 5, 5, 7)
            print("| " + " | ".join(cells) + " |" if markdown else "  " + " ".join(map(str.rjust, cells, widths)))


def summarise(found: Found) -> None:
    """The same in short: the worst misses below / above over all R, by N, for Beta rates and for rates that are mostly 0 or 1."""
    print("\n| interval | covers | rates | " + " | ".join(f"N = {n}" for n in TASKS) + " | missed without a warning |")
    print("|---|---|---|" + "--:|" * (len(TASKS) + 1))
    keys = dict.fromkeys((place.part, place.method, place.covers) for place in sorted(found))
    for (part, method, covers), beta in product(keys, (True, False)):
        here = {
            place: tally
            for place, tally in found.items()
            if (place.part, place.method, place.covers) == (part, method, covers)
            and place.family.startswith("Beta") == beta
            and tally.defined >= FEWEST
        }
        if not here:
            continue
        cells = []
        for tasks in TASKS:
            there = [tally for place, tally in here.items() if place.tasks == tasks]
            sides = [max((tally.share(getattr(tally, side)) for tally in there), default=None) for side in ("below", "above")]
            cells.append(" / ".join("-" if side is None else f"{side:.3f}" for side in sides))
        silent = [tally.silent_misses for tally in here.values() if tally.silent_misses is not None]
        rates = "Beta(0.3, 0.2)" if beta else "mostly 0 or 1"
        last = f"{max(silent):.3f}" if silent else "-"
        print(f"| {part}: {method} | {covers} | {rates} | {' | '.join(cells)} | {last} |")


def too_many(found: Found) -> list[str]:
    """Cells in which Gaffke's interval misses a side too often: more than the bar and three standard errors of the simulation."""
    bad = []
    for place, tally in found.items():
        if place.method == "gaffke":
            room = 3 * (MOST * (1 - MOST) / max(1, tally.defined)) ** 0.5
            misses = max(tally.share(tally.below), tally.share(tally.above))
            if misses > MOST + room:
                bad.append(f"{place.part}, {place.family}, N = {place.tasks}, R = {place.replicates}: {misses:.3f}")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join((*PARTS, *OTHERS)))
    parser.add_argument("--sims", type=int, default=2000)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    sims = min(options.sims, 100) if options.small else options.sims
    chosen = options.parts.split(",")
    found = measure([part for part in chosen if part in PARTS], sims=sims, small=options.small)
    report(found, markdown=options.markdown)
    summarise(found)
    if "gates" in chosen:
        with ProcessPoolExecutor(2) as pool:
            print_gates(measure_gates(pool, sims=max(1, sims // 4), small=options.small))
    if "nights" in chosen:
        print_nights(months=10 * sims)
    bad = too_many(found)
    worst = max((max(t.share(t.below), t.share(t.above)) for p, t in found.items() if p.method == "gaffke"), default=0.0)
    print(f"\nGaffke's interval misses a side in at most {worst:.3f} of a cell's studies (bar {MOST})")
    print(f"cells over the bar: {'; '.join(bad) or 'none'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
