"""Intervals for w and the score: right formula for each regime, honest about what they prove, and covering."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalnoise.stats import intervals
from evalnoise.stats.intervals import (
    score_benchmark,
    score_cautious,
    score_population,
    score_run_sd,
    w_benchmark,
    w_gaffke,
    w_population,
    w_population_limit,
)
from evalnoise.stats.planning.budget import budget_for
from evalnoise.stats.variance import task_variances

Z = 1.959963984540054


def balanced(passes, runs):
    return np.array(passes), np.full(len(passes), runs)


@settings(deadline=None)
@given(st.integers(2, 9), st.data())
def test_benchmark_interval_solves_its_equation(runs, data):
    passes = data.draw(st.lists(st.integers(0, runs), min_size=1, max_size=40))
    found = w_benchmark(*balanced(passes, runs))
    if found.value == 0 or found.undefined:
        return
    n, w = len(passes), found.value
    for end in (found.lo, found.hi):
        se = ((end / runs - end**2 * (4 * runs - 6) / (runs * (runs - 1))) / n) ** 0.5
        if end < 0.25:
            assert abs(w - end) == pytest.approx(Z * se, abs=1e-9)
        else:
            assert w - end <= Z * se + 1e-9
    assert (found.method, found.covers) == ("equal-p variance bound", "benchmark")


def test_plug_in_from_ten_runs_and_twenty_variable_tasks():
    passes, runs = balanced([5] * 4 + [2] * 8 + [9] * 7 + [1] + [0] * 80, 10)
    found = w_benchmark(passes, runs)
    assert found.method == "plug-in variance"
    k, r = passes.astype(float), 10
    s2 = k * (r - k) / (r * (r - 1))
    v2 = k * (k - 1) * (r - k) * (r - k - 1) / (r * (r - 1) * (r - 2) * (r - 3))
    se = ((s2 / r - v2 * (4 * r - 6) / (r * (r - 1))).sum()) ** 0.5 / 100
    assert [found.lo, found.hi] == pytest.approx([found.value - Z * se, found.value + Z * se], abs=1e-12)
    assert w_benchmark(*balanced([5] * 19 + [0] * 81, 10)).method == "equal-p variance bound"
    assert w_benchmark(*balanced([4] * 30 + [0] * 70, 9)).method == "equal-p variance bound"


def test_plug_in_never_claims_certainty():
    """Rates near 1/2: the unbiased variance comes out negative, where the true one is p(1-p) / (2 R (R-1)) at least."""
    found = w_benchmark(*balanced([5] * 20 + [0] * 80, 10))
    least = (found.value / (2 * 10 * 9) / 100) ** 0.5
    assert found.method == "plug-in variance"
    assert [found.lo, found.hi] == pytest.approx([found.value - Z * least, found.value + Z * least])
    beyond = w_benchmark(*balanced([5] * 25, 10))
    assert beyond.value > 0.25
    assert beyond.lo is None or beyond.lo <= 0.25


@pytest.mark.parametrize(
    ("rates", "runs"),
    [
        (np.full(25, 0.5), 10),
        (np.r_[np.full(25, 0.5), np.zeros(139)], 20),
        (np.r_[np.full(30, 0.5), np.zeros(30)], 5),
        (np.r_[np.full(5, 0.3), np.ones(95)], 10),
        (np.linspace(0, 1, 44), 10),
        (np.full(20, 0.02), 3),
        (np.r_[np.full(40, 0.3), np.zeros(124)], 20),
    ],
)
def test_benchmark_interval_covers_new_runs_of_the_same_tasks(rates, runs):
    generator = np.random.default_rng(17)
    truth = np.mean(rates * (1 - rates))
    found = [w_benchmark(*balanced(generator.binomial(runs, rates), runs)) for _ in range(600)]
    assert np.mean([e.lo is not None and e.lo <= truth <= e.hi for e in found]) >= 0.93


def test_benchmark_interval_covers_when_some_runs_are_missing():
    generator = np.random.default_rng(18)
    rates, runs = np.linspace(0, 0.3, 60), np.repeat([2, 5, 9], 20)
    truth = np.mean(rates * (1 - rates))
    found = [w_benchmark(generator.binomial(runs, rates), runs) for _ in range(400)]
    assert np.mean([e.lo <= truth <= e.hi for e in found]) >= 0.93


def test_population_intervals_cover_new_tasks():
    generator = np.random.default_rng(19)
    kinds = np.array([0.0, 1.0, 0.5, 0.2])
    shares = np.array([0.4, 0.2, 0.2, 0.2])
    truth = float((kinds * (1 - kinds)) @ shares)
    hits = np.zeros(2)
    for seed in range(200):
        passes, runs = balanced(generator.binomial(5, generator.choice(kinds, 80, p=shares)), 5)
        for i, make in enumerate((w_population, w_gaffke)):
            found = make(passes, runs, seed=seed, resamples=1000)
            hits[i] += found.lo <= truth <= found.hi
    assert hits[0] / 200 >= 0.89
    assert hits[1] / 200 >= 0.92


def test_gaffke_is_not_degenerate_where_nothing_varied():
    found = w_gaffke(*balanced([0] * 164, 20), seed=0)
    assert found.lo == 0
    # The pseudo-task's weight is Beta(1, 164).
    assert found.hi == pytest.approx((1 - 0.025 ** (1 / 164)) * 100 / 380, rel=0.03)
    assert "conjecture" in found.note
    one_short = w_gaffke([0] * 164, [20] * 163 + [2], seed=0)
    assert one_short.hi == pytest.approx(found.hi * 0.5 / (100 / 380)), "with two runs a variance of 1/2 can be seen"


def test_gaffke_contains_the_percentile_interval_s_upper_end(published):
    live = published("second", "HumanEval+", "temperature 0")
    assert w_gaffke(*live, seed=1).hi > w_population(*live, seed=1).hi
    assert w_gaffke(*live, seed=1).lo > 0 == w_population(*live, seed=1).lo


@pytest.mark.parametrize(
    ("variable", "note"),
    [
        (0, "proves nothing: no task varied"),
        (1, "only 1 variable task: under 15"),
        (14, "only 14 variable tasks"),
        (15, "under 20 quote Gaffke's interval first"),
        (20, ""),
    ],
)
def test_percentile_interval_says_when_not_to_trust_it(variable, note):
    found = w_population(*balanced([1] * variable + [0] * (60 - variable), 5), seed=0, resamples=200)
    assert note in found.note
    assert bool(note) == bool(found.note)
    assert found.degenerate == (variable == 0)
    if variable == 0:
        assert (found.lo, found.hi) == (0, 0)


def test_nothing_varied_is_a_one_sided_limit():
    table = balanced([5] * 10 + [0] * 20, 5)
    for found in (w_benchmark(*table), w_population_limit(*table)):
        assert found.value == found.lo == 0
        assert 0 < found.hi < 0.25
        assert found.note.startswith("one-sided")
        assert found.method == "one-sided limit, nothing varied"
    assert w_population_limit(*balanced([1] * 9, 5)).undefined == "some task varied: this limit is for none"


def test_too_few_runs():
    found = w_benchmark(*balanced([2] * 4, 2))
    assert (found.value, found.lo, found.hi) == (0, None, None)
    assert found.undefined == "too few runs to bound w"


def test_runs_that_avoid_each_other_are_not_independent():
    found = w_benchmark(*balanced([2] * 900, 4))
    assert found.value == pytest.approx(1 / 3)
    assert found.undefined.startswith("w is larger than independent runs would give")


@pytest.mark.parametrize("make", [w_benchmark, w_population_limit, score_run_sd])
def test_one_run_has_no_variance(make):
    found = make([1, 0, 1], [1, 1, 1])
    assert (found.value, found.lo, found.hi, found.level) == (None, None, None, None)
    assert "2 runs" in found.undefined


@pytest.mark.parametrize("make", [w_population, w_gaffke])
def test_one_run_has_no_variance_to_resample(make):
    found = make([1, 0, 1], [1, 1, 1], seed=0)
    assert (found.value, found.seed, found.resamples) == (None, None, None)
    assert "2 runs" in found.undefined


def test_one_task_is_no_population():
    assert w_population([3], [10], seed=0).undefined == "one task says nothing about other tasks"
    assert score_population([3], [10], seed=0).value == 0.3
    assert score_population([3], [10], seed=0).lo is None
    assert score_population([0], [0], seed=0).undefined == "no task was measured"


def test_score_over_new_runs():
    passes, runs = balanced([5, 10, 0, 9], 10)
    found = score_benchmark(passes, runs)
    se = (task_variances(passes, runs).mean() / 40) ** 0.5
    assert [found.lo, found.hi] == pytest.approx([0.6 - Z * se, 0.6 + Z * se])
    assert score_benchmark(*balanced([10, 0], 10)).note.startswith("proves nothing")
    assert score_benchmark([1, 0], [1, 1]).undefined
    single = score_benchmark([3, 1], [5, 1])
    assert "1 tasks have one run" in single.note
    assert single.lo == pytest.approx(0.8 - Z * ((0.3 / 5 + 0.3) / 4) ** 0.5)


@pytest.mark.parametrize(
    ("rates", "runs"),
    [([0.988] * 50, 5), ([1.0] * 160 + [0.9] * 4, 10), ([0.99] * 100, 3), ([0.0] * 85 + [0.95] * 15, 2)],
)
def test_the_cautious_score_covers_where_few_tasks_vary(rates, runs):
    """The plain interval takes tasks that have not varied yet for tasks that cannot: it misses 0.06 to 0.2 a side, and says so."""
    rng, truth, missed = np.random.default_rng(8), np.mean(rates), np.zeros((2, 2))
    # Only how many tasks have which count matters, so the same studies need not be computed twice.
    studies = np.sort(rng.binomial(runs, rates, (200, len(rates))), axis=1)
    for passes, times in zip(*np.unique(studies, axis=0, return_counts=True), strict=True):
        table = passes, [runs] * len(rates)
        plain, cautious = score_benchmark(*table), score_cautious(*table)
        assert "quote the equal-p variance bound's" in plain.note
        missed += times * np.array([[truth < one.lo - 1e-12, truth > one.hi + 1e-12] for one in (plain, cautious)])
    assert missed[0].max() / 200 > 0.04
    assert missed[1].max() / 200 <= 0.04


def test_a_plain_score_says_when_few_tasks_varied():
    for varied, said in ((1, "only 1 task varied"), (8, "only 8 tasks varied: under 20 this interval is too narrow"), (20, "")):
        found = score_benchmark(*balanced([9] * varied + [10] * 40, 10))
        assert found.note.startswith(said)
        assert bool(found.note) == bool(said)
    still = score_benchmark(*balanced([10, 0], 10))
    assert still.note.endswith("no task varied: under 20 this interval is too narrow; quote the equal-p variance bound's")


def test_the_cautious_score_puts_the_limit_of_w_in_its_place():
    passes, runs = balanced([9] * 8 + [10] * 41, 10)
    found, w = score_cautious(passes, runs), w_benchmark(passes, runs)
    assert (found.method, found.covers) == ("equal-p variance bound", "benchmark")
    assert found.lo == pytest.approx(482 / 490 - Z * (w.hi / 490) ** 0.5)
    assert found.hi == pytest.approx(482 / 490 + Z * (w.hi / 490) ** 0.5)
    still = score_cautious(*balanced([10] * 49, 10))
    limit = w_benchmark(*balanced([10] * 49, 10), level=0.975).hi
    assert still.lo == pytest.approx(1 - Z * (limit / 490) ** 0.5)
    # Two runs of one task exclude no w.
    assert score_cautious([2], [2]).lo == pytest.approx(max(0.0, 1 - Z * (0.25 / 2) ** 0.5))
    single = score_cautious([3, 1], [5, 1])
    limit = w_benchmark([3], [5]).hi
    w = 0.3
    assert single.lo == pytest.approx(max(0.0, 0.8 - Z * (((0.3 / 5 + 0.3) + (max(w, limit) - w) * 1.2) / 4) ** 0.5))
    assert score_cautious([1, 0], [1, 1]).undefined == score_benchmark([1, 0], [1, 1]).undefined != ""


def test_score_over_new_tasks():
    found = score_population(*balanced([10] * 30 + [0] * 70, 10), seed=0)
    assert [found.lo, found.hi] == pytest.approx([0.21, 0.39], abs=0.011)
    assert score_population(*balanced([3] * 9, 10), seed=0).note == "proves nothing: every task has the same mean"


def test_run_to_run_spread_follows_w():
    table = balanced([5] * 30 + [0] * 70, 10)
    w, sd = w_benchmark(*table), score_run_sd(*table)
    assert [sd.value, sd.lo, sd.hi] == pytest.approx([(x / 100) ** 0.5 for x in (w.value, w.lo, w.hi)])
    assert sd.covers == "benchmark"


def test_unmeasured_tasks_are_left_out():
    whole = w_population([3, 5, 0, 9], [10, 10, 10, 10], seed=1, resamples=500)
    assert w_population([3, 5, 0, 9, 0, 1], [10, 10, 10, 10, 0, 1], seed=1, resamples=500) == whole


def test_tasks_with_the_same_variance_and_unequal_runs():
    found = w_population([1, 1], [2, 2], seed=0, resamples=100)
    assert (found.lo, found.hi) == (0.5, 0.5)
    column, divisor = intervals.variance_column(np.array([1, 1]), np.array([2, 3]))
    assert (column.tolist(), divisor) == ([3, 2], 6), "integers over the least common multiple of 2 and 6"


def test_an_estimate_that_no_true_w_can_have_says_so():
    """Two passes of four on each of three tasks: s2 is 1/3, though p (1-p) is at most 1/4."""
    found = intervals.w_benchmark([2, 2, 2], [4, 4, 4])
    assert found.value == pytest.approx(1 / 3)
    assert found.hi == 0.25
    assert found.note == intervals.ABOVE_MAXIMUM == "w is above 1/4, which no true w is: too few replicates"
    assert intervals.w_gaffke([2, 2, 2], [4, 4, 4], seed=1, resamples=100).note.startswith(intervals.ABOVE_MAXIMUM)
    paper = intervals.w_population([2, 2, 2], [4, 4, 4], seed=1, resamples=100)
    assert paper.lo == paper.hi == pytest.approx(1 / 3)
    assert paper.degenerate
    assert intervals.ABOVE_MAXIMUM in paper.note
    assert "the budget is higher than any can be" in budget_for(paper, n_tasks=3, delta=0.02).note
    below = intervals.w_benchmark([2, 2, 0], [4, 4, 4])
    assert (below.value < 0.25, below.note) == (True, "")
    assert not intervals.w_population([2, 2, 0], [4, 4, 4], seed=1, resamples=100).degenerate
