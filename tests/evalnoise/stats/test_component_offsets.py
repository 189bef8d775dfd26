"""A constant added to all scores changes no component and no interval."""

from __future__ import annotations

import numpy as np
import pytest

from evalnoise.stats.nested.components import components
from evalnoise.stats.nested.intervals import bootstrap_intervals
from evalnoise.stats.nested.sums import from_array

SCORES = (np.random.default_rng(5).random((40, 4, 3)) < np.random.default_rng(6).random((40, 4, 1))).astype(float)
PRESENT = np.random.default_rng(7).random(SCORES.shape) < 0.9
CLUSTERS = np.arange(40) // 3


def ends(scores, present=None, clusters=None):
    data = from_array(scores, present)
    labels = clusters if clusters is None else clusters[: data.n]
    made = bootstrap_intervals(data, seed=1, resamples=200, clusters=labels)
    return [end for one in made.values() for end in (one.value, one.lo, one.hi)]


@pytest.mark.parametrize("offset", [1e3, -1e3, 1e6, 1e9, -1e9, 1e12])
@pytest.mark.parametrize("step", [1.0, 0.25])
@pytest.mark.parametrize(("present", "clusters"), [(None, None), (PRESENT, None), (None, CLUSTERS), (PRESENT, CLUSTERS)])
def test_a_constant_changes_nothing(offset, step, present, clusters):
    still = ends(SCORES * step, present, clusters)
    assert ends(SCORES * step + offset, present, clusters) == pytest.approx(still, rel=0, abs=1e-9 * step**2)


def test_steps_that_are_no_binary_numbers_keep_the_digits_they_came_with():
    """What 0.001 is at 10^6 is given to 10^-10, which is 10^-7 of it."""
    still = ends(SCORES)
    moved = np.array(ends(SCORES * 0.001 + 1e6)) / 0.001**2
    assert moved == pytest.approx(still, abs=1e-6)


def test_the_mean_is_the_scores_and_the_lowest_score_may_be_any():
    found = components(from_array(SCORES * 2 - 7))
    assert found.mean == pytest.approx(SCORES.mean() * 2 - 7, abs=1e-12)
    assert found.total == pytest.approx(4 * components(from_array(SCORES)).total, rel=1e-12)
    assert not found.binary
    assert from_array(SCORES).binary
    assert from_array(np.ones((3, 2, 2))).binary
    assert components(from_array(np.ones((3, 2, 2)))).mean == 1.0
