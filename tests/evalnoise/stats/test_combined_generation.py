"""Generation from fresh runs and repeated grades: against its parts, Gaffke's interval of w, clusters, and what is refused."""

import numpy as np
import pytest

from evalnoise.stats.estimate import Covers, Method
from evalnoise.stats.intervals import w_gaffke
from evalnoise.stats.nested.combined import combined_generation
from evalnoise.stats.nested.components import components
from evalnoise.stats.nested.sums import from_counts

DRAWN = {"seed": 4, "resamples": 400}


def counts(seed, n, runs):
    return np.random.default_rng(seed).binomial(runs, 0.4, size=n), np.broadcast_to(runs, n)


def test_it_is_the_difference_of_the_two_components():
    fresh, again = counts(1, 40, np.arange(40) % 4 + 1), counts(2, 40, np.arange(40) % 3 + 1)
    (got,) = combined_generation(fresh, again, **DRAWN)
    both = components(from_counts(*fresh)).together.raw
    grader = components(from_counts(*again, one_output=True)).grader.raw
    assert got.value == pytest.approx(both - grader, abs=1e-15)
    assert got.lo < got.value < got.hi
    assert (got.method, got.covers, got.n_tasks, got.n_replicates) == (Method.PERCENTILE, Covers.POPULATION, 36, 2)


def test_tasks_are_resampled_with_both_conditions():
    """Where both have the same counts nothing is left in any resample, whatever the tasks."""
    fresh = counts(1, 40, np.arange(40) % 4 + 1)
    (got,) = combined_generation(fresh, fresh, **DRAWN)
    assert (got.value, got.lo, got.hi) == (0.0, 0.0, 0.0)
    equal = ([1] * 9, [5] * 9), ([1] * 9, [3] * 9)
    (got,) = combined_generation(*equal, **DRAWN, clusters=np.arange(9) // 2)
    assert (got.lo, got.hi) == (got.value, got.value)
    assert got.value == pytest.approx(1 / 5 - 1 / 3)
    assert got.note.startswith("proves nothing")
    assert "5 clusters" in got.note


def test_a_verifier_that_never_varies_leaves_w():
    fresh = counts(3, 30, 5)
    plain, gaffke = combined_generation(fresh, (np.zeros(30, dtype=int), np.full(30, 3)), **DRAWN)
    w = w_gaffke(*fresh, **DRAWN)
    assert plain.value == gaffke.value == w.value
    assert gaffke.hi == pytest.approx(w.hi)
    assert gaffke.lo < w.lo, "the difference may be negative"
    assert "conjecture" in gaffke.note


def test_refusals():
    two = [1, 0], [2, 2]
    (got,) = combined_generation(two, ([1, 1], [1, 1]), **DRAWN)
    assert (got.value, got.lo) == (None, None)
    assert "measured twice" in got.undefined
    (got,) = combined_generation(([1], [2]), ([1], [2]), **DRAWN)
    assert (got.value, got.lo, got.undefined) == (0.0, None, "one task says nothing about other tasks")
    (got,) = combined_generation(two, two, **DRAWN, clusters=["a", "a"])
    assert (got.lo, got.undefined) == (None, "an interval over clusters needs 2 of them")
    with pytest.raises(ValueError, match="one row per task"):
        next(combined_generation(two, ([1], [2]), **DRAWN))


def test_many_runs_do_not_wrap_around():
    """Products of four counts pass 2^63 from some 10^5 runs on: by then both variances are as good as p (1-p)."""
    runs = 400_000
    sides = [(np.array([runs // part, 0]), np.full(2, runs)) for part in (2, 4)]
    *_, gaffke = combined_generation(*sides, seed=1, resamples=50)
    assert -0.2501 <= gaffke.lo <= gaffke.value <= gaffke.hi <= 0.2501
    assert gaffke.value == pytest.approx((0.25 - 0.1875) / 2, rel=1e-4)
