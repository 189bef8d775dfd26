"""Runs per task that differ, in the gate's plans; and how the gate names its interval."""

import dataclasses

import numpy as np
import pytest

from evalnoise.stats.gates.claims import THE_TEST_DECIDES, benchmark_test
from evalnoise.stats.gates.gate import Decision, GateRule, decided, gate
from evalnoise.stats.gates.loss import CAUTIOUS, DISAGREEING, PLAIN
from evalnoise.stats.gates.side import counted_side, side_of
from tasks.gating import power_by_simulation


def arm(rng, p, runs):
    return counted_side(rng.binomial(runs, p), np.full(len(p), runs))


def test_a_task_with_fewer_runs_does_not_take_those_of_the_others():
    rng = np.random.default_rng(3)
    p = rng.beta(0.5, 0.4, 300)
    base, full = side_of(rng.random((300, 12)) < p[:, None]), side_of(rng.random((300, 12)) < p[:, None])
    measured = np.ones((300, 12), bool)
    measured[0, 2:] = False
    found = gate(side_of(full.scores, measured), base, GateRule(margin=0.02))
    tested = found.tested
    assert (tested.runs_new, tested.most_runs_new, tested.runs_base, tested.most_runs_base) == (2, 12, 12, 12)
    assert tested.mean_runs_new == pytest.approx(300 / (299 / 12 + 1 / 2))
    assert tested.mean_runs_base == 12
    # A margin that 12 runs are planned for: those that are there are not asked for again.
    margin = next(m / 1000 for m in range(1, 200) if tested.runs_for(m / 1000, 0.05) <= 8)
    again = decided(
        dataclasses.replace(found, rule=GateRule(margin=margin), tested=dataclasses.replace(tested, loss_limit=margin)), 0.5
    )
    assert again.decision is Decision.INCONCLUSIVE
    assert again.runs_to_settle > 12
    powers = [
        power_by_simulation(base, new, gate(new, base, GateRule(margin=margin))) for new in (full, side_of(full.scores, measured))
    ]
    for even, lacking in zip(*powers, strict=True):
        assert lacking.value == pytest.approx(even.value, abs=0.04)


def test_the_interval_says_how_it_was_made_and_when_the_test_disagrees():
    rng = np.random.default_rng(3)
    p = rng.beta(0.5, 0.4, 164)
    assert gate(arm(rng, p, 40), arm(rng, p, 40), GateRule()).tested.interval_method == PLAIN
    still = counted_side(np.r_[np.full(20, 5), 3], np.full(21, 5))
    assert gate(still, still, GateRule()).tested.interval_method == CAUTIOUS
    once = counted_side(np.ones(30, dtype=int), np.ones(30, dtype=int))
    assert gate(once, once, GateRule()).tested.interval_method == DISAGREEING
    people = gate(arm(rng, p, 4), arm(rng, p, 4), GateRule(claim="population")).tested
    assert people.interval_method == "difference +- t SE over tasks"


def test_a_note_says_that_the_test_decides_where_the_interval_does_not_agree():
    def tested(broken, runs):
        full = np.full(40, runs)
        return benchmark_test(counted_side(np.r_[[0] * broken, full[broken:]], full), counted_side(full, full))

    found = tested(1, 3)
    assert found.p <= 0.05
    assert found.lo <= 0 <= found.hi
    assert THE_TEST_DECIDES in found.note
    clear = tested(2, 5)
    assert clear.hi < 0
    assert THE_TEST_DECIDES not in clear.note
