"""Win rates: exact shares over all pairs of samples, table 3 of the paper, unbiased parts, no order of summation."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalnoise.stats.models.noise import NO_TASK, ONE_SAMPLE, ONE_TASK
from evalnoise.stats.models.pairs import all_pairs, paired_noise
from evalnoise.stats.models.samples import samples_of
from evalnoise.stats.models.winrates import win_rates


def shares(a, b, known_a, known_b):
    """(q_a, q_b) of each task that both have, as fractions."""
    made = []
    for x, y, i, j in zip(a, b, known_a, known_b, strict=True):
        pairs = list(itertools.product(x[i], y[j]))
        if pairs:
            made.append((Fraction(sum(u > v for u, v in pairs), len(pairs)), Fraction(sum(u < v for u, v in pairs), len(pairs))))
    return made


@given(
    seed=st.integers(0, 10**6), n=st.integers(2, 25), k_a=st.integers(2, 5), k_b=st.integers(2, 5), levels=st.sampled_from([2, 4])
)
def test_table_3_exactly(seed, n, k_a, k_b, levels):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, levels, (n, k_a)), rng.integers(0, levels, (n, k_b))
    known = rng.random((n, k_a)) < 0.9, rng.random((n, k_b)) < 0.9
    q = shares(a, b, *known)
    found = win_rates(a, b, *known)
    if len(q) < 2:
        return
    q_a, q_b = (sum((x[side] for x in q), Fraction()) / len(q) for side in (0, 1))
    assert found.q_a == pytest.approx(float(q_a), abs=1e-15)
    assert found.q_b == pytest.approx(float(q_b), abs=1e-15)
    assert found.total == pytest.approx(float(q_a + q_b - (q_a - q_b) ** 2), abs=1e-14)
    data = sum((x - y - (q_a - q_b)) ** 2 for x, y in q) / len(q)
    prediction = sum(x + y - (x - y) ** 2 for x, y in q) / len(q)
    assert found.data_raw == pytest.approx(float(data), abs=1e-14)
    assert found.prediction_raw == pytest.approx(float(prediction), abs=1e-14)
    assert found.n_tasks == len(q)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 30), k_a=st.integers(2, 6), k_b=st.integers(2, 6))
def test_for_binary_scores_it_is_the_paired_noise(seed, n, k_a, k_b):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (n, k_a)), rng.integers(0, 2, (n, k_b))
    rates, noise = win_rates(a, b), paired_noise(a, b)
    assert (rates.q_a, rates.q_b) == pytest.approx((noise.q_a, noise.q_b), abs=1e-15)
    assert rates.total == pytest.approx(noise.total, abs=1e-13)
    assert rates.data == pytest.approx(noise.data, abs=1e-13)
    assert rates.prediction == pytest.approx(noise.prediction, abs=1e-13)
    assert rates.q_a - rates.q_b == pytest.approx(noise.mean, abs=1e-14)


def test_the_parts_are_unbiased_for_graded_scores():
    """One task with known distributions: E of the distinct-sample estimate is the square of the expected win minus loss."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    sign = np.sign(np.arange(3)[:, None] - np.arange(3)[None, :])
    mean = float(p @ sign @ q)
    rng = np.random.default_rng(0)
    a, b = rng.choice(3, (4000, 3), p=p), rng.choice(3, (4000, 2), p=q)
    found = win_rates(a, b)
    assert found.data == pytest.approx(0.0, abs=0.02)
    assert found.q_a - found.q_b == pytest.approx(mean, abs=0.02)
    assert found.data_raw > 0.15


@given(seed=st.integers(0, 10**6))
def test_no_order_of_tasks_changes_a_digit(seed):
    """One public figure moves from 0.46 to 0.58 with the order of summation."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (37, 7)), rng.integers(0, 2, (37, 3))
    order = rng.permutation(37)
    assert win_rates(a, b) == win_rates(a[order], b[order])
    graded = rng.random((37, 7)), rng.random((37, 3))
    assert win_rates(*graded) == win_rates(graded[0][order], graded[1][order])
    one, other = (all_pairs(samples_of([a[o], np.tile(b[o], 7)[:, :7]])) for o in (slice(None), order))
    assert (one.q_a, one.q_b) == (other.q_a, other.q_b)


def test_wins_are_no_integers():
    """Half a win is half a win: 1 of 2 samples against 0 of 2, in three tasks."""
    found = win_rates([[1, 0]] * 3, [[0, 0]] * 3)
    assert (found.q_a, found.q_b) == (0.5, 0.0)


def test_degenerate_records():
    assert win_rates(np.zeros((0, 2)), np.zeros((0, 2))).undefined == NO_TASK
    one = win_rates([[1, 0]], [[0, 0]])
    assert (one.q_a, one.total, one.undefined) == (0.5, None, ONE_TASK)
    single = win_rates([[1], [0], [1]], [[0], [0], [1]])
    assert (single.data, single.data_raw, single.parts_undefined) == (None, None, ONE_SAMPLE)
    assert single.total == pytest.approx(1 / 3 - 1 / 9)
    assert single.se(single.total) == pytest.approx(np.sqrt((1 / 3 - 1 / 9) / 3))
    with pytest.raises(ValueError, match="same tasks"):
        win_rates([[1]], [[1], [0]])
