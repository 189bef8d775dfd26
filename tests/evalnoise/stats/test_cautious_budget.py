"""The cautious budget, the minimum detectable effect, and which budget is recommended."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm

from evalnoise.stats.intervals import w_gaffke, w_gaffke_limit, w_population
from evalnoise.stats.planning.budget import CAUTIOUS_LEVEL, budget_for, detectable, formula_power, rerun_budget, run_plan, z_sum
from evalnoise.stats.variance import within_task_variance


def plan(passes, runs, delta=0.02, seed=3):
    found = within_task_variance(passes, runs)
    varied = None if found.undefined else found.variable_tasks
    budget = budget_for(
        w_population(passes, runs, seed=seed, resamples=2000), n_tasks=max(1, found.n_tasks), delta=delta, variable_tasks=varied
    )
    return run_plan(budget, w_gaffke_limit(passes, runs, seed=seed, level=CAUTIOUS_LEVEL), variable_tasks=varied)


class TestLimit:
    def test_one_sided_limit_is_the_upper_end_of_a_two_sided_interval_of_twice_the_error(self, published):
        counts = published("primary", "HumanEval+", "live batch 2")
        limit = w_gaffke_limit(*counts, seed=5, level=0.9)
        assert limit.hi == w_gaffke(*counts, seed=5, level=0.8).hi
        assert (limit.lo, limit.level, limit.covers, limit.seed) == (0.0, 0.9, "population", 5)
        assert "one-sided" in limit.note
        assert "conjecture" in limit.note

    def test_nothing_varied(self):
        """With every s2 at 0 the weighted mean is the pseudo-task's weight, Beta(1, N), times the largest s2."""
        limit = w_gaffke_limit(np.zeros(164, int), np.full(164, 20), seed=1, resamples=200_000)
        largest = 100 / (20 * 19)
        assert limit.hi == pytest.approx(largest * beta(1, 164).ppf(0.9), rel=0.02)

    def test_held_to_what_w_can_be(self):
        limit = w_gaffke_limit(np.ones(9, int), np.full(9, 2), seed=1, resamples=200)
        assert (limit.value, limit.hi) == (0.5, 0.25)

    def test_undefined(self):
        limit = w_gaffke_limit([1], [1], seed=1)
        assert (limit.value, limit.hi) == (None, None)
        assert "2 runs" in limit.undefined

    def test_level(self):
        with pytest.raises(ValueError, match="confidence level"):
            w_gaffke_limit([1], [2], seed=1, level=1.0)


class TestPlan:
    def test_large_pilot_plans_with_w(self, published):
        found = plan(*published("primary", "HumanEval+", "live batch 2"))
        assert (found.budget.runs, found.recommended, found.cautious) == (8, 8, False)
        assert found.runs_cautious == rerun_budget(found.w_cautious, found.w_cautious, 164, 0.02) > 8
        assert "20 runs and 34 variable tasks" in found.why
        assert "paper's" in found.why

    def test_few_runs(self, published):
        passes, _ = published("primary", "HumanEval+", "live batch 2")
        rng = np.random.default_rng(0)
        three = rng.binomial(3, passes / 20)
        found = plan(three, np.full(164, 3))
        assert found.cautious
        assert found.recommended == found.runs_cautious > found.budget.runs
        assert "cautious" in found.why

    def test_few_variable_tasks(self, published):
        found = plan(*published("second", "MBPP+", "temperature 0"))
        assert found.cautious
        assert "3 variable tasks" in found.why
        assert (found.budget.runs, found.recommended) == (1, 2)

    def test_nothing_varied_has_no_smallest_effect(self, published):
        found = plan(*published("primary", "HumanEval+", "replay"))
        assert (found.budget.runs, found.mde, found.mde_one) == (1, None, None)
        assert found.cautious

    def test_undefined(self):
        found = plan([1, 0], [1, 1])
        assert (found.recommended, found.runs_cautious, found.mde, found.cautious) == (None, None, None, False)
        assert "no budget" in found.why

    def test_a_pilot_of_three_runs_misses_its_power_a_third_of_the_time_and_the_cautious_budget_seldom(self):
        """Notes, section 1: from R = 3 the point budget misses 80 % power 35 % of the time."""
        rng = np.random.default_rng(11)
        missed = careful = 0
        pilots = 150
        for _ in range(pilots):
            rates = rng.beta(0.3, 0.2, 164)
            true = float(np.mean(rates * (1 - rates)))
            passes, runs = rng.binomial(3, rates), np.full(164, 3)
            w = within_task_variance(passes, runs).w
            limit = w_gaffke_limit(passes, runs, seed=1, resamples=500).hi
            missed += rerun_budget(w, w, 164, 0.02) < rerun_budget(true, true, 164, 0.02)
            careful += rerun_budget(limit, limit, 164, 0.02) < rerun_budget(true, true, 164, 0.02)
        assert 0.3 < missed / pilots < 0.6
        assert careful / pilots < 0.1


class TestDetectable:
    def test_by_hand(self, figures):
        assert detectable(0.03, 0.03, 164, 8) == pytest.approx(figures["z_sum"] * math.sqrt(0.06 / (164 * 8)), abs=1e-10)
        assert detectable(0.03, 0.01, 164, 5, runs_b=2) == pytest.approx(
            figures["z_sum"] * math.sqrt((0.03 / 5 + 0.01 / 2) / 164), abs=1e-10
        )
        assert detectable(0, 0, 164, 8) == 0

    @settings(deadline=None)
    @given(st.floats(1e-4, 0.25), st.integers(1, 3000), st.integers(1, 500))
    def test_inverse_of_the_budget(self, w, n, runs):
        effect = detectable(w, w, n, runs)
        if effect <= 1:
            assert rerun_budget(w, w, n, effect) == runs

    @pytest.mark.parametrize(("delta", "w", "runs"), [(0.02, 0.03, 8), (0.05, 0.2, 3)])
    def test_power_of_the_formula(self, delta, w, runs):
        se = math.sqrt(2 * w / (164 * runs))
        assert formula_power(w, w, 164, delta, runs) == pytest.approx(norm.cdf(delta / se - norm.ppf(0.975)), abs=1e-12)

    def test_power_at_the_detectable_effect_is_the_power_asked_for(self):
        effect = detectable(0.03, 0.01, 164, 4, runs_b=9, alpha=0.1, power=0.9)
        assert formula_power(0.03, 0.01, 164, effect, 4, runs_b=9, alpha=0.1) == pytest.approx(0.9, abs=1e-12)
        assert formula_power(0, 0, 164, 0.1, 1) == 1.0

    def test_mistakes(self):
        with pytest.raises(ValueError, match="at least 1 run"):
            detectable(0.1, 0.1, 5, 0)
        with pytest.raises(ValueError, match="w_b is a variance"):
            formula_power(0.1, 0.7, 5, 0.1, 3)


def test_sum_of_quantiles():
    assert z_sum(0.05, 0.8) == pytest.approx(norm.ppf(0.975) + norm.ppf(0.8), abs=1e-12)
