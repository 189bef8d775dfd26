"""Successors: the protocol that a study with more replicates extends, and what it takes over from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalnoise.recordings.nearest import differing_paths
from evalnoise.store.inherit import inherit
from evalnoise.store.store import SHORT, Store, StudyStore
from schemas.errors import StoreError, SuccessorError
from schemas.protocol import Lineage, Protocol
from tasks.analyse import SHARD as ANALYSIS_SHARD
from tasks.freeze import Plan

_PATHS_SHOWN = 5


def like(plan: Plan, store: Store) -> list[tuple[StudyStore, Protocol]]:
    """The study's frozen protocols that differ from the plan in replicates and lineage at most, in the order of their freezing."""
    wanted = _compared(plan.protocol)
    return [(one, protocol) for one, protocol in _frozen(plan, store) if _compared(protocol) == wanted]


def successor(plan: Plan, store: Store, *, extend_from: str = "", why: str | None = None) -> Plan:
    """The plan as a successor of the newest protocol that it can extend; the one that was begun already, if it was.

    Args:
        plan: The study with as many replicates as there are to be.
        store: Where the predecessor lies.
        extend_from: First digits of the predecessor's digest; empty: the newest that fits.
        why: Why there is a successor; None: that there are more replicates.

    Raises:
        SuccessorError: No protocol fits, or none with fewer replicates.
    """
    wanted = plan.protocol.replicates
    fitting = like(plan, store)
    begun = [
        protocol
        for _, protocol in fitting
        if (past := protocol.lineage) is not None
        and protocol.replicates == wanted
        and past.predecessor.startswith(extend_from)
        and why in (None, past.why)
    ]
    if begun:
        return _with(plan, begun[-1])
    named = [(one, protocol) for one, protocol in fitting if one.protocol.startswith(extend_from)]
    if not named:
        raise _nothing_like(plan, store, extend_from)
    # One that was frozen and never run has nothing to inherit.
    _, newest = ([pair for pair in named if pair[0].manifest.planned] or named)[-1]
    if newest.replicates >= wanted:
        remedy = "Ask for more; or `evalnoise run` measures a protocol of its own with any number."
        if newest.replicates == wanted and newest.lineage is not None:
            remedy = f"It has the reason {newest.lineage.why!r}: leave --why away to go on with it."
        raise SuccessorError(
            "--replicates",
            expected=f"more than the {newest.replicates} of protocol {newest.digest()[:SHORT]}, which would be extended",
            found=str(wanted),
            remedy=remedy,
        )
    reason = why if why is not None else f"{wanted} replicates in the place of {newest.replicates}"
    return _with(plan, plan.protocol.model_copy(update={"lineage": _lineage(newest.digest(), reason)}))


def take_over(root: str, study: str, digest: str, predecessor: str) -> None:
    """Inherit all planned shards but the analysis, and the journals, unless that is done. Raises SuccessorError and StoreError."""
    store = Store(Path(root))
    successor_store = store.study(study, digest)
    shards = [shard for shard in successor_store.manifest.planned if shard != ANALYSIS_SHARD]
    inherit(successor_store, store.study(study, predecessor), shards)


def _with(plan: Plan, protocol: Protocol) -> Plan:
    return replace(plan, protocol=protocol, digest=protocol.digest())


def _lineage(predecessor: str, why: str) -> Lineage:
    if not why.isprintable():
        raise SuccessorError("--why", expected="a line of plain text", found=repr(why)[:200], remedy="Say it in other words.")
    try:
        return Lineage(predecessor=predecessor, why=why)
    except ValidationError as error:
        raise SuccessorError(
            "--why",
            expected="a reason of 1 to 500 characters",
            found=f"{len(why)} characters",
            remedy=f"{error.errors()[0]['msg']}.",
        ) from None


def _frozen(plan: Plan, store: Store) -> Iterator[tuple[StudyStore, Protocol]]:
    """The study's protocols that can be read: one that another version froze cannot be extended anyway."""
    for one in store.studies():
        if one.study == plan.study.study:
            try:
                yield one, store.protocol(one.protocol)
            except StoreError:
                continue


def _compared(protocol: Protocol) -> dict[str, Any]:
    """All that a successor has in common with its predecessor."""
    # Through JSON, where 1.0 and 1 are one number, as in the digest.
    body: dict[str, Any] = json.loads(protocol.canonical())
    body.pop("lineage", None)
    body.pop("replicates")
    body["study"].pop("replicates", None)
    return body


def _nothing_like(plan: Plan, store: Store, extend_from: str) -> SuccessorError:
    where = f"study {plan.study.study} in {store.root}"
    expected = "a protocol that differs from this study in its replicates alone"
    frozen = [(one, protocol) for one, protocol in _frozen(plan, store) if one.protocol.startswith(extend_from)]
    if not frozen:
        begins = f" that begins with {extend_from!r}" if extend_from else ""
        remedy = "`evalnoise status` lists what there is; run the study first, or check --store."
        return SuccessorError(where, expected=expected, found=f"no protocol of it{begins}", remedy=remedy)
    wanted = _compared(plan.protocol)
    # The nearest; of equally near ones the newest.
    compared = [(differing_paths(_compared(protocol), wanted), one.protocol) for one, protocol in reversed(frozen)]
    paths, nearest = min(compared, key=lambda pair: len(pair[0]))
    shown = ", ".join(paths[:_PATHS_SHOWN]) + (f" and {len(paths) - _PATHS_SHOWN} more" if len(paths) > _PATHS_SHOWN else "")
    return SuccessorError(
        where,
        expected=expected,
        found=f"none; the nearest, {nearest[:SHORT]}, differs at {shown}",
        remedy="Undo that change (--limit and --set count too); or `evalnoise run` measures the study as it is now afresh.",
    )
