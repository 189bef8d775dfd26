"""The bench of one candidate: which sandboxes later candidates get."""

from __future__ import annotations

import pytest

from schemas.records import Reason
from tests.verifiers.support import ran, starter
from verifiers.bench import LaneBench
from verifiers.jobs import Job, Judgement, Limits, Mode, Run
from verifiers.sandbox.pool import Lane, Pool

JOB = Job(Mode.CALLS, "", Limits(1.0))
SLOW = ran(cpu_seconds=1.5)


@pytest.mark.parametrize(
    ("script", "started"),
    [
        ([ran(), ran()], 1),
        # A right answer that took too long is run again alone, in a second sandbox: who is there knows that it was right.
        ([SLOW, ran(), ran()], 3),
    ],
)
def test_a_sandbox_of_a_further_run_serves_no_later_candidate(script: list[Run], started: int) -> None:
    log: list[str] = []
    pool = Pool(starter(script, log), 1)

    def check(lane: Lane) -> Reason:
        return LaneBench(lane).run(JOB, lambda _: Judgement(Reason.PASS))[0].reason

    try:
        assert [pool.submit(check).result(10) for _ in range(2)] == [Reason.PASS, Reason.PASS]
        assert sum(line.startswith("start") for line in log) == started
    finally:
        pool.close()


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
