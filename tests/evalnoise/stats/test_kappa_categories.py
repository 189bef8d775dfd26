"""Kappas of many categories: exact sums against the table of costs written out, and no table of costs for what has none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from evalnoise.stats.agreement.kappa import Weights, agreement_table, cohen_kappa, two_graders
from evalnoise.stats.agreement.many import Metric, krippendorff_alpha

POWERS = {Weights.NONE: 0, Weights.LINEAR: 1, Weights.QUADRATIC: 2}


def written_out(table, weights, places):
    """Kappa by its definition, cell by cell, in fractions."""
    at = [Fraction(place) for place in places]
    cells = [(i, j) for i in range(len(at)) for j in range(len(at)) if i != j]
    rows, columns = table.sum(axis=1).tolist(), table.sum(axis=0).tolist()
    found = sum(int(table[i, j]) * abs(at[i] - at[j]) ** POWERS[weights] for i, j in cells)
    expected = sum(rows[i] * columns[j] * abs(at[i] - at[j]) ** POWERS[weights] for i, j in cells)
    return float(1 - int(table.sum()) * found / expected)


@pytest.mark.parametrize("weights", Weights)
@pytest.mark.parametrize("places", [None, [-3, 0, 1, 10, 40], [0.1, 0.25, 0.7, 1e6, 1e6 + 1 / 3], [1e-300, 1.0, 2.0, 3.0, 1e300]])
@pytest.mark.parametrize("seed", range(3))
def test_sums_over_categories_are_those_of_all_cells(weights, places, seed):
    table = np.random.default_rng(seed).poisson(np.ones((5, 5)) + 6 * np.eye(5))
    found = cohen_kappa(table, weights=weights, places=places, seed=0, resamples=50)
    assert found.value == written_out(table, weights, range(5) if places is None else places)
    assert found.lo <= found.value <= found.hi


@pytest.mark.parametrize("weights", Weights)
def test_texts_that_all_differ_have_a_kappa_and_no_interval(weights):
    codes = np.random.default_rng(1).permutation(800).reshape(2, 400)
    codes[1, :9] = codes[0, :9]
    table = agreement_table(*codes, 800)
    found = cohen_kappa(table, weights=weights, seed=0, resamples=50)
    if weights is Weights.NONE:
        assert found.value == float(1 - Fraction(400 * 391, 400 * 400 - 9))
        assert two_graders(table, seed=0, resamples=50).kappa.lo < found.value
    assert (found.lo, found.undefined) == (None, "800 categories: no interval is made for more than 60")


def test_sixty_categories_have_an_interval():
    table = agreement_table(np.arange(120) % 60, np.arange(120) // 2, 60)
    assert cohen_kappa(table, seed=0, resamples=20).lo is not None


@pytest.mark.parametrize(("metric", "most"), [(Metric.NOMINAL, 60), (Metric.ORDINAL, 12)])
def test_alpha_of_ratings_that_all_differ(metric, most):
    ratings = np.random.default_rng(2).permutation(300).reshape(150, 2)
    found = krippendorff_alpha(ratings, metric=metric, seed=0, resamples=50)
    # Ranks are the ratings themselves where all differ; of the nominal metric all pairs are 1 apart.
    squares = [(int(a) - int(b)) ** 2 for a, b in ratings] if metric is Metric.ORDINAL else [1] * 150
    every = sum((i - j) ** 2 for i in range(300) for j in range(300)) if metric is Metric.ORDINAL else 300 * 299
    assert found.value == float(1 - Fraction(299 * 2 * sum(squares), every))
    assert found.undefined == f"300 categories: no interval is made for more than {most}"
