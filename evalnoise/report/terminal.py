"""The summary in a terminal."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalnoise.report.numbers import (
    ABOVE,
    STAR,
    above,
    for_new_tasks,
    interval,
    marked_w,
    missing_reasons,
    number,
    planning_advice,
    runs,
)
from evalnoise.report.summary import (
    Row,
    Summary,
    answer_sentences,
    judge_rows,
    left_out_sentences,
    main_sentences,
    true_w,
    verification_sentences,
)

_STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
_NARROW = 100
"""Columns assumed where the output is no terminal."""
_ANY_WIDTH = 10_000
_BRACKETS = re.compile(r"\[[^\]]*\]")
_SPACE = "\N{NO-BREAK SPACE}"


def print_summary(summary: Summary, store: Path, *, command: str = "evalnoise") -> None:
    """Print the noise floor, one sentence per contrast, the checks, and where the results lie."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=max(_NARROW, console.width))
    console.print(f"\nNoise floor of study {summary.study}, protocol {summary.protocol[:12]}", style="bold")
    _print_table(console, _scores(summary))
    _list(console, "", ((sentence, "yellow") for sentence in left_out_sentences(summary)))
    _list(console, "", ((sentence, "yellow") for sentence in answer_sentences(summary, lambda row: _name(summary, row))))
    console.print("\nHow sure w is, and runs per arm that resolve a difference of scores", style="bold")
    _print_table(console, _intervals(summary))
    if any(for_new_tasks(row).endswith("*") for row in summary.noise_floor):
        _list(console, "", [(STAR, "dim")])
    if any(above(row["w"]) for row in summary.noise_floor):
        _list(console, "", [(ABOVE, "yellow")])
    _list(console, "", ((advice, "") for advice in planning_advice(summary.noise_floor, lambda row: _name(summary, row))))
    _list(console, "", ((reason, "") for reason in missing_reasons(summary.noise_floor, lambda row: _name(summary, row))))
    if summary.judges:
        console.print("\nJudges of frozen candidates: do they repeat themselves, do they agree with execution?", style="bold")
        _print_table(console, _judges(summary))
    verified = verification_sentences(summary, lambda row: _name(summary, row))
    _list(console, "Verification", ((sentence, "") for sentence in verified))
    _list(console, "Contrasts", ((sentence, "") for sentence in main_sentences(summary)))
    _list(console, "Checks", (_check(row) for row in summary.checks))
    console.print(f"\nResults: {store.resolve()}", soft_wrap=True)
    rows = "'from noise_floor'" if summary.newest else f"\"from noise_floor_all where protocol like '{summary.protocol[:12]}%'\""
    console.print(f"  {shlex.quote(command)} sql {rows} --store {shlex.quote(str(store))}", soft_wrap=True)


def _list(console: Console, title: str, lines: Iterable[tuple[str, str]]) -> None:
    lines = list(lines)
    if lines and title:
        console.print(f"\n{title}", style="bold")
    for text, style in lines:
        shown = _wrapped(text, console.width) if console.is_terminal else f"  {text}"
        console.print(Text(shown, style=style), soft_wrap=True)


def _wrapped(text: str, width: int) -> str:
    """An indented sentence, broken at words and never inside an interval."""
    whole = _BRACKETS.sub(lambda found: found[0].replace(" ", _SPACE), text)
    lines = textwrap.fill(whole, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return lines.replace(_SPACE, " ")


def _print_table(console: Console, table: Table) -> None:
    """With two spaces between columns, or with one where that is too wide."""
    wanted = console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum
    table.collapse_padding = wanted > console.width
    console.print(table)


def _check(row: Row) -> tuple[str, str]:
    blocks = ", blocks" if row["blocks"] else ""
    return f"{row['severity']}{blocks}: {row['sentence']}", _STYLES.get(row["severity"], "")


def _table(*numbers: str) -> Table:
    """A table of conditions and numbers: names fold where there is no room, and never lose a letter; numbers stay in one piece."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("condition", overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _name(summary: Summary, row: Row) -> str:
    """The condition, with its stack where there are several."""
    several = len({other["stack"] for other in summary.noise_floor}) > 1
    return f"{row['stack']} {row['condition']}" if several else str(row["condition"])


def _scores(summary: Summary) -> Table:
    known = any(true_w(summary, row) is not None for row in summary.noise_floor)
    truth = ["true w"] if known else []
    table = _table("tasks", "repl.", "unmea-\nsured", "score", "run SD", "w", *truth, "variable\ntasks")
    for row in summary.noise_floor:
        cells = [_name(summary, row), *(str(row[name]) for name in ("n_tasks", "n_replicates", "n_unmeasured"))]
        cells += [number(row["score"]), number(row["score_run_sd"]), marked_w(row["w"])]
        if known:
            cells.append(number(true_w(summary, row), 5))
        table.add_row(*map(Text, [*cells, number(row["variable_tasks"], 0)]))
    return table


def _intervals(summary: Summary) -> Table:
    delta = next((row["delta"] for row in summary.noise_floor if row["delta"] is not None), None)
    for_delta = "runs" if delta is None else f"runs for\n{number(delta, 3)}"
    table = _table("w", "new tasks\n(population)", "new runs\n(benchmark)", for_delta)
    for row in summary.noise_floor:
        cells = [_name(summary, row), marked_w(row["w"]), for_new_tasks(row)]
        cells += [interval(row["w_bench_lo"], row["w_bench_hi"], 5), runs(row)]
        table.add_row(*map(Text, cells))
    return table


def _judges(summary: Summary) -> Table:
    rows = judge_rows(summary)
    truth = ["true w"] if any("w_true" in row for row in rows) else []
    headers = ("variable\ntasks", "disagree-\nment", "false\naccepts", "false\nrejects", "unparsed")
    table = _table("verdict w", *truth, *headers)
    for row in rows:
        cells = [_name(summary, row), number(row["w"]["value"], 5)]
        if truth:
            cells.append(number(row["w_true"]["value"], 5) if "w_true" in row else "")
        cells.append(number(row["variable_tasks"]["value"], 0))
        cells.append(number(row["disagreement"]["value"], 3))
        cells += [number(row[name]["value"], 0) for name in ("false_accepts", "false_rejects")]
        table.add_row(*map(Text, [*cells, number(row["unparsed_share"]["value"], 3)]))
    return table
