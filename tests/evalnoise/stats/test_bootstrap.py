"""The engine: multiplicity, jointness, exact sums, and results that depend on the seed alone."""

from math import comb

import numpy as np
import pytest

from evalnoise.stats.bootstrap import BLOCK, dirichlet_task_means, joint_task_bootstrap, percentile_interval

PINNED = ([2252, 2475, 1982, 2427], [2140, 2627, 2240, 2357])


@pytest.fixture
def table():
    generator = np.random.default_rng(5)
    rates = generator.beta(0.3, 0.2, size=90)
    k = np.stack([generator.binomial(10, rates) for _ in range(3)], axis=1)
    return (k * (10 - k)).astype(float)


def test_two_tasks_are_drawn_with_their_multiplicity():
    """Of two tasks, one resample in four has the first twice: a set of ids would never give 0 or 1."""
    means = joint_task_bootstrap([[0.0], [1.0]], resamples=20_000, seed=1)[:, 0]
    values, counts = np.unique(means, return_counts=True)
    assert values.tolist() == [0, 0.5, 1]
    assert counts / 20_000 == pytest.approx([0.25, 0.5, 0.25], abs=0.015)


def test_one_task_among_many_is_binomial():
    values = np.zeros((50, 1))
    values[7] = 1
    drawn = np.rint(joint_task_bootstrap(values, resamples=50_000, seed=2)[:, 0] * 50).astype(int)
    expected = [comb(50, x) * 0.02**x * 0.98 ** (50 - x) for x in range(4)]
    assert np.bincount(drawn)[:4] / 50_000 == pytest.approx(expected, abs=0.008)


def test_same_distribution_as_resampling_one_by_one(table):
    generator = np.random.default_rng(8)
    brute = np.array([table[generator.integers(0, len(table), len(table))].mean(axis=0) for _ in range(20_000)])
    ours = joint_task_bootstrap(table, resamples=20_000, seed=3)
    spread = brute.std(axis=0)
    assert ours.mean(axis=0) == pytest.approx(table.mean(axis=0), abs=4 * spread.max() / 20_000**0.5)
    assert np.cov(ours.T) == pytest.approx(np.cov(brute.T), rel=0.06)
    for q in (0.005, 0.025, 0.5, 0.975, 0.995):
        assert np.quantile(ours, q, axis=0) == pytest.approx(np.quantile(brute, q, axis=0), abs=0.12 * spread.max())


def test_columns_share_their_resampled_tasks(table):
    both = np.column_stack([table, table[:, 0] - table[:, 1]])
    sums = np.rint(joint_task_bootstrap(both, resamples=500, seed=4) * len(table))
    assert (sums[:, 3] == sums[:, 0] - sums[:, 1]).all()


def test_sums_of_integers_are_exact(table):
    sums = joint_task_bootstrap(table, resamples=300, seed=4) * len(table)
    assert np.abs(sums - np.rint(sums)).max() <= 1e-11
    wide = joint_task_bootstrap(np.column_stack([table, table / 90]), resamples=300, seed=4)
    assert wide[:, 3:] * 90 == pytest.approx(wide[:, :3], rel=1e-12), "and those of other numbers are as good as exact"


@pytest.mark.parametrize("resamples", [1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7])
def test_the_first_resamples_do_not_depend_on_how_many_follow(table, resamples):
    many = joint_task_bootstrap(table, resamples=6 * BLOCK, seed=9)
    assert (joint_task_bootstrap(table, resamples=resamples, seed=9) == many[:resamples]).all()
    weights = dirichlet_task_means(table[:, 0], 25.0, resamples=6 * BLOCK, seed=9)
    assert (dirichlet_task_means(table[:, 0], 25.0, resamples=resamples, seed=9) == weights[:resamples]).all()


def test_the_order_of_tasks_changes_nothing(table):
    shuffled = np.random.default_rng(0).permutation(table)
    assert (joint_task_bootstrap(shuffled, resamples=200, seed=6) == joint_task_bootstrap(table, resamples=200, seed=6)).all()


def test_seeds_and_purposes_give_other_streams(table):
    first = joint_task_bootstrap(table, resamples=200, seed=0)
    assert (first == joint_task_bootstrap(table, resamples=200, seed=0)).all()
    assert (first != joint_task_bootstrap(table, resamples=200, seed=1)).any(axis=1).mean() > 0.9
    np.random.seed(0)  # noqa: NPY002 - the global state must not matter
    assert (first == joint_task_bootstrap(table, resamples=200, seed=0)).all()


def test_pinned_resamples():
    """The same bytes on every machine: any change to the streams shows here."""
    values = np.repeat([0.0, 19, 36, 75, 100], [100, 30, 20, 9, 5])[:, None]
    sums = np.rint(joint_task_bootstrap(values, resamples=70, seed=20260101)[:, 0] * 164).astype(int)
    assert (sums[:4].tolist(), sums[64:68].tolist()) == PINNED


def test_cost_does_not_grow_with_the_number_of_tasks():
    """Two million tasks of three patterns: drawing them one by one would take minutes."""
    few = np.array([[0.0], [1.0], [3.0]])
    many = np.repeat(few, [1_000_000, 500_000, 500_000], axis=0)
    means = joint_task_bootstrap(many, resamples=2_000, seed=1)[:, 0]
    assert means.mean() == pytest.approx(1.0, abs=1e-4)
    assert means.std() == pytest.approx(many.std() / 2_000_000**0.5, rel=0.1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(ValueError, match="row 1, column 0"):
        joint_task_bootstrap([[1.0], [bad]], resamples=10, seed=0)
    with pytest.raises(ValueError, match="row 1, column 0"):
        dirichlet_task_means([1.0, bad], 1.0, resamples=10, seed=0)
    with pytest.raises(ValueError, match="row 1, column 0"):
        percentile_interval([1.0, bad])


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="shape"):
        joint_task_bootstrap([1.0, 2.0], resamples=10, seed=0)
    with pytest.raises(ValueError, match="something in it"):
        joint_task_bootstrap(np.zeros((0, 1)), resamples=10, seed=0)
    with pytest.raises(ValueError, match="resamples must be at least 1"):
        joint_task_bootstrap([[1.0]], resamples=0, seed=0)
    with pytest.raises(ValueError, match="a seed is 0 or more"):
        joint_task_bootstrap([[1.0]], resamples=10, seed=-1)


def test_dirichlet_weights_of_equal_values_add_up():
    generator = np.random.default_rng(3)
    values = np.repeat([0.0, 0.05, 0.2], [30, 6, 4])
    weights = generator.dirichlet(np.ones(41), size=40_000)
    brute = weights[:, :40] @ values + weights[:, 40] * 0.5
    ours = dirichlet_task_means(values, 0.5, resamples=40_000, seed=3)
    for q in (0.025, 0.5, 0.975):
        assert np.quantile(ours, q) == pytest.approx(np.quantile(brute, q), abs=0.03 * brute.std() + 2e-4)


def test_percentiles_are_linear_between_order_statistics():
    assert percentile_interval(np.arange(41.0), level=0.95) == pytest.approx((1.0, 39.0))
    assert percentile_interval(np.arange(41.0), level=0.9) == pytest.approx((2.0, 38.0))
