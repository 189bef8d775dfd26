"""Settles verdicts near a time limit: CPU gives the verdict, and what looks slow is run again, alone, before it counts.

CPU time only ever inflates under load, so the smallest of up to five runs is the closest to the truth. One run at or under the
limit settles the matter. A wall limit or an idle process may be the machine's fault, and memory that ran out an earlier
candidate's, so each must happen again, in a fresh sandbox, to count. While a candidate runs alone all others wait, so the time for
that is bounded.

Whether a candidate is run again hangs on how its run went, never on what it answered: a slow wrong answer is run again like a slow
right one, though its verdict is known. A run alone can be noticed, and so can a sandbox that was replaced for it: a candidate
that chooses to be slow would tell the next one in its place whether it was right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from schemas.records import Reason
from verifiers.jobs import Ended, Job, Judgement, Run
from verifiers.sandbox.pool import Lane

CPU_RUNS = 5
STALL_RUNS = 2
ALONE_SECONDS = 60.0
"""When a candidate has run alone for so long it is not run again; a run that has begun is finished."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The run that counts, what it says, and every run and fault before it."""

    run: Run
    judgement: Judgement
    rechecks: tuple[dict[str, object], ...]


def settle(lane: Lane, job: Job, judge: Callable[[Run], Judgement]) -> Settled:
    """Run a job until its verdict does not hang on the machine's load. Raises UnavailableError."""
    run, faults = lane.run(job)
    history = [dict(fault.summary()) for fault in faults]
    runs = [(run, _with_limit(run, judge(run)))]
    alone = replace(job, limits=replace(job.limits, alone=True))
    while _is_open(runs):
        run, faults = lane.run_alone(alone)
        history.extend(dict(fault.summary()) for fault in faults)
        runs.append((run, _with_limit(run, judge(run))))
    certain = (pair for pair in runs if pair[1].reason not in _SUSPECT)  # the first one; what is run after it says no more
    kept = next(certain, None) or min(runs, key=lambda pair: pair[0].cpu_seconds)
    history.extend(dict(run.summary(judgement.reason)) for run, judgement in runs if run is not kept[0])
    return Settled(*kept, tuple(history))


def _with_limit(run: Run, judgement: Judgement) -> Judgement:
    """A right answer that took more CPU than the limit is over the limit; a wrong one is wrong at any speed."""
    if judgement.reason is Reason.PASS and run.cpu_seconds > run.cpu_limit_seconds:
        judgement = replace(judgement, reason=Reason.CPU_LIMIT, outputs=())
    if judgement.reason is Reason.CPU_LIMIT and not judgement.detail:
        return replace(judgement, detail="over the CPU limit")
    return judgement


_SUSPECT = frozenset({Reason.WALL_LIMIT, Reason.IDLE, Reason.OOM, Reason.CPU_LIMIT})
"""What another run may clear a candidate of."""
_STALLED = frozenset({Ended.WALL, Ended.IDLE, Ended.OOM})


def _is_open(runs: list[tuple[Run, Judgement]]) -> bool:
    """Whether there must be a further run."""
    stalls = sum(_has_stalled(run) for run, _ in runs)
    if not all(_has_stalled(run) or _is_slow(run, judgement) for run, judgement in runs):
        return False
    if any(run.ended in (Ended.CPU, Ended.SIGNALLED) and not _has_stalled(run) for run, _ in runs):
        return False  # stopped at twice the limit or more: load does not double CPU time
    waited = sum(run.wall_seconds for run, _ in runs[1:])
    return stalls < STALL_RUNS and len(runs) < CPU_RUNS and waited < ALONE_SECONDS


def _has_stalled(run: Run) -> bool:
    return run.oom or run.ended in _STALLED


def _is_slow(run: Run, judgement: Judgement) -> bool:
    """Whether it took more than its limit, or one of its inputs more than that has."""
    return run.cpu_seconds > run.cpu_limit_seconds or judgement.limit_share > 1
