"""Arms that commands compute with, and what must be known of them: one place for what is said in text and in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from evalnoise.readers.arms import Arm, find_arm
from evalnoise.readers.fitness import unfit_for_decisions
from evalnoise.report.numbers import counted
from evalnoise.store.catalog import connect
from flows.cli_errors import printable


@dataclass(frozen=True, slots=True)
class Known:
    """Arms, and what must be known of them before their numbers are used."""

    arms: Sequence[Arm]
    unfit: tuple[str, ...]
    """Why their numbers must not be used for a decision; standard error has said it."""
    unmatched: Sequence[int] = ()
    """Of each arm: how many of its tasks another arm lacks; nothing where that is no matter."""

    def notes(self, *, of_scores: bool = False) -> list[str]:
        """What their numbers do not say, though nothing is wrong with them: for the lines of a text.

        Args:
            of_scores: Whether scores are computed with as they are, or passes are counted.
        """
        lost = self.unmatched or [0] * len(self.arms)
        found = [note for arm, left_out in zip(self.arms, lost, strict=True) for note in _notes(arm, left_out, of_scores=of_scores)]
        return list(dict.fromkeys(found))

    def lines(self, *, of_scores: bool = False) -> list[str]:
        """The notes as lines of a text."""
        return [f"! {note}." for note in self.notes(of_scores=of_scores)]

    def facts(self, *, of_scores: bool = False) -> dict[str, list[str]]:
        """Everything as the field `warnings` of a JSON object."""
        return {"warnings": list(dict.fromkeys([*self.unfit, *self.notes(of_scores=of_scores)]))}


def _notes(arm: Arm, lost: int, *, of_scores: bool) -> Iterator[str]:
    if arm.one_draw:
        yield f"{arm.label}: its replicates repeat one recorded run, so they say nothing about fresh runs"
    if not arm.cells.binary and not of_scores:
        yield f"{arm.label}: its scores are not all 0 or 1; what is counted here is whether a cell passed"
    if lost:
        yield f"{arm.label}: {counted(lost, 'task')} of it that the other arm lacks left out"


def find_known(store: Path, texts: Sequence[str]) -> Known:
    """The arms that texts name, from one connection; what speaks against their use is said on standard error."""
    with closing(connect(store)) as connection:
        return known(connection, [find_arm(connection, store, text) for text in texts])


def known(connection: Any, arms: Sequence[Arm]) -> Known:
    """The same of arms that were found: a warning for each check that blocks, and for a protocol that is not complete."""
    unfit = tuple(dict.fromkeys(sentence for arm in arms for sentence in unfit_for_decisions(connection, arm, arm.label)))
    warn(unfit)
    return Known(arms, unfit)


def arm_facts(arm: Arm) -> dict[str, Any]:
    """How an arm was measured, for JSON."""
    return {"protocol": arm.frozen.digest(), "kind": arm.kind, "complete": arm.complete}


def warn(sentences: Iterable[str]) -> None:
    """Each sentence as a warning; one that was said of two arms alike once."""
    for sentence in dict.fromkeys(sentences):
        typer.secho(f"warning: {printable(sentence)}", fg=typer.colors.YELLOW, err=True)
