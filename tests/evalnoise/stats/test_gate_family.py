"""Several benchmarks in one gate: naming further ones, copies among them, never makes a pass easier."""

import dataclasses
import itertools

import numpy as np
import pytest

from evalnoise.stats.gates.family import settle
from evalnoise.stats.gates.gate import Decision, GateRule, decided, gate
from evalnoise.stats.gates.side import side_of
from tests.support.gate_arms import arm, rates

RULE = GateRule()
PASS, BLOCK, OPEN = Decision.PASS, Decision.BLOCK, Decision.INCONCLUSIVE


@pytest.fixture(scope="module")
def fine():
    rng = np.random.default_rng(12)
    found = gate(arm(rng, rates(), 40), arm(rng, rates(), 40), RULE)
    assert found.decision is PASS
    return found


def like(member, p, *, data, worse=True, limit=0.03, rule=RULE):
    """Another benchmark, with this two-sided p."""
    one = p / 2 if worse else 1 - p / 2
    tested = dataclasses.replace(member.tested, p=p, p_worse=one, difference=-0.01 if worse else 0.01, loss_limit=limit)
    changed = dataclasses.replace(member, tested=tested, data=data, rule=rule, unfit=())
    return decided(changed, one if rule.one_sided else p)


def test_the_primary_has_its_alpha_and_the_others_share_theirs(fine):
    slight = like(fine, 0.03, data="slight")
    others = [like(fine, p, data=f"{p}", limit=0.01) for p in (0.4, 0.9)]
    assert settle([fine]).decision is PASS
    assert settle([fine, slight]).decision is BLOCK
    # Alone 0.03 blocks; among three by Holm it does not, but nor does anything pass.
    family = settle([fine, slight, *others])
    assert family.members[1].p == pytest.approx(0.09)
    assert family.members[1].reasons == ("significantly worse alone, p 0.03, but not as one of 3 tests",)
    assert [member.decision for member in family.members] == [PASS, OPEN, PASS, PASS]
    assert (family.decision, family.against) == (OPEN, (False, True, False, False))
    assert settle([fine, slight, *others], primary=1).decision is BLOCK
    assert "3 more by Holm" in family.note
    with pytest.raises(ValueError, match="primary"):
        settle([fine], primary=1)


def test_a_loss_inside_the_margin_passes_among_others_only_if_it_does_alone(fine):
    others = [like(fine, p, data=f"{p}", limit=0.01) for p in (0.4, 0.9)]
    inside = like(fine, 0.03, data="inside", limit=0.01)
    assert settle([fine, inside, *others]).members[1].decision is OPEN
    tolerated = like(fine, 0.03, data="inside", limit=0.01, rule=GateRule(tolerate_within_margin=True))
    assert settle([fine, tolerated, *others]).decision is PASS


@pytest.mark.parametrize("one_sided", [False, True])
def test_whatever_is_named_beside_it_what_does_not_pass_never_does(fine, one_sided):
    """All families of up to three of these, with a fourth added at any place: no pass comes of it."""
    rule = GateRule(one_sided=one_sided)
    kinds = [
        like(fine, p, data=data, worse=worse, limit=limit, rule=rule)
        for p, data, worse, limit in (
            (0.9, "a", True, 0.01), (0.01, "b", True, 0.03), (0.03, "c", True, 0.01), (0.03, "d", True, 0.03),
            (0.001, "e", False, 0.0),
        )
    ]  # fmt: skip
    kinds.append(dataclasses.replace(kinds[0], unfit=("gone",), decision=OPEN))
    for members in itertools.product(kinds, repeat=2):
        alone = settle(members).decision
        for more in kinds:
            with_more = settle([*members, more])
            assert alone is PASS or with_more.decision is not PASS
            # The primary's own verdict hangs on no other.
            assert with_more.members[0] == members[0]


def test_copies_count_once(fine):
    slight = like(fine, 0.03, data="slight")
    assert settle([fine, slight, slight, slight]).members[1].p == 0.03
    assert settle([fine, slight, slight, slight]).decision is BLOCK
    assert "2 with the same scores as another counted once" in settle([fine, slight, slight, slight]).note
    # Copies of the primary are none of the others.
    assert settle([fine, fine, fine, slight]).members[3].p == 0.03
    assert settle([slight, slight]).members[1].decision is BLOCK
    # With other clusters the same scores are another test.
    assert settle([fine, slight, like(fine, 0.02, data="slight")]).members[1].p == 0.04


def test_a_gain_frees_nothing(fine):
    gain, slight = like(fine, 1e-6, data="gain", worse=False), like(fine, 0.03, data="slight")
    family = settle([fine, gain, slight])
    assert family.members[2].p == 0.06
    assert (family.members[1].p, family.members[1].decision) == (1e-6, gain.decision)


def test_unfit_benchmarks_dilute_nothing_and_let_nothing_pass(fine):
    slight = like(fine, 0.03, data="slight")
    unfit = dataclasses.replace(fine, unfit=("the same cells",), decision=OPEN)
    family = settle([fine, slight, *[unfit] * 6])
    assert (family.decision, family.members[1].p) == (BLOCK, 0.03)
    assert "1 more by Holm" in family.note
    assert "6 left out" in family.note
    assert settle([fine, unfit]).decision is OPEN


def test_where_nothing_changed_it_blocks_with_a_chance_of_alpha_at_most(fine):
    """Five independent benchmarks: 1 - 0.975 (1 - 0.025/4)^4 = 4.9 %, where any of five alone has 1 - 0.975^5 = 11.9 %."""
    rng = np.random.default_rng(0)
    blocked = alone = 0
    for signed in rng.uniform(-1, 1, (1_000, 5)):
        members = [like(fine, abs(p), data=str(i), worse=p < 0) for i, p in enumerate(signed)]
        blocked += settle(members).decision is BLOCK
        alone += any(member.decision is BLOCK for member in members)
    assert 0.03 < blocked / 1_000 < 0.07
    assert 0.09 < alone / 1_000 < 0.15


def test_the_same_scores_are_known_whatever_their_names_and_order():
    rng = np.random.default_rng(1)
    p = rates()[:60]
    new, base = (rng.random((60, 5)) < p[:, None]).astype(float), (rng.random((60, 5)) < p[:, None]).astype(float)
    known = rng.random((60, 5)) < 0.95
    whole = gate(side_of(new, known), side_of(base), RULE).data
    order, runs = rng.permutation(60), rng.permutation(5)
    assert gate(side_of(new[order][:, runs], known[order][:, runs]), side_of(base[order]), RULE).data == whole
    wider = np.hstack([new, np.ones((60, 2))]), np.hstack([known, np.zeros((60, 2), dtype=bool)])
    assert gate(side_of(*wider), side_of(base), RULE).data == whole
    assert gate(side_of(base), side_of(new, known), RULE).data != whole
    assert gate(side_of(new[1:], known[1:]), side_of(base[1:]), RULE).data != whole
