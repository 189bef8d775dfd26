"""Sides, limits of a loss, the permutation test and the tests of both claims."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evalnoise.stats.contrasts import paired_t, score_contrast_benchmark
from evalnoise.stats.gates.claims import NO_VARIATION, HowTested, benchmark_test, population_test
from evalnoise.stats.gates.gate import Decision, GateRule, gate
from evalnoise.stats.gates.loss import FEW_VARIABLE, SINGLE_RUNS, loss_limit
from evalnoise.stats.gates.permutation import permutation_test
from evalnoise.stats.gates.side import counted_side, on_common_tasks, side_of
from evalnoise.stats.limits import variance_bound
from evalnoise.stats.variance import task_variances


def binomial_side(rng, rates, runs):
    return counted_side(rng.binomial(runs, rates), np.full(len(rates), runs))


# --- sides ---------------------------------------------------------------------------------------------------------------


def test_a_side_of_counts():
    side = counted_side([2, 0, 3, 0], [3, 3, 3, 0])
    assert side.binary
    assert side.passes.tolist() == [2, 0, 3, 0]
    assert side.runs.tolist() == [3, 3, 3, 0]
    assert side.varied.tolist() == [True, False, False, False]
    assert side.variances[:3] == pytest.approx(task_variances([2, 0, 3], [3, 3, 3]), abs=1e-15)
    assert side.unmeasured_share == pytest.approx(0.25)


def test_a_side_of_scores():
    side = side_of([[0.25, 0.75, 9.0], [0.5, 0.5, 0.5]], [[True, True, False], [True, True, True]])
    assert not side.binary
    assert side.means == pytest.approx([0.5, 0.5])
    assert side.variances == pytest.approx([0.125, 0.0])
    for wrong in ([[1.5]], [[-0.1]], [[math.nan]]):
        with pytest.raises(ValueError, match=r"scores lie in \[0, 1\]"):
            side_of(wrong)
    with pytest.raises(ValueError, match="shape"):
        side_of([1.0])
    with pytest.raises(ValueError, match="one row per task"):
        on_common_tasks(side, counted_side([1], [1]))


# --- the limit of a loss -------------------------------------------------------------------------------------------------


def test_with_many_varying_tasks_it_is_the_plain_error():
    rng = np.random.default_rng(0)
    rates = rng.uniform(0.2, 0.8, 60)
    new, base = binomial_side(rng, rates, 8), binomial_side(rng, rates, 8)
    found = loss_limit(new, base)
    plain = score_contrast_benchmark(new.passes, new.runs, base.passes, base.runs).result
    assert (found.lo, found.hi) == pytest.approx((plain.lo, plain.hi))
    assert found.limit == pytest.approx(-found.difference + 1.6448536269514722 * found.se)
    assert not found.note


def test_with_few_varying_tasks_the_error_is_larger():
    new, base = counted_side([5] * 30 + [4], [5] * 31), counted_side([5] * 31, [5] * 31)
    found = loss_limit(new, base)
    plain = math.sqrt(0.2 / 5) / 31
    assert found.note == FEW_VARIABLE
    assert found.se > 2 * plain
    # One failure in 155 runs: the Poisson limit of the expected number is 4.74.
    assert found.limit >= 4.74 / 155


def test_records_without_any_variation_allow_some_loss():
    same = counted_side([20] * 100 + [0] * 64, [20] * 164)
    found = loss_limit(same, same)
    assert found.difference == 0
    assert found.w_new == pytest.approx(0.00091, abs=1e-5)
    assert found.limit == pytest.approx(1.6448536 * math.sqrt(2 * found.w_new / (164 * 20)), rel=1e-6)
    assert loss_limit(counted_side([2], [2]), counted_side([2], [2])).w_new == 0.25


def test_single_runs_take_their_noise_from_disagreement():
    new = counted_side([1] * 60 + [0] * 10 + [1] * 4 + [0] * 26, [1] * 100)
    base = counted_side([1] * 60 + [1] * 10 + [0] * 4 + [0] * 26, [1] * 100)
    found = loss_limit(new, base)
    upper = stats.binomtest(14, 100).proportion_ci(0.9, method="exact").high
    assert found.note == SINGLE_RUNS
    assert found.difference == pytest.approx(-0.06)
    assert found.se == pytest.approx(math.sqrt(upper / 100))
    nothing = loss_limit(base, base)
    assert nothing.limit == pytest.approx(1.6448536 * math.sqrt((1 - 0.05 ** (1 / 100)) / 100), rel=1e-6)


@given(st.integers(1, 6), st.integers(0, 6), st.floats(0, 1), st.floats(0, 1))
def test_disagreement_is_no_less_than_both_variances(runs, passes, p, q):
    assert p * (1 - q) + q * (1 - p) >= p * (1 - p) + q * (1 - q) - 1e-12
    x, y = min(passes, runs) / runs, q
    assert (x - y) ** 2 + x * (1 - x) + y * (1 - y) == pytest.approx(x * (1 - y) + y * (1 - x), abs=1e-12)


@pytest.mark.parametrize(("runs", "share"), [(3, 0.05), (5, 0.2), (2, 1.0)])
def test_the_limit_is_seldom_under_the_true_loss(runs, share):
    """At least about 95 % of limits lie above the loss, also where few tasks vary and new failures are rare."""
    rng = np.random.default_rng(runs)
    under = 0
    for _ in range(250):
        rates = np.where(rng.random(80) < share, rng.beta(0.5, 0.5, 80), (rng.random(80) < 0.7).astype(float))
        lowered = np.where(rates == 1, 0.97, rates)
        limit = loss_limit(binomial_side(rng, lowered, runs), binomial_side(rng, rates, runs)).limit
        under += limit < float(np.mean(rates - lowered))
    assert under / 250 <= 0.08


def test_bounded_scores_have_a_limit_too():
    rng = np.random.default_rng(1)
    many = side_of(rng.random((40, 4)))
    assert loss_limit(many, many).w_new == pytest.approx(float(np.mean(np.var(many.scores, axis=1, ddof=1))))
    few = np.full((40, 4), 0.5)
    few[:3, 0] = 0.4
    found = loss_limit(side_of(few), side_of(few))
    assert found.note == FEW_VARIABLE
    assert found.w_new > 5 * 3 * 0.0025 / 40


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.integers(2, 4))
def test_no_bounded_score_has_an_s2_that_varies_more_than_an_outcomes(points, runs):
    chances = (0.5, 0.3, 0.2)
    mean = sum(p * x for p, x in zip(chances, points, strict=True))
    v = sum(p * (x - mean) ** 2 for p, x in zip(chances, points, strict=True))
    moments = [0.0, 0.0]
    for drawn in product(range(3), repeat=runs):
        chance, s2 = math.prod(chances[i] for i in drawn), float(np.var([points[i] for i in drawn], ddof=1))
        moments = [moments[0] + chance * s2, moments[1] + chance * s2 * s2]
    assert moments[0] == pytest.approx(v, abs=1e-12)
    assert moments[1] - moments[0] ** 2 <= variance_bound(v, np.array([runs]), np.array([1])) + 1e-12


def test_few_varying_tasks_with_uneven_runs_count_as_they_are():
    """The upper limit x of w solves (x - w)^2 = z^2 Var(w at x), found here by trying rates of both groups of runs."""
    runs = np.array([2] * 10 + [20] * 90)
    scores, measured = np.full((100, 20), 0.5), np.arange(20) < runs[:, None]
    scores[:4, 0], scores[20:24, 0] = 0.9, 0.1
    side = side_of(scores, measured)
    found = loss_limit(side, side)
    s2 = np.array([np.var(row[known], ddof=1) for row, known in zip(side.scores, measured, strict=True)])
    x, w = found.w_new, float(s2.mean())
    of_two = np.linspace(0, min(0.25, 10 * x), 20_001)
    of_many = (100 * x - 10 * of_two) / 90
    variance = 10 * (of_two / 2 - of_two**2) + 90 * (of_many / 20 - of_many**2 * 74 / 380)
    worst = float(variance[(of_many >= 0) & (of_many <= 0.25)].max()) / 100**2
    assert x - w == pytest.approx(1.6448536 * math.sqrt(worst), rel=1e-4)
    assert found.se == pytest.approx(math.sqrt(2 * ((s2 / runs).sum() + (x - w) * (1 / runs).sum())) / 100)


def test_no_common_task_has_no_limit():
    found = loss_limit(counted_side([1, 0], [2, 0]), counted_side([0, 1], [0, 2]))
    assert (found.difference, found.limit, found.n_tasks) == (None, None, 0)
    assert found.undefined
    with pytest.raises(ValueError, match="level"):
        loss_limit(counted_side([1], [2]), counted_side([1], [2]), level=0.4)


# --- permutation ---------------------------------------------------------------------------------------------------------


def every_deal(a, b):
    """Differences of scores of all deals of two sides of full rows."""
    parts = []
    for x, y in zip(a, b, strict=True):
        pool = [*x, *y]
        sums = [sum(pool[i] for i in chosen) for chosen in combinations(range(len(pool)), len(x))]
        parts.append([s / len(x) - (sum(pool) - s) / len(y) for s in sums])
    return np.array([sum(deal) / len(a) for deal in product(*parts)])


def test_the_permutation_is_what_enumeration_gives():
    a = [[0.1, 0.4, 0.9], [0.3, 0.3, 0.2], [0.0, 0.7, 1.0]]
    b = [[0.5, 0.8], [0.3, 0.6], [1.0, 0.9]]
    found = permutation_test(side_of(a), side_of(b), seed=1, resamples=9_999)
    deals = every_deal(a, b)
    assert found.difference == pytest.approx(np.mean(np.mean(a, axis=1) - np.mean(b, axis=1)))
    assert abs(deals.mean()) < 1e-12
    assert found.variance == pytest.approx(deals.var())
    exact = np.mean(deals <= found.difference + 1e-9), np.mean(deals >= found.difference - 1e-9)
    assert (found.p_less, found.p_greater) == pytest.approx(exact, abs=0.015)
    assert found.p_two_sided == min(1.0, 2 * min(found.p_less, found.p_greater))


def test_the_same_seed_gives_the_same_deals():
    rng = np.random.default_rng(2)
    a, b = side_of(rng.random((25, 4))), side_of(rng.random((25, 5)))
    one = permutation_test(a, b, seed=3, resamples=500)
    assert permutation_test(a, b, seed=3, resamples=500) == one
    assert permutation_test(a, b, seed=4, resamples=500) != one
    assert (one.resamples, one.seed) == (500, 3)


def test_the_order_of_tasks_and_runs_does_not_matter():
    rng = np.random.default_rng(5)
    a, b = np.round(rng.random((25, 4)), 2), np.round(rng.random((25, 5)), 2)
    measured = rng.random((25, 4)) < 0.8
    measured[:, 0] = True
    one = permutation_test(side_of(a, measured), side_of(b), seed=3, resamples=500)
    tasks, runs = rng.permutation(25), rng.permutation(4)
    again = permutation_test(side_of(a[tasks][:, runs], measured[tasks][:, runs]), side_of(b[tasks]), seed=3, resamples=500)
    assert (again.p_less, again.p_greater) == (one.p_less, one.p_greater)


def test_many_cells_take_the_normal_distribution():
    rng = np.random.default_rng(3)
    a, b = side_of(rng.random((60, 6))), side_of(np.clip(rng.random((60, 6)) + 0.03, 0, 1))
    dealt, normal = permutation_test(a, b, seed=0), permutation_test(a, b, seed=0, most_cells=10)
    assert normal.resamples is None
    assert normal.p_less == pytest.approx(dealt.p_less, abs=0.02)
    assert normal.p_less == pytest.approx(stats.norm.cdf(normal.difference / math.sqrt(normal.variance)))


def test_ties_count_and_p_is_never_zero():
    a, b = side_of([[0.0]] * 12), side_of([[0.5]] * 12)
    found = permutation_test(a, b, seed=0, resamples=999)
    assert found.p_less == pytest.approx(1 / 1000, abs=2e-3)
    assert found.p_less >= 1 / 1000
    assert found.p_greater == 1.0


def test_scores_that_all_agree_have_no_p():
    same = side_of([[0.5, 0.5]] * 3)
    found = permutation_test(same, same, seed=0)
    assert (found.difference, found.p_two_sided, found.resamples) == (0.0, None, None)
    assert found.undefined
    nothing = permutation_test(counted_side([0], [0]), same.take(np.array([0])), seed=0)
    assert (nothing.difference, nothing.n_tasks) == (None, 0)


# --- claims --------------------------------------------------------------------------------------------------------------


def test_the_test_follows_the_records():
    rng = np.random.default_rng(4)
    rates = rng.beta(0.5, 0.5, 40)
    assert benchmark_test(binomial_side(rng, rates, 4), binomial_side(rng, rates, 6)).test == HowTested.CMH
    assert benchmark_test(binomial_side(rng, rates, 1), binomial_side(rng, rates, 1)).test == HowTested.MCNEMAR
    scored = side_of(rng.random((40, 3)))
    found = benchmark_test(scored, side_of(rng.random((40, 3))), seed=5, resamples=400)
    assert (found.test, found.seed, found.resamples, found.covers) == (HowTested.PERMUTATION, 5, 400, "benchmark")


def test_the_population_claim_is_the_paired_t():
    rng = np.random.default_rng(5)
    new, base = binomial_side(rng, rng.random(50), 5), binomial_side(rng, rng.random(50), 5)
    found = population_test(new, base)
    theirs = stats.ttest_rel(new.means, base.means)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert found.p_worse == pytest.approx(stats.ttest_rel(new.means, base.means, alternative="less").pvalue, rel=1e-9)
    ours = paired_t(new.passes, new.runs, base.passes, base.runs).result
    assert (found.lo, found.hi) == pytest.approx((ours.lo, ours.hi))
    # Its limit, or Gaffke's where that is larger.
    by_t = -found.difference + stats.t.ppf(0.95, 49) * found.se
    weighted = np.random.default_rng(0).dirichlet(np.ones(51), 10_000) @ np.append(base.means - new.means, 1.0)
    assert found.loss_limit == pytest.approx(max(by_t, np.quantile(weighted, 0.95)), abs=0.005)
    assert found.covers == "population"
    assert found.w_new is None
    assert found.runs_for(0.02, 0.05) is None
    needed = found.tasks_for(0.02, 0.05)
    assert needed == math.ceil((2.8015852181 * found.se / 0.02) ** 2 * 50)


def test_clusters_widen_it():
    rng = np.random.default_rng(6)
    effect = np.repeat(rng.normal(0, 0.1, 12), 5)
    base = side_of(np.full((60, 1), 0.5))
    new = side_of(np.clip(0.5 + effect + rng.normal(0, 0.02, 60), 0, 1)[:, None])
    names = [f"c{i // 5}" for i in range(60)]
    alone, together = population_test(new, base), population_test(new, base, clusters=names)
    assert together.se > 1.8 * alone.se
    assert together.clusters == 12
    by_cluster = (new.means - 0.5).reshape(12, 5).mean(axis=1)
    assert together.p == pytest.approx(stats.ttest_1samp(by_cluster, 0).pvalue, rel=1e-9)
    assert population_test(new, base, clusters=[""] * 60).test == HowTested.PAIRED_T
    with pytest.raises(ValueError, match="2 of them"):
        population_test(new, base, clusters=["one"] * 60)
    assert "only 3 clusters" in population_test(new, base, clusters=[f"c{i // 20}" for i in range(60)]).note


@pytest.mark.parametrize(("n", "undefined"), [(0, "no task"), (1, "one task"), (5, NO_VARIATION)])
def test_too_little_for_a_t_is_undefined(n, undefined):
    same = counted_side([1] * n, [2] * n)
    found = population_test(same, same)
    assert found.undefined.startswith(undefined)
    assert (found.p, found.lo, found.loss_limit) == (None, None, None)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 4))
def test_exchanging_the_arms_exchanges_the_result(seed, runs_new, runs_base):
    rng = np.random.default_rng(seed)
    rates = rng.beta(0.4, 0.4, 30)
    new, base = binomial_side(rng, rates, runs_new), binomial_side(rng, rates, runs_base)
    for test in (benchmark_test, population_test):
        one, other = test(new, base), test(base, new)
        assert one.difference == pytest.approx(-other.difference, abs=1e-15)
        if one.p is not None:
            assert one.p == pytest.approx(other.p, rel=1e-9)
            assert one.p_worse == pytest.approx(1 - other.p_worse, abs=1e-9)


@pytest.mark.parametrize("clusters", [None, ["a", "b", "c"] * 10, ["a", "b", ""] * 10])
@pytest.mark.parametrize("scale", [1.0, 1 / 7])
def test_the_same_difference_in_every_task_is_no_variation(clusters, scale):
    """0.3 - 0.1 and 0.4 - 0.2 are the same difference; scores of 1/7 lie on no grid."""
    k = 1 + np.arange(30) % 7
    places = np.arange(10)
    base, new = (side_of((at < passes[:, None]) * scale) for at, passes in ((places, k), (places[::-1], k + 2)))
    found = population_test(new, base, clusters=clusters)
    assert (found.p, found.loss_limit, found.se, found.undefined) == (None, None, 0.0, NO_VARIATION)
    decided = gate(new, base, GateRule(claim="population"))
    assert decided.decision is Decision.INCONCLUSIVE
    assert NO_VARIATION in decided.reasons


def test_clusters_that_all_have_the_same_mean_are_no_variation():
    k = np.array([1, 2, 3, 4, 5, 6])
    more = np.array([1, 3, 3, 1, 1, 3])
    places = np.arange(10)
    base, new = (side_of((places < passes[:, None]).astype(float)) for passes in (k, k + more))
    assert population_test(new, base, clusters=list("aabbcc")).undefined == NO_VARIATION
    assert population_test(new, base).se > 0
