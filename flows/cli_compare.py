"""`evalnoise compare`: every pair of models, arms of a store or a table of results, with its noise in parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli_options import DEFAULT_STORE, MOST, StoreOption, check_output, misuse

if TYPE_CHECKING:  # imported by the command, so that `--help` answers at once
    from evalnoise.readers.arms import Arm
    from evalnoise.readers.panel import Panel
    from flows.views.fitness import Known

_SORTS = "z, p, difference, se, prediction or name"


def compare(
    arms: Annotated[
        list[str] | None,
        typer.Argument(
            help="STUDY/STACK/CONDITION; STUDY or STUDY/CONDITION stands for all of its stacks. With --file: its models; "
            "none named: all.",
            metavar="ARM…",
        ),
    ] = None,
    *,
    store: StoreOption = DEFAULT_STORE,
    condition: Annotated[
        str | None,
        typer.Option("--condition", help="Condition of a study that is named alone. Default: the live one.", metavar="C"),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", help="A long table instead of a store: .csv, .tsv, .jsonl or .parquet, a row a sample.", metavar="FILE"
        ),
    ] = None,
    model: Annotated[str, typer.Option("--model", help="Column of --file that names the model.", metavar="COLUMN")] = "model",
    task: Annotated[str, typer.Option("--task", help="Column of --file that names the task.", metavar="COLUMN")] = "task",
    sample: Annotated[
        str, typer.Option("--sample", help="Column of --file that numbers samples; it may be missing.", metavar="COLUMN")
    ] = "sample",
    score: Annotated[
        str, typer.Option("--score", help="Column of --file with scores from 0 to 1, or pass and fail.", metavar="COLUMN")
    ] = "score",
    covers: Annotated[
        str,
        typer.Option(
            "--covers", help="What z and p cover: population (new tasks) or benchmark (new runs of these).", metavar="WHAT"
        ),
    ] = "population",
    sort: Annotated[str, typer.Option("--sort", help=f"Order of the pairs: {_SORTS}.", metavar="BY")] = "z",
    everything: Annotated[bool, typer.Option("--all", help="Every pair, not the first twenty.")] = False,
    plan_tasks: Annotated[
        int | None,
        typer.Option(
            "--plan-tasks", min=1, max=MOST, help="Predict the SE on so many tasks. Default: as many as here.", metavar="N"
        ),
    ] = None,
    plan_samples: Annotated[
        int | None,
        typer.Option("--plan-samples", min=1, max=MOST, help="Predict the SE with so many samples a task.", metavar="K"),
    ] = None,
    average: Annotated[
        list[str] | None,
        typer.Option(
            "--average", help="Two of these: patterns of models, whose means are compared: --average 'a-*'.", metavar="PATTERN"
        ),
    ] = None,
    null: Annotated[
        bool, typer.Option("--null", help="The models are training seeds of one: are there as many small p as chance gives?")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with every pair.")] = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write every pair into a CSV file.", metavar="FILE")] = None,
    spreadsheet_safe: Annotated[
        bool, typer.Option("--spreadsheet-safe", help="In --csv, put ' before names that a spreadsheet takes for formulas.")
    ] = False,
    chart: Annotated[
        Path | None, typer.Option("--chart", help="Write the charts: a name that ends in .svg, .png or .html.", metavar="FILE")
    ] = None,
) -> None:
    """Compare models pair by pair: difference, its noise in parts, z, p, Holm's p, and what averaging would bring."""
    from evalnoise.report.charts import write_chart
    from flows.cli_errors import printable
    from flows.views.compare import print_compared
    from flows.views.compare_columns import write_csv
    from flows.views.compare_data import Asked, Sort, compared

    if sort not in set(Sort):
        raise misuse(f"--sort {sort}: expected {_SORTS}")
    if covers not in {"population", "benchmark"}:
        raise misuse(f"--covers {covers}: expected population or benchmark")
    if average and len(average) != 2:
        raise misuse(f"--average: expected two patterns, found {len(average)}")
    _check_outputs(csv, chart, store, file, spreadsheet_safe=spreadsheet_safe)
    panel, told = (
        (_file_panel(file, arms, model=model, task=task, sample=sample, score=score), None)
        if file is not None
        else _store_panel(store, arms or [], condition)
    )
    if len(panel.models) < 2:
        raise misuse(f"expected two models or more, found one: {panel.models[0]}")
    asked = Asked(
        covers=covers, sort=Sort(sort), plan_tasks=plan_tasks, plan_samples=plan_samples, average=tuple(average or ()), null=null
    )
    found = compared(panel, asked)
    # What was computed is shown also where a file cannot be written, and written also where a pipe has closed.
    try:
        print_compared(found, told, everything=everything, as_json=as_json)
    finally:
        if csv is not None:
            write_csv(csv, found, spreadsheet_safe=spreadsheet_safe)
            typer.echo(f"Wrote {printable(str(csv))}", err=True)
        if chart is not None:
            source = file.name if file is not None else panel.source  # a page is passed on: it names no folders
            write_chart(chart, panel, found.pairs, found.names, source=printable(source))
            typer.echo(f"Wrote {printable(str(chart))}", err=True)


def _check_outputs(csv: Path | None, chart: Path | None, store: Path, file: Path | None, *, spreadsheet_safe: bool) -> None:
    if spreadsheet_safe and csv is None:
        raise misuse("--spreadsheet-safe is about --csv FILE")
    if csv is not None:
        check_output("--csv", csv, store, apart={"--file": file})
    if chart is not None:
        from evalnoise.report.charts import chart_suffix

        check_output("--chart", chart, store, apart={"--file": file, "--csv": csv})
        chart_suffix(chart)


def _file_panel(file: Path, arms: list[str] | None, *, model: str, task: str, sample: str, score: str) -> Panel:
    from evalnoise.readers.panel import panel_of_file

    _refuse_twice(arms or [])
    return panel_of_file(file, names=arms or [], model=model, task=task, sample=sample, score=score)


def _store_panel(store: Path, texts: list[str], condition: str | None) -> tuple[Panel, Known]:
    from contextlib import closing

    import evalnoise
    from evalnoise.readers.arms import find_arms
    from evalnoise.readers.panel import panel_of_arms
    from flows.views.fitness import known

    if not texts:
        raise misuse("expected arms as STUDY/STACK/CONDITION, a study with several stacks, or --file")
    with closing(evalnoise.connect(store)) as connection:
        found = [arm for text in texts for arm in find_arms(connection, store, text, condition=condition)]
        told = known(connection, found)
    _refuse_twice([arm.label for arm in found])
    if len(found) == 1:
        raise misuse(_one_arm(found[0]))
    return panel_of_arms(found), told


def _refuse_twice(names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise misuse(f"{twice} is named twice: a model against itself needs other samples, not the same ones")


def _one_arm(arm: Arm) -> str:
    """What to type in the place of one arm: it and another condition of its stack, or another study."""
    here = arm.cells
    others = [one["name"] for one in arm.frozen.study["conditions"] if one["name"] != here.condition]
    mine = f"{here.study}/{here.stack}/{here.condition}"
    other = f"{here.study}/{here.stack}/{others[0]}" if others else "STUDY/STACK/CONDITION"
    return (
        f"expected two arms or more, found one: {mine}. Name two of one benchmark, for instance two conditions: "
        f"`evalnoise compare {mine} {other}`"
    )
