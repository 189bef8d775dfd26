"""The gate over many studies: its type I error and power; A/A, and the published rule."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from evalnoise.stats.drift import drift, run_sums
from evalnoise.stats.gates.aa import NO_SPLIT, aa_mde, article_rule, bootstrap_delta, halves
from evalnoise.stats.gates.gate import Decision, GateRule
from evalnoise.stats.gates.power import simulate, simulate_article_power, simulate_gate_power
from evalnoise.stats.gates.side import counted_side, side_of
from evalnoise.stats.planning.power import Effect, lowered
from tests.support.gate_arms import N, arm, rates

RULE = GateRule()


# --- type I error and power ----------------------------------------------------------------------------------------------------


def test_the_gate_seldom_blocks_what_has_not_changed():
    found = simulate_gate_power(rates(), rates(), runs_base=5, runs_new=5, rule=RULE, trials=120)
    assert found.block <= 0.06
    assert found.loss == 0
    assert found.block + found.passed + found.inconclusive == pytest.approx(1)


@pytest.mark.parametrize(("effect", "least", "bootstrap"), [(Effect.CONCENTRATED, 0.6, 0.6), (Effect.MIXED, 0.5, 0.15)])
def test_its_power_does_not_hang_on_how_the_loss_is_spread(effect, least, bootstrap):
    """Two points at the published size, 8 runs: about 0.79 and 0.71, where a bootstrap over tasks has 0.37 and 0.02."""
    p = rates(2)
    q = lowered(p, 0.02, effect)
    found = simulate_gate_power(p, q, runs_base=8, runs_new=8, rule=RULE, trials=120)
    assert found.block >= least

    def resampling(new, base):
        _, _, hi = bootstrap_delta(new, base, resamples=500)
        return Decision.BLOCK if hi < 0 else Decision.PASS

    assert simulate(p, q, resampling, runs_base=8, runs_new=8, trials=120, seed=0).block <= bootstrap


def test_a_lost_margin_seldom_passes():
    p = rates(3)
    for effect in Effect:
        q = lowered(p, 0.02, effect)
        found = simulate_gate_power(p, q, runs_base=8, runs_new=8, rule=GateRule(margin=0.02), trials=60)
        assert found.passed <= 0.13


# --- A/A ------------------------------------------------------------------------------------------------------------------------


def test_the_analytic_effect_is_the_formulas():
    rng = np.random.default_rng(13)
    side = arm(rng, rates(), 10)
    found = aa_mde(side)
    w = float(side.variances.mean())
    assert found.w == pytest.approx(w)
    assert found.split_variance == pytest.approx(4 * w / (N * 10))
    assert found.detectable == pytest.approx(2.8015852181 * math.sqrt(2 * w / (N * 10)))
    assert found.significant == pytest.approx(1.959963985 * math.sqrt(2 * w / (N * 10)))


@pytest.mark.parametrize("runs", [4, 5])
def test_splits_within_tasks_and_by_whole_runs_are_what_drawing_them_gives(runs):
    rng = np.random.default_rng(14)
    scores = (rng.random((30, runs)) < rng.random((30, 1))).astype(float)
    found = aa_mde(side_of(scores))
    h = runs // 2
    keys = rng.random((40_000, 30, runs)).argsort(axis=2)
    first = np.take_along_axis(np.broadcast_to(scores, keys.shape), keys[:, :, :h], axis=2).mean(axis=(1, 2))
    rest = np.take_along_axis(np.broadcast_to(scores, keys.shape), keys[:, :, h:], axis=2).mean(axis=(1, 2))
    assert found.split_variance == pytest.approx(np.mean((first - rest) ** 2), rel=0.03)
    whole = rng.random((20_000, runs)).argsort(axis=1)
    score = scores.mean(axis=0)
    difference = score[whole[:, :h]].mean(axis=1) - score[whole[:, h:]].mean(axis=1)
    assert found.whole_run_variance == pytest.approx(np.mean(difference**2), rel=0.04)


def test_uneven_runs_count_as_they_are():
    outcomes = [[1, 0], [1, 1, 0], [0, 0, 0, 1, 0]]
    measured = np.array([[True] * len(task) + [False] * (5 - len(task)) for task in outcomes])
    side = side_of([task + [0] * (5 - len(task)) for task in outcomes], measured)
    found = aa_mde(side)
    of_means = sum(Fraction(k * (n - k), n * (n - 1)) / n for k, n in ((1, 2), (2, 3), (1, 5)))
    assert found.significant == pytest.approx(1.959963985 * math.sqrt(2 * of_means) / 3)
    assert found.detectable == pytest.approx(2.8015852181 * math.sqrt(2 * of_means) / 3)
    assert (found.n_replicates, found.most_replicates) == (2, 5)
    # Every split of every task: the differences of tasks have mean 0 and are independent, so their squares add up.
    squares = Fraction(0)
    for task in outcomes:
        h, n = len(task) // 2, len(task)
        splits = list(itertools.combinations(range(n), h))
        halves = [sum(Fraction(task[i]) for i in chosen) / h for chosen in splits]
        squares += sum((one - (sum(task) - one * h) / (n - h)) ** 2 for one in halves) / len(splits)
    assert found.split_variance == pytest.approx(float(squares / 9))


def test_the_drift_ratio_is_cochrans():
    rng = np.random.default_rng(15)
    outcomes = (rng.random((40, 6)) < rng.random((40, 1))).astype(np.int8)
    theirs = drift(run_sums(outcomes), seed=0, resamples=99, order_known=True)
    assert aa_mde(side_of(outcomes)).drift_ratio == pytest.approx(theirs.split_ratio)


@pytest.mark.parametrize("unit", [1, 10, 100, math.pi])
def test_runs_of_one_score_have_a_variance_of_exactly_0(unit):
    """Runs that are the same, and runs whose scores lie on other tasks: 49 tasks, because no sum of 1/49 is exact."""
    run = np.random.default_rng(16).integers(0, max(2, int(unit)), 49) / unit
    same = aa_mde(side_of(np.column_stack([run] * 7)))
    assert (same.whole_run_variance, same.split_variance) == (0.0, 0.0)
    turned = aa_mde(side_of(np.column_stack([np.roll(run, i) for i in range(7)])))
    assert turned.split_variance > 0
    assert turned.whole_run_variance == (0.0 if unit != math.pi else pytest.approx(0.0, abs=1e-30))


def test_the_variance_of_whole_runs_is_that_of_their_scores():
    scores = np.random.default_rng(17).integers(0, 11, (30, 5)) / 10
    found = aa_mde(side_of(scores))
    assert found.whole_run_variance == pytest.approx(np.var(scores.mean(axis=0), ddof=1) * (1 / 2 + 1 / 3), rel=1e-12)


def test_what_has_no_effect_says_why():
    assert aa_mde(counted_side([1, 0], [1, 1])).undefined
    same = aa_mde(counted_side([3, 0], [3, 3]))
    assert (same.drift_ratio, same.detectable) == (None, None)
    assert "nothing varied" in same.drift_undefined
    assert "differ in their number" in aa_mde(counted_side([1, 2], [2, 4])).drift_undefined


# --- the published rule -----------------------------------------------------------------------------------------------------------


def published(a, b, iters, rng):
    """The published resampling, done plainly."""
    deltas = []
    for _ in range(iters):
        pick = rng.integers(0, len(a), len(a))
        deltas.append(a[pick].mean() - b[pick].mean())
    deltas.sort()
    return np.mean(deltas), deltas[int(0.025 * iters)], deltas[int(0.975 * iters) - 1]


def test_the_published_bootstrap():
    rng = np.random.default_rng(16)
    a, b = (rng.random((40, 5)) < 0.7).astype(float), (rng.random((40, 5)) < 0.6).astype(float)
    ours = bootstrap_delta(side_of(a), side_of(b), resamples=8_000)
    assert ours == pytest.approx(published(a, b, 4_000, rng), abs=0.006)


def test_the_published_effect_is_a_matter_of_luck():
    """40 cases, 5 samples, w = 0.12: an interval 13.6 points wide, and effects from 5 to 16.5 points around 9.6."""
    rng = np.random.default_rng(17)
    p = np.full(40, 0.5 + math.sqrt(0.25 - 0.12))
    found = [bootstrap_delta(arm(rng, p, 5), arm(rng, p, 5), resamples=1_000, seed=i) for i in range(250)]
    effects = [max(abs(lo), abs(hi)) for _, lo, hi in found]
    assert np.mean([hi - lo for _, lo, hi in found]) == pytest.approx(2 * 1.96 * math.sqrt(2 * 0.12 / 200), abs=0.006)
    assert np.mean(effects) == pytest.approx(0.096, abs=0.006)
    assert 0.04 < min(effects) < 0.065
    assert 0.14 < max(effects) < 0.19


def test_the_published_rule_has_no_type_i_error_and_half_power_at_its_own_effect():
    p = np.full(40, 0.5 + math.sqrt(0.25 - 0.12))
    assert simulate_article_power(p, p, runs=5, trials=150, resamples=500).block <= 0.03
    found = simulate_article_power(p, p - 0.096, runs=5, trials=150, resamples=500)
    assert 0.3 < found.block < 0.7


def test_the_published_rules_table():
    rng = np.random.default_rng(18)
    p = np.full(60, 0.8)
    same, again = arm(rng, p, 6), arm(rng, p, 6)
    worse = article_rule(arm(rng, p - 0.3, 6), same, again)
    assert worse.decision is Decision.BLOCK
    assert worse.mde == max(abs(worse.aa_lo), abs(worse.aa_hi))
    assert worse.hi < 0
    assert worse.power_at_mde == pytest.approx(0.5, abs=0.1)
    assert "every other time" in worse.note
    assert article_rule(arm(rng, p + 0.19, 6), same, again).decision is Decision.PASS
    assert article_rule(arm(rng, p, 6), same, again).decision is Decision.PASS
    # Above the effect, but not different from 0 over tasks: run it again.
    wild = side_of(np.where(np.arange(60)[:, None] < 34, 0.0, 1.0) * np.ones((60, 6)))
    steady = side_of(np.where(np.arange(60)[:, None] >= 30, 0.0, 1.0) * np.ones((60, 6)))
    assert article_rule(wild, steady).decision is Decision.INCONCLUSIVE


def test_without_a_second_arm_base_is_split():
    rng = np.random.default_rng(19)
    base = arm(rng, rates(), 8)
    even, odd = halves(base)
    assert (even.scores.shape, odd.scores.shape) == ((N, 4), (N, 4))
    found = article_rule(arm(rng, rates(), 8), base)
    assert found.mde > article_rule(base, base, arm(rng, rates(), 8)).mde * 0.9
    single = article_rule(base, counted_side([1] * N, [1] * N))
    assert (single.decision, single.mde, single.undefined) == (Decision.INCONCLUSIVE, None, NO_SPLIT)
