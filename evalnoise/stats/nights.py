"""Control limits for a score that is measured every night.

w cannot see what differs from night to night: a provider's changes, its load. So the spread that a night is judged by is that of
whole nights, from the first 20, the baseline, which get no verdict. Nightly tests at 0.05 against the baseline's mean alarm falsely
in 74 to 99 % of months; these limits in 4 to 6 %, whether or not nights vary (`false_alarms` simulates both).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import nctdtrinc, ndtri, stdtrit

from evalnoise.stats.estimate import Covers, Method
from evalnoise.stats.resampling import stream
from evalnoise.stats.variance import Floats

BASELINE: Final = 20
"""Nights that set the limits and get no verdict."""
MONTH: Final = 30
"""Nights of a month, for false alarms."""
FALSE_ALARMS: Final = (
    "4 to 6 % of months alarm falsely under this rule, with or without night-to-night variance; a test of every night at 0.05 "
    "would alarm in 74 to 99 %"
)
SAME_BASELINE: Final = "all baseline nights have the same score: there is no spread to set a limit by"

_LAMBDA: Final = 0.2
_SIDE: Final = 0.025
_LASTING: Final = 10
_EWMA_LOOKS: Final = 14
"""As many independent looks as a month of averages is worth."""
_NIGHTS_STREAM: Final = 21


class Rule(StrEnum):
    """How a night is judged."""

    T = "t"
    """Each night by itself: predictive t limits, sees a large change at once."""
    EWMA = "ewma"
    """An average that forgets, weight 0.2 on tonight: sees a small change that stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Nights against their control limits. Arrays have one entry per night, in order, shape (T,)."""

    rule: Rule
    """The rule."""
    scores: Floats
    """The nights' scores."""
    judged: NDArray[np.bool_]
    """Whether a night has a verdict: none of the baseline has."""
    points: Floats
    """What is held against the limits: the score, or the moving average; the score in the baseline."""
    lo: Floats | None
    """Lower limits of the judged nights, shape (J,); None while there are none."""
    hi: Floats | None
    """Upper limits of the same."""
    alarms: NDArray[np.bool_]
    """Whether a night's point lies outside its limits."""
    centre: float | None
    """Mean of the baseline nights; None before there are enough."""
    sd: float | None
    """Standard deviation (ddof 1) of the baseline nights."""
    seen: float | None
    """A change of the newest judged night alone (before there is one: the first) that its limits show with probability 0.8."""
    lasting_seen: float | None
    """The same of a change that has lasted for `lasting_nights`, the newest being the last of them; the same as `seen` under t."""
    lasting_nights: int
    """10, or all judged nights, if they are fewer."""
    level: float
    """Level of one night's limits."""
    method: str
    """How the limits were made."""
    covers: str
    """These tasks, new nights of new runs."""
    baseline: int
    """Nights that the baseline takes."""
    undefined: str
    """Why there are no limits; empty otherwise."""
    note: str
    """What the reader must know."""

    @property
    def alarm(self) -> bool:
        """Whether the newest night alarms."""
        return bool(self.alarms.size and self.alarms[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseAlarms:
    """How often months without any change alarm, by simulation."""

    rule: float
    """Share of months with an alarm under the rule."""
    nightly: float
    """The same when each night is tested at 0.05 against the baseline's mean, with w alone for the variance."""
    months: int
    """Simulated months, each with a baseline of its own."""
    nights: int
    """Nights of a month."""
    seed: int
    """Seed."""


def limit_factors(nights: int, rule: Rule | str, *, baseline: int = BASELINE) -> Floats:
    """Half-widths of the limits of the first nights after the baseline, in baseline standard deviations, shape (nights,).

    t: t_(b-1) at 1 - 0.025/30, times sqrt(1 + 1/b). EWMA: t_(b-1) at 1 - 0.025/14, times the standard deviation of the average
    less the baseline mean that it began at, sqrt(l/(2-l) (1 - (1-l)^(2t)) + (1 - (1-l)^t)^2 / b). Two-sided; 0.025 is a side's.
    """
    rule = Rule(rule)
    t = np.arange(1, nights + 1)
    if rule is Rule.T:
        return np.full(nights, float(stdtrit(baseline - 1, 1 - _SIDE / MONTH)) * math.sqrt(1 + 1 / baseline))
    kept = (1 - _LAMBDA) ** t
    variance = _LAMBDA / (2 - _LAMBDA) * (1 - kept**2) + (1 - kept) ** 2 / baseline
    return np.asarray(float(stdtrit(baseline - 1, 1 - _SIDE / _EWMA_LOOKS)) * np.sqrt(variance))


def control_chart(scores: ArrayLike, rule: Rule | str = Rule.T, *, baseline: int = BASELINE) -> Chart:
    """Nights against the limits that the first `baseline` of them set.

    Args:
        scores: Score of each night in order, shape (T,): the same tasks, the same number of runs.
        rule: The rule, declared beforehand.
        baseline: Nights of the baseline, at least 3; the false alarms that are stated are those of 20.

    Raises:
        ValueError: Scores that are no numbers, or a baseline that cannot be.
    """
    rule = Rule(rule)
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"scores are numbers of shape (T,), not {values.shape} with something else in it")
    if baseline < 3:
        raise ValueError(f"a baseline has at least 3 nights, not {baseline}")
    first, after = values[:baseline], values[baseline:]
    spread = bool(len(first) == baseline and np.ptp(first) > 0)
    undefined = "" if spread else (f"baseline: {len(first)} of {baseline} nights" if len(first) < baseline else SAME_BASELINE)
    enough = len(first) == baseline
    centre = float(first.mean()) if enough else None
    sd = float(first.std(ddof=1)) if spread else None
    judged = (np.arange(len(values)) >= baseline) & spread
    points = values.copy()
    lo = hi = None
    alarms = np.zeros(len(values), dtype=np.bool_)
    if centre is not None and sd is not None:
        points[baseline:] = _averages(after, centre) if rule is Rule.EWMA else after
        half = limit_factors(len(after), rule, baseline=baseline) * sd
        lo, hi = centre - half, centre + half
        alarms[baseline:] = (points[baseline:] < lo) | (points[baseline:] > hi)
    night = max(1, len(after))
    lasting = min(_LASTING, night)
    return Chart(
        rule=rule, scores=values, judged=judged, points=points, lo=lo, hi=hi, alarms=alarms, centre=centre, sd=sd,
        seen=None if sd is None else sd * _seen(rule, baseline, night, 1),
        lasting_seen=None if sd is None else sd * _seen(rule, baseline, night, lasting), lasting_nights=lasting,
        level=1 - 2 * _SIDE / (MONTH if rule is Rule.T else _EWMA_LOOKS),
        method=Method.NIGHTS_T if rule is Rule.T else Method.NIGHTS_EWMA, covers=Covers.BENCHMARK,
        baseline=baseline, undefined=undefined,
        note=FALSE_ALARMS if baseline == BASELINE else f"{FALSE_ALARMS}, both for a baseline of {BASELINE} nights",
    )  # fmt: skip


def _averages(scores: Floats, start: float) -> Floats:
    averages = np.empty(len(scores))
    for night, score in enumerate(scores):
        start = _LAMBDA * float(score) + (1 - _LAMBDA) * start
        averages[night] = start
    return averages


def _seen(rule: Rule, baseline: int, night: int, lasting: int) -> float:
    """The change, in standard deviations, of the last `lasting` nights that a night after the baseline shows with probability 0.8.

    The night's point less the centre, over the baseline's sd, is noncentral t times the point's own spread, which is the limit
    factor over the quantile that it was made with. The average has taken up 1 - (1-l)^lasting of the change.
    """
    quantile = float(stdtrit(baseline - 1, 1 - _SIDE / (MONTH if rule is Rule.T else _EWMA_LOOKS)))
    spread = float(limit_factors(night, rule, baseline=baseline)[-1]) / quantile
    taken = 1 - (1 - _LAMBDA) ** lasting if rule is Rule.EWMA else 1.0
    return float(nctdtrinc(baseline - 1, 0.2, quantile)) * spread / taken


def false_alarms(
    rates: ArrayLike,
    runs: int,
    *,
    night_sd: float,
    rule: Rule | str,
    months: int = 1000,
    nights: int = MONTH,
    baseline: int = BASELINE,
    seed: int,
) -> FalseAlarms:
    """Share of months without any change that alarm: under the rule, and when each night is tested at 0.05.

    A night's score is the mean over tasks of Binomial(runs, rate)/runs, plus a normal night effect. The nightly test compares it
    with the baseline's mean by z, SE^2 = w/(N R) (1 + 1/b), with the true w, which knows nothing of night effects.

    Args:
        rates: True pass rate of each task, shape (N,).
        runs: Runs of each task a night.
        night_sd: Standard deviation of the night effect, in score.
        rule: The rule.
        months: Months to simulate, each with a baseline of its own.
        nights: Nights after the baseline.
        baseline: Nights of the baseline.
        seed: Seed.

    Raises:
        ValueError: Rates or numbers that cannot be.
    """
    rule = Rule(rule)
    p = np.asarray(rates, dtype=np.float64)
    if p.ndim != 1 or not p.size or not np.all((p >= 0) & (p <= 1)) or runs < 1 or night_sd < 0 or months < 1:
        raise ValueError("rates lie in [0, 1], runs and months are at least 1, and a standard deviation is 0 or more")
    generator = stream(seed, (_NIGHTS_STREAM,), 0)
    shape = (months, baseline + nights)
    distinct, counts = np.unique(p, return_counts=True)
    passes = np.zeros(shape)
    for rate, count in zip(distinct, counts, strict=True):
        passes += generator.binomial(int(count) * runs, rate, size=shape)
    scores = passes / (p.size * runs) + night_sd * generator.standard_normal(shape)
    first, after = scores[:, :baseline], scores[:, baseline:]
    centre = first.mean(axis=1, keepdims=True)
    sd = first.std(axis=1, ddof=1, keepdims=True)
    points = after
    if rule is Rule.EWMA:
        points = np.apply_along_axis(lambda row: _averages(row[1:], row[0]), 1, np.hstack([centre, after]))
    # Without a spread there is no limit, and so no alarm.
    outside = (np.abs(points - centre) > limit_factors(nights, rule, baseline=baseline) * sd) & (sd > 0)
    alone = math.sqrt(float(np.mean(p * (1 - p))) / (p.size * runs) * (1 + 1 / baseline))
    tested = np.abs(after - centre) > -float(ndtri(0.025)) * alone
    return FalseAlarms(
        rule=float(outside.any(axis=1).mean()),
        nightly=float(tested.any(axis=1).mean()),
        months=months,
        nights=nights,
        seed=seed,
    )
