"""Noise of pairs: the paper's formulas, the identities, unequal numbers of samples, and all pairs against one pair at a time."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalnoise.stats.models.noise import (
    ALL_EQUAL,
    NO_TASK,
    NONE_DISCORDANT,
    NOTHING_VARIED,
    ONE_SAMPLE,
    ONE_TASK,
    SAME_SAMPLES,
    against_itself,
    predicted_se,
)
from evalnoise.stats.models.pairs import all_pairs, paired_noise, pairs_of, sign_test, single_noise
from evalnoise.stats.models.samples import Samples, grid_of, samples_of, samples_of_cells
from evalnoise.stats.variance import within_task_variance


def direct(a, b):
    """The paper's formulas as they stand, equal K within a model."""
    correction = np.var(a, axis=1).mean() / (a.shape[1] - 1) + np.var(b, axis=1).mean() / (b.shape[1] - 1)
    total = np.var(a) + np.var(b) - 2 * np.cov(a.mean(axis=1), b.mean(axis=1), ddof=0)[0, 1]
    data = np.var(a.mean(axis=1) - b.mean(axis=1)) - correction
    prediction = np.mean(np.var(a, axis=1) + np.var(b, axis=1)) + correction
    return total, data, prediction


def made(seed, n, k_a, k_b, *, graded=False):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.6, 0.5, size=(n, 1))
    q = np.clip(p + rng.normal(0, 0.2, size=(n, 1)), 0, 1)
    if graded:
        return rng.beta(1 + p, 2 - p, size=(n, k_a)), rng.beta(1 + q, 2 - q, size=(n, k_b))
    return rng.binomial(1, p, size=(n, k_a)), rng.binomial(1, q, size=(n, k_b))


@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), k_a=st.integers(2, 9), k_b=st.integers(2, 9), graded=st.booleans())
def test_the_papers_formulas(seed, n, k_a, k_b, graded):
    a, b = made(seed, n, k_a, k_b, graded=graded)
    found = paired_noise(a, b)
    assert (found.total, found.data, found.prediction) == pytest.approx(direct(a, b), abs=1e-12)
    assert found.data + found.prediction == pytest.approx(found.total, abs=1e-12)
    assert found.mean == pytest.approx(a.mean() - b.mean(), abs=1e-12)
    assert found.of_mean == pytest.approx(np.var(a.mean(axis=1) - b.mean(axis=1)), abs=1e-12)
    assert found.se_total == pytest.approx(np.sqrt(found.total / n), abs=1e-12)
    one = single_noise(a)
    correction = np.var(a, axis=1).mean() / (k_a - 1)
    assert one.total == pytest.approx(np.var(a), abs=1e-12)
    assert one.data == pytest.approx(np.var(a.mean(axis=1)) - correction, abs=1e-12)
    assert one.prediction == pytest.approx(np.var(a, axis=1).mean() + correction, abs=1e-12)
    assert one.mean == pytest.approx(a.mean(), abs=1e-12)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), k=st.integers(2, 9))
def test_identities_of_binary_scores(seed, n, k):
    a, b = made(seed, n, k, k)
    found, one = paired_noise(a, b), single_noise(a)
    runs = np.full(n, k)
    w_a, w_b = (within_task_variance(x.sum(axis=1), runs).w for x in (a, b))
    assert one.prediction == pytest.approx(w_a, abs=1e-14)
    assert one.data == pytest.approx(np.var(a.mean(axis=1)) - w_a / k, abs=1e-14)
    assert found.prediction == pytest.approx(w_a + w_b, abs=1e-14)
    # The variance that a rerun budget is made of is the prediction noise over R.
    assert found.se_prediction**2 / k == pytest.approx((w_a + w_b) / (n * k), abs=1e-15)
    assert found.of_runs == pytest.approx((w_a + w_b) / k, abs=1e-15)


def brute(a, b, known_a, known_b):
    """Task by task: means of unbiased parts over the tasks that both have."""
    rows = [(x[i], y[j]) for x, y, i, j in zip(a, b, known_a, known_b, strict=True) if i.any() and j.any()]
    gaps = np.array([x.mean() - y.mean() for x, y in rows])
    within = np.array([np.var(x) + np.var(y) for x, y in rows])
    twice = [(x, y) for x, y in rows if len(x) > 1 and len(y) > 1]
    s2 = np.array([np.var(x, ddof=1) + np.var(y, ddof=1) for x, y in twice])
    noise = np.array([np.var(x, ddof=1) / len(x) + np.var(y, ddof=1) / len(y) for x, y in twice])
    sides = [[row[side] for row in rows] for side in (0, 1)]
    w = [[np.var(x, ddof=1) for x in side if len(x) > 1] for side in sides]
    of_runs = [
        np.mean([(np.var(x, ddof=1) if len(x) > 1 else np.mean(s2)) / len(x) for x in side])
        for side, s2 in zip(sides, w, strict=True) if s2
    ]  # fmt: skip
    again = np.array([x.mean() - y.mean() for x, y in twice])
    return {
        "n_tasks": len(rows),
        "n_twice": len(twice),
        "mean": gaps.mean() if rows else None,
        "total": np.var(gaps) + within.mean() if len(rows) > 1 else None,
        "of_mean": np.var(gaps) if len(rows) > 1 else None,
        "prediction": s2.mean() if twice else None,
        "of_runs": sum(of_runs) if len(of_runs) == 2 else None,
        "data": np.var(again) - noise.mean() if len(twice) > 1 else None,
    }


@given(seed=st.integers(0, 10**6), n=st.integers(0, 25), k=st.integers(1, 6), m=st.integers(0, 4), graded=st.booleans())
def test_all_pairs_with_missing_cells(seed, n, k, m, graded):
    rng = np.random.default_rng(seed)
    scores = rng.random((m, n, k)) if graded else rng.integers(0, 2, (m, n, k))
    known = rng.random((m, n, k)) < rng.choice([0.3, 0.7, 1.0])
    found = all_pairs(samples_of(scores, known))
    places = [(a, b) for a in range(m) for b in range(a + 1, m)]
    assert list(zip(found.a.tolist(), found.b.tolist(), strict=True)) == places
    for (a, b), pair in zip(places, pairs_of(found), strict=True):
        want = brute(scores[a], scores[b], known[a], known[b])
        for name, value in want.items():
            got = getattr(pair, name)
            assert (got is None) == (value is None), name
            assert value is None or got == pytest.approx(value, abs=1e-12), name
        for value, reason in (
            (pair.total, pair.undefined),
            (pair.data, pair.parts_undefined),
            (pair.z, pair.z_undefined),
            (pair.z_runs, pair.runs_undefined),
            (pair.p_sign, pair.sign_undefined),
        ):
            assert (value is None) == bool(reason)


def test_different_numbers_of_samples_are_unbiased():
    """Every task with its own number of samples: the means over many draws are the true variances."""
    rng = np.random.default_rng(3)
    p, q = rng.beta(0.5, 0.5, (2, 40))
    runs_a, runs_b = rng.integers(1, 5, (2, 40))
    draws = 300
    a, b = (rng.binomial(1, x[None, :, None], (draws, 40, 4)) for x in (p, q))
    known = [np.broadcast_to(np.arange(4) < r[:, None], (40, 4)) for r in (runs_a, runs_b)]
    both = np.stack([np.broadcast_to(k, (draws, 40, 4)) for k in known])
    total = [paired_noise(a[i], b[i], both[0, i], both[1, i]).total for i in range(draws)]
    spread = p * (1 - p) + q * (1 - q)
    # The variance over these 40 tasks loses, as ddof 0 does, what their mean scatters: sum of the tasks' variances over N^2.
    lost = np.mean((p * (1 - p) / runs_a + q * (1 - q) / runs_b) / 40)
    assert np.mean(total) == pytest.approx(np.var(p - q) + spread.mean() - lost, abs=0.01)


def test_tasks_with_one_sample_have_the_models_mean_variance():
    """By hand: w is 1/2 of either, from its first two tasks; the third has one sample of a, the fourth of b."""
    a, known_a = [[1, 0], [1, 1], [1, 0], [1, 1]], [[1, 1], [1, 1], [1, 0], [1, 1]]
    b, known_b = [[0, 1], [0, 0], [1, 0], [1, 0]], [[1, 1], [1, 1], [1, 1], [1, 0]]
    found = paired_noise(a, b, known_a, known_b)
    w_a, w_b = (0.5 + 0 + 0) / 3, (0.5 + 0 + 0.5) / 3
    assert found.of_runs == pytest.approx(((0.5 / 2 + 0 + w_a + 0) + (0.5 / 2 + 0 + 0.5 / 2 + w_b)) / 4, abs=1e-15)
    assert (found.n_tasks, found.n_twice) == (4, 2)
    assert "2 of 4 tasks have one sample" in found.note
    # Of no task both have two samples, yet each has a variance.
    other = paired_noise(a, b, [[1, 1]] * 2 + [[1, 0]] * 2, [[1, 0]] * 2 + [[1, 1]] * 2)
    assert other.of_runs == pytest.approx(((0.25 + 0 + 2 * 0.25) + (2 * 0.5 + 0.25 + 0.25)) / 4, abs=1e-15)
    assert (other.n_twice, other.data, other.prediction) == (0, None, None)


def test_no_difference_is_seldom_found_when_most_tasks_have_one_sample():
    """20 tasks with 10 samples, 80 with one, equal models: p_runs < 0.05 in about 5 % of trials, and z has a variance of 1."""
    rng = np.random.default_rng(11)
    rates = rng.beta(1, 1, 100)
    known = np.arange(10) < np.where(np.arange(100) % 5 == 0, 10, 1)[:, None]
    found = [paired_noise(*rng.binomial(1, rates[:, None], (2, 100, 10)), known, known) for _ in range(600)]
    assert 0.02 <= np.mean([pair.p_runs < 0.05 for pair in found]) <= 0.09
    assert 0.75 <= np.var([pair.z_runs for pair in found]) <= 1.3


def test_one_sample_each():
    a, b = np.array([[1], [1], [0], [1], [0]]), np.array([[1], [0], [0], [0], [1]])
    found = paired_noise(a, b)
    d = (a - b)[:, 0]
    assert found.total == found.of_mean == pytest.approx(np.var(d))
    assert (found.data, found.prediction, found.of_runs, found.p_runs) == (None, None, None, None)
    assert found.parts_undefined == found.runs_undefined == ONE_SAMPLE
    assert (found.wins, found.losses) == (2, 1)
    assert found.p_sign == pytest.approx(stats.binomtest(2, 3).pvalue)
    assert found.z == pytest.approx(d.mean() / np.sqrt(np.var(d) / 5))
    assert found.p_value == pytest.approx(stats.ttest_rel(a[:, 0], b[:, 0]).pvalue)
    assert (found.q_a, found.q_b) == (0.4, 0.2)
    assert found.note == ""


def test_degenerate_records():
    one = paired_noise([[1, 0]], [[0, 0]])
    assert (one.total, one.undefined, one.data) == (None, ONE_TASK, None)
    assert one.prediction == 0.5
    none = paired_noise(np.zeros((0, 2)), np.zeros((0, 3)))
    assert (none.mean, none.undefined, none.prediction, none.runs_undefined) == (None, NO_TASK, None, NO_TASK)
    constant = paired_noise(np.ones((4, 3), int), np.zeros((4, 2), int))
    assert (constant.mean, constant.total, constant.z, constant.z_undefined) == (1.0, 0.0, None, ALL_EQUAL)
    assert constant.runs_undefined == NOTHING_VARIED
    # A constant difference of scores that binary numbers cannot hold.
    graded = np.random.default_rng(0).random((50, 2))
    shifted = paired_noise(graded, graded + 0.1)
    assert (shifted.of_mean, shifted.z) == (0.0, None)
    equal = paired_noise([[1], [0]], [[1], [0]])
    assert SAME_SAMPLES in equal.note
    assert (equal.p_sign, equal.sign_undefined) == (None, NONE_DISCORDANT)


def test_a_model_against_itself_needs_other_samples():
    rng = np.random.default_rng(1)
    rates = rng.beta(0.5, 0.5, (3000, 1))
    a, again = rng.binomial(1, rates, (2, 3000, 6))
    with pytest.raises(ValueError, match="distinct samples"):
        paired_noise(a, a)
    expected, measured = against_itself(single_noise(a)), paired_noise(a, again)
    assert expected.data == 0.0
    assert expected.total == expected.prediction == 2 * single_noise(a).prediction
    assert measured.total == pytest.approx(expected.total, rel=0.03)
    assert measured.data == pytest.approx(0.0, abs=0.005)
    # The trap: copies of the same samples give a data variance of -2 w / K.
    copied = paired_noise(a, a.copy())
    assert copied.data == pytest.approx(-expected.of_runs)
    assert copied.se_data is None
    assert SAME_SAMPLES in copied.note
    assert against_itself(single_noise(a[:, :1])).total is None


def test_the_correction_matters_at_small_k():
    """K = 5, N = 500, models that differ little by task: raw data variance is off by 2.5 times (rms), the corrected one by 0.4."""
    rng = np.random.default_rng(7)
    raw, corrected = [], []
    for _ in range(200):
        p = rng.beta(0.9, 0.5, 500)
        q = np.clip(p + rng.normal(0, 0.172, 500), 0, 1)
        truth = np.var(p - q)
        a, b = (rng.binomial(1, x[:, None], (500, 5)) for x in (p, q))
        found = paired_noise(a, b)
        raw.append(found.of_mean / truth - 1)
        corrected.append(found.data / truth - 1)
    rms = [float(np.sqrt(np.mean(np.square(x)))) for x in (raw, corrected)]
    assert rms[0] == pytest.approx(2.5, abs=0.2)
    assert rms[1] < 0.45
    assert np.mean(corrected) == pytest.approx(0.0, abs=0.05)


@given(st.integers(0, 200), st.integers(0, 200))
def test_sign_test_is_the_exact_binomial_test(wins, losses):
    found = sign_test(wins, losses)
    if wins + losses == 0:
        assert found is None
    else:
        assert found == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, abs=1e-12)


@given(seed=st.integers(0, 10**6))
def test_no_order_of_tasks_or_samples_changes_a_digit(seed):
    rng = np.random.default_rng(seed)
    scores = rng.binomial(1, rng.random((1, 30, 1)), (4, 30, 5))
    known = rng.random((4, 30, 5)) < 0.8
    tasks, samples = rng.permutation(30), rng.permutation(5)
    one = all_pairs(samples_of(scores, known))
    other = all_pairs(samples_of(scores[:, tasks][:, :, samples], known[:, tasks][:, :, samples]))
    for field in dataclasses.fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(2)
    samples = samples_of(rng.integers(0, 2, (9, 40, 3)), rng.random((9, 40, 3)) < 0.9)
    whole = all_pairs(samples)
    monkeypatch.setattr("evalnoise.stats.models.pairs._BLOCK", 1)
    cut = all_pairs(samples)
    for field in dataclasses.fields(whole):
        np.testing.assert_array_equal(getattr(whole, field.name), getattr(cut, field.name))


def test_predicted_se():
    a, b = made(5, 400, 8, 8)
    found = paired_noise(a, b)
    assert predicted_se(found, n_tasks=400) == found.se_total
    assert predicted_se(found, n_tasks=1600) == pytest.approx(found.se_total / 2)
    assert predicted_se(found, n_tasks=400, samples=8) == pytest.approx(found.se_mean, rel=1e-12)
    assert predicted_se(paired_noise(a[:, :1], b[:, :1]), n_tasks=400, samples=8) is None
    with pytest.raises(ValueError, match="at least one task"):
        predicted_se(found, n_tasks=0)
    below = dataclasses.replace(found, data=-1e-6)  # not 0: nothing says where more samples stop to help
    assert predicted_se(below, n_tasks=400, samples=8) is None
    assert predicted_se(below, n_tasks=400, samples=1) == predicted_se(below, n_tasks=400) == found.se_total
    none = dataclasses.replace(found, data=0.0)
    assert predicted_se(none, n_tasks=400, samples=8) == pytest.approx((found.prediction / 8 / 400) ** 0.5, rel=1e-12)


def test_holm_over_pairs_leaves_out_undefined_ones():
    scores = np.stack([made(s, 60, 3, 3)[0] for s in range(3)] + [np.ones((60, 3), int)] * 2)
    found = all_pairs(samples_of(scores))
    holm = found.holm()
    assert int(np.isnan(holm).sum()) == 1
    assert np.isnan(found.p_value[-1])
    assert np.all(holm[:-1] >= found.p_value[:-1])


def test_grids():
    assert grid_of(np.array([0.0, 1.0])) == 1
    assert grid_of(np.array([0.5, 0.25])) == 4
    assert grid_of(np.array([0.07, 0.29])) == 100
    assert grid_of(np.array([1 / 3, 2 / 3])) == 3
    assert grid_of(np.array([np.pi / 4])) is None
    assert samples_of(np.array([[[0.5, 1.0]]])).unit == 2
    assert not samples_of(np.array([[[0.5, 0.0]]])).binary
    assert samples_of(np.array([[[True, False]]])).binary


def large_and_small():
    """Scores by what makes them hard: integers that no 64 bits can square, a spread far below the scores, and tiny ones."""
    rng = np.random.default_rng(6)
    whole = rng.integers(1, 10, (2, 40, 5))
    part = rng.random((2, 40, 5))
    return {
        "1e9": whole * 1e9,
        "1e10 integers": whole * 10**10,
        "below 0": whole * -(10**10),
        "1e6 +": part + 1e6,
        "0..100": 100 * part,
        "hundredths": np.rint(9907 * part) / 100,
        "many tasks, hundredths": np.rint(10000 * rng.random((2, 2000, 3))) / 100,
        "1e-14": part * 1e-14,
        "1e-14, on a grid": whole * 1e-14,
        "tasks far apart": part + 1e6 * np.arange(40)[:, None],
    }


@pytest.mark.parametrize("case", large_and_small())
def test_scores_of_any_size(case):
    scores = large_and_small()[case]
    a, b = ([[Fraction(x.item()) for x in task] for task in model] for model in scores)
    k = len(a[0])
    mean_a, mean_b = ([sum(task) / k for task in model] for model in (a, b))
    s2 = [[sum((x - m) ** 2 for x in task) / (k - 1) for task, m in zip(*x, strict=True)] for x in ((a, mean_a), (b, mean_b))]
    gaps = [x - y for x, y in zip(mean_a, mean_b, strict=True)]
    n = len(gaps)
    mean, prediction = sum(gaps) / n, sum(map(sum, s2)) / n
    of_mean = sum((gap - mean) ** 2 for gap in gaps) / n
    wide = samples_of(scores)
    m, t, _ = np.indices(scores.shape)
    long = samples_of_cells(m.ravel(), t.ravel(), scores.ravel().astype(float), shape=scores.shape[:2])
    for found in (paired_noise(*scores), all_pairs(wide).pair(0), all_pairs(long).pair(0)):
        assert found.prediction == pytest.approx(float(prediction), rel=1e-8)
        assert found.of_mean == pytest.approx(float(of_mean), rel=1e-7)
        assert found.total == pytest.approx(float(of_mean + prediction * (k - 1) / k), rel=1e-7)
        assert found.mean == pytest.approx(float(mean), rel=1e-6)
        assert found.z == pytest.approx(float(mean) / np.sqrt(float(of_mean) / n), rel=1e-6)
        assert (found.score_a, found.score_b) == pytest.approx((float(sum(mean_a) / n), float(sum(mean_b) / n)), rel=1e-12)
    one = single_noise(scores[0])
    middle = sum(mean_a) / n
    total = sum((x - middle) ** 2 for task in a for x in task) / (n * k)
    assert one.total == pytest.approx(float(total), rel=1e-7)
    assert one.prediction == pytest.approx(float(sum(s2[0]) / n), rel=1e-8)


def test_a_grid_and_a_large_one_on_it():
    """Sixteenths against thousandths: one unit would be too fine for integers of this size."""
    rng = np.random.default_rng(7)
    a, b = rng.integers(0, 10**6, (30, 4)) / 16, rng.integers(0, 10**7, (30, 4)) / 1000
    assert (samples_of(a[None]).unit, samples_of(b[None]).unit) == (16, 1000)
    found = paired_noise(a, b)
    assert (found.total, found.data, found.prediction) == pytest.approx(direct(a, b), rel=1e-9)


def test_what_does_not_vary_has_no_noise_at_any_size():
    same = np.repeat(np.random.default_rng(8).random((30, 1)) * 1e6, 7, axis=1)
    found = paired_noise(same, same + 12345.678)
    assert (found.prediction, found.of_mean, found.z, found.z_runs) == (0.0, 0.0, None, None)


def test_scores_without_squares_are_refused():
    for size in (1e200, 1e-200):
        with pytest.raises(ValueError, match="the largest score is"):
            samples_of(np.random.default_rng(9).random((1, 3, 2)) * size)


@given(seed=st.integers(0, 10**6), levels=st.sampled_from([1, 2, 7]))
def test_long_format_gives_the_same_samples(seed, levels):
    rng = np.random.default_rng(seed)
    scores, known = rng.integers(0, levels + 1, (3, 7, 4)) / levels, rng.random((3, 7, 4)) < 0.6
    models, tasks, _ = np.nonzero(known)
    order = rng.permutation(len(models))
    wide = samples_of(scores, known)
    long = samples_of_cells(models[order], tasks[order], scores[known][order], shape=(3, 7))
    assert long.runs.tolist() == wide.runs.tolist()
    assert long.means == pytest.approx(wide.means, abs=1e-15)
    one, other = all_pairs(wide), all_pairs(long)
    for name in ("mean", "total", "data", "prediction"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-13)


def test_what_is_refused():
    with pytest.raises(ValueError, match="task 0, sample 1"):
        samples_of([[[0.5, np.nan]]])
    assert samples_of([[[0.5, np.nan]]], [[[True, False]]]).runs.tolist() == [[1]]
    with pytest.raises(ValueError, match="shape"):
        samples_of([[0.5]])
    with pytest.raises(ValueError, match="same N tasks"):
        paired_noise([[1]], [[1], [0]])
    with pytest.raises(ValueError, match="one shape"):
        Samples(runs=np.zeros((1, 2), int), sums=np.zeros((1, 3), int), squares=np.zeros((1, 2), int), unit=1)
