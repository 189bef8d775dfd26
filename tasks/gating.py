"""Gates over stores: two arms that users name, their cells task by task, and everything that speaks against comparing them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evalnoise.readers.arms import Arm, find_arm
from evalnoise.readers.cells import Cells
from evalnoise.readers.fitness import unfit_for_decisions
from evalnoise.readers.sameness import Aspect, Sameness, not_independent, same_measurement
from evalnoise.stats.estimate import Covers, joined
from evalnoise.stats.gates.aa import Article, article_rule
from evalnoise.stats.gates.gate import Decision, Gated, GateRule, decision_of_all, gate, settle
from evalnoise.stats.gates.missing import filled, hidden_loss, missing_cells
from evalnoise.stats.gates.side import Side, on_common_tasks
from evalnoise.stats.planning.power import AchievedPower, Effect, PowerTest, achieved_power
from evalnoise.store.catalog import connect

_SIMULATIONS = 2_000


@dataclass(frozen=True, slots=True)
class Found:
    """An arm and what speaks against using its numbers."""

    arm: Arm
    against: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One benchmark of a gate."""

    benchmark: str
    """The benchmark's name, as NEW has it."""
    base: Arm
    new: Arm
    gated: Gated
    """The decision on the declared claim."""
    sameness: Sameness
    """What differs between the two measurements."""
    article: Article | None
    """What the published rule says; None unless it was asked for."""
    power: tuple[AchievedPower, ...]
    """Power against a loss of the margin by simulation, for each way in which it may be spread; empty where there is no model."""

    @property
    def decision(self) -> Decision:
        """The decision that counts: the published rule's, where that was asked for and nothing makes the records unfit."""
        if self.article is None:
            return self.gated.decision
        return Decision.INCONCLUSIVE if self.gated.unfit else self.article.decision

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why, in words: the published rule's own, where that was asked for."""
        if self.article is None:
            return self.gated.reasons
        if not self.gated.unfit:
            return (self.article.reason,)
        seems = self.article.decision
        return (*self.gated.unfit, *([] if seems is Decision.INCONCLUSIVE else [f"without that it would be {seems}"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A gate over one benchmark or several."""

    decision: Decision
    """Block if any blocks; else the primary's, but no pass while another is unfit."""
    members: tuple[Compared, ...]
    """By benchmark, in the order that they were named."""
    primary: int
    """Which one is the primary."""
    note: str
    """How several were put together; empty for one."""

    @property
    def first(self) -> Compared:
        """The primary."""
        return self.members[self.primary]


def find(store: Path, text: str, name: str) -> Found:
    """The arm that a text names in a store. `name` is what reasons call it. Raises StoreError."""
    with closing(connect(store)) as connection:
        arm = find_arm(connection, store, text)
        return Found(arm, tuple(unfit_for_decisions(connection, arm, name)))


def sides(base: Cells, new: Cells) -> tuple[Side, Side, tuple[str, ...], int, int]:
    """Base and new on the tasks that both benchmarks have, in base's order; their clusters; tasks that only base, only new has."""
    rows = {task: row for row, task in enumerate(new.task_ids)}
    common = [(row, rows[task]) for row, task in enumerate(base.task_ids) if task in rows]
    at_base, at_new = (np.array([pair[i] for pair in common], dtype=np.int64) for i in (0, 1))
    made = [Side(scores=cells.scores[at], measured=cells.measured[at]) for cells, at in ((base, at_base), (new, at_new))]
    clusters = tuple(base.clusters[row] for row in at_base)
    return made[0], made[1], clusters, len(base.task_ids) - len(common), len(new.task_ids) - len(common)


def compare(base: Found, new: Found, rule: GateRule, *, allowed: Collection[Aspect] = (), article: int | None = None) -> Compared:
    """The gate over one benchmark; `allowed` aspects may differ beside model and prompt; `article` is the published rule's seed."""
    one, other = base.arm, new.arm
    sameness = same_measurement(one, other, allowed=allowed)
    side_base, side_new, clusters, only_base, only_new = sides(one.cells, other.cells)
    unfit = (*not_independent(one, other), *sameness.demands, *_remedy(sameness), *base.against, *new.against)
    gated = gate(side_new, side_base, rule, unfit=unfit, only_new=only_new, only_base=only_base, clusters=clusters)
    published = _published(side_new, side_base, level=1 - rule.alpha, seed=article) if article is not None else None
    return Compared(
        benchmark=other.cells.benchmark,
        base=one,
        new=other,
        gated=gated,
        sameness=sameness,
        article=published,
        power=power_by_simulation(side_base, side_new, gated),
    )


def _published(new: Side, base: Side, *, level: float, seed: int) -> Article:
    """The published rule, whose pass too must hold if NEW's unmeasured cells were failures."""
    found = article_rule(new, base, level=level, seed=seed)
    if found.decision is not Decision.PASS or not missing_cells(new):
        return found
    if article_rule(filled(new, 0.0), base, level=level, seed=seed).decision is Decision.PASS:
        return found
    return replace(found, decision=Decision.INCONCLUSIVE, note=joined(hidden_loss(new, None), found.note))


def _remedy(sameness: Sameness) -> Iterator[str]:
    if sameness.changed:
        options = " ".join(f"--allow {one}" for one in sameness.changed)
        yield f"run BASE again as NEW was measured, or accept the change with {options}"


def power_by_simulation(base: Side, new: Side, gated: Gated) -> tuple[AchievedPower, ...]:
    """Chance that a true loss of the margin is significant, with base as the pilot: spread over tasks, in a few, and mixed.

    For pass and fail, these tasks, and a base with two runs of some task. By the normal form of the same test.
    """
    tested, rule = gated.tested, gated.rule
    new, base, _ = on_common_tasks(new, base)
    if tested.covers != Covers.BENCHMARK or not base.binary or not tested.runs_new or int(base.runs.max(initial=0)) < 2:
        return ()
    alpha = 2 * rule.alpha if rule.one_sided else rule.alpha
    return tuple(
        found
        for effect in Effect
        for found in achieved_power(
            base.passes,
            base.runs,
            delta=rule.margin,
            runs_a=base.runs,
            runs_b=new.runs,
            effect=effect,
            tests=(PowerTest.CMH,),
            alpha=alpha,
            simulations=_SIMULATIONS,
            seed=rule.seed,
        )
    )


def named_twice(members: Sequence[Compared]) -> Compared | None:
    """The first member whose two arms, in either order, are those of one before it; None where there is none."""
    seen: set[frozenset[tuple[str, str, str, str]]] = set()
    for member in members:
        cells = [arm.cells for arm in (member.base, member.new)]
        pair = frozenset((one.study, one.protocol, one.stack, one.condition) for one in cells)
        if pair in seen:
            return member
        seen.add(pair)
    return None


def together(members: Sequence[Compared], primary: int = 0) -> Outcome:
    """The decision over several benchmarks; the published rule knows no family, so there each keeps its own."""
    if any(member.article is not None for member in members):
        decisions = [member.decision for member in members]
        decision = decision_of_all(decisions, [bool(member.gated.unfit) for member in members], primary)
        note = "the published rule has no correction for several benchmarks" if len(members) > 1 else ""
        return Outcome(decision=decision, members=tuple(members), primary=primary, note=note)
    family = settle([member.gated for member in members], primary)
    settled = tuple(replace(member, gated=gated) for member, gated in zip(members, family.members, strict=True))
    return Outcome(decision=family.decision, members=settled, primary=primary, note=family.note)
