"""Intervals and the paired t of many pairs, against scipy's paired t and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalnoise.stats.estimate import Covers
from evalnoise.stats.models.pair_intervals import intervals
from evalnoise.stats.models.pairs import all_pairs
from evalnoise.stats.models.samples import samples_of


@pytest.mark.parametrize("tasks", [2, 12, 200])
def test_the_paired_t_is_scipys(tasks):
    scores = np.random.default_rng(tasks).random((3, tasks, 4))
    found = all_pairs(samples_of(scores))
    p, (lo, hi) = found.p_value, intervals(found, covers=Covers.POPULATION, level=0.9)
    for row in range(3):
        theirs = stats.ttest_rel(scores[found.a[row]].mean(axis=1), scores[found.b[row]].mean(axis=1))
        assert p[row] == pytest.approx(theirs.pvalue, rel=1e-9)
        assert (lo[row], hi[row]) == pytest.approx(tuple(theirs.confidence_interval(0.9)), rel=1e-9)


def test_new_runs_have_a_normal_interval():
    scores = np.random.default_rng(1).integers(0, 2, (2, 30, 5))
    found = all_pairs(samples_of(scores))
    half = 1.959963984540054 * np.sqrt(scores.var(axis=2, ddof=1).sum() / 5) / 30
    (lo,), (hi,) = intervals(found, covers=Covers.BENCHMARK)
    assert (lo, hi) == pytest.approx((found.mean[0] - half, found.mean[0] + half))


def test_no_spread_has_no_interval():
    found = all_pairs(samples_of(np.stack([np.ones((9, 2), int), np.zeros((9, 2), int)])))
    assert np.isnan(found.p_value).all()
    for covers in (Covers.POPULATION, Covers.BENCHMARK):
        assert np.isnan(intervals(found, covers=covers)).all()
    with pytest.raises(ValueError, match="population or benchmark"):
        intervals(found, covers=Covers.NOTHING)
    with pytest.raises(ValueError, match="level"):
        intervals(found, covers=Covers.POPULATION, level=1.0)
