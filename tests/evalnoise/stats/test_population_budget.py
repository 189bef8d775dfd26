"""Between-task variance of true differences, and the budget for new tasks."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalnoise.stats.planning.budget import rerun_budget, z_sum
from evalnoise.stats.planning.population import between_task_variance, population_budget, runs_for_new_tasks
from evalnoise.stats.variance import within_task_variance

FAST = {"seed": 1, "resamples": 200}


def binomial(runs, p):
    return [math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(runs + 1)]


def test_unbiased_by_enumeration():
    """The mean over every possible outcome of three tasks is the variance of their true differences (ddof 1)."""
    a, b = [Fraction(1, 2), Fraction(1, 4), Fraction(1)], [Fraction(1, 4), Fraction(1, 4), Fraction(1, 3)]
    runs_a, runs_b = [2, 3, 2], [2, 2, 2]
    differences = [x - y for x, y in zip(a, b, strict=True)]
    mean = sum(differences) / 3
    truth = sum((d - mean) ** 2 for d in differences) / 2
    expected = 0.0
    spaces = [range(r + 1) for r in (*runs_a, *runs_b)]
    chances = [binomial(r, p) for r, p in zip((*runs_a, *runs_b), (*a, *b), strict=True)]
    for outcome in product(*spaces):
        chance = math.prod(float(chances[i][k]) for i, k in enumerate(outcome))
        if chance:
            found = between_task_variance(outcome[:3], runs_a, outcome[3:], runs_b, seed=1, resamples=1)
            expected += chance * found.value
    assert expected == pytest.approx(float(truth), abs=1e-12)


def plain(ka, na, kb, nb):
    """The same formula in floating point."""
    d = ka / na - kb / nb
    noise = ka * (na - ka) / (na**2 * (na - 1)) + kb * (nb - kb) / (nb**2 * (nb - 1))
    return d.var(ddof=1) - noise.mean()


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 40), st.integers(0, 2**31))
def test_exact_sums_are_the_plain_formula(n, seed):
    rng = np.random.default_rng(seed)
    na, nb = rng.integers(2, 12, n), rng.integers(2, 12, n)
    ka, kb = rng.binomial(na, 0.6), rng.binomial(nb, 0.5)
    found = between_task_variance(ka, na, kb, nb, **FAST)
    assert found.value == pytest.approx(plain(ka, na, kb, nb), abs=1e-12)
    assert found.covers == "population"
    assert found.value == between_task_variance(kb, nb, ka, na, **FAST).value, "the order of the arms does not matter"


def test_negative_estimates_stay():
    """Differences that are less spread than their own noise."""
    found = between_task_variance([1] * 6, [2] * 6, [1] * 6, [2] * 6, **FAST)
    assert found.value == -0.5
    assert "proves nothing" in found.note
    budget = population_budget([1] * 6, [2] * 6, [1] * 6, [2] * 6, delta=0.5, **FAST)
    assert budget.between_clipped == 0
    assert budget.runs == rerun_budget(0.5, 0.5, 6, 0.5)
    assert "stands in" in budget.note


def arms(rng, n, runs, spread):
    a = rng.beta(2, 2, n)
    b = np.clip(a + rng.choice([-spread, spread], n), 0, 1)
    full = np.full(n, runs)
    return rng.binomial(runs, a), full, rng.binomial(runs, b), full


def test_bootstrap_interval_holds_the_truth():
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(100):
        a, b = rng.beta(2, 2, 200), rng.beta(2, 2, 200)
        full = np.full(200, 5)
        found = between_task_variance(rng.binomial(5, a), full, rng.binomial(5, b), full, seed=1, resamples=400)
        covered += found.lo <= 2 * 0.05 <= found.hi
    assert covered >= 88


def test_no_number_of_reruns_suffices():
    counts = arms(np.random.default_rng(1), 100, 50, 0.3)
    found = population_budget(*counts, delta=0.02, **FAST)
    z = z_sum(0.05, 0.8)
    assert found.runs is None
    assert found.covers == "population"
    assert "no number of reruns suffices" in found.undefined
    assert found.smallest_delta == pytest.approx(z * math.sqrt(found.between.value / 100))
    # The tasks that it takes, and not one less.
    w = found.w_a + found.w_b
    sd2 = found.between.value
    assert runs_for_new_tasks(sd2, w, found.tasks_needed, 0.02, z=z) is not None
    assert runs_for_new_tasks(sd2, w, found.tasks_needed - 1, 0.02, z=z) is None
    assert runs_for_new_tasks(sd2, w, found.tasks_at_runs, 0.02, z=z) <= 50
    assert (runs_for_new_tasks(sd2, w, found.tasks_at_runs - 1, 0.02, z=z) or 51) > 50
    assert str(found.tasks_needed) in found.undefined


def test_at_the_very_boundary_none_suffices():
    z = z_sum(0.05, 0.8)
    assert runs_for_new_tasks(100 * (0.1 / z) ** 2, 0.1, 100, 0.1, z=z) is None
    assert runs_for_new_tasks(99.9 * (0.1 / z) ** 2, 0.1, 100, 0.1, z=z) > 700


@settings(deadline=None)
@given(st.floats(0, 0.05), st.floats(0.001, 0.5), st.integers(10, 500), st.floats(0.01, 0.5))
def test_it_is_the_smallest(sd2, w, n, delta):
    z = z_sum(0.05, 0.8)
    runs = runs_for_new_tasks(sd2, w, n, delta, z=z)
    if runs is None:
        assert n * delta**2 <= z * z * sd2 * (1 + 1e-9)
        return
    assert delta >= z * math.sqrt((sd2 + w / runs) / n) * (1 - 1e-9)
    assert runs == 1 or delta < z * math.sqrt((sd2 + w / (runs - 1)) / n) * (1 + 1e-9)


def test_without_differences_between_tasks_it_is_the_paper_s_budget():
    assert runs_for_new_tasks(0.0, 2 * 0.03013, 164, 0.02, z=z_sum(0.05, 0.8)) == 8


def test_uncertainty_of_the_between_task_variance_is_told():
    counts = arms(np.random.default_rng(1), 60, 20, 0.2)
    found = population_budget(*counts, delta=0.08, **FAST)
    assert found.between.lo < found.between.value < found.between.hi
    assert found.runs is not None
    assert found.runs_lo <= found.runs
    assert found.runs_hi is None
    assert "at the upper end" in found.note


def test_w_is_that_of_the_common_tasks():
    ka, na = np.array([1, 2, 5, 3]), np.array([4, 4, 5, 6])
    kb, nb = np.array([2, 1, 5, 1]), np.array([4, 1, 5, 6])
    found = population_budget(ka, na, kb, nb, delta=0.9, **FAST)
    assert found.n_tasks == 3
    assert found.w_a == within_task_variance(ka[[0, 2, 3]], na[[0, 2, 3]]).w
    assert found.n_replicates == 4


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_tasks(n):
    found = population_budget([1] * n, [2] * n, [1] * n, [2] * n, delta=0.1, **FAST)
    assert (found.runs, found.between.value, found.covers) == (None, None, "")
    assert found.undefined


def test_arms_must_match():
    with pytest.raises(ValueError, match="one row per task"):
        between_task_variance([1], [2], [1, 1], [2, 2], **FAST)


def test_same_seed_same_bytes():
    counts = arms(np.random.default_rng(2), 30, 6, 0.2)
    assert between_task_variance(*counts, **FAST) == between_task_variance(*counts, **FAST)
