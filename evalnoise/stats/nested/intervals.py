"""Intervals for nested variance components over new tasks: task bootstrap, and limits for normal scores in balanced designs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, fdtri

from evalnoise.stats.bootstrap import RESAMPLES, group_labels, percentile_interval
from evalnoise.stats.clusters import ONE_CLUSTER, clusters_note
from evalnoise.stats.estimate import PROVES_NOTHING, Covers, Estimate, Method, alpha_of, joined
from evalnoise.stats.few import few_note
from evalnoise.stats.intervals import GAFFKE_NOTE, ONE_TASK, gaffke_ends
from evalnoise.stats.limits import largest_s2, none_varied_population
from evalnoise.stats.nested.components import DEPTH, Component, Components, Level, MeanSquares, components
from evalnoise.stats.nested.draws import drawn_components, parts_of_tasks, values_of_tasks
from evalnoise.stats.nested.sums import Nested
from evalnoise.stats.variance import Floats

TOO_FEW_REPEATS = "so few tasks have repeats that resampled tasks often have none"
UNBALANCED = "the design is unbalanced: this interval is for balanced ones"
NO_VARIATION = PROVES_NOTHING + "this component is the same in every resample"
ALONE = "takes tasks as independent, but clusters are named: quote the cluster bootstrap's interval"
"""What must be said of the other intervals then."""
NOT_NORMAL = (
    "normal limits do not hold for pass or fail: in simulations such 95 % limits covered 31 to 89 % for generation and grader"
)
ASSUMES_NORMAL = (
    "assumes normal effects of one variance in all tasks; quote the task bootstrap where some tasks vary and others do not"
)
_LOST = 0.01


def bootstrap_intervals(
    data: Nested,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    found: Components | None = None,
    clusters: ArrayLike | None = None,
) -> dict[Level, Estimate]:
    """Each identified component, raw, with the percentile interval of the task bootstrap. Covers new tasks.

    Tasks are resampled with all their grades, jointly for all components, from their exact sums. The sum of squares between
    resampled tasks is taken times n/(n-1), because resampling n tasks loses that factor of it on average; nothing is clipped. The
    interval is too narrow, and its note says so, where few tasks carry the component: see `few_note`.

    Args:
        data: The sums of each task.
        seed: Seed of the resampling.
        resamples: Number of resamples.
        level: Confidence level.
        found: The estimates of `data`, when they were made already.
        clusters: Cluster of each task (n,), of any type that sorts: whole clusters are resampled then. Covers new clusters.
    """
    estimates = components(data) if found is None else found
    method = Method.PERCENTILE if clusters is None else Method.CLUSTER_BOOTSTRAP
    bases = {part.of: _base(estimates, part, method) for part in estimates.parts}
    labels = None if clusters is None else group_labels(clusters, data.n, "clusters")
    refused = ONE_TASK if data.n < 2 else ONE_CLUSTER if labels is not None and labels.max() < 1 else ""
    if refused:
        return {of: base.lacking(refused) for of, base in bases.items()}
    draws = drawn_components(data, estimates, seed=seed, resamples=resamples, clusters=labels)
    parts = parts_of_tasks(data)
    grouped = "" if labels is None else clusters_note(np.bincount(labels))
    made = {}
    for of, base in bases.items():
        one = replace(base, seed=seed, resamples=resamples)
        made[of] = percentile_of(one, draws[DEPTH[of]], few_note(parts[DEPTH[of]]), level=level, note=grouped)
    return made


def _base(found: Components, part: Component, method: Method) -> Estimate:
    repeats = {0: found.n_tasks, 1: found.n_generations[0], 2: int(found.n_grades[0])}[DEPTH[part.of]]
    return Estimate(
        value=part.raw,
        method=method,
        n_tasks=found.n_tasks,
        n_replicates=repeats if DEPTH[part.of] else found.n_generations[0],
        note=part.note,
    )


def percentile_of(base: Estimate, draws: Floats, few: str, *, level: float, note: str = "") -> Estimate:
    """The estimate with the percentiles of its resamples, unless too many of these are no numbers."""
    kept = draws[np.isfinite(draws)]
    if len(kept) < (1 - _LOST) * len(draws):
        return base.lacking(TOO_FEW_REPEATS)
    lo, hi = percentile_interval(kept, level=level)
    said = joined(NO_VARIATION if lo == hi else few, note)
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=said)


def gaffke_intervals(
    data: Nested, *, seed: int, resamples: int = RESAMPLES, level: float = 0.95, found: Components | None = None
) -> dict[Level, Estimate]:
    """Generation and grader of a balanced design of binary scores with Gaffke's interval, as for w; empty for other data.

    Each is a mean over tasks of a number with known ends. Grader: a sample variance, from 0 to the largest of G binary scores.
    Generation: the sample variance of K output means minus grader/G, from minus the largest of G over G, to the largest of K. The
    pseudo-task has these ends. Covers new tasks; to be quoted first where few tasks carry the component.
    """
    estimates = components(data) if found is None else found
    if not data.n or not data.binary or not data.balanced:
        return {}
    k, g = estimates.n_generations[0], int(estimates.n_grades[0])
    generation, grader = values_of_tasks(data, k, g)
    most = largest_s2(g) if g > 1 else 0.0
    made = {}
    for part in estimates.parts:
        base = replace(_base(estimates, part, Method.GAFFKE), seed=seed, resamples=resamples)
        if DEPTH[part.of] == 1:
            made[part.of] = gaffke_mean(base, generation, (-most / g, largest_s2(k)), level=level)
        elif DEPTH[part.of] == 2:
            made[part.of] = gaffke_mean(base, grader, (0.0, most), level=level)
    return made


def gaffke_mean(base: Estimate, values: Floats, ends: tuple[float, float], *, level: float) -> Estimate:
    """The estimate, a mean of values (n,) that lie between two ends, with Gaffke's interval by its own seed and resamples."""
    drawn: dict[str, Any] = {"seed": base.seed, "resamples": base.resamples}
    lo, hi = gaffke_ends(values, ends, **drawn, level=level)
    return base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=GAFFKE_NOTE)


def none_varied_limit(data: Nested, *, level: float = 0.95, found: Components | None = None) -> dict[Level, Estimate]:
    """One-sided upper limit of the lowest component of binary scores where nothing below it varied; empty where something did.

    As for w: (1 - a^(1/n))/(4 (1 - 2^(1-R))), at most 1/4, over the n tasks with repeats, one output of each, R the fewest repeats.
    Covers new tasks; assumes independent repeats, which a cache is not.
    """
    estimates = components(data) if found is None else found
    lowest = next((part for part in reversed(estimates.parts) if DEPTH[part.of] > 0), None)
    repeated = data.grades > data.outputs if data.n_grades > data.n_outputs else data.outputs > 1
    if lowest is None or not data.binary or _square(estimates.squares, lowest.of) != 0:
        return {}
    repeats = -(-data.grades[repeated] // data.outputs[repeated]) if DEPTH[lowest.of] == 2 else data.outputs[repeated]
    alpha = alpha_of(level)
    hi = none_varied_population(int(np.count_nonzero(repeated)), int(repeats.min()), alpha)
    note = f"one-sided: an upper limit at {level:.4g}; assumes independent repeats, which a cache is not"
    base = replace(_base(estimates, lowest, Method.NONE_VARIED), n_tasks=int(np.count_nonzero(repeated)))
    return {lowest.of: base.spanning(0.0, hi, level=level, covers=Covers.POPULATION, note=note)}


# --- limits for normal scores ----------------------------------------------------------------------------------------------


def mls_intervals(data: Nested, *, level: float = 0.95, found: Components | None = None) -> dict[Level, Estimate]:
    """Each identified component of a balanced design, raw, with modified-large-sample limits. Covers new tasks.

    The grader's are the chi-square limits of its mean square; a difference of two mean squares has the limits of Ting, Burdick,
    Graybill, Jeyaratnam and Lu (1990), which are exact where the difference is 0 or its second mean square is. All assume normal
    effects of one variance, so they are refused for binary scores. Source: Burdick and Graybill, Confidence Intervals on
    Variance Components, sections 3.2 and 5.
    """
    estimates = components(data) if found is None else found
    bases = {part.of: _base(estimates, part, Method.MLS) for part in estimates.parts}
    if data.n < 2:
        return {of: base.lacking(ONE_TASK) for of, base in bases.items()}
    if data.binary or not data.balanced:
        return {of: base.lacking(NOT_NORMAL if data.binary else UNBALANCED) for of, base in bases.items()}
    k, g = estimates.n_generations[0], int(estimates.n_grades[0])
    made = {}
    for of, base in bases.items():
        lo, hi = _limits(of, estimates.squares, k, g, alpha_of(level) / 2)
        flat = NO_VARIATION.replace("resample", "task") if lo == hi else ""
        made[of] = base.spanning(lo, hi, level=level, covers=Covers.POPULATION, note=joined(flat, ASSUMES_NORMAL))
    return made


def _square(squares: MeanSquares, of: Level) -> float | None:
    return (squares.task, squares.generation, squares.grader)[DEPTH[of]]


def _limits(of: Level, squares: MeanSquares, k: int, g: int, alpha: float) -> tuple[float, float]:
    """Limits at one-sided error `alpha`, by which mean squares the component is made of."""
    steps = [(value, df) for value, df in zip((squares.task, squares.generation, squares.grader), squares.df, strict=True)]
    sizes = (k * g, g, 1)
    first = DEPTH[of]
    below = next((i for i in range(first + 1, 3) if squares.df[i]), None)
    top, df_top = steps[first]
    assert top is not None
    if below is None:
        return _chi_square(top / sizes[first], df_top, alpha)
    under, df_under = steps[below]
    assert under is not None
    lo, hi = difference_limits(top, df_top, under, df_under, alpha=alpha)
    return lo / sizes[first], hi / sizes[first]


def _chi_square(square: float, df: int, alpha: float) -> tuple[float, float]:
    return square * df / float(chdtri(df, alpha)), square * df / float(chdtri(df, 1 - alpha))


def difference_limits(first: float, df_first: int, second: float, df_second: int, *, alpha: float) -> tuple[float, float]:
    """Limits of theta_1 - theta_2 from two independent mean squares, each one-sided at error `alpha`.

    With F(a; m, n) the upper a point, F1 = F(alpha; m, n), F2 = F(1-alpha; m, n), n infinite for the G and H:
    L = d - sqrt((G1 S1)^2 + (H2 S2)^2 + G12 S1 S2), G1 = 1 - 1/F(alpha; m), H2 = 1/F(1-alpha; n) - 1,
    G12 = ((F1-1)^2 - (G1 F1)^2 - H2^2)/F1, and U alike. Source: Ting et al. 1990, J. Statist. Comput. Simul. 35, 135-143.
    """
    g1, g2 = (1 - df / float(chdtri(df, alpha)) for df in (df_first, df_second))
    h1, h2 = (df / float(chdtri(df, 1 - alpha)) - 1 for df in (df_first, df_second))
    f1, f2 = float(fdtri(df_first, df_second, 1 - alpha)), float(fdtri(df_first, df_second, alpha))
    g12 = ((f1 - 1) ** 2 - (g1 * f1) ** 2 - h2**2) / f1
    h12 = ((1 - f2) ** 2 - (h1 * f2) ** 2 - g2**2) / f2
    below = (g1 * first) ** 2 + (h2 * second) ** 2 + g12 * first * second
    above = (h1 * first) ** 2 + (g2 * second) ** 2 + h12 * first * second
    middle = first - second
    return middle - float(np.sqrt(max(0.0, below))), middle + float(np.sqrt(max(0.0, above)))
