"""The command `components`: how much of a score's spread comes from tasks, from generations and from grades."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli_options import DEFAULT_STORE, MOST_RESAMPLES, StoreOption, check_finite, misuse

if TYPE_CHECKING:  # imported by the command, so that `--help` answers at once
    from evalnoise.readers.grades import Grades
    from evalnoise.report.components import ComponentReport
    from evalnoise.stats.nested.reml import Reml

_TARGET = "A file of grades (.csv, .tsv, .jsonl or .parquet), or STUDY/STACK/CONDITION, which may be a judge's condition."


def components(
    target: Annotated[str, typer.Argument(help=_TARGET, metavar="FILE|ARM")],
    *,
    store: StoreOption = DEFAULT_STORE,
    task: Annotated[str, typer.Option("--task", help="The file's column for the task.", metavar="COLUMN")] = "task",
    generation: Annotated[
        str, typer.Option("--generation", help="Its column for the generation; - if each task has one.", metavar="COLUMN")
    ] = "generation",
    grade: Annotated[
        str, typer.Option("--grade", help="Its column for the grade; - if each generation has one.", metavar="COLUMN")
    ] = "grade_repeat",
    score: Annotated[str, typer.Option("--score", help="Its column for the score.", metavar="COLUMN")] = "score",
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster", help="Its column for clusters of tasks, which it may do without; - to leave them out.", metavar="COLUMN"
        ),
    ] = "cluster",
    scale: Annotated[tuple[float, float], typer.Option("--scale", help="Smallest and largest score.", metavar="LOW HIGH")] = (
        0.0,
        1.0,
    ),
    price_generation: Annotated[float, typer.Option("--price-generation", min=0, help="What a generation costs.")] = 1.0,
    price_grade: Annotated[float, typer.Option("--price-grade", min=0, help="What a grade costs.")] = 0.1,
    price_task: Annotated[float, typer.Option("--price-task", min=0, help="What a new task costs, once.")] = 0.0,
    fixed_tasks: Annotated[bool, typer.Option("--fixed-tasks", help="There are no more tasks to be had.")] = False,
    tol: Annotated[float, typer.Option("--tol", help="How small the grader's term must be beside the tasks' variance.")] = 0.05,
    dependability: Annotated[float, typer.Option("--dependability", help="Dependability to reach.")] = 0.9,
    level: Annotated[float, typer.Option("--level", help="Confidence level.")] = 0.95,
    resamples: Annotated[
        int, typer.Option("--resamples", min=100, max=MOST_RESAMPLES, help="Resamples of the task bootstrap.")
    ] = 20_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Its seed.")] = 0,
    reml: Annotated[bool, typer.Option("--reml", help="Cross-check by restricted maximum likelihood; can take minutes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say how much of a score's spread comes from tasks, generations and grades, and where the next sample should go."""
    from evalnoise.readers.grades import Columns
    from evalnoise.report.components import Wishes, component_report
    from evalnoise.stats.planning.design import Prices

    check_finite(price_generation=price_generation, price_grade=price_grade, price_task=price_task, tol=tol)
    columns = Columns(task=task, generation=generation, grade=grade, score=score, cluster=cluster)
    grades = _grades(target, store, columns, scale)
    prices = Prices(generation=price_generation, grade=price_grade, task=price_task)
    try:
        wishes = Wishes(
            prices=prices, seed=seed, resamples=resamples, level=level, tol=tol, target=dependability, fixed_tasks=fixed_tasks
        )
        report = component_report(grades, wishes)
    except ValueError as error:
        raise misuse(str(error)) from None
    _print(report, _reml(grades, report) if reml else None, as_json=as_json)


def _grades(target: str, store: Path, columns: Any, scale: tuple[float, float]) -> Grades:
    """The grades of a file, where the target is one or is named like one; else of a store."""
    from evalnoise.readers.grades import find_grades, read_grades
    from evalnoise.readers.tablefile import is_table_name

    path = Path(target)
    if path.is_file() or is_table_name(target):
        if not (scale[0] < scale[1] and isfinite(scale[0]) and isfinite(scale[1])):
            raise misuse(f"--scale {scale[0]:g} {scale[1]:g}: expected two finite numbers, the smallest score before the largest")
        return read_grades(path, columns, scale=scale)
    from contextlib import closing

    from evalnoise.store.catalog import connect
    from flows.views.fitness import warn

    with closing(connect(store)) as connection:
        found = find_grades(connection, store, target)
    warn(found.against)
    return found


def _reml(grades: Grades, report: ComponentReport) -> Reml:
    from evalnoise.stats.nested.reml import reml

    return reml(grades.task, grades.output, grades.scores, found=report.found)


def _print(report: ComponentReport, fit: Reml | None, *, as_json: bool) -> None:
    from evalnoise.report.components import facts, lines
    from flows.cli_errors import printable
    from flows.views.folding import folded

    if as_json:
        import json

        checked = {} if fit is None else {"reml": asdict(fit) | {"agrees": fit.agrees}}
        typer.echo(json.dumps(facts(report) | checked, allow_nan=False))
        return
    for line in (*lines(report), *([] if fit is None else [_said(fit)])):
        typer.echo(folded(printable(line), rest="  "))


def _said(fit: Reml) -> str:
    if fit.components is None:
        return f"REML: failed, and so no number: {fit.failed}."
    shown = ", ".join(f"{of} {value:.5f}" for of, value in fit.components.items())
    if fit.largest_difference is None:
        return f"REML: {shown}."
    verdict = {True: "it agrees", False: "IT DOES NOT AGREE", None: "in an unbalanced design both may be right"}[fit.agrees]
    return f"REML: {shown}; {verdict} (at most {100 * fit.largest_difference:.3g} % of the total apart)."
