"""Several benchmarks in one gate: who may block, who may hold a pass back, and for how many tests p is adjusted.

A false block can come of any of several tests, so to block is corrected for how many there are. A false pass cannot: it is given
only where no benchmark speaks against it alone, so each is asked at its own alpha, and naming further ones makes a pass harder,
never easier. See docs/design/gate-families.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from evalnoise.stats.gates.gate import AT_ODDS, Decision, Gated, decided, own_p
from evalnoise.stats.multiplicity import adjusted


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Decisions about several benchmarks, and the one that follows from them."""

    decision: Decision
    """By `decision_of_all`."""
    members: tuple[Gated, ...]
    """By benchmark, the others' p adjusted by Holm."""
    primary: int
    """Which of them is the primary."""
    against: tuple[bool, ...]
    """By benchmark: whether it lets nothing pass, because it is unfit, or alone significantly worse, or contradicts itself."""
    note: str
    """How the p values were adjusted, and of how many; empty for one benchmark."""


def settle(members: Sequence[Gated], primary: int = 0) -> Family:
    """The decision about several benchmarks: the primary at its own alpha, the others by Holm among themselves.

    Holm is over the tests against "worse", so that gains free nothing. Where nothing changed the primary blocks with a chance of at
    most alpha/2, and any of the others with as much: alpha in all; with one-sided tests twice that. Any of five alone at 0.05 would
    block 12 of 100 such cases, or 23 one-sided. Members that are unfit, or have no p, cannot block and are none of Holm's family.
    Members with the same scores and the same p are one test, and count once; those that are the primary's not at all.

    Raises:
        ValueError: There is no such member.
    """
    if not 0 <= primary < len(members):
        raise ValueError(f"the primary is one of {len(members)} benchmarks, not number {primary}")
    tests = _tests(members, primary)
    holm = adjusted(list(tests.values()))
    by_test = dict(zip(tests, holm.p_adjusted, strict=True))
    result = [
        member if i == primary else _among(member, by_test.get(_test(member)), holm.family) for i, member in enumerate(members)
    ]
    against = tuple(bool(member.unfit) or _stands_against(member) for member in members)
    return Family(
        decision=decision_of_all([member.decision for member in result], against, primary),
        members=tuple(result),
        primary=primary,
        against=against,
        note=_note(members, primary, holm.family),
    )


def decision_of_all(decisions: Sequence[Decision], against: Sequence[bool], primary: int) -> Decision:
    """Block if any blocks; else the primary's, but no pass while any benchmark stands against one."""
    if Decision.BLOCK in decisions:
        return Decision.BLOCK
    if decisions[primary] is Decision.PASS and any(against):
        return Decision.INCONCLUSIVE
    return decisions[primary]


def _test(member: Gated) -> tuple[str, float | None]:
    """What makes two members one test: the same scores, and the same p, which clusters may change."""
    return member.data, own_p(member)


def _counts(member: Gated) -> bool:
    return not member.unfit and own_p(member) is not None


def _tests(members: Sequence[Gated], primary: int) -> dict[tuple[str, float | None], float]:
    """The distinct tests of Holm's family, each with its p against "worse": 1 for a gain by a two-sided test."""
    found = {}
    for member in members:
        p = own_p(member)
        if _counts(member) and p is not None and _test(member) != _test(members[primary]):
            found[_test(member)] = p if member.rule.one_sided or _towards_worse(member) else 1.0
    return found


def _towards_worse(member: Gated) -> bool:
    return member.tested.p_worse is not None and member.tested.p_worse < 0.5


def _among(alone: Gated, p: float | None, family: int) -> Gated:
    """A further member as it is decided among the others; it passes only if it passes alone."""
    own = own_p(alone)
    if p is None or own is None or alone.unfit or not (alone.rule.one_sided or _towards_worse(alone)):
        return alone
    found = decided(alone, p)
    if found.decision is Decision.BLOCK or alone.decision is not Decision.BLOCK:
        # What contradicts itself alone is not mended by a larger p.
        return dataclasses.replace(alone, p=p) if AT_ODDS in alone.reasons else found
    reason = f"significantly worse alone, p {own:.4g}, but not as one of {family} tests"
    return dataclasses.replace(found, decision=Decision.INCONCLUSIVE, reasons=(reason,))


def _stands_against(alone: Gated) -> bool:
    return alone.decision is Decision.BLOCK or AT_ODDS in alone.reasons


def _note(members: Sequence[Gated], primary: int, family: int) -> str:
    others = [member for i, member in enumerate(members) if i != primary]
    if not others:
        return ""
    left_out = sum(not _counts(member) for member in others)
    copies = len(others) - left_out - family
    out = f" ({left_out} left out, unfit or without a p)" if left_out else ""
    same = f"; {copies} with the same scores as another counted once with it" if copies else ""
    return f"the primary at its own alpha, {family} more by Holm among themselves{out}{same}"
