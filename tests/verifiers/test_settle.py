"""Verdicts near a limit: what is run again, and which run counts."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from schemas.records import Reason
from tests.verifiers.support import PLAIN, ran, starter
from verifiers.jobs import Ended, Job, Judgement, Limits, Mode, Run
from verifiers.sandbox.pool import Lane, Pool
from verifiers.settle import Settled, settle

JOB = Job(Mode.CALLS, "", Limits(1.0))


def cpu(seconds: float) -> Run:
    return ran(cpu_seconds=seconds)


def settled(script: list[Run | str], log: list[str], reason: Reason = Reason.PASS) -> Settled:
    with_reason = lambda run: Judgement(reason if run.ended is Ended.EXITED else Reason(f"{run.ended}-limit"))  # noqa: E731
    pool = Pool(starter(script, log), 1)
    try:
        return pool.submit(lambda lane: settle(lane, JOB, with_reason)).result(10)
    finally:
        pool.close()


@pytest.fixture
def log() -> Iterator[list[str]]:
    log: list[str] = []
    yield log
    starts = [line.split()[1] for line in log if line.startswith("start")]
    assert [line.split()[1] for line in log if line.startswith("close")] == starts, "every sandbox is closed, once"


@pytest.mark.parametrize(
    ("seconds", "counts", "reason", "rechecks"),
    [
        ([0.2], 0.2, "pass", []),
        ([1.0], 1.0, "pass", []),
        ([1.4, 0.9], 0.9, "pass", [1.4]),
        ([1.9, 1.2, 1.1, 0.8], 0.8, "pass", [1.9, 1.2, 1.1]),
        ([1.3, 1.5, 1.2, 1.6, 1.4], 1.2, "cpu-limit", [1.3, 1.5, 1.6, 1.4]),
    ],
)
def test_the_smallest_cpu_of_five_counts(
    seconds: list[float], counts: float, reason: str, rechecks: list[float], log: list[str]
) -> None:
    result = settled([cpu(each) for each in seconds], log)
    assert result.run.cpu_seconds == counts
    assert result.judgement.reason == reason
    assert [each["cpu_seconds"] for each in result.rechecks] == rechecks
    assert log.count("run s0") == 1, "a recheck has a sandbox of its own"
    assert sum(line.startswith("run") for line in log) == len(seconds)


STALL = ran(ended=Ended.WALL)
OUT = ran(ended=Ended.SIGNALLED, status=9, oom=True)


@pytest.mark.parametrize(
    "script",
    [
        [cpu(0.9)],
        [cpu(1.9), cpu(0.9)],
        [cpu(1.3), cpu(1.5), cpu(1.2), cpu(1.6), cpu(1.4)],
        [STALL, STALL],
        [STALL, PLAIN],
        [OUT, OUT],
        [OUT, PLAIN],
        [cpu(1.5), STALL, cpu(0.7)],
        [ran(ended=Ended.CPU, cpu_seconds=2.1)],
        [ran(ended=Ended.SIGNALLED, status=27, cpu_seconds=1.5)],
        [ran(cpu_seconds=1.3, wall_seconds=31.0)] * 3,
    ],
)
def test_right_or_wrong_a_candidate_is_run_as_often(script: list[Run | str], log: list[str]) -> None:
    """Else a slow candidate could tell the next one, which notices a new sandbox, whether it was right."""
    seen = []
    for reason in (Reason.PASS, Reason.MISMATCH, Reason.OUTPUT_LIMIT):
        pool = Pool(starter(script, log), 1)
        try:
            result = pool.submit(lambda lane, reason=reason: settle(lane, JOB, lambda _: Judgement(reason))).result(10)
        finally:
            pool.close()
        if reason is not Reason.PASS:
            assert result.judgement.reason is reason, "wrong at any speed"
            assert result.run.cpu_seconds == script[0].cpu_seconds, "the first run settles it"  # type: ignore[union-attr]
        assert len(result.rechecks) == len(script) - 1
        seen.append(list(log))
        log.clear()
    assert seen[0] == seen[1] == seen[2]
    assert sum(line.startswith("run") for line in seen[0]) == len(script)


def test_an_input_over_its_own_limit_is_slow_in_a_quick_run(log: list[str]) -> None:
    pool = Pool(starter([PLAIN] * 5, log), 1)
    shares = iter([1.2, 1.1, 1.0])
    try:
        result = pool.submit(lambda lane: settle(lane, JOB, lambda _: Judgement(Reason.MISMATCH, limit_share=next(shares)))).result(
            10
        )
    finally:
        pool.close()
    assert (result.judgement.limit_share, len(result.rechecks)) == (1.2, 2)


def test_an_error_for_want_of_memory_is_final(log: list[str]) -> None:
    """No other process has any part in it: the kernel refuses what nobody could have, and kills where memory ran out."""
    result = settled([PLAIN], log, Reason.OOM)
    assert (result.judgement.reason, result.rechecks) == (Reason.OOM, ())


def test_twice_the_limit_is_final(log: list[str]) -> None:
    result = settled([ran(ended=Ended.CPU, cpu_seconds=2.01)], log)
    assert result.judgement.reason is Reason.CPU_LIMIT
    assert result.rechecks == ()


def test_a_stall_counts_when_it_happens_twice(log: list[str]) -> None:
    stall = ran(ended=Ended.WALL)
    assert settled([stall, stall], log).judgement.reason is Reason.WALL_LIMIT
    log.clear()
    result = settled([stall, PLAIN], log)
    assert result.judgement.reason is Reason.PASS
    assert [each["reason"] for each in result.rechecks] == ["wall-limit"]


def test_memory_that_ran_out_counts_when_it_runs_out_twice(log: list[str]) -> None:
    out = ran(ended=Ended.SIGNALLED, status=9, oom=True)
    judge = lambda run: Judgement(Reason.OOM if run.oom else Reason.PASS)  # noqa: E731
    for script, reason, earlier in (([out, out], Reason.OOM, ["oom"]), ([out, PLAIN], Reason.PASS, ["oom"])):
        pool = Pool(starter(script, log), 1)
        try:
            result = pool.submit(lambda lane: settle(lane, JOB, judge)).result(10)
        finally:
            pool.close()
        assert result.judgement.reason is reason
        assert [each["reason"] for each in result.rechecks] == earlier
        assert [line for line in log if line.startswith("run")] == ["run s0", "run s1"]
        log.clear()


def test_others_do_not_wait_for_one_candidate_without_end(log: list[str]) -> None:
    slow = ran(cpu_seconds=1.3, wall_seconds=31.0)
    result = settled([slow, slow, slow], log)
    assert result.judgement.reason is Reason.CPU_LIMIT
    assert len(result.rechecks) == 2


def test_a_run_alone_has_half_the_wall(log: list[str]) -> None:
    assert (Limits(20.0).wall_seconds, Limits(20.0, alone=True).wall_seconds) == (120.0, 60.0)


def test_a_stall_between_slow_runs(log: list[str]) -> None:
    result = settled([cpu(1.5), ran(ended=Ended.WALL, cpu_seconds=0.4), cpu(0.7)], log)
    assert result.judgement.reason is Reason.PASS
    assert [each["reason"] for each in result.rechecks] == ["cpu-limit", "wall-limit"]


def test_rechecks_are_alone() -> None:
    """While a candidate is rechecked no other job of the pool runs."""
    running = threading.Semaphore(0)
    finish = threading.Event()
    active: list[int] = []
    seen: list[int] = []

    class Sandbox:
        name = ""

        def run(self, job: Job) -> Run:
            active.append(1)
            try:
                if job.source == "other":
                    running.release()
                    finish.wait(10)
                    return PLAIN
                seen.append(len(active))
                return cpu(1.5) if len(seen) == 1 else cpu(0.5)
            finally:
                active.pop()

        def abort(self) -> None:
            return None

        def close(self) -> None:
            return None

    other = Job(Mode.CALLS, "other", Limits(1.0))
    pool = Pool(Sandbox, 2)
    try:
        first = pool.submit(lambda lane: lane.run(other))
        assert running.acquire(timeout=10)
        slow = pool.submit(lambda lane: settle(lane, JOB, lambda _: Judgement(Reason.PASS)))
        threading.Timer(0.2, finish.set).start()
        assert slow.result(10).run.cpu_seconds == 0.5
        first.result(10)
    finally:
        pool.close()
    assert seen == [2, 1]


def test_faults_are_part_of_the_record(log: list[str]) -> None:
    result = settled(["the container ended", PLAIN], log)
    assert result.judgement.reason is Reason.PASS
    assert [(each["reason"], each["detail"], each["container"]) for each in result.rechecks] == [
        ("infrastructure", "the container ended", "s0")
    ]


def test_lane_is_what_work_gets(log: list[str]) -> None:
    pool = Pool(starter([PLAIN], log), 1)
    assert isinstance(pool.submit(lambda lane: lane).result(10), Lane)
    pool.close()
