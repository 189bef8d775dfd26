"""Drift over replicates: Q, trend and scan against other libraries, whole enumeration and simulation."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import cochrans_q

from evalnoise.stats.drift import (
    NO_COMPLETE,
    NONE_VARIED,
    ONE_REPLICATE,
    ORDER_UNKNOWN,
    RunSums,
    default_resamples,
    drift,
    permuted_runs,
    run_sums,
)
from evalnoise.stats.variance import within_task_variance


@st.composite
def complete(draw, most_tasks=12, most_runs=6):
    tasks, runs = draw(st.integers(1, most_tasks)), draw(st.integers(2, most_runs))
    rows = st.lists(st.integers(0, 1), min_size=runs, max_size=runs)
    return np.array(draw(st.lists(rows, min_size=tasks, max_size=tasks)))


def varies(cells):
    return bool(np.any(cells.min(axis=1) != cells.max(axis=1)))


@settings(deadline=None, max_examples=60)
@given(complete())
def test_identities_of_q(cells):
    """Cochran's own, N times the spread of run scores over w, and the mean over all whole-run A/A splits."""
    tasks, runs = cells.shape
    assume(varies(cells))
    found, expected = drift(cells, seed=3, resamples=1, effects=()), cochrans_q(cells)
    assert found.q.statistic == pytest.approx(expected.statistic, abs=1e-9)
    assert found.q.p == pytest.approx(expected.pvalue, abs=1e-9)
    w = within_task_variance(cells.sum(axis=1), np.full(tasks, runs)).w
    scores = cells.mean(axis=0)
    assert found.q.statistic == pytest.approx(tasks * ((scores - cells.mean()) ** 2).sum() / w, abs=1e-9)
    if runs % 2 == 0:
        halves = [list(half) for half in combinations(range(runs), runs // 2)]
        differences = [scores[half].mean() - np.delete(scores, half).mean() for half in halves]
        assert found.split_ratio == pytest.approx(np.mean(np.square(differences)) / (4 * w / (tasks * runs)), abs=1e-9)


def every_permutation(cells):
    """All outcomes permuted within each task, shape (P, N, R)."""
    rows = [sorted(set(permutations(row.tolist()))) for row in cells]
    return np.array(list(product(*rows)))


CELLS = np.array([[1, 1, 1, 0], [0, 0, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]])


def by_hand(cells):
    """Trend and scan, standardised by hand with the exact conditional moments of all permutations."""
    everything = every_permutation(cells).sum(axis=1)
    weights = np.arange(4) - 1.5
    trends, befores = everything @ weights, everything.cumsum(axis=1)[:, :-1]
    scans = -(befores - befores.mean(axis=0)) / befores.std(axis=0)
    furthest = scans[np.arange(len(scans)), np.abs(scans).argmax(axis=1)]
    return everything, trends / trends.std(), furthest


def test_moments_and_p_are_those_of_all_permutations():
    everything, trends, scans = by_hand(CELLS)
    here = next(i for i, sums in enumerate(everything) if sums.tolist() == CELLS.sum(axis=0).tolist())
    found = drift(CELLS, seed=5, resamples=20_000)
    assert found.trend.statistic == pytest.approx(trends[here], abs=1e-12)
    assert found.scan.statistic == pytest.approx(scans[here], abs=1e-12)
    squares = (everything**2).sum(axis=1)
    exact = [np.mean(squares >= squares[here])]
    exact += [np.mean(np.abs(z) >= np.abs(z[here]) - 1e-9) for z in (trends, scans)]
    for test, p in zip((found.q, found.trend, found.scan), exact, strict=True):
        assert test.p_permuted == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 20_000) + 1e-3)


def test_permuted_runs_have_the_distribution_of_all_permutations():
    everything, counts = np.unique(by_hand(CELLS)[0], axis=0, return_counts=True)
    drawn = permuted_runs(run_sums(CELLS).tasks_by_passes, 40_000, np.random.default_rng(8))
    keys = {tuple(row): i for i, row in enumerate(everything.tolist())}
    seen = np.bincount([keys[tuple(row)] for row in drawn.tolist()], minlength=len(keys))
    assert stats.chisquare(seen, counts / counts.sum() * 40_000).pvalue > 1e-3


def test_a_step_is_found_where_it_is():
    cells = np.zeros((40, 10), dtype=int)
    cells[:20, 6:] = 1
    found = drift(cells, seed=1, resamples=999)
    assert found.change_point == 6
    assert found.change == pytest.approx(0.5)
    assert found.scan.statistic > 0
    assert found.scan.p_permuted == found.smallest_p / 3 == 0.001
    falls = drift(1 - cells, seed=1, resamples=999)
    assert falls.change == pytest.approx(-0.5)
    assert falls.scan.statistic == -found.scan.statistic
    assert falls.trend.statistic == -found.trend.statistic < 0
    assert falls.slope == pytest.approx(np.polyfit(range(10), (1 - cells).mean(axis=0), 1)[0])


def test_two_runs_are_one_test():
    cells = np.array([[0, 1]] * 9 + [[1, 0]] * 3 + [[1, 1]] * 5)
    found = drift(cells, seed=1, resamples=4000)
    # McNemar: 9 against 3.
    assert found.q.statistic == pytest.approx((9 - 3) ** 2 / 12)
    assert found.trend.statistic == pytest.approx(6 / 12**0.5)
    assert found.scan.statistic == pytest.approx(6 / 12**0.5)
    assert found.q.p == pytest.approx(found.trend.p)
    assert found.q.p_permuted == found.trend.p_permuted == found.scan.p_permuted
    assert found.q.p_permuted == pytest.approx(stats.binomtest(9, 12).pvalue, abs=0.03)


def test_unmeasured_tasks_are_left_out_and_counted():
    rng = np.random.default_rng(4)
    cells = rng.integers(0, 2, (30, 6))
    broken = cells.copy()
    broken[[3, 7], [0, 5]] = -1
    found, without = drift(broken, seed=2, resamples=200), drift(np.delete(cells, [3, 7], axis=0), seed=2, resamples=200)
    assert (found.left_out, found.n_tasks) == (2, 28)
    assert found.q.statistic == without.q.statistic
    assert found.q.p_permuted == without.q.p_permuted
    assert "2 tasks with an unmeasured run" in found.q.note
    assert not without.q.note


@pytest.mark.parametrize(
    ("cells", "options", "reason"),
    [
        ([[1], [0]], {}, ONE_REPLICATE),
        ([[1, 0], [0, 1]], {"order_known": False}, ORDER_UNKNOWN),
        ([[1, -1], [-1, 0]], {}, NO_COMPLETE),
        (np.empty((0, 3), dtype=int), {}, NO_COMPLETE),
        ([[1, 1], [0, 0]], {}, NONE_VARIED),
    ],
)
def test_undefined_with_a_reason(cells, options, reason):
    found = drift(cells, seed=1, **options)
    assert found.undefined == reason
    assert found.q is found.trend is found.scan is None
    assert found.split_ratio is found.slope is found.change is found.change_point is found.smallest_p is found.resamples is None


def test_what_cannot_be_is_refused():
    for cells in ([[0.5, 1.0]], [1, 0], [[2, 0]]):
        with pytest.raises(ValueError, match="outcomes are"):
            drift(cells, seed=1)
    with pytest.raises(ValueError, match="seed"):
        drift([[0, 1]], seed=-1)
    with pytest.raises(ValueError, match="effects"):
        drift([[0, 1]], seed=1, effects=(0.0,))


def test_few_variable_tasks_are_said():
    assert "quote the permutation p" in drift([[0, 1, 1]] * 3, seed=1, resamples=10).q.note


def test_the_same_seed_gives_the_same_numbers_and_another_block_the_next_ones():
    cells = np.random.default_rng(0).integers(0, 2, (20, 5))
    assert drift(cells, seed=9) == drift(cells, seed=9)
    few, many = drift(cells, seed=9, resamples=700), drift(cells, seed=9, resamples=1400)
    # The first 700 of 1400 permutations are the 700.
    for a, b in zip((few.q, few.trend, few.scan), (many.q, many.trend, many.scan), strict=True):
        assert 701 * a.p_permuted - 1 <= 1401 * b.p_permuted - 1 + 1e-9


def test_many_tasks_cost_no_more_than_few():
    """Sums only: a million tasks with a step of half a point in a benchmark of which every second task varies."""
    sums = RunSums(
        run_passes=np.array([250_000, 250_000, 255_000, 255_000]),
        tasks_by_passes=np.array([247_500, 0, 505_000, 0, 247_500]),
        left_out=0,
    )
    found = drift(sums, seed=1, resamples=499)
    assert found.n_tasks == 1_000_000
    assert found.scan.p_permuted == 1 / 500
    assert found.change_point == 2
    assert found.q.power[0] == 1.0


def test_fewer_permutations_where_there_are_many_runs():
    assert default_resamples(2) == 9999
    assert 999 <= default_resamples(100) < default_resamples(20) < 9999


def simulated_power(rates, shifts, repeats, rng):
    """Share of simulated studies in which each test has p under 0.05, when run r's rates are moved by shifts[r]."""
    cells = rng.random((repeats, len(rates), len(shifts))) < np.clip(rates[None, :, None] + shifts, 0, 1)
    seen = np.zeros(2)
    for study in cells.astype(int):
        sums = run_sums(study)
        found = drift(sums, seed=1, resamples=1, effects=())
        seen += [found.q.p < 0.05, found.trend.p < 0.05]
    return seen / repeats


def test_power_is_that_of_a_simulation():
    rng = np.random.default_rng(11)
    rates = np.full(80, 0.5)
    step = np.where(np.arange(6) >= 3, 0.05, -0.05)
    cells = (rng.random((80, 6)) < 0.5).astype(int)
    stated = drift(cells, seed=1, resamples=1, effects=(0.1,))
    (by_q, _), (_, by_trend) = (
        simulated_power(rates, step, 200, rng),
        simulated_power(rates, np.linspace(-0.05, 0.05, 6), 200, rng),
    )
    assert stated.q.power[0] == pytest.approx(by_q, abs=0.09)
    assert stated.trend.power[0] == pytest.approx(by_trend, abs=0.09)
    assert stated.scan.power[0] > stated.q.power[0]


def test_power_at_the_size_of_small_studies_is_low():
    """About 0.17 for three points at 50 to 80 tasks and five runs, with a w of 0.03 to 0.05."""
    for tasks, varied in ((50, 6), (80, 14)):
        cells = np.zeros((tasks, 5), dtype=int)
        cells[:varied] = [[0, 1, 0, 1, 0]]
        found = drift(cells, seed=1, resamples=1)
        assert 0.03 < within_task_variance(cells.sum(axis=1), np.full(tasks, 5)).w < 0.06
        for test in (found.q, found.trend, found.scan):
            assert 0.08 < test.power[1] < 0.22
            assert test.power[0] < test.power[1] < test.power[2]


def test_false_alarms_are_as_rare_as_stated():
    rng = np.random.default_rng(21)
    rates = rng.beta(0.3, 0.2, 60)
    p = []
    for _ in range(150):
        found = drift(
            (rng.random((60, 5)) < rates[:, None]).astype(int), seed=int(rng.integers(1 << 30)), resamples=199, effects=()
        )
        p.append([test.p_permuted for test in (found.q, found.trend, found.scan)])
    assert (np.array(p) <= 0.05).mean(axis=0).max() < 0.12
    assert (np.array(p) <= 0.5).mean(axis=0).min() > 0.3
