"""Exactness of score and w, and the identities that tie w to other statistics of repeated binary outcomes."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from evalnoise.stats.variance import (
    MOST_COUNTED,
    clopper_pearson,
    score,
    task_variances,
    variable_share,
    within_task_variance,
)


@st.composite
def outcomes(draw, least_runs=2, most_tasks=12):
    """Binary outcomes of shape (N, R)."""
    n, r = draw(st.integers(1, most_tasks)), draw(st.integers(least_runs, 9))
    cells = draw(st.lists(st.booleans(), min_size=n * r, max_size=n * r))
    return np.array(cells, dtype=np.int64).reshape(n, r)


def measured(y):
    return within_task_variance(y.sum(axis=1), np.full(len(y), y.shape[1]))


@st.composite
def counts(draw):
    """Unbalanced pass counts: tasks with none, one or more runs."""
    runs = draw(st.lists(st.integers(0, 7), min_size=1, max_size=12))
    passes = [draw(st.integers(0, n)) for n in runs]
    return np.array(passes, dtype=np.int64), np.array(runs, dtype=np.int64)


@settings(deadline=None)
@given(outcomes())
def test_w_is_the_mean_sample_variance_and_an_exact_ratio(y):
    found = measured(y)
    n, r = y.shape
    k = y.sum(axis=1)
    assert found.w == pytest.approx(y.var(axis=1, ddof=1).mean(), abs=1e-15)
    assert found.lattice_sum == sum(int(x) * (r - int(x)) for x in k)
    assert found.w == float(Fraction(found.lattice_sum, n * r * (r - 1)))
    assert found.variable_tasks == sum(0 < x < r for x in k)
    assert found.score_run_sd == pytest.approx((found.w / n) ** 0.5, rel=1e-15)


@settings(deadline=None)
@given(counts())
def test_unbalanced_w_and_score_are_exact(table):
    k, n = table
    w, mean = within_task_variance(k, n), score(k, n)
    twice = [Fraction(int(a) * int(b - a), int(b) * int(b - 1)) for a, b in zip(k, n, strict=True) if b >= 2]
    once = [Fraction(int(a), int(b)) for a, b in zip(k, n, strict=True) if b >= 1]
    assert w.w == (float(sum(twice) / len(twice)) if twice else None)
    assert mean.value == (float(sum(once) / len(once)) if once else None)
    assert (w.n_tasks, mean.n_tasks) == (len(twice), len(once))
    assert bool(w.undefined) == (not twice)
    assert bool(mean.undefined) == (not once)


@settings(deadline=None)
@given(outcomes())
def test_identities(y):
    """Notes, section 6: binary outcomes, equal numbers of runs."""
    n, r = y.shape
    w, means = measured(y).w, y.mean(axis=1)
    agree = np.mean([(y[:, i] == y[:, j]).mean() for i in range(r) for j in range(r) if i != j])
    assert agree == pytest.approx(1 - 2 * w, abs=1e-12), "test-retest agreement"
    assert 2 * agree - 1 == pytest.approx(1 - 4 * w, abs=1e-12), "pairwise PABAK"
    b = y.var(axis=1).mean() / (r - 1)
    assert y.var(axis=1).mean() + b == pytest.approx(w, abs=1e-12), "prediction noise"
    assert means.var() - b == pytest.approx(means.var() - w / r, abs=1e-12), "data noise"
    assert measured(y).variable_tasks / n == np.mean([len(set(row)) > 1 for row in y.tolist()]), "flip rate"
    if n > 1 and y.var() > 0:
        between = r * means.var(ddof=1)
        icc = (between - w) / (between + (r - 1) * w)
        task = means.var(ddof=1) - w / r
        assert w / (w + task) == pytest.approx(1 - icc, abs=1e-9), "share of the runs' noise is 1 - ICC(1,1)"


@settings(deadline=None)
@given(outcomes())
def test_cochrans_q(y):
    n, r = y.shape
    w = measured(y).w
    if w == 0:
        return
    columns, rows = y.sum(axis=0), y.sum(axis=1)
    textbook = (r - 1) * (r * (columns**2).sum() - y.sum() ** 2) / (r * y.sum() - (rows**2).sum())
    run_scores = y.mean(axis=0)
    assert n * ((run_scores - run_scores.mean()) ** 2).sum() / w == pytest.approx(textbook, abs=1e-9)


def test_runs_are_not_averaged_before_the_variance():
    y = np.array([[1, 0, 1, 0], [0, 1, 0, 1]])
    assert measured(y).w == pytest.approx(1 / 3)
    assert y.mean(axis=0).var(ddof=1) == 0


def test_one_run_is_refused_with_a_reason():
    found = within_task_variance([1, 0, 1], [1, 1, 1])
    assert (found.w, found.score_run_sd, found.n_tasks, found.lattice_sum) == (None, None, 0, None)
    assert found.undefined == "no task was measured twice: a variance needs 2 runs"
    assert variable_share([1, 0, 1], [1, 1, 1]).undefined == found.undefined
    with pytest.raises(ValueError, match="task 1: a variance needs 2 measured runs"):
        task_variances([1, 1], [2, 1])


def test_no_task_at_all():
    assert score([], []).undefined == "no task was measured"
    assert score([0, 0], [0, 0]).value is None
    assert within_task_variance([], []).w is None


def test_unmeasured_runs_are_no_failures():
    """8 passes of 8 measured runs is a sure task, whatever became of the other 12."""
    assert score([8], [8]).value == 1
    assert within_task_variance([8, 0], [8, 20]).w == 0


@pytest.mark.parametrize(
    ("passes", "runs", "message"),
    [
        ([3], [2], "task 0: 3 passes of 2 runs cannot be"),
        ([1, -1], [2, 2], "task 1: -1 passes of 2 runs cannot be"),
        ([1.0], [2], "passes are counts: integers, not float64"),
        ([1], [float("nan")], "runs are counts: integers, not float64"),
        ([1, 1], [2], "one shape"),
        ([[1]], [[2]], "one shape"),
    ],
)
def test_impossible_counts_are_refused(passes, runs, message):
    with pytest.raises(ValueError, match=message):
        within_task_variance(passes, runs)


@pytest.mark.parametrize(("n", "v"), [(1, 0), (1, 1), (10, 3), (164, 34), (200, 1)])
def test_clopper_pearson_ends_are_where_the_tails_are_half_alpha(n, v):
    lo, hi = clopper_pearson(v, n)
    assert lo == 0 if v == 0 else binom.sf(v - 1, n, lo) == pytest.approx(0.025, rel=1e-9)
    assert hi == 1 if v == n else binom.cdf(v, n, hi) == pytest.approx(0.025, rel=1e-9)


def test_clopper_pearson_refuses_nonsense():
    with pytest.raises(ValueError, match="3 of 2 is no proportion"):
        clopper_pearson(3, 2)
    with pytest.raises(ValueError, match="confidence level"):
        clopper_pearson(1, 2, level=95)


def test_share_of_variable_tasks_says_when_runs_differ():
    assert variable_share([1, 2], [2, 2]).note == ""
    assert "differ in their number of runs" in variable_share([1, 2], [2, 3]).note
    assert variable_share([1, 2, 1], [2, 2, 1]).note == "", "a task with one run does not enter"


@pytest.mark.parametrize(
    ("passes", "runs"),
    [
        ([2 * 10**9], [4 * 10**9]),
        ([5 * 10**9], [10**10]),
        ([1] * 40, [1 << 26] * 40),
        (np.array([1], dtype=np.uint64), np.array([2**64 - 1], dtype=np.uint64)),
    ],
)
@pytest.mark.parametrize("of", [task_variances, within_task_variance, score])
def test_more_runs_than_products_can_hold_are_refused_never_wrapped_around(of, passes, runs):
    with pytest.raises(ValueError, match="in all are more than the 1073741824 that are counted"):
        of(passes, runs)


@pytest.mark.parametrize("tasks", [1, 2, 32])
def test_the_most_runs_are_exact(tasks):
    n = MOST_COUNTED // tasks
    k = [n // 2 - i for i in range(tasks)]
    exact = [Fraction(a * (n - a), n * (n - 1)) for a in k]
    assert within_task_variance(k, [n] * tasks).w == float(sum(exact) / tasks)
    assert task_variances(k, [n] * tasks).tolist() == pytest.approx([float(s2) for s2 in exact], rel=1e-15)
