"""How many grades of one generation are enough: k-selection, dependability, and what a judge that flips does to all components.

Components are given as numbers, untruncated; `question` is the variance between tasks, `model` that between generations of a task
(0 where the design has one generation of each and question holds both), `grader` that between grades of one generation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from evalnoise.stats.planning.design import Variances

MAX_CURVE: Final = 200
"""Longest curve."""
_SHORTEST_CURVE: Final = 12
_ROUNDING: Final = 1e-12
"""Relative room for rounding: a variance that k grades exactly suffice for must not ask for k + 1."""
NO_SIGNAL = "no variance between tasks is left, so no number of grades makes the grader small beside it"
NOTHING_VARIES = "nothing varies, so there is nothing to depend on"
TOO_NOISY = "grader is 1/4 or more: the verdicts look like a coin's, and 1 - 2f is 0"
NEGATIVE = "grader is negative: no flip probability gives that"
NOT_BINARY = "scores are not pass or fail: flips are about verdicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """What k grades of each generation give."""

    k: int
    """Grades of each generation."""
    score_se: float
    """Standard error of the mean score over new tasks: sqrt((question + model/m + grader/(m k))/n), clipped components."""
    dependability: float | None
    """Phi(k); None where nothing varies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KSelection:
    """The smallest number of grades beyond which more hardly help, with the curve behind it."""

    k: int | None
    """Smallest k with grader/(m k) <= tol question; 1 if the grader is 0; None if the question's variance is 0 or less."""
    tol: float
    """How small the grader's term must be beside the question's."""
    completions: int
    """Generations m of each task."""
    curve: tuple[CurvePoint, ...]
    """Points for k = 1, 2, …; at most `MAX_CURVE`, whatever k is."""
    sentence: str
    """The rule and its result in words."""
    undefined: str
    """Why k is None; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """The smallest number of grades that reaches a dependability."""

    k: int | None
    """Smallest k with Phi(k) >= target; None when none does."""
    target: float
    """Dependability asked for."""
    reached: float | None
    """Phi(k); None when there is no k."""
    undefined: str
    """Why k is None; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipCompression:
    """Components as they would be without flips, if the judge flips every verdict at random with one probability below 1/2."""

    flip: float | None
    """f = (1 - sqrt(1 - 4 grader))/2, the root below 1/2 of f (1-f) = grader."""
    scale: float | None
    """1 - 2f: what is left of every real difference of scores."""
    task: float | None
    """task/(1-2f)^2; None also where task is not identified."""
    generation: float | None
    """generation/(1-2f)^2; None also where generation is not identified."""
    score: float | None
    """(score - f)/(1 - 2f); it may leave [0, 1]."""
    undefined: str
    """Why the flip is None; empty otherwise."""
    note: str = (
        "if the judge flips at random: every verdict with the same probability, below 1/2, in both directions, independently; "
        "a judge that errs the same way each time shows no such variance, and nothing of this corrects that"
    )
    """The assumption."""


def k_selection(
    question: float, grader: float, *, n_tasks: int, model: float = 0.0, completions: int = 1, tol: float = 0.05
) -> KSelection:
    """Smallest number k of grades of each generation with grader/(m k) <= tol question.

    The rule is Miller's for repeated answers, carried over to grades. Source: Grader Variance, "Variance decomposition and the
    stopping rule".

    Args:
        question: Variance between tasks, raw.
        grader: Variance between grades of a generation, raw; a negative one counts as 0.
        n_tasks: Tasks, for the curve's standard errors.
        model: Variance between generations of a task, raw; 0 where question holds it.
        completions: Generations m of each task.
        tol: How small the grader's term must be beside the question's.
    """
    if not tol > 0 or n_tasks < 1 or completions < 1:
        raise ValueError(f"tol is above 0, n_tasks and completions at least 1, not {tol!r}, {n_tasks!r} and {completions!r}")
    q, m, g = (max(0.0, value) for value in (question, model, grader))
    chosen = 1 if g == 0 else (None if q == 0 else _smallest(g / (completions * tol * q)))
    last = min(MAX_CURVE, max(_SHORTEST_CURVE, chosen or 1))
    parts = Variances(task=q, generation=m, grader=g)
    curve = tuple(
        CurvePoint(k=k, score_se=math.sqrt(parts.of_mean(n_tasks, completions, k)), dependability=_phi(q + m, g, k))
        for k in range(1, last + 1)
    )
    return KSelection(
        k=chosen,
        tol=tol,
        completions=completions,
        curve=curve,
        sentence=_stopping_rule(question, grader, completions, tol, chosen),
        undefined=NO_SIGNAL if chosen is None else "",
    )


def _smallest(needed: float) -> int:
    return max(1, math.ceil(needed * (1 - _ROUNDING)))


def _stopping_rule(question: float, grader: float, completions: int, tol: float, k: int | None) -> str:
    each = f"{completions} generation{'' if completions == 1 else 's'} of each task"
    rule = f"More grades stop helping once grader/(m k) is at most {tol:g} of the variance between tasks"
    facts = f"grader {grader:.6g}, between tasks {question:.6g}, {each}"
    if k is None:
        return f"{rule}. With {facts}: {NO_SIGNAL}."
    if grader <= 0:
        seen = "came out as 0; that is no proof that it is" if grader == 0 else "is not above 0; more data may say otherwise"
        return f"{rule}. With {facts}: one grade, because the grader's variance {seen}."
    return f"{rule}. With {facts}: {k} grade{'' if k == 1 else 's'} of each generation."


def dependability(question: float, model: float, grader: float, *, k: int) -> float | None:
    """Phi(k) = (q + m)/(q + m + g/k): how much of the variance of a generation's mean grade is not the grader's.

    Components are clipped at 0; None when nothing varies. Source: Grader Variance, "Dependability"; Shavelson and Webb 1991.
    """
    if k < 1:
        raise ValueError(f"k is at least 1, not {k!r}")
    return _phi(max(0.0, question) + max(0.0, model), max(0.0, grader), k)


def _phi(between: float, grader: float, k: int) -> float | None:
    whole = between + grader / k
    return between / whole if whole > 0 else None


def repeats_needed(question: float, model: float, grader: float, *, target: float = 0.9) -> Repeats:
    """Smallest k with Phi(k) >= target: g t/((q + m)(1 - t)), rounded up."""
    if not 0 < target < 1:
        raise ValueError(f"a dependability to reach lies between 0 and 1, not {target!r}")
    between, g = max(0.0, question) + max(0.0, model), max(0.0, grader)
    if between == 0:
        return Repeats(k=None, target=target, reached=None, undefined=NO_SIGNAL if g > 0 else NOTHING_VARIES)
    k = _smallest(g * target / (between * (1 - target)))
    return Repeats(k=k, target=target, reached=_phi(between, g, k), undefined="")


def flip_compression(
    *, grader: float, task: float | None, generation: float | None, score: float | None, binary: bool
) -> FlipCompression:
    """What flips do to a score and its components: real differences shrink by 1 - 2f, their variances by its square.

    f is read off the grader component, because a verdict that is flipped with probability f has variance f (1-f) whatever the right
    verdict is. f and 1 - f fit alike; f < 1/2 is taken, because a judge that is wrong more often than right would turn every
    difference round. (1 - 2f)^2 = 1 - 4 grader. Source: Two Sources of Eval Noise, "Estimating the components".
    """
    reason = NOT_BINARY if not binary else (NEGATIVE if grader < 0 else (TOO_NOISY if grader >= 1 / 4 else ""))
    if reason:
        return FlipCompression(flip=None, scale=None, task=None, generation=None, score=None, undefined=reason)
    scale = math.sqrt(1 - 4 * grader)
    # The smaller root without cancellation: (1 - s)/2 = 2 grader/(1 + s).
    flip = 2 * grader / (1 + scale)
    kept = 1 - 4 * grader
    return FlipCompression(
        flip=flip,
        scale=scale,
        task=None if task is None else task / kept,
        generation=None if generation is None else generation / kept,
        score=None if score is None else (score - flip) / scale,
        undefined="",
    )
