"""Rows of `estimates` about reliability across repeats: pass@k and pass^k."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evalnoise.readers.counts import Counts
from evalnoise.stats.reliability import chosen_ks, reliability
from tasks.analysis.rows import Row, estimate_row
from tasks.workshop import Workshop


def reliability_rows(shop: Workshop, counts: Mapping[tuple[str, str], Counts]) -> Iterator[Row]:
    """pass@k and pass^k of every condition for k = 2, 5, 10, … up to the replicates; undefined where a task has fewer runs."""
    analysis = shop.plan.study.analysis
    ks = chosen_ks(shop.plan.protocol.replicates)
    for (stack, condition), found in counts.items():
        named = reliability(
            found.passes, found.runs, ks, seed=analysis.seed, resamples=analysis.resamples, level=1 - analysis.alpha
        )  # fmt: skip
        for name, estimate in named:
            yield estimate_row(shop, stack, condition, name, estimate)
