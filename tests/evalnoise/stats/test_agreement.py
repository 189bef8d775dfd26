"""A judge against execution: majorities, ties, unparsed verdicts and stated confidence."""

import numpy as np
import pytest
from scipy.stats import binom

from evalnoise.stats.agreement.judge import judge_agreement
from evalnoise.stats.estimate import Covers, Method

P, F, U = 1, 0, -1


def test_a_small_table_by_hand():
    verdicts = np.array(
        [
            [P, P, P, P],  # agrees
            [P, P, P, F],  # false accept
            [F, F, F, F],  # false reject
            [P, P, F, F],  # tie
            [U, U, U, U],  # no verdict
            [P, U, U, F],  # tie among the parsed
            [F, U, U, U],  # agrees, on one verdict
            [P, P, P, P],  # reference unmeasured
        ]
    )
    reference = np.array([P, F, P, P, F, F, F, U])
    found = judge_agreement(verdicts, reference, seed=0)
    assert (found.compared, found.disagreements, found.false_accepts, found.false_rejects) == (4, 2, 1, 1)
    assert (found.ties, found.without_verdict, found.without_reference) == (2, 1, 1)
    assert (found.verdicts, found.unparsed, found.unparsed_share) == (32, 9, 9 / 32)
    assert found.disagreement.value == 0.5
    assert (found.disagreement.n_tasks, found.disagreement.n_replicates) == (4, 1)
    assert found.passes.tolist() == [4, 3, 0, 2, 0, 1, 0, 4]
    assert found.runs.tolist() == [4, 4, 4, 4, 0, 2, 1, 4]
    # Seven... six tasks have two parsed verdicts: 3/12, 4/12 and 1/2 of them vary.
    assert found.variance.n_tasks == 6
    assert found.variance.variable_tasks == 3
    assert found.variance.w == pytest.approx((3 / 12 + 4 / 12 + 1 / 2) / 6)


def test_a_stable_judge_can_be_wrong():
    verdicts = np.ones((40, 5), dtype=int)
    reference = np.r_[np.ones(30, dtype=int), np.zeros(10, dtype=int)]
    found = judge_agreement(verdicts, reference, seed=0)
    assert found.variance.w == 0
    assert found.disagreement.value == 0.25
    assert 0 < found.disagreement.lo < 0.25 < found.disagreement.hi


def one_judge(wrong, items):
    return judge_agreement(np.ones((items, 1), dtype=int), np.r_[np.zeros(wrong, int), np.ones(items - wrong, int)], seed=0)


def test_the_exact_interval_of_disagreement_covers():
    """49 items, one in 14 wrong: summed over all counts, the percentile's upper end misses 0.1, the exact one's at most 0.025."""
    rate, missed = 0.07, np.zeros((2, 2))
    for wrong in range(16):
        found = one_judge(wrong, 49)
        for row, share in enumerate((found.disagreement, found.disagreement_exact)):
            missed[row] += binom.pmf(wrong, 49, rate) * np.array([rate < share.lo, rate > share.hi])
    assert missed[0, 1] > 0.08
    assert missed[1].max() <= 0.025


@pytest.mark.parametrize(
    ("wrong", "said"), [(1, "1 disagreement: "), (14, "14 disagreements: "), (15, ""), (85, ""), (99, "1 agreement: ")]
)
def test_few_disagreements_or_agreements_are_said(wrong, said):
    found = one_judge(wrong, 100)
    assert found.disagreement.note.startswith(said)
    assert ("quote Clopper-Pearson's" in found.disagreement.note) == bool(said)
    exact = found.disagreement_exact
    assert (exact.method, exact.covers, exact.note) == (Method.CLOPPER_PEARSON, Covers.POPULATION, "")
    assert (exact.seed, exact.resamples) == (None, None)
    assert exact.value == found.disagreement.value == wrong / 100


def test_one_candidate_has_no_interval():
    found = one_judge(1, 1)
    assert found.disagreement.lo is None
    assert found.disagreement_exact.lo is None
    assert found.disagreement_exact.undefined == found.disagreement.undefined != ""


def test_unparsed_verdicts_are_not_failures():
    verdicts = np.array([[P, U, U, U, U]] * 10)
    found = judge_agreement(verdicts, np.ones(10, dtype=int), seed=0)
    assert found.disagreement.value == 0
    assert found.disagreement.note.startswith("proves nothing")
    assert found.unparsed_share == 0.8
    assert found.variance.undefined


def test_confidence_is_read_only_where_it_was_stated():
    verdicts = np.array([[P, F], [P, U]])
    confidence = np.array([[90.0, np.nan], [80.0, np.nan]])
    found = judge_agreement(verdicts, [P, P], confidence=confidence, stated=[[True, False], [True, False]], seed=0)
    assert (found.mean_confidence, found.stated) == (85.0, 2)
    none = judge_agreement(verdicts, [P, P], confidence=confidence, stated=np.zeros((2, 2), dtype=bool), seed=0)
    assert (none.mean_confidence, none.stated) == (None, 0)
    with pytest.raises(ValueError, match="finite"):
        judge_agreement(verdicts, [P, P], confidence=confidence, stated=np.ones((2, 2), dtype=bool), seed=0)
    with pytest.raises(ValueError, match="verdicts' shape"):
        judge_agreement(verdicts, [P, P], confidence=confidence, seed=0)


@pytest.mark.parametrize("verdicts", [np.zeros((0, 3), dtype=int), np.zeros((2, 0), dtype=int), np.full((2, 3), U)])
def test_nothing_to_compare(verdicts):
    found = judge_agreement(verdicts, np.ones(len(verdicts), dtype=int), seed=0)
    assert found.disagreement.value is None
    assert found.disagreement.undefined == "no task has both a majority verdict and a measured reference"
    assert (found.unparsed_share is None) == (verdicts.size == 0)


def test_codes_are_checked():
    with pytest.raises(ValueError, match="verdicts are integers 1, 0 or -1"):
        judge_agreement([[2]], [1], seed=0)
    with pytest.raises(ValueError, match="reference are integers 1, 0 or -1"):
        judge_agreement([[1]], [0.5], seed=0)
    with pytest.raises(ValueError, match="one row per task"):
        judge_agreement([[1]], [1, 0], seed=0)
