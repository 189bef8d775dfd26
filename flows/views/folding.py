"""Lines that fit the terminal, or 80 columns where the output is none; COLUMNS says otherwise."""

from __future__ import annotations

import re
import shutil
import textwrap

import typer
from rich.console import Console
from rich.table import Table

from flows.cli_errors import printable

_LEAST = 40


def width() -> int:
    """Columns to fill."""
    return max(_LEAST, shutil.get_terminal_size((80, 24)).columns)


def folded(text: str, *, first: str = "", rest: str = "") -> str:
    """A text in lines of that width: `first` before the first line, `rest` before the others; names too long for one are broken."""
    return "\n".join(
        textwrap.wrap(text, width(), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False) or [first.rstrip()]
    )


def say(*lines: str) -> None:
    """Print lines of text that may be hostile; what is folded stands two columns further in."""
    for line in lines:
        shown = printable(line)
        typer.echo(folded(shown, rest=" " * (len(shown) - len(shown.lstrip()) + 2)))


def drawn(table: Table) -> str:
    """A table in lines of that width, without blanks at their ends."""
    console = Console(highlight=False, markup=False, width=width())
    with console.capture() as found:
        console.print(table, end="")
    return re.sub(r" +$", "", found.get().removesuffix("\n"), flags=re.MULTILINE)
