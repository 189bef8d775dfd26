"""Budgets of two unlike arms, against trying every pair."""

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evalnoise.stats.intervals import w_gaffke_limit, w_population
from evalnoise.stats.planning.budget import rerun_budget, z_sum
from evalnoise.stats.planning.two_arms import best_ratio, cheapest_pair, pair_pilot, runs_beside

W = st.floats(0, 0.25)


def enough(w, n, delta, runs):
    (w_a, w_b), (a, b) = w, runs
    room = n * (Fraction(delta) / Fraction(z_sum(0.05, 0.8))) ** 2
    return Fraction(w_a) / a + Fraction(w_b) / b <= room * (1 + Fraction(2, 10**12))


def every_pair(w, n, delta, prices, most):
    price_a, price_b = prices
    pairs = [
        (price_a * a + price_b * b, a + b, a, b)
        for a in range(1, most + 1)
        for b in range(1, most + 1)
        if enough(w, n, delta, (a, b))
    ]
    return min(pairs)


@settings(deadline=None, max_examples=60)
@given(st.tuples(W, W), st.integers(20, 300), st.floats(0.03, 0.3), st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_cheapest_pair_is_the_best_of_all(w, n, delta, prices):
    found = cheapest_pair(*w, n, delta, price_a=prices[0], price_b=prices[1])
    most = max(found.runs_a, found.runs_b, math.ceil(found.cost / min(prices)))
    assume(most <= 60)
    best = every_pair(w, n, delta, prices, most)
    assert (found.cost, found.runs_a, found.runs_b) == (best[0], best[2], best[3])


@settings(deadline=None)
@given(W, W, st.integers(1, 2000), st.floats(0.01, 0.5), st.integers(1, 60))
def test_runs_beside_are_the_smallest(w_a, w_b, n, delta, runs_a):
    found = runs_beside(w_a, w_b, n, delta, runs_a)
    if found.runs_b is None:
        assert runs_a < found.least_runs_a
        assert not enough((w_a, w_b * (1 - 1e-9)), n, delta * (1 - 1e-9), (runs_a, 10**12))
        assert "no number of runs of the second arm" in found.undefined
        return
    assert enough((w_a, w_b), n, delta, (runs_a, found.runs_b))
    assert found.runs_b == 1 or not enough((w_a * (1 + 1e-9), w_b * (1 + 1e-9)), n, delta * (1 - 1e-9), (runs_a, found.runs_b - 1))
    assert found.detectable <= delta * (1 + 1e-9)


@settings(deadline=None)
@given(W, st.integers(1, 2000), st.floats(0.01, 0.5))
def test_like_arms_need_the_symmetric_budget(w, n, delta):
    runs = rerun_budget(w, w, n, delta)
    assert runs_beside(w, w, n, delta, runs).runs_b <= runs
    assert cheapest_pair(w, w, n, delta).cost <= 2 * runs


def test_published_arms():
    """Noise Floor, table A1: live batch 2 against temperature 0 on HumanEval+."""
    found = cheapest_pair(0.03013, 0.01329, 164, 0.02)
    assert (found.runs_a, found.runs_b) == (6, 4)
    assert found.ratio == pytest.approx(math.sqrt(0.01329 / 0.03013))
    assert runs_beside(0.03013, 0.01329, 164, 0.02, 8).runs_b == 3
    assert runs_beside(0.03013, 0.01329, 164, 0.02, 3).undefined


def test_price_moves_runs_to_the_cheap_arm():
    found = cheapest_pair(0.03, 0.03, 164, 0.02, price_a=10, price_b=1)
    assert found.runs_b > found.runs_a
    assert found.ratio == pytest.approx(math.sqrt(10))


def test_large_budgets_are_quick_and_near_the_real_optimum():
    found = cheapest_pair(0.2, 0.1, 10, 0.0005, price_a=3, price_b=2)
    room = 10 * (0.0005 / z_sum(0.05, 0.8)) ** 2
    least = (math.sqrt(0.2 * 3) + math.sqrt(0.1 * 2)) ** 2 / room
    assert least <= found.cost <= least + 5


def test_nothing_varied():
    assert (cheapest_pair(0, 0, 164, 0.02).runs_a, cheapest_pair(0, 0.03, 164, 0.02).runs_a) == (1, 1)
    assert best_ratio(0, 0.03, 1, 1) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cheapest_pair(0.1, 0.1, 5, 0.1, price_a=0), "price above 0"),
        (lambda: cheapest_pair(0.1, 0.1, 5, 0.1, price_b=float("nan")), "price above 0"),
        (lambda: cheapest_pair(0.6, 0.1, 5, 0.1), "w_a is a variance"),
        (lambda: cheapest_pair(0.1, 0.1, 5, 1e-200), "too small"),
        (lambda: runs_beside(0.1, 0.1, 5, 0.1, 0), "at least 1 run"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError, match=message):
        call()


class TestPairPilot:
    def test_two_like_arms_are_one(self, published):
        """An arm beside itself has its own w, interval and limit: task by task, both vary alike."""
        counts = published("primary", "HumanEval+", "live batch 2")
        found = pair_pilot(*counts, *counts, seed=3, resamples=1000)
        one, limit = w_population(*counts, seed=3, resamples=1000), w_gaffke_limit(*counts, seed=3, resamples=1000)
        assert found.mean_w.value == one.value == found.w_a == found.w_b
        assert [found.mean_w.lo, found.mean_w.hi] == pytest.approx([one.lo, one.hi], abs=2e-3)
        assert found.limit.hi == pytest.approx(limit.hi, abs=1e-3)
        assert found.variable_tasks == 34

    def test_mean_of_unlike_arms(self):
        found = pair_pilot([1, 0, 2], [2, 2, 2], [1, 3, 1], [4, 4, 1], seed=1, resamples=100)
        assert found.mean_w.n_tasks == 2
        assert found.w_a == 0.25
        assert found.w_b == (3 / 12 + 3 / 12) / 2
        assert found.mean_w.value == (found.w_a + found.w_b) / 2
        assert found.variable_tasks == 2
        assert (found.mean_w.n_replicates, found.mean_w.covers, found.limit.level) == (2, "population", 0.9)

    @pytest.mark.parametrize("n", [0, 1])
    def test_too_few_tasks(self, n):
        found = pair_pilot([1] * n, [2] * n, [1] * n, [2] * n, seed=1, resamples=100)
        assert found.mean_w.lo is None
        assert found.mean_w.undefined
        assert (found.limit.hi is None) == (n == 0)
