"""`evalnoise gate`: may NEW replace BASE; `evalnoise aa`: what differences an arm could show at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli_options import DEFAULT_STORE, StoreOption, check_output, misuse

if TYPE_CHECKING:  # imported where they are needed, so that `--help` answers at once
    from evalnoise.readers.pairs import Pair
    from evalnoise.readers.sameness import Aspect
    from evalnoise.stats.gates.gate import GateRule
    from tasks.gating import Compared, Outcome

_ARM = "STUDY, STUDY/CONDITION or STUDY/STACK/CONDITION"
_CLAIMS, _RULES, _ALLOWED = ("benchmark", "population"), ("claim", "article"), ("suite", "grader", "judge", "sampling")


def gate(
    base: Annotated[str | None, typer.Argument(help=f"What NEW must not fall behind: {_ARM}.", metavar="BASE")] = None,
    new: Annotated[str | None, typer.Argument(help=f"What asks to pass: {_ARM}.", metavar="NEW")] = None,
    *,
    margin: Annotated[float, typer.Option("--margin", help="Loss of score that must be excluded to pass.")] = 0.02,
    claim: Annotated[
        str, typer.Option("--claim", help="benchmark: these tasks, new runs; population: new tasks too.", metavar="CLAIM")
    ] = "benchmark",
    alpha: Annotated[float, typer.Option("--alpha", help="Level of the test, and of the limit of the loss.")] = 0.05,
    one_sided: Annotated[bool, typer.Option("--one-sided", help="Test against worse alone.")] = False,
    tolerate: Annotated[
        bool, typer.Option("--tolerate-within-margin", help="Pass a significant loss that is surely under the margin.")
    ] = False,
    also: Annotated[list[str] | None, typer.Option("--also", help="A further benchmark. Repeatable.", metavar="BASE,NEW")] = None,
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", help="A table of benchmarks: columns base, new; if need be margin, name.", metavar="FILE"),
    ] = None,
    primary: Annotated[
        str | None,
        typer.Option("--primary", help="Of several, the one that decides. Default: the first.", metavar="BENCHMARK"),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help=f"What may differ, too: {', '.join(_ALLOWED)}. Repeatable.", metavar="WHAT"),
    ] = None,
    rule: Annotated[
        str, typer.Option("--rule", help="claim, or article: the published rule of two thresholds.", metavar="RULE")
    ] = "claim",
    max_unmeasured: Annotated[
        float, typer.Option("--max-unmeasured", help="Share of unmeasured cells above which nothing is decided.")
    ] = 0.1,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, help="Seed of permutations and of simulated power. Default: 0; of --rule article: 7.", metavar="N"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    junit: Annotated[Path | None, typer.Option("--junit", help="Also write a JUnit report.", metavar="FILE")] = None,
    github: Annotated[bool, typer.Option("--github", help="Also print GitHub annotations.")] = False,
    store: StoreOption = DEFAULT_STORE,
    base_store: Annotated[Path | None, typer.Option("--base-store", help="Store of BASE, if it is another.", metavar="DIR")] = None,
) -> None:
    """Decide whether NEW may replace BASE: block (exit 12), pass (0), or inconclusive (13), on a declared claim."""
    import json

    from flows.views.gate import as_json as facts_of
    from flows.views.gate import exit_code, print_gate
    from flows.views.gate_files import github_lines
    from tasks.gating import together

    if junit is not None:
        _begin_report(junit, store, base_store or store, pairs=pairs)
    declared = _rule(margin, claim, alpha, one_sided=one_sided, tolerate=tolerate, max_unmeasured=max_unmeasured, seed=seed or 0)
    published = _published(rule, seed)
    named = _pairs(base, new, also or [], pairs)
    members = _compared(named, declared, (base_store or store, store), _allowed(allow or []), published)
    outcome = together(members, _primary(members, primary))
    if as_json:
        typer.echo(json.dumps(facts_of(outcome), allow_nan=False))
    else:
        print_gate(outcome)
    if github:
        for line in github_lines(outcome):
            typer.echo(line, err=as_json)
    if junit is not None:
        _report(outcome, junit)
    raise typer.Exit(exit_code(outcome))


def _begin_report(junit: Path, *stores: Path, pairs: Path | None) -> None:
    """A report of an earlier gate must not stand for this one if this one fails."""
    from flows.views.gate_files import write_failed

    check_output("--junit", junit, *stores, apart={"--pairs": pairs})
    write_failed(junit, "the gate failed before it decided: standard error says why")


def _report(outcome: Outcome, junit: Path) -> None:
    """Comes last, when the decision has been printed. Where the report cannot be written, a block still ends as a block."""
    from flows.cli_errors import printable
    from flows.views.gate import exit_code
    from flows.views.gate_files import write_junit
    from schemas.errors import ExitCode, StoreError

    try:
        write_junit(outcome, junit)
    except StoreError as error:
        if exit_code(outcome) == ExitCode.OK:
            raise
        typer.secho(f"error: {printable(str(error))}", fg=typer.colors.RED, err=True)


def _rule(
    margin: float, claim: str, alpha: float, *, one_sided: bool, tolerate: bool, max_unmeasured: float, seed: int
) -> GateRule:
    from evalnoise.stats.estimate import Covers
    from evalnoise.stats.gates.gate import GateRule

    if claim not in _CLAIMS:
        raise misuse(f"--claim {claim}: expected {' or '.join(_CLAIMS)}")
    try:
        return GateRule(
            claim=Covers(claim),
            margin=margin,
            alpha=alpha,
            one_sided=one_sided,
            tolerate_within_margin=tolerate,
            most_unmeasured=max_unmeasured,
            seed=seed,
        )
    except ValueError as error:
        raise misuse(str(error)) from None


def _published(rule: str, seed: int | None) -> int | None:
    """The published rule's seed; None where it was not asked for."""
    from evalnoise.stats.gates.aa import ARTICLE_SEED

    if rule not in _RULES:
        raise misuse(f"--rule {rule}: expected {' or '.join(_RULES)}")
    if rule == "claim":
        return None
    return ARTICLE_SEED if seed is None else seed


def _allowed(names: list[str]) -> set[Aspect]:
    from evalnoise.readers.sameness import Aspect

    for name in names:
        if name not in _ALLOWED:
            raise misuse(f"--allow {name}: expected one of {', '.join(_ALLOWED)}")
    return {Aspect(name) for name in names}


def _pairs(base: str | None, new: str | None, also: list[str], file: Path | None) -> list[Pair]:
    """All pairs: BASE NEW, then those of --also, then those of the file."""
    from evalnoise.readers.pairs import Pair, read_pairs

    if new is None and (base is not None or also or file is None):
        raise misuse("expected BASE and NEW, or --pairs FILE with both of every pair")
    found = [] if base is None or new is None else [Pair(base=base, new=new)]
    return [*found, *map(_pair, also), *([] if file is None else read_pairs(file))]


def _compared(
    pairs: list[Pair], rule: GateRule, stores: tuple[Path, Path], allowed: set[Aspect], published: int | None
) -> list[Compared]:
    """The gate over each pair alone; `stores` are BASE's and NEW's. Pairs that share runs are misuse."""
    from dataclasses import replace

    from tasks.gating import compare, find, named_twice, sharing_runs

    members = []
    for pair in pairs:
        own = rule if pair.margin is None else replace(rule, margin=pair.margin)
        arms = find(stores[0], pair.base, "BASE"), find(stores[1], pair.new, "NEW")
        members.append(compare(*arms, own, name=pair.name, allowed=allowed, article=published))
    if (twice := named_twice(members)) is not None:
        raise misuse(f"{twice.base.label} and {twice.new.label}: the pair is named twice; name each once")
    if (both := sharing_runs(members)) is not None:
        one, other = (f"{member.base.label} and {member.new.label}" for member in both)
        raise misuse(
            f"{one}, and {other}: the pairs have runs in common, as a benchmark and a part of it have; name one of them, because "
            "what the same runs say again is no second test"
        )
    return members


def _pair(text: str) -> Pair:
    from evalnoise.readers.pairs import Pair

    one, comma, other = text.partition(",")
    if not (one and comma and other) or "," in other:
        raise misuse(f"--also {text}: expected BASE,NEW, each {_ARM}")
    return Pair(base=one, new=other)


def _primary(members: list[Compared], name: str | None) -> int:
    if name is None:
        return 0
    found = [i for i, member in enumerate(members) if member.benchmark == name]
    if len(found) != 1:
        known = ", ".join(member.benchmark for member in members)
        raise misuse(f"--primary {name}: expected the name of one benchmark of: {known}")
    return found[0]


def aa(
    arm: Annotated[str, typer.Argument(help=f"The arm: {_ARM}.", metavar="ARM")],
    *,
    alpha: Annotated[float, typer.Option("--alpha", help="Two-sided error level.")] = 0.05,
    power: Annotated[float, typer.Option("--power", help="Power.")] = 0.8,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Say which differences two arms like this one could show: the A/A minimum detectable effect, and whether runs drift."""
    import json

    from evalnoise.stats.gates.gate import SMALLEST_ALPHA
    from flows.views.aa import as_json as facts_of
    from flows.views.aa import measure_itself, print_aa
    from tasks.gating import find

    if not SMALLEST_ALPHA <= alpha < 0.5 or not alpha / 2 < power < 1:
        raise misuse(f"--alpha {alpha!r}, --power {power!r}: expected alpha in [{SMALLEST_ALPHA:g}, 0.5) and power in (alpha/2, 1)")
    found = measure_itself(find(store, arm, "the arm"), alpha=alpha, power=power)
    if as_json:
        typer.echo(json.dumps(facts_of(found), allow_nan=False))
    else:
        print_aa(found)
