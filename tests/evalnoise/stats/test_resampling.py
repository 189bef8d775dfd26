"""The engine: common patterns, rare rows, pairs, packing, strata and clusters give the distribution that drawing tasks has."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from evalnoise.stats import resampling
from evalnoise.stats.bootstrap import (
    joint_cluster_bootstrap,
    joint_stratified_bootstrap,
    joint_task_bootstrap,
    percentile_interval,
)
from evalnoise.stats.resampling import distinct, fixed_point, resampled_sums

TABLES = st.integers(1, 60).flatmap(
    lambda n: st.integers(1, 7).flatmap(
        lambda m: st.lists(st.lists(st.integers(-9, 100), min_size=m, max_size=m), min_size=n, max_size=n)
    )
)


def table(n_tasks, replicates=20, seed=5):
    generator = np.random.default_rng(seed)
    rates = generator.beta(0.3, 0.2, size=n_tasks)
    k = np.stack([generator.binomial(replicates, rates) for _ in range(3)], axis=1)
    return np.column_stack([k * (replicates - k), k]).astype(float)


@pytest.fixture
def no_common(monkeypatch):
    """Every row is rare, as in a table of which no two rows are equal."""
    monkeypatch.setattr(resampling, "FEW_PATTERNS", 0)
    monkeypatch.setattr(resampling, "_ENTRY", 10**9)


def plan(values):
    return resampling._plan(fixed_point(np.asarray(values, dtype=float))[0])


# --- what is drawn how ---------------------------------------------------------------------------------------------------


def test_the_data_alone_decide_how_they_are_drawn():
    few = plan(np.repeat([[0.0], [1], [3]], [500, 300, 9], axis=0))
    assert (len(few.common), few.rare) == (3, 0)
    mixed = plan(table(2_000))
    assert len(mixed.common) > 0
    assert mixed.rare > 256
    assert len(mixed.tables) == 2, "six columns share two words"
    alone = plan(np.random.default_rng(0).normal(size=(300, 2)))
    assert (len(alone.common), alone.rare) == (0, 300)


@pytest.mark.parametrize("n_tasks", [60, 900])
def test_the_same_bytes_for_any_number_of_threads(n_tasks):
    values = table(n_tasks)
    one = joint_task_bootstrap(values, resamples=3_000, seed=3, threads=1)
    for threads in (2, 3, 8, None):
        assert joint_task_bootstrap(values, resamples=3_000, seed=3, threads=threads).tobytes() == one.tobytes()


@pytest.mark.parametrize("n_tasks", [60, 900])
@pytest.mark.parametrize("resamples", [1, 63, 64, 65, 1_023, 1_025])
def test_the_first_resamples_do_not_depend_on_how_many_follow(n_tasks, resamples):
    values = table(n_tasks)
    many = joint_task_bootstrap(values, resamples=2_500, seed=9)
    assert joint_task_bootstrap(values, resamples=resamples, seed=9).tobytes() == many[:resamples].tobytes()


def test_a_resample_cut_into_pieces_is_whole(monkeypatch):
    """One piece may hold many resamples, and one resample many pieces."""
    values = table(900)
    for piece in (200, 1_000, 1 << 15):
        monkeypatch.setattr(resampling, "_PIECE", piece)
        means = joint_task_bootstrap(np.column_stack([values, np.ones(900)]), resamples=40, seed=2)
        assert (means[:, -1] == 1).all(), "900 tasks are drawn each time"
        assert means[:, 3].mean() == pytest.approx(values[:, 3].mean(), abs=5 * values[:, 3].std() / (900 * 40) ** 0.5)


def test_pinned_resamples_of_a_mixed_table():
    """The same bytes on every machine: any change to the streams shows here."""
    sums = np.rint(joint_task_bootstrap(table(400), resamples=1_030, seed=20260101) * 400)[[0, 1, 1_029]]
    assert sums.astype(int).tolist() == [
        [12159, 12143, 11734, 4745, 4807, 4872],
        [12478, 12280, 11950, 4918, 4892, 4938],
        [13640, 13802, 12555, 4908, 4936, 4917],
    ]


def test_progress_is_told_as_it_goes_and_of_the_end():
    for threads in (1, 2):
        told = []
        joint_task_bootstrap(table(60), resamples=3_000, seed=0, threads=threads, progress=lambda *done, to=told: to.append(done))
        assert told[-1] == (3_000, 3_000)
        assert told == sorted(told)
        assert len(told) == -(-3_000 // plan(table(60)).block), "with blocks as few as these, after each one"


# --- exact sums ----------------------------------------------------------------------------------------------------------


@given(TABLES, st.integers(0, 2**40))
def test_sums_are_whole_and_linear_and_lie_within_what_can_be(rows, seed):
    values = np.array(rows, dtype=float)
    wide = np.column_stack([values, values.sum(axis=1), -values, np.full(len(values), 7.0)])
    sums = joint_task_bootstrap(wide, resamples=20, seed=seed) * len(values)
    m = values.shape[1]
    assert np.abs(sums - np.rint(sums)).max() < 1e-9
    sums = np.rint(sums)
    assert (sums[:, m] == sums[:, :m].sum(axis=1)).all()
    assert (sums[:, m + 1 : -1] == -sums[:, :m]).all()
    assert (sums[:, -1] == 7 * len(values)).all()
    assert (sums <= len(values) * wide.max(axis=0)).all()
    assert (sums >= len(values) * wide.min(axis=0)).all()


@given(TABLES)
def test_distinct_rows_are_numpy_s(rows):
    values = np.array(rows, dtype=float) / 3
    patterns, counts = distinct(values)
    expected, numbers = np.unique(values, axis=0, return_counts=True)
    order = np.argsort(-numbers, kind="stable")
    assert (patterns == expected[order]).all()
    assert (counts == numbers[order]).all()


def test_many_columns_of_many_values_have_no_room_in_one_key():
    values = np.random.default_rng(1).integers(0, 1_000, size=(500, 12)).astype(float)
    values[250:] = values[:250]
    patterns, counts = distinct(values)
    assert (patterns == np.unique(values, axis=0)).all()
    assert (counts == 2).all()


def test_a_negative_zero_is_zero():
    rows, exponents = fixed_point(np.array([[-0.0], [0.0]]))
    assert not np.signbit(rows).any()
    assert exponents.tolist() == [0]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_fixed_point_numbers_are_whole_and_close(values):
    column = np.array(values)[:, None]
    rows, exponents = fixed_point(column)
    assert (rows == np.rint(rows)).all()
    assert np.abs(rows).max() * len(rows) <= 2**53
    assert np.ldexp(rows, -exponents) == pytest.approx(column, abs=2.0**-46 * max(1e-300, np.abs(column).max()) * len(rows))


# --- the distribution ----------------------------------------------------------------------------------------------------


def enumerated(values):
    """Every resample of N tasks, as how often each sum comes up among N^N."""
    return Counter(sum(drawn) for drawn in product(values, repeat=len(values)))


@pytest.mark.parametrize("values", [[0, 1, 5], [0, 1, 10, 100], [0, 0, 0, 2, 7]])
def test_every_sum_comes_up_as_often_as_it_should(values, no_common):
    n = len(values)
    sums = np.rint(joint_task_bootstrap(np.array(values, dtype=float)[:, None], resamples=40_000, seed=12)[:, 0] * n).astype(int)
    exact = enumerated(values)
    found = Counter(sums.tolist())
    assert set(found) == set(exact)
    expected = [40_000 * exact[s] / n**n for s in exact]
    assert chisquare([found[s] for s in exact], expected).pvalue > 1e-4


def test_percentile_ends_are_those_of_all_resamples(no_common):
    values = [0, 1, 10, 100, 108]
    exact = np.sort(np.repeat(*np.array(list(enumerated(values).items())).T)) / 5
    means = joint_task_bootstrap(np.array(values, dtype=float)[:, None], resamples=40_000, seed=4)[:, 0]
    compared = 0
    for level in np.arange(0.3, 0.99, 0.01):
        for end, q in zip(percentile_interval(means, level=level), ((1 - level) / 2, (1 + level) / 2), strict=True):
            below, exactly, above = np.quantile(exact, [q - 0.005, q, q + 0.005])
            if below == above:
                # It does not lie at a step of the distribution, where 40,000 resamples may fall on either side.
                assert end == pytest.approx(exactly, abs=1e-12)
                compared += 1
    assert compared >= 20


@pytest.mark.parametrize("n_tasks", [40, 90, 260, 1_500])
def test_moments_are_the_bootstrap_s_exact_ones(n_tasks):
    """E = mean and covariance = population covariance / N, for pairs, single rows and a mixture with common patterns."""
    values = table(n_tasks)
    means = joint_task_bootstrap(values, resamples=20_000, seed=21)
    exact = np.cov(values.T, ddof=0) / n_tasks
    error = np.sqrt(np.diag(exact) / 20_000)
    assert (np.abs(means.mean(axis=0) - values.mean(axis=0)) < 5 * error).all()
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert (np.abs(np.cov(means.T) - exact) < 6 * scale * (2 / 20_000) ** 0.5).all()


def test_a_rare_row_is_drawn_a_binomial_number_of_times():
    values = np.column_stack([table(700), np.arange(700) == 3])
    drawn = np.rint(joint_task_bootstrap(values, resamples=20_000, seed=2)[:, -1] * 700).astype(int)
    expected = np.array([(1 - 1 / 700) ** 700, (1 - 1 / 700) ** 699])
    assert np.bincount(drawn)[:2] / 20_000 == pytest.approx(expected, abs=0.015)


# --- strata --------------------------------------------------------------------------------------------------------------


def test_one_stratum_is_none():
    values = table(80)
    same = joint_stratified_bootstrap(values, ["all"] * 80, resamples=300, seed=6)
    assert same.tobytes() == joint_task_bootstrap(values, resamples=300, seed=6).tobytes()


def test_strata_keep_their_number_of_tasks():
    strata = np.repeat(["a", "b", "c"], [20, 15, 1])
    values = np.column_stack([strata == name for name in "abc"]).astype(float)
    means = joint_stratified_bootstrap(values, strata, resamples=200, seed=1)
    assert (means == np.array([20, 15, 1]) / 36).all()


def test_moments_of_strata_are_exact():
    values = table(200)[:, [3]]
    strata = np.arange(200) % 3
    means = joint_stratified_bootstrap(values, strata, resamples=20_000, seed=8)[:, 0]
    exact = sum(np.sum(strata == h) * values[strata == h, 0].var() for h in range(3)) / 200**2
    assert means.mean() == pytest.approx(values.mean(), abs=5 * (exact / 20_000) ** 0.5)
    assert means.var() == pytest.approx(exact, rel=6 * (2 / 20_000) ** 0.5)


def test_the_order_of_tasks_changes_nothing_in_strata_of_clusters():
    values = np.random.default_rng(0).normal(size=(90, 2))
    clusters, strata = np.arange(90) // 5, (np.arange(90) // 5) % 2
    drawn = joint_stratified_bootstrap(values, strata, clusters=clusters, resamples=100, seed=3)
    order = np.random.default_rng(1).permutation(90)
    again = joint_stratified_bootstrap(values[order], strata[order], clusters=clusters[order], resamples=100, seed=3)
    assert drawn.tobytes() == again.tobytes()


def test_a_cluster_lies_in_one_stratum():
    with pytest.raises(ValueError, match="task 1: its cluster has tasks in more than one stratum"):
        joint_stratified_bootstrap([[1.0], [2.0], [3.0]], [0, 1, 1], clusters=[0, 0, 1], resamples=10, seed=0)
    with pytest.raises(ValueError, match=r"one label per task, shape \(2,\), not \(3,\)"):
        joint_stratified_bootstrap([[1.0], [2.0]], [0, 1, 1], resamples=10, seed=0)


# --- clusters ------------------------------------------------------------------------------------------------------------


def test_clusters_of_one_task_are_tasks():
    values = table(80)
    same = joint_cluster_bootstrap(values, np.arange(80), resamples=300, seed=6)
    assert same.tobytes() == joint_task_bootstrap(values, resamples=300, seed=6).tobytes()


def test_clusters_of_copies_are_their_tasks():
    """Three copies of each task tell nothing more: the same resamples as of the tasks, not narrower ones."""
    values = table(80)
    copies = joint_cluster_bootstrap(np.repeat(values, 3, axis=0), np.repeat(np.arange(80), 3), resamples=300, seed=6)
    assert copies == pytest.approx(joint_task_bootstrap(values, resamples=300, seed=6), rel=1e-14)


def test_clusters_are_drawn_whole_with_their_multiplicity():
    """Three clusters of unlike sizes: the mean of each of the 27 draws is a sum over drawn tasks by their number."""
    values, clusters = np.array([1.0, 0, 0, 1, 1, 0])[:, None], ["x", "y", "y", "y", "z", "z"]
    means = joint_cluster_bootstrap(values, clusters, resamples=27_000, seed=5)[:, 0]
    totals = {"x": (1, 1), "y": (1, 3), "z": (1, 2)}
    drawn = [[totals[c] for c in d] for d in product("xyz", repeat=3)]
    exact = Counter(round(sum(s for s, _ in d) / sum(n for _, n in d), 9) for d in drawn)
    found = Counter(np.round(means, 9).tolist())
    assert set(found) == set(exact)
    assert chisquare([found[x] for x in exact], [1_000 * exact[x] for x in exact]).pvalue > 1e-4


def test_one_cluster_is_refused():
    with pytest.raises(ValueError, match="needs 2 clusters, not 1"):
        joint_cluster_bootstrap([[1.0], [2.0]], ["a", "a"], resamples=10, seed=0)


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="resamples must be at least 1"):
        resampled_sums(np.ones((2, 1)), resamples=0, seed=0)
    with pytest.raises(ValueError, match="a seed is 0 or more"):
        joint_stratified_bootstrap([[1.0], [2.0]], [0, 1], resamples=3, seed=-1)
