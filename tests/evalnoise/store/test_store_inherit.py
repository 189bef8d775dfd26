"""Inheriting sealed files: the same bytes but for one column, named by their digests, once."""

from __future__ import annotations

import asyncio

import pytest

from evalnoise.store.inherit import inherit, inherited_note, notes
from evalnoise.store.partition import rewritten
from evalnoise.store.store import Store, StudyStore
from schemas.errors import SuccessorError
from schemas.protocol import Lineage
from tests.support.small_store import PLAN, SEALED, build, protocol


def successor_of(before: StudyStore, root) -> StudyStore:
    lineage = Lineage(predecessor=before.protocol, why="more")
    frozen = protocol(replicates=3, lineage=lineage)
    store = Store.open(root)
    store.freeze(frozen)
    return store.study("demo", frozen.digest())


def test_rows_under_their_own_protocol_are_the_same_bytes(tmp_path) -> None:
    made = build(tmp_path)
    files = [file for shard in made.manifest.live.values() for file in shard]
    assert len(files) == 17
    for file in files:
        data = (made.path / file.path).read_bytes()
        assert rewritten(data, made.protocol) == data
        assert rewritten(rewritten(data, "0" * 64), made.protocol) == data
        assert (rewritten(data, "0" * 64) == data) == (file.rows == 0)


def test_what_is_inherited(tmp_path) -> None:
    before = build(tmp_path)
    after = successor_of(before, tmp_path)
    inherit(after, before, PLAN[:-1])
    assert inherited_note(after)["shards"] == list(SEALED)
    for shard in SEALED:
        taken = after.manifest.live[shard]
        assert {file.inputs for file in taken} == {tuple(file.sha256 for file in before.manifest.live[shard])}
    line = after.manifest.path.read_bytes()
    inherit(after, before, PLAN[:-1])
    assert after.manifest.path.read_bytes() == line


def test_a_damaged_shard_is_not_inherited_and_its_journal_is(tmp_path) -> None:
    before = build(tmp_path)
    (before.path / before.manifest.live["live-0"][0].path).write_bytes(b"torn")

    async def pay() -> None:
        journal = before.journal("live-0")
        await journal.sent("a#0/0", {"request_key": "k"})
        await journal.answered("a#0/0", {"cost_usd": 0.5})

    asyncio.run(pay())
    with before.journal_path("live-0").open("ab") as file:
        file.write(b'{"kind":"sent","id":"torn')
    after = successor_of(before, tmp_path)
    inherit(after, before, PLAN[:-1])
    assert "live-0" not in after.manifest.live
    assert after.journal("live-0").answers() == {"a#0/0": {"cost_usd": 0.5}}


def test_notes_travel_and_an_open_retry_does_not(tmp_path) -> None:
    before = build(tmp_path)
    before.mark("only", conditions=["live"], at="2026-01-02")
    before.mark("retry", number=1, at="2026-01-02", asked={"live-0": ["Human/0"]}, redone={})
    after = successor_of(before, tmp_path)
    with pytest.raises(SuccessorError, match="in the middle"):
        inherit(after, before, PLAN[:-1])
    assert after.manifest.live == {}
    before.mark("retried", number=1, at="2026-01-02")
    inherit(after, before, PLAN[:-1])
    assert [line["kind"] for line in notes(after)] == ["only", "retry"]
    after.mark("only", conditions=["replay"], at="2026-01-03")
    assert [line["kind"] for line in notes(after)] == ["only", "retry", "only"]
