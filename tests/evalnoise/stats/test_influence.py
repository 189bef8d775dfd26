"""Leave-one-task-out and noise concentration: exact, and the paper's case of one task."""

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalnoise.stats.contrasts import paired_t
from evalnoise.stats.influence import (
    NONE_VARIED,
    ONE_LEFT,
    concentration,
    concentration_of_scores,
    contrast_influence,
    contrast_influence_of_scores,
    influence,
    influence_of_scores,
)
from evalnoise.stats.variance import ONE_RUN, within_task_variance

PRINTED = json.loads((Path(__file__).parents[2] / "reference" / "order.json").read_text(encoding="utf-8"))["leave_one_task_out"]
COUNTS = st.lists(st.integers(0, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=12)


def arrays(counts):
    passes, runs = zip(*counts, strict=True)
    return np.array(passes), np.array(runs)


def s2(k, n):
    return Fraction(int(k) * int(n - k), int(n) * (int(n) - 1))


@settings(deadline=None)
@given(COUNTS)
def test_w_without_a_task_is_w_of_the_others(counts):
    k, n = arrays(counts)
    found = influence(k, n)
    assert found.w == within_task_variance(k, n).w
    assert found.tasks.tolist() == [i for i in range(len(n)) if n[i] >= 2]
    values = [s2(k[i], n[i]) for i in found.tasks]
    assert found.s2.tolist() == [float(v) for v in values]
    if len(values) < 2:
        assert found.without is None
        assert found.undefined == (ONE_LEFT if values else ONE_RUN)
        return
    for place, task in enumerate(found.tasks):
        others = np.arange(len(n)) != task
        assert found.without[place] == within_task_variance(k[others], n[others]).w
    if sum(values):
        assert found.share.tolist() == [float(v / sum(values)) for v in values]
        assert found.undefined == ""
    else:
        assert found.share is None
        assert found.undefined == NONE_VARIED
    if len(set(values)) > 1:
        floats = np.array([float(v) for v in values])
        assert found.z == pytest.approx((floats - floats.mean()) / floats.std(ddof=1), abs=1e-9)
    else:
        assert found.z is None


@settings(deadline=None)
@given(COUNTS)
def test_carriers_are_the_smallest_set(counts):
    k, n = arrays(counts)
    found = concentration(k, n)
    values = {i: s2(k[i], n[i]) for i in range(len(n)) if n[i] >= 2}
    total = sum(values.values())
    if not total:
        assert found.effective is None
        assert found.undefined == (NONE_VARIED if values else ONE_RUN)
        assert found.half.size == found.most.size == 0
        return
    assert found.effective == float(total**2 / sum(v * v for v in values.values()))
    assert 1 <= found.effective <= found.variable_tasks + 1e-12
    for carriers, share in ((found.half, Fraction(1, 2)), (found.most, Fraction(4, 5))):
        assert sum(values[i] for i in carriers) >= share * total
        smaller = len(carriers) - 1
        largest = max((sum(values[i] for i in some) for some in combinations(values, smaller)), default=0)
        assert largest < share * total


@settings(deadline=None)
@given(st.data(), COUNTS, st.sampled_from(["w", "score"]))
def test_a_contrast_without_a_task_is_the_contrast_of_the_others(data, counts, of):
    ka, na = arrays(counts)
    nb = np.array(data.draw(st.lists(st.integers(0, 5), min_size=len(na), max_size=len(na))))
    kb = np.array([data.draw(st.integers(0, int(m))) for m in nb])
    found = contrast_influence(ka, na, kb, nb, of=of)
    assert found.value == pytest.approx(paired_t(ka, na, kb, nb, of=of).result.value, abs=1e-12)
    if found.value is None or len(found.tasks) < 2:
        assert found.undefined
        assert found.without is None
        return
    for place, task in enumerate(found.tasks):
        others = np.arange(len(na)) != task
        expected = paired_t(ka[others], na[others], kb[others], nb[others], of=of).result.value
        assert found.without[place] == pytest.approx(expected, abs=1e-12)


def test_the_paper_without_mbpp_271(published):
    """All of replay's variance is one task; without it the contrast is printed as 0.01318, so live's k(20-k) there is 84."""
    live, replay = published("primary", "MBPP+", "live"), published("primary", "MBPP+", "replay")
    (carrier,) = concentration(*replay).most
    without = influence(*replay)
    assert without.without[carrier] == PRINTED["replay_w_without_it"] == 0
    assert without.share[carrier] == 1
    assert concentration(*replay).effective == 1
    same_task = next(i for i in range(200) if live[0][i] * (20 - live[0][i]) == 84)
    order = np.arange(200)
    order[[carrier, same_task]] = order[[same_task, carrier]]
    contrast = contrast_influence(live[0][order], live[1], *replay)
    assert round(contrast.value, 5) == PRINTED["live_minus_replay"]
    assert round(contrast.without[carrier], 5) == PRINTED["live_minus_replay_without_it"]


def test_equal_variances_have_no_z_and_are_spread_evenly():
    found = influence([1, 1, 1], [2, 2, 2])
    assert found.z is None
    assert found.share.tolist() == [1 / 3] * 3
    spread = concentration([1, 1, 1, 0], [2, 2, 2, 2])
    assert spread.effective == 3
    assert spread.half.tolist() == [0, 1]
    assert spread.most.tolist() == [0, 1, 2]


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="score"):
        contrast_influence([1], [2], [1], [2], of="mean")
    with pytest.raises(ValueError, match="one row per task"):
        contrast_influence([1], [2], [1, 1], [2, 2])


class TestScores:
    """The same of scores: for passes and failures the same numbers, for others sample variances."""

    RNG = np.random.default_rng(8)
    MEASURED = RNG.random((30, 5)) < 0.8
    BINARY = (RNG.random((30, 5)) < 0.6) * 1.0 * MEASURED

    @pytest.mark.parametrize("of", ["w", "score"])
    def test_outcomes_are_scores_too(self, of):
        k, n = self.BINARY.sum(axis=1).astype(int), self.MEASURED.sum(axis=1)
        one, other = influence(k, n), influence_of_scores(self.BINARY, self.MEASURED)
        for name in ("tasks", "s2", "share", "without", "z"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        a, b = concentration(k, n), concentration_of_scores(self.BINARY, self.MEASURED)
        assert (a.effective, a.half.tolist(), a.most.tolist(), a.variable_tasks) == (
            b.effective, b.half.tolist(), b.most.tolist(), b.variable_tasks,
        )  # fmt: skip
        x = contrast_influence(k, n, k[::-1], n[::-1], of=of)
        y = contrast_influence_of_scores(self.BINARY, self.MEASURED, self.BINARY[::-1], self.MEASURED[::-1], of=of)
        assert (x.value, x.without.tolist()) == (y.value, y.without.tolist())

    @pytest.mark.parametrize("digits", [2, 17])
    def test_variances_of_scores(self, digits):
        scores = np.round(self.RNG.random((30, 5)), digits)
        rows = [values[known] for values, known in zip(scores, self.MEASURED, strict=True)]
        s2 = np.array([row.var(ddof=1) for row in rows if len(row) >= 2])
        found = influence_of_scores(scores, self.MEASURED)
        assert found.w == pytest.approx(s2.mean(), rel=1e-12)
        assert found.s2 == pytest.approx(s2, rel=1e-10)
        assert found.without == pytest.approx((s2.sum() - s2) / (len(s2) - 1), rel=1e-10)
        assert concentration_of_scores(scores, self.MEASURED).effective == pytest.approx(s2.sum() ** 2 / (s2**2).sum(), rel=1e-10)
        means = np.array([row.mean() for row in rows])
        other = contrast_influence_of_scores(scores, self.MEASURED, 1 - scores, self.MEASURED, of="score")
        assert other.value == pytest.approx((2 * means - 1).mean(), rel=1e-10)

    def test_equal_scores_do_not_vary(self):
        found = influence_of_scores(np.full((3, 4), 0.1), np.full((3, 4), True))
        assert (found.w, found.share) == (0.0, None)
