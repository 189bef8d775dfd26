"""The pool: when sandboxes are replaced, what happens when they fail, and that closing ends everything."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import pytest

from tests.verifiers.support import PLAIN, FakeSandbox, ran, starter
from verifiers.jobs import Ended, Job, Limits, Mode, Run
from verifiers.sandbox import pool as pool_module
from verifiers.sandbox.base import SandboxError
from verifiers.sandbox.pool import ClosedError, Lane, Pool, UnavailableError

JOB = Job(Mode.CALLS, "", Limits(1.0))


def run_job(lane: Lane) -> str:
    return lane.run(JOB)[0].container


def containers(script: list[Run | str], jobs: int, *, recycle: int = 200) -> list[str]:
    pool = Pool(starter(script, []), 1, recycle=recycle)
    try:
        return [pool.submit(run_job).result(10) for _ in range(jobs)]
    finally:
        pool.close()


def test_a_sandbox_is_reused_until_its_count_is_full() -> None:
    assert containers([PLAIN] * 5, 5, recycle=2) == ["s0", "s0", "s1", "s1", "s2"]


@pytest.mark.parametrize(
    "abnormal",
    [
        ran(ended=Ended.CPU),
        ran(ended=Ended.WALL),
        ran(ended=Ended.IDLE),
        ran(ended=Ended.SIGNALLED),
        ran(ended=Ended.OVERFLOW),
        ran(oom=True),
        ran(leftovers=("sysv",)),
    ],
    ids=lambda run: f"{run.ended} {run.oom} {run.leftovers}",
)
def test_a_sandbox_that_may_have_suffered_is_replaced(abnormal: Run) -> None:
    assert containers([abnormal, PLAIN], 2) == ["s0", "s1"]


def test_an_early_exit_is_nothing_abnormal() -> None:
    assert containers([ran(status=3), PLAIN], 2) == ["s0", "s0"]


def test_a_job_is_run_again_in_a_new_sandbox() -> None:
    log: list[str] = []
    pool = Pool(starter(["gone", "gone again", PLAIN], log), 1)
    run, faults = pool.submit(lambda lane: lane.run(JOB)).result(10)
    pool.close()
    assert run.container == "s2"
    assert [(fault.detail, fault.container) for fault in faults] == [("gone", "s0"), ("gone again", "s1")]
    assert [line for line in log if "abort" not in line] == [f"{verb} s{n}" for n in range(3) for verb in ("start", "run", "close")]


def test_after_three_attempts_it_is_given_up() -> None:
    pool = Pool(starter(["a", "b", "c", PLAIN], []), 1)
    with pytest.raises(UnavailableError) as caught:
        pool.submit(run_job).result(10)
    assert [fault.detail for fault in caught.value.faults] == ["a", "b", "c"]
    assert pool.submit(run_job).result(10) == "s3"
    pool.close()


def test_an_engine_that_comes_back_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_FIRST_PAUSE", 0.001)
    refused = [3]
    good = starter([PLAIN], [])

    def start() -> object:
        if refused[0]:
            refused[0] -= 1
            raise SandboxError("engine away")
        return good()

    pool = Pool(start, 1)  # type: ignore[arg-type]
    run, faults = pool.submit(lambda lane: lane.run(JOB)).result(10)
    pool.close()
    assert run.container == "s0"
    assert [fault.detail for fault in faults] == ["no sandbox: engine away"] * 3


def test_an_engine_that_stays_away_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_FIRST_PAUSE", 0.02)
    monkeypatch.setattr(pool_module, "_START_SECONDS", 0.1)

    def start() -> object:
        raise SandboxError("engine away")

    pool = Pool(start, 1)  # type: ignore[arg-type]
    counts = []
    for _ in range(2):
        with pytest.raises(UnavailableError) as caught:
            pool.submit(run_job).result(10)
        counts.append(len(caught.value.faults))
    pool.close()
    assert counts[0] > 1
    assert counts[1] == 1


def test_an_exception_of_the_work_is_the_futures() -> None:
    pool = Pool(starter([PLAIN], []), 1)
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda _: 1 / 0).result(10)
    assert pool.submit(run_job).result(10) == "s0"
    pool.close()


def test_closing_stops_what_runs_and_cancels_what_waits() -> None:
    started = threading.Event()
    aborted = threading.Event()
    closed: list[int] = []

    class Endless:
        name = "endless"

        def run(self, _: Job) -> Run:
            started.set()
            assert aborted.wait(10)
            raise SandboxError("aborted")

        def abort(self) -> None:
            aborted.set()

        def close(self) -> None:
            closed.append(1)

    pool = Pool(Endless, 1)
    runs, waits = pool.submit(run_job), pool.submit(run_job)
    assert started.wait(10)
    pool.close()
    assert closed == [1]
    with pytest.raises(ClosedError):
        runs.result(0)
    with pytest.raises(CancelledError):
        waits.result(0)
    with pytest.raises(ClosedError):
        pool.submit(run_job)
    pool.close()


def test_a_sandbox_whose_work_broke_off_is_not_used_again() -> None:
    """Its answer may still come, and would be the next job's."""
    log: list[str] = []

    class Broken(FakeSandbox):
        def run(self, _: Job) -> Run:
            raise MemoryError

    begin = starter([PLAIN], log)
    made: list[FakeSandbox] = []

    def start() -> FakeSandbox:
        made.append(begin() if made else Broken([], log, "broken"))
        return made[-1]

    pool = Pool(start, 1)
    try:
        with pytest.raises(MemoryError):
            pool.submit(lambda lane: lane.run(JOB)).result(10)
        run, faults = pool.submit(lambda lane: lane.run(JOB)).result(10)
    finally:
        pool.close()
    assert (run.container, faults) == ("s0", ())
    assert log[0] == "close broken"


def test_the_next_sandbox_is_prepared_while_a_job_runs_where_each_has_its_own() -> None:
    log: list[str] = []
    pool = Pool(starter([PLAIN] * 3, log), 1, recycle=1)
    assert [pool.submit(run_job).result(10) for _ in range(3)] == ["s0", "s1", "s2"]
    pool.close()
    assert sorted(line for line in log if line.startswith("run")) == ["run s0", "run s1", "run s2"]
    assert log.index("start s1") < log.index("close s0")
    started, closed = ([line.split()[1] for line in log if line.startswith(verb)] for verb in ("start", "close"))
    assert started == ["s0", "s1", "s2", "s3"]
    assert sorted(closed) == started, "the one that nobody took is gone too"


def test_none_is_prepared_beside_a_job_alone_or_where_sandboxes_are_kept() -> None:
    for recycle, alone in ((1, True), (2, False)):
        log: list[str] = []
        pool = Pool(starter([PLAIN], log), 1, recycle=recycle)
        pool.submit(lambda lane, alone=alone: lane.run_alone(JOB) if alone else lane.run(JOB)).result(10)
        pool.close()
        assert [line for line in log if "abort" not in line] == ["start s0", "run s0", "close s0"]


def test_a_preparation_that_failed_is_told_and_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_FIRST_PAUSE", 0.001)
    good, calls = starter([PLAIN] * 2, []), iter([False, True, False, True])

    def start() -> FakeSandbox:
        if next(calls):
            raise SandboxError("engine away")
        return good()

    pool = Pool(start, 1, recycle=1)
    runs = [pool.submit(lambda lane: lane.run(JOB)).result(10) for _ in range(2)]
    pool.close()
    assert [(run.container, [fault.detail for fault in faults]) for run, faults in runs] == [
        ("s0", []),
        ("s1", ["no sandbox: engine away"]),
    ]
