"""Clusters: the textbook's error, statsmodels' error, the plain error where clusters are tasks, and the guards."""

from fractions import Fraction

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

from evalnoise.stats.bootstrap import joint_task_bootstrap, percentile_interval
from evalnoise.stats.clusters import (
    cluster_bootstrap,
    cluster_bootstrap_difference,
    clustered_difference,
    clustered_mean,
    clustered_score,
    clustered_w,
)
from evalnoise.stats.contrasts import paired_t
from evalnoise.stats.variance import score, within_task_variance

SEEDS = st.integers(0, 2**32)


def arm(seed, n_tasks=60, replicates=8, *, unequal=False):
    generator = np.random.default_rng(seed)
    runs = generator.integers(2, replicates + 1, size=n_tasks) if unequal else np.full(n_tasks, replicates)
    return generator.binomial(runs, generator.beta(0.5, 0.5, size=n_tasks)), runs


def s2(passes, runs):
    return passes * (runs - passes) / (runs * (runs - 1))


def theirs(values, clusters, *, correction):
    """statsmodels: ordinary least squares on a constant, errors clustered."""
    groups = {"groups": np.asarray(clusters), "use_correction": correction}
    return float(sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds=groups).bse[0])


def test_by_hand():
    """Tasks 0, 1 | 1, 1 | 0, 0, 1; mean 4/7; residual sums -1/7, 6/7, -5/7: CR0 = sqrt(62)/49."""
    found = clustered_mean([0, 1, 1, 1, 0, 0, 1], ["a", "a", "b", "b", "c", "c", "c"])
    assert found.se_cr0 == pytest.approx(62**0.5 / 49, rel=1e-15)
    assert found.se == pytest.approx((62 * 1.5) ** 0.5 / 49, rel=1e-15)
    assert (found.n_clusters, found.largest) == (3, 3)
    half = t.ppf(0.975, 2) * found.se
    assert (found.result.lo, found.result.hi) == pytest.approx((4 / 7 - half, 4 / 7 + half), rel=1e-12)
    assert (found.result.method, found.result.covers) == ("cluster-robust", "population")


def test_miller_s_double_sum():
    """Var = sum over pairs of tasks of one cluster of the products of their residuals, over N^2."""
    x, c = np.array([0.2, 0.9, 0.4, 1.0, 0.0, 0.3]), np.array([0, 0, 1, 1, 1, 2])
    away = x - x.mean()
    double = sum(away[i] * away[j] for i in range(6) for j in range(6) if c[i] == c[j])
    assert clustered_mean(x, c).se_cr0 == pytest.approx(double**0.5 / 6, rel=1e-12)


@settings(deadline=None, max_examples=25)
@given(SEEDS, st.integers(2, 30), st.booleans())
def test_as_statsmodels(seed, n_clusters, unequal):
    a, b = arm(seed, unequal=unequal), arm(seed + 1, unequal=unequal)
    clusters = np.random.default_rng(seed).integers(0, n_clusters, size=60)
    clusters[:2] = 0, 1
    cases = (
        (clustered_score(*a, clusters), a[0] / a[1]),
        (clustered_w(*a, clusters), s2(*a)),
        (clustered_difference(*a, *b, clusters), a[0] / a[1] - b[0] / b[1]),
        (clustered_difference(*a, *b, clusters, of="w"), s2(*a) - s2(*b)),
    )
    for found, values in cases:
        assert found.result.value == pytest.approx(values.mean(), abs=1e-12)
        assert found.se_cr0 == pytest.approx(theirs(values, clusters, correction=False), rel=1e-9, abs=1e-12)
        assert found.se == pytest.approx(theirs(values, clusters, correction=True), rel=1e-9, abs=1e-12)


@settings(deadline=None, max_examples=25)
@given(SEEDS, st.booleans())
def test_clusters_of_one_task_give_the_plain_error(seed, unequal):
    a, b = arm(seed, unequal=unequal), arm(seed + 1, unequal=unequal)
    alone = np.random.default_rng(seed).permutation(60)
    found = clustered_score(*a, alone)
    assert found.se == found.se_plain == pytest.approx((a[0] / a[1]).std(ddof=1) / 60**0.5, rel=1e-12)
    assert found.design_effect == pytest.approx(1)
    for of in ("score", "w"):
        ours, plain = clustered_difference(*a, *b, alone, of=of).result, paired_t(*a, *b, of=of).result
        assert (ours.value, ours.lo, ours.hi) == pytest.approx((plain.value, plain.lo, plain.hi), rel=1e-9, abs=1e-12)


@given(SEEDS)
def test_copies_of_a_task_add_nothing(seed):
    passes, runs = arm(seed, n_tasks=20)
    once = clustered_score(passes, runs, np.arange(20))
    thrice = clustered_score(np.repeat(passes, 3), np.repeat(runs, 3), np.repeat(np.arange(20), 3))
    assert thrice.se == pytest.approx(once.se, rel=1e-12, abs=1e-15)
    assert thrice.result.hi == pytest.approx(once.result.hi, rel=1e-12)
    if once.se:
        assert thrice.design_effect == pytest.approx(3 * 59 / 57, rel=1e-12)


def test_exact_to_the_last_rounding():
    passes, runs = arm(3, n_tasks=200)
    clusters = np.arange(200) % 13
    mean = Fraction(int(passes.sum()), 1600)
    residuals = [sum((Fraction(int(k), 8) - mean for k in passes[clusters == g]), Fraction()) for g in range(13)]
    squared = sum((r * r for r in residuals), Fraction()) / 200**2
    assert clustered_score(passes, runs, clusters).se_cr0 == pytest.approx(float(squared) ** 0.5, rel=4e-16)


def test_values_are_those_of_every_other_row():
    passes, runs = arm(11, unequal=True)
    clusters = np.arange(60) // 4
    assert clustered_score(passes, runs, clusters).result.value == score(passes, runs).value
    assert clustered_w(passes, runs, clusters).result.value == within_task_variance(passes, runs).w
    assert cluster_bootstrap(passes, runs, clusters, seed=1, resamples=50).value == score(passes, runs).value


def test_what_was_not_measured_does_not_enter():
    passes, runs = arm(5)
    clusters = np.arange(60) // 4
    more = np.append(passes, [0, 1]), np.append(runs, [0, 1]), np.append(clusters, [77, 78])
    assert clustered_w(*more) == clustered_w(passes, runs, clusters)
    assert clustered_score(*more).n_clusters == 16


# --- bootstrap -----------------------------------------------------------------------------------------------------------


def test_bootstrap_of_clusters_of_one_task_is_the_plain_one():
    passes, runs = arm(2)
    found = cluster_bootstrap(passes, runs, [f"task {i}" for i in range(60)], seed=4, resamples=2_000)
    draws = joint_task_bootstrap(np.sort(passes)[:, None].astype(float), resamples=2_000, seed=4)[:, 0] / 8
    assert (found.lo, found.hi) == percentile_interval(draws)
    assert (found.method, found.covers, found.seed, found.resamples) == ("cluster bootstrap", "population", 4, 2_000)


def test_bootstrap_is_as_wide_as_the_robust_error_says():
    passes, runs = arm(9, n_tasks=400)
    order = np.argsort(passes)
    passes, clusters = passes[order], np.arange(400) // 8
    robust = clustered_score(passes, runs, clusters)
    assert robust.design_effect > 4, "sorted passes hang together"
    found = cluster_bootstrap(passes, runs, clusters, seed=1)
    assert found.hi - found.lo == pytest.approx(2 * 1.96 * robust.se_cr0, rel=0.05)


def test_bootstrap_of_a_difference_uses_the_same_clusters_for_both():
    a = arm(1)
    same = cluster_bootstrap_difference(*a, *a, np.arange(60) // 3, seed=0, resamples=200)
    assert (same.value, same.lo, same.hi) == (0, 0, 0)
    assert same.degenerate
    b = (np.maximum(a[0] - 1, 0), a[1])
    found = cluster_bootstrap_difference(*a, *b, np.arange(60) // 3, of="w", seed=0, resamples=200)
    assert found.lo < found.value < found.hi


# --- guards --------------------------------------------------------------------------------------------------------------


def test_one_cluster_is_an_error():
    passes, runs = arm(0, n_tasks=4)
    for call in (
        lambda: clustered_mean([1.0, 2.0], ["a", "a"]),
        lambda: clustered_score(passes, runs, ["a"] * 4),
        lambda: clustered_w(passes, [8, 1, 1, 1] * np.minimum(1, runs), ["a", "b", "c", "d"]),
        lambda: clustered_difference(passes, runs, passes, np.where(np.arange(4) < 2, runs, 0) * (passes <= runs), [0, 0, 1, 1]),
        lambda: cluster_bootstrap(passes, runs, ["a"] * 4, seed=0),
    ):
        with pytest.raises(ValueError, match=r"needs 2 of them, not 1|passes of"):
            call()


def test_few_clusters_are_warned_of():
    passes, runs = arm(0)
    warned = "only 9 clusters, the largest of 7 tasks: under 10 clusters the interval covers less often than it says"
    assert clustered_score(passes, runs, np.arange(60) % 9).result.note == warned
    assert cluster_bootstrap(passes, runs, np.arange(60) % 9, seed=0, resamples=50).note == warned
    assert clustered_score(passes, runs, np.arange(60) % 10).result.note == "10 clusters, the largest of 6 tasks"


def test_no_variation_proves_nothing():
    ten = np.full(12, 10)
    assert clustered_score(ten, ten, np.arange(12)).result.degenerate
    assert clustered_w(np.zeros(12, dtype=int), ten, np.arange(12)).result.note.startswith("proves nothing: no task varied")
    one = np.zeros(12, dtype=int)
    one[3] = 4
    assert "only 1 variable task" in clustered_w(one, ten, np.arange(12)).result.note


def test_a_score_lies_between_0_and_1():
    found = clustered_score([10, 10, 0], [10, 10, 10], ["a", "b", "c"]).result
    assert (found.lo, found.hi) == (0, 1)
    assert clustered_w([1, 0, 0], [2, 2, 2], ["a", "b", "c"]).result.lo == 0


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match='of is "score" or "w"'):
        cluster_bootstrap([1], [1], ["a"], of="budget", seed=0)
    with pytest.raises(ValueError, match="one row per task"):
        clustered_difference([1], [1], [1, 1], [1, 1], ["a"])
    with pytest.raises(ValueError, match="clusters need one label per task"):
        clustered_score([1, 1], [1, 1], ["a"])
