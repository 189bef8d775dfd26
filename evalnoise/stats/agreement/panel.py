"""All numbers of one judge condition, and of two on the same candidates: what the analysis stores and the command line prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats import intervals
from evalnoise.stats.agreement.calibration import Calibration, calibration
from evalnoise.stats.agreement.confusion import confusion, majority
from evalnoise.stats.agreement.icc import icc_of_counts, varied_note
from evalnoise.stats.agreement.judge import judge_agreement
from evalnoise.stats.agreement.kappa import TwoGraders, cohen_kappa, kappa_at_margins, pass_fail_table, two_graders
from evalnoise.stats.agreement.many import krippendorff_alpha
from evalnoise.stats.agreement.margins import alpha_at_share, icc_at_share
from evalnoise.stats.agreement.repeats import repeats
from evalnoise.stats.bootstrap import RESAMPLES
from evalnoise.stats.estimate import Estimate, joined
from evalnoise.stats.variance import Ints

Named = Iterator[tuple[str, Estimate]]
PERCENT = 100.0
"""Judges state their confidence from 0 to 100."""


def itself(passes: ArrayLike, runs: ArrayLike, verdicts: ArrayLike, *, seed: int, resamples: int, level: float) -> Named:
    """How steady a judge is: flip rate, test-retest, PABAK, prevalence, ICC and alpha of its repeats on the same candidates.

    Args:
        passes: Pass verdicts of each task, (N,).
        runs: Parsed verdicts of each task, (N,).
        verdicts: The same, one by one, (N, J): 1 pass, 0 fail, -1 unparsed.
        seed: Seed of all resampling.
        resamples: Resamples.
        level: Confidence level.
    """
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "level": level}
    yield from repeats(passes, runs, **options).named()
    yield "icc", icc_at_share(passes, runs, **options)
    yield "icc", icc_of_counts(passes, runs, **options)
    yield "alpha", alpha_at_share(verdicts, **options)
    table = np.asarray(verdicts)
    alpha = krippendorff_alpha(table, table != -1, **options)
    yield "alpha", alpha if alpha.lo is None else _noted(alpha, varied_note(passes, runs))


def against(verdicts: ArrayLike, reference: ArrayLike, *, seed: int, resamples: int, level: float) -> Named:
    """The majority of verdicts (N, J) against the reference (N,): kappa, accuracy, shares of false accepts and false rejects."""
    most = majority(verdicts)
    table = pass_fail_table(most, reference)
    yield "kappa", kappa_at_margins(table, level=level)
    yield "kappa", cohen_kappa(table, seed=seed, resamples=resamples, level=level)
    yield from confusion(most, reference, level=level).named()


def judge_calibration(
    verdicts: ArrayLike, reference: ArrayLike, confidence: ArrayLike, stated: ArrayLike, *, seed: int, resamples: int, level: float
) -> Calibration:
    """Calibration of a judge whose confidence runs from 0 to 100; other arguments as of `calibration`."""
    shares = np.asarray(confidence, dtype=np.float64) / PERCENT
    return calibration(verdicts, reference, shares, stated, seed=seed, resamples=resamples, level=level)


def judge_numbers(
    verdicts: ArrayLike,
    reference: ArrayLike,
    *,
    confidence: ArrayLike,
    stated: ArrayLike,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Named:
    """Every named estimate of one judge condition; arguments as of `judge_agreement`, confidence from 0 to 100."""
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "level": level}
    table = np.asarray(verdicts)
    found = judge_agreement(verdicts, reference, confidence=confidence, stated=stated, **options)
    yield "w", intervals.w_population(found.passes, found.runs, **options)
    yield "w", intervals.w_benchmark(found.passes, found.runs, level=level)
    yield "w", intervals.w_gaffke(found.passes, found.runs, **options)
    yield "disagreement", found.disagreement
    yield "disagreement", found.disagreement_exact
    varied = None if found.variance.undefined else found.variance.variable_tasks
    numbers: dict[str, tuple[float | None, str]] = {
        "variable_tasks": (varied, found.variance.undefined),
        "false_accepts": (found.false_accepts, ""),
        "false_rejects": (found.false_rejects, ""),
        "ties": (found.ties, ""),
        "unparsed_share": (found.unparsed_share, "no verdict was asked for"),
        "mean_confidence": (found.mean_confidence, "no confidence was stated"),
        "confidence_stated": (found.stated, ""),
    }
    shape: dict[str, Any] = {"n_tasks": len(table), "n_replicates": table.shape[1]}
    compared = {"n_tasks": found.compared}
    for name, (value, missing) in numbers.items():
        number = None if value is None else float(value)
        tasks = compared if name in {"false_accepts", "false_rejects"} else {}
        yield name, Estimate(value=number, undefined=missing if value is None else "", **(shape | tasks))
    yield from itself(found.passes, found.runs, table, **options)
    yield from against(table, reference, **options)
    yield from judge_calibration(table, reference, confidence, stated, **options).named()


def two_judges(first: ArrayLike, second: ArrayLike, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95) -> TwoGraders:
    """Two judge conditions on the same candidates, majority against majority; verdicts (N, J) and (N, K), row i the same task."""
    a: Ints = majority(first)
    b: Ints = majority(second)
    if len(a) != len(b):
        raise ValueError(f"two judges need one row per task, in one order: {len(a)} and {len(b)}")
    return two_graders(pass_fail_table(a, b), seed=seed, resamples=resamples, level=level)


def _noted(estimate: Estimate, note: str) -> Estimate:

    return replace(estimate, note=joined(estimate.note, note))
