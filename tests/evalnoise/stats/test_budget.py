"""Rerun budgets: the smallest number of runs, at exact boundaries too, and refusals in words."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalnoise.stats.estimate import Estimate
from evalnoise.stats.planning.budget import budget_for, rerun_budget, z_sum

W = st.floats(0, 0.5)
SMALL = st.floats(1e-3, 1)


def test_normal_quantiles(figures):
    assert z_sum(0.05, 0.8) == pytest.approx(figures["z_sum"], abs=5e-11)
    assert z_sum(1e-30, 0.8) > 11, "a small alpha keeps its digits"


@settings(deadline=None)
@given(st.tuples(W, W), st.integers(1, 100_000), SMALL, st.floats(0.001, 0.4), st.floats(0.5, 0.99))
def test_it_is_the_smallest(arms, n, delta, alpha, power):
    w_a, w_b = arms
    runs = rerun_budget(w_a, w_b, n, delta, alpha=alpha, power=power)

    def detectable(r):
        return z_sum(alpha, power) * ((w_a + w_b) / (n * r)) ** 0.5

    assert runs >= 1
    assert delta >= detectable(runs) * (1 - 1e-9)
    if runs > 1:
        assert delta < detectable(runs - 1) * (1 + 1e-9)


@settings(deadline=None)
@given(st.floats(1e-6, 0.25), st.integers(1, 5000), st.integers(1, 2000))
def test_a_difference_that_r_runs_just_resolve_needs_r_runs(w, n, runs):
    delta = z_sum(0.05, 0.8) * (2 * w / (n * runs)) ** 0.5
    if delta <= 1:
        assert rerun_budget(w, w, n, delta) == runs


def test_arms_may_differ():
    assert rerun_budget(0.06026, 0.0, 164, 0.02) == rerun_budget(0.03013, 0.03013, 164, 0.02) == 8


def test_zero_variance_needs_one_run():
    assert rerun_budget(0, 0, 164, 0.02) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"w_a": -0.1}, "w_a is a variance"),
        ({"w_b": 0.51}, "w_b is a variance"),
        ({"w_a": float("nan")}, "w_a is a variance"),
        ({"n_tasks": 0}, "at least 1 task"),
        ({"delta": 0.0}, "delta is a difference"),
        ({"delta": 2.0}, "delta is a difference"),
        ({"delta": float("nan")}, "delta is a difference"),
        ({"delta": 1e-200}, "too small to plan for"),
        ({"alpha": 0.0}, "alpha lies between 0 and 1"),
        ({"alpha": 1.0}, "alpha lies between 0 and 1"),
        ({"power": 1.0}, "power lies between"),
        ({"power": 0.02}, "power lies between"),
    ],
)
def test_impossible_values(arguments, message):
    with pytest.raises(ValueError, match=message):
        rerun_budget(**{"w_a": 0.03, "w_b": 0.03, "n_tasks": 164, "delta": 0.02, **arguments})


@pytest.fixture
def pilot():
    return Estimate(
        value=0.0235, lo=0.0136, hi=0.0341, level=0.95, method="percentile task bootstrap", covers="population",
        n_tasks=164, n_replicates=20, seed=7, resamples=20_000,
    )  # fmt: skip


def test_interval_is_the_budget_at_the_ends_of_w(pilot):
    found = budget_for(pilot, n_tasks=164, delta=0.02, variable_tasks=19)
    assert (found.runs, found.runs_lo, found.runs_hi) == (6, 4, 9)
    assert (found.w, found.level, found.method, found.seed, found.resamples) == (
        0.0235,
        0.95,
        "percentile task bootstrap",
        7,
        20_000,
    )
    assert (found.covers, found.note, found.undefined) == ("benchmark", "", "")


def test_small_pilots_are_named(pilot):
    assert "small pilot" in budget_for(pilot, n_tasks=164, delta=0.02, variable_tasks=9).note
    assert "small pilot" in budget_for(dataclasses.replace(pilot, n_replicates=9), n_tasks=164, delta=0.02).note


def test_one_run_is_no_proof(pilot):
    nothing = dataclasses.replace(pilot, value=0.0, lo=0.0, hi=0.0)
    found = budget_for(nothing, n_tasks=164, delta=0.02)
    assert (found.runs, found.runs_lo, found.runs_hi) == (1, 1, 1)
    assert "does not prove that nothing can" in found.note


def test_undefined_w_has_no_budget():
    missing = Estimate(value=None, n_tasks=0, n_replicates=0, undefined="no task was measured twice: a variance needs 2 runs")
    found = budget_for(missing, n_tasks=164, delta=0.02)
    assert (found.runs, found.runs_lo, found.runs_hi, found.w, found.covers) == (None, None, None, None, "")
    assert found.undefined == missing.undefined


def test_w_without_an_interval_has_a_point_budget(pilot):
    lone = dataclasses.replace(pilot, lo=None, hi=None, level=None, undefined="one task says nothing about other tasks")
    found = budget_for(lone, n_tasks=164, delta=0.02)
    assert (found.runs, found.runs_lo, found.runs_hi, found.method) == (6, None, None, "exact")
