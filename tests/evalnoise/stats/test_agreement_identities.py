"""What agreement coefficients are of each other, and of w; and what has no value has a reason."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evalnoise.stats.agreement.confusion import confusion, majority
from evalnoise.stats.agreement.icc import ALL_EQUAL, NO_ITEMS, NO_REPEATS, icc, icc_f, icc_of_counts, one_way, one_way_of_counts
from evalnoise.stats.agreement.kappa import (
    NO_ITEM,
    NOT_BINARY,
    ONE_CATEGORY,
    agreement_table,
    cohen_kappa,
    kappa_at_margins,
    pass_fail_table,
    two_graders,
)
from evalnoise.stats.agreement.many import NO_PAIR, ONE_VALUE, UNEQUAL, Metric, category_counts, fleiss_kappa, krippendorff_alpha
from evalnoise.stats.agreement.margins import alpha_at_share, icc_at_share
from evalnoise.stats.agreement.panel import judge_numbers, two_judges
from evalnoise.stats.agreement.repeats import repeats
from evalnoise.stats.variance import variable_share, within_task_variance

DRAWN = {"seed": 0, "resamples": 100}
verdicts = st.tuples(st.integers(2, 12), st.integers(2, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 1))
)
holes = st.tuples(st.integers(2, 12), st.integers(2, 6)).flatmap(lambda shape: arrays(np.int64, shape, elements=st.integers(-1, 1)))


def counts(table):
    return (table == 1).sum(axis=1), (table != -1).sum(axis=1)


def pairs_of(row):
    return list(combinations([int(value) for value in row if value != -1], 2))


@settings(deadline=None, max_examples=40)
@given(holes)
def test_repeat_pairs_by_enumeration(table):
    k, n = counts(table)
    found = repeats(k, n, **DRAWN)
    rows = [pairs_of(row) for row in table if len(pairs_of(row))]
    if not rows:
        assert all(estimate.value is None and estimate.undefined for _, estimate in found.named())
        return
    agree = sum((Fraction(sum(a == b for a, b in row), len(row)) for row in rows), Fraction()) / len(rows)
    both = sum((Fraction(sum(a + b - 1 for a, b in row), len(row)) for row in rows), Fraction()) / len(rows)
    w = within_task_variance(k, n).w
    assert found.test_retest[0].value == float(agree) == pytest.approx(1 - 2 * w, abs=1e-15)
    assert found.pabak[0].value == float(2 * agree - 1) == pytest.approx(1 - 4 * w, abs=1e-15)
    assert found.prevalence.value == float(both)
    varied = sum(len(set(np.array(row).ravel())) > 1 for row in rows)
    assert found.flip_rate.value == varied / len(rows)
    assert found.flip_rate == variable_share(k, n)
    for estimate in (*found.test_retest, *found.pabak):
        assert estimate.lo is None or estimate.lo <= estimate.hi


@settings(deadline=None, max_examples=40)
@given(verdicts)
def test_grader_share_is_one_less_icc(table):
    k, n = counts(table)
    repeat = table.shape[1]
    found = one_way(table)
    assert found == one_way_of_counts(k, n)
    if found.icc is None:
        assert found.undefined == ALL_EQUAL
        return
    # Section 2's estimator with one generation: grader = mean variance, task = variance of means less grader / R.
    grader = table.var(axis=1, ddof=1).mean()
    task = table.mean(axis=1).var(ddof=1) - grader / repeat
    assert found.within == pytest.approx(grader, abs=1e-12)
    assert grader / (grader + task) == pytest.approx(1 - found.icc, abs=1e-9)
    assert found.k0 == repeat
    assert icc_of_counts(k, n, **DRAWN).value == found.icc == icc_at_share(k, n, **DRAWN).value


@settings(deadline=None, max_examples=30)
@given(holes)
def test_unbalanced_icc_is_the_anova_of_the_ratings(table):
    present = table != -1
    found = one_way(table, present)
    rows = [row[mask].astype(float) for row, mask in zip(table, present, strict=True) if mask.any()]
    total = sum(len(row) for row in rows)
    if len(rows) < 2 or total == len(rows):
        assert found.undefined == (NO_ITEMS if len(rows) < 2 else NO_REPEATS)
        return
    grand = np.concatenate(rows).mean()
    between = sum(len(row) * (row.mean() - grand) ** 2 for row in rows) / (len(rows) - 1)
    within = sum(((row - row.mean()) ** 2).sum() for row in rows) / (total - len(rows))
    k0 = (total - sum(len(row) ** 2 for row in rows) / total) / (len(rows) - 1)
    assert (found.between, found.within, found.k0) == pytest.approx((between, within, k0), abs=1e-12)
    if found.icc is not None:
        assert found.icc == pytest.approx((between - within) / (between + (k0 - 1) * within), abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(holes)
def test_alpha_of_pass_and_fail_by_its_definition(table):
    rows = [[int(v) for v in row if v != -1] for row in table]
    rows = [row for row in rows if len(row) >= 2]
    found = krippendorff_alpha(table, table != -1, **DRAWN)
    flat = [v for row in rows for v in row]
    if not rows or len(set(flat)) < 2:
        assert found.value is None
        assert found.undefined == (ONE_VALUE if rows else NO_PAIR)
        assert alpha_at_share(table, **DRAWN).undefined == found.undefined
        return
    n = len(flat)
    seen = sum((Fraction(2 * sum(a != b for a, b in combinations(row, 2)), len(row) - 1) for row in rows), Fraction()) / n
    chance = Fraction(2 * sum(a != b for a, b in combinations(flat, 2)), n * (n - 1))
    assert found.value == float(1 - seen / chance)
    assert krippendorff_alpha(table, table != -1, metric=Metric.INTERVAL, **DRAWN).value == found.value
    at_share = alpha_at_share(table, **DRAWN)
    assert at_share.value == found.value
    assert -1 <= at_share.lo <= at_share.value + 1e-9 <= at_share.hi + 2e-9


@settings(deadline=None, max_examples=30)
@given(verdicts)
def test_two_graders_by_hand(table):
    a, b = table[:, 0], table[:, 1]
    found = two_graders(pass_fail_table(a, b), **DRAWN)
    n, same = len(a), int((a == b).sum())
    chance = Fraction(int(a.sum()) * int(b.sum()) + int((1 - a).sum()) * int((1 - b).sum()), n * n)
    assert found.agreement.value == same / n
    assert found.pabak.value == float(2 * Fraction(same, n) - 1)
    assert found.bias.value == pytest.approx(a.mean() - b.mean(), abs=1e-12)
    assert found.prevalence.value == pytest.approx((int((a & b).sum()) - int(((1 - a) & (1 - b)).sum())) / n, abs=1e-12)
    if chance == 1:
        assert (found.kappa.value, found.kappa.undefined) == (None, ONE_CATEGORY)
        return
    kappa = float((Fraction(same, n) - chance) / (1 - chance))
    assert found.kappa.value == kappa == found.kappa_percentile.value
    assert found.kappa.lo <= kappa <= found.kappa.hi
    # Kappa from PABAK, prevalence and bias (Byrt, Bishop and Carlin 1993).
    p, q = found.prevalence.value, found.bias.value
    assert kappa == pytest.approx((found.pabak.value - p * p + q * q) / (1 - p * p + q * q), abs=1e-9)


def test_what_has_no_value_has_a_reason_and_never_is_one():
    ones = np.ones((5, 3), dtype=int)
    assert cohen_kappa([[5, 0], [0, 0]], **DRAWN).undefined == ONE_CATEGORY
    assert kappa_at_margins([[5, 0], [0, 0]]).undefined == ONE_CATEGORY
    assert cohen_kappa([[0, 0], [0, 0]], **DRAWN).undefined == NO_ITEM
    assert krippendorff_alpha(ones, **DRAWN).undefined == ONE_VALUE
    assert krippendorff_alpha(ones[:, :1], **DRAWN).undefined == NO_PAIR
    assert fleiss_kappa(category_counts(ones, 2), **DRAWN).undefined == ONE_VALUE
    assert fleiss_kappa([[1, 0], [0, 1]], **DRAWN).undefined == NO_PAIR
    assert fleiss_kappa([[2, 0], [1, 2]], **DRAWN).undefined == UNEQUAL
    assert fleiss_kappa(np.zeros((0, 2), dtype=int), **DRAWN).undefined == NO_PAIR
    assert icc(ones, **DRAWN).undefined == ALL_EQUAL
    assert icc(ones[:1], **DRAWN).undefined == NO_ITEMS
    assert icc(ones[:, :1], **DRAWN).undefined == NO_REPEATS
    assert icc_at_share([3, 3], [3, 3], **DRAWN).undefined == ALL_EQUAL
    assert two_graders([[1, 0, 0], [0, 1, 0], [0, 0, 1]], **DRAWN).bias.undefined == NOT_BINARY
    assert confusion([1, 1], [1, 1]).false_accept_rate.undefined.startswith("no item is wrong")
    assert confusion([-1, 1], [1, -1]).accuracy.undefined == NO_ITEM
    never = icc([[1, 1], [0, 0]], **DRAWN)
    assert never.value == 1.0
    assert icc_f([[1, 1], [0, 0]]).undefined.endswith("F is infinite")


def test_an_interval_of_no_width_proves_nothing_and_the_other_one_has_width():
    agree = [[20, 0], [0, 20]]
    assert cohen_kappa(agree, **DRAWN).note.startswith("proves nothing")
    at_margins = kappa_at_margins(agree)
    assert (at_margins.value, at_margins.hi) == (1.0, 1.0)
    assert 0.7 < at_margins.lo < 0.9
    k, n = np.array([5] * 20 + [0] * 20), np.full(40, 5)
    assert icc_of_counts(k, n, **DRAWN).note.startswith("proves nothing")
    assert icc_at_share(k, n, **DRAWN).lo < 0.95
    table = np.repeat(k[:, None] // 5, 5, axis=1)
    assert krippendorff_alpha(table, **DRAWN).note.startswith("proves nothing")
    assert alpha_at_share(table, **DRAWN).lo < 0.95


def test_a_limit_of_w_from_above_is_one_of_agreement_from_below():
    found = repeats(np.full(10, 5), np.full(10, 5), **DRAWN)
    assert "a lower limit" in found.test_retest[0].note
    assert found.test_retest[0].hi == 1.0 > found.test_retest[0].lo


def test_confusion_leaves_out_what_is_not_known():
    found = confusion([1, 1, 0, 0, -1, 1], [1, 0, 1, 0, 1, -1])
    assert found.table.tolist() == [[1, 1], [1, 1]]
    assert (found.false_accepts, found.false_rejects) == (1, 1)
    assert (found.accuracy.value, found.accuracy.n_tasks) == (0.5, 4)
    assert (found.false_accept_rate.value, found.false_reject_rate.value) == (0.5, 0.5)
    assert majority([[1, 1, 0], [1, 0, -1], [-1, -1, -1], [0, -1, -1]]).tolist() == [1, -1, -1, 0]


def test_the_same_seed_gives_the_same_numbers_and_every_interval_says_what_it_covers():
    rng = np.random.default_rng(5)
    table = np.where(rng.random((30, 4)) < 0.05, -1, (rng.random((30, 4)) < rng.beta(0.3, 0.2, 30)[:, None]).astype(int))
    reference = rng.integers(0, 2, 30)
    sure, stated = rng.integers(50, 101, table.shape).astype(float), rng.random(table.shape) < 0.9
    made = [list(judge_numbers(table, reference, confidence=sure, stated=stated, seed=3, resamples=300)) for _ in range(2)]
    assert made[0] == made[1]
    names = {name for name, _ in made[0]}
    assert names >= {"flip_rate", "test_retest", "icc", "pabak", "prevalence", "alpha", "kappa", "brier", "ece", "accuracy"}
    keys = [(name, one.method, one.covers) for name, one in made[0]]
    assert len(set(keys)) == len(keys), "no two rows of `estimates` have one key"
    for _, one in made[0]:
        assert (one.lo is None) == (one.covers == "") == (one.level is None)
        assert one.value is not None or one.undefined


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="counts"):
        cohen_kappa([[1.0, 0.0], [0.0, 1.0]], **DRAWN)
    with pytest.raises(ValueError, match="counts"):
        cohen_kappa([[1, -1], [0, 1]], **DRAWN)
    with pytest.raises(ValueError, match="codes lie under 2"):
        agreement_table([0, 2], [0, 1], 2)
    with pytest.raises(ValueError, match="codes"):
        category_counts([[0, 2]], 2)
    with pytest.raises(ValueError, match="finite"):
        icc([[1.0, np.nan]], **DRAWN)
    with pytest.raises(ValueError, match="one row per task"):
        two_judges([[1]], [[1], [0]], **DRAWN)
    with pytest.raises(ValueError, match="1, 0 or -1"):
        confusion([2], [1])


@pytest.mark.parametrize("shift", [0, 10**6, 10**12])
def test_large_ratings_lose_no_digits(shift):
    small = np.random.default_rng(1).integers(0, 6, (40, 3))
    for numbers in (small + shift, (small + shift).astype(float)):
        moved = icc(numbers, **DRAWN)
        still = icc(small, **DRAWN)
        assert (moved.value, moved.lo, moved.hi) == pytest.approx((still.value, still.lo, still.hi), abs=1e-6)
        moved = krippendorff_alpha(numbers, metric=Metric.INTERVAL, **DRAWN)
        still = krippendorff_alpha(small, metric=Metric.INTERVAL, **DRAWN)
        assert (moved.value, moved.lo, moved.hi) == pytest.approx((still.value, still.lo, still.hi), abs=1e-6)
