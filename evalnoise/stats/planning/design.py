"""Designs of n tasks, K generations of each and G grades of each generation: half widths, and the cheapest one that suffices.

The mean score has variance (task + generation/K + grader/(K G)) / n. Source: Two Sources of Eval Noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from evalnoise.stats.estimate import Covers, alpha_of
from evalnoise.stats.planning.budget import z_sum

_ROOM = 1e-12
"""Relative room for rounding: a half width that a design just reaches must not ask for another task."""
_MOST = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Variances:
    """Variance components of one score, or of the difference of two arms on the same tasks."""

    task: float
    """Between tasks: of the true means, or of the true differences."""
    generation: float
    """Between generations of one task; of a difference: the sum of both arms'."""
    grader: float
    """Between grades of one generation; of a difference: the sum of both arms'."""

    def of_mean(self, n_tasks: int, generations: int, grades: int) -> float:
        """Variance of the mean: (task + generation/K + grader/(K G)) / n."""
        return (self.task + self.generation / generations + self.grader / (generations * grades)) / n_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What things cost, in any one unit."""

    generation: float
    """One generation."""
    grade: float = 0.0
    """One grade."""
    task: float = 0.0
    """A new task, once."""

    def of_design(self, n_tasks: int, generations: int, grades: int) -> float:
        """Cost of a design: n (task + K (generation + G grade))."""
        return n_tasks * (self.task + generations * (self.generation + grades * self.grade))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The most that there may be of each; None: as many as it takes."""

    tasks: int | None = None
    """Tasks."""
    generations: int | None = None
    """Generations of a task."""
    grades: int | None = None
    """Grades of a generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A design and its half width."""

    n_tasks: int
    """Tasks n."""
    generations: int
    """Generations K of each task."""
    grades: int
    """Grades G of each generation."""
    half_width: float
    """z sqrt(variance of the mean)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The cheapest design, or why there is none."""

    n_tasks: int | None
    """Tasks n; None: no design suffices."""
    generations: int | None
    """Generations K of each task."""
    grades: int | None
    """Grades G of each generation."""
    cost: float | None
    """What it costs, in the unit of the prices."""
    variance: float | None
    """Variance of its mean."""
    half_width: float | None
    """Its half width, or for an effect the smallest one that it detects."""
    target: float
    """What was asked for: a half width, or an effect."""
    tried: int
    """Pairs (K, G) whose cheapest n was computed; all others cost more, by a bound."""
    covers: str
    """New tasks from the same source."""
    undefined: str
    """Why there is none; empty otherwise."""


def half_width(components: Variances, n_tasks: int, generations: int, grades: int, *, level: float = 0.95) -> float:
    """Half width of the normal interval of a mean score, z sqrt((task + generation/K + grader/(K G)) / n). Covers new tasks."""
    _check(components)
    if min(n_tasks, generations, grades) < 1:
        raise ValueError(f"a design has at least 1 task, generation and grade, not {min(n_tasks, generations, grades)!r}")
    return _quantile(level) * math.sqrt(components.of_mean(n_tasks, generations, grades))


def floor(components: Variances, n_tasks: int, *, level: float = 0.95) -> float:
    """The half width that no number of generations and grades of the same tasks gets below: z sqrt(task/n)."""
    return half_width(Variances(task=components.task, generation=0.0, grader=0.0), n_tasks, 1, 1, level=level)


def table(
    components: Variances, tasks: Sequence[int], generations: Sequence[int], grades: Sequence[int], *, level: float = 0.95
) -> tuple[Cell, ...]:
    """Half widths of every combination, by n, then K, then G."""
    return tuple(
        Cell(n_tasks=n, generations=k, grades=g, half_width=half_width(components, n, k, g, level=level))
        for n in tasks
        for k in generations
        for g in grades
    )


def cheapest_for_half_width(
    components: Variances, prices: Prices, target: float, *, level: float = 0.95, bounds: Bounds | None = None
) -> Design:
    """The cheapest (n, K, G) whose half width is at most `target`; exact, see `cheapest`."""
    return cheapest(components, prices, target, quantile=_quantile(level), bounds=bounds)


def cheapest_for_effect(
    components: Variances,
    prices: Prices,
    effect: float,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    arms: int = 2,
    bounds: Bounds | None = None,
) -> Design:
    """The cheapest (n, K, G) in each arm that detects `effect` = (z_(1-alpha/2) + z_power) sqrt(variance) on the same tasks.

    `components` are those of the difference by task; a generation and a grade are paid in each of `arms` arms, a new task once.
    """
    both = Prices(generation=prices.generation * arms, grade=prices.grade * arms, task=prices.task)
    return cheapest(components, both, effect, quantile=z_sum(alpha, power), bounds=bounds)


def cheapest(components: Variances, prices: Prices, target: float, *, quantile: float, bounds: Bounds | None = None) -> Design:
    """The cheapest (n, K, G) with quantile sqrt(variance of the mean) <= target.

    Exact. For given K and G the smallest n is ceil((task + generation/K + grader/(K G)) quantile^2 / target^2). A design that costs
    no more than the best one known has n >= max(1, task quantile^2 / target^2), which bounds K; so does that a K which lets the
    fewest tasks of all suffice need not be larger. For each K the cost with real n is convex in G, and at most the best only
    between the roots of a quadratic. All pairs within are tried. Of equal costs the one
    with fewer tasks counts, then fewer generations.

    Args:
        components: Variance components, none below 0.
        prices: Prices, none below 0.
        target: Half width or effect, above 0.
        quantile: Standard errors that the target is long.
        bounds: The most that there may be of each.
    """
    _check(components)
    limit = bounds or Bounds()
    _check_prices(components, prices, limit)
    if not (target > 0 and math.isfinite(target)):
        raise ValueError(f"the target is a difference of scores above 0, not {target!r}")
    search = _Search(components, prices, limit, (target / quantile) ** 2 * (1 + _ROOM))
    best = search.start()
    if best is None:
        return _none(target, search.reason(quantile))
    tried = 0
    for k in search.generations(best):
        for g in search.grades(k, best):
            tried += 1
            best = min(best, search.at(k, g) or best)
    cost, n, k, g = best
    variance = components.of_mean(n, k, g)
    return Design(
        n_tasks=n,
        generations=k,
        grades=g,
        cost=cost,
        variance=variance,
        half_width=quantile * math.sqrt(variance),
        target=target,
        tried=tried,
        covers=Covers.POPULATION,
        undefined="",
    )


_Found = tuple[float, int, int, int]


@dataclass(frozen=True, slots=True)
class _Search:
    """One search; `variance` is the largest that suffices."""

    v: Variances
    p: Prices
    limit: Bounds
    variance: float

    def at(self, k: int, g: int) -> _Found | None:
        """Cost, n, K and G of the smallest n; None where that is more than there may be."""
        n = max(1, math.ceil(self.v.of_mean(1, k, g) / self.variance))
        return None if self.limit.tasks is not None and n > self.limit.tasks else (self.p.of_design(n, k, g), n, k, g)

    def start(self) -> _Found | None:
        """Some design that suffices: the best of one grade or the most useful, at the fewest generations that can do it."""
        found = (self.at(k, g) for k, g in self._corners())
        return min((one for one in found if one is not None), default=None)

    def _corners(self) -> Iterator[tuple[int, int]]:
        most_k, most_g = self.limit.generations, self.limit.grades
        yield 1, 1
        spare = math.inf if self.limit.tasks is None else self.limit.tasks * self.variance - self.v.task
        if spare > 0:
            k = max(1, math.ceil((self.v.generation + self.v.grader) / spare))
            yield (min(k, most_k or k), 1)
            if most_k is not None:
                left = spare - self.v.generation / most_k
                g = max(1, math.ceil(self.v.grader / (most_k * left))) if left > 0 else 1
                yield (most_k, min(g, most_g or g))
                yield (most_k, min(g + 1, most_g or g + 1))
            yield (min(k + 1, most_k or k + 1), 1)

    def reason(self, quantile: float) -> str:
        """Why there is no design."""
        n = self.limit.tasks or 1
        k, g = self.limit.generations, self.limit.grades
        left = self.v.task
        left += self.v.generation / k if k else 0.0
        left += self.v.grader / (k * g) if k and g else 0.0
        within = "" if k is None else " within the other bounds"
        return f"no design of at most {n} tasks suffices{within}: {quantile * math.sqrt(left / n):.4g} is what they can come to"

    def generations(self, best: _Found) -> Iterator[int]:
        """Every K that could be as cheap as the best known."""
        each = self.p.generation + self.p.grade
        fewest = max(1.0, math.floor(self.v.task / self.variance))
        most = min(math.floor((best[0] * (1 + 1e-9) / fewest - self.p.task) / each) + 1, self._useful())
        if most > _MOST:
            raise ValueError("the target is too small to plan for at these prices: give the most generations that there may be")
        k = np.arange(1, max(1, min(most, self.limit.generations or most)) + 1)
        # The cost with real n and G, at its smallest over G >= 1.
        fixed, moving = (self.v.task + self.v.generation / k) / self.variance, self.v.grader / k / self.variance
        base, step = self.p.task + k * self.p.generation, k * self.p.grade
        g = np.maximum(1.0, np.sqrt(moving * base / np.maximum(fixed * step, 1e-300)))
        g = g if self.limit.grades is None else np.minimum(g, self.limit.grades)
        lowest = np.maximum((fixed + moving / g) * (base + step * g), base + step)
        yield from k[lowest <= best[0] * (1 + 1e-9)].tolist()

    def _useful(self) -> int:
        """The K with which, at one grade, so few tasks suffice as ever can: a larger one costs more and saves none."""
        spare = (math.floor(self.v.task / self.variance) + 1) * self.variance - self.v.task
        return math.ceil(min(1e15, (self.v.generation + self.v.grader) / spare)) + 1

    def grades(self, k: int, best: _Found) -> Iterator[int]:
        """Every G that could be as cheap as the best known, for this K."""
        if self.v.grader == 0:
            yield 1
            return
        cost = best[0] * (1 + 1e-9)
        fixed, moving = (self.v.task + self.v.generation / k) / self.variance, self.v.grader / k / self.variance
        base, step = self.p.task + k * self.p.generation, k * self.p.grade
        most = self.limit.grades or _MOST
        if step > 0:
            # n (base + step G) <= cost with n >= max(1, fixed) and n >= fixed + moving/G.
            most = min(most, math.floor((cost / max(1.0, math.floor(fixed)) - base) / step) + 1)
            b = cost - fixed * base - moving * step
            root = math.sqrt(max(0.0, b * b - 4 * fixed * step * moving * base))
            high = (b + root) / (2 * fixed * step) if fixed > 0 else math.inf
            most = min(most, math.ceil(high) + 1) if math.isfinite(high) else most
        if most > _MOST:
            raise ValueError("the target is too small to plan for at these prices: give the most grades that there may be")
        yield from range(1, max(1, most) + 1)


def _quantile(level: float) -> float:
    return -NormalDist().inv_cdf(alpha_of(level) / 2)


def _check(components: Variances) -> None:
    for name in ("task", "generation", "grader"):
        value = getattr(components, name)
        if not (value >= 0 and math.isfinite(value)):
            raise ValueError(
                f"the {name} component is a variance of at least 0, not {value!r}; a negative estimate is clipped first"
            )


def _check_prices(components: Variances, prices: Prices, bounds: Bounds) -> None:
    for name in ("task", "generation", "grade"):
        value = getattr(prices, name)
        if not (value >= 0 and math.isfinite(value)):
            raise ValueError(f"the price of a {name} is at least 0, not {value!r}")
    for name in ("tasks", "generations", "grades"):
        most = getattr(bounds, name)
        if most is not None and most < 1:
            raise ValueError(f"the most {name} that there may be is at least 1, not {most!r}")
    if prices.generation + prices.grade <= 0:
        raise ValueError("a generation or a grade has a price above 0: else there is no cheapest number of them")
    if prices.grade == 0 and components.grader > 0 and bounds.grades is None:
        raise ValueError("a grade that costs nothing has no cheapest number: give its price, or the most that there may be")


def _none(target: float, reason: str) -> Design:
    return Design(
        n_tasks=None,
        generations=None,
        grades=None,
        cost=None,
        variance=None,
        half_width=None,
        target=target,
        tried=0,
        covers=Covers.NOTHING,
        undefined=reason,
    )
