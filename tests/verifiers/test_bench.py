"""The bench of one candidate: which sandboxes later candidates get."""

from __future__ import annotations

from schemas.records import Reason
from tests.verifiers.support import ran, starter
from verifiers.bench import LaneBench
from verifiers.jobs import Job, Judgement, Limits, Mode
from verifiers.sandbox.pool import Lane, Pool

JOB = Job(Mode.CALLS, "", Limits(1.0))
SLOW = ran(cpu_seconds=1.5)


def test_a_further_run_leaves_the_same_sandbox_whatever_the_answer() -> None:
    logs = []
    for reason in (Reason.PASS, Reason.MISMATCH):
        log: list[str] = []
        pool = Pool(starter([SLOW, ran(), ran()], log), 1)

        def check(lane: Lane, reason: Reason = reason) -> Reason:
            return LaneBench(lane).run(JOB, lambda _: Judgement(reason))[0].reason

        try:
            assert [pool.submit(check).result(10) for _ in range(2)] == [reason] * 2
        finally:
            pool.close()
        logs.append(log)
    assert logs[0][:6] == logs[1][:6] == ["start s0", "run s0", "close s0", "start s1", "run s1", "run s1"]


def test_forget() -> None:
    log: list[str] = []
    pool = Pool(starter([ran(), ran()], log), 1)

    def check(lane: Lane) -> None:
        bench = LaneBench(lane)
        for _ in range(2):
            bench.run(JOB, lambda _: Judgement(Reason.PASS))
            bench.forget()

    try:
        pool.submit(check).result(10)
        assert log == ["start s0", "run s0", "close s0", "start s1", "run s1", "close s1"]
    finally:
        pool.close()
