"""What follows from many models at once: beta line, averaging over checkpoints, the null check, tasks by difficulty."""

import itertools

import numpy as np
import pytest
from scipy import stats

from evalnoise.stats.models.beta_theory import NO_PAIR, beta_fit, beta_ratios, beta_se
from evalnoise.stats.models.checkpoints import NO_P, NOTHING_DEALT, NOTHING_RARE, averaging, null_check, samples_for
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


def seeds(extra, n_seeds=20, n=150):
    rng = np.random.default_rng(8)
    p = rng.beta(0.5, 0.5, n)
    shifts = rng.normal(0, extra, (n_seeds, 1))
    return samples_of(rng.binomial(1, np.clip(p + shifts, 0, 1))[:, :, None])


def test_seeds_of_one_model_look_alike():
    found = null_check(seeds(0.0), resamples=99)
    assert (found.seeds, found.n_tasks, found.pairs, found.left_out, found.dealt) == (20, 150, 190, 0, 20)
    five, one = found.shares
    assert (five.level, one.level) == (0.05, 0.01)
    assert five.share == pytest.approx(0.05, abs=0.05)
    assert one.share == pytest.approx(0.01, abs=0.02)
    assert (five.expected, one.expected) == pytest.approx((0.05, 0.01), abs=0.01)
    assert found.p > 0.05
    assert found.distance < 0.25
    assert "is not shown" in found.note
    assert "depend on one another" in found.note
    assert "takes tasks for independent" in found.note
    assert found == null_check(seeds(0.0), resamples=99)


def test_seeds_that_differ_are_found():
    found = null_check(seeds(0.1), resamples=99)
    assert found.shares[0].share > 0.3
    assert [share.p_more for share in found.shares] == [1 / 100, 1 / 100]
    assert found.p == pytest.approx(0.02)
    assert found.distance > 0.3
    assert found.note.endswith("some seeds are better than others")
    assert "More small p-values than chance gives" in found.note


def test_no_pair_of_seeds_with_a_p_value():
    found = null_check(samples_of(np.ones((2, 4, 1), int)))
    assert (found.pairs, found.left_out, found.shares[0].share, found.distance) == (0, 1, None, None)
    assert (found.p, found.undefined) == (None, NO_P)
    assert "Nothing is shown" in found.note


def test_the_chance_of_two_seeds_is_that_of_all_deals():
    """Of two seeds a deal swaps their scores in some tasks: all 2^8 are counted."""
    a, b = np.array([1] * 7 + [0] + [1, 0] * 6), np.array([0] * 7 + [1] + [1, 0] * 6)
    found = null_check(samples_of(np.stack([a, b])[:, :, None]), levels=(0.05,), resamples=999)
    signs = np.array(list(itertools.product((-1, 1), repeat=8)))
    p = stats.ttest_1samp(np.concatenate([signs, np.zeros((256, 12))], axis=1), 0.0, axis=1).pvalue
    assert stats.ttest_rel(a, b).pvalue < 0.05
    (share,) = found.shares
    assert share.expected == pytest.approx(np.mean(p < 0.05), abs=0.02)
    assert share.p_more is None  # 18 of 256 are no rare thing
    assert found.undefined == share.undefined == NOTHING_RARE


def test_few_tasks_do_not_make_seeds_differ():
    """A normal p and a binomial chance saw a difference in a quarter of such panels."""
    rng = np.random.default_rng(10)
    panels = [rng.binomial(1, rng.beta(0.5, 0.5, 10)[None, :, None], (100, 10, 1)) for _ in range(30)]
    checks = [null_check(samples_of(x), seed=row, resamples=49) for row, x in enumerate(panels)]
    # Of 30 at a rate of 5 %, 5 or more have a chance of 2 %.
    assert sum(check.p is not None and check.p < 0.05 for check in checks) < 5


def test_seeds_are_dealt_to_those_with_as_many_samples():
    """Seeds of one and of four samples a task, one of them of few tasks: unlike spreads are no difference of seeds."""
    rng = np.random.default_rng(4)
    scores = rng.binomial(1, rng.beta(0.5, 0.5, (1, 30, 1)), (12, 30, 4))
    known = np.ones(scores.shape, bool)
    known[:6, :, 1:] = known[11, 10:] = False
    found = null_check(samples_of(scores, known), resamples=99)
    assert found.pairs == 66
    assert found.p > 0.05
    # A seed that is alone with its number of samples keeps its scores.
    alone = null_check(samples_of(scores[5:7], known[5:7]), resamples=9)
    assert (alone.p, alone.undefined) == (None, NOTHING_DEALT)
    # The first six fail where any other passes.
    scores[:6] = 0
    assert null_check(samples_of(scores[:, :, :1]), resamples=99).p == pytest.approx(0.02)
    with pytest.raises(ValueError, match="levels lie between"):
        null_check(samples_of(scores), levels=())


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
