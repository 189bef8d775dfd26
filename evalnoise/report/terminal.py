"""The summary in a terminal."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalnoise.report.numbers import interval, number, runs
from evalnoise.report.summary import Summary, main_sentences, true_w

_STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}


def print_summary(summary: Summary, store: Path) -> None:
    """Print the noise floor, one sentence per contrast, the checks, and where the results lie."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"\nNoise floor of study {summary.study}, protocol {summary.protocol[:12]}", style="bold", markup=False)
    console.print(_noise_floor(summary))
    console.print(
        "w: mean within-task variance. population: new tasks too. benchmark: these tasks, new runs.", style="dim", markup=False
    )
    if summary.judges:
        console.print("\nJudges of frozen candidates", style="bold")
        console.print(_judges(summary))
    console.print("\nContrasts", style="bold")
    for sentence in main_sentences(summary):
        console.print(Text(f"  {sentence}"))
    if summary.checks:
        console.print("\nChecks", style="bold")
    for row in summary.checks:
        mark = " (blocks)" if row["blocks"] else ""
        console.print(Text(f"  {row['severity']}{mark}: {row['sentence']}", style=_STYLES.get(row["severity"], "")))
    console.print(f"\nResults: {store.resolve()}", markup=False)
    console.print('  evalnoise sql "from noise_floor" --store ' + _quoted(store), markup=False)


def _quoted(path: Path) -> str:
    text = str(path)
    return text if text.replace("/", "").replace("-", "").replace("_", "").replace(".", "").isalnum() else repr(text)


def _noise_floor(summary: Summary) -> Table:
    truths = any(true_w(summary, row["stack"], row["condition"]) is not None for row in summary.noise_floor)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("stack", "condition"):
        table.add_column(name)
    for name in ("N", "R", "unmeasured", "score", "run SD", "w", *(["true w"] if truths else []), "population", "benchmark"):
        table.add_column(name, justify="right")
    for name in ("variable", "runs"):
        table.add_column(name, justify="right")
    for row in summary.noise_floor:
        cells = [str(row["stack"]), str(row["condition"]), *(str(row[n]) for n in ("n_tasks", "n_replicates", "n_unmeasured"))]
        cells += [number(row["score"]), number(row["score_run_sd"]), number(row["w"], 5)]
        if truths:
            truth = true_w(summary, row["stack"], row["condition"])
            cells.append("" if truth is None else number(truth, 5))
        cells += [interval(row["w_lo"], row["w_hi"]), interval(row["w_bench_lo"], row["w_bench_hi"])]
        cells += [str(row["variable_tasks"]), runs(row["runs"], row["runs_lo"], row["runs_hi"])]
        table.add_row(*map(Text, cells))
    return table


def _judges(summary: Summary) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("stack", "condition", "estimate"):
        table.add_column(name)
    for name in ("value", "interval"):
        table.add_column(name, justify="right")
    table.add_column("covers")
    for row in summary.judges:
        texts = (row["stack"], row["condition"], row["estimate"].removeprefix("verdict_"))
        table.add_row(*map(Text, texts), number(row["value"]), interval(row["lo"], row["hi"]), row["covers"])
    return table
