"""The claim about new tasks: a loss in tasks that are too rare to be among those measured is no pass."""

import math

import numpy as np
import pytest

from evalnoise.stats.bootstrap import dirichlet_task_means
from evalnoise.stats.estimate import Covers
from evalnoise.stats.gates.claims import RARE_LOSSES, population_test
from evalnoise.stats.gates.gate import Decision, GateRule, gate
from evalnoise.stats.gates.side import counted_side, side_of

RULE = GateRule(claim=Covers.POPULATION, margin=0.02)


def sides(n, runs=5):
    """Nothing lost: two tasks vary, the others always pass in both arms."""
    new, base = np.full(n, runs), np.full(n, runs)
    new[0] = base[1] = runs - 1
    return counted_side(new, np.full(n, runs)), counted_side(base, np.full(n, runs))


def test_few_tasks_cannot_exclude_that_some_break():
    """Of 50 tasks none broke: 1 - 0.05^(1/50) = 5.8 % of new ones may, which t over tasks knows nothing of."""
    found = gate(*sides(50), RULE)
    assert found.decision is Decision.INCONCLUSIVE
    assert found.tested.loss_limit == pytest.approx(1 - 0.05 ** (1 / 50), abs=0.004)
    assert found.tested.se * 1.68 < 0.02
    assert RARE_LOSSES in found.tested.note
    assert found.tasks_to_settle >= math.log(0.05) / math.log(0.98)
    assert gate(*sides(400), RULE).decision is Decision.PASS


def test_a_lost_margin_seldom_passes():
    """Two of a hundred tasks of the source break: t over 50 tasks alone would pass about every fifth study."""
    rng = np.random.default_rng(1)
    passed = by_t = 0
    for _ in range(40):
        p = np.where(rng.random(50) < 0.05, rng.random(50), (rng.random(50) < 0.7).astype(float))
        q = np.where(rng.random(50) < 0.02, 0.0, p)
        found = population_test(*(counted_side(rng.binomial(5, rates), np.full(50, 5)) for rates in (q, p)))
        if found.loss_limit is not None:
            passed += found.loss_limit < 0.0138
            by_t += 1.677 * found.se - found.difference < 0.0138
    assert passed <= 2 < by_t


def test_the_limit_is_of_clusters_where_there_are_any():
    rng = np.random.default_rng(2)
    new, base = (side_of((rng.random((60, 4)) < 0.8).astype(float)) for _ in range(2))
    groups = [f"g{i // 10}" for i in range(60)]
    found = population_test(new, base, clusters=groups, seed=3)
    totals = (base.means - new.means).reshape(6, 10).mean(axis=1)
    weighted = dirichlet_task_means(totals, 1.0, resamples=10_000, seed=3)
    assert found.loss_limit == pytest.approx(np.quantile(weighted, 0.95))
    assert (found.seed, found.resamples) == (3, 10_000)


def test_many_distinct_losses_are_rounded_up():
    rng = np.random.default_rng(4)
    base = rng.random((2_500, 1))
    new = np.clip(base + rng.normal(0, 0.1, base.shape), 0, 1)
    found = population_test(side_of(new), side_of(base))
    plain = np.quantile(dirichlet_task_means((base - new)[:, 0], 1.0, resamples=2_000, seed=1), 0.95)
    assert plain < found.loss_limit < plain + 0.0007
