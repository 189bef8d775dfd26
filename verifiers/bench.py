"""The bench of one candidate: its runs in the sandboxes of a lane, settled and kept, and the check that they come to."""

from __future__ import annotations

from collections.abc import Callable

from schemas.records import Check, Outcome, Reason
from verifiers.jobs import Job, Judgement, Run
from verifiers.sandbox.pool import Lane, UnavailableError
from verifiers.settle import Settled, settle


class LaneBench:
    """A `verifiers.checkers.Bench` on a lane."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._settled: list[Settled] = []
        self._tests: list[Settled] = []

    def run(self, job: Job, judge: Callable[[Run], Judgement]) -> tuple[Judgement, Run]:
        """Run a job in the candidate's sandbox. Raises UnavailableError."""
        settled = settle(self._lane, job, judge)
        self._settled.append(settled)
        return settled.judgement, settled.run

    def run_tests(self, job: Job, judge: Callable[[Run], Judgement]) -> tuple[Judgement, Run]:
        """Run a job in the sandbox for tests. Raises UnavailableError."""
        settled = settle(self._lane.tests, job, judge)
        self._tests.append(settled)
        return settled.judgement, settled.run

    def forget(self) -> None:
        """No later candidate gets the sandbox."""
        self._lane.discard()

    def check(self, judgement: Judgement) -> Check:
        """The judgement with what all runs took: times are summed, memory and share of the limit are the largest."""
        runs = [settled.run for settled in self._settled]
        last = next(iter((*runs[::-1], *(settled.run for settled in self._tests[::-1]))), None)
        return Check(
            outcome=Outcome.PASS if judgement.reason is Reason.PASS else Outcome.FAIL,
            reason=judgement.reason,
            detail=judgement.detail,
            wall_seconds=sum(settled.run.wall_seconds for settled in (*self._settled, *self._tests)),
            cpu_seconds=sum(run.cpu_seconds for run in runs),
            peak_memory_bytes=max((run.peak_bytes for run in runs), default=0),
            cpu_limit_seconds=sum(run.cpu_limit_seconds for run in runs),
            load=last.load if last else 0.0,
            container=last.container if last else "",
            rechecks=tuple(recheck for settled in (*self._settled, *self._tests) for recheck in settled.rechecks),
            limit_share=max([judgement.limit_share, *(run.cpu_seconds / run.cpu_limit_seconds for run in runs)]),
            leftovers=tuple(dict.fromkeys(name for run in runs for name in run.leftovers)),
            base_outcome=judgement.base_outcome,
            mutated_inputs=judgement.mutated_inputs,
        )

    def unavailable(self, error: UnavailableError) -> Check:
        """The check of a candidate that could not be run."""
        earlier = [recheck for settled in (*self._settled, *self._tests) for recheck in settled.rechecks]
        rechecks = (*earlier, *(dict(fault.summary()) for fault in error.faults))
        return Check(Outcome.UNMEASURED, Reason.INFRASTRUCTURE, "no sandbox could run it", rechecks=rechecks)
