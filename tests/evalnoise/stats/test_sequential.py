"""Confidence sequences: published ends, roots against another solver, and few misses over all looks."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from evalnoise.stats.estimate import Covers, Method
from evalnoise.stats.sequential import EMPTY, betting, first_stop, robbins, robbins_interval
from evalnoise.stats.variance import clopper_pearson

PRINTED = json.loads((Path(__file__).parents[2] / "reference" / "order.json").read_text(encoding="utf-8"))["robbins_95"]
NEW_TASKS = {"covers": Covers.POPULATION}


@pytest.mark.parametrize("proportion", PRINTED)
def test_robbins_printed_ends(proportion):
    """The printed ends are the outermost points of a grid that lie inside, so ours lie just beyond them."""
    s, n = map(int, proportion.split("/"))
    lo, hi = robbins_interval(s, n)
    assert PRINTED[proportion] == pytest.approx([lo, hi], abs=5e-4)
    assert lo <= PRINTED[proportion][0]
    assert hi >= PRINTED[proportion][1]


@settings(deadline=None)
@given(st.integers(0, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_robbins_ends_are_the_roots(counts, level):
    s, n = counts
    lo, hi = robbins_interval(s, n, level=level)

    def excess(p):
        return special.betaln(1 + s, 1 + n - s) - special.xlogy(s, p) - special.xlog1py(n - s, -p) + math.log(1 - level)

    assert 0 <= lo <= hi <= 1
    if s:
        assert lo == pytest.approx(optimize.brentq(excess, 1e-300, s / n, xtol=1e-13), abs=1e-9)
    else:
        assert lo == 0
    if n - s:
        assert hi == pytest.approx(optimize.brentq(excess, s / n, 1 - 1e-16, xtol=1e-13), abs=1e-9)
    else:
        assert hi == 1


def test_without_an_observation_nothing_is_known():
    for sequence in (robbins, betting):
        found = sequence([], **NEW_TASKS)
        assert (found.n, found.mean, found.lo, found.hi, found.half_width) == (0, None, 0, 1, 0.5)
    assert robbins_interval(0, 0) == (0, 1)


def capital_by_hand(scores, m, alpha):
    """The hedged capital of a candidate mean, step by step."""
    up = down = 1.0
    total, spread = 0.5, 0.25
    variance = 0.25
    most = 0.0
    for t, x in enumerate(scores, 1):
        bet = math.sqrt(2 * math.log(2 / alpha) / (variance * t * math.log(1 + t)))
        up *= 1 + min(bet, 0.5 / m) * (x - m)
        down *= 1 - min(bet, 0.5 / (1 - m)) * (x - m)
        total += x
        spread += (x - total / (t + 1)) ** 2
        variance = spread / (t + 1)
        most = max(most, up / 2, down / 2)
    return max(up, down) / 2, most


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.sampled_from([0.8, 0.95]))
def test_betting_excludes_exactly_the_means_whose_capital_is_large(scores, level):
    found = betting(scores, level=level, **NEW_TASKS)
    alpha = 1 - level
    for m in np.linspace(0.01, 0.99, 25):
        last, most = capital_by_hand(scores, m, alpha)
        if abs(last * alpha - 1) > 1e-9:
            assert (found.lo < m < found.hi) == (last < 1 / alpha)
        if abs(most * alpha - 1) > 1e-9:
            assert (found.running_lo < m < found.running_hi) == (most < 1 / alpha)


def test_the_intersection_is_that_of_all_looks():
    outcomes = np.random.default_rng(5).integers(0, 2, 60)
    for sequence in (robbins, betting):
        looks = [sequence(outcomes[:n], **NEW_TASKS) for n in range(61)]
        whole = looks[-1]
        assert whole.running_lo == pytest.approx(max(look.lo for look in looks), abs=1e-9)
        assert whole.running_hi == pytest.approx(min(look.hi for look in looks), abs=1e-9)
        assert whole.running_lo <= whole.mean <= whole.running_hi
    assert (robbins(outcomes, **NEW_TASKS).lo, robbins(outcomes, **NEW_TASKS).hi) == robbins_interval(int(outcomes.sum()), 60)


def test_symmetry():
    scores = np.random.default_rng(6).random(40)
    up, down = betting(scores, **NEW_TASKS), betting(1 - scores, **NEW_TASKS)
    assert (up.lo, up.hi) == pytest.approx((1 - down.hi, 1 - down.lo), abs=1e-9)


def test_scores_that_vary_little_get_a_narrow_interval():
    rng = np.random.default_rng(7)
    narrow = betting(0.7 + 0.05 * rng.standard_normal(500).clip(-2, 2), **NEW_TASKS)
    wide = betting((rng.random(500) < 0.7).astype(float), **NEW_TASKS)
    assert narrow.half_width < wide.half_width / 3
    assert narrow.method == Method.BETTING
    assert narrow.running_lo < 0.7 < narrow.running_hi


def misses(sequence, rate, looks, repeats, rng):
    """Share of runs in which the rate is outside at some look."""
    return np.mean(
        [not (s.running_lo <= rate <= s.running_hi) for s in (sequence(rng.random(looks) < rate) for _ in range(repeats))]
    )


def test_looks_after_every_run_miss_seldom_where_clopper_pearson_does_not():
    """Peeking at n = 5 to 300: Clopper-Pearson about a quarter, the sequences under 5 %."""
    rng = np.random.default_rng(8)
    assert misses(lambda x: robbins(x, **NEW_TASKS), 0.7, 300, 300, rng) <= 0.05
    assert misses(lambda x: betting(x, **NEW_TASKS), 0.7, 300, 100, rng) <= 0.07
    ends = {(s, n): clopper_pearson(s, n) for n in range(5, 301, 5) for s in range(n + 1)}
    peeked = 0
    for _ in range(300):
        passes = (rng.random(300) < 0.7).cumsum()
        peeked += any(not ends[int(passes[n - 1]), n][0] <= 0.7 <= ends[int(passes[n - 1]), n][1] for n in range(5, 301, 5))
    assert 0.12 < peeked / 300 < 0.35


def test_the_stop_rule():
    outcomes = (np.random.default_rng(9).random(400) < 0.6).astype(int)
    for sequence in (robbins, betting):
        at = first_stop(outcomes, 0.12, sequence=sequence)
        assert sequence(outcomes[:at], **NEW_TASKS).narrow_enough(0.12)
        assert not sequence(outcomes[: at - 1], **NEW_TASKS).narrow_enough(0.12)
        assert first_stop(outcomes, 0.001, sequence=sequence) is None
        assert first_stop(outcomes, 0.5, sequence=sequence) == 0


def test_a_mean_that_moves_is_noticed():
    found = betting([0.0] * 200 + [1.0] * 200, **NEW_TASKS)
    assert found.running_lo > found.running_hi
    assert found.note == EMPTY
    assert found.half_width == 0


def test_what_cannot_be_is_refused():
    for call in (
        lambda: robbins_interval(3, 2),
        lambda: robbins([0.5], **NEW_TASKS),
        lambda: betting([1.5], **NEW_TASKS),
        lambda: betting([math.nan], **NEW_TASKS),
        lambda: betting([[0.5]], **NEW_TASKS),
        lambda: betting([0.5], level=1.0, **NEW_TASKS),
        lambda: first_stop([0.5], 0.0, sequence=betting),
    ):
        with pytest.raises(ValueError, match=r"no proportion|outcomes 0 and 1|between 0 and 1|shape|above 0"):
            call()
