"""A judge on frozen candidates: does it repeat itself, and does its majority agree with what execution said?

Verdicts are integers: 1 pass, 0 fail, -1 unparsed. Unparsed verdicts are left out of w and of majorities, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats.agreement.confusion import majority
from evalnoise.stats.bootstrap import RESAMPLES, joint_task_bootstrap, percentile_interval
from evalnoise.stats.estimate import PROVES_NOTHING, Covers, Estimate, Method, joined
from evalnoise.stats.variance import Ints, WithinTaskVariance, clopper_pearson, within_task_variance

PASS, FAIL, ABSENT = 1, 0, -1
"""Codes of verdicts and of reference outcomes. ABSENT: unparsed, or unmeasured."""
FEW_DISAGREEMENTS = 15
"""Under so many disagreements, or agreements, the percentile interval of their share is too narrow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """One judge condition against the executed reference."""

    passes: Ints
    """Pass verdicts per task, shape (N,): with `runs`, the judge's own score, w and intervals come from the usual functions."""
    runs: Ints
    """Parsed verdicts per task, shape (N,)."""
    variance: WithinTaskVariance
    """w and variable tasks of the parsed verdicts."""
    disagreement: Estimate
    """Share of compared tasks where the majority differs from the reference, with its task bootstrap."""
    disagreement_exact: Estimate
    """The same share with its exact interval (Clopper-Pearson), the one to quote with few disagreements or agreements."""
    disagreements: int
    """Such tasks."""
    false_accepts: int
    """Majority pass, reference fail."""
    false_rejects: int
    """Majority fail, reference pass."""
    compared: int
    """Tasks with a majority and a measured reference."""
    ties: int
    """Tasks whose parsed verdicts are split evenly: no majority, not compared."""
    without_verdict: int
    """Tasks without a parsed verdict."""
    without_reference: int
    """Tasks whose reference is unmeasured."""
    verdicts: int
    """Verdicts asked for."""
    unparsed: int
    """Verdicts that could not be read."""
    unparsed_share: float | None
    """Their share; None without verdicts."""
    mean_confidence: float | None
    """Mean stated confidence, over the verdicts that state one, on the judge's own scale; no measure of calibration."""
    stated: int
    """Verdicts that state a confidence."""


def judge_agreement(
    verdicts: ArrayLike,
    reference: ArrayLike,
    *,
    confidence: ArrayLike | None = None,
    stated: ArrayLike | None = None,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> JudgeAgreement:
    """Repeatability of a judge and agreement of its majority with the reference. Source: Noise Floor, section 5.3, appendix D.

    Args:
        verdicts: Shape (N, J): 1 pass, 0 fail, -1 unparsed.
        reference: Shape (N,): 1 pass, 0 fail, -1 unmeasured, for the same candidates.
        confidence: Shape (N, J): stated confidences; read only where `stated`.
        stated: Shape (N, J), boolean: whether a confidence was stated; required with `confidence`.
        seed: Seed of the task bootstrap.
        resamples: Resamples of the task bootstrap.
        level: Confidence level.
    """
    table, truth = _codes(verdicts, 2, "verdicts"), _codes(reference, 1, "reference")
    if len(table) != len(truth):
        raise ValueError(f"verdicts and reference need one row per task, not {len(table)} and {len(truth)}")
    passes = np.asarray((table == PASS).sum(axis=1), dtype=np.int64)
    runs = np.asarray((table != ABSENT).sum(axis=1), dtype=np.int64)
    most = majority(table)
    compared = (most != ABSENT) & (truth != ABSENT)
    wrong = most[compared] != truth[compared]
    accepts = int(np.sum(wrong & (truth[compared] == FAIL)))
    unparsed = int(np.sum(table == ABSENT))
    share = _share(wrong, runs[compared], seed=seed, resamples=resamples, level=level)
    mean_confidence, n_stated = _mean_confidence(confidence, stated, table.shape)
    return JudgeAgreement(
        passes=passes,
        runs=runs,
        variance=within_task_variance(passes, runs),
        disagreement=share,
        disagreement_exact=_exact(share, int(wrong.sum()), level=level),
        disagreements=int(wrong.sum()),
        false_accepts=accepts,
        false_rejects=int(wrong.sum()) - accepts,
        compared=int(compared.sum()),
        ties=int(np.sum((most == ABSENT) & (runs > 0))),
        without_verdict=int(np.sum(runs == 0)),
        without_reference=int(np.sum(truth == ABSENT)),
        verdicts=table.size,
        unparsed=unparsed,
        unparsed_share=unparsed / table.size if table.size else None,
        mean_confidence=mean_confidence,
        stated=n_stated,
    )


def _codes(values: ArrayLike, dimensions: int, name: str) -> Ints:
    array = np.asarray(values)
    if array.ndim != dimensions or (
        array.size and (array.dtype.kind not in "iu" or not np.isin(array, (PASS, FAIL, ABSENT)).all())
    ):
        raise ValueError(f"{name} are integers 1, 0 or -1 in {dimensions} dimensions, not {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)


def _mean_confidence(confidence: ArrayLike | None, stated: ArrayLike | None, shape: tuple[int, ...]) -> tuple[float | None, int]:
    if confidence is None:
        return None, 0
    values = np.asarray(confidence, dtype=np.float64)
    mask: NDArray[np.bool_] = np.zeros(0, dtype=bool) if stated is None else np.asarray(stated, dtype=bool)
    if values.shape != shape or mask.shape != shape:
        raise ValueError(f"confidence and stated need the verdicts' shape {shape}, not {values.shape} and {mask.shape}")
    chosen = values[mask]
    if not np.isfinite(chosen).all():
        raise ValueError("a stated confidence is a finite number")
    return (float(chosen.mean()), int(chosen.size)) if chosen.size else (None, 0)


def _share(wrong: NDArray[np.bool_], runs: Ints, *, seed: int, resamples: int, level: float) -> Estimate:
    n = len(wrong)
    base = Estimate(
        value=float(wrong.mean()) if n else None,
        method=Method.PERCENTILE,
        n_tasks=n,
        n_replicates=int(runs.min()) if n else 0,
        seed=seed if n > 1 else None,
        resamples=resamples if n > 1 else None,
        undefined="" if n else "no task has both a majority verdict and a measured reference",
    )
    if n < 2:
        return base if not n else base.lacking("one task says nothing about other tasks")
    draws = joint_task_bootstrap(wrong[:, None].astype(np.float64), resamples=resamples, seed=seed)[:, 0]
    lo, hi = percentile_interval(draws, level=level)
    note = PROVES_NOTHING + "the judge is right about every task, or wrong about every task" if lo == hi else ""
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=joined(note, _few(int(wrong.sum()), n)))


def _few(wrong: int, compared: int) -> str:
    least, name = (wrong, "disagreement") if 2 * wrong <= compared else (compared - wrong, "agreement")
    if least >= FEW_DISAGREEMENTS:
        return ""
    return (
        f"{least} {name}{'' if least == 1 else 's'}: under {FEW_DISAGREEMENTS} this interval is too narrow; quote Clopper-Pearson's"
    )


def _exact(share: Estimate, wrong: int, *, level: float) -> Estimate:
    exact = replace(share, method=Method.CLOPPER_PEARSON, seed=None, resamples=None, lo=None, hi=None, note="")
    # One candidate says nothing about others; its interval would be almost [0, 1].
    if share.n_tasks < 2:
        return exact
    lo, hi = clopper_pearson(wrong, share.n_tasks, level=level)
    return exact.spanning(lo, hi, level=level, covers=Covers.POPULATION)
