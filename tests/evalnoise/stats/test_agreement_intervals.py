"""How often the intervals of agreement miss: kappa's exactly, over all tables; ICC's and alpha's by a short simulation."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import multinomial

from evalnoise.stats.agreement.calibration import NONE_STATED, calibration
from evalnoise.stats.agreement.icc import icc
from evalnoise.stats.agreement.kappa import cohen_kappa, kappa_at_margins
from evalnoise.stats.agreement.many import fleiss_kappa
from evalnoise.stats.agreement.margins import icc_at_share
from evalnoise.stats.agreement.resampled import BELOW_LEAST, held
from evalnoise.stats.estimate import Estimate

N = 20
SOME = [[True, False, True], [False, True, True], [True, True, True], [True, True, False], [True, False, False]]
"""Items rated once, twice and three times."""


@pytest.fixture(scope="module")
def tables():
    """Every table of N items, with the interval of kappa; NaN where there is none."""
    cells = np.array([(a, b, c, N - a - b - c) for a, b, c in product(range(N + 1), repeat=3) if a + b + c <= N])
    made = [kappa_at_margins(row.reshape(2, 2)) for row in cells]
    ends = np.array([(np.nan, np.nan) if one.lo is None else (one.lo, one.hi) for one in made])
    return cells, ends


@pytest.mark.parametrize(
    ("cells", "kappa"),
    [
        ((0.45, 0.05, 0.05, 0.45), 0.8),
        ((0.485, 0.015, 0.015, 0.485), 0.94),
        ((0.63, 0.06, 0.07, 0.24), None),
        ((0.85, 0.05, 0.05, 0.05), None),
        ((0.25, 0.25, 0.25, 0.25), 0.0),
    ],
)
def test_kappa_at_margins_misses_little_on_either_side(tables, cells, kappa):
    all_tables, ends = tables
    q = np.array(cells)
    chance = (q[0] + q[1]) * (q[0] + q[2]) + (q[2] + q[3]) * (q[1] + q[3])
    true = (q[0] + q[3] - chance) / (1 - chance)
    if kappa is not None:
        assert true == pytest.approx(kappa, abs=1e-9)
    share = multinomial.pmf(all_tables, N, q)
    defined = ~np.isnan(ends[:, 0])
    total = share[defined].sum()
    assert share[defined & (true < ends[:, 0] - 1e-12)].sum() / total < 0.026
    assert share[defined & (true > ends[:, 1] + 1e-12)].sum() / total < 0.026


def test_the_bootstraps_interval_of_kappa_warns_where_it_misses():
    few = cohen_kappa([[24, 1], [1, 24]], seed=0, resamples=500)
    assert "2 disagreements" in few.note
    many = cohen_kappa([[80, 15], [15, 90]], seed=0, resamples=500)
    assert many.note == ""


def test_icc_at_share_covers_where_next_to_nothing_varies():
    rng = np.random.default_rng(11)
    n, r, runs = 30, 5, 150
    below = above = 0
    # 5 % of tasks are unsteady, with uniform rates: E p(1-p) = 0.05/6; the others always pass (0.7) or always fail.
    within = 0.05 / 6
    mean = 0.95 * 0.7 + 0.05 * 0.5
    true = 1 - within / (mean * (1 - mean))
    for _ in range(runs):
        rates = np.where(rng.random(n) < 0.05, rng.random(n), rng.random(n) < 0.7)
        found = icc_at_share(rng.binomial(r, rates), np.full(n, r), seed=1, resamples=400)
        below += true < found.lo
        above += true > found.hi
    assert below / runs < 0.05
    assert above / runs < 0.06


def test_calibration_by_hand():
    verdicts = np.array([[1, 0], [1, 1], [0, -1], [1, 1]])
    reference = np.array([1, 0, 0, -1])
    confidence = np.array([[0.9, 0.3], [0.9, 0.55], [1.0, 0.5], [0.2, 0.2]])
    stated = np.array([[True, True], [True, False], [True, True], [True, True]])
    found = calibration(verdicts, reference, confidence, stated, seed=0, resamples=200)
    # Known and stated: 0.9 right, 0.3 wrong, 0.9 wrong, 1.0 right.
    assert (found.stated, found.verdicts) == (4, 5)
    assert found.brier.value == pytest.approx((0.01 + 0.09 + 0.81 + 0) / 4)
    rows = [(row.lo, row.hi, row.verdicts, row.tasks, row.right) for row in found.bins]
    assert rows == [(0.3, 0.4, 1, 1, 0.0), (0.9, 1.0, 3, 3, pytest.approx(2 / 3))]
    assert found.bins[1].confidence == pytest.approx(2.8 / 3)
    assert found.ece.value == pytest.approx((0.3 + abs(2.8 - 2)) / 4)
    assert found.ece.lo is None
    by_chance = (np.sqrt(2 / np.pi * 0.21) + np.sqrt(2 / np.pi * 0.18)) / 4
    assert found.ece_by_chance == pytest.approx(by_chance)
    assert "by chance" in found.ece.note


def test_a_calibrated_grader_has_about_the_ece_that_chance_gives():
    rng = np.random.default_rng(2)
    sure = rng.random((400, 1))
    truth = np.ones(400, dtype=int)
    values = []
    for _ in range(60):
        right = (rng.random((400, 1)) < sure).astype(int)
        found = calibration(right, truth, sure, np.ones((400, 1), dtype=bool), seed=0, resamples=100)
        values.append(found.ece.value)
    assert np.mean(values) == pytest.approx(found.ece_by_chance, rel=0.15)


def test_calibration_without_confidence_and_with_impossible_one():
    none = calibration([[1]], [1], [[0.0]], [[False]], seed=0)
    assert (none.brier.undefined, none.ece.undefined, none.bins, none.ece_by_chance) == (NONE_STATED, NONE_STATED, (), None)
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibration([[1]], [1], [[90.0]], [[True]], seed=0)
    with pytest.raises(ValueError, match="one shape"):
        calibration([[1]], [1], [[0.9, 0.8]], [[True]], seed=0)


@pytest.mark.parametrize("table", [[[2, 1], [0, 0]], [[5, 1], [0, 0]], [[18, 1], [1, 0]], [[0, 1], [1, 0]]])
def test_kappas_interval_is_held_to_what_kappa_can_be(table):
    found = kappa_at_margins(table)
    assert found.lo == -1.0
    assert -1 <= found.value <= found.hi < 1
    assert found.note.startswith(f"{np.sum(table)} items: under 30 the chance agreement")
    assert kappa_at_margins([[20, 5], [5, 20]]).note == ""


def test_an_icc_of_few_ratings_has_no_end_that_no_icc_has():
    """With unequal numbers of ratings the estimate can lie under -1; an interval that holds nothing true is none."""
    some = icc([[2, 0, 3], [0, 0, 2], [0, 2, 3], [1, 1, 0], [1, 3, 2]], SOME, seed=1, resamples=300)
    assert some.lo == -1.0 < some.value < some.hi < 1
    assert icc_at_share([0, 2, 4, 2, 1], [1, 2, 4, 2, 1], seed=1, resamples=300).lo == -1.0


def test_an_interval_that_lies_under_what_can_be_is_none():
    below = Estimate(value=-1.4, lo=-1.6, hi=-1.2, level=0.95, covers="population", n_tasks=3, n_replicates=1)
    assert (held(below).value, held(below).lo, held(below).hi, held(below).undefined) == (-1.4, None, None, BELOW_LEAST)


def test_tables_too_large_to_count_are_refused():
    with pytest.raises(ValueError, match="4000000000 items in all"):
        kappa_at_margins([[10**9, 10**9], [10**9, 10**9]])
    with pytest.raises(ValueError, match="2147483648 ratings in all"):
        fleiss_kappa([[1 << 30, 1 << 30]], seed=0)
