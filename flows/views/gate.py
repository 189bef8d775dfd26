"""A gate's decision in a table, in one sentence for a pull request, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import typer

from evalnoise.report.numbers import counted
from evalnoise.stats.estimate import Covers
from evalnoise.stats.gates.aa import Article
from evalnoise.stats.gates.claims import Tested
from evalnoise.stats.gates.gate import Decision, Gated
from flows.cli_errors import printable
from flows.views.folding import folded
from schemas.errors import ExitCode
from tasks.gating import Compared, Outcome

FORMAT: Final = 1
"""Of the JSON: raised when a field changes its meaning or goes."""
CODES: Final = {Decision.PASS: ExitCode.OK, Decision.BLOCK: ExitCode.GATE, Decision.INCONCLUSIVE: ExitCode.INCONCLUSIVE}
_SAYS: Final = {Decision.PASS: "passes", Decision.BLOCK: "is blocked", Decision.INCONCLUSIVE: "is not decided"}
_COLOURS: Final = {Decision.PASS: typer.colors.GREEN, Decision.BLOCK: typer.colors.RED, Decision.INCONCLUSIVE: typer.colors.YELLOW}
_OVER: Final = {Covers.BENCHMARK: "new runs of these tasks", Covers.POPULATION: "new tasks"}
_WIDTH: Final = 24
_POWER: Final = ("value", "lo", "hi", "simulations", "seed", "undefined")


def exit_code(outcome: Outcome) -> int:
    """0 for a pass, 12 for a block, 13 for what is inconclusive."""
    return int(CODES[outcome.decision])


# --- the sentence --------------------------------------------------------------------------------------------------------


def sentence(outcome: Outcome) -> str:
    """One line of markdown; names and what came out of stores stand in code spans, where nothing is markup."""
    # First the benchmark that the decision hangs on: the primary, or else the first that blocks.
    ordered = [outcome.first, *(one for i, one in enumerate(outcome.members) if i != outcome.primary)]
    blocking = [one for one in ordered if one.decision is Decision.BLOCK]
    lead = blocking[0] if blocking else outcome.first
    said = f"**{outcome.decision}**: {benchmark_sentence(lead)}"
    more = [one for one in ordered if one is not lead]
    if more:
        others = "; ".join(_short(one, primary=one is outcome.first) for one in more)
        said += f" Of {counted(len(more), 'other benchmark')}: {others}."
        said += _not_passed(outcome)
    return said


def _short(member: Compared, *, primary: bool) -> str:
    """Name, decision, difference and p of a benchmark that the decision does not hang on."""
    found = member.article or member.gated.tested
    p = member.gated.p if member.article is None else None
    ends = "" if found.lo is None else f" [{found.lo:+.4f}, {found.hi:+.4f}]"
    numbers = found.undefined if found.difference is None else f"difference {found.difference:+.4f}{ends}"
    tested = "" if p is None else f", p {p_words(p)}"
    said = f"{code(member.benchmark)}{' (primary)' if primary else ''} {_SAYS[member.decision]}, {numbers}{tested}"
    return said + (f" ({uncovered})" if (uncovered := not_covered(member)) else "")


def _not_passed(outcome: Outcome) -> str:
    """Why a primary that passes is not enough."""
    if outcome.decision is not Decision.INCONCLUSIVE or outcome.first.decision is not Decision.PASS:
        return ""
    held = [one for one, against in zip(outcome.members, outcome.against, strict=True) if against]
    unfit = ", ".join(code(one.benchmark) for one in held if one.gated.unfit)
    worse = ", ".join(code(one.benchmark) for one in held if not one.gated.unfit)
    said = f" The records of {unfit} cannot bear a decision, so this is no pass." if unfit else ""
    return said + (f" Alone, {worse} speaks against NEW, so this is no pass." if worse else "")


def benchmark_sentence(member: Compared) -> str:
    """What one benchmark says, in one line of markdown."""
    new, base = code(member.new.label), code(member.base.label)
    head = f"on {code(member.benchmark)}, {new} {_SAYS[member.decision]} against {base}"
    uncovered = f"; {said}" if (said := not_covered(member)) else ""
    return f"{head}; {_numbers(member)}{_unmeasured(member)}{uncovered}{_because(member)}"


def not_covered(member: Compared) -> str:
    """That the decision is about fewer tasks than the arms have; empty where it is about all of them."""
    unmatched = _unmatched(member.gated)
    tested = member.article or member.gated.tested
    return f"decided on the {counted(tested.n_tasks, 'task')} that both measured: {unmatched} not covered" if unmatched else ""


def _unmeasured(member: Compared) -> str:
    base, new = member.gated.unmeasured_base, member.gated.unmeasured_new
    return f", unmeasured {base:.1%} of the cells of base and {new:.1%} of new" if base or new else ""


def _numbers(member: Compared) -> str:
    if member.article is not None and member.article.mde is not None and member.article.difference is not None:
        found = member.article
        ends = f"[{found.lo:+.4f}, {found.hi:+.4f}]"
        return (
            f"difference {found.difference:+.4f} {ends} over new tasks, A/A effect {found.mde:.4f} (published rule: {found.reason})"
        )
    tested, rule = member.gated.tested, member.gated.rule
    if tested.difference is None:
        return tested.undefined
    ends = "" if tested.lo is None or tested.hi is None else f" [{tested.lo:+.4f}, {tested.hi:+.4f}]"
    p = "" if member.gated.p is None else f", p {p_words(member.gated.p)}"
    limit = "" if tested.loss_limit is None else f", {_limit_words(tested.loss_limit)} (margin {rule.margin:g})"
    runs = f"{_runs(tested)[0]} and {_runs(tested)[1]} {'run' if tested.most_runs_new == 1 else 'runs'}"
    over = f"over {_OVER[Covers(tested.covers)]}"
    return f"difference {tested.difference:+.4f}{ends} {over}{p}{limit}, {counted(tested.n_tasks, 'task')}, {runs}"


def _runs(tested: Tested) -> tuple[str, str]:
    """Runs per task of base and of new: one number, or from the fewest to the most."""
    ends = (tested.runs_base, tested.most_runs_base), (tested.runs_new, tested.most_runs_new)
    base, new = (str(low) if low == high else f"{low} to {high}" for low, high in ends)
    return base, new


def _because(member: Compared) -> str:
    found = member.gated
    if found.unfit:
        return f": {code('; '.join(member.reasons))}."
    if found.against_pass and found.against_pass in found.reasons and member.article is None:
        return f": {found.against_pass}."
    return f": {found.settling}." if found.settling and member.article is None else "."


def p_words(p: float) -> str:
    """A p-value in few digits, never 0."""
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"


def code(text: str) -> str:
    """Text from outside as a markdown code span on one line: no markup, no mention and no link can come of it."""
    return f"`{one_line(text).replace('`', chr(39))}`"


def one_line(text: str) -> str:
    """Text from outside, printable, on one line, and no command to a CI system that reads logs, such as ``##[error]``."""
    return printable(" ".join(text.split())).replace("##[", "# #[")


# --- the table -----------------------------------------------------------------------------------------------------------


def print_gate(outcome: Outcome) -> None:
    """Print a block of lines for each benchmark, then the decision and the sentence."""
    for number, member in enumerate(outcome.members):
        title = f"Gate on {member.benchmark}"
        if len(outcome.members) > 1:
            title += " (primary)" if number == outcome.primary else " (further)"
        typer.secho(one_line(title), bold=True)
        for name, value in _lines(member):
            typer.echo(folded(one_line(value), first=f"  {name:{_WIDTH}}", rest=" " * (_WIDTH + 2)))
        typer.echo()
    if outcome.note:
        typer.echo(folded(f"Several benchmarks: {outcome.note}."))
    typer.secho(f"Decision: {outcome.decision}", fg=_COLOURS[outcome.decision], bold=True)
    typer.echo(folded(sentence(outcome)))


def _lines(member: Compared) -> list[tuple[str, str]]:
    return _claim_lines(member) if member.article is None else _article_lines(member, member.article)


def _claim_lines(member: Compared) -> list[tuple[str, str]]:
    found, tested, rule = member.gated, member.gated.tested, member.gated.rule
    lines = [
        ("base", member.base.label),
        ("new", member.new.label),
        ("claim", f"{rule.claim}: {_OVER[rule.claim]}"),
        ("test", tested.test + (f", seed {tested.seed}, {tested.resamples} resamples" if tested.seed is not None else "")),
        ("tasks", _task_words(member)),
        ("runs per task", f"{_runs(tested)[0]} of base, {_runs(tested)[1]} of new"),
        ("unmeasured cells", f"{found.unmeasured_base:.1%} of base, {found.unmeasured_new:.1%} of new"),
        ("difference, new - base", _number(tested.difference, "+.4f")),
        (f"{tested.level:.4g} interval", _interval_words(tested)),
        ("p", _p_line(member)),
        (
            "limit of the loss",
            f"{_number(tested.loss_limit, '.4f')}{_gain(tested.loss_limit)}, one-sided {tested.level:.4g}; margin {rule.margin:g}",
        ),
        ("power at the margin", _power_words(member)),
        ("decision", found.decision),
    ]
    lines += [("because", reason) for reason in found.reasons]
    lines += [("not covered", uncovered)] if (uncovered := not_covered(member)) else []
    lines += [("would settle it", found.settling)] if found.settling else []
    lines += [("differs, as it may", text) for text in member.sameness.allowed]
    lines += [("note", note) for note in (tested.undefined, tested.note) if note]
    return lines


def _interval_words(tested: Tested) -> str:
    return "none" if tested.lo is None else f"[{tested.lo:+.4f}, {tested.hi:+.4f}]: {tested.interval_method}"


def _limit_words(limit: float) -> str:
    return f"loss up to {limit:.4f} not excluded" if limit >= 0 else f"no loss, a gain of at least {-limit:.4f}"


def _gain(limit: float | None) -> str:
    return f" (a gain of at least {-limit:.4f})" if limit is not None and limit < 0 else ""


def _task_words(member: Compared) -> str:
    found = member.gated
    clusters = f" in {counted(found.tested.clusters, 'cluster')}" if found.tested.clusters else ""
    return f"{found.tested.n_tasks} in both{clusters}, {found.tested.n_informative} of them informative{_also(_unmatched(found))}"


def _unmatched(found: Gated) -> str:
    only = [(found.only_base, "only in base"), (found.only_new, "only in new")]
    return ", ".join(f"{count} {where}" for count, where in only if count)


def _also(text: str) -> str:
    return f", {text}" if text else ""


def _p_line(member: Compared) -> str:
    found = member.gated
    if found.p is None:
        return "none"
    alone = found.tested.p_worse if found.rule.one_sided else found.tested.p
    adjusted = f" (alone {p_words(alone)}; adjusted by Holm)" if alone is not None and alone != found.p else ""
    return f"{p_words(found.p)}{adjusted}, {'one' if found.rule.one_sided else 'two'}-sided; alpha {found.rule.alpha:g}"


def _power_words(member: Compared) -> str:
    formula = _number(member.gated.power_at_margin, ".2f")
    simulated = ", ".join(f"{one.value:.2f} {one.effect}" for one in member.power if one.value is not None)
    return f"{formula} by formula" + (f"; by simulation {simulated}" if simulated else "")


def _article_lines(member: Compared, found: Article) -> list[tuple[str, str]]:
    """The published rule's own numbers, and nothing of a claim."""
    gated, level = member.gated, f"{found.level:.4g}"
    lines = [
        ("base", member.base.label),
        ("new", member.new.label),
        (
            "rule",
            f"article: {_OVER[Covers(found.covers)]}, by bootstraps over tasks, seed {found.seed}, {found.resamples} resamples",
        ),
        ("tasks", f"{found.n_tasks} in both{_also(_unmatched(gated))}"),
        ("runs per task", "{} of base, {} of new".format(*_runs(gated.tested))),
        ("unmeasured cells", f"{gated.unmeasured_base:.1%} of base, {gated.unmeasured_new:.1%} of new"),
    ]
    if found.mde is not None and found.aa_lo is not None:
        ends = f"{level} [{found.aa_lo:+.4f}, {found.aa_hi:+.4f}]"
        both = f"mean of the resamples {_number(found.difference, '+.4f')}, as measured {_number(found.measured, '+.4f')}"
        lines += [
            ("A/A effect", f"{found.mde:.4f}, the larger end of {ends}, halves of base's runs"),
            ("A/B difference", f"{both}, {level} [{found.lo:+.4f}, {found.hi:+.4f}]"),
            ("power at its effect", _number(found.power_at_mde, ".2f")),
        ]
    lines += [("decision", member.decision), *(("because", reason) for reason in member.reasons)]
    lines += [("not covered", uncovered)] if (uncovered := not_covered(member)) else []
    return [*lines, *(("differs, as it may", text) for text in member.sameness.allowed), ("note", found.note)]


def _number(value: float | None, form: str) -> str:
    return "undefined" if value is None else f"{value:{form}}"


# --- JSON ----------------------------------------------------------------------------------------------------------------


def as_json(outcome: Outcome) -> dict[str, Any]:
    """All of it; docs/guide/gates.md describes the fields."""
    return {
        "format": FORMAT,
        "decision": str(outcome.decision),
        "exit_code": exit_code(outcome),
        "sentence": sentence(outcome),
        "rule": "claim" if outcome.first.article is None else "article",
        "primary": outcome.first.benchmark,
        "family": outcome.note,
        "benchmarks": [_member(member) for member in outcome.members],
    }


def _member(member: Compared) -> dict[str, Any]:
    facts = asdict(member.gated)
    rule, tested, p = facts.pop("rule"), facts.pop("tested"), facts.pop("p")
    alone = tested.pop("p"), tested.pop("p_worse")
    for said_in_reasons in ("against_pass", "against_block"):
        del facts[said_in_reasons]
    found = {
        "benchmark": member.benchmark,
        "base": _arm(member.base),
        "new": _arm(member.new),
        **facts,
        "decision": str(member.decision),
        "decision_by_claim": str(member.gated.decision),
        **rule,
        **tested,
        "p": p,
        "p_two_sided": alone[0],
        "p_worse": alone[1],
        "seed": tested["seed"],
        "resamples": tested["resamples"],
        "not_covered": not_covered(member),
        "differs": list(member.sameness.allowed),
        "recalibrate": list(member.sameness.demands),
        "power_simulated": [{"effect": str(one.effect), **{name: getattr(one, name) for name in _POWER}} for one in member.power],
        "article": None if member.article is None else asdict(member.article),
    }
    return found if member.article is None else found | _of_article(member, member.article)


def _of_article(member: Compared, found: Article) -> dict[str, Any]:
    """What the published rule says in the fields of the claim; None for those that it has not."""
    own = ("covers", "difference", "lo", "hi", "level", "n_tasks", "seed", "resamples", "undefined", "note")
    made = {"test": "published rule of two thresholds", "interval_method": "percentiles of a bootstrap over tasks"}
    none = ("claim", "margin", "alpha", "one_sided", "se", "loss_limit", "p", "p_two_sided", "p_worse", "n_informative", "w_new")
    more = ("w_base", "clusters", "power_at_margin", "runs_to_settle", "tasks_to_settle", "tolerate_within_margin")
    empty = {"settling": "", "power_simulated": [], "reasons": list(member.reasons)}
    return dict.fromkeys((*none, *more)) | {name: getattr(found, name) for name in own} | made | empty


def _arm(arm: Any) -> dict[str, str]:
    cells = arm.cells
    return {
        "label": arm.label,
        "study": cells.study,
        "protocol": cells.protocol,
        "stack": cells.stack,
        "condition": cells.condition,
    }
