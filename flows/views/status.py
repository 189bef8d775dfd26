"""`evalnoise status`: how far each frozen protocol has come, by its manifest and its sealed files."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer

from evalnoise.report.numbers import counted
from evalnoise.sending.ledger import journalled
from evalnoise.store.files import reading
from evalnoise.store.lock import Holder, holder_of
from evalnoise.store.retries import Retry, open_retry
from evalnoise.store.store import Store, StudyStore
from flows.cli_errors import printable
from flows.views.sql import aligned
from schemas.errors import StoreError
from schemas.protocol import Protocol
from schemas.tables import CALLS

_MISSING_SHOWN = 5
_FROZEN = "frozen (UTC)"
_RIGHT = {"tasks", "repl.", "sealed", "sent", "cost", "unpriced"}
"""Columns of numbers."""
_REDO = "Run the study again with the same command: the shard is quarantined and redone."
_DAMAGED = "The journal was changed by something else than evalnoise, or the disk is failing. Restore it, or move it aside."


@dataclass(frozen=True, slots=True)
class Progress:
    """One frozen protocol."""

    study: str
    protocol: str
    frozen_at: str
    planned: int
    """Shards of the whole study; 0 before the first run."""
    missing: tuple[str, ...]
    """Planned shards that are not sealed."""
    complete: bool
    requests: int
    """Sent ones, failed ones too: those of sealed shards, and of the others those that their journals say were answered."""
    cost_usd: float
    """Known cost of them."""
    unpriced: int
    """Requests of unknown cost."""
    quarantined: int
    """Files that were found damaged."""
    holder: Holder | None
    """Who is at work on the study, on any of its protocols."""
    frozen: Protocol | None
    """What was frozen; None: its file cannot be read."""
    unreadable: str
    """Why the protocol's file cannot be read; empty otherwise."""
    inherited: int = 0
    """Of the requests, those of shards that a predecessor sealed, whose run paid for them."""
    retry: Retry | None = None
    """Cells that are being asked again, unless that has come to its end."""

    @property
    def state(self) -> str:
        """In a word."""
        if self.holder:
            return "running"
        return "complete" if self.complete else "stopped" if self.planned else "frozen"


def progress(root: Path, study: str | None = None) -> list[Progress]:
    """Every protocol of a study, or of all studies. Raises StoreError."""
    store = Store.open(root, create=False)
    found = store.studies()
    if study is not None and study not in {one.study for one in found}:
        names = ", ".join(sorted({one.study for one in found})) or "none"
        raise StoreError(str(root), expected=f"the study {study!r}", found=names, remedy="Check the name and --store.")
    return [_progress(store, one) for one in found if study in (None, one.study)]


def _progress(store: Store, one: StudyStore) -> Progress:
    status = one.status()
    sealed = set(status.sealed)
    requests, cost, unpriced = _cost(one)
    protocol, unreadable = _protocol(store, one.protocol)
    return Progress(
        study=one.study,
        protocol=one.protocol,
        frozen_at=str((one.manifest.frozen or {}).get("frozen_at", ""))[:19],
        planned=len(status.planned),
        missing=tuple(shard for shard in status.planned if shard not in sealed),
        complete=status.complete,
        requests=requests,
        cost_usd=cost,
        unpriced=unpriced,
        quarantined=sum(line.get("kind") == "quarantined" for line in one.manifest.others),
        holder=at_work(one.path.parent),
        frozen=protocol,
        unreadable=unreadable,
        inherited=_inherited(one),
        retry=open_retry(one.manifest),
    )


def _inherited(one: StudyStore) -> int:
    files = [file for shard in one.manifest.live.values() for file in shard if file.table == CALLS.name]
    return sum(file.rows for file in files if file.lineage.get("inherited_from"))


def _protocol(store: Store, digest: str) -> tuple[Protocol | None, str]:
    """A protocol, or why it cannot be read: one that another version froze must not hide how far the others are."""
    try:
        return store.protocol(digest), ""
    except StoreError as error:
        return None, str(error)


def _cost(one: StudyStore) -> tuple[int, float, int]:
    """Requests that were sent, their known cost, and how many have no known cost."""
    # One look at the manifest for both sources: a shard that is sealed meanwhile must not count twice, or not at all.
    live = one.manifest.live
    requests, cost, unpriced = 0, 0.0, 0
    for file in (file for files in live.values() for file in files if file.table == CALLS.name):
        path = one.path / file.path
        try:
            with reading(path):
                column: Any = pq.ParquetFile(path).read(columns=["cost_usd"]).column("cost_usd")
        except pa.ArrowInvalid as error:
            raise StoreError(str(path), expected="a Parquet file", found=str(error)[:200], remedy=_REDO) from None
        requests += len(column)
        cost += pc.sum(column).as_py() or 0.0
        unpriced += column.null_count
    sendings = [sending for _, of_shard in journalled(one, live) for sending in of_shard if sending.answered]
    known = [sending.cost_usd for sending in sendings if sending.cost_usd is not None]
    return requests + len(sendings), cost + sum(known), unpriced + len(sendings) - len(known)


def at_work(folder: Path) -> Holder | None:
    """The holder of the study's lock, unless it is a process of this machine that has ended."""
    holder = holder_of(folder)
    if holder is None or holder.host != socket.gethostname():
        return holder
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return holder
    return holder


def print_status(root: Path, study: str | None) -> None:
    """Print a line per protocol; for a named study also its missing shards and who is at work."""
    found = progress(root, study)
    if not found:
        typer.echo(f"No study was frozen in {root} yet; `evalnoise run STUDY` does it.")
        return
    for line in _table(found, shutil.get_terminal_size().columns):
        typer.echo(line)
    for one in found:
        for line in _details(one, verbose=study is not None):
            typer.echo(line)


def _table(found: list[Progress], width: int) -> Iterator[str]:
    """A line per protocol under its study's name. A narrow terminal gets the date without time, or no date."""
    rows = [_cells(one) for one in found]
    names = [name for name in rows[0] if name not in {"night", "unpriced"} or any(row[name] for row in rows)]
    lines = _aligned(names, rows)
    if max(map(len, lines)) > width:
        rows = [_date_only(row) for row in rows]
        lines = _aligned(names, rows)
    if max(map(len, lines)) > width and "night" in names:
        lines = _aligned([name for name in names if name != _FROZEN], rows)
    yield from lines[:2]
    body = iter(lines[2:])
    for study, protocols in groupby(found, key=lambda one: one.study):
        yield f"study {study}"
        yield from (next(body) for _ in protocols)


def _aligned(names: list[str], rows: list[dict[str, str]]) -> list[str]:
    return list(aligned(names, [[row[name] for name in names] for row in rows], [name in _RIGHT for name in names]))


def _date_only(row: dict[str, str]) -> dict[str, str]:
    return row | {_FROZEN: row[_FROZEN][:10]}


def _cells(one: Progress) -> dict[str, str]:
    tasks, replicates, night = "?", "?", ""
    if one.frozen:
        tasks = str(one.frozen.n_tasks) if one.frozen.limit is None else f"first {one.frozen.limit}"
        replicates, night = str(one.frozen.replicates), str(one.frozen.study.get("night") or "")
    return {
        "protocol": one.protocol[:12],
        _FROZEN: one.frozen_at[:16].replace("T", " "),
        "night": night,
        "state": one.state,
        "tasks": tasks,
        "repl.": replicates,
        "sealed": f"{one.planned - len(one.missing)}/{one.planned}",
        "sent": str(one.requests),
        "cost": f"${one.cost_usd:.4f}",
        "unpriced": str(one.unpriced or ""),
    }


def _details(one: Progress, *, verbose: bool) -> list[str]:
    lines = []
    name = f"{one.study} {one.protocol[:12]}"
    if one.holder:
        lines.append(f"{name}: process {one.holder.pid} on {one.holder.host} is at work on this study since {one.holder.started}")
    if one.unreadable:
        lines.append(f"{name}: {printable(one.unreadable)}")
    if one.frozen and (past := one.frozen.lineage):
        paid = f"; {one.inherited} of its requests were sent there" if one.inherited else ""
        lines.append(f"{name}: successor of {past.predecessor[:12]}, not blind: {printable(past.why)}{paid}")
    if one.retry:
        cells = counted(one.retry.n_asked, "cell is", "cells are")
        lines.append(f"{name}: {cells} being asked again since {one.retry.at[:16]}; `retry --unmeasured` or `run` goes on with it")
    if one.quarantined:
        was, shards = ("was", "its shard is") if one.quarantined == 1 else ("were", "their shards are")
        files = counted(one.quarantined, "damaged file")
        lines.append(f"{name}: {files} {was} put into quarantine/; {shards} redone by the next run")
    if verbose and one.missing:
        lines.append(f"{name}: missing {', '.join(one.missing[:_MISSING_SHOWN])}")
        if len(one.missing) > _MISSING_SHOWN:
            lines[-1] += f" and {len(one.missing) - _MISSING_SHOWN} more"
    return lines
