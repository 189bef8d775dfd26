"""What commands that compute with arms say on standard error of arms whose numbers must not be used for a decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import typer

from evalnoise.readers.arms import Arm
from evalnoise.readers.fitness import unfit_for_decisions
from flows.cli_errors import printable


def warn_of_arms(connection: Any, arms: Sequence[Arm]) -> None:
    """A line for each check that blocks, and for a protocol that is not complete."""
    for arm in arms:
        warn(unfit_for_decisions(connection, arm, arm.label))


def warn(sentences: Iterable[str]) -> None:
    """Each sentence as a warning; one that was said of two arms alike once."""
    for sentence in dict.fromkeys(sentences):
        typer.secho(f"warning: {printable(sentence)}", fg=typer.colors.YELLOW, err=True)
