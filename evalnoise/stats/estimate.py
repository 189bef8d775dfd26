"""The value type of all statistics: a number, its interval, how both were made and what the interval covers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Covers(StrEnum):
    """Which noise an interval covers. The two targets are never mixed."""

    BENCHMARK = "benchmark"
    """These tasks, new runs."""
    POPULATION = "population"
    """New tasks from the same source."""
    NOTHING = ""
    """There is no interval."""


class Method(StrEnum):
    """How a value and its interval were made."""

    EXACT = "exact"
    """A count or a ratio; no interval."""
    PERCENTILE = "percentile task bootstrap"
    GAFFKE = "gaffke"
    CLOPPER_PEARSON = "clopper-pearson"
    EQUAL_P = "equal-p variance bound"
    PLUG_IN = "plug-in variance"
    NONE_VARIED = "one-sided limit, nothing varied"
    PAIRED_T = "paired t"
    RECOVERED = "variance recovered from two intervals"
    ANOVA = "nested analysis of variance"
    MLS = "modified large sample"
    F = "one-way F"
    AT_MARGINS = "clopper-pearson of agreement, at the observed margins"
    GAFFKE_AT_SHARE = "gaffke of w, at the observed share of passes"
    CHI_SQUARE = "chi-square"
    NORMAL = "conditional normal"
    PERMUTATION = "within-task permutation"
    ROBBINS = "robbins beta-binomial, valid at every look"
    BETTING = "hedged betting, valid at every look"
    PAIRED_NOISE = "paired noise components"
    NIGHTS_T = "predictive t limits over nights"
    NIGHTS_EWMA = "limits of a moving average over nights"
    SIGN_TEST = "exact sign test"
    CMH = "exact CMH test, mid-p"
    CLUSTER_ROBUST = "cluster-robust"
    CLUSTER_BOOTSTRAP = "cluster bootstrap"


PROVES_NOTHING = "proves nothing: "
"""How the note of every degenerate interval begins."""
NO_NEW_RUNS = "replicates that repeat one recorded run say nothing about new runs"
"""Why a number over new runs of a replay, or of a re-verification, is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One number with its interval. A number that does not exist is None, with the reason in `undefined`."""

    value: float | None
    """The estimate, untruncated."""
    lo: float | None = None
    """Lower end of the interval."""
    hi: float | None = None
    """Upper end of the interval."""
    level: float | None = None
    """Confidence level; None without an interval."""
    method: str = Method.EXACT
    """How value and interval were made: a `Method`."""
    covers: str = Covers.NOTHING
    """Which noise the interval covers: a `Covers`."""
    n_tasks: int
    """Tasks that entered."""
    n_replicates: int
    """Runs per task that entered; the smallest, if they differ."""
    seed: int | None = None
    """Seed of the resampling; None where nothing is random."""
    resamples: int | None = None
    """Resamples; None where nothing is resampled."""
    undefined: str = ""
    """Why value or interval is None; empty otherwise."""
    note: str = ""
    """When not to trust it; empty otherwise."""

    @property
    def degenerate(self) -> bool:
        """Whether the interval, or its absence, proves nothing."""
        return self.lo is None or self.hi is None or self.note.startswith(PROVES_NOTHING)

    def spanning(self, lo: float, hi: float, *, level: float, covers: Covers | str, note: str = "") -> Estimate:
        """The same estimate with an interval; the note joins the one that is there."""
        return replace(self, lo=lo, hi=hi, level=level, covers=Covers(covers), note=joined(self.note, note))

    def times(self, factor: float) -> Estimate:
        """Value and interval times a positive constant."""
        value, lo, hi = (None if x is None else x * factor for x in (self.value, self.lo, self.hi))
        return replace(self, value=value, lo=lo, hi=hi)

    def lacking(self, reason: str) -> Estimate:
        """The same estimate with the reason why value or interval is None."""
        return replace(self, undefined=reason)


def alpha_of(level: float) -> float:
    """Two-sided error level of a confidence level; refuses what is no level."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence level lies between 0 and 1, not {level!r}")
    return 1.0 - level


def joined(*notes: str) -> str:
    """Notes that apply, as one; the degenerate one first, so that it is seen."""
    present = [note for note in notes if note]
    return "; ".join(sorted(present, key=lambda note: not note.startswith(PROVES_NOTHING)))
