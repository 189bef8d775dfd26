"""Noise of scores in its parts: the value types of one model, of a pair and of all pairs, with what follows from them alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from evalnoise.stats.models.samples import Bools, Floats, Ints
from evalnoise.stats.multiplicity import Adjustment, adjusted_array

NO_TASK = "no task was measured in both"
ONE_TASK = "one task says nothing about other tasks"
ONE_SAMPLE = "one sample per task cannot be split into data and prediction noise: that needs 2"
BELOW_ZERO = "the estimate of the data variance is below 0, which is chance: data noise is too small to be seen at this N and K"
ALL_EQUAL = "every task differs by the same amount: there is no variation to compare the difference with"
NOTHING_VARIED = "no sample of any task differed from another: the runs hold no variation"
NO_SIGN_TEST = "the sign test is for one sample per task and scores of 0 and 1; with more samples the CMH test takes its place"
NONE_DISCORDANT = "no task was passed by one and failed by the other"
SAME_SAMPLES = (
    "both have the same score in every task, so they may be the same samples twice: a model against itself needs new ones"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Variances of one sample's score on one task, of a model or of a difference of two. SE = sqrt(variance / N)."""

    n_tasks: int
    """Tasks that entered: measured, for a pair in both."""
    n_twice: int
    """Of them, those with two samples or more, for a pair in both: data and prediction variance stand on these."""
    mean: float | None
    """The score, or the difference of the two: the mean over tasks of the mean over samples."""
    total: float | None
    """Variance of one sample on a task drawn at random: data + prediction."""
    data: float | None
    """Variance over tasks of the expected score: what samples do not take away. Corrected for K; may be below 0 by chance."""
    prediction: float | None
    """Mean over tasks of the variance of one sample: w of the model, or the sum of the two."""
    of_mean: float | None
    """Variance over tasks of the mean over the samples at hand: data + w_a/K_a + w_b/K_b."""
    of_runs: float | None
    """Mean over tasks of the variance of that mean over new runs: w_a/K_a + w_b/K_b. A task with one sample has its model's w."""
    undefined: str = ""
    """Why total and of_mean are None; empty otherwise."""
    parts_undefined: str = ""
    """Why data is None, and with it prediction and of_runs where they are; empty otherwise."""
    note: str = ""
    """When not to trust it; empty otherwise."""

    def se(self, variance: float | None) -> float | None:
        """sqrt(variance / N) of one of the variances; None where it is None or, by chance, below 0."""
        return None if variance is None or variance < 0 or not self.n_tasks else float(np.sqrt(variance / self.n_tasks))

    @property
    def se_total(self) -> float | None:
        """Standard error of the mean of one sample per task, over new tasks."""
        return self.se(self.total)

    @property
    def se_data(self) -> float | None:
        """The floor: what is left of it when the samples are endless."""
        return self.se(self.data)

    @property
    def se_prediction(self) -> float | None:
        """Standard error of the mean of one sample per task, over new runs of these tasks."""
        return self.se(self.prediction)

    @property
    def se_mean(self) -> float | None:
        """Standard error of the mean over all samples at hand, over new tasks (population)."""
        return self.se(self.of_mean)

    @property
    def se_runs(self) -> float | None:
        """The same over new runs of these tasks (benchmark)."""
        return self.se(self.of_runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairNoise(Noise):
    """One model minus another."""

    score_a: float | None
    """Score of the first on the common tasks."""
    score_b: float | None
    """Score of the second on the common tasks."""
    z: float | None
    """Difference over `se_mean`, whose variance has ddof 0; covers new tasks (population)."""
    p_value: float | None
    """Two-sided, of the paired t over tasks: t = z sqrt((N-1) / N). A normal p of z is too small where tasks are few."""
    z_undefined: str = ""
    """Why z and p_value are None; empty otherwise."""
    z_runs: float | None
    """Difference over `se_runs`; covers new runs of these tasks (benchmark)."""
    p_runs: float | None
    """Two-sided, normal."""
    runs_undefined: str = ""
    """Why z_runs and p_runs are None; empty otherwise."""
    q_a: float | None
    """Win rate of the first: mean over tasks of the share of pairs of samples that it wins; None for scores between 0 and 1."""
    q_b: float | None
    """Win rate of the second."""
    wins: int | None
    """One sample per task: tasks that only the first passed."""
    losses: int | None
    """Tasks that only the second passed."""
    p_sign: float | None
    """Exact two-sided sign test of the two counts; covers new tasks (population)."""
    sign_undefined: str = ""
    """Why p_sign is None; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllPairs:
    """Every pair of M models, a before b, as columns of P = M (M-1)/2 numbers. NaN: undefined; `pair` says why."""

    a: Ints
    """Row of the first model."""
    b: Ints
    """Row of the second, which is subtracted."""
    n_tasks: Ints
    n_twice: Ints
    score_a: Floats
    score_b: Floats
    mean: Floats
    total: Floats
    data: Floats
    prediction: Floats
    of_mean: Floats
    of_runs: Floats
    q_a: Floats
    q_b: Floats
    wins: Ints
    """-1 where there is more than one sample per task."""
    losses: Ints
    z: Floats
    p_value: Floats
    z_runs: Floats
    p_runs: Floats
    p_sign: Floats

    def __len__(self) -> int:
        return int(self.a.size)

    @property
    def same(self) -> Bools:
        """Whether both have the same score in every task, so that they may be the same samples twice."""
        found: Bools = _same(self.total, self.mean, self.of_mean)
        return found

    def taken(self, at: Ints) -> AllPairs:
        """The pairs of these places, in this order."""
        return AllPairs(**{field.name: getattr(self, field.name)[at] for field in fields(self)})

    def se(self, variance: Floats) -> Floats:
        """sqrt(variance / N) of one of the columns, as `Noise.se`; NaN where it is undefined or, by chance, below 0."""
        known = variance >= 0
        return np.sqrt(np.where(known, variance, np.nan) / np.maximum(self.n_tasks, 1))

    def holm(self, p_values: Floats | None = None) -> Floats:
        """The p-values, those of the paired t (`p_value`) when None, adjusted over all pairs that have one; NaN elsewhere."""
        return self.adjusted(p_values, Adjustment.HOLM)

    def benjamini_hochberg(self, p_values: Floats | None = None) -> Floats:
        """The same by Benjamini and Hochberg."""
        return self.adjusted(p_values, Adjustment.BENJAMINI_HOCHBERG)

    def adjusted(self, p_values: Floats | None, method: Adjustment | str) -> Floats:
        """The same by either."""
        p = self.p_value if p_values is None else p_values
        known = ~np.isnan(p)
        result = np.full(p.shape, np.nan)
        result[known] = adjusted_array(p[known], method=method)
        return result

    def pair(self, index: int) -> PairNoise:
        """One pair with None and a reason for what is undefined."""
        column = {field.name: getattr(self, field.name)[index] for field in fields(self)}
        number = {name: None if np.isnan(value) else float(value) for name, value in column.items()}
        n, twice = int(column["n_tasks"]), int(column["n_twice"])
        one_each = int(column["wins"]) >= 0
        return PairNoise(
            n_tasks=n,
            n_twice=twice,
            **{name: number[name] for name in _NUMBERS},
            wins=int(column["wins"]) if one_each else None,
            losses=int(column["losses"]) if one_each else None,
            undefined=_few(n) if number["total"] is None else "",
            parts_undefined=_why_no_parts(n, twice) if number["data"] is None else "",
            z_undefined=(_few(n) or ALL_EQUAL) if number["z"] is None else "",
            runs_undefined=_why_no_runs(n, number["of_runs"]) if number["z_runs"] is None else "",
            sign_undefined=(NONE_DISCORDANT if one_each else NO_SIGN_TEST) if number["p_sign"] is None else "",
            note=_note(n, twice, number, same=bool(_same(column["total"], column["mean"], column["of_mean"]))),
        )


_NUMBERS = (
    "mean", "total", "data", "prediction", "of_mean", "of_runs", "score_a", "score_b", "z", "p_value", "z_runs", "p_runs",
    "q_a", "q_b", "p_sign",
)  # fmt: skip


def _few(n: int) -> str:
    return NO_TASK if n == 0 else ONE_TASK if n == 1 else ""


def _why_no_parts(n: int, twice: int) -> str:
    return _few(n) or (ONE_SAMPLE if twice == 0 else "one task with two samples says nothing about other tasks")


def _why_no_runs(n: int, of_runs: float | None) -> str:
    return (NO_TASK if n == 0 else ONE_SAMPLE) if of_runs is None else NOTHING_VARIED


def _same(total: Any, mean: Any, of_mean: Any) -> Any:
    return ~np.isnan(total) & (mean == 0) & (of_mean == 0)


def _note(n: int, twice: int, number: dict[str, float | None], *, same: bool) -> str:
    partly = f"data and prediction noise stand on the {twice} of {n} tasks that both have twice" if 0 < twice < n else ""
    single = single_samples(n, twice) if number["of_runs"] is not None else ""
    # Of a copy the correction for K leaves less than 0, and not by chance.
    below = BELOW_ZERO if number["data"] is not None and number["data"] < 0 and not same else ""
    return "; ".join(text for text in (SAME_SAMPLES if same else "", partly, single, below) if text)


def single_samples(n_tasks: int, n_twice: int) -> str:
    """How many tasks have one sample, and what stands in for their variance; empty when none has."""
    if n_tasks == n_twice:
        return ""
    return (
        f"{n_tasks - n_twice} of {n_tasks} tasks have one sample in a model: its mean variance over new runs stands in for theirs"
    )


def against_itself(single: Noise) -> Noise:
    """The difference of two independent runs of one model, by its single noise: its own tasks cancel, so data noise is 0.

    total = prediction = 2 w. The same samples must not stand on both sides: their difference is 0 and the K correction, which is
    for independent samples, would give a data variance of -2w/K. Source: Wang, section 3.
    """
    twice = None if single.prediction is None else 2 * single.prediction
    per_run = None if single.of_runs is None else 2 * single.of_runs
    return Noise(
        n_tasks=single.n_tasks,
        n_twice=single.n_twice,
        mean=0.0 if single.n_tasks else None,
        total=twice,
        data=None if twice is None else 0.0,
        prediction=twice,
        of_mean=per_run,
        of_runs=per_run,
        undefined=single.parts_undefined,
        parts_undefined=single.parts_undefined,
        note="by the model's own noise, without a second set of samples",
    )


def predicted_se(noise: Noise, *, n_tasks: int, samples: float | None = None) -> float | None:
    """SE of the mean on `n_tasks` new tasks with `samples` samples each: sqrt((data + prediction/K) / N); the total when None.

    None where the parts are undefined, and for other K than 1 where the data variance came out below 0: it is too small to be seen,
    not 0, and as 0 more samples would seem to bring the SE down without end. At K = 1 and the same N it is the total SE.
    """
    parts = (np.nan if part is None else part for part in (noise.total, noise.data, noise.prediction))
    total, data, prediction = (np.array([part]) for part in parts)
    found = float(predicted_ses(total, data, prediction, n_tasks=np.array([n_tasks]), samples=samples)[0])
    return None if np.isnan(found) else found


def predicted_ses(total: Floats, data: Floats, prediction: Floats, *, n_tasks: Ints, samples: float | None = None) -> Floats:
    """The same of many, from their variances and numbers of tasks, all of shape (P,); NaN where it is undefined."""
    if np.any(n_tasks < 1) or (samples is not None and samples < 1):
        raise ValueError(f"a plan has at least one task and one sample, not {n_tasks.min()} and {samples}")
    if samples is None or samples == 1:
        return np.sqrt(total / n_tasks)
    return np.sqrt((np.where(data < 0, np.nan, data) + prediction / samples) / n_tasks)
