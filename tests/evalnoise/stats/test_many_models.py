"""What follows from many models at once: beta line, averaging over checkpoints, the null check, tasks by difficulty."""

import numpy as np
import pytest
from scipy import stats

from evalnoise.stats.models.beta_theory import NO_PAIR, beta_fit, beta_ratios, beta_se
from evalnoise.stats.models.checkpoints import averaging, null_check, samples_for
from evalnoise.stats.models.difficulty import difficulty
from evalnoise.stats.models.noise import ALL_EQUAL
from evalnoise.stats.models.pairs import all_pairs, paired_noise
from evalnoise.stats.models.samples import samples_of


def test_the_beta_line():
    assert beta_se(0.5, 100) == 0.05
    assert beta_se([0.1, 0.0], [900, 5]).tolist() == pytest.approx([0.01, 0.0])
    with pytest.raises(ValueError, match="between 0 and 1"):
        beta_se(1.1, 10)


def test_independent_coin_flips_lie_above_it_by_the_root_of_two():
    """Two models of accuracy p that share nothing have a variance of 2 p (1-p)."""
    rng = np.random.default_rng(0)
    scores = rng.binomial(1, 0.3, (6, 20_000, 1))
    fit = beta_fit(all_pairs(samples_of(scores)))
    assert fit.median_ratio == pytest.approx(np.sqrt(2), rel=0.02)
    assert (fit.pairs, fit.left_out) == (15, 0)
    assert fit.lo <= fit.median_ratio <= fit.hi


def test_pairs_without_a_line_are_left_out():
    found = all_pairs(samples_of(np.ones((3, 5, 2), int)))
    assert np.isnan(beta_ratios(found)).all()
    fit = beta_fit(found)
    assert (fit.pairs, fit.left_out, fit.median_ratio, fit.undefined) == (0, 3, None, NO_PAIR)


def test_averaging_over_independent_checkpoints():
    """Checkpoints of one rate differ by prediction noise alone: the variance falls to data + prediction / J."""
    rng = np.random.default_rng(4)
    p = rng.beta(0.5, 0.5, 4000)
    q = np.clip(p + 0.02, 0, 1)
    scores = np.stack([rng.binomial(1, x) for x in (p,) * 5 + (q,) * 5])[:, :, None]
    found = averaging(samples_of(scores), range(5), range(5, 10))
    assert found.se_averaged == pytest.approx(found.se_single / np.sqrt(5), rel=0.05)
    assert found.difference == pytest.approx(scores[:5].mean() - scores[5:].mean(), abs=1e-12)
    assert abs(found.z_averaged) > abs(found.z_single)
    gap = scores[:5, :, 0].mean(axis=0) - scores[5:, :, 0].mean(axis=0)
    assert found.se_averaged == pytest.approx(np.sqrt(np.var(gap) / 4000), abs=1e-14)
    singles = [np.var(scores[i, :, 0] - scores[j, :, 0]) for i in range(5) for j in range(5, 10)]
    assert found.se_single == pytest.approx(np.sqrt(np.mean(singles) / 4000), abs=1e-14)


@pytest.mark.parametrize("graded", [False, True])
def test_averages_that_differ_alike_have_no_z(graded):
    """0.1 + 0.2 is no 0.3 in binary, so that equal differences are not equal floats."""
    b = np.arange(60) % 7 / 10 + (np.pi / 100 if graded else 0)
    found = averaging(samples_of(np.stack([b + 0.3, b + 0.2, b + 0.1, b])[:, :, None]), [0, 1], [2, 3])
    assert (found.se_single, found.se_averaged, found.z_single, found.z_averaged) == (0.0, 0.0, None, None)
    assert found.undefined == ALL_EQUAL
    assert found.difference == pytest.approx(0.2)
    other = averaging(samples_of(np.stack([b + 0.3, b + 0.2, b + 0.1, np.where(b < 0.2, b, b + 0.05)])[:, :, None]), [0, 1], [2, 3])
    assert other.z_averaged is not None
    assert other.undefined == ""


def test_averaging_needs_the_same_tasks():
    scores, known = np.zeros((2, 3, 1), int), np.ones((2, 3, 1), bool)
    known[0, 0] = False
    found = averaging(samples_of(scores, known), [0], [1])
    assert (found.difference, found.se_averaged) == (None, None)
    assert "without a sample" in found.undefined
    with pytest.raises(ValueError, match="none in common"):
        averaging(samples_of(scores), [0], [0, 1])


def test_samples_for_a_standard_error():
    rng = np.random.default_rng(1)
    p, q = rng.random((2, 500, 1))
    found = paired_noise(rng.binomial(1, p, (500, 6)), rng.binomial(1, q, (500, 6)))
    floor = np.sqrt(found.data / 500)
    assert samples_for(found, floor * 0.99) is None
    k = samples_for(found, floor * 1.05)
    assert np.sqrt((found.data + found.prediction / k) / 500) <= floor * 1.05
    assert np.sqrt((found.data + found.prediction / (k - 1)) / 500) > floor * 1.05
    assert samples_for(found, 1.0) == 1


def seeds(extra, n_seeds=40, n=400):
    rng = np.random.default_rng(8)
    p = rng.beta(0.5, 0.5, n)
    shifts = rng.normal(0, extra, (n_seeds, 1))
    return samples_of(rng.binomial(1, np.clip(p + shifts, 0, 1))[:, :, None])


def test_seeds_of_one_model_look_alike():
    found = null_check(seeds(0.0))
    assert (found.seeds, found.pairs, found.left_out) == (40, 780, 0)
    five, one = found.shares
    assert (five.level, one.level, five.disjoint_pairs) == (0.05, 0.01, 20)
    assert five.share == pytest.approx(0.05, abs=0.05)
    assert one.share == pytest.approx(0.01, abs=0.02)
    assert five.p_more > 0.05
    assert found.distance < 0.25
    assert "is not shown" in found.note
    assert "20 pairs that share no seed" in found.note
    assert "depend on one another" in found.note


def test_seeds_that_differ_are_found():
    found = null_check(seeds(0.1))
    assert found.shares[0].share > 0.3
    assert found.shares[0].p_more < 1e-3
    assert found.shares[0].p_more == pytest.approx(stats.binom.sf(found.shares[0].disjoint - 1, 20, 0.05))
    assert found.distance > 0.3
    assert found.note.endswith("seeds differ by more than their samples do")
    assert "More small p-values than chance gives" in found.note


def test_no_pair_of_seeds_with_a_p_value():
    found = null_check(samples_of(np.ones((2, 4, 1), int)))
    assert (found.pairs, found.left_out, found.shares[0].share, found.distance) == (0, 1, None, None)
    assert found.undefined
    assert "nothing is shown" in found.note


def test_tasks_by_difficulty():
    scores = np.array([[1, 0, 0, 1], [1, 1, 0, 1], [0, 1, 0, 1]])[:, :, None]
    known = np.ones(scores.shape, bool)
    known[2, 0] = False
    found = difficulty(samples_of(scores, known))
    # Task 0 was passed by both models that have it, task 3 by all three: the tie keeps the order they came in.
    assert found.tasks.tolist() == [0, 3, 1, 2]
    assert found.models.tolist() == [0, 2, 1]
    assert found.accuracy.tolist() == pytest.approx([0.5, 2 / 3, 0.75])
    assert np.isnan(found.cells[0, 1])
    assert found.cells[1].tolist() == [1, 1, 1]
    thin = difficulty(samples_of(scores, known), most_rows=2)
    assert thin.row_starts.tolist() == [0, 2]
    assert thin.cells[0].tolist() == [1.0, 1.0, 1.0]
    assert thin.cells[1].tolist() == [0.0, 0.5, 0.5]
    empty = difficulty(samples_of(np.zeros((2, 0, 1), int)))
    assert empty.cells.shape == (0, 0)
