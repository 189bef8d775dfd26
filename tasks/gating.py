"""Gates over stores: two arms that users name, their cells task by task, and everything that speaks against comparing them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from evalnoise.readers.arms import Arm, find_arm
from evalnoise.readers.cells import Cells, task_texts
from evalnoise.readers.fitness import unfit_for_decisions
from evalnoise.readers.sameness import Aspect, Sameness, not_independent, same_measurement, share_cells
from evalnoise.stats.estimate import Covers
from evalnoise.stats.gates.aa import Article, article_rule
from evalnoise.stats.gates.copies import look_like_copies
from evalnoise.stats.gates.family import decision_of_all, settle
from evalnoise.stats.gates.gate import FEWEST_TASKS, Decision, Gated, GateRule, gate
from evalnoise.stats.gates.missing import hidden_loss, worst_cases
from evalnoise.stats.gates.side import Side, on_common_tasks
from evalnoise.stats.planning.power import AchievedPower, Effect, PowerTest, achieved_power
from evalnoise.store.catalog import connect

_SIMULATIONS = 2_000
MOST_REPEATED = 0.1
"""With a larger share of tasks that repeat another's text nothing is decided."""


@dataclass(frozen=True, slots=True)
class Found:
    """An arm and what speaks against using its numbers."""

    arm: Arm
    against: tuple[str, ...]
    texts: tuple[str, ...]
    """A digest of what each task asks, in the order of the arm's cells; empty for none."""

    @property
    def keys(self) -> list[str]:
        """What tells that tasks of two benchmarks are one: what they ask, or their id where no text says that."""
        return [text or f"id {task}" for text, task in zip(self.texts, self.arm.cells.task_ids, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One benchmark of a gate."""

    benchmark: str
    """What the pair is called: the benchmark's name, as NEW has it, unless the user gave another."""
    found_base: Found
    found_new: Found
    gated: Gated
    """The decision on the declared claim."""
    sameness: Sameness
    """What differs between the two measurements."""
    article: Article | None
    """What the published rule says; None unless it was asked for."""
    power: tuple[AchievedPower, ...]
    """Power against a loss of the margin by simulation, for each way in which it may be spread; empty where there is no model."""

    @property
    def base(self) -> Arm:
        """The arm that NEW must not fall behind."""
        return self.found_base.arm

    @property
    def new(self) -> Arm:
        """The arm that asks to pass."""
        return self.found_new.arm

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
    """Block if any blocks; else the primary's, but no pass while any stands against it."""
    members: tuple[Compared, ...]
    """By benchmark, in the order that they were named."""
    primary: int
    """Which one is the primary."""
    against: tuple[bool, ...]
    """By benchmark, whether it lets nothing pass: it is unfit, or alone significantly worse."""
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
        texts = task_texts(connection, arm.cells.study, arm.cells.protocol)
        return Found(arm, tuple(unfit_for_decisions(connection, arm, name)), texts)


def sides(base: Cells, new: Cells) -> tuple[Side, Side, tuple[str, ...]]:
    """Base and new on all tasks that either benchmark has, base's first and in its order, and the cluster of each.

    A task that one of them does not have is `absent` there, and not left out: it may be gone because NEW fails it.
    """
    clusters = dict(zip(base.task_ids, base.clusters, strict=True))
    for task, cluster in zip(new.task_ids, new.clusters, strict=True):
        clusters.setdefault(task, cluster)
    return _laid_out(base, list(clusters)), _laid_out(new, list(clusters)), tuple(clusters.values())


def _laid_out(cells: Cells, tasks: Sequence[str]) -> Side:
    rows = {task: row for row, task in enumerate(cells.task_ids)}
    at = np.array([rows.get(task, -1) for task in tasks], dtype=np.int64)
    absent = at < 0
    measured = cells.measured[at] & ~absent[:, None]
    return Side(scores=np.where(measured, cells.scores[at], 0.0), measured=measured, absent=absent)


def compare(
    base: Found, new: Found, rule: GateRule, *, name: str = "", allowed: Collection[Aspect] = (), article: int | None = None
) -> Compared:
    """The gate over one benchmark; `allowed` aspects may differ beside model and prompt; `article` is the published rule's seed."""
    one, other = base.arm, new.arm
    sameness = same_measurement(one, other, allowed=allowed)
    side_base, side_new, clusters = sides(one.cells, other.cells)
    unfit = (*not_independent(one, other), *_repeats(base, new), *sameness.demands, *_remedy(sameness), *base.against, *new.against)
    gated = gate(side_new, side_base, rule, unfit=unfit, clusters=clusters)
    published = _published(side_new, side_base, level=1 - rule.alpha, seed=article) if article is not None else None
    return Compared(
        benchmark=name or other.cells.benchmark,
        found_base=base,
        found_new=new,
        gated=gated,
        sameness=sameness,
        article=published,
        power=power_by_simulation(side_base, side_new, gated),
    )


def _published(new: Side, base: Side, *, level: float, seed: int) -> Article:
    """The published rule, whose pass too must hold whatever unmeasured cells and absent tasks were."""
    found = article_rule(new, base, level=level, seed=seed)
    cases = worst_cases(new, base) if found.decision is Decision.PASS else []
    worst = [article_rule(*case, level=level, seed=seed).decision for case in cases]
    if all(decision is Decision.PASS for decision in worst):
        return found
    return replace(found, decision=Decision.INCONCLUSIVE, against_pass=hidden_loss(new, base, None))


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


def _repeats(base: Found, new: Found) -> Iterator[str]:
    """That many tasks are the same task again: their runs, which may be copies, would count as evidence of their own."""
    common = set(base.arm.cells.task_ids) & set(new.arm.cells.task_ids)
    texts = [text for text, task in zip(new.texts, new.arm.cells.task_ids, strict=True) if text and task in common]
    again = sum(count - 1 for count in Counter(texts).values())
    if again > MOST_REPEATED * len(common):
        yield f"{again} of {len(common)} tasks ask the same as another: repeats are no new evidence; leave them out, or replicate"


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


def sharing_runs(members: Sequence[Compared]) -> tuple[Compared, Compared] | None:
    """Two members that have runs of both their arms in common without being copies, such as a benchmark and a part of it.

    Whole copies count once. What two tests on some of the same runs should count is not known.
    """
    fit = [member for member in members if not member.gated.unfit]
    for one, other in combinations(fit, 2):
        arms = (one.found_base, other.found_base), (one.found_new, other.found_new)
        if one.gated.data != other.gated.data and all(_alike(*pair) for pair in arms):
            return one, other
    return None


def _alike(one: Found, other: Found) -> bool:
    """Whether two arms share runs: by their plans, or because the same tasks agree far beyond chance."""
    if share_cells(one.arm, other.arm):
        return True
    rows = {key: row for row, key in enumerate(one.keys)}
    common = [(rows[key], row) for row, key in enumerate(other.keys) if key in rows]
    if len(common) < FEWEST_TASKS:
        return False
    matched = [
        Side(scores=found.arm.cells.scores[list(at)], measured=found.arm.cells.measured[list(at)])
        for found, at in zip((one, other), zip(*common, strict=True), strict=True)
    ]
    a, b, _ = on_common_tasks(*matched)
    return bool(a.n_tasks) and look_like_copies(a, b)


def together(members: Sequence[Compared], primary: int = 0) -> Outcome:
    """The decision over several benchmarks; the published rule knows no family, so there each keeps its own."""
    if any(member.article is not None for member in members):
        decisions = [member.decision for member in members]
        against = tuple(bool(member.gated.unfit) for member in members)
        decision = decision_of_all(decisions, against, primary)
        note = "the published rule has no correction for several benchmarks" if len(members) > 1 else ""
        return Outcome(decision=decision, members=tuple(members), primary=primary, against=against, note=note)
    family = settle([member.gated for member in members], primary)
    settled = tuple(replace(member, gated=gated) for member, gated in zip(members, family.members, strict=True))
    return Outcome(decision=family.decision, members=settled, primary=primary, against=family.against, note=family.note)
