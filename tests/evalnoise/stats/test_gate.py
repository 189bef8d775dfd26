"""The gate: what it blocks, what it lets pass, and what it refuses to decide."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from evalnoise.stats.estimate import Covers
from evalnoise.stats.gates import copies as copying
from evalnoise.stats.gates.claims import HowTested
from evalnoise.stats.gates.copies import MAY_BE_A_COPY, look_like_copies
from evalnoise.stats.gates.family import settle
from evalnoise.stats.gates.gate import AT_ODDS, Decision, GateRule, decided, gate
from evalnoise.stats.gates.side import Side, counted_side, side_of
from evalnoise.stats.planning.budget import rerun_budget
from tests.support.gate_arms import N, arm, cut, rates

RULE = GateRule()


@pytest.fixture
def base():
    return arm(np.random.default_rng(1), rates(), 10)


# --- decisions -----------------------------------------------------------------------------------------------------------


def test_a_large_loss_is_blocked(base):
    broken = np.where(np.arange(N) < 12, 0.0, rates())
    found = gate(arm(np.random.default_rng(2), broken, 10), base, RULE)
    assert found.decision is Decision.BLOCK
    assert found.reasons == ("significant and worse",)
    assert found.tested.test == HowTested.CMH
    assert found.tested.covers == "benchmark"
    assert found.p < 0.05
    assert (found.runs_to_settle, found.settling) == (None, "")
    # The other way round it is better, and passes.
    assert gate(base, arm(np.random.default_rng(2), broken, 10), RULE).decision is Decision.PASS


def test_what_has_not_changed_passes_with_enough_runs_and_is_open_with_few():
    p = rates()
    rng = np.random.default_rng(3)
    many = gate(arm(rng, p, 40), arm(rng, p, 40), RULE)
    assert many.decision is Decision.PASS
    assert many.tested.loss_limit < 0.02
    few = gate(arm(rng, p, 3), arm(rng, p, 3), RULE)
    assert few.decision is Decision.INCONCLUSIVE
    assert few.runs_to_settle == rerun_budget(few.tested.w_new, few.tested.w_base, N, 0.02)
    assert f"about {few.runs_to_settle} runs per arm" in few.settling


def test_arms_may_have_different_numbers_of_runs(base):
    found = gate(arm(np.random.default_rng(4), rates(), 3), base, RULE)
    assert (found.tested.runs_new, found.tested.runs_base) == (3, 10)
    assert found.p is not None


def test_a_significant_loss_inside_the_margin():
    runs = 400
    p = np.full(60, 0.5)
    new, base = arm(np.random.default_rng(5), p - 0.02, runs), arm(np.random.default_rng(6), p, runs)
    strict = gate(new, base, GateRule(margin=0.1))
    assert strict.decision is Decision.BLOCK
    assert "inside the margin" in strict.reasons[0]
    lenient = gate(new, base, GateRule(margin=0.1, tolerate_within_margin=True))
    assert lenient.decision is Decision.PASS
    assert "tolerated" in lenient.reasons[0]
    # Tolerance is for losses inside the margin alone.
    assert gate(new, base, GateRule(margin=0.01, tolerate_within_margin=True)).decision is Decision.BLOCK


def test_one_sided_asks_half_as_much():
    rng = np.random.default_rng(11)
    new, base = arm(rng, rates() * 0.975, 8), arm(rng, rates(), 8)
    two, one = gate(new, base, RULE), gate(new, base, GateRule(one_sided=True))
    assert one.p == two.tested.p_worse
    assert two.p == two.tested.p == pytest.approx(2 * one.p)
    assert one.power_at_margin > two.power_at_margin


def test_runs_that_are_there_already_are_not_asked_for_again():
    many = np.full(40, 200)
    found = gate(counted_side(many - 110, many), counted_side(many - 107, many), GateRule(margin=0.025))
    assert found.decision is Decision.INCONCLUSIVE
    assert found.runs_to_settle > 200
    assert "if the difference stays" in found.settling


def uneven():
    """Tasks with one run lose all, those with many win a little: by the test, which weighs by runs, better; by the mean worse."""
    n, runs = 200, 20
    base, new, measured = np.zeros((n, runs)), np.zeros((n, runs)), np.ones((n, runs), bool)
    base[:20] = 1
    measured[:20, 1:] = False
    base[20:, :9] = 1
    new[20:, :10] = 1
    return new[:, ::-1], base, measured[:, ::-1]


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("better", [False, True])
def test_a_test_that_contradicts_the_difference_decides_nothing(one_sided, better):
    new, base, measured = uneven()
    new, base = (new, base) if better else (1 - new, 1 - base)
    found = gate(side_of(new, measured), side_of(base), GateRule(one_sided=one_sided))
    assert (found.tested.p_worse > 0.999) if better else (found.tested.p_worse < 0.001)
    assert (found.tested.difference < 0) == better
    assert found.decision is Decision.INCONCLUSIVE
    assert found.reasons == (AT_ODDS,)
    assert "measure the missing cells" in AT_ODDS
    assert found.settling == ""
    family = settle([found] * 3)
    assert [member.decision for member in family.members] == [Decision.INCONCLUSIVE] * 3


def test_adjusted_members_keep_the_direction_of_their_test():
    """By Holm 0.04 becomes 0.08; a contradiction stays one, and a loss that is significant alone is no pass."""
    new, base, measured = uneven()
    found = gate(side_of(new, measured), side_of(base), RULE)
    weak = dataclasses.replace(found, tested=dataclasses.replace(found.tested, p=0.04, p_worse=0.98, loss_limit=0.5))
    worse = dataclasses.replace(weak, tested=dataclasses.replace(weak.tested, p_worse=0.02, difference=-0.1))
    worse, other = (decided(dataclasses.replace(worse, data=name), 0.04) for name in ("one", "two"))
    assert AT_ODDS in settle([found, weak]).members[1].reasons
    assert AT_ODDS in settle([found, weak, worse]).members[1].reasons
    assert settle([found, worse]).members[1].decision is Decision.BLOCK
    assert settle([found, worse, other]).members[1].decision is Decision.INCONCLUSIVE


@pytest.mark.parametrize("claim", [Covers.BENCHMARK, Covers.POPULATION])
def test_both_claims_decide(claim):
    rng = np.random.default_rng(7)
    p = np.full(200, 0.5)
    rule = GateRule(claim=claim)
    assert gate(arm(rng, p - 0.1, 20), arm(rng, p, 20), rule).decision is Decision.BLOCK
    assert gate(arm(rng, p + 0.05, 20), arm(rng, p, 20), rule).decision is Decision.PASS
    found = gate(arm(rng, p, 2), arm(rng, p, 2), rule)
    assert found.decision is Decision.INCONCLUSIVE
    assert found.tested.covers == claim
    assert (found.tasks_to_settle is None) == (claim is Covers.BENCHMARK)
    assert found.settling


# --- records that cannot bear a decision ------------------------------------------------------------------------------------


def test_under_twenty_tasks_nothing_is_decided():
    new, base = counted_side([0] * 19, [9] * 19), counted_side([9] * 18 + [8], [9] * 19)
    found = gate(new, base, RULE)
    assert found.decision is Decision.INCONCLUSIVE
    assert found.reasons[0].startswith("19 tasks")
    assert found.reasons[-1] == "without that it would be block"
    assert found.settling == ""
    assert gate(counted_side([0] * 20, [9] * 20), counted_side([9] * 19 + [8], [9] * 20), RULE).decision is Decision.BLOCK


def test_records_without_variation_are_degenerate():
    found = gate(counted_side([0] * 10 + [5] * 30, [5] * 40), counted_side([5] * 40, [5] * 40), RULE)
    assert found.decision is Decision.INCONCLUSIVE
    assert found.reasons[0].startswith("degenerate records")


def drawn(rng, p, runs):
    return side_of((rng.random((len(p), runs)) < p[:, None]).astype(float))


def copies(kind):
    """An arm, and what was made of it."""
    rng = np.random.default_rng(21)
    base = drawn(rng, rng.beta(0.7, 0.7, 200), 10)
    scores, measured = base.scores.copy(), base.measured.copy()
    if kind == "one cell changed":
        scores[np.flatnonzero(base.varied)[0], 0] = 1 - scores[np.flatnonzero(base.varied)[0], 0]
    elif kind == "reversed":
        scores = scores[:, ::-1]
    elif kind == "reversed, a tenth of the tasks anew":
        scores = np.where(rng.random(200)[:, None] < 0.1, drawn(rng, rng.random(200), 10).scores, scores[:, ::-1])
    elif kind == "a tenth of the cells changed":
        scores = np.where(rng.random(scores.shape) < 0.1, 1 - scores, scores)
    elif kind == "holes":
        measured = rng.random(scores.shape) > 0.05
        scores = np.where(measured, scores, 0.0)
    elif kind == "fewer runs":
        scores, measured = scores[:, :6], measured[:, :6]
    elif kind == "between pass and fail":
        base = side_of(rng.random((40, 3)))
        scores, measured = base.scores[:, ::-1], base.measured
    return side_of(scores, measured), base


KINDS = (
    "whole", "one cell changed", "reversed", "reversed, a tenth of the tasks anew", "a tenth of the cells changed", "holes",
    "fewer runs", "between pass and fail",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("claim", [Covers.BENCHMARK, Covers.POPULATION])
def test_copies_are_nothing_to_decide_on(kind, claim):
    new, base = copies(kind)
    for found in (gate(new, base, GateRule(claim=claim)), gate(base, new, GateRule(claim=claim))):
        assert found.decision is Decision.INCONCLUSIVE
        assert "as copies do" in found.reasons[0]


def test_an_arm_against_itself_never_passes(base):
    assert "as copies do" in gate(base, base, RULE).reasons[0]
    # Runs that hardly vary agree by chance.
    calm = counted_side([3] * 39 + [2], [3] * 40)
    assert gate(calm, calm, GateRule(margin=0.5)).decision is Decision.PASS


def test_honest_pairs_are_never_taken_for_copies():
    """2,000 pairs: few runs and many, calm suites and wild ones, run effects that both share, scores in between, holes."""
    rng = np.random.default_rng(22)
    for trial in range(2_000):
        n, runs = int(rng.choice([20, 60])), int(rng.choice([2, 3, 5, 10]))
        p = rng.beta(*rng.choice([0.1, 0.5, 1.0, 5.0], 2), n)
        nights = rng.normal(0, 0.03, runs) * (trial % 2)
        cells = [rng.random((n, runs)) < p[:, None] + nights for _ in range(2)]
        scores = [x.astype(float) * (np.ceil(2 * rng.random((n, runs))) / 2 if trial % 5 == 0 else 1) for x in cells]
        measured = [rng.random((n, runs)) > 0.1 * (trial % 3 == 0) for _ in range(2)]
        assert not look_like_copies(*(side_of(x, known) for x, known in zip(scores, measured, strict=True)))


def test_the_largest_chance_of_the_same_scores():
    """All runs enumerated, at the rates of the counts and at others."""
    for counts in ([1, 4], [2, 2, 1], [1, 1, 1], [5]):
        n, kinds = sum(counts), len(counts)

        def chance(rates, counts=counts, n=n, kinds=kinds):
            runs = itertools.product(range(kinds), repeat=n)
            return sum(math.prod(rates[x] for x in run) for run in runs if [run.count(x) for x in range(kinds)] == counts)

        found = copying._at_most(np.array([counts]))[0]
        assert found == pytest.approx(chance([c / n for c in counts]))
        others = np.random.default_rng(24).dirichlet(np.ones(kinds), 20)
        assert all(chance(list(rates)) <= found + 1e-12 for rates in others)


def test_single_runs_that_all_agree_are_noted_not_refused():
    rng = np.random.default_rng(23)
    base = drawn(rng, np.full(400, 0.5), 1)
    found = gate(base, base, RULE)
    assert not found.unfit
    assert MAY_BE_A_COPY in found.tested.note
    other = base.scores.copy()
    other[0] = 1 - other[0]
    assert MAY_BE_A_COPY not in gate(side_of(other), base, RULE).tested.note
    few = base.take(np.arange(99))
    assert MAY_BE_A_COPY not in gate(few, few, RULE).tested.note


def test_too_many_unmeasured_cells_or_tasks(base):
    measured = base.measured.copy()
    measured[:20] = False
    holed = Side(scores=np.where(measured, base.scores, 0.0), measured=measured)
    found = gate(holed, arm(np.random.default_rng(8), rates(), 10), RULE)
    assert found.decision is Decision.INCONCLUSIVE
    assert any("12.2% of the cells of NEW" in reason for reason in found.reasons)
    assert any("20 tasks are only in one arm" in reason for reason in found.reasons)
    assert (found.only_new, found.only_base) == (0, 20)
    assert found.unmeasured_new == pytest.approx(20 / N)
    assert found.tested.n_tasks == N - 20
    lenient = dataclasses.replace(RULE, most_unmeasured=0.5)
    assert not gate(holed, arm(np.random.default_rng(8), rates(), 10), lenient).unfit
    # Unmeasured cells are no failures: a few of them leave the difference where it is.
    one = measured | True
    one[:, 0] = False
    some = gate(Side(scores=np.where(one, base.scores, 0.0), measured=one), base, RULE)
    assert abs(some.tested.difference) < 0.02


@pytest.mark.parametrize("percent", [7, 29, 30, 57])
def test_the_largest_allowed_share_is_allowed(percent):
    """1 - 0.7 is more than 0.3, and 0.29 x 100 is less than 29."""
    rng = np.random.default_rng(20)
    rule = GateRule(most_unmeasured=percent / 100)
    full = side_of(rng.integers(0, 2, (100, 10)))
    holed = np.ones((100, 10), bool)
    holed.flat[: percent * 10] = False
    for shown in (holed, holed.reshape(10, 100).T):
        found = gate(side_of(rng.integers(0, 2, (100, 10)), shown), full, rule)
        assert found.unmeasured_new == percent / 100
        assert not found.unfit
    assert not gate(cut(side_of(rng.integers(0, 2, (100, 10))), np.arange(100) >= 100 - percent), full, rule).unfit
    holed[-1, -1] = False
    assert "unmeasured: more than" in gate(side_of(full.scores, holed), full, rule).unfit[-1]


def test_other_reasons_and_tasks_without_a_row():
    rng = np.random.default_rng(9)
    rule, numbers = GateRule(margin=0.09, tolerate_within_margin=True), np.arange(N)
    found = gate(
        cut(arm(rng, rates(), 40), numbers == 0), cut(arm(rng, rates(), 40), numbers > N - 5), rule, unfit=["the judge differs"]
    )
    assert found.decision is Decision.INCONCLUSIVE
    assert found.reasons == ("the judge differs", "without that it would be pass")
    assert (found.unmeasured_new, found.unmeasured_base) == (0, 0)
    assert (found.only_new, found.only_base) == (4, 1)


def test_one_cluster_is_no_claim_about_clusters():
    rng = np.random.default_rng(10)
    rule = GateRule(claim=Covers.POPULATION)
    found = gate(arm(rng, rates(), 9), arm(rng, rates(), 9), rule, clusters=["same"] * N)
    assert found.decision is Decision.INCONCLUSIVE
    assert "needs 2 of them" in found.reasons[0]


@pytest.mark.parametrize(
    "wrong", [{"margin": 0.0}, {"margin": 2}, {"margin": math.nan}, {"alpha": 0.7}, {"claim": ""}, {"most_unmeasured": 2}]
)
def test_what_is_no_rule_is_refused(wrong):
    with pytest.raises(ValueError, match="not "):
        GateRule(**wrong)


# --- unmeasured cells ---------------------------------------------------------------------------------------------------------


def test_cells_that_are_missing_because_they_failed_make_no_pass():
    """A loss of 8.6 points, all of it in cells that are not measured: under the tenth that makes an arm unfit."""
    rng = np.random.default_rng(3)
    p = np.full(80, 0.9)
    scores, before = (rng.random((80, 10)) < 0.9).astype(float), arm(rng, p, 10)
    whole = gate(side_of(scores), before, GateRule(margin=0.05))
    assert whole.decision is Decision.PASS
    assert (whole.loss_limit_if_failed, whole.against_pass) == (None, "")
    measured = np.ones((80, 10), bool)
    measured.flat[rng.choice(np.flatnonzero(scores == 1), 79, replace=False)] = False
    found = gate(side_of(scores, measured), before, GateRule(margin=0.05))
    assert found.unfit == ()
    assert found.tested.loss_limit < 0.05
    assert found.decision is Decision.INCONCLUSIVE
    as_failures = gate(side_of(np.where(measured, scores, 0)), before, GateRule(margin=0.05))
    assert as_failures.decision is Decision.BLOCK
    limit = as_failures.tested.loss_limit
    assert found.loss_limit_if_failed == limit
    said = f"79 of 800 cells of NEW are unmeasured; were they failures, the loss could be up to {limit:.4f}; measure them"
    assert found.reasons == (said,)
    assert (found.runs_to_settle, found.settling) == (None, "")
    # Of several benchmarks too, and where the margin leaves room for all of them it is a pass.
    assert settle([whole, found]).members[1].decision is Decision.INCONCLUSIVE
    roomy = gate(side_of(scores, measured), before, GateRule(margin=0.3, tolerate_within_margin=True))
    assert roomy.decision is Decision.PASS


def test_passes_of_base_that_are_missing_make_no_pass():
    """A loss that blocks, most of it hidden by leaving 8 % of BASE's cells out, passes of it all."""
    rng = np.random.default_rng(0)
    before, scores = ((rng.random((300, 10)) < p).astype(float) for p in (0.6, 0.57))
    rule = GateRule(margin=0.05)
    assert gate(side_of(scores), side_of(before), rule).decision is Decision.BLOCK
    measured = np.ones((300, 10), bool)
    measured.flat[rng.choice(np.flatnonzero(before == 1), 250, replace=False)] = False
    found = gate(side_of(scores), side_of(before, measured), rule)
    assert (found.tested.loss_limit < 0.05, found.decision) == (True, Decision.INCONCLUSIVE)
    limit = gate(side_of(scores), side_of(np.where(measured, before, 1.0)), rule).tested.loss_limit
    assert found.loss_limit_if_failed == limit > 0.05
    said = f"250 of 3000 cells of BASE are unmeasured; were they passes, the loss could be up to {limit:.4f}; measure them"
    assert found.reasons == (said,)
    # Both arms' together.
    both = gate(side_of(scores, measured[::-1]), side_of(before, measured), GateRule(margin=0.1))
    assert "of NEW and 250 of 3000 of BASE are unmeasured; were NEW's failures and BASE's passes" in both.reasons[0]


def test_a_block_that_hangs_on_missing_cells_stays_one_and_says_so():
    rng = np.random.default_rng(5)
    p = np.full(80, 0.8)
    scores, before = (rng.random((80, 10)) < 0.8).astype(float), arm(rng, p, 10)
    measured = np.ones((80, 10), bool)
    measured.flat[rng.choice(np.flatnonzero(scores == 1), 75, replace=False)] = False
    scores[:4] = 0
    found = gate(side_of(scores, measured), before, RULE)
    assert found.decision is Decision.BLOCK
    assert found.reasons[1] == "75 of 800 cells of NEW are unmeasured; were they passes, it would not be a block"
    surely = gate(side_of(scores * (rng.random((80, 10)) < 0.5), measured), before, RULE)
    assert (surely.decision, len(surely.reasons)) == (Decision.BLOCK, 1)
