"""Whether a grader that says how sure it is means what it says: reliability table, Brier score, expected calibration error."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats.agreement.resampled import undefined, with_percentiles
from evalnoise.stats.bootstrap import RESAMPLES
from evalnoise.stats.estimate import Estimate, joined
from evalnoise.stats.variance import Floats, Ints

BINS = 10
"""Bins of equal width over [0, 1]; a confidence on an edge belongs to the bin above, 1 to the last."""
NONE_STATED = "no verdict with a known answer states a confidence"
_EDGE_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """One row of a reliability table: verdicts whose stated confidence lies in a range. A range without verdicts has no row."""

    lo: float
    """Lower edge, which belongs to the bin."""
    hi: float
    """Upper edge, which does not, but for the last bin."""
    verdicts: int
    """Verdicts in it."""
    tasks: int
    """Tasks that these are of: repeats on one task are not independent."""
    confidence: float
    """Mean stated confidence, in [0, 1]."""
    right: float
    """Share of the verdicts that are right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Stated confidence against being right. Pooled over verdicts, each with weight one."""

    brier: Estimate
    """Mean of (confidence - right)^2: 0 is perfect, 0.25 is what always saying one half gives."""
    ece: Estimate
    """Expected calibration error: mean distance of confidence and share right over the bins, weighted by verdicts."""
    ece_by_chance: float | None
    """About what the ECE of a perfectly calibrated grader would be with so many verdicts, were they independent."""
    bins: tuple[Bin, ...]
    """The reliability table, ascending."""
    stated: int
    """Verdicts that state a confidence and whose right answer is known: only they enter."""
    verdicts: int
    """Verdicts whose right answer is known."""

    def named(self) -> Iterator[tuple[str, Estimate]]:
        """Each estimate with its name."""
        yield "brier", self.brier
        yield "ece", self.ece


def calibration(
    verdicts: ArrayLike,
    reference: ArrayLike,
    confidence: ArrayLike,
    stated: ArrayLike,
    *,
    bins: int = BINS,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Calibration:
    """Calibration of the confidence that a verdict is right.

    The Brier score's interval is the bootstrap over tasks of a ratio of means. The ECE has none: it cannot be below 0 and noise
    makes it larger, so that resampling makes it larger still; `ece_by_chance` says how much of it can be noise. It is
    sum_b sqrt(2 sum c(1-c) / pi) / n over the confidences c of bin b. Sources: Brier 1950; Naeini, Cooper and Hauskrecht 2015.

    Args:
        verdicts: Shape (N, J): 1 pass, 0 fail, -1 none.
        reference: Shape (N,): 1 pass, 0 fail, -1 unknown.
        confidence: Shape (N, J), in [0, 1]; read only where `stated`.
        stated: Shape (N, J), boolean.
        bins: Number of bins.
        seed: Seed of the task bootstrap.
        resamples: Its resamples.
        level: Confidence level.

    Raises:
        ValueError: Shapes differ, or a stated confidence is not in [0, 1].
    """
    table, truth = np.asarray(verdicts), np.asarray(reference)
    sure, said = np.asarray(confidence, dtype=np.float64), np.asarray(stated, dtype=bool)
    if table.ndim != 2 or truth.shape != table.shape[:1] or sure.shape != table.shape or said.shape != table.shape:
        raise ValueError(
            f"verdicts, confidence and stated need one shape (N, J) and reference (N,): {table.shape}, {sure.shape}, "
            f"{said.shape}, {truth.shape}"
        )
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}")
    known = (table != -1) & (truth != -1)[:, None]
    used = known & said
    if not bool(np.all((sure[used] >= 0) & (sure[used] <= 1))):
        raise ValueError("a stated confidence lies between 0 and 1")
    right = (table == truth[:, None])[used].astype(np.float64)
    tasks, chosen = np.nonzero(used)[0], sure[used]
    rows, by_chance = _reliability(chosen, right, tasks, bins)
    return Calibration(
        brier=_brier(chosen, right, tasks, seed=seed, resamples=resamples, level=level),
        ece=_ece(rows, by_chance, tasks),
        ece_by_chance=by_chance,
        bins=rows,
        stated=int(used.sum()),
        verdicts=int(known.sum()),
    )


def _brier(chosen: Floats, right: Floats, tasks: NDArray[np.intp], *, seed: int, resamples: int, level: float) -> Estimate:
    if not chosen.size:
        return undefined(NONE_STATED)
    errors = (chosen - right) ** 2
    _, place, sizes = np.unique(tasks, return_inverse=True, return_counts=True)
    base = Estimate(value=float(errors.mean()), n_tasks=len(sizes), n_replicates=int(sizes.min()))
    columns = np.column_stack([np.bincount(place, weights=errors), sizes])
    return with_percentiles(
        base,
        columns,
        lambda means: means[:, 0] / means[:, 1],
        seed=seed,
        resamples=resamples,
        level=level,
        degenerate="every task has the same error",
    )


def _reliability(chosen: Floats, right: Floats, tasks: NDArray[np.intp], bins: int) -> tuple[tuple[Bin, ...], float | None]:
    if not chosen.size:
        return (), None
    # A confidence of 0.3 stands for the edge 3/10, though the product is a little less.
    place: Ints = np.minimum(np.floor(chosen * bins + _EDGE_ROUNDING).astype(np.int64), bins - 1)
    rows, noise = [], 0.0
    for b in np.unique(place):
        here = place == b
        noise += float(np.sqrt(2 / np.pi * np.sum(chosen[here] * (1 - chosen[here]))))
        rows.append(
            Bin(
                lo=int(b) / bins,
                hi=(int(b) + 1) / bins,
                verdicts=int(here.sum()),
                tasks=len(np.unique(tasks[here])),
                confidence=float(chosen[here].mean()),
                right=float(right[here].mean()),
            )
        )
    return tuple(rows), noise / chosen.size


def _ece(rows: tuple[Bin, ...], by_chance: float | None, tasks: NDArray[np.intp]) -> Estimate:
    if by_chance is None:
        return undefined(NONE_STATED)
    total = sum(row.verdicts for row in rows)
    value = sum(row.verdicts * abs(row.right - row.confidence) for row in rows) / total
    _, sizes = np.unique(tasks, return_counts=True)
    chance = f"a perfectly calibrated grader would show about {by_chance:.4f} by chance with {total} independent verdicts"
    within = "so that this much may be noise alone" if value <= by_chance else ""
    base = Estimate(value=value, n_tasks=len(sizes), n_replicates=int(sizes.min()))
    return dataclasses.replace(base, note=joined(f"{chance}{', ' if within else ''}{within}"))
