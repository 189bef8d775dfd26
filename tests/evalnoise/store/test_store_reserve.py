"""A full disk: every answer that was paid for is kept, and no call is made that has no room for its answer."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalnoise.store.journal import Journal
from evalnoise.store.partition import PartitionWrite
from evalnoise.store.reserve import RESERVE_BYTES, RESERVE_FILE, Reserve
from evalnoise.store.store import Store
from schemas.errors import StoreError
from schemas.tables import OUTCOMES

TASKS = [f"task/{n}" for n in range(100)]
ANSWER = 20_000
RESERVE = 512 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    path = tmp_path / "disk"
    path.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", path], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"cannot mount a small file system: {made.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


class Provider:
    """Counts what is paid."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    async def work(self, journals: list[Journal], *, at_once: int = 16) -> list[object]:
        """Every task that has no answer yet, in the journal that it belongs to; what each came to."""
        slots = asyncio.Semaphore(at_once)
        return await asyncio.gather(
            *(self.call(journals[n % len(journals)], task, slots) for n, task in enumerate(TASKS)), return_exceptions=True
        )

    async def call(self, journal: Journal, task: str, slots: asyncio.Semaphore) -> str:
        async with slots:
            if task in journal.answers():
                return "known"
            await journal.sent(task, {"request_key": task})
            self.paid.append(task)
            await asyncio.sleep(0.01)
            await journal.answered(task, {"text": task * (ANSWER // len(task))})
            return "paid"


def raised(found: list[object]) -> list[StoreError]:
    """The errors; all are StoreErrors."""
    errors = [one for one in found if isinstance(one, BaseException)]
    assert {type(error) for error in errors} <= {StoreError}
    return [error for error in errors if isinstance(error, StoreError)]


def test_a_full_disk_loses_no_paid_answer_and_a_larger_one_pays_none_again(small_disk, protocol):
    store = Store.open(small_disk / "store")
    store.freeze(protocol)
    study, provider = store.study("demo", protocol.digest()), Provider()

    def run(names: str = "ab") -> None:
        # As the flow does: the lock is another object's than the journals.
        with store.study("demo", protocol.digest()).lock(command="run", reserve=RESERVE):
            errors = raised(asyncio.run(provider.work([study.journal(name) for name in names])))
            if errors:
                raise errors[0]

    with pytest.raises(StoreError) as caught:
        run()
    saved = {*study.journal("a").answers(), *study.journal("b").answers()}
    assert 40 < len(saved) < len(TASKS)
    assert saved == set(provider.paid)
    assert f"no space left on device; {len(saved)} answers of this run saved. Free some space" in str(caught.value)
    assert not list(small_disk.rglob(RESERVE_FILE))

    before = len(provider.paid)
    with pytest.raises(StoreError, match="no call was sent"):
        run()
    assert len(provider.paid) == before

    subprocess.run(["mount", "-o", "remount,size=8m", small_disk], check=True)
    run()
    assert sorted(provider.paid) == sorted(TASKS)
    assert not list(small_disk.rglob(RESERVE_FILE))


def test_no_call_is_sent_when_there_is_no_room_for_the_reserve(small_disk):
    journal, provider = Journal(small_disk / "journal" / "a.jsonl"), Provider()
    errors = raised(asyncio.run(provider.work([journal])))  # the default is larger than the disk
    assert len(errors) == len(TASKS)
    expected = f"expected {RESERVE_BYTES:,} bytes of free space, kept for the answers of calls in flight"
    assert f"{expected}, found no space left on device; no call was sent" in str(errors[0])
    assert "Free some space" in str(errors[0])
    assert provider.paid == []
    assert list((small_disk / "journal").iterdir()) == []


def test_the_reserve_is_really_allocated_from_the_first_call_to_the_end_of_the_lock(study):
    path = study.path / "journal" / RESERVE_FILE
    with study.lock(command="run", reserve=3_000_000):
        journal = study.journal("a")
        assert not path.exists()
        asyncio.run(journal.sent("x", {}))
        facts = path.stat()
        assert facts.st_size == 3_000_000
        assert facts.st_blocks * 512 >= 3_000_000
        asyncio.run(journal.answered("x", {}))
        assert path.exists()
    assert not path.exists()


def test_an_error_removes_it_too_and_stays_what_it_was(study):
    path = study.path / "journal" / RESERVE_FILE

    def work() -> None:
        with study.lock():
            asyncio.run(study.journal("a").sent("y", {}))
            assert path.stat().st_size == RESERVE_BYTES
            raise StoreError("mine", expected="a", found="b", remedy="c")

    with pytest.raises(StoreError, match="mine"):
        work()
    assert not path.exists()


KILLED = """
import asyncio, os, signal, sys
from evalnoise.store.store import Store
study = Store.open(sys.argv[1]).study("demo", sys.argv[2])
with study.lock(reserve=1000000):
    asyncio.run(study.journal("a").sent("x", {}))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_it_to_the_next_one(store, study, protocol, make_protocol):
    other = make_protocol(replicates=5)
    store.freeze(other)
    path = study.path / "journal" / RESERVE_FILE
    subprocess.run([sys.executable, "-c", KILLED, store.root, protocol.digest()], check=False)
    inode = path.stat().st_ino
    with study.lock(reserve=2_000_000):
        asyncio.run(study.journal("a").sent("x", {}))
        assert (path.stat().st_ino, path.stat().st_size) == (inode, 2_000_000)
    assert not path.exists()
    subprocess.run([sys.executable, "-c", KILLED, store.root, protocol.digest()], check=False)
    assert path.exists()
    with store.study("demo", other.digest()).lock():
        assert not path.exists()


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EINVAL, None])
def test_a_file_system_that_cannot_allocate_is_written_to(tmp_path, monkeypatch, code):
    def refuse(*_: int) -> None:
        raise AttributeError if code is None else OSError(code, "no")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    reserve = Reserve(tmp_path / RESERVE_FILE, 3_000_000)
    reserve.ensure()
    facts = reserve.path.stat()
    assert facts.st_size == 3_000_000
    assert facts.st_blocks * 512 >= 3_000_000


def full_until_released(monkeypatch: pytest.MonkeyPatch, reserve: Path, code: int) -> None:
    """No room for journal lines, after half of one, for as long as the reserve is there."""
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if reserve.exists():
            real(descriptor, bytes(data)[:10])
            raise OSError(code, os.strerror(code))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_answers_go_into_the_reserve_and_calls_do_not(study, monkeypatch, outcome_rows, code):
    def work() -> None:
        with study.lock(reserve=100_000):
            first, other = study.journal("a"), study.journal("b")

            async def sent() -> None:
                await asyncio.gather(*(first.sent(str(n), {}) for n in range(4)), other.sent("o", {}))

            asyncio.run(sent())
            before = first.path.read_bytes()
            full_until_released(monkeypatch, study.path / "journal" / RESERVE_FILE, code)

            async def full() -> list[object]:
                waits = [first.sent("new", {}), *(first.answered(str(n), {"n": n}) for n in range(4)), first.sent("newer", {})]
                return await asyncio.gather(*waits, return_exceptions=True)

            found = asyncio.run(full())
            assert [type(one) for one in found] == [StoreError, *[type(None)] * 4, StoreError]
            assert first.path.read_bytes().startswith(before)
            assert Journal(first.path).answers() == {str(n): {"n": n} for n in range(4)}
            assert Journal(first.path).unanswered() == {}
            for journal in (first, other, study.journal("c")):
                with pytest.raises(StoreError, match="4 answers of this run saved"):
                    asyncio.run(journal.sent("later", {}))
            write = PartitionWrite(OUTCOMES, {"stack": "s", "condition": "c", "replicate": 0}, outcome_rows(study, "p"), "a")
            with pytest.raises(StoreError, match="room for the answers"):
                study.commit("c", [write])
            asyncio.run(other.answered("o", {"text": "late"}))
            raise found[0]

    with pytest.raises(StoreError, match="; 5 answers of this run saved"):
        work()
    with study.lock(reserve=100_000):
        monkeypatch.undo()
        assert study.journal("b").answers() == {"o": {"text": "late"}}
        asyncio.run(study.journal("a").sent("new", {}))


def test_answers_that_do_not_even_fit_into_the_reserve_are_counted_as_lost(study, monkeypatch):
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if len(data) > 1000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data)

    def work() -> None:
        with study.lock(reserve=100_000):
            journal = study.journal("a")

            async def answer() -> list[object]:
                await asyncio.gather(journal.sent("long", {}), journal.sent("short", {}))
                monkeypatch.setattr(os, "write", write)
                waits = (journal.answered("long", {"text": "x" * 2000}), journal.answered("short", {"text": "x"}))
                return await asyncio.gather(*waits, return_exceptions=True)

            lost, kept = asyncio.run(answer())
            assert (type(lost), kept) == (StoreError, None)
            assert journal.answers() == {"short": {"text": "x"}}
            raise lost

    with pytest.raises(StoreError, match="; 1 answer of this run saved, 1 lost for want of space"):
        work()
    assert study.journal("a").answers() == {"short": {"text": "x"}}
