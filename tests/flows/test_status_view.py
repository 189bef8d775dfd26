"""`evalnoise status`: calls in journals, protocols told apart, and a table that fits the terminal."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalnoise.store.partition import PartitionWrite
from evalnoise.store.store import Store, StudyStore
from flows.cli import app
from flows.views.status import progress
from schemas.errors import StoreError
from schemas.tables import CALLS
from tests.support.small_store import SENT, build, protocol, row

SENT_RECORD = {"request_key": "k", "size": 300, "max_output": 20}


def status(root: Path, columns: int = 80) -> list[str]:
    result = CliRunner().invoke(app, ["status", "--store", str(root)], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def journal(study: StudyStore, shard: str, costs: dict[str, float | None], unanswered: int = 0) -> Path:
    """Answered calls by id, and calls that were sent only."""

    async def write() -> None:
        made = study.journal(shard)
        for call, cost in costs.items():
            await made.sent(call, SENT_RECORD)
            await made.answered(call, {"cost_usd": cost, "response": {}})
        for number in range(unanswered):
            await made.sent(f"sent-{number}", SENT_RECORD)

    asyncio.run(write())
    return study.journal(shard).path


def freeze(root: Path, study: str, *, night: str | None = None, **changes) -> StudyStore:
    store = Store.open(root)
    frozen = protocol(**changes).model_copy(update={"study": {"study": study, "night": night}})
    store.freeze(frozen)
    return store.study(study, frozen.digest())


class TestJournals:
    def test_unsealed_shards_count_by_their_journals(self, tmp_path):
        made = build(tmp_path)
        journal(made, "live~2", {"a#0": 0.5, "b#0": None}, unanswered=3)
        (one,) = progress(tmp_path)
        assert (one.requests, one.cost_usd, one.unpriced) == (6, 0.75, 3)

    def test_a_call_that_was_made_again_counts_by_its_last_answer(self, tmp_path):
        made = build(tmp_path)
        journal(made, "live~2", {"a#0": None})
        journal(made, "live~2", {"a#0": 0.5})
        (one,) = progress(tmp_path)
        assert (one.requests, one.cost_usd, one.unpriced) == (5, 0.75, 2)

    def test_sealed_shards_count_once(self, tmp_path):
        made = build(tmp_path)
        journal(made, "x:y", {"a#0": 0.5})
        assert progress(tmp_path)[0].requests == 5
        keys = {"stack": "a", "condition": "x", "replicate": 0}
        rows = [row(CALLS, made, 0, cost_usd=0.5, sent_at=SENT, answered_at=SENT)]
        made.commit("x:y", [PartitionWrite(CALLS, keys, rows, "000")])
        (one,) = progress(tmp_path)
        assert (one.requests, one.cost_usd, one.unpriced) == (5, 0.75, 2)

    def test_reading_leaves_a_line_that_is_being_written(self, tmp_path):
        made = build(tmp_path)
        path = journal(made, "live~2", {"a#0": 0.5})
        with path.open("ab") as file:
            file.write(b'{"kind":"answered","id":"b#0","rec')
        before = path.read_bytes()
        assert progress(tmp_path)[0].requests == 5
        assert path.read_bytes() == before

    def test_a_damaged_journal_is_named(self, tmp_path):
        path = journal(build(tmp_path), "live~2", {"a#0": 0.5})
        path.write_bytes(path.read_bytes().replace(b"0.5", b"0.6"))
        with pytest.raises(StoreError, match=r"live~2\.jsonl, line 2"):
            progress(tmp_path)


class TestTable:
    def test_protocols_of_one_study_are_told_apart_at_80_columns(self, tmp_path):
        changes = [{"n_tasks": 164}, {"n_tasks": 10, "limit": 10, "replicates": 12}]
        for change in changes:
            freeze(tmp_path, "humaneval-openai", **change)
        header, _, heading, *rows = status(tmp_path)
        assert max(map(len, [header, *rows])) <= 80
        assert header.split() == ["protocol", "frozen", "(UTC)", "state", "tasks", "repl.", "sealed", "sent", "cost"]
        assert heading == "study humaneval-openai"
        assert [line.split()[3:] for line in rows] == [
            ["frozen", "164", "2", "0/0", "0", "$0.0000"],
            ["frozen", "first", "10", "12", "0/0", "0", "$0.0000"],
        ]

    def test_nights(self, tmp_path):
        for night in ("2026-01-02", "2026-01-03"):
            made = freeze(tmp_path, "humaneval-openai", night=night)
        journal(made, "live", {f"{i}#0": None for i in range(12)})
        lines = status(tmp_path)
        assert max(map(len, lines)) <= 80
        assert lines[0].split()[:2] == ["protocol", "night"]
        assert [line.split()[1] for line in lines[3:]] == ["2026-01-02", "2026-01-03"]
        assert lines[4].split()[-3:] == ["12", "$0.0000", "12"]
        # One length everywhere, as in the lines below the table and in a run's summary.
        assert {len(line.split()[0]) for line in lines[3:]} == {12}
        wide = status(tmp_path, 120)
        assert wide[0].split()[:4] == ["protocol", "frozen", "(UTC)", "night"]
        assert len(wide[3].split()[0]) == 12

    def test_each_study_has_its_own_rows(self, tmp_path):
        for study, replicates in (("b", 2), ("a", 3), ("b", 4)):
            freeze(tmp_path, study, replicates=replicates)
        lines = status(tmp_path)[2:]
        assert [line if line.startswith("study") else line.split()[5] for line in lines] == ["study a", "3", "study b", "2", "4"]

    def test_a_protocol_that_cannot_be_read_does_not_hide_the_others(self, tmp_path):
        made = freeze(tmp_path, "a")
        freeze(tmp_path, "b")
        (tmp_path / "protocols" / f"{made.protocol}.json").write_text("{}")
        lines = status(tmp_path)
        assert lines[3].split()[4:6] == ["?", "?"]
        assert lines[5].split()[4:6] == ["3", "2"]
        assert lines[6].startswith(f"a {made.protocol[:12]}: ")
        assert "expected the protocol" in lines[6]
