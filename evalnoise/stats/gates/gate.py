"""The gate: block, pass or inconclusive, on a declared claim about a new arm against a base.

Block: significant and worse. Pass: not block, and the one-sided limit of the loss lies under the margin, also with NEW's unmeasured
cells as failures and BASE's as passes, and so with tasks that only one of them has. Anything else is inconclusive, and so are
records that cannot bear a decision, whatever they seem to say.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from evalnoise.stats.estimate import Covers, joined
from evalnoise.stats.gates.claims import PLANNED_POWER, Tested, benchmark_test, population_test
from evalnoise.stats.gates.copies import MAY_BE_A_COPY, look_like_copies, single_copy
from evalnoise.stats.gates.missing import filled, hidden_gain, hidden_loss, lacks, worst_cases
from evalnoise.stats.gates.permutation import RESAMPLES
from evalnoise.stats.gates.side import Side, on_common_tasks

FEWEST_TASKS = 20
SMALLEST_ALPHA = 1e-12
"""Under it 1 - alpha, the level of intervals and limits, has no digits left."""
MOST_UNMEASURED = 0.1
AT_ODDS = (
    "test and difference disagree in sign, because the runs are uneven: the test weighs tasks by their runs, the difference "
    "does not; measure the missing cells"
)
_NO_DIFFERENCE = 1e-12
"""Differences up to this are 0 but for rounding."""


class Decision(StrEnum):
    """What a gate says."""

    BLOCK = "block"
    """Significant and worse, both by the test."""
    PASS = "pass"  # noqa: S105 - no password
    """A loss of the margin or more is excluded, and nothing significant stands against it."""
    INCONCLUSIVE = "inconclusive"
    """Neither, or the records cannot bear a decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    """What is claimed, and when it is decided. Raises ValueError for what is no rule."""

    claim: Covers = Covers.BENCHMARK
    """`benchmark`: these tasks, new runs. `population`: new tasks too."""
    margin: float = 0.02
    """Loss of score, in (0, 1], that must be excluded to pass."""
    alpha: float = 0.05
    """Level of the test, and 1 minus the level of the one-sided limit of the loss."""
    one_sided: bool = False
    """Test against "worse" alone; else the test is two-sided, and half of its level is for "worse"."""
    tolerate_within_margin: bool = False
    """Pass a significant loss whose limit lies under the margin."""
    fewest_tasks: int = FEWEST_TASKS
    """With fewer common tasks the gate is inconclusive."""
    most_unmeasured: float = MOST_UNMEASURED
    """With a larger share of unmeasured cells in an arm, or of tasks that only one arm has, it is inconclusive."""
    seed: int = 0
    """Seed of the permutation test, and of the limit for new tasks."""
    resamples: int = RESAMPLES
    """Resamples of the permutation test."""

    def __post_init__(self) -> None:
        if self.claim not in {Covers.BENCHMARK, Covers.POPULATION}:
            raise ValueError(f"a claim is benchmark or population, not {self.claim!r}")
        object.__setattr__(self, "claim", Covers(self.claim))
        if not 0 < self.margin <= 1:
            raise ValueError(f"a margin is a loss of score in (0, 1], not {self.margin!r}")
        if not SMALLEST_ALPHA <= self.alpha < 0.5:
            raise ValueError(f"alpha lies between 0 and 0.5, and is at least {SMALLEST_ALPHA:g}, not {self.alpha!r}")
        if not 0 <= self.most_unmeasured <= 1:
            raise ValueError(f"a share lies in [0, 1], not {self.most_unmeasured!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """One decision with all that it rests on."""

    decision: Decision
    """The decision."""
    reasons: tuple[str, ...]
    """Why, in words: for an inconclusive one first what the records lack."""
    rule: GateRule
    """The rule that was declared."""
    tested: Tested
    """Test, difference, interval and limit."""
    p: float | None
    """The p that was held against alpha, adjusted where there are several benchmarks."""
    power_at_margin: float | None
    """Chance that a true loss of the margin is significant, by the normal formula with the error at hand."""
    unmeasured_new: float
    """Share of new's cells without an outcome."""
    unmeasured_base: float
    """Share of base's."""
    only_new: int
    """Tasks that new has measured and base has not, or does not have."""
    only_base: int
    """Tasks that base has measured and new has not, or does not have."""
    runs_to_settle: int | None
    """Inconclusive, `benchmark`: runs per arm that would settle it; None where it is settled, or runs cannot."""
    tasks_to_settle: int | None
    """Inconclusive, `population`: tasks that would settle it."""
    settling: str
    """The same in words; empty where it is settled, or where nothing is known to settle it."""
    unfit: tuple[str, ...]
    """What makes the records unfit for a decision; empty where nothing does."""
    data: str = ""
    """SHA-256 of the scores on the common tasks, whatever names, ids and order they have: the same for copies."""
    loss_limit_if_failed: float | None = None
    """Limit of the loss with the cells that NEW lacks as failures, BASE's as passes; None without any, or no pass at stake."""
    against_pass: str = ""
    """Why a pass does not hold, in words: what unmeasured cells and absent tasks could hide; empty where it does."""
    against_block: str = ""
    """That a block would not hold if NEW's unmeasured cells were passes and BASE's failures; empty where it would."""


def gate(
    new: Side,
    base: Side,
    rule: GateRule,
    *,
    unfit: Sequence[str] = (),
    clusters: Sequence[str] | None = None,
) -> Gated:
    """The decision about one benchmark.

    Args:
        new: The arm that asks to pass.
        base: The arm that it must not fall behind; row i is the same task, `absent` on the side whose suite does not have it.
        rule: The declared rule.
        unfit: Reasons known from elsewhere that the arms cannot be compared; with any of them the gate is inconclusive.
        clusters: Cluster of each row, for `population`; empty texts for none.
    """
    a, b, both = on_common_tasks(new, base)
    only_new = int((((new.runs >= 1) & ~both) | ~base.has).sum())
    only_base = int((((base.runs >= 1) & ~both) | ~new.has).sum())
    lacking = _lacking(a, b, rule, unmatched=max(only_new, only_base))
    lacking += _unmeasured(new, base, rule)
    tested, why = _tested(new, base, rule, clusters)
    lacking += why
    if single_copy(a, b):
        tested = dataclasses.replace(tested, note=joined(tested.note, MAY_BE_A_COPY))
    undecided = Gated(
        decision=Decision.INCONCLUSIVE,
        reasons=(),
        rule=rule,
        tested=tested,
        p=None,
        power_at_margin=tested.power_at(rule.margin, 2 * rule.alpha if rule.one_sided else rule.alpha),
        unmeasured_new=new.unmeasured_share,
        unmeasured_base=base.unmeasured_share,
        only_new=only_new,
        only_base=only_base,
        runs_to_settle=None,
        tasks_to_settle=None,
        settling="",
        unfit=(*unfit, *lacking),
        data=_same_scores(a, b),
    )
    undecided = _with_missing(undecided, new, base, clusters)
    return decided(undecided, own_p(undecided))


def _tested(new: Side, base: Side, rule: GateRule, clusters: Sequence[str] | None) -> tuple[Tested, list[str]]:
    """The test of the claim, and why it is not the one that was asked for."""
    level = 1 - rule.alpha
    if rule.claim is Covers.BENCHMARK:
        return benchmark_test(new, base, level=level, seed=rule.seed, resamples=rule.resamples), []
    try:
        return population_test(new, base, level=level, clusters=clusters, seed=rule.seed), []
    except ValueError as error:
        return population_test(new, base, level=level, seed=rule.seed), [str(error)]


def _with_missing(found: Gated, new: Side, base: Side, clusters: Sequence[str] | None) -> Gated:
    """With what unmeasured cells and absent tasks could hide from a pass or a block, where either is at stake."""
    rule, limit, p = found.rule, found.tested.loss_limit, own_p(found)

    def otherwise(one: Side, other: Side) -> Gated:
        as_if = dataclasses.replace(found, tested=_tested(one, other, rule, clusters)[0], unfit=())
        return decided(as_if, own_p(as_if))

    if limit is not None and limit < rule.margin and (cases := worst_cases(new, base)):
        worst = [otherwise(*case) for case in cases]
        limits = [one.tested.loss_limit for one in worst]
        highest = None if None in limits else max(one for one in limits if one is not None)
        # A limit under the margin is not what speaks against the pass: the loss would be significant.
        said = None if highest is None or highest < rule.margin else highest
        against = "" if all(one.decision is Decision.PASS for one in worst) else hidden_loss(new, base, said)
        found = dataclasses.replace(found, loss_limit_if_failed=highest, against_pass=against)
    # Among several benchmarks p only grows: what does not block alone never does.
    if (lacks(new) or lacks(base)) and p is not None and p <= rule.alpha:
        best = otherwise(filled(new, 1.0), filled(base, 0.0))
        against = "" if best.decision is Decision.BLOCK else hidden_gain(new, base)
        found = dataclasses.replace(found, against_block=against)
    return found


def _lacking(a: Side, b: Side, rule: GateRule, *, unmatched: int) -> list[str]:
    """What the records lack on the common tasks."""
    found = []
    if a.n_tasks < rule.fewest_tasks:
        found.append(f"{a.n_tasks} tasks that both arms have measured: a gate needs {rule.fewest_tasks}; read the outputs instead")
    if unmatched and unmatched / (a.n_tasks + unmatched) > rule.most_unmeasured:
        found.append(f"{unmatched} tasks are only in one arm, beside {a.n_tasks} that both have: the suites differ")
    repeated = max(int(side.runs.max(initial=0)) for side in (a, b)) > 1
    if a.n_tasks and repeated and not (a.varied.any() or b.varied.any()):
        found.append("degenerate records: no run of any task differs from another in either arm, so the noise is not known")
    elif a.n_tasks and look_like_copies(a, b):
        found.append("degenerate records: the runs of NEW and BASE look alike as copies do and independent runs do not")
    return found


def _unmeasured(new: Side, base: Side, rule: GateRule) -> list[str]:
    return [
        f"{side.unmeasured_share:.1%} of the cells of {name} are unmeasured: more than {rule.most_unmeasured:.0%}"
        for name, side in (("NEW", new), ("BASE", base))
        if side.measured.size and side.unmeasured_share > rule.most_unmeasured
    ]


def decided(found: Gated, p: float | None) -> Gated:
    """The same records decided with this p, for instance one that is adjusted for several benchmarks."""
    rule, tested = found.rule, found.tested
    decision, reasons, open_question = _verdict(found, p)
    if found.unfit:
        seems = f"without that it would be {decision}" if decision is not Decision.INCONCLUSIVE else ""
        reasons = [*found.unfit, *([seems] if seems else [])]
        decision = Decision.INCONCLUSIVE
    elif tested.undefined and p is None and decision is not Decision.PASS:
        reasons.append(tested.undefined)
    open_question = open_question and not found.unfit
    runs, words = _runs_to_settle(tested, rule) if open_question else (None, "")
    tasks = tested.tasks_for(rule.margin, rule.alpha) if open_question else None
    if tasks is not None:
        words = f"about {tasks} tasks would settle it with a chance of {PLANNED_POWER:.0%}; more runs of these alone may not"
    return dataclasses.replace(
        found, decision=decision, reasons=tuple(reasons), p=p, runs_to_settle=runs, tasks_to_settle=tasks, settling=words
    )


def _verdict(found: Gated, p: float | None) -> tuple[Decision, list[str], bool]:
    """The decision on records that are fit, why, and whether more runs or tasks would settle it."""
    rule, tested = found.rule, found.tested
    # An adjusted p keeps the direction of the test that it was made from.
    towards_worse = tested.p_worse is not None and tested.p_worse < 0.5
    worse = p is not None and p <= rule.alpha and (rule.one_sided or towards_worse)
    within = tested.loss_limit is not None and tested.loss_limit < rule.margin
    if _at_odds(tested, p, rule, towards_worse=towards_worse):
        return Decision.INCONCLUSIVE, [AT_ODDS], False
    decision, reason = _measured_verdict(rule, worse=worse, within=within)
    if decision is Decision.PASS and found.against_pass:
        return Decision.INCONCLUSIVE, [found.against_pass], False
    if decision is Decision.BLOCK and found.against_block:
        return decision, [reason, found.against_block], False
    return decision, [reason], decision is Decision.INCONCLUSIVE


def _at_odds(tested: Tested, p: float | None, rule: GateRule, *, towards_worse: bool) -> bool:
    """Whether a test that is significant in either direction goes the other way than the difference of scores."""
    if p is None or tested.p is None or tested.difference is None:
        return False
    significant = p <= rule.alpha or (rule.one_sided and not towards_worse and tested.p <= 2 * rule.alpha)
    same = tested.difference < -_NO_DIFFERENCE if towards_worse else tested.difference > _NO_DIFFERENCE
    return significant and not same


def _measured_verdict(rule: GateRule, *, worse: bool, within: bool) -> tuple[Decision, str]:
    if worse and not (within and rule.tolerate_within_margin):
        inside = ", though the loss is inside the margin" if within else ""
        return Decision.BLOCK, f"significant and worse{inside}"
    if within:
        tolerated = "; a significant loss inside the margin is tolerated" if worse else ""
        return Decision.PASS, f"a loss of the margin, {rule.margin:g}, or more is excluded{tolerated}"
    return Decision.INCONCLUSIVE, f"no significant loss, but a loss of the margin, {rule.margin:g}, is not excluded either"


def _runs_to_settle(tested: Tested, rule: GateRule) -> tuple[int | None, str]:
    """Runs per arm, and in words: planned for the margin, or, with as many at hand, what decides a difference as it was seen."""
    planned = tested.runs_for(rule.margin, rule.alpha)
    means = tested.mean_runs_new, tested.mean_runs_base
    if planned is None or tested.difference is None or means[0] is None or means[1] is None:
        return None, ""
    at_hand = min(means[0], means[1])
    if planned > at_hand:
        return planned, f"about {planned} runs per arm would settle it with a chance of {PLANNED_POWER:.0%}"
    # The error falls as 1 / sqrt(runs): so many times the runs bring one of the two limits to where it decides.
    to_pass = _ratio((tested.loss_limit or 0.0) + tested.difference, rule.margin + tested.difference)
    to_block = _ratio((tested.hi or 0.0) - tested.difference, -tested.difference)
    runs = max(round(at_hand) + 1, math.ceil(at_hand * min(to_pass, to_block)))
    return runs, f"about {runs} runs per arm would settle it if the difference stays as it was seen"


def _ratio(half: float, room: float) -> float:
    return math.inf if room <= 0 else (half / room) ** 2


def own_p(member: Gated) -> float | None:
    """The p of a member alone, in the direction that its rule asks for."""
    return member.tested.p_worse if member.rule.one_sided else member.tested.p


def _same_scores(new: Side, base: Side) -> str:
    """SHA-256 of the scores, each task's in any order, tasks in any order: the same for a copy, whatever its names and ids."""
    ordered = [
        np.sort(np.where(side.measured, side.scores, np.inf), axis=1)[:, : int(side.runs.max(initial=0))] for side in (new, base)
    ]
    rows = np.hstack(ordered) + 0.0  # -0.0 is 0.0
    found = hashlib.sha256(repr([cells.shape for cells in ordered]).encode())
    found.update(np.ascontiguousarray(rows[np.lexsort(rows.T)] if rows.size else rows, dtype="<f8").tobytes())
    return found.hexdigest()
