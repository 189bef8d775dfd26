"""Noise of real pairs: CRUXEval's recorded generations of two models at two temperatures, 800 tasks x 10."""

import json

import numpy as np
import pytest

from evalnoise.stats.models.beta_theory import beta_ratios
from evalnoise.stats.models.noise import against_itself, predicted_se
from evalnoise.stats.models.pairs import all_pairs, paired_noise, pairs_of, single_noise
from evalnoise.stats.models.samples import samples_of
from evalnoise.stats.models.winrates import win_rates

pytestmark = pytest.mark.realdata
KEYS = [(model, temperature) for temperature in ("0.2", "0.8") for model in ("codellama-7b", "gpt-3.5-turbo-0613")]
# total, data and prediction variance of codellama-7b minus gpt-3.5-turbo-0613, to twelve digits.
PINNED = {"0.2": (0.245171, 0.201921, 0.04325), "0.8": (0.2437674375, 0.113184104167, 0.130583333333)}
SINGLE = {
    ("codellama-7b", "0.2"): (0.225075484375, 0.196061595486, 0.029013888889),
    ("codellama-7b", "0.8"): (0.21370975, 0.137126416667, 0.076583333333),
    ("gpt-3.5-turbo-0613", "0.2"): (0.249965484375, 0.235729373264, 0.014236111111),
    ("gpt-3.5-turbo-0613", "0.8"): (0.2493624375, 0.1953624375, 0.054),
}


@pytest.fixture(scope="module")
def tables(shared):
    made = []
    for model, temperature in KEYS:
        path = shared / "data" / "cruxeval" / f"{model}_temp{temperature}_output.jsonl"
        rows = {row["task_id"]: row["passed"] for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
        made.append([rows[f"sample_{i}"] for i in range(800)])
    return np.array(made, dtype=int)


def direct(a, b):
    correction = np.var(a, axis=1).mean() / 9 + np.var(b, axis=1).mean() / 9
    total = np.var(a) + np.var(b) - 2 * np.cov(a.mean(axis=1), b.mean(axis=1), ddof=0)[0, 1]
    data = np.var(a.mean(axis=1) - b.mean(axis=1)) - correction
    return total, data, np.mean(np.var(a, axis=1) + np.var(b, axis=1)) + correction


def test_single_models(tables):
    for key, table in zip(KEYS, tables, strict=True):
        found = single_noise(table)
        assert (found.total, found.data, found.prediction) == pytest.approx(SINGLE[key], abs=5e-13)
        correction = np.var(table, axis=1).mean() / 9
        assert found.data == pytest.approx(np.var(table.mean(axis=1)) - correction, abs=1e-13)


def test_figure_4_prediction_noise_dominates_when_hot_and_data_noise_when_cold(tables):
    for temperature, a, b in (("0.2", tables[0], tables[1]), ("0.8", tables[2], tables[3])):
        found = paired_noise(a, b)
        parts = (found.total, found.data, found.prediction)
        assert parts == pytest.approx(direct(a, b), abs=1e-13)
        assert parts == pytest.approx(PINNED[temperature], abs=5e-13)
    assert PINNED["0.2"][1] > 4 * PINNED["0.2"][2]
    assert PINNED["0.8"][2] > PINNED["0.8"][1]
    # Both have a similar total noise.
    assert PINNED["0.2"][0] == pytest.approx(PINNED["0.8"][0], rel=0.01)


def test_all_pairs_and_what_follows(tables):
    found = all_pairs(samples_of(tables))
    assert len(found) == 6
    for a, b, pair in zip(found.a, found.b, pairs_of(found), strict=True):
        assert (pair.total, pair.data, pair.prediction) == pytest.approx(direct(tables[a], tables[b]), abs=1e-12)
        rates = win_rates(tables[a], tables[b])
        assert (rates.q_a, rates.q_b) == pytest.approx((pair.q_a, pair.q_b), abs=1e-15)
        assert (rates.data, rates.prediction) == pytest.approx((pair.data, pair.prediction), abs=1e-12)
        assert predicted_se(pair, n_tasks=800, samples=10) == pytest.approx(pair.se_mean, abs=1e-12)
        assert predicted_se(pair, n_tasks=800) == pair.se_total
    # Different models lie near the beta line; the same model at two temperatures, whose errors agree, below it.
    ratios = dict(zip(zip(found.a.tolist(), found.b.tolist(), strict=True), beta_ratios(found).tolist(), strict=True))
    assert all(0.95 < ratios[pair] < 1.1 for pair in ((0, 1), (2, 3), (0, 3), (1, 2)))
    assert all(ratios[pair] < 0.8 for pair in ((0, 2), (1, 3)))


def test_halves_of_one_model_differ_by_prediction_noise_alone(tables):
    """The order inside a task is no time order (it is sorted), so halves are drawn at random within each task."""
    rng = np.random.default_rng(0)
    for table in tables:
        mixed = rng.permuted(table, axis=1)
        expected, measured = against_itself(single_noise(table)), paired_noise(mixed[:, :5], mixed[:, 5:])
        assert measured.total == pytest.approx(expected.total, rel=0.15)
        assert abs(measured.data) < 0.1 * expected.total
