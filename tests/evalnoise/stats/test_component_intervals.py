"""Intervals of components: limits that are known exactly, a bootstrap by enumeration, and where each is refused."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.stats import chi2, f

from evalnoise.stats.estimate import PROVES_NOTHING, Covers, Method
from evalnoise.stats.intervals import w_gaffke
from evalnoise.stats.limits import none_varied_population
from evalnoise.stats.nested.components import DEPTH, Level, components
from evalnoise.stats.nested.draws import drawn_components
from evalnoise.stats.nested.intervals import (
    bootstrap_intervals,
    difference_limits,
    gaffke_intervals,
    mls_intervals,
    none_varied_limit,
)
from evalnoise.stats.nested.sums import from_array, from_counts


def flipped(seed, n, k, g, flip=0.1):
    generator = np.random.default_rng(seed)
    right = generator.random((n, k)) < generator.choice([0.05, 0.5, 0.95], n)[:, None]
    return (right[:, :, None] ^ (generator.random((n, k, g)) < flip)).astype(int)


@pytest.mark.parametrize("mask", [False, True], ids=["balanced", "unbalanced"])
def test_the_bootstrap_is_that_of_tasks_with_all_their_grades(mask):
    """Each of the 35 sets that four tasks can be resampled to, as a design of its own: no draw is anything else."""
    y = flipped(1, 4, 3, 3, flip=0.3) + np.arange(4)[:, None, None] % 2
    present = np.ones_like(y, dtype=bool)
    if mask:
        present[0, 2], present[1, 1, 2], present[3, 0, 1:] = False, False, False
    rows, weights = [], []
    for chosen in combinations_with_replacement(range(4), 4):
        found, data = resampled(y, present, chosen)
        # The sum of squares between tasks is taken times n/(n-1).
        shift = found.squares.task * found.squares.df[0] / (4 - 1) / _size(data)
        rows.append((found.task.raw + shift, found.generation.raw, found.grader.raw))
        weights.append(24 // math.prod(math.factorial(chosen.count(i)) for i in range(4)))
    data = from_array(y, present)
    draws = np.column_stack(drawn_components(data, components(data), seed=3, resamples=3000))
    assert np.abs(draws[:, None, :] - np.array(rows)).max(axis=2).min(axis=1).max() < 1e-12
    got = bootstrap_intervals(data, seed=3, resamples=3000)
    for level, values in zip(Level, np.repeat(rows, weights, axis=0).T, strict=False):
        assert draws[:, DEPTH[level]].mean() == pytest.approx(values.mean(), abs=0.05 * np.ptp(values))
        estimate = got[level]
        assert (estimate.lo, estimate.hi) == pytest.approx(np.quantile(draws[:, DEPTH[level]], [0.025, 0.975]))
        assert (estimate.covers, estimate.seed, estimate.resamples, estimate.n_tasks) == (Covers.POPULATION, 3, 3000, 4)
        assert "covers less often" in estimate.note


def resampled(y, present, chosen):
    data = from_array(y[list(chosen)], present[list(chosen)])
    return components(data), data


@pytest.mark.parametrize("mask", [False, True], ids=["balanced", "unbalanced"])
def test_clusters_are_resampled_whole(mask):
    """Three clusters of five tasks can be resampled to ten sets."""
    y = flipped(1, 5, 3, 3, flip=0.3)
    present, clusters = np.ones_like(y, dtype=bool), np.array(["x", "y", "x", "z", "y"])
    if mask:
        present[0, 2], present[1, 1, 2], present[3, 0, 1:] = False, False, False
    data = from_array(y, present)
    weights, means = data.grades, data.sums / data.grades
    away = weights * (means - weights @ means / weights.sum())
    whole = away @ (away / weights)
    lost = whole / (whole - sum(away[clusters == name].sum() ** 2 for name in "xyz") / weights.sum())
    rows = []
    for names in combinations_with_replacement("xyz", 3):
        found, drawn = resampled(y, present, [task for name in names for task in np.flatnonzero(clusters == name)])
        shift = found.squares.task * found.squares.df[0] * (lost - 1) / _size(drawn)
        rows.append((found.task.raw + shift, found.generation.raw, found.grader.raw))
    labels = np.unique(clusters, return_inverse=True)[1]
    draws = np.column_stack(drawn_components(data, components(data), seed=3, resamples=300, clusters=labels))
    assert np.abs(draws[:, None, :] - np.array(rows)).max(axis=2).min(axis=1).max() < 1e-12
    got = bootstrap_intervals(data, seed=3, resamples=300, clusters=clusters)[Level.GRADER]
    assert (got.method, got.value) == (Method.CLUSTER_BOOTSTRAP, components(data).grader.raw)
    assert "only 3 clusters, the largest of 2 tasks" in got.note
    one = bootstrap_intervals(data, seed=3, resamples=300, clusters=np.zeros(5))[Level.GRADER]
    assert (one.lo, one.undefined) == (None, "an interval over clusters needs 2 of them")


def test_a_task_that_is_there_twice_says_nothing_new_in_its_cluster():
    y = flipped(4, 40, 3, 3)
    single, twice = from_array(y), from_array(np.repeat(y, 2, axis=0))
    plain = bootstrap_intervals(single, seed=1, resamples=300)
    paired = bootstrap_intervals(twice, seed=1, resamples=300, clusters=np.arange(80) // 2)
    alone = bootstrap_intervals(single, seed=1, resamples=300, clusters=np.arange(40))
    for level in (Level.GENERATION, Level.GRADER):
        assert (paired[level].lo, paired[level].hi) == pytest.approx((plain[level].lo, plain[level].hi), abs=1e-15)
    for level, estimate in plain.items():
        assert (alone[level].lo, alone[level].hi) == pytest.approx((estimate.lo, estimate.hi), abs=1e-15)


def test_what_is_the_same_in_every_task_has_a_width_of_exactly_0():
    """Outputs of 0, 0 and 0 and of 0, 0 and 1 passes of 3 differ in both sums of squares, and both have a generation of 0."""
    y = np.zeros((40, 3, 3), dtype=int)
    y[::3, 0, 0] = 1
    data = from_array(y)
    got = bootstrap_intervals(data, seed=1, resamples=300)[Level.GENERATION]
    assert (got.value, got.lo, got.hi) == (0.0, 0.0, 0.0)
    assert got.note.startswith(PROVES_NOTHING)
    uneven = from_counts([2, 4, 6, 8], [2, 4, 6, 8])
    assert all((one.lo, one.hi) == (0.0, 0.0) for one in bootstrap_intervals(uneven, seed=1, resamples=300).values())


def _size(data):
    grades = data.grades
    return grades.sum() - (grades**2).sum() / grades.sum()


def test_the_same_seed_gives_the_same_numbers_and_values_are_the_estimates():
    data = from_array(flipped(2, 150, 3, 3))
    first, again = (bootstrap_intervals(data, seed=5, resamples=500) for _ in range(2))
    assert first == again
    assert first != bootstrap_intervals(data, seed=6, resamples=500)
    found = components(data)
    assert {of: estimate.value for of, estimate in first.items()} == {part.of: part.raw for part in found.parts}
    assert all(estimate.lo < estimate.value < estimate.hi and not estimate.note for estimate in first.values())


def test_few_varying_tasks_and_no_variation_are_said():
    y = np.zeros((40, 2, 2), dtype=int)
    y[:20], y[3, 0, 1] = 1, 0
    got = bootstrap_intervals(from_array(y), seed=1, resamples=200)
    assert "it rests on hardly more than one task" in got[Level.GRADER].note
    y[3, 0, 1] = 1
    got = bootstrap_intervals(from_array(y), seed=1, resamples=200)
    assert got[Level.GRADER].note.startswith(PROVES_NOTHING)
    assert (got[Level.GRADER].lo, got[Level.GRADER].hi) == (0.0, 0.0)
    one = bootstrap_intervals(from_array(y[:1]), seed=1, resamples=200)
    assert all(estimate.lo is None and "one task" in estimate.undefined for estimate in one.values())


def test_resamples_without_repeats_are_no_numbers():
    """Only one task of twelve has two generations: a third of all resamples miss it."""
    y = np.random.default_rng(1).integers(0, 2, size=(12, 2, 1))
    present = np.ones_like(y, dtype=bool)
    present[1:, 1] = False
    got = bootstrap_intervals(from_array(y, present), seed=1, resamples=400)[Level.GENERATION_GRADER]
    assert got.lo is None
    assert "often have none" in got.undefined


def test_limits_of_a_difference_where_they_are_known():
    """The second mean square 0: chi-square limits. Ratio F: a limit at exactly 0. Source: Ting et al. 1990."""
    lo, hi = difference_limits(2.0, 9, 0.0, 20, alpha=0.025)
    assert (lo, hi) == pytest.approx((2 * 9 / chi2.ppf(0.975, 9), 2 * 9 / chi2.ppf(0.025, 9)))
    upper, lower = f.ppf(0.975, 9, 20), f.ppf(0.025, 9, 20)
    assert difference_limits(3 * upper, 9, 3.0, 20, alpha=0.025)[0] == pytest.approx(0, abs=1e-7)
    assert difference_limits(3 * lower, 9, 3.0, 20, alpha=0.025)[1] == pytest.approx(0, abs=1e-7)


def test_normal_limits_cover_normal_components():
    generator = np.random.default_rng(8)
    inside = dict.fromkeys((Level.TASK, Level.GENERATION, Level.GRADER), 0)
    truth = dict(zip(inside, (1.0, 0.25, 0.5), strict=True))
    for _ in range(200):
        parts = (
            generator.normal(0, 1, (12, 1, 1)),
            generator.normal(0, 0.5, (12, 3, 1)),
            generator.normal(0, 0.5**0.5, (12, 3, 2)),
        )
        for of, estimate in mls_intervals(from_array(sum(parts)), level=0.9).items():
            inside[of] += estimate.lo <= truth[of] <= estimate.hi
            assert estimate.covers == Covers.POPULATION
    assert all(0.84 <= count / 200 <= 0.96 for count in inside.values()), inside


def test_normal_limits_are_refused_where_they_do_not_hold():
    y = flipped(3, 20, 2, 2)
    assert all("pass or fail" in estimate.undefined for estimate in mls_intervals(from_array(y)).values())
    present = np.ones_like(y, dtype=bool)
    present[0, 0, 0] = False
    for estimate in mls_intervals(from_array(y / 4, present)).values():
        assert (estimate.lo, estimate.covers) == (None, Covers.NOTHING)
        assert "unbalanced" in estimate.undefined
    two_level = mls_intervals(from_array(y[:, :1] / 4))
    grader = components(from_array(y[:, :1] / 4)).grader.raw
    assert two_level[Level.GRADER].hi == pytest.approx(grader * 20 / chi2.ppf(0.025, 20))
    assert set(two_level) == {Level.TASK_GENERATION, Level.GRADER}


def test_rare_failures_carry_the_variance_between_tasks():
    """Two tasks of 60 always fail: their variance rests on these two."""
    y = np.ones((60, 4, 1), dtype=int)
    y[[5, 17]] = 0
    assert "it rests on about 2 of 60 tasks: under 15" in bootstrap_intervals(from_array(y), seed=1, resamples=200)[Level.TASK].note


def test_gaffkes_interval_of_generations_knows_how_far_one_task_can_go():
    """Two tasks of fifty have generations that differ, below a grader that errs everywhere; the pseudo-task is at -1/9 and 1/3."""
    y = flipped(5, 50, 4, 3)
    got = gaffke_intervals(from_array(y), seed=4, resamples=2000)[Level.GENERATION]
    values = y.mean(axis=2).var(axis=1, ddof=1) - y.var(axis=2, ddof=1).mean(axis=1) / 3
    weights = np.random.default_rng(2).dirichlet(np.ones(51), size=20_000)
    assert got.value == pytest.approx(values.mean())
    assert got.lo == pytest.approx(np.quantile(weights @ np.append(values, -1 / 9), 0.025), abs=2e-3)
    assert got.hi == pytest.approx(np.quantile(weights @ np.append(values, 1 / 3), 0.975), abs=2e-3)


def test_gaffkes_interval_of_the_lowest_component_is_that_of_w():
    passes, runs = np.array([0, 1, 5, 3, 5, 5]), np.full(6, 5)
    w = w_gaffke(passes, runs, seed=4, resamples=300)
    for one_output, of in ((True, Level.GRADER), (False, Level.GENERATION_GRADER)):
        got = gaffke_intervals(from_counts(passes, runs, one_output=one_output), seed=4, resamples=300)[of]
        assert (got.lo, got.hi, got.value) == pytest.approx((w.lo, w.hi, w.value))
        assert "conjecture" in got.note
    y = flipped(5, 12, 2, 3)
    two = gaffke_intervals(from_array(y), seed=4, resamples=2000)[Level.GRADER]
    grader = y.var(axis=2, ddof=1).mean(axis=1)
    assert two.value == pytest.approx(grader.mean())
    assert two.lo < two.value < two.hi < 1 / 3
    assert gaffke_intervals(from_array(y / 2), seed=4, resamples=100) == {}
    assert gaffke_intervals(from_counts([1, 0], [2, 3]), seed=4, resamples=100) == {}
    assert gaffke_intervals(from_counts([1, 0], [1, 1]), seed=4, resamples=100) == {}


def test_where_no_grade_differed_there_is_an_upper_limit():
    judged = from_counts([20, 0] * 100, [20] * 200, one_output=True)
    limit = none_varied_limit(judged)[Level.GRADER]
    assert (limit.value, limit.lo) == (0.0, 0.0)
    assert limit.hi == pytest.approx(none_varied_population(200, 20, 0.05))
    assert "one-sided" in limit.note
    assert none_varied_limit(from_counts([19, 0], [20, 20], one_output=True)) == {}
    assert none_varied_limit(from_counts([1, 0], [1, 1])) == {}
    runs = none_varied_limit(from_counts([3, 0, 1], [3, 5, 1]))[Level.GENERATION_GRADER]
    assert (runs.hi, runs.n_tasks) == (pytest.approx(none_varied_population(2, 3, 0.05)), 2)
    assert none_varied_limit(from_array(np.full((4, 2, 2), 0.5))) == {}
