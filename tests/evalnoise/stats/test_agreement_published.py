"""Published agreement figures, and the libraries that compute the same where they are right."""

import json
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from statsmodels.stats import inter_rater

from evalnoise.stats.agreement.icc import icc, icc_f, one_way
from evalnoise.stats.agreement.kappa import Weights, cohen_kappa, landis_koch, two_graders
from evalnoise.stats.agreement.many import Metric, category_counts, fleiss_kappa, krippendorff_alpha

DRAWN = {"seed": 0, "resamples": 200}


@pytest.fixture(scope="module")
def figures():
    return json.loads((Path(__file__).parents[2] / "reference" / "agreement.json").read_text())


@pytest.mark.parametrize("case", range(3))
def test_feinstein_cicchetti_and_the_two_judges_of_the_demonstration(figures, case):
    printed = [*figures["feinstein_cicchetti_1990"], figures["judges_2x2"]][case]
    table = np.array(printed["table"]).reshape(2, 2)
    found = two_graders(table, **DRAWN)
    assert found.kappa.value == pytest.approx(printed["kappa"], abs=5e-7)
    assert found.kappa_percentile.value == found.kappa.value
    assert found.pabak.value == pytest.approx(printed["pabak"], abs=1e-12)
    # The papers print absolute values.
    assert abs(found.prevalence.value) == pytest.approx(printed["prevalence_index"], abs=1e-12)
    assert abs(found.bias.value) == pytest.approx(printed["bias_index"], abs=1e-12)
    assert found.kappa.value == pytest.approx(inter_rater.cohens_kappa(table).kappa, abs=1e-12)


def test_the_bias_index_has_a_direction():
    found = two_graders([[43, 0], [2, 5]], **DRAWN)
    assert found.bias.value == -0.04  # the first passes two that the second fails: none; the other way round: two
    assert two_graders([[43, 2], [0, 5]], **DRAWN).bias.value == 0.04


@pytest.mark.parametrize("name", ["binary_two_observers", "nominal_two_observers", "four_observers_missing"])
def test_krippendorff_2011(figures, name):
    printed = figures["krippendorff_2011"][name]
    names = sorted({value for row in printed["data"] for value in row if value is not None})
    data = np.array([[np.nan if value is None else names.index(value) for value in row] for row in printed["data"]]).T
    present = ~np.isnan(data)
    found = krippendorff_alpha(np.where(present, data, 0).astype(int), present, **DRAWN)
    assert found.value == pytest.approx(printed["alpha_nominal"], abs=1e-12)
    if "alpha_interval" in printed:
        as_integers, as_floats = np.where(present, data, 0).astype(int), np.where(present, data, 0.0) + 1e6
        for numbers in (as_integers, as_floats):
            interval = krippendorff_alpha(numbers, present, metric=Metric.INTERVAL, **DRAWN)
            assert interval.value == pytest.approx(printed["alpha_interval"], abs=1e-9)
        assert found.n_tasks == 11, "the item with one rating is left out"


def test_shrout_fleiss_1979(figures):
    printed = figures["shrout_fleiss_1979"]
    data = np.array(printed["data_six_targets_four_judges"])
    found = icc(data, **DRAWN)
    assert found.value == pytest.approx(printed["icc_1_1"], abs=1e-12)
    by_f = icc_f(data)
    assert [by_f.lo, by_f.hi] == pytest.approx(printed["f_interval_95"], abs=5e-4)
    # Variances of the means as they are, without the small-R correction, are the trap.
    means, within = data.mean(axis=1), one_way(data).within
    naive = means.var(ddof=1) / (means.var(ddof=1) + within)
    corrected = (means.var(ddof=1) - within / 4) / (means.var(ddof=1) - within / 4 + within)
    assert corrected == pytest.approx(found.value, abs=1e-12)
    assert naive > found.value + 0.1


def test_fleiss_1971(figures):
    counts = np.array(figures["fleiss_1971"]["counts_ten_subjects_fourteen_raters_five_categories"])
    found = fleiss_kappa(counts, **DRAWN)
    assert found.value == pytest.approx(figures["fleiss_1971"]["kappa"], abs=1e-12)
    assert found.value == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_libraries_agree_where_they_have_a_value(seed):
    rng = np.random.default_rng(seed)
    n, raters, size = int(rng.integers(3, 40)), int(rng.integers(2, 6)), int(rng.integers(2, 6))
    truth = rng.integers(0, size, n)
    codes = np.where(rng.random((n, raters)) < 0.6, truth[:, None], rng.integers(0, size, (n, raters)))
    present = rng.random((n, raters)) < 0.8
    data = np.where(present, codes, np.nan).T
    for metric in Metric:
        ours = krippendorff_alpha(codes, present, metric=metric, **DRAWN)
        theirs = krippendorff.alpha(reliability_data=data, level_of_measurement=metric.value)
        assert ours.value == pytest.approx(theirs, abs=1e-10)
    table = np.zeros((size, size), dtype=int)
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    for weights, theirs in ((Weights.NONE, None), (Weights.LINEAR, "linear"), (Weights.QUADRATIC, "quadratic")):
        ours = cohen_kappa(table, weights=weights, **DRAWN)
        assert ours.value == pytest.approx(inter_rater.cohens_kappa(table, wt=theirs).kappa, abs=1e-12)
    assert fleiss_kappa(category_counts(codes, size), **DRAWN).value == pytest.approx(
        inter_rater.fleiss_kappa(category_counts(codes, size)), abs=1e-12
    )


def test_places_of_categories_set_what_a_disagreement_costs():
    table = [[10, 2, 0], [1, 8, 3], [0, 2, 9]]
    even = cohen_kappa(table, weights=Weights.LINEAR, **DRAWN)
    assert cohen_kappa(table, weights=Weights.LINEAR, places=[5, 10, 15], **DRAWN).value == even.value
    assert cohen_kappa(table, weights=Weights.LINEAR, places=[0, 1, 10], **DRAWN).value != even.value
    assert cohen_kappa(table, places=[0, 1, 10], **DRAWN).value == cohen_kappa(table, **DRAWN).value
    with pytest.raises(ValueError, match="ascending"):
        cohen_kappa(table, weights=Weights.LINEAR, places=[0, 0, 1], **DRAWN)


def test_words_are_landis_and_kochs():
    limits = [-0.01, 0.0, 0.2, 0.21, 0.4, 0.5, 0.61, 0.8, 0.81, 1.0]
    said = [
        "poor",
        "slight",
        "slight",
        "fair",
        "fair",
        "moderate",
        "substantial",
        "substantial",
        "almost perfect",
        "almost perfect",
    ]
    assert [landis_koch(kappa) for kappa in limits] == said
