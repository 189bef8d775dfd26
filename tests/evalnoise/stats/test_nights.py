"""Control limits of nights: baseline, limits by hand, what is seen, and false alarms by month."""

import numpy as np
import pytest
from scipy import stats

from evalnoise.stats.nights import FALSE_ALARMS, SAME_BASELINE, Rule, control_chart, false_alarms, limit_factors

BASE = np.random.default_rng(1).normal(0.7, 0.01, 20)


@pytest.mark.parametrize("nights", [0, 1, 19])
def test_there_is_no_verdict_before_the_baseline_is_full(nights):
    chart = control_chart(BASE[:nights])
    assert chart.undefined == f"baseline: {nights} of 20 nights"
    assert chart.lo is chart.hi is chart.sd is chart.seen is chart.centre is None
    assert not chart.judged.any()
    assert not chart.alarm


def test_the_twentieth_night_has_limits_and_no_verdict():
    chart = control_chart(BASE)
    assert chart.undefined == ""
    assert chart.centre == pytest.approx(BASE.mean())
    assert chart.sd == pytest.approx(BASE.std(ddof=1))
    assert not chart.judged.any()
    assert chart.lo.size == 0
    assert not chart.alarm


def test_t_limits_by_hand():
    half = stats.t.ppf(1 - 0.025 / 30, 19) * BASE.std(ddof=1) * np.sqrt(1.05)
    inside, outside = BASE.mean() - 0.999 * half, BASE.mean() - 1.001 * half
    chart = control_chart([*BASE, inside, outside, 0.7])
    assert chart.lo == pytest.approx([BASE.mean() - half] * 3)
    assert chart.hi == pytest.approx([BASE.mean() + half] * 3)
    assert chart.alarms.tolist() == [False] * 21 + [True, False]
    assert not chart.alarm
    assert control_chart([*BASE, inside, outside]).alarm
    assert control_chart([*BASE, BASE.mean() + 1.001 * half]).alarm
    assert FALSE_ALARMS in chart.note


def test_ewma_by_hand():
    after = [0.71, 0.72, 0.69]
    chart = control_chart([*BASE, *after], Rule.EWMA)
    average, expected = BASE.mean(), []
    for score in after:
        average = 0.2 * score + 0.8 * average
        expected.append(average)
    assert chart.points[20:] == pytest.approx(expected)
    factor = stats.t.ppf(1 - 0.025 / 14, 19)
    # Weights of the three nights and of the baseline's mean in the third average, less that mean.
    weights = np.array([0.2 * 0.64, 0.2 * 0.8, 0.2])
    sd = np.sqrt((weights**2).sum() + weights.sum() ** 2 / 20)
    assert chart.hi[2] - chart.centre == pytest.approx(factor * sd * BASE.std(ddof=1))
    # The first average is the first night's, weighed: with the same limit it would alarm like the t rule.
    assert limit_factors(1, Rule.EWMA)[0] == pytest.approx(factor * 0.2 * np.sqrt(1.05))


def test_a_small_loss_that_stays_is_seen_by_ewma_first():
    later = np.full(30, 0.7 - 2.2 * BASE.std(ddof=1))
    assert not control_chart([*BASE, *later]).alarms.any()
    assert control_chart([*BASE, *later], Rule.EWMA).alarms.any()


@pytest.mark.parametrize("rule", list(Rule))
def test_what_is_seen_on_the_first_night(rule):
    rng = np.random.default_rng(4)
    chart = control_chart(BASE, rule)
    seen = chart.seen / chart.sd
    found = []
    for _ in range(1500):
        nights = rng.normal(0, 1, 21)
        nights[20] -= seen
        found.append(control_chart(nights, rule).alarm)
    assert np.mean(found) == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize("night", [5, 30])
@pytest.mark.parametrize("alone", [True, False])
def test_what_ewma_sees_later(night, alone):
    """A change of that night alone, and one that has stayed: each is seen with probability 0.8 on the night itself."""
    rng = np.random.default_rng(6)
    chart = control_chart([*BASE, *[0.7] * night], Rule.EWMA)
    assert chart.lasting_nights == min(10, night)
    nights = rng.normal(0, 1, (2000, 20 + night))
    nights[:, -1 if alone else -chart.lasting_nights :] -= (chart.seen if alone else chart.lasting_seen) / chart.sd
    assert np.mean([control_chart(row, Rule.EWMA).alarm for row in nights]) == pytest.approx(0.8, abs=0.03)
    first = control_chart([*BASE, 0.7], Rule.EWMA)
    assert chart.seen > first.seen == first.lasting_seen
    assert chart.lasting_seen < chart.seen / 2


def test_the_t_rule_sees_the_same_on_every_night():
    chart = control_chart([*BASE, *[0.7] * 12])
    assert chart.seen == chart.lasting_seen == control_chart(BASE).seen


def test_a_chart_says_what_its_limits_are():
    assert control_chart(BASE).level == pytest.approx(1 - 0.05 / 30)
    chart = control_chart(BASE, "ewma")
    assert chart.level == pytest.approx(1 - 0.05 / 14)
    assert (chart.covers, chart.method) == ("benchmark", "limits of a moving average over nights")


def test_equal_baseline_nights_set_no_limit():
    chart = control_chart([0.5] * 20 + [0.1])
    assert chart.undefined == SAME_BASELINE
    assert chart.centre == 0.5
    assert not chart.judged.any()
    assert not chart.alarm


@pytest.mark.parametrize("rule", list(Rule))
@pytest.mark.parametrize("night_sd", [0.0, 0.02])
def test_false_alarms_by_month(rule, night_sd):
    rates = np.random.default_rng(2).beta(0.3, 0.2, 80)
    found = false_alarms(rates, 5, night_sd=night_sd, rule=rule, months=2000, seed=3)
    assert 0.025 <= found.rule <= 0.065
    assert found.nightly >= (0.95 if night_sd else 0.72)
    assert found == false_alarms(rates, 5, night_sd=night_sd, rule=rule, months=2000, seed=3)


def test_the_simulation_judges_as_the_chart_does():
    """One month by hand: normal night effects alone, because every task always passes."""
    found = false_alarms(np.ones(10), 3, night_sd=0.01, rule=Rule.EWMA, months=400, seed=5)
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(5, spawn_key=(21, 0))))
    generator.binomial(30, 1.0, size=(400, 50))
    scores = 1 + 0.01 * generator.standard_normal((400, 50))
    assert found.rule == np.mean([control_chart(month, Rule.EWMA).alarms.any() for month in scores])
    nothing = false_alarms(np.ones(10), 3, night_sd=0.0, rule=Rule.T, months=50, seed=5)
    assert (nothing.rule, nothing.nightly) == (0, 0)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="numbers of shape"):
        control_chart([0.5, np.nan])
    with pytest.raises(ValueError, match="at least 3"):
        control_chart([0.5], baseline=2)
    with pytest.raises(ValueError, match="rates lie"):
        false_alarms([1.5], 3, night_sd=0.0, rule=Rule.T, seed=1)
