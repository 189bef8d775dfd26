"""The summary in a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalnoise.report.numbers import interval, number, runs
from evalnoise.report.summary import Row, Summary, judge_rows, main_sentences, true_w

_STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
_NARROW = 100
"""Columns assumed where the output is no terminal."""


def print_summary(summary: Summary, store: Path, *, command: str = "evalnoise") -> None:
    """Print the noise floor, one sentence per contrast, the checks, and where the results lie."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=max(_NARROW, console.width))
    console.print(f"\nNoise floor of study {summary.study}, protocol {summary.protocol[:12]}", style="bold")
    console.print(_scores(summary))
    console.print("\nHow sure w is, and runs per arm that resolve a difference of scores", style="bold")
    console.print(_intervals(summary))
    if summary.judges:
        console.print("\nJudges of frozen candidates: do they repeat themselves, do they agree with execution?", style="bold")
        console.print(_judges(summary))
    _list(console, "Contrasts", ((sentence, "") for sentence in main_sentences(summary)))
    _list(console, "Checks", (_check(row) for row in summary.checks))
    console.print(f"\nResults: {store.resolve()}", soft_wrap=True)
    console.print(f"  {shlex.quote(command)} sql 'from noise_floor' --store {shlex.quote(str(store))}", soft_wrap=True)


def _list(console: Console, title: str, lines: Iterable[tuple[str, str]]) -> None:
    lines = list(lines)
    if lines:
        console.print(f"\n{title}", style="bold")
    for text, style in lines:
        console.print(Text(f"  {text}", style=style), soft_wrap=True)


def _check(row: Row) -> tuple[str, str]:
    blocks = ", blocks" if row["blocks"] else ""
    return f"{row['severity']}{blocks}: {row['sentence']}", _STYLES.get(row["severity"], "")


def _table(left: Iterable[str], right: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table


def _name(summary: Summary, row: Row) -> str:
    """The condition, with its stack where there are several."""
    several = len({other["stack"] for other in summary.noise_floor}) > 1
    return f"{row['stack']} {row['condition']}" if several else str(row["condition"])


def _scores(summary: Summary) -> Table:
    known = any(true_w(summary, row) is not None for row in summary.noise_floor)
    truth = ["true w"] if known else []
    table = _table(["condition"], ["tasks", "replicates", "unmeasured", "score", "run SD", "w", *truth, "variable tasks"])
    for row in summary.noise_floor:
        cells = [_name(summary, row), *(str(row[name]) for name in ("n_tasks", "n_replicates", "n_unmeasured"))]
        cells += [number(row["score"]), number(row["score_run_sd"]), number(row["w"], 5)]
        if known:
            cells.append(number(true_w(summary, row), 5))
        table.add_row(*map(Text, [*cells, number(row["variable_tasks"], 0)]))
    return table


def _intervals(summary: Summary) -> Table:
    delta = next((row["delta"] for row in summary.noise_floor if row["delta"] is not None), None)
    table = _table(["condition"], ["w", "new tasks (population)", "new runs (benchmark)", f"runs for {number(delta, 3)}"])
    for row in summary.noise_floor:
        cells = [_name(summary, row), number(row["w"], 5), interval(row["w_lo"], row["w_hi"], 5)]
        cells += [interval(row["w_bench_lo"], row["w_bench_hi"], 5), runs(row["runs"], row["runs_lo"], row["runs_hi"])]
        table.add_row(*map(Text, cells))
    return table


def _judges(summary: Summary) -> Table:
    rows = judge_rows(summary)
    truth = ["true w"] if any("w_true" in row for row in rows) else []
    table = _table(["condition"], ["verdict w", *truth, "variable", "disagreement", "false accepts", "false rejects", "unparsed"])
    for row in rows:
        cells = [_name(summary, row), number(row["w"]["value"], 5)]
        if truth:
            cells.append(number(row["w_true"]["value"], 5) if "w_true" in row else "")
        cells.append(number(row["variable_tasks"]["value"], 0))
        cells.append(number(row["disagreement"]["value"], 3))
        cells += [number(row[name]["value"], 0) for name in ("false_accepts", "false_rejects")]
        table.add_row(*map(Text, [*cells, number(row["unparsed_share"]["value"], 3)]))
    return table
