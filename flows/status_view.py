"""`evalnoise status`: how far each frozen protocol has come, by its manifest and its sealed files."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer

from evalnoise.store.files import reading
from evalnoise.store.lock import Holder, holder_of
from evalnoise.store.store import Store, StudyStore
from flows.sql_view import aligned
from schemas.errors import StoreError
from schemas.tables import CALLS

_MISSING_SHOWN = 20


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
    calls: int
    """Provider calls in sealed shards."""
    cost_usd: float
    """Known cost of them."""
    unpriced: int
    """Calls of unknown cost."""
    quarantined: int
    """Files that were found damaged."""
    holder: Holder | None
    """Who is at work on the study, on any of its protocols."""

    @property
    def state(self) -> str:
        """In a word."""
        if self.holder:
            return "running"
        return "complete" if self.complete else "stopped" if self.planned else "frozen"


def progress(root: Path, study: str | None = None) -> list[Progress]:
    """Every protocol of a study, or of all studies. Raises StoreError."""
    found = Store.open(root, create=False).studies()
    if study is not None and study not in {one.study for one in found}:
        names = ", ".join(sorted({one.study for one in found})) or "none"
        raise StoreError(str(root), expected=f"the study {study!r}", found=names, remedy="Check the name and --store.")
    return [_progress(one) for one in found if study in (None, one.study)]


def _progress(one: StudyStore) -> Progress:
    status = one.status()
    sealed = set(status.sealed)
    frozen = one.manifest.frozen or {}
    calls, cost, unpriced = _cost(one)
    return Progress(
        study=one.study,
        protocol=one.protocol,
        frozen_at=str(frozen.get("frozen_at", ""))[:19],
        planned=len(status.planned),
        missing=tuple(shard for shard in status.planned if shard not in sealed),
        complete=status.complete,
        calls=calls,
        cost_usd=cost,
        unpriced=unpriced,
        quarantined=sum(line.get("kind") == "quarantined" for line in one.manifest.others),
        holder=at_work(one.path.parent),
    )


def _cost(one: StudyStore) -> tuple[int, float, int]:
    """Calls in sealed shards, their known cost, and how many have no known cost."""
    calls, cost, unpriced = 0, 0.0, 0
    for file in one.files(CALLS):
        path = one.path / file.path
        try:
            with reading(path):
                column: Any = pq.ParquetFile(path).read(columns=["cost_usd"]).column("cost_usd")
        except pa.ArrowInvalid as error:
            remedy = "Run the study again with the same command: the shard is quarantined and redone."
            raise StoreError(str(path), expected="a Parquet file", found=str(error)[:200], remedy=remedy) from None
        calls += len(column)
        cost += pc.sum(column).as_py() or 0.0
        unpriced += column.null_count
    return calls, cost, unpriced


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
    """Print one line per protocol; for a named study also its missing shards and who is at work."""
    found = progress(root, study)
    if not found:
        typer.echo(f"No study was frozen in {root} yet; `evalnoise run STUDY` does it.")
        return
    names = ("study", "protocol", "frozen (UTC)", "state", "sealed", "missing", "calls", "cost")
    for line in aligned(names, [_cells(one) for one in found], [False] * 4 + [True] * 4):
        typer.echo(line)
    for one in found:
        for line in _details(one, verbose=study is not None):
            typer.echo(line)


def _cells(one: Progress) -> list[str]:
    sealed = f"{one.planned - len(one.missing)}/{one.planned}"
    cost = f"${one.cost_usd:.4f}" + (f" + {one.unpriced} unpriced" if one.unpriced else "")
    return [one.study, one.protocol[:12], one.frozen_at, one.state, sealed, str(len(one.missing)), str(one.calls), cost]


def _details(one: Progress, *, verbose: bool) -> list[str]:
    lines = []
    name = f"{one.study} {one.protocol[:12]}"
    if one.holder:
        lines.append(f"{name}: process {one.holder.pid} on {one.holder.host} is at work on this study since {one.holder.started}")
    if one.quarantined:
        lines.append(f"{name}: {one.quarantined} damaged files were put into quarantine/; their shards are redone by the next run")
    if verbose and one.missing:
        lines.append(f"{name}: missing {', '.join(one.missing[:_MISSING_SHOWN])}")
        if len(one.missing) > _MISSING_SHOWN:
            lines[-1] += f" and {len(one.missing) - _MISSING_SHOWN} more"
    return lines
