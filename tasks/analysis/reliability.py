"""Rows of `estimates` about reliability across repeats: pass@k and pass^k."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from evalnoise.readers.counts import Counts
from evalnoise.stats.estimate import NO_NEW_RUNS, Covers, Estimate, joined
from evalnoise.stats.reliability import chosen_ks, reliability
from tasks.analysis.rows import Row, estimate_row
from tasks.workshop import Workshop

ONE_DRAW: Final = "its k runs are k verifications of one recorded answer to each task, not k answers"


def reliability_rows(shop: Workshop, counts: Mapping[tuple[str, str], Counts]) -> Iterator[Row]:
    """pass@k and pass^k of every condition for k = 2, 5, 10, … up to the replicates; undefined where a task has fewer runs.

    Replicates that repeat one recorded run have no interval for new runs.
    """
    study, asked = shop.plan.study, shop.plan.study.analysis
    ks = chosen_ks(shop.plan.protocol.replicates)
    for (stack, condition), found in counts.items():
        one_draw = study.repeats_one_draw(shop.stack(stack), study.condition(condition))
        named = reliability(found.passes, found.runs, ks, seed=asked.seed, resamples=asked.resamples, level=1 - asked.alpha)
        for name, estimate in named:
            yield estimate_row(shop, stack, condition, name, _of_one_draw(estimate) if one_draw else estimate)


def _of_one_draw(estimate: Estimate) -> Estimate:
    if estimate.covers == Covers.BENCHMARK:
        return replace(estimate, lo=None, hi=None, level=None, covers=Covers.NOTHING, undefined=NO_NEW_RUNS, note=ONE_DRAW)
    return replace(estimate, note=joined(ONE_DRAW, estimate.note))
