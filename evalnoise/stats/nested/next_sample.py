"""Where the next sample should go: more tasks, more generations of each, or more grades of each generation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from evalnoise.stats.estimate import Covers
from evalnoise.stats.planning.design import Prices, Variances

GRADER_MATTERS: Final = 0.1
"""From this share of one grade's variance on, a grader that is noisier than the generations is to be mended first."""
NOTHING_VARIES = "nothing varied, so no sample is known to be better than another"


class Step(StrEnum):
    """What to do next."""

    FIX_GRADER = "fix the grader"
    TASKS = "tasks"
    GENERATIONS = "generations"
    GRADES = "grades"
    NONE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What a bit more of one thing buys, at the design that was measured."""

    step: Step
    """What there would be more of."""
    removes: float
    """The part of the mean's variance that more of it can remove: all for tasks, generation and grader terms for generations."""
    per_price: float | None
    """Fall of the variance of the mean per unit of price, at the margin; None where its price is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One sentence, with the numbers behind it."""

    step: Step
    """What to do next."""
    then: Step
    """What buys most after that, or instead of it: of tasks, generations and grades."""
    sentence: str
    """The advice in words."""
    variance: float
    """Variance of the mean of the design, from the clipped components."""
    gains: tuple[Gain, ...]
    """Tasks, generations and grades."""
    prices: Prices
    """What things were taken to cost."""
    covers: str
    """The target: the mean over new tasks."""
    undefined: str
    """Why there is no advice; empty otherwise."""


def next_sample(
    parts: Variances, prices: Prices, *, n_tasks: int, generations: float, grades: float, without: Collection[Step | str] = ()
) -> Advice:
    """What lowers the variance V = (task + generation/K + grader/(K G))/n of the mean most per unit of price.

    A new task costs p_t + K (p_g + G p_r), one more generation of every task n (p_g + G p_r), one more grade of every generation
    n K p_r. At the margin these lower V by V/n, (generation/K + grader/(K G))/(n K) and grader/(K G)/(n G), so per unit of price by

    ```
    tasks        V / (n (p_t + K (p_g + G p_r)))
    generations  (generation/K + grader/(K G)) / (n^2 K (p_g + G p_r))
    grades       grader/(K G) / (n^2 G K p_r)
    ```

    With p_t = 0 tasks always buy at least as much as generations. Before all that: a grader that is noisier than the generations
    and makes up a tenth of one grade's variance is to be mended, because it also shrinks the differences that are looked for.
    Source: Two Sources of Eval Noise, "Where the next sample should go".

    Args:
        parts: Components, clipped.
        prices: What a generation, a grade and a new task cost.
        n_tasks: Tasks of the design.
        generations: Generations K of each task.
        grades: Grades G of each generation.
        without: Steps that cannot be taken, as when there are no more tasks, or of which nothing is known, as of grades where each
            generation has one. A component that is confounded with another stands in the place of the upper one.
    """
    barred = {Step(step) for step in without}
    n, k, g = n_tasks, generations, grades
    if min(n, k, g) < 1 or min(prices.generation, prices.grade, prices.task) < 0:
        raise ValueError("a design has at least 1 task, generation and grade, and no price is below 0")
    inner, finest = parts.generation / k + parts.grader / (k * g), parts.grader / (k * g)
    variance = (parts.task + inner) / n
    one = prices.generation + g * prices.grade
    gains = (
        _gain(Step.TASKS, variance, variance / n, prices.task + k * one),
        _gain(Step.GENERATIONS, inner / n, inner / (n * k), n * one),
        _gain(Step.GRADES, finest / n, finest / (n * g), n * k * prices.grade),
    )
    shared: dict[str, Any] = {"variance": variance, "gains": gains, "prices": prices, "covers": Covers.POPULATION}
    open_to_us = [gain for gain in gains if gain.step not in barred]
    if variance == 0 or not any(gain.removes for gain in open_to_us):
        between = "tasks and generations" if Step.GENERATIONS in barred else "tasks"
        reason = NOTHING_VARIES if variance == 0 else f"all of the variance is between {between}: only more of them lower it"
        return Advice(step=Step.NONE, then=Step.NONE, sentence=f"No advice: {reason}.", undefined=reason, **shared)
    best = max(open_to_us, key=lambda gain: (gain.removes > 0, _rank(gain))).step
    apart = Step.GENERATIONS not in barred and Step.GRADES not in barred
    step = Step.FIX_GRADER if apart and _grader_first(parts) else best
    said = _sentence(step, best, parts, _numbers(variance, gains, barred))
    return Advice(step=step, then=best, sentence=said, undefined="", **shared)


def _gain(step: Step, removes: float, slope: float, price: float) -> Gain:
    return Gain(step=step, removes=removes, per_price=slope / price if price > 0 else None)


def _rank(gain: Gain) -> float:
    return float("inf") if gain.per_price is None else gain.per_price


def _grader_first(parts: Variances) -> bool:
    whole = parts.task + parts.generation + parts.grader
    return parts.grader > parts.generation and parts.grader >= GRADER_MATTERS * whole


def _numbers(variance: float, gains: tuple[Gain, ...], without: Collection[Step]) -> str:
    tasks, generations, grades = gains
    terms = (tasks.removes - generations.removes, generations.removes - grades.removes, grades.removes)
    # A level that cannot be judged has its variance in the one above.
    frozen, single = Step.GENERATIONS in without, Step.GRADES in without
    names = (
        "between tasks and generations" if frozen else "between tasks",
        "generation+grader" if single else "generation",
        "grader",
    )
    known = (True, not frozen, not single)
    shares = ", ".join(
        f"{100 * term / variance:.0f} % {name}" for term, name, shown in zip(terms, names, known, strict=True) if shown
    )
    bought = ", ".join(f"{gain.step} {_shown(gain)}" for gain in gains if gain.step not in without)
    return f"of the mean's variance {shares}; one unit of price lowers it by: {bought}"


def _sentence(step: Step, best: Step, parts: Variances, numbers: str) -> str:
    if step is Step.FIX_GRADER:
        return (
            f"Fix the grader first (a tighter rubric, evidence before the verdict, a program in its place): its variance "
            f"{parts.grader:.4g} is above that of generations, {parts.generation:.4g}; more grades are a fallback. After that, or "
            f"instead: more {best} ({numbers})."
        )
    return f"The next sample should go to {best}: {numbers}."


def _shown(gain: Gain) -> str:
    return "free" if gain.per_price is None else f"{gain.per_price:.3g}"
