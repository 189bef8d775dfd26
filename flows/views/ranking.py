"""What `evalnoise ranking` prints: arms by score, and how sure each pair of neighbours is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import typer

from evalnoise.readers.arms import Arm
from evalnoise.readers.pairing import shared_tasks
from evalnoise.report.numbers import UNDEFINED, counted, number
from evalnoise.stats.estimate import Method
from evalnoise.stats.planning.ranking import Order, Ranking, ranking
from flows.cli_errors import printable
from flows.views.fitness import arm_facts, find_known
from flows.views.folding import say, width
from flows.views.sql import aligned


def print_ranking(store: Path, texts: Sequence[str], *, level: float, as_json: bool) -> None:
    """Arms by score over the tasks that all have, and their neighbours' orders for both kinds of noise."""
    known = find_known(store, texts)
    arms = known.arms
    cells = [arm.cells for arm in arms]
    shared = shared_tasks(cells)
    known = replace(known, unmatched=shared.unmatched)
    found = ranking(*shared.counts(cells), level=level, once_drawn=[arm.one_draw for arm in arms])
    if as_json:
        named = zip(arms, shared.unmatched, strict=True)
        names = [{"label": arm.label, **arm_facts(arm), "unmatched": lost} for arm, lost in named]
        facts = {"arms": names, "method": f"normal, {Method.PLUG_IN}", **known.facts(), **asdict(found)}
        typer.echo(json.dumps(facts, allow_nan=False))
        return
    for line in known.lines():
        say(line)
    for line in _lines(arms, found, level):
        say(line)


def _lines(arms: Sequence[Arm], found: Ranking, level: float) -> Iterator[str]:
    names = [printable(arm.label) for arm in arms]
    if not found.n_tasks:
        yield "There is no ranking: no task was measured twice in every arm."
        return
    yield f"Scores over the {counted(found.n_tasks, 'task')} that every arm has measured twice:"
    scores = zip(found.rows, found.scores, strict=True)
    rows = [[str(place), names[row], number(score)] for place, (row, score) in enumerate(scores, start=1)]
    yield from aligned(["", "arm", "score"], rows, [True, False, True], room=width())
    yield ""
    settle = f"runs for {100 * level:.4g} %"
    header = ["places", "covers", "difference", "se", "P(wrong order)", "P(reruns disagree)", settle]
    table: list[list[str]] = []
    notes: dict[str, None] = {}
    for place, pair in enumerate(found.pairs, start=1):
        for covers, one in (("benchmark", pair.benchmark), ("population", pair.population)):
            table.append([f"{place} and {place + 1}", covers, *_cells(one)])
            notes |= dict.fromkeys(f"{place} and {place + 1}, {covers}: {text}" for text in _reasons(one))
    yield from aligned(header, table, [False, False, *[True] * 5], room=width())
    yield from (f"  {text}" for text in notes)
    yield "benchmark: new runs of these tasks. population: new tasks too. Runs are per arm."
    yield "The observed difference stands in for the true one, which is often smaller."
    if len(arms) > 2:
        yield "The first of many is flattered by having been chosen: its lead is smaller in another run."


def _cells(one: Order) -> list[str]:
    runs = UNDEFINED if one.runs is None else str(one.runs)
    return [number(one.difference), number(one.se), _chance(one.wrong), _chance(one.disagree), runs]


def _chance(value: float | None) -> str:
    return "<0.0001" if value is not None and value < 0.0001 else number(value)


def _reasons(one: Order) -> list[str]:
    return list(dict.fromkeys(text for text in (one.undefined, one.runs_undefined, one.note) if text))
