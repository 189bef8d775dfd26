"""The ledger of shards that are not sealed yet: every sending that their journals hold, read without touching them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from evalnoise.store.files import reading
from evalnoise.store.lines import parse_lines
from evalnoise.store.store import StudyStore

_DAMAGED: Final = "Run the study again: it says what to do with a damaged journal."


@dataclass(frozen=True, slots=True)
class JournalSending:
    """One sending as a journal has it."""

    answered: bool
    """False: the run ended before an answer came, or it is in flight right now."""
    cost_usd: float | None
    """None: unknown."""
    size: int
    """Bytes of the request."""
    max_output: int | None
    """Output tokens that the request allows; None: it names no limit."""


def journals(store: StudyStore) -> set[str]:
    """Names of the shards that have a journal."""
    return set(_paths(store))


def _paths(store: StudyStore) -> dict[str, Path]:
    return {unquote(path.stem): path for path in store.path.glob("journal/*.jsonl")}


def journalled(store: StudyStore, sealed: Collection[str]) -> Iterator[tuple[str, list[JournalSending]]]:
    """By shard that is not sealed, what was sent for it. A run may be at work on it: nothing is cut or written.

    Args:
        store: Where the journals are.
        sealed: Shards that are sealed: what their journals hold is in the table `calls`.

    Raises:
        StoreError: A journal is damaged.
    """
    for shard, path in sorted(_paths(store).items()):
        if shard in sealed:
            continue
        with reading(path):
            data = path.read_bytes()
        sent: dict[str, dict[str, Any]] = {}
        answered: dict[str, dict[str, Any]] = {}
        for line in parse_lines(path, data, remedy=_DAMAGED, last_may_be_bad=False).records:
            (answered if line["kind"] == "answered" else sent)[str(line["id"])] = line["record"]
        yield shard, [_sending(record, answered.get(name)) for name, record in sent.items()]


def _sending(sent: dict[str, Any], answered: dict[str, Any] | None) -> JournalSending:
    cost = None if answered is None else answered["cost_usd"]
    return JournalSending(answered is not None, cost, sent["size"], sent["max_output"])
