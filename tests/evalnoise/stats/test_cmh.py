"""The exact conditional test: against enumeration in fractions, SciPy's hypergeometric distribution and statsmodels."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import StratifiedTable

from evalnoise.stats.gates.cmh import ALL_AGREE, NO_COMMON_TASK, cmh_test
from evalnoise.stats.variance import score

counts = st.integers(1, 5).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
tables = st.lists(st.tuples(counts, counts), min_size=1, max_size=4)


def arrays(table):
    return tuple(np.array(column) for column in zip(*[(*a, *b) for a, b in table], strict=True))


def enumerated(ka, na, kb, nb):
    """P(T = x) for every x, as fractions, by going through every table with these margins."""
    strata = []
    for a, m, b, n in zip(ka.tolist(), na.tolist(), kb.tolist(), nb.tolist(), strict=True):
        k = a + b
        ways = {x: math.comb(m, x) * math.comb(n, k - x) for x in range(max(0, k - n), min(k, m) + 1)}
        strata.append([(x, Fraction(way, math.comb(m + n, k))) for x, way in ways.items()])
    found: dict[int, Fraction] = {}
    for cells in product(*strata):
        total = sum(x for x, _ in cells)
        found[total] = found.get(total, Fraction()) + math.prod((p for _, p in cells), start=Fraction(1))
    return found


@settings(max_examples=80)
@given(tables)
def test_it_is_what_enumeration_gives(table):
    ka, na, kb, nb = arrays(table)
    found = cmh_test(ka, na, kb, nb)
    chances = enumerated(ka, na, kb, nb)
    t = int(ka.sum())
    mean = sum(x * p for x, p in chances.items())
    assert found.expected == pytest.approx(float(mean), abs=1e-12)
    assert found.variance == pytest.approx(float(sum((x - mean) ** 2 * p for x, p in chances.items())), abs=1e-12)
    if len(chances) == 1:
        assert (found.p_less, found.p_two_sided, found.undefined) == (None, None, ALL_AGREE)
        return
    less = sum((p for x, p in chances.items() if x < t), start=Fraction()) + chances[t] / 2
    assert found.point == pytest.approx(float(chances[t]), rel=1e-12)
    assert found.p_less == pytest.approx(float(less), rel=1e-11)
    assert found.p_greater == pytest.approx(float(1 - less), rel=1e-11)
    assert found.p_two_sided == pytest.approx(float(min(Fraction(1), 2 * min(less, 1 - less))), rel=1e-11)


@settings(max_examples=40)
@given(tables)
def test_the_arms_are_alike(table):
    ka, na, kb, nb = arrays(table)
    one, other = cmh_test(ka, na, kb, nb), cmh_test(kb, nb, ka, na)
    if one.p_less is not None:
        assert other.p_greater == pytest.approx(one.p_less, rel=1e-11)
        assert other.p_two_sided == pytest.approx(one.p_two_sided, rel=1e-11)
    assert other.difference == pytest.approx(-one.difference, abs=1e-15)
    assert other.se == pytest.approx(one.se, abs=1e-12)


@pytest.mark.parametrize(("a", "m", "b", "n"), [(3, 10, 9, 12), (0, 7, 5, 9), (20, 20, 11, 20), (40, 400, 90, 500)])
def test_one_task_is_fishers_test(a, m, b, n):
    found = cmh_test([a], [m], [b], [n])
    table = [[a, m - a], [b, n - b]]
    assert found.p_less + found.point / 2 == pytest.approx(stats.fisher_exact(table, "less").pvalue, rel=1e-10)
    assert found.p_greater + found.point / 2 == pytest.approx(stats.fisher_exact(table, "greater").pvalue, rel=1e-10)
    assert found.point == pytest.approx(stats.hypergeom(m + n, a + b, m).pmf(a), rel=1e-10)


def test_one_run_per_arm_is_mcnemars_test():
    ka = np.array([1] * 4 + [0] * 15 + [1] * 60 + [0] * 21)
    kb = np.array([0] * 4 + [1] * 15 + [1] * 60 + [0] * 21)
    ones = np.ones(100, dtype=int)
    found = cmh_test(ka, ones, kb, ones)
    binomial = stats.binom(19, 0.5)
    assert found.mcnemar
    assert found.n_informative == 19
    assert found.p_less == pytest.approx(binomial.cdf(3) + binomial.pmf(4) / 2, rel=1e-12)
    assert not cmh_test(ka, ones, kb, 2 * ones).mcnemar


def test_the_chi_square_is_statsmodels():
    rng = np.random.default_rng(3)
    na, nb = rng.integers(1, 9, 40), rng.integers(1, 9, 40)
    rates = rng.beta(0.8, 0.8, 40)
    ka, kb = rng.binomial(na, rates), rng.binomial(nb, np.clip(rates + 0.1, 0, 1))
    found = cmh_test(ka, na, kb, nb)
    cells = np.array([[ka, na - ka], [kb, nb - kb]])
    theirs = StratifiedTable(cells.astype(float)).test_null_odds(correction=False)
    assert found.chi2 == pytest.approx(theirs.statistic, rel=1e-12)
    assert found.chi2_p == pytest.approx(theirs.pvalue, rel=1e-10)
    # In so many tables the exact test is near it.
    assert found.p_two_sided == pytest.approx(theirs.pvalue, rel=0.05)


@pytest.mark.parametrize(("n", "shift"), [(2, 0), (30, 0), (30, 5), (200, 60)])
def test_equal_tasks_far_into_the_tail(n, shift):
    """Tasks of one run in b and R in a, one pass each, give a binomial distribution, which SciPy has in logarithms."""
    m = 3
    passes = np.zeros(n, dtype=int)
    passes[:shift] = 1
    found = cmh_test(passes, np.full(n, m), 1 - passes, np.ones(n, dtype=int))
    binomial = stats.binom(n, m / (m + 1))
    expected = np.logaddexp(binomial.logcdf(shift - 1), binomial.logpmf(shift) - math.log(2))
    assert math.log(found.p_less) == pytest.approx(expected, abs=1e-9)


def test_the_smallest_p_is_not_zero():
    found = cmh_test(np.zeros(2000, dtype=int), np.full(2000, 20), np.full(2000, 20), np.full(2000, 20))
    assert 0 < found.p_less <= 1e-300
    assert 0 < found.p_two_sided <= 1e-300
    assert found.p_greater == 1.0


def test_a_large_benchmark_follows_the_normal_distribution():
    rng = np.random.default_rng(8)
    rates = rng.beta(0.3, 0.2, 100_000)
    runs = np.full(100_000, 20)
    found = cmh_test(rng.binomial(20, rates), runs, rng.binomial(20, rates), runs)
    assert found.p_two_sided == pytest.approx(found.chi2_p, rel=1e-3)


def test_unequal_runs_in_thousands_of_margins():
    rng = np.random.default_rng(9)
    na, nb = rng.integers(0, 12, 4000), rng.integers(0, 12, 4000)
    rates = rng.beta(0.3, 0.2, 4000)
    found = cmh_test(rng.binomial(na, rates), na, rng.binomial(nb, rates), nb)
    assert found.n_tasks == int(np.sum((na > 0) & (nb > 0)))
    assert found.p_two_sided == pytest.approx(found.chi2_p, rel=2e-2)


def test_the_difference_is_that_of_scores_at_equal_runs():
    rng = np.random.default_rng(4)
    a, b, runs = rng.integers(0, 6, 50), rng.integers(0, 6, 50), np.full(50, 5)
    assert cmh_test(a, runs, b, runs).difference == pytest.approx(score(a, runs).value - score(b, runs).value, abs=1e-12)


def test_the_difference_and_its_error_are_statsmodels_style_sato():
    """One task: Sato's variance is (p(1-q) + q(1-p))/2 and a term in the difference, over the weight."""
    found = cmh_test([3], [10], [8], [10])
    assert found.difference == pytest.approx(-0.5)
    weight, level, slope = 5.0, (3 * 2 + 8 * 7) / 40, (100 * 8 - 100 * 3) / 400
    assert found.se == pytest.approx(math.sqrt((-0.5 * slope + level) / weight**2))


def test_the_error_of_the_difference_is_what_simulation_gives():
    rng = np.random.default_rng(5)
    runs = np.full(120, 6)
    rates = rng.beta(2, 2, 120)
    found = [cmh_test(rng.binomial(6, rates), runs, rng.binomial(6, rates), runs) for _ in range(300)]
    spread = np.std([one.difference for one in found], ddof=1)
    assert np.mean([one.se for one in found]) == pytest.approx(spread, rel=0.1)


def test_tasks_that_one_arm_lacks_do_not_count():
    found = cmh_test([1, 5, 0], [5, 5, 0], [4, 0, 3], [5, 0, 5])
    assert found == cmh_test([1], [5], [4], [5])
    empty = cmh_test([1], [2], [0], [0])
    assert (empty.n_tasks, empty.p_two_sided, empty.difference, empty.undefined) == (0, None, None, NO_COMMON_TASK)
    assert cmh_test([], [], [], []).undefined == NO_COMMON_TASK
    with pytest.raises(ValueError, match="one row per task"):
        cmh_test([1], [2], [1, 1], [2, 2])


def test_mid_p_keeps_its_level():
    """Type I error of the two-sided test at 0.05, by the exact distribution at each margin of one task set."""
    rng = np.random.default_rng(6)
    rates, runs = rng.beta(0.3, 0.2, 164), np.full(164, 5)
    alarms = 0
    for _ in range(500):
        alarms += cmh_test(rng.binomial(5, rates), runs, rng.binomial(5, rates), runs).p_two_sided <= 0.05
    assert 0.03 < alarms / 500 < 0.07
