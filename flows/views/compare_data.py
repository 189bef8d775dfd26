"""What `evalnoise compare` found: a panel compared, with the numbers that were asked for."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from evalnoise.readers.panel import Panel
from evalnoise.stats.estimate import Covers
from evalnoise.stats.models.beta_theory import BetaFit, beta_fit, beta_ratios
from evalnoise.stats.models.checkpoints import Averaging, NullCheck, averaging, null_check
from evalnoise.stats.models.noise import AllPairs
from evalnoise.stats.models.pair_intervals import intervals
from evalnoise.stats.models.pairs import all_pairs
from flows.cli_errors import printable
from flows.cli_options import misuse

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NO_NEW_RUNS = "the samples of a replay repeat one recorded draw: its prediction noise is not seen, and data noise holds all of it"
LEVEL = 0.95
"""Of the intervals of a - b."""
P_METHOD = {"population": "paired t", "benchmark": "normal"}
"""What p is of, by what it covers. It is the one p to quote, and the one that is adjusted."""


class Sort(StrEnum):
    """Orders of the pairs."""

    Z = "z"
    P = "p"
    DIFFERENCE = "difference"
    SE = "se"
    PREDICTION = "prediction"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for."""

    covers: str
    sort: Sort
    plan_tasks: int | None
    plan_samples: int | None
    average: tuple[str, ...]
    null: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """A panel, compared."""

    panel: Panel
    names: tuple[str, ...]
    """The models' names without control characters."""
    asked: Asked
    pairs: AllPairs
    z: Floats
    p: Floats
    """The p to quote, for what was asked for: of the paired t over tasks, or normal over new runs (`P_METHOD`)."""
    holm: Floats
    """This p, adjusted over all pairs that have one."""
    bh: Floats
    """The same, by Benjamini and Hochberg."""
    lo: Floats
    """Lower end of the interval of a - b, for what was asked for."""
    hi: Floats
    """Upper end."""
    beta: Floats
    fit: BetaFit
    averaging: Averaging | None
    null: NullCheck | None

    @property
    def once_drawn(self) -> bool:
        """Whether a model's samples repeat one draw."""
        return any(self.panel.once_drawn)


def compared(panel: Panel, asked: Asked) -> Compared:
    """All pairs, with z and p of what was asked for."""
    pairs = all_pairs(panel.samples)
    names = tuple(printable(name).replace("\n", "\\n") for name in panel.models)
    z, p = (pairs.z, pairs.p_value) if asked.covers == "population" else (pairs.z_runs, pairs.p_runs)
    lo, hi = intervals(pairs, covers=Covers(asked.covers), level=LEVEL)
    if asked.covers == "benchmark" and any(panel.once_drawn):
        drawn = np.array(panel.once_drawn)
        unseen = drawn[pairs.a] | drawn[pairs.b]
        z, p, lo, hi = (np.where(unseen, np.nan, column) for column in (z, p, lo, hi))
    groups = [[row for row, name in enumerate(panel.models) if fnmatch.fnmatchcase(name, pattern)] for pattern in asked.average]
    return Compared(
        panel=panel,
        names=names,
        asked=asked,
        pairs=pairs,
        z=z,
        p=p,
        holm=pairs.holm(p),
        bh=pairs.benjamini_hochberg(p),
        lo=lo,
        hi=hi,
        beta=beta_ratios(pairs),
        fit=beta_fit(pairs),
        averaging=_averaged(panel, asked, groups) if groups else None,
        null=null_check(panel.samples) if asked.null else None,
    )


def _averaged(panel: Panel, asked: Asked, groups: list[list[int]]) -> Averaging:
    for pattern, group in zip(asked.average, groups, strict=True):
        if not group:
            raise misuse(f"--average {pattern}: no model of that name; there are {', '.join(panel.models[:10])}")
    if set(groups[0]) & set(groups[1]):
        raise misuse(f"--average: {panel.models[min(set(groups[0]) & set(groups[1]))]} is in both groups")
    return averaging(panel.samples, groups[0], groups[1])


def order(found: Compared) -> Ints:
    """Places of the pairs as asked; those without the number last."""
    pairs = found.pairs
    if found.asked.sort is Sort.NAME:
        place = np.unique(np.array(found.names), return_inverse=True)[1]
        return np.lexsort((place[pairs.b], place[pairs.a]))
    keys: dict[Sort, Callable[[], Floats]] = {
        Sort.Z: lambda: -np.abs(found.z),
        Sort.P: lambda: found.p,
        Sort.DIFFERENCE: lambda: -np.abs(pairs.mean),
        Sort.SE: lambda: pairs.total,
        Sort.PREDICTION: lambda: -pairs.prediction,
    }
    return np.argsort(keys[found.asked.sort](), kind="stable")  # NaN comes last


def prediction_shares(pairs: AllPairs) -> Floats:
    """Of each pair prediction / (data + prediction), over the tasks that both have twice; above 1 where data came out below 0."""
    total = pairs.data + pairs.prediction
    return np.where(total > 0, pairs.prediction / np.where(total > 0, total, 1.0), np.nan)
