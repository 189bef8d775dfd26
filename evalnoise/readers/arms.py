"""Arms: what a command compares, named as STUDY/STACK/CONDITION, with the frozen protocol that says how it was measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evalnoise.readers.cells import CHANGED_STORE, Cells, read_cells
from evalnoise.store.store import SHORT, Store
from schemas.errors import StoreError
from schemas.protocol import Protocol

ARM: Final = "STUDY, STUDY/CONDITION or STUDY/STACK/CONDITION; STUDY is a study's name or the first digits of a protocol"
_LEAST_DIGITS: Final = 4
_PROTOCOLS: Final = """
SELECT study, protocol, status FROM protocols
WHERE study = $text OR (length($text) >= $least AND starts_with(protocol, $text))
ORDER BY study = $text DESC, status = 'complete' DESC, frozen_at DESC, protocol
"""
_KNOWN: Final = "SELECT DISTINCT study FROM protocols ORDER BY study LIMIT 20"


@dataclass(frozen=True, slots=True)
class Arm:
    """Cells and the plan that they were measured under."""

    label: str
    """How messages and reports name it: study (first digits of the protocol), stack, condition."""
    cells: Cells
    frozen: Protocol
    complete: bool
    """Whether the protocol is complete; else its numbers may still change."""
    predecessors: tuple[str, ...] = ()
    """Digests of the protocols that it inherits of, directly or by way of others, nearest first."""

    @property
    def kind(self) -> str:
        """The condition's kind: live, temperature-zero, replay or reverify."""
        return str(next(c["kind"] for c in self.frozen.study["conditions"] if c["name"] == self.cells.condition))

    @property
    def one_draw(self) -> bool:
        """Whether every replicate has the same answers or candidates, so that they say nothing about new runs."""
        condition = next(c for c in self.frozen.study["conditions"] if c["name"] == self.cells.condition)
        if condition.get("source") is not None:
            return True
        stack = next(one for one in self.frozen.study["stacks"] if one["name"] == self.cells.stack)
        spec = {**(stack.get("provider") or {}), **(condition.get("provider") or {})}
        return spec.get("name") == "recording" and spec.get("pairing") == "fixed"


def find_arm(connection: Any, store: str | Path, text: str) -> Arm:
    """The arm that a text names: `ARM`.

    Of a study's name the newest complete protocol counts, or the newest if none is complete. A stack or condition may be left out
    where there is only one; of several conditions the only one of kind live is taken.

    Args:
        connection: A connection to the store's catalog, as of `evalnoise.connect`.
        store: The store's folder.
        text: What the user wrote.

    Raises:
        StoreError: There is no such thing, or more than one; the message lists what there is. Or its table of tasks is not whole.
    """
    parts = text.split("/")
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise _no(store, text, ARM, "something else")
    study, digest, status = find_protocol(connection, store, text, parts[0])
    opened = Store.open(store, create=False)
    frozen = opened.protocol(digest)
    stacks = [stack["name"] for stack in frozen.study["stacks"]]
    conditions = {condition["name"]: condition["kind"] for condition in frozen.study["conditions"]}
    stack = _chosen(stacks, stacks, named=parts[1] if len(parts) == 3 else None, what="stack", where=(store, text))
    live = [name for name, kind in conditions.items() if kind == "live"]
    named = parts[-1] if len(parts) > 1 else None
    defaults = live if len(conditions) > 1 else list(conditions)
    condition = _chosen(list(conditions), defaults, named=named, what="condition", where=(store, text))
    cells = read_cells(connection, study, digest, stack, condition)
    if cells is None:
        raise _no(store, text, f"sealed outcomes of {stack} under {condition}", "none yet", "Run the study, or finish it.")
    label = f"{study} ({digest[:SHORT]}), {stack}, {condition}"
    if len(cells.task_ids) != frozen.n_tasks:
        # Tasks that are gone could be those that the arm fails.
        found = f"{len(cells.task_ids)} tasks in its table"
        raise _no(store, text, f"the {frozen.n_tasks} tasks of its protocol", found, CHANGED_STORE)
    return Arm(label, cells, frozen, status == "complete", _predecessors(opened, frozen))


def find_arms(connection: Any, store: str | Path, text: str, *, condition: str | None = None) -> list[Arm]:
    """Every stack of a study under one condition, for STUDY or STUDY/CONDITION; the one arm of STUDY/STACK/CONDITION.

    Args:
        connection: A connection to the store's catalog, as of `evalnoise.connect`.
        store: The store's folder.
        text: What the user wrote.
        condition: The condition of a study that is named alone; None: its only one of kind live.

    Raises:
        StoreError: There is no such thing; the message lists what there is.
    """
    parts = text.split("/")
    if len(parts) > 2 or not all(parts):
        return [find_arm(connection, store, text)]
    _, digest, _ = find_protocol(connection, store, text, parts[0])
    frozen = Store.open(store, create=False).protocol(digest)
    conditions = {one["name"]: one["kind"] for one in frozen.study["conditions"]}
    live = [name for name, kind in conditions.items() if kind == "live"]
    named = parts[1] if len(parts) == 2 else condition
    chosen = _chosen(
        list(conditions), live if len(conditions) > 1 else list(conditions), named=named, what="condition", where=(store, text)
    )
    return [find_arm(connection, store, f"{digest}/{stack['name']}/{chosen}") for stack in frozen.study["stacks"]]


def find_protocol(connection: Any, store: str | Path, text: str, name: str) -> tuple[str, str, str]:
    """Study, digest and status of the protocol that a name, in the text that a user wrote, means. Raises StoreError."""
    found = connection.execute(_PROTOCOLS, {"text": name, "least": _LEAST_DIGITS}).fetchall()
    by_name = [row for row in found if row[0] == name]
    chosen = by_name[:1] or ([found[0]] if len(found) == 1 else [])
    if not chosen:
        known = ", ".join(row[0] for row in connection.execute(_KNOWN).fetchall()) or "none"
        said = f"{len(found)} protocols that begin so" if found else f"no study or protocol {name!r} (studies: {known})"
        raise _no(store, text, ARM, said)
    study, digest, status = chosen[0]
    return str(study), str(digest), str(status)


def _predecessors(store: Store, frozen: Protocol) -> tuple[str, ...]:
    """The chain of predecessors, as far as the store has their protocols."""
    found: list[str] = []
    lineage = frozen.lineage
    while lineage is not None and lineage.predecessor not in found:
        found.append(lineage.predecessor)
        try:
            lineage = store.protocol(lineage.predecessor).lineage
        except StoreError:
            break
    return tuple(found)


def _chosen(known: list[str], defaults: list[str], *, named: str | None, what: str, where: tuple[str | Path, str]) -> str:
    found = [name for name in known if name == named] if named is not None else defaults
    if len(found) != 1:
        said = f"{named!r}" if named is not None else "several that could be meant"
        raise _no(*where, f"one {what} of: {', '.join(known)}", said)
    return found[0]


def _no(store: str | Path, text: str, expected: str, found: str, remedy: str = "") -> StoreError:
    remedy = remedy or "`evalnoise status` lists studies and protocols; name the arm as STUDY/STACK/CONDITION."
    return StoreError(f"{store}, {text!r}"[:300], expected=expected, found=found, remedy=remedy)
