"""Finds what a command names: a frozen protocol, a recording, or the cells of one configuration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from evalnoise.recordings.row import Recorded
from evalnoise.store.recordings import RecordingFolder, is_folder, is_name
from evalnoise.store.store import SHORT, Store, StudyStore
from schemas.errors import StoreError
from schemas.protocol import Protocol
from schemas.tables import CALLS
from tasks.record import sealed_rows

SIDE: Final = "a recording's name or folder, or STUDY/STACK/CONDITION, with /rN for one replicate"
_REPLICATE: Final = re.compile(r"r(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Side:
    """Cells to compare."""

    label: str
    """What they are, for messages."""
    rows: Sequence[Recorded]


def find_protocol(store: Store, text: str) -> tuple[StudyStore, Protocol]:
    """The newest frozen protocol of a study, or the one whose digest begins so. Raises StoreError."""
    known = store.studies()
    found = [study for study in known if study.study == text][-1:]
    if not found:
        found = [study for study in known if len(text) >= 4 and study.protocol.startswith(text)]
    if len(found) != 1:
        names = ", ".join(sorted({study.study for study in known})) or "none"
        raise StoreError(
            f"{store.root}, {text!r}"[:300],
            expected="the name of a study, or the first digits of one protocol (four at least)",
            found=f"{len(found)} protocols that begin so" if found else f"no such thing (studies: {names})",
            remedy="`evalnoise status` lists studies and protocols.",
        )
    return found[0], store.protocol(found[0].protocol)


def find_recording(root: Path, text: str) -> RecordingFolder:
    """The recording in a folder, or of a name in the store. Raises StoreError."""
    here, named = RecordingFolder(Path(text)), RecordingFolder(root / "recordings" / text)
    # A name is looked up in the store first: a folder of that name may lie in the working directory by chance.
    if is_name(text) and is_folder(named.path):
        return named
    if is_folder(here.path):
        return here
    raise StoreError(
        f"{root}, {text!r}"[:300],
        expected="the name of a recording in the store, or a recording's folder",
        found="neither",
        remedy="`evalnoise recording list` shows the recordings of a store.",
    )


def find_side(root: Path, text: str) -> Side:
    """The cells that a text names: `SIDE`. Raises StoreError and DataError."""
    parts = text.split("/")
    if is_folder(Path(text)) or len(parts) not in (3, 4):
        folder = find_recording(root, text)
        return Side(f"recording {folder.path.name} ({folder.manifest.digest[:SHORT]})", folder.read())
    picked = _REPLICATE.fullmatch(parts[3]) if len(parts) == 4 else None
    if len(parts) == 4 and picked is None:
        raise StoreError(
            text[:300], expected=SIDE, found=f"{parts[3]!r} at the end"[:100], remedy="For instance demo/small/live/r0."
        )
    study, protocol = find_protocol(Store.open(root, create=False), parts[0])
    stack, condition = parts[1:3]
    replicates = range(protocol.replicates) if picked is None else [int(picked[1])]
    rows = [row for replicate in replicates for row in sealed_rows(study, protocol, stack, condition, replicate)]
    label = f"{study.study} ({study.protocol[:SHORT]}), {stack}, {condition}{f', replicate {picked[1]}' if picked else ''}"
    return Side(label, _with_requests(study, protocol, stack, condition, rows))


def _with_requests(study: StudyStore, protocol: Protocol, stack: str, condition: str, rows: list[Recorded]) -> list[Recorded]:
    """The rows with the text of their requests, where a replay has only the keys of what its source sent."""
    source = next((c["source"] for c in protocol.study["conditions"] if c["name"] == condition), None)
    if source is None or all(row.request for row in rows):
        return rows
    sent = study.read(CALLS, stack=stack, condition=source["condition"], replicate=source["replicate"])
    texts = dict(zip(sent.column("request_key").to_pylist(), sent.column("request").to_pylist(), strict=True))
    return [replace(row, request=row.request or texts.get(row.request_key, "")) for row in rows]
