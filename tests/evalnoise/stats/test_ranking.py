"""Chances that an order of scores is wrong, and the runs that settle it."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from evalnoise.stats.estimate import Covers
from evalnoise.stats.planning.ranking import order, ranking

FULL = np.full(60, 8)


@pytest.fixture
def arms():
    rng = np.random.default_rng(5)
    a, b = rng.beta(0.6, 0.4, 60), rng.beta(0.6, 0.4, 60)
    return rng.binomial(8, a), FULL, rng.binomial(8, b), FULL


def test_benchmark_by_hand(arms):
    ka, na, kb, nb = arms
    found = order(*arms)
    difference = (ka / na).mean() - (kb / nb).mean()
    se = math.sqrt(sum((k * (8 - k) / 56).mean() for k in (ka, kb)) / (60 * 8))
    assert found.difference == pytest.approx(difference)
    assert found.se == pytest.approx(se)
    assert found.wrong == pytest.approx(norm.cdf(-abs(difference) / se), rel=1e-9)
    assert found.disagree == pytest.approx(2 * found.wrong * (1 - found.wrong))
    assert found.covers == "benchmark"
    # The runs for the level, and not one less.
    assert norm.cdf(-abs(difference) / (se * math.sqrt(8 / found.runs))) <= 0.05
    assert found.runs == 1 or norm.cdf(-abs(difference) / (se * math.sqrt(8 / (found.runs - 1)))) > 0.05


def test_population_by_hand(arms):
    ka, na, kb, nb = arms
    found = order(*arms, covers=Covers.POPULATION)
    d = ka / na - kb / nb
    assert found.se == pytest.approx(d.std(ddof=1) / math.sqrt(60))
    assert found.covers == "population"
    assert found.wrong > order(*arms).wrong


def test_chances_are_what_happens():
    """Both chances by simulation, at known rates: w is known, and the lattice of scores is smoothed."""
    rng = np.random.default_rng(9)
    a = np.concatenate([np.full(40, 0.5), np.full(20, 0.9)])
    b = np.concatenate([np.full(40, 0.47), np.full(20, 0.9)])
    truth = (a - b).mean()
    scores = [rng.binomial(8, p, size=(40_000, 60)).sum(axis=1) / 480 for p in (a, b)]
    observed = scores[0] - scores[1] + rng.uniform(-0.5, 0.5, 40_000) / 480
    se = math.sqrt(((a * (1 - a)).mean() + (b * (1 - b)).mean()) / 480)
    wrong = norm.cdf(-truth / se)
    assert np.mean(observed < 0) == pytest.approx(wrong, abs=0.01)
    disagree = np.mean((observed[::2] > 0) != (observed[1::2] > 0))
    assert disagree == pytest.approx(2 * wrong * (1 - wrong), abs=0.012)


def test_more_certainty_takes_more_runs(arms):
    assert order(*arms, level=0.99).runs >= order(*arms, level=0.9).runs


def test_no_runs_settle_an_order_that_tasks_decide():
    full = np.full(20, 10)
    a, b = np.array([10, 0] * 10), np.array([0, 10] * 10)
    a[0] = 9
    found = order(b, full, a, full, covers=Covers.POPULATION)
    assert found.runs is None
    assert "no number of reruns suffices: at least" in found.runs_undefined
    assert order(b, full, a, full).runs is not None
    assert "rough" in order(b, full, a, full).note


def test_equal_scores():
    found = order([4, 6, 0], [8] * 3, [6, 4, 0], [8] * 3)
    assert (found.difference, found.wrong, found.disagree, found.runs) == (0, 0.5, 0.5, None)
    assert "equal" in found.runs_undefined


@pytest.mark.parametrize("covers", [Covers.BENCHMARK, Covers.POPULATION])
def test_nothing_varied(covers):
    found = order([8, 8, 8], [8] * 3, [0, 0, 0], [8] * 3, covers=covers)
    assert (found.wrong, found.disagree, found.runs, found.covers) == (None, None, None, "")
    assert "nothing varied" in found.undefined


def test_too_little():
    assert order([1], [1], [0], [1]).undefined
    assert order([1], [2], [0], [2], covers=Covers.POPULATION).undefined
    assert order([], [], [], []).n_tasks == 0


def test_ranking(arms):
    ka, _, kb, _ = arms
    kc = np.minimum(8, kb + 1)
    table = np.stack([ka, kb, kc])
    found = ranking(table, np.stack([FULL] * 3))
    assert list(found.scores) == sorted(found.scores, reverse=True)
    assert [table[row].sum() / 480 for row in found.rows] == pytest.approx(found.scores)
    assert [(pair.above, pair.below) for pair in found.pairs] == list(zip(found.rows, found.rows[1:], strict=False))
    top = found.pairs[0]
    assert top.benchmark == order(table[top.above], FULL, table[top.below], FULL)
    assert top.population == order(table[top.above], FULL, table[top.below], FULL, covers=Covers.POPULATION)
    assert top.benchmark.difference >= 0


def test_ranking_is_over_the_tasks_that_all_have():
    found = ranking([[2, 1, 0], [2, 0, 1]], [[2, 2, 2], [2, 2, 1]])
    assert (found.n_tasks, found.scores, found.rows) == (2, (0.75, 0.5), (0, 1))
    nothing = ranking([[1], [1]], [[2], [1]])
    assert (nothing.n_tasks, nothing.scores, nothing.pairs) == (0, (), ())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ranking([[1]], [[2]]), "at least two arms"),
        (lambda: order([1], [2], [1], [2], level=0.5), "between 1/2 and 1"),
        (lambda: order([1], [2], [1], [2], covers=Covers.NOTHING), "benchmark or population"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
