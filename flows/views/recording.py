"""What `evalnoise recording` and `evalnoise coupling` print. Names and texts come from anywhere, so all of it is made printable."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from evalnoise.recordings.compare import Changed, Coupling, Difference, OneSided
from evalnoise.recordings.row import Recorded
from evalnoise.report.numbers import counted
from evalnoise.store.recordings import RecordingFolder
from evalnoise.store.store import SHORT
from flows.cli_errors import printable
from flows.views.sql import aligned
from schemas.errors import EvalnoiseError
from schemas.recording import RecordingManifest
from tasks.selection import Side

SHOWN = 20
"""Rows of a list that are printed, unless `--all`."""
_TEXT = 60


def say(text: str) -> None:
    """Print a line of text that may be hostile."""
    typer.echo(printable(text))


def print_sealed(folder: RecordingFolder, manifest: RecordingManifest) -> None:
    """Say what was sealed, where, and how a study names it."""
    say(f"{folder.path}")
    say(_contents(manifest))
    if manifest.not_asked:
        say(f"without {counted(len(manifest.not_asked), 'task')} that the source could not measure: {_some(manifest.not_asked)}")
    missing = manifest.source.get("missing") or []
    if missing:
        say(f"without {counted(len(missing), 'id')} that got no answer: {', '.join(missing)}")
    say(f"digest {manifest.digest}")


def print_list(folders: Sequence[RecordingFolder], *, as_json: bool) -> None:
    """One line for each recording, damaged ones too."""
    rows, facts = [], []
    for folder in folders:
        try:
            manifest = folder.manifest
        except EvalnoiseError as error:
            rows.append([printable(folder.path.name), "", "", "", "", "", f"unreadable: {printable(error.found)}"])
            facts.append({"name": folder.path.name, "unreadable": str(error)})
            continue
        requests = "unknown" if manifest.requests is None else str(manifest.requests)
        counts = [str(manifest.tasks), str(manifest.replicates), requests, str(manifest.occurrences)]
        rows.append([printable(folder.path.name), *counts, manifest.digest[:SHORT], printable(source_text(manifest))])
        facts.append({"name": folder.path.name, **_facts(manifest)})
    if as_json:
        typer.echo(json.dumps(facts, allow_nan=False))
        return
    header = ["recording", "tasks", "repl.", "requests", "responses", "digest", "source"]
    for line in _fitting(header, rows) if rows else ["no recordings"]:
        typer.echo(line)


def _fitting(header: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Aligned lines; in a terminal that is too narrow for them the last column stands under each row."""
    right = [name in header[1:5] for name in header]
    lines = list(aligned(header, rows, right))
    if not sys.stdout.isatty() or max(map(len, lines)) <= shutil.get_terminal_size().columns:
        yield from lines
        return
    above = aligned(header[:-1], [row[:-1] for row in rows], right[:-1])
    yield from (next(above), next(above))
    for line, row in zip(above, rows, strict=True):
        yield line
        yield f"  {row[-1]}"


def print_recording(folder: RecordingFolder, rows: Sequence[Recorded], *, task: str | None, as_json: bool) -> None:
    """The facts of a recording; with a task, what it was asked and answered."""
    manifest = folder.manifest
    told = [row for row in rows if task is None or row.task_id == task]
    if as_json:
        facts = _facts(manifest) | {"classes": Counter(row.response.response_class.value for row in told)}
        answers = [_answer(row) for row in told] if task is not None else []
        typer.echo(json.dumps(facts | ({"answers": answers} if task is not None else {}), allow_nan=False))
        return
    if task is not None:
        for row in told:
            kind = row.response.response_class.value
            say(f"replicate {row.replicate}, attempt {row.attempt}: {kind}, occurrence {row.occurrence}")
            say(f"  request {row.request or 'unknown'}")
            say("\n".join(f"  {line}" for line in row.response.text.splitlines()))
        return
    say(f"{folder.path}")
    say(f"source      {source_text(manifest)}")
    say(f"holds       {_contents(manifest)}")
    classes = Counter(row.response.response_class.value for row in rows)
    say(f"classes     {', '.join(f'{name} {n}' for name, n in sorted(classes.items())) or 'none'}")
    models = Counter(row.response.served_model or "not said" for row in rows)
    say(f"models      {', '.join(f'{name} {n}' for name, n in sorted(models.items())) or 'none'}")
    say(f"order       {manifest.order}")
    versions = f"request normaliser {manifest.request_normaliser}, " if manifest.keyed else ""
    say(f"made by     format {manifest.format}, {versions}response mapping {manifest.response_mapping}")
    say(f"digest      {manifest.digest}")


def print_difference(a: Side, b: Side, found: Difference, *, everything: bool, as_json: bool) -> None:
    """What differs between two sides."""
    if as_json:
        facts = {"same": found.same, "requests": [_side(one) for one in found.requests], "texts": [_change(c) for c in found.texts]}
        typer.echo(json.dumps({"a": a.label, "b": b.label, **facts}, allow_nan=False))
        return
    say(f"a: {a.label}, {counted(len(a.rows), 'response')}\nb: {b.label}, {counted(len(b.rows), 'response')}")
    if not found:
        say(f"No difference in {counted(found.same, 'response')}.")
        return
    texts = counted(len(found.texts), "answer differs", "answers differ")
    say(f"{texts}, {found.same} equal; {counted(len(found.requests), 'request')} on one side more than on the other.")
    _lines([_changed(change) for change in found.texts], everything=everything)
    _lines([_one_sided(one) for one in found.requests], everything=everything)


def print_coupling(a: Side, b: Side, found: Coupling, *, everything: bool, as_json: bool) -> None:
    """Whether a shared replay is valid, and which requests break it."""
    if as_json:
        facts: dict[str, Any] = {
            "valid": found.valid,
            "requests": found.requests,
            "tasks": found.tasks,
            "replicates": found.replicates,
        }
        typer.echo(
            json.dumps({"a": a.label, "b": b.label, **facts, "broken": [_side(one) for one in found.broken]}, allow_nan=False)
        )
        return
    say(f"a: {a.label}\nb: {b.label}")
    if found.valid:
        say(
            f"A shared replay is valid: every one of {counted(found.tasks, 'task')} has the same requests on both sides "
            f"({found.requests} in all). It compares them under the recorded responses, not over fresh ones."
        )
        return
    say(f"A shared replay is not valid: {counted(len(found.broken), 'request')} of a task on one side more than on the other.")
    if found.replicates[0] != found.replicates[1]:
        say(f"a has {counted(found.replicates[0], 'replicate')}, b has {found.replicates[1]}: name one of each, as in …/r0.")
    _lines([_one_sided(one) for one in found.broken], everything=everything)


def source_text(manifest: RecordingManifest) -> str:
    """Where a recording comes from, in a phrase."""
    source = manifest.source
    if source.get("kind") == "condition":
        numbers = ", ".join(map(str, source.get("replicates", ())))
        where = f"{source.get('study')} ({str(source.get('protocol'))[:SHORT]}), {source.get('stack')}, {source.get('condition')}"
        return f"{where}, replicate {numbers}"
    names = [str(file.get("name")) for file in source.get("files", ())]
    return f"{source.get('format')}: {', '.join(names)}"


def _contents(manifest: RecordingManifest) -> str:
    requests = "requests unknown" if manifest.requests is None else counted(manifest.requests, "request")
    parts = [counted(manifest.tasks, "task"), counted(manifest.replicates, "whole replicate"), requests]
    return ", ".join([*parts, counted(manifest.occurrences, "response")])


def _facts(manifest: RecordingManifest) -> dict[str, Any]:
    return manifest.model_dump(mode="json")


def _answer(row: Recorded) -> dict[str, Any]:
    return {
        "task_id": row.task_id,
        "replicate": row.replicate,
        "attempt": row.attempt,
        "occurrence": row.occurrence,
        "request": json.loads(row.request) if row.request else None,
        "response_class": row.response.response_class.value,
        "text": row.response.text,
    }


def _side(one: OneSided) -> dict[str, Any]:
    near = None if one.nearest is None else {"key": one.nearest.key, "paths": list(one.nearest.paths)}
    return {"task_id": one.task_id, "key": one.key, "a": one.count_a, "b": one.count_b, "nearest": near}


def _change(one: Changed) -> dict[str, Any]:
    texts = {"a": one.a.response.text, "b": one.b.response.text}
    classes = {"a": one.a.response.response_class.value, "b": one.b.response.response_class.value}
    return {"task_id": one.task_id, "key": one.key, "number": one.number, **texts, "classes": classes}


def _one_sided(one: OneSided) -> str:
    key = f"request {one.key[:SHORT]}" if one.key else "responses"
    near = f"; nearest on the other side is {one.nearest}" if one.nearest else ""
    return f"task {one.task_id}: {key}: a {one.count_a}, b {one.count_b}{near}"


def _changed(one: Changed) -> str:
    key = f", request {one.key[:SHORT]}" if one.key else ""
    a, b = one.a.response.response_class.value, one.b.response.response_class.value
    kinds = ("", "") if a == b else (f" ({a})", f" ({b})")
    return f"task {one.task_id}{key}, answer {one.number}: a {_short(one.a)}{kinds[0]}, b {_short(one.b)}{kinds[1]}"


def _short(row: Recorded) -> str:
    text = row.response.text
    return repr(text if len(text) <= _TEXT else text[: _TEXT - 1] + "…")


def _lines(lines: Sequence[str], *, everything: bool) -> None:
    shown = lines if everything else lines[:SHOWN]
    for line in _indented(shown):
        say(line)
    if len(shown) < len(lines):
        say(f"  and {len(lines) - len(shown)} more; --all shows them")


def _indented(lines: Sequence[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
