"""Variance bound of w's estimate and the limits when nothing varied: solved right, and conservative."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from evalnoise.stats.limits import (
    groups,
    largest_s2,
    mean_variance_bound,
    none_varied_benchmark,
    none_varied_population,
    variance_bound,
)

RUNS = st.lists(st.integers(2, 12), min_size=1, max_size=6)


def exact_variance_of_s2(p, runs):
    """By summing over all pass counts."""
    k = np.arange(runs + 1)
    weights = np.array([comb(runs, int(x)) for x in k]) * p**k * (1 - p) ** (runs - k)
    s2 = k * (runs - k) / (runs * (runs - 1))
    mean = (weights * s2).sum()
    assert mean == pytest.approx(p * (1 - p), abs=1e-12)
    return (weights * s2**2).sum() - mean**2


@settings(deadline=None)
@given(RUNS, st.data())
def test_no_set_of_rates_has_a_larger_variance(runs, data):
    rates = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(runs), max_size=len(runs))))
    w = float(np.mean(rates * (1 - rates)))
    actual = sum(exact_variance_of_s2(p, r) for p, r in zip(rates, runs, strict=True)) / len(runs) ** 2
    assert variance_bound(w, *groups(np.array(runs))) >= actual - 1e-10


@settings(deadline=None)
@given(st.integers(2, 40), st.floats(0, 0.25), st.integers(1, 300))
def test_equal_rates_reach_it_at_equal_runs(runs, w, tasks):
    p = (1 - (1 - 4 * w) ** 0.5) / 2
    bound = variance_bound(w, np.array([runs]), np.array([tasks]))
    assert bound == pytest.approx(exact_variance_of_s2(p, runs) / tasks, abs=1e-10)


@pytest.mark.parametrize(("runs", "w"), [((2, 3, 30), 0.02), ((2, 2, 4, 9), 0.2), ((5, 40), 0.1)])
def test_some_rates_reach_it_at_unequal_runs(runs, w):
    """The largest that a numerical search over the tasks' p (1-p) finds."""
    r = np.array(runs, dtype=float)
    bend = (4 * r - 6) / (r * (r - 1))
    found = minimize(
        lambda v: -float(np.sum(v / r - v * v * bend)),
        np.full(len(r), w),
        bounds=[(0, 0.25)] * len(r),
        constraints={"type": "eq", "fun": lambda v: v.mean() - w},
        options={"ftol": 1e-14},
    )
    assert found.success
    assert variance_bound(w, *groups(np.array(runs))) == pytest.approx(-found.fun / len(r) ** 2, rel=1e-6)


@settings(deadline=None, max_examples=40)
@given(RUNS, st.data(), st.sampled_from([0.01, 0.05, 0.1]))
def test_no_set_of_rates_beyond_the_limit_stays_silent(runs, data, alpha):
    """Any rates with a mean p(1-p) above the limit are all unanimous with probability under alpha."""
    limit = none_varied_benchmark(*groups(np.array(runs)), alpha)
    if limit is None:
        assert 2.0 ** -sum(r - 1 for r in runs) >= alpha * (1 - 1e-12)
        return
    rates = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(runs), max_size=len(runs))))
    silent = np.prod([p**r + (1 - p) ** r for p, r in zip(rates, runs, strict=True)])
    if np.mean(rates * (1 - rates)) > limit + 1e-9:
        assert silent < alpha + 1e-9


def test_the_limit_solves_its_equation():
    limit = none_varied_benchmark(np.array([20]), np.array([164]), 0.05)
    p = (1 - (1 - 4 * limit) ** 0.5) / 2
    assert (p**20 + (1 - p) ** 20) ** 164 == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize(("tasks", "runs"), [(5, 2), (40, 2), (3, 3), (9, 3)])
def test_closed_forms_of_the_limit(tasks, runs):
    """p^2 + q^2 = 1 - 2v and p^3 + q^3 = 1 - 3v."""
    expected = (1 - 0.05 ** (1 / tasks)) / runs
    assert none_varied_benchmark(np.array([runs]), np.array([tasks]), 0.05) == pytest.approx(expected, rel=1e-9)


def test_closed_form_of_the_limit_at_unequal_runs():
    """Four tasks with two runs and six with three: equal slopes 2/(1-2v) = 3/(1-3v) = s, and both logs add up to log 0.05."""
    s = np.exp((4 * np.log(2) + 6 * np.log(3) - np.log(0.05)) / 10)
    expected = (4 * (1 - 2 / s) / 2 + 6 * (1 - 3 / s) / 3) / 10
    assert none_varied_benchmark(np.array([2, 3]), np.array([4, 6]), 0.05) == pytest.approx(expected, rel=1e-9)


def test_one_task_with_fewer_runs_moves_the_limit_a_little():
    even = none_varied_benchmark(np.array([20]), np.array([164]), 0.05)
    uneven = none_varied_benchmark(np.array([2, 20]), np.array([1, 163]), 0.05)
    assert even < uneven < 2.5 * even, "the task with two runs may hide all of its variance, the others may not"


@pytest.mark.parametrize(("tasks", "runs", "defined"), [(1, 5, False), (4, 2, False), (1, 6, True), (5, 2, True), (2, 3, False)])
def test_too_few_runs_to_bound_w(tasks, runs, defined):
    """N (R-1) <= 4 leaves no solution at alpha 0.05."""
    assert (none_varied_benchmark(np.array([runs]), np.array([tasks]), 0.05) is not None) is defined


def test_population_limit_is_at_most_a_quarter():
    assert none_varied_population(1, 20, 0.05) == pytest.approx(0.95 / 4, rel=1e-5)
    assert none_varied_population(1, 2, 0.05) == 0.25
    assert none_varied_population(50, 2, 0.05) == pytest.approx((1 - 0.05**0.02) / 2)


@pytest.mark.parametrize(("runs", "largest"), [(2, 0.5), (3, 1 / 3), (4, 1 / 3), (20, 100 / 380)])
def test_largest_sample_variance(runs, largest):
    assert largest_s2(runs) == pytest.approx(largest)
    assert largest_s2(runs) == pytest.approx(max(np.var([1] * k + [0] * (runs - k), ddof=1) for k in range(runs + 1)))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1)), min_size=1, max_size=12))
def test_no_values_with_that_mean_have_a_larger_variance(tasks):
    runs, values = np.array([n for n, _ in tasks]), np.array([t for _, t in tasks])
    sizes, counts = groups(runs)
    actual = float(np.sum(values * (1 - values) / runs)) / len(runs) ** 2
    assert mean_variance_bound(float(values.mean()), 1 / sizes, counts) >= actual - 1e-12


@settings(deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.floats(0, 1), st.floats(0, 1))
def test_the_bound_of_a_mean_is_concave_and_known_at_equal_runs(runs, a, b):
    sizes, counts = groups(np.array(runs))

    def bound(m):
        return mean_variance_bound(m, 3 / sizes, counts)

    assert bound((a + b) / 2) >= (bound(a) + bound(b)) / 2 - 1e-12
    assert (bound(0.0), bound(1.0)) == (0, 0)
    n = len(runs)
    assert mean_variance_bound(a, np.array([0.3]), np.array([n])) == pytest.approx(0.3 * a * (1 - a) / n, abs=1e-15)
