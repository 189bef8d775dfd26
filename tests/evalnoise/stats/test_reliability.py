"""pass@k and pass^k: enumeration of all k-subsets, unbiasedness by exact sums, and intervals that are wide enough."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalnoise.stats.estimate import PROVES_NOTHING, Covers, Method
from evalnoise.stats.intervals import ONE_TASK, score_benchmark
from evalnoise.stats.reliability import WIDEST, Of, chosen_ks, reliability, task_rates, task_values
from evalnoise.stats.variance import NO_TASK, clopper_pearson

DRAWN = {"seed": 7, "resamples": 300}


def both(found, name):
    """The rows of one name: for new tasks, for new runs."""
    rows = [estimate for label, estimate in found if label == name]
    return rows if len(rows) == 2 else (rows[0], None)


@pytest.mark.parametrize("runs", range(1, 8))
def test_values_are_shares_of_all_subsets(runs):
    for passes in range(runs + 1):
        outcomes = [1] * passes + [0] * (runs - passes)
        for k in range(1, runs + 1):
            subsets = list(combinations(outcomes, k))
            assert task_values([passes], [runs], k, of=Of.ANY)[0] == np.mean([max(s) for s in subsets])
            assert task_values([passes], [runs], k, of=Of.ALL)[0] == np.mean([min(s) for s in subsets])


@settings(deadline=None)
@given(st.integers(1, 12), st.data())
def test_unbiased_at_every_rate(runs, data):
    """Summed over all pass counts, exactly: p^k, and 1 - (1-p)^k."""
    k = data.draw(st.integers(1, runs))
    p = Fraction(data.draw(st.integers(0, 20)), 20)
    chances = [comb(runs, c) * p**c * (1 - p) ** (runs - c) for c in range(runs + 1)]
    for of, truth in ((Of.ALL, p**k), (Of.ANY, 1 - (1 - p) ** k)):
        values = task_values(list(range(runs + 1)), [runs] * (runs + 1), k, of=of)
        assert float(sum(c * Fraction(v) for c, v in zip(chances, values, strict=True))) == pytest.approx(float(truth), abs=1e-12)


def test_known_values():
    """By hand: 3 of 5 and 5 of 5 and 0 of 5 at k = 2."""
    found = reliability([3, 5, 0], [5, 5, 5], [2], **DRAWN)
    assert both(found, "pass@2")[0].value == float((Fraction(9, 10) + 1) / 3)
    assert both(found, "pass^2")[0].value == float((Fraction(3, 10) + 1) / 3)


def test_k_of_one_is_the_score():
    rng = np.random.default_rng(3)
    passes, runs = rng.binomial(10, 0.6, 60), np.full(60, 10)
    any_, all_ = (both(reliability(passes, runs, [1], **DRAWN), name)[1] for name in ("pass@1", "pass^1"))
    expected = score_benchmark(passes, runs)
    for found in (any_, all_):
        assert found.value == expected.value
        assert (found.lo, found.hi) == pytest.approx((expected.lo, expected.hi), abs=1e-12)
        assert (found.method, found.covers) == (Method.PLUG_IN, Covers.BENCHMARK)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 6), min_size=2, max_size=10), st.integers(1, 6))
def test_pass_at_k_is_one_minus_the_failures_pass_hat_k(passes, k):
    k_passes, runs = np.array(passes), np.full(len(passes), 6)
    any_, all_ = (both(reliability(x, runs, [k], **DRAWN), f"{n}{k}") for x, n in ((k_passes, "pass@"), (6 - k_passes, "pass^")))
    for one, other in zip(any_, all_, strict=True):
        assert one.value == pytest.approx(1 - other.value, abs=1e-12)
    assert (any_[1].lo, any_[1].hi) == pytest.approx((1 - all_[1].hi, 1 - all_[1].lo), abs=1e-9)
    assert both(reliability(k_passes, runs, [k], **DRAWN), f"pass^{k}")[0].value <= k_passes.mean() / 6 + 1e-12


def test_more_runs_than_there_are_is_undefined_and_counted():
    (name, found), (_, other) = reliability([2, 5, 4], [3, 5, 4], [4], **DRAWN)
    assert name == "pass@4"
    assert found.value is None
    assert found.undefined == other.undefined == "k = 4 needs 4 measured runs of every task: 1 task has fewer, of 3"
    assert found.n_replicates == 3


def test_tasks_without_a_run_are_left_out_and_counted():
    found = reliability([2, 0, 5], [5, 0, 5], [2], **DRAWN)
    population, benchmark = both(found, "pass@2")
    assert population.n_tasks == benchmark.n_tasks == 2
    assert "1 task without a measured run" in population.note
    assert both(reliability([0, 0], [0, 0], [2], **DRAWN), "pass@2")[0].undefined == NO_TASK
    assert both(reliability([2], [5], [2], **DRAWN), "pass@2")[0].undefined == ONE_TASK


def test_equal_tasks_prove_nothing_about_new_tasks_but_limit_new_runs():
    population, benchmark = both(reliability([5] * 40, [5] * 40, [5], **DRAWN), "pass^5")
    assert population.note.startswith(PROVES_NOTHING)
    assert benchmark.method == Method.EQUAL_P
    assert WIDEST in benchmark.note
    assert benchmark.hi == 1
    # Wilson's lower end for 40 of 40.
    assert benchmark.lo == pytest.approx(40 / (40 + 1.959963984540054**2))


@pytest.mark.parametrize(("runs", "k"), [(5, 2), (5, 5), (8, 2), (10, 5)])
def test_the_interval_for_new_runs_covers(runs, k):
    rng = np.random.default_rng(runs * 100 + k)
    rates = rng.beta(0.3, 0.2, 120)
    missed = np.zeros(2)
    for _ in range(200):
        interval = both(reliability(rng.binomial(runs, rates), np.full(120, runs), [k], seed=1, resamples=1), f"pass^{k}")[1]
        missed += [np.mean(rates**k) < interval.lo, np.mean(rates**k) > interval.hi]
    assert missed.max() / 200 <= 0.06


@pytest.mark.parametrize(("rate", "tasks", "runs", "k"), [(0.5, 12, 8, 2), (0.2, 40, 8, 2), (0.2, 30, 20, 5)])
def test_few_tasks_that_show_the_variance_do_not_make_it_narrow(rate, tasks, runs, k):
    """A task that varies but never passes k times in a row adds nothing to the plug-in variance, and something to the true one."""
    rng = np.random.default_rng(tasks)
    missed = np.zeros(2)
    for _ in range(300):
        interval = both(reliability(rng.binomial(runs, rate, tasks), np.full(tasks, runs), [k], seed=1, resamples=1), f"pass^{k}")[
            1
        ]
        missed += [rate**k < interval.lo, rate**k > interval.hi]
    assert missed.max() / 300 <= 0.05


@pytest.mark.parametrize(
    ("open_", "runs", "method"), [(23, 8, "EQUAL_P"), (24, 8, "PLUG_IN"), (39, 7, "EQUAL_P"), (40, 7, "PLUG_IN")]
)
def test_only_tasks_between_0_and_1_count_for_the_plug_in(open_, runs, method):
    passes = np.r_[np.full(open_, 4), np.full(30, 1), np.zeros(20, int)]
    assert both(reliability(passes, np.full(len(passes), runs), [2], **DRAWN), "pass^2")[1].method == Method[method]


@pytest.mark.parametrize(("few", "k", "rate"), [(2, 1, 0.5), (1, 1, 0.5), (2, 2, 0.7)])
def test_the_widest_interval_covers_at_unequal_runs(few, k, rate):
    """The noise sits in the tasks with few runs: all the others always fail. An equal share of it for each task is too little."""
    rng = np.random.default_rng(few * 10 + k)
    rates, runs = np.r_[np.full(10, rate), np.zeros(90)], np.r_[np.full(10, few), np.full(90, 20)]
    missed = np.zeros(2)
    for _ in range(250):
        interval = both(reliability(rng.binomial(runs, rates), runs, [k], seed=1, resamples=1), f"pass^{k}")[1]
        assert interval.method == Method.EQUAL_P
        missed += [np.mean(rates**k) < interval.lo, np.mean(rates**k) > interval.hi]
    assert missed.max() / 250 <= 0.05


def test_unequal_runs_that_hardly_differ_have_wilsons_interval():
    equal = both(reliability([3] * 20 + [0] * 20, [10**6] * 40, [2], **DRAWN), "pass^2")[1]
    other = both(reliability([3] * 20 + [0] * 20, [10**6] * 20 + [10**6 + 1] * 20, [2], **DRAWN), "pass^2")[1]
    assert other.hi == pytest.approx(equal.hi, rel=1e-4)
    for counts, ends in (([0] * 40, (0.0, None)), ([5] * 20 + [6] * 20, (None, 1.0))):
        found = both(reliability(counts, [5] * 20 + [6] * 20, [2], **DRAWN), "pass^2")[1]
        for end, want in zip((found.lo, found.hi), ends, strict=True):
            assert want is None or end == want
        assert 0 <= found.lo < found.hi <= 1


def test_the_variance_is_unbiased():
    """U^2 - C(c,2k)/C(n,2k) against the exact variance of U, summed over all pass counts."""
    runs, k, p = 9, 3, 0.6
    chances = np.array([comb(runs, c) * p**c * (1 - p) ** (runs - c) for c in range(runs + 1)])
    counts = np.arange(runs + 1)
    values = task_values(counts, [runs] * 10, k, of=Of.ALL)
    doubled = task_values(counts, [runs] * 10, 2 * k, of=Of.ALL)
    exact = chances @ values**2 - (chances @ values) ** 2
    assert chances @ (values**2 - doubled) == pytest.approx(exact, abs=1e-12)
    # Hoeffding's bound, for less than 2k runs.
    assert exact <= k / runs * p**k * (1 - p**k)


def test_rates_of_tasks_have_their_exact_intervals():
    found = task_rates([3, 0, 0, 5], [5, 0, 5, 5], level=0.9)
    assert found.tasks.tolist() == [0, 2, 3]
    assert found.rates.tolist() == [0.6, 0.0, 1.0]
    for place, (c, n) in enumerate([(3, 5), (0, 5), (5, 5)]):
        assert (found.lo[place], found.hi[place]) == clopper_pearson(c, n, level=0.9)
    assert task_rates([], []).rates.size == 0


def test_which_ks_are_shown():
    assert chosen_ks(1) == ()
    assert chosen_ks(3) == (2, 3)
    assert chosen_ks(10) == (2, 5, 10)
    assert chosen_ks(12) == (2, 5, 10, 12)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="1 or more"):
        reliability([1], [2], [0], **DRAWN)
    with pytest.raises(ValueError, match="say nothing about"):
        task_values([1], [2], 3, of=Of.ALL)
    with pytest.raises(ValueError, match="level"):
        task_rates([1], [2], level=1.0)
