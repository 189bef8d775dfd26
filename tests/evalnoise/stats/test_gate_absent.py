"""Tasks that only one suite has: a loss must not hide in them."""

import dataclasses

import numpy as np
import pytest

from evalnoise.stats.estimate import Covers
from evalnoise.stats.gates.gate import Decision, GateRule, gate
from evalnoise.stats.gates.side import Side, side_of
from tests.support.gate_arms import cut

N, BROKEN = 200, 19
HARD = np.arange(N) >= N - BROKEN
CLAIMS = [Covers.BENCHMARK, Covers.POPULATION]


def arms():
    """In the last 19 tasks BASE always passes and NEW always fails: a loss of 9.5 points, and by chance a little more or less."""
    rng = np.random.default_rng(4)
    p = np.where(np.arange(N) % 5 == 0, 0.7, 1.0)
    base, new = ((rng.random((N, 8)) < p[:, None]).astype(float) for _ in range(2))
    base[HARD], new[HARD] = 1.0, 0.0
    return side_of(new), side_of(base)


@pytest.mark.parametrize("claim", CLAIMS)
def test_tasks_that_new_fails_and_lost_make_no_pass(claim):
    new, base = arms()
    rule = GateRule(claim=claim, margin=0.06)
    whole = gate(new, base, rule)
    assert whole.decision is Decision.BLOCK
    found = gate(cut(new, HARD), base, rule)
    assert (found.unfit, found.only_base, found.only_new) == ((), BROKEN, 0)
    assert found.tested.loss_limit < 0.06
    assert found.decision is Decision.INCONCLUSIVE
    assert found.loss_limit_if_failed == whole.tested.loss_limit
    limit = f"the loss could be up to {whole.tested.loss_limit:.4f}"
    assert found.reasons == (f"19 tasks of BASE are not in NEW; were they failures, {limit}; run both arms on one suite",)
    # What the tasks came to does not depend on why NEW has no score of them, and no score counts them.
    holed = dataclasses.replace(cut(new, HARD), absent=None)
    unmeasured = gate(holed, base, rule)
    assert unmeasured.loss_limit_if_failed == found.loss_limit_if_failed
    assert (found.unmeasured_new, unmeasured.unmeasured_new) == (0, BROKEN / N)
    assert found.tested == unmeasured.tested


@pytest.mark.parametrize("claim", CLAIMS)
def test_tasks_that_base_passes_and_lost_make_no_pass(claim):
    new, base = arms()
    rule = GateRule(claim=claim, margin=0.06)
    found = gate(new, cut(base, HARD), rule)
    assert (found.decision, found.only_base, found.only_new) == (Decision.INCONCLUSIVE, 0, BROKEN)
    assert found.reasons[0].startswith("19 tasks of NEW are not in BASE; were they passes, the loss could be up to")
    assert found.loss_limit_if_failed == gate(new, base, rule).tested.loss_limit


def test_tasks_under_other_names_and_cells_that_are_missing_beside_them():
    new, base = arms()
    twice = np.r_[np.arange(N), np.flatnonzero(HARD)]
    before = cut(base.take(twice), np.arange(len(twice)) >= N)
    renamed = cut(new.take(twice), np.r_[HARD, np.zeros(BROKEN, bool)])
    found = gate(renamed, before, GateRule(margin=0.15))
    assert (found.only_base, found.only_new) == (BROKEN, BROKEN)
    assert (
        "19 tasks of BASE are not in NEW; 19 tasks of NEW are not in BASE; were NEW's failures and BASE's passes"
        in found.reasons[0]
    )
    measured = renamed.measured.copy()
    measured[0, 0] = False
    holed = Side(scores=np.where(measured, renamed.scores, 0.0), measured=measured, absent=renamed.absent)
    said = gate(holed.take(np.arange(N)), base, GateRule(margin=0.06)).reasons[0]
    assert said.startswith("1 of 1448 cells of NEW are unmeasured; 19 tasks of BASE are not in NEW; were they failures")
    assert said.endswith("; measure them, and run both arms on one suite")


def test_a_margin_with_room_for_all_of_them_is_a_pass_and_a_block_stays_one():
    new, base = arms()
    one = np.arange(N) == N - 1
    same = side_of(np.where(HARD[:, None], 1.0, new.scores))
    found = gate(cut(same, one), base, GateRule(margin=0.06))
    assert (found.decision, found.only_base) == (Decision.PASS, 1)
    assert found.tested.loss_limit < found.loss_limit_if_failed < 0.06
    # Seven lost tasks are enough for a block; nine that NEW may have repaired could make it none.
    few = np.arange(N) >= N - 7
    worse = side_of(np.where(few[:, None], 0.0, same.scores))
    before = base.scores.copy()
    before[:9] = 0.0
    blocked = gate(cut(worse, np.arange(N) < 9), side_of(before), GateRule(margin=0.02))
    assert blocked.decision is Decision.BLOCK
    assert blocked.reasons[1:] == ("9 tasks of BASE are not in NEW; were they passes, it would not be a block",)
