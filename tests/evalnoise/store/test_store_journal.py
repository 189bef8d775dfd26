"""The journal: what was promised survives SIGKILL, what was torn is cut, what is damaged is an error."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalnoise.store.journal import Journal
from schemas.errors import StoreError

WRITER = """
import asyncio, sys
from pathlib import Path
from evalnoise.store.journal import Journal

journal = Journal(Path(sys.argv[1]))
done = journal.answers()

async def call(name):
    if name in done:
        return
    await journal.sent(name, {"prompt": name})
    print("sent", name, flush=True)
    await asyncio.sleep(0)
    await journal.answered(name, {"text": name * 50 + "\\ud835"})
    print("answered", name, flush=True)

async def main():
    slots = asyncio.Semaphore(16)
    async def slot(name):
        async with slots:
            await call(name)
    await asyncio.gather(*(slot(f"c{n}") for n in range(20_000)))

asyncio.run(main())
"""


def run(coroutine):
    return asyncio.run(coroutine)


async def put(journal: Journal, names: list[str]) -> None:
    async def one(name: str) -> None:
        await journal.sent(name, {"prompt": name})
        await journal.answered(name, {"text": f"{name}!"})

    await asyncio.gather(*(one(name) for name in names))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "live 0.7~r0000.jsonl"


def test_answers_come_back_and_the_latest_holds(path):
    journal = Journal(path)
    assert journal.answers() == {}
    assert not path.exists()
    run(put(journal, ["a", "b"]))
    run(journal.sent("c", {"prompt": "c"}))
    run(journal.answered("a", {"text": "again"}))
    expected = {"a": {"text": "again"}, "b": {"text": "b!"}}
    assert journal.answers() == expected
    assert journal.unanswered() == {"c": {"prompt": "c"}}
    again = Journal(path)
    assert (again.answers(), again.unanswered()) == (expected, {"c": {"prompt": "c"}})


def test_hostile_text_comes_back_exactly(path):
    record = {"text": '\ud835 \ud83d\ude00 \u2028\r\n\x00 ,"sum":"', "raw": "{" * 500, "n": None, "deep": [{"é": [1.5, True]}]}
    run(Journal(path).answered("HumanEval/0 'x' %2F", record))
    assert Journal(path).answers() == {"HumanEval/0 'x' %2F": record}


def test_concurrent_calls_share_fsyncs(path, monkeypatch):
    real, counted = os.fsync, []

    def slow(descriptor: int) -> None:
        counted.append(descriptor)
        time.sleep(0.005)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    run(put(Journal(path), [str(n) for n in range(200)]))
    assert len(Journal(path).answers()) == 200
    assert len(counted) < 40


def test_it_returns_only_after_fsync(path, monkeypatch):
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(path.stat().st_size if path.exists() else 0))
    run(Journal(path).sent("a", {}))
    assert synced[-1] == path.stat().st_size > 0


def test_several_loops_and_a_pause_longer_than_the_writer_waits(path, monkeypatch):
    monkeypatch.setattr("evalnoise.store.journal._IDLE_SECONDS", 0.01)
    journal = Journal(path)
    for name in "abc":
        run(put(journal, [name]))
        time.sleep(0.05)
    assert sorted(Journal(path).answers()) == ["a", "b", "c"]


@pytest.mark.parametrize("cut", [1, 7, 40])
def test_a_torn_tail_is_cut_and_the_journal_goes_on(path, cut):
    run(put(Journal(path), ["a", "b"]))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    journal = Journal(path)
    last = whole.rfind(b"\n", 0, -1) + 1
    assert path.read_bytes() == whole[:last]
    assert set(journal.answers()) < {"a", "b"}
    run(put(journal, ["a", "b", "c"]))
    assert set(Journal(path).answers()) == {"a", "b", "c"}


@pytest.mark.parametrize("line", [0, 3, 7])
def test_a_flipped_byte_is_an_error_that_names_the_line(path, line):
    for name in "abcd":
        run(put(Journal(path), [name]))
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 8
    damaged = bytearray(lines[line])
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(b"".join([*lines[:line], bytes(damaged), *lines[line + 1 :]]))
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"line {line + 1}: .*Restore it"):
        Journal(path)
    assert path.read_bytes() == before


def test_what_json_cannot_hold_is_refused_and_nothing_is_written(path):
    journal = Journal(path)
    with pytest.raises(StoreError, match=r"call a: expected a record that JSON can hold"):
        run(journal.answered("a", {"cost": float("nan")}))
    assert not path.exists()


def test_a_full_disk_fails_every_waiting_call_and_keeps_what_was_promised(path, monkeypatch):
    journal = Journal(path)
    run(put(journal, ["a"]))
    before = path.read_bytes()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)

    async def several() -> list[object]:
        return await asyncio.gather(*(journal.sent(str(n), {}) for n in range(5)), return_exceptions=True)

    found = run(several())
    assert [type(error) for error in found] == [StoreError] * 5
    assert "no space left on device; 1 answer of this run saved. Free some space" in str(found[0])
    monkeypatch.undo()
    with pytest.raises(StoreError):
        run(journal.sent("later", {}))
    assert path.read_bytes() == before
    assert Journal(path).answers() == {"a": {"text": "a!"}}


def test_a_cancelled_waiter_does_not_stop_the_others(path):
    journal = Journal(path)

    async def several() -> None:
        first = asyncio.ensure_future(journal.sent("a", {}))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(journal.sent("b", {}), journal.answered("b", {"text": "b"}))

    run(several())
    assert Journal(path).answers() == {"b": {"text": "b"}}


def test_kill_9_loses_nothing_that_was_promised(path):
    """Each round kills a real writer at a random moment; what it said was sent or answered must be there in the next."""
    chance = random.Random(2)
    promised: set[str] = set()
    sent: set[str] = set()
    for _ in range(6):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(chance.randrange(1, 400))]
        time.sleep(chance.random() / 100)
        process.send_signal(signal.SIGKILL)
        seen += process.stdout.read().splitlines(keepends=True)
        assert process.wait(10) == -signal.SIGKILL
        for line in seen:
            if line.endswith("\n") and line.strip():
                kind, name = line.split()
                assert name not in promised, "an answered call was made again"
                (promised if kind == "answered" else sent).add(name)
        journal = Journal(path)
        answers = journal.answers()
        assert promised <= answers.keys()
        assert sent <= answers.keys() | journal.unanswered().keys()
        assert all(answers[name] == {"text": name * 50 + "\ud835"} for name in answers)
        promised |= answers.keys()
    assert len(promised) > 50
    kinds = [json.loads(line.decode("utf-8", "surrogatepass"))["kind"] for line in path.read_bytes().splitlines()]
    assert kinds.count("answered") == len(promised)
