"""A grader's verdicts against what is known to be right: what it accepts falsely and what it rejects falsely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats.agreement.kappa import NO_ITEM, pass_fail_table
from evalnoise.stats.agreement.resampled import undefined
from evalnoise.stats.estimate import Covers, Estimate, Method
from evalnoise.stats.variance import Ints, clopper_pearson


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """One verdict per item against the reference."""

    table: Ints
    """Shape (2, 2): rows the verdict (pass, fail), columns the reference (pass, fail)."""
    accuracy: Estimate
    """Share of items on which the verdict is right."""
    false_accept_rate: Estimate
    """Of the items that are wrong, the share that was passed."""
    false_reject_rate: Estimate
    """Of the items that are right, the share that was failed."""

    @property
    def false_accepts(self) -> int:
        """Items passed that are wrong."""
        return int(self.table[0, 1])

    @property
    def false_rejects(self) -> int:
        """Items failed that are right."""
        return int(self.table[1, 0])

    def named(self) -> Iterator[tuple[str, Estimate]]:
        """Each estimate with its name."""
        names = ("accuracy", "false_accept_rate", "false_reject_rate")
        yield from ((name, getattr(self, name)) for name in names)


def confusion(verdicts: ArrayLike, reference: ArrayLike, *, level: float = 0.95) -> Confusion:
    """Confusion matrix of codes (N,): 1 pass, 0 fail, -1 none; with Clopper-Pearson intervals, which take items to be independent.

    Items without a verdict or without a reference are left out, never counted as wrong.
    """
    for name, codes in (("verdicts", np.asarray(verdicts)), ("reference", np.asarray(reference))):
        if codes.size and not np.isin(codes, (1, 0, -1)).all():
            raise ValueError(f"{name} are 1, 0 or -1")
    table = pass_fail_table(verdicts, reference)
    right, wrong = (int(count) for count in table.sum(axis=0))
    return Confusion(
        table=table,
        accuracy=_share(int(np.trace(table)), right + wrong, NO_ITEM, level),
        false_accept_rate=_share(
            int(table[0, 1]), wrong, "no item is wrong by the reference: none could be accepted falsely", level
        ),
        false_reject_rate=_share(
            int(table[1, 0]), right, "no item is right by the reference: none could be rejected falsely", level
        ),
    )


def majority(verdicts: ArrayLike) -> Ints:
    """The majority of each item's verdicts, shape (N,), from codes (N, J); -1 for a tie and where there is none."""
    table = np.asarray(verdicts)
    passes, runs = (table == 1).sum(axis=1), (table != -1).sum(axis=1)
    return np.where(2 * passes > runs, 1, np.where(2 * passes < runs, 0, -1)).astype(np.int64)


def _share(count: int, of: int, missing: str, level: float) -> Estimate:
    if of == 0:
        return undefined(missing)
    lo, hi = clopper_pearson(count, of, level=level)
    return Estimate(
        value=count / of,
        lo=lo,
        hi=hi,
        level=level,
        method=Method.CLOPPER_PEARSON,
        covers=Covers.POPULATION,
        n_tasks=of,
        n_replicates=1,
    )
