"""Inheriting: the sealed shards and the journals of a predecessor become a successor's own, without a call or a verification.

It is done once, before anything else of the successor: then each has its own future. Until its end is noted in the manifest it may
be repeated, also when the predecessor has gone on meanwhile, because the successor has made nothing yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from evalnoise.store.files import reading, write_file
from evalnoise.store.manifest import SealedFile
from evalnoise.store.partition import rewritten
from evalnoise.store.retries import open_retry
from evalnoise.store.study import Content, StudyStore
from schemas.errors import StoreError, SuccessorError

_NOTE = "inherited"


def inherited_note(store: StudyStore) -> dict[str, Any] | None:
    """What the manifest says of a finished inheritance: predecessor, shards, notes. None: there was none."""
    return next((line for line in store.manifest.others if line.get("kind") == _NOTE), None)


def inherit(store: StudyStore, before: StudyStore, shards: Sequence[str]) -> None:
    """Take over what the predecessor has of these shards; only under the study's lock, which both share.

    A shard that the predecessor has not sealed, or whose files are damaged, brings its journal: what it paid for is not paid again.

    Raises:
        SuccessorError: The predecessor is in the middle of a retry.
        StoreError: A journal that is needed is damaged, or the store cannot be written.
    """
    if inherited_note(store) is not None:
        return
    if open_retry(before.manifest) is not None:
        raise SuccessorError(
            f"protocol {before.protocol[:12]}",
            expected="a predecessor whose shards fit together",
            found="one in the middle of `evalnoise retry`",
            remedy="Let the retry come to its end (`evalnoise retry` or `evalnoise run` on the same study), then extend.",
        )
    taken = []
    for shard in shards:
        _carry_journal(store, before, shard)
        if before.sealed(shard):
            if not store.sealed(shard):
                _seal(store, before, shard)
            taken.append(shard)
    store.mark(_NOTE, predecessor=before.protocol, shards=taken, notes=notes(before))


def _seal(store: StudyStore, before: StudyStore, shard: str) -> None:
    files = before.manifest.live[shard]
    contents = [Content(file.path, file.table, file.rows, rewritten(_bytes(before, file), store.protocol)) for file in files]
    store.commit_bytes(shard, contents, [file.sha256 for file in files], {"inherited_from": before.protocol})


def _bytes(before: StudyStore, file: SealedFile) -> bytes:
    path = before.path / file.path
    with reading(path):
        data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != file.sha256:
        remedy = "The file changed while it was inherited: give the same command again."
        raise StoreError(str(path), expected=f"SHA-256 {file.sha256[:12]}", found="other bytes", remedy=remedy)
    return data


def _carry_journal(store: StudyStore, before: StudyStore, shard: str) -> None:
    path = before.journal_path(shard)
    if not path.exists():
        return
    if not before.sealed(shard):
        before.journal(shard)  # damage is found here, where the message names the predecessor's file
    with reading(path):
        data = path.read_bytes()
    target = store.journal_path(shard)
    if not target.exists() or target.read_bytes() != data:
        write_file(target, data)


def notes(store: StudyStore) -> list[dict[str, Any]]:
    """What a reader of the numbers must know, from the manifest, predecessors first: retries, conditions that ran apart."""
    note = inherited_note(store)
    own = [line for line in store.manifest.others if line.get("kind") in {"retry", "only"}]
    return [*(note["notes"] if note else []), *own]
