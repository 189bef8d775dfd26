"""Runs of a pilot whose tasks have not as many: what a plan takes of them."""

from __future__ import annotations

import numpy as np
import pytest

from evalnoise.stats.estimate import Estimate
from evalnoise.stats.gates.aa import aa_mde
from evalnoise.stats.gates.side import counted_side
from evalnoise.stats.planning.budget import budget_for, detectable, run_plan
from evalnoise.stats.planning.pilot import pilot_runs
from evalnoise.stats.planning.power import achieved_power
from evalnoise.stats.variance import within_task_variance

RUNS = np.array([12, 12, 12, 12, 11, 12, 10, 12, 2, 1, 0, 12, 12, 12, 12])
PASSES = np.array([6, 3, 12, 1, 5, 0, 9, 11, 1, 1, 0, 2, 4, 8, 10])


def test_as_many_of_every_task_are_that_many():
    for runs in (2, 3, 7, 20):
        found = pilot_runs((np.array([1, 0, runs // 2, 2]), np.full(4, runs)))
        assert (found.least, found.most, found.median, found.effective) == (runs, runs, runs, float(runs))
        assert found.words == f"{runs} runs"


def test_the_variance_of_a_score_is_that_of_so_many_runs():
    found = pilot_runs((PASSES, RUNS))
    assert (found.least, found.most, found.median, found.words) == (2, 12, 12, "2 to 12 runs")
    k, n = PASSES[RUNS >= 2], RUNS[RUNS >= 2]
    s2 = k * (n - k) / (n * (n - 1))
    assert found.effective == pytest.approx(s2.sum() / (s2 / n).sum(), rel=1e-14)


def test_two_arms_count_together():
    one, other = (PASSES, RUNS), (RUNS // 2, np.where(RUNS > 2, 4, RUNS))
    other = (np.minimum(other[0], other[1]), other[1])
    found = pilot_runs(one, other)
    at = (RUNS >= 2) & (other[1] >= 2)
    s2 = [k[at] * (n[at] - k[at]) / (n[at] * (n[at] - 1)) for k, n in (one, other)]
    expected = sum(map(np.sum, s2)) / sum(np.sum(v / n[at]) for v, (_, n) in zip(s2, (one, other), strict=True))
    assert found.effective == pytest.approx(expected, rel=1e-14)
    with pytest.raises(ValueError, match="one row per task"):
        pilot_runs(one, (PASSES[1:], RUNS[1:]))


def test_nothing_measured_twice_and_nothing_that_varied():
    assert pilot_runs((np.array([1]), np.array([1]))).effective is None
    assert pilot_runs((np.array([3]), np.array([3]))).effective is None


def test_one_task_with_two_runs_makes_no_pilot_of_two_runs():
    found = within_task_variance(PASSES, RUNS)
    w = Estimate(value=found.w, n_tasks=found.n_tasks, n_replicates=found.n_replicates)
    made = {"variable_tasks": found.variable_tasks, "pilot": pilot_runs((PASSES, RUNS))}
    budget = budget_for(w, n_tasks=found.n_tasks, delta=0.05, **made)
    plan = run_plan(budget, w, **made)
    assert "small pilot" not in budget.note
    assert (plan.cautious, plan.recommended) == (False, budget.runs)
    assert "the pilot had 2 to 12 runs of a task (12 in the median)" in plan.why
    assert plan.mde == pytest.approx(aa_mde(counted_side(PASSES, RUNS)).detectable, rel=1e-12)
    assert plan.mde < 0.6 * detectable(found.w, found.w, found.n_tasks, 2)


def test_a_power_says_the_fewest_and_the_most_runs():
    (one,) = achieved_power(PASSES, RUNS, delta=0.1, runs_a=RUNS, tests=("cmh",), simulations=20, seed=1)
    assert (one.runs_a, one.most_runs_a, one.runs_b, one.most_runs_b) == (2, 12, 2, 12)
