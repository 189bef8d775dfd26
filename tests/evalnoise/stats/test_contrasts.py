"""Contrasts: untruncated, on the common tasks, with a finding that never says more than the interval."""

import numpy as np
import pytest
from scipy import stats

from evalnoise.stats.contrasts import (
    FEW_VARIED,
    SMALL_STUDY,
    Finding,
    classify,
    paired_t,
    score_contrast,
    score_contrast_benchmark,
    sentence,
    w_contrast,
    w_contrast_benchmark,
)
from evalnoise.stats.estimate import Estimate
from evalnoise.stats.intervals import w_benchmark
from evalnoise.stats.planning.ranking import order
from evalnoise.stats.variance import score, within_task_variance

N = 60
TEN = np.full(N, 10)


@pytest.fixture
def noisy():
    return np.random.default_rng(1).binomial(10, np.linspace(0.1, 0.9, N))


@pytest.fixture
def calm():
    return np.where(np.linspace(0, 1, N) > 0.5, 10, 0)


def interval(lo, hi, note=""):
    return Estimate(value=(lo + hi) / 2, lo=lo, hi=hi, level=0.95, n_tasks=9, n_replicates=9, note=note)


@pytest.mark.parametrize(
    ("result", "finding"),
    [
        (interval(0.1, 0.2), "real"),
        (interval(-0.2, -0.1), "real"),
        (interval(-0.1, 0.2), "not resolved"),
        (interval(0.0, 0.2), "not resolved"),
        (interval(-0.2, 0.0), "not resolved"),
        (interval(0.1, 0.2, "proves nothing: x"), "proves nothing"),
        (Estimate(value=0.1, n_tasks=1, n_replicates=9, undefined="x"), "proves nothing"),
    ],
)
def test_finding(result, finding):
    assert classify(result) == finding


def test_a_noisy_against_a_calm_condition(noisy, calm):
    for made in (w_contrast(noisy, TEN, calm, TEN, seed=0), w_contrast_benchmark(noisy, TEN, calm, TEN)):
        assert made.result.value == within_task_variance(noisy, TEN).w
        assert made.finding is Finding.REAL
        assert made.result.lo < made.result.value < made.result.hi


def test_negative_differences_are_kept(noisy, calm):
    for made in (
        w_contrast(calm, TEN, noisy, TEN, seed=0),
        w_contrast_benchmark(calm, TEN, noisy, TEN),
        paired_t(calm, TEN, noisy, TEN, of="w"),
    ):
        assert made.result.hi < 0
        assert made.finding is Finding.REAL


def test_pairing_narrows_a_score_contrast(noisy):
    """Tasks differ far more than conditions: unpaired, the interval would be ten times as wide."""
    other = np.clip(noisy + 1, 0, 10)
    made = score_contrast(other, TEN, noisy, TEN, seed=0)
    assert made.result.value == pytest.approx(score(other, TEN).value - score(noisy, TEN).value)
    assert made.result.hi - made.result.lo < 0.03
    assert paired_t(other, TEN, noisy, TEN).result.hi - paired_t(other, TEN, noisy, TEN).result.lo < 0.03


def test_score_over_new_runs_has_the_paper_s_standard_error(noisy, calm):
    made = score_contrast_benchmark(noisy, TEN, calm, TEN)
    w_a, w_b = within_task_variance(noisy, TEN).w, within_task_variance(calm, TEN).w
    half = 1.959963984540054 * ((w_a + w_b) / (N * 10)) ** 0.5
    assert (made.result.hi - made.result.lo) / 2 == pytest.approx(half)
    assert made.result.covers == "benchmark"


def test_w_over_new_runs_takes_each_end_from_the_side_that_makes_it(noisy, calm):
    made = w_contrast_benchmark(noisy, TEN, calm, TEN).result
    a, b = w_benchmark(noisy, TEN), w_benchmark(calm, TEN, level=0.975)
    assert made.lo == pytest.approx(a.value - np.hypot(a.value - a.lo, b.hi))
    assert made.hi == pytest.approx(a.value + (a.hi - a.value))


def test_batches_of_the_same_condition_are_not_resolved():
    """The null: at most about one in twenty contrasts of two batches may be called real."""
    generator = np.random.default_rng(4)
    rates = np.linspace(0.05, 0.95, N)
    real = np.zeros(5)
    for seed in range(200):
        a, b = generator.binomial(10, rates), generator.binomial(10, rates)
        arrays = (a, TEN, b, TEN)
        made = (
            w_contrast(*arrays, seed=seed, resamples=500),
            w_contrast_benchmark(*arrays),
            score_contrast(*arrays, seed=seed, resamples=500),
            score_contrast_benchmark(*arrays),
            paired_t(*arrays, of="w"),
        )
        real += [contrast.finding is Finding.REAL for contrast in made]
    assert (real / 200 < 0.1).all()
    assert real[3] > 0, "an interval that never excludes 0 would be too wide"


def test_nothing_varied_in_either_proves_nothing(calm):
    for made in (
        w_contrast(calm, TEN, 10 - calm, TEN, seed=0),
        w_contrast_benchmark(calm, TEN, 10 - calm, TEN),
        score_contrast_benchmark(calm, TEN, 10 - calm, TEN),
        paired_t(calm, TEN, calm, TEN, of="w"),
        score_contrast(calm, TEN, calm, TEN, seed=0),
    ):
        assert made.finding is Finding.PROVES_NOTHING
        assert made.result.value is not None
    assert "no task varied in either condition" in w_contrast(calm, TEN, calm, TEN, seed=0).result.note


def test_the_same_records_twice_prove_nothing(noisy):
    made = w_contrast(noisy, TEN, noisy, TEN, seed=0)
    assert (made.result.value, made.result.lo, made.result.hi) == (0, 0, 0)
    assert made.finding is Finding.PROVES_NOTHING


def test_one_run_proves_nothing_about_w():
    one = np.ones(N, dtype=int)
    made = w_contrast(one, one, 0 * one, one, seed=0)
    assert (made.result.value, made.finding) == (None, Finding.PROVES_NOTHING)
    assert made.result.undefined == "no task was measured twice in both conditions"
    assert score_contrast_benchmark(one, one, one, one).finding is Finding.PROVES_NOTHING


def test_few_variable_tasks_are_said(calm):
    some = calm.copy()
    some[:6] = 3
    made = w_contrast(some, TEN, calm, TEN, seed=0)
    assert made.result.note == "at most 6 variable tasks: under 15 the interval covers less often than it says"
    assert made.finding is Finding.REAL


def test_unequal_task_sets_meet_in_their_common_tasks(noisy, calm):
    runs_a, runs_b = TEN.copy(), TEN.copy()
    runs_a[:10], runs_b[50:] = 0, 0
    a, b = np.where(runs_a > 0, noisy, 0), np.where(runs_b > 0, calm, 0)
    made = w_contrast(a, runs_a, b, runs_b, seed=0)
    assert (made.n_tasks_a, made.n_tasks_b, made.result.n_tasks) == (50, 50, 40)
    assert made.result.value == within_task_variance(noisy[10:50], TEN[10:50]).w
    assert "over the 40 tasks that both have (of 50 and 50)" in made.result.note
    runs_b[10:] = 0
    none = score_contrast(a, runs_a, np.where(runs_b > 0, b, 0), runs_b, seed=0)
    assert (none.result.undefined, none.finding) == ("no task was measured in both conditions", Finding.PROVES_NOTHING)
    assert (none.n_tasks_a, none.n_tasks_b, none.result.n_tasks) == (50, 10, 0)


def test_arrays_that_are_not_aligned_are_refused(noisy):
    with pytest.raises(ValueError, match="one row per task, in one order"):
        w_contrast(noisy, TEN, noisy[1:], TEN[1:], seed=0)
    with pytest.raises(ValueError, match='of is "score" or "w"'):
        paired_t(noisy, TEN, noisy, TEN, of="W")


def test_one_common_task():
    one, two = np.array([1, 0]), np.array([2, 0])
    for made in (w_contrast(one, two, one, two, seed=0), score_contrast(one, two, one, two, seed=0), paired_t(one, two, one, two)):
        assert made.result.undefined == "one task says nothing about other tasks"
        assert made.finding is Finding.PROVES_NOTHING


def test_the_finding_in_words(noisy, calm):
    made = w_contrast(noisy, TEN, calm, TEN, seed=0)
    said = sentence(made, of="w", a="live", b="replay")
    result = made.result
    tail = "95 % over new tasks (percentile task bootstrap)"
    assert said == f"w, live - replay: real, {result.value:+.4f} [{result.lo:+.4f}, {result.hi:+.4f}], {tail}"
    nothing = sentence(w_contrast(calm, TEN, calm, TEN, seed=0), of="w", a="a", b="b")
    assert nothing.startswith("w, a - b: proves nothing, +0.0000 [+0.0000, +0.0000]")
    assert nothing.endswith("; no task varied in either condition")
    bench = sentence(score_contrast_benchmark(noisy, TEN, calm, TEN), of="score", a="a", b="b")
    assert "over new runs of these tasks" in bench
    undefined = sentence(w_contrast_benchmark(calm, TEN, calm, TEN), of="w", a="a", b="b")
    assert undefined == "w, a - b: proves nothing, +0.0000: no task varied in either condition"
    zeros = np.zeros(N, dtype=int)
    assert sentence(w_contrast(zeros, zeros, calm, TEN, seed=0), of="w", a="a", b="b").endswith(
        "no task was measured twice in both conditions"
    )


def test_a_small_study_says_that_its_interval_excludes_0_too_often():
    few, many = np.array([1, 2, 0, 3]), np.array([3, 3, 3, 3])
    small = score_contrast_benchmark(few, many, np.array([2, 1, 0, 3]), many).result
    assert small.note == SMALL_STUDY
    ten = np.array([10, 10, 10, 10])
    assert score_contrast_benchmark(few, ten, np.array([2, 1, 0, 3]), ten).result.note == FEW_VARIED


@pytest.mark.parametrize(("varied", "said"), [(19, FEW_VARIED), (20, "")])
def test_a_difference_made_of_few_varying_tasks_is_marked(varied, said):
    a, runs = np.r_[np.full(varied, 9), np.full(40, 10)], np.full(varied + 40, 10)
    assert score_contrast_benchmark(a, runs, runs, runs).result.note == said
    assert score_contrast_benchmark(runs, runs, a, runs).result.note == said


def test_an_estimate_above_its_own_interval_widens_nothing():
    # Three tasks, each with one or two of three runs passed: w = 1/3, above the 1/4 that rates can have.
    torn, all_, three = np.array([1, 1, 2]), np.array([3, 3, 3]), np.array([3, 3, 3])
    high, calm_ = w_benchmark(torn, three), w_benchmark(all_, three, level=0.975)
    assert high.hi < high.value
    made = w_contrast_benchmark(torn, three, all_, three).result
    # Above, neither side adds: w_a is over its upper end already, and w_b lies on its lower end.
    assert made.hi == pytest.approx(made.value)
    assert made.lo == pytest.approx(made.value - np.hypot(high.value - high.lo, calm_.hi - calm_.value))


def test_standard_errors_and_p_values():
    """By the distribution of the interval: it excludes 0 where p is below the level, and ends at 0 at p itself."""
    rng = np.random.default_rng(6)
    a, b = rng.binomial(8, rng.random(40)), rng.binomial(8, rng.random(40))
    runs = np.full(40, 8)
    for made in (score_contrast_benchmark, paired_t):
        found = made(a, runs, b, runs)
        level = 1 - found.p_value
        edge = made(a, runs, b, runs, level=level).result
        assert min(abs(edge.lo), abs(edge.hi)) == pytest.approx(0.0, abs=1e-9)
    t = stats.ttest_rel(a / 8, b / 8)
    assert paired_t(a, runs, b, runs).p_value == pytest.approx(t.pvalue)
    assert paired_t(a, runs, b, runs).se == pytest.approx((a - b).std(ddof=1) / 8 / np.sqrt(40))
    constant = paired_t(runs, runs, runs - 1, runs)
    assert (constant.se, constant.p_value) == (None, None)
    assert score_contrast_benchmark(runs, runs, runs, runs).p_value is None
    assert score_contrast(a, runs, b, runs, seed=1, resamples=50).p_value is None


@pytest.mark.parametrize(
    ("a", "runs_a", "b", "runs_b"),
    [([3, 4, 5], 10, [1, 2, 3], 10), ([3, 4, 6], 10, [2, 4, 8], 20), ([4, 6, 8], 12, [7, 12, 17], 30)],
)
def test_the_same_difference_in_every_task_proves_nothing(a, runs_a, b, runs_b):
    """0.3 - 0.1 and 0.4 - 0.2 are the same difference, which floats do not see."""
    counts = (a, np.full(len(a), runs_a), b, np.full(len(b), runs_b))
    found = paired_t(*counts)
    assert found.finding == Finding.PROVES_NOTHING
    assert (found.se, found.p_value) == (None, None)
    assert score_contrast(*counts, seed=0, resamples=99).finding == Finding.PROVES_NOTHING
    assert order(*counts, covers="population").se == pytest.approx(order(*counts).se)
    other = [*a[:-1], a[-1] + 1]
    assert paired_t(other, *counts[1:]).se > 0


def test_the_same_difference_of_w_in_every_task_proves_nothing():
    """k (10 - k) / 90: 9/90 - 0, and 25/90 - 16/90."""
    found = paired_t([1, 5], [10, 10], [0, 2], [10, 10], of="w")
    assert found.result.value == pytest.approx(0.1)
    assert found.finding == Finding.PROVES_NOTHING
    assert found.se is None
