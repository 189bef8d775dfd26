"""Intervals of components: limits that are known exactly, a bootstrap by enumeration, and where each is refused."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2, f

from evalnoise.stats.estimate import PROVES_NOTHING, Covers
from evalnoise.stats.intervals import w_gaffke
from evalnoise.stats.limits import none_varied_population
from evalnoise.stats.nested.components import Level, components
from evalnoise.stats.nested.intervals import (
    bootstrap_intervals,
    difference_limits,
    gaffke_interval,
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
    """All 4^4 resamples of four tasks, each as a design of its own, against 20,000 drawn ones."""
    y = flipped(1, 4, 3, 3, flip=0.3) + np.arange(4)[:, None, None] % 2
    present = np.ones_like(y, dtype=bool)
    if mask:
        present[0, 2], present[1, 1, 2], present[3, 0, 1:] = False, False, False
    whole = {"task": [], "generation": [], "grader": []}
    for chosen in product(range(4), repeat=4):
        found = components(from_array(y[list(chosen)], present[list(chosen)]))
        inner = found.generation.raw, found.grader.raw
        # The sum of squares between tasks is taken times n/(n-1).
        data = from_array(y[list(chosen)], present[list(chosen)])
        shift = found.squares.task * found.squares.df[0] / (4 - 1) / _size(data)
        for name, value in zip(whole, (found.task.raw + shift, *inner), strict=True):
            whole[name].append(value)
    got = bootstrap_intervals(from_array(y, present), seed=3, resamples=20_000)
    for name, values in whole.items():
        estimate = got[Level(name)]
        lo, hi = np.quantile(values, [0.025, 0.975], method="inverted_cdf")
        spread = np.ptp(values)
        assert estimate.lo == pytest.approx(lo, abs=0.03 * spread)
        assert estimate.hi == pytest.approx(hi, abs=0.03 * spread)
        assert (estimate.covers, estimate.seed, estimate.resamples, estimate.n_tasks) == (Covers.POPULATION, 3, 20_000, 4)
        assert "covers less often" in estimate.note


def _size(data):
    grades = data.grades
    return grades.sum() - (grades**2).sum() / grades.sum()


def test_the_same_seed_gives_the_same_numbers_and_values_are_the_estimates():
    data = from_array(flipped(2, 60, 3, 3))
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
    assert "it varies in 1 task only" in got[Level.GRADER].note
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
    for _ in range(400):
        parts = (
            generator.normal(0, 1, (12, 1, 1)),
            generator.normal(0, 0.5, (12, 3, 1)),
            generator.normal(0, 0.5**0.5, (12, 3, 2)),
        )
        for of, estimate in mls_intervals(from_array(sum(parts)), level=0.9).items():
            inside[of] += estimate.lo <= truth[of] <= estimate.hi
            assert estimate.covers == Covers.POPULATION
    assert all(0.86 <= count / 400 <= 0.94 for count in inside.values()), inside


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


def test_gaffkes_interval_of_the_lowest_component_is_that_of_w():
    passes, runs = np.array([0, 1, 5, 3, 5, 5]), np.full(6, 5)
    w = w_gaffke(passes, runs, seed=4, resamples=300)
    for one_output, of in ((True, Level.GRADER), (False, Level.GENERATION_GRADER)):
        got = gaffke_interval(from_counts(passes, runs, one_output=one_output), seed=4, resamples=300)[of]
        assert (got.lo, got.hi, got.value) == pytest.approx((w.lo, w.hi, w.value))
        assert "conjecture" in got.note
    y = flipped(5, 12, 2, 3)
    two = gaffke_interval(from_array(y), seed=4, resamples=2000)[Level.GRADER]
    grader = y.var(axis=2, ddof=1).mean(axis=1)
    assert two.value == pytest.approx(grader.mean())
    assert two.lo < two.value < two.hi < 1 / 3
    assert gaffke_interval(from_array(y / 2), seed=4, resamples=100) == {}
    assert gaffke_interval(from_counts([1, 0], [2, 3]), seed=4, resamples=100) == {}
    assert gaffke_interval(from_counts([1, 0], [1, 1]), seed=4, resamples=100) == {}


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
