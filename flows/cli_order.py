"""The commands about the order of runs and the tasks behind the noise: `drift`, `tasks`, `nights`, `sequential`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli_options import DEFAULT_STORE, MOST, StoreOption, misuse

if TYPE_CHECKING:  # imported by the commands that need it, so that `--help` answers at once
    from evalnoise.readers.sequence import Observations
    from flows.views.fitness import Known

_ARM = "STUDY, STUDY/CONDITION or STUDY/STACK/CONDITION (or a protocol's first digits)."
_TABLES = "CSV, TSV, JSON Lines or Parquet."
ArmArgument = Annotated[str, typer.Argument(help=_ARM, metavar="ARM")]
OrFile = Annotated[str | None, typer.Argument(help=_ARM, metavar="[ARM]")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object.")]


def drift(
    arm: OrFile = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", help=f"A table instead: task, replicate, outcome (or score 0, 1). {_TABLES}", metavar="FILE"),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the permutations. Default: the study's.")] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", help="Error level that the power is for. Default: the study's.")] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Test whether the score moved over the replicates: Cochran's Q, a trend and a scan for a step, each with its power."""
    from evalnoise.stats.drift import drift as test
    from flows.views.fitness import Known, arm_facts
    from flows.views.order import print_drift
    from schemas.study import Analysis

    if alpha is not None:
        _level(alpha, "--alpha")
    _one_of(arm, file)
    if file is not None:
        from evalnoise.readers.order import read_runs

        runs = read_runs(file)
        cells: dict[str, Any] = {"outcomes": runs.outcomes}
        known, label, note, facts, plan = Known((), ()), runs.source, runs.note, {"complete": True}, {}
    else:
        known, note = _known(store, arm or ""), ""
        (found,) = known.arms
        cells = {"outcomes": found.cells.outcomes, "order_known": found.cells.order_known, "graded": not found.cells.binary}
        label, facts, plan = found.label, arm_facts(found), found.frozen.study.get("analysis", {})
    # As the analysis of the study takes them, so that the numbers are those of `estimates`.
    asked = Analysis.model_validate(plan)
    level = asked.alpha if alpha is None else alpha
    result = test(**cells, seed=asked.seed if seed is None else seed, alpha=level)
    print_drift(label, result, known, facts=facts, as_json=as_json, note=note)


def tasks(
    arm: ArmArgument,
    *,
    top: Annotated[int, typer.Option("--top", min=1, help="So many tasks, the noisiest first.", metavar="N")] = 20,
    level: Annotated[float, typer.Option("--level", help="Confidence level of each task's rate.")] = 0.95,
    against: Annotated[
        str | None, typer.Option("--against", help="Another arm: the difference ARM - OTHER without each task.", metavar="OTHER")
    ] = None,
    of: Annotated[str, typer.Option("--of", help="With --against: the difference of w or of score.", metavar="w|score")] = "w",
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Show the tasks that carry the noise: pass rate with its interval, share of w, and w, or a difference, without the task."""
    from flows.views.order import print_against, print_tasks

    _level(level, "--level")
    if of not in {"w", "score"}:
        raise misuse(f"--of {of}: expected w or score")
    if against is not None:
        known = _known(store, arm, against)
        one, other = known.arms
        if one.label == other.label:
            raise misuse(f"--against {against}: expected another arm than {one.label}")
        print_against(known, of=of, top=top, as_json=as_json)
    elif of == "score":
        raise misuse("--of score needs --against: one score has no noise to share out")
    else:
        print_tasks(_known(store, arm), top=top, level=level, as_json=as_json)


def nights(
    study: Annotated[
        str | None,
        typer.Argument(help="STUDY, STUDY/CONDITION or STUDY/STACK/CONDITION of a nightly study.", metavar="[STUDY]"),
    ] = None,
    *,
    file: Annotated[
        Path | None, typer.Option("--file", help=f"A table instead: night, score, perhaps n. {_TABLES}", metavar="FILE")
    ] = None,
    rule: Annotated[
        str,
        typer.Option(
            "--rule", help="t: each night by itself. ewma: a moving average, for small changes that stay.", metavar="RULE"
        ),
    ] = "t",
    since: Annotated[
        str | None, typer.Option("--since", help="First night that counts: a new baseline after a change.", metavar="NIGHT")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Hold the newest night against control limits from the first 20 nights. Exit code 12: it alarms; 9: it does not count."""
    from contextlib import closing

    from evalnoise.readers.nights import read_nights, read_nights_file
    from evalnoise.stats.nights import Rule, control_chart
    from evalnoise.store.catalog import connect
    from flows.views.order import print_nights
    from schemas.errors import ExitCode

    if rule not in set(Rule):
        raise misuse(f"--rule {rule}: expected {' or '.join(Rule)}")
    _one_of(study, file)
    if file is not None:
        found = read_nights_file(file, since=since)
    else:
        with closing(connect(store)) as connection:
            found = read_nights(connection, store, study or "", since=since)
    chart = control_chart(found.scores, Rule(rule))
    print_nights(found, chart, as_json=as_json)
    if found.newest_left_out:
        raise typer.Exit(ExitCode.BLOCKED)
    if chart.alarm:
        raise typer.Exit(ExitCode.GATE)


def sequential(
    what: Annotated[
        str | None,
        typer.Argument(
            help="An arm (STUDY/STACK/CONDITION), a file with a column `score`, or - for one score a line.", metavar="[WHAT]"
        ),
    ] = None,
    *,
    passes: Annotated[int | None, typer.Option("--passes", min=0, help="Passes so far, with --runs.", metavar="S")] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs", min=1, max=MOST, help="Independent trials so far, for instance one run each of new tasks.", metavar="N"
        ),
    ] = None,
    covers: Annotated[
        str,
        typer.Option("--covers", help="Of an arm: population (one score a task) or benchmark (one score a run).", metavar="TARGET"),
    ] = "population",
    method: Annotated[
        str | None,
        typer.Option("--method", help="robbins (0 and 1 only) or betting. Default: robbins where it can be.", metavar="M"),
    ] = None,
    shuffle: Annotated[
        int | None, typer.Option("--shuffle", min=0, help="Of an arm: tasks in a random order of this seed.", metavar="SEED")
    ] = None,
    half_width: Annotated[
        float | None, typer.Option("--half-width", help="Stop rule: stop when half the width is at most this.", metavar="H")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Confidence level, for all looks together.")] = 0.95,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Give an interval that stays valid however often one looks, and say whether one may stop."""
    from flows.views.order import print_counts, print_sequence

    _level(level, "--level")
    if half_width is not None and not 0 < half_width < 1:
        raise misuse(f"--half-width {half_width!r}: expected a number between 0 and 1, for instance 0.05")
    if covers not in {"population", "benchmark"}:
        raise misuse(f"--covers {covers}: expected population or benchmark")
    if method not in {None, "robbins", "betting"}:
        raise misuse(f"--method {method}: expected robbins or betting")
    if what is None:
        if passes is None or runs is None or passes > runs:
            raise misuse("expected an arm, a file, -, or --passes S --runs N with S at most N")
        _of_an_arm(covers, shuffle)
        if method == "betting":
            raise misuse("--method betting needs the scores in their order: name a file, or - for one score a line")
        print_counts(passes, runs, level=level, half_width=half_width, as_json=as_json)
        return
    if passes is not None or runs is not None:
        raise misuse("--passes and --runs stand by themselves; with them name no arm and no file")
    found, known = _observations(what, store, covers=covers, shuffle=shuffle)
    try:
        print_sequence(found, known, method=method, level=level, half_width=half_width, as_json=as_json)
    except ValueError as error:
        raise misuse(str(error)) from None


def _observations(what: str, store: Path, *, covers: str, shuffle: int | None) -> tuple[Observations, Known | None]:
    from evalnoise.readers.sequence import read_scores, run_scores, stated_scores, task_scores
    from evalnoise.readers.tablefile import is_table_name

    if what == "-" or is_table_name(what):
        _of_an_arm(covers, shuffle)
        return (stated_scores(_lines()) if what == "-" else read_scores(Path(what))), None
    if covers == "benchmark":
        if shuffle is not None:
            raise misuse("--shuffle is about tasks; the runs of --covers benchmark stay in the order of time")
        known = _known(store, what)
        return run_scores(known.arms[0]), known
    known = _known(store, what)
    return task_scores(known.arms[0], shuffle=shuffle), known


def _of_an_arm(covers: str, shuffle: int | None) -> None:
    """Refuse what only an arm has, of scores that come in their order."""
    given = ["--covers benchmark"] if covers == "benchmark" else []
    given += ["--shuffle"] if shuffle is not None else []
    if given:
        raise misuse(f"{' and '.join(given)}: only of an arm; scores of a file, of lines and of counts are taken as they come")


def _lines() -> list[float]:
    from evalnoise.readers.columns import number_in

    found = []
    for number, line in enumerate(sys.stdin, 1):
        text = line.strip()
        if not text or (number == 1 and text.lower() == "score"):
            continue
        value = number_in(text)
        if value is None or not 0 <= value <= 1:
            raise misuse(f"standard input, line {number}: expected one score between 0 and 1, found {text[:40]!r}")
        found.append(value)
    return found


def _one_of(named: str | None, file: Path | None) -> None:
    if (named is None) == (file is None):
        raise misuse("name what is in the store, or a table with --file FILE" + (", not both" if file is not None else ""))


def _known(store: Path, *texts: str) -> Known:
    from flows.views.fitness import find_known

    return find_known(store, texts)


def _level(value: float, option: str) -> None:
    if not 0 < value < 1:
        raise misuse(f"{option} {value!r}: expected a number between 0 and 1")
