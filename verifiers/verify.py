"""Verifies candidates: chooses the executor and the checker, learns references, and returns checks as futures."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Final, Self

from schemas.errors import ExecutorError, StudyError
from schemas.records import Check, ExecutorInfo, Outcome, Reason, Reference, Task, TaskKind
from schemas.study import VerifierSpec
from verifiers.checkers import Checker
from verifiers.differential import Differential
from verifiers.jobs import Judgement
from verifiers.output import Expression, Published
from verifiers.sandbox.base import Sandbox
from verifiers.sandbox.container import ContainerSandbox
from verifiers.sandbox.engine import engine_answers, remove_leftovers
from verifiers.sandbox.pool import Lane, Pool, UnavailableError
from verifiers.sandbox.process import ProcessSandbox, interpreter_digest, warn_no_sandbox
from verifiers.settle import Settled, settle

CHECKERS: Final[dict[str, Callable[[], Checker]]] = {
    "differential": Differential,
    "expression": Expression,
    "published": Published,
}
"""By the name that a study gives them."""
_KINDS: Final = {"differential": TaskKind.FUNCTION, "expression": TaskKind.OUTPUT, "published": TaskKind.OUTPUT}
_OWN_CODE: Final = frozenset({"oracle"})
_CANONICAL_FACTOR = 6
_LIMIT_FACTOR = 4
_MUTANT_SECONDS = 2.0


def checker_for(spec: VerifierSpec, kind: TaskKind) -> str:
    """The checker that the study names, or the one that `auto` means for this kind of task. Raises StudyError."""
    if spec.checker == "auto":
        return "differential" if kind is TaskKind.FUNCTION else "expression"
    if _KINDS[spec.checker] is not kind:
        fitting = ", ".join(name for name, of in _KINDS.items() if of is kind)
        raise StudyError(
            "stacks, verifier.checker",
            expected=f"a checker for tasks of kind {kind.value} ({fitting}, or auto)",
            found=spec.checker,
            remedy="Change the stack's checker, or the benchmark.",
        )
    return spec.checker


def resolve_executor(spec: VerifierSpec, providers: Collection[str]) -> ExecutorInfo:
    """What will run the candidates; builds the image when it is missing. Raises ExecutorError.

    Args:
        spec: The stack's verifier.
        providers: Names of the providers whose code will be run.
    """
    kind = spec.executor
    if kind == "auto":
        kind = "docker" if engine_answers() is None else "process"
    if kind == "docker":
        return _docker_executor()
    foreign = sorted(set(providers) - _OWN_CODE - set(spec.unsandboxed_providers))
    if foreign:
        raise ExecutorError(
            "verifier.executor",
            expected="a container engine, because code from elsewhere is not run without a sandbox",
            found=f"executor process with provider {', '.join(foreign)} ({engine_answers() or 'Docker answers, but is not used'})",
            remedy="Start Docker; or, if you would run that code yourself, name the provider in `unsandboxed_providers`.",
        )
    warn_no_sandbox()
    return ExecutorInfo(kind="process", image_id="", rootfs=interpreter_digest(), python=platform.python_version())


def _docker_executor() -> ExecutorInfo:
    problem = engine_answers()
    if problem is not None:
        raise ExecutorError(
            "verifier.executor",
            expected="a container engine that answers",
            found=problem,
            remedy="Start Docker, or set executor: process for code that you would run yourself.",
        )
    from verifiers.image.build import ensure_image  # noqa: PLC0415 - only those who use Docker need it

    return ensure_image()


class Verifier:
    """Checks candidates in a pool of sandboxes. Close it, or use it as a context manager."""

    def __init__(self, spec: VerifierSpec, checker: str, info: ExecutorInfo) -> None:
        self._spec = spec
        self._checker = CHECKERS[checker]()
        if info.kind == "docker":
            remove_leftovers()
        workers = spec.workers or _processors()
        self._pool = Pool(lambda: _sandbox(spec, info), workers)

    def reference(self, task: Task, mutants: Iterable[str] = ()) -> Future[Reference]:
        """Run the canonical solution; then mutants, one after another, until one fails for a wrong result."""
        return self._pool.submit(lambda lane: self._reference(lane, task, mutants))

    def check(self, task: Task, reference: Reference, candidate: str) -> Future[Check]:
        """Verify one candidate against the reference."""

        def work(lane: Lane) -> Check:
            lane.separate(canonicals=False)
            return self._check(lane, task, reference, candidate, self._limit(reference))

        return self._pool.submit(work)

    def close(self) -> None:
        """Stop, and remove every sandbox."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _limit(self, reference: Reference) -> float:
        return max(self._checker.cpu_seconds or self._spec.cpu_seconds, _LIMIT_FACTOR * reference.cpu_seconds)

    def _reference(self, lane: Lane, task: Task, mutants: Iterable[str]) -> Reference:
        lane.separate(canonicals=True)
        used = tuple(range(min(len(task.inputs), self._spec.inputs_cap)))
        inputs = tuple(task.inputs[index] for index in used)
        job = self._checker.reference_job(task, inputs, _CANONICAL_FACTOR * self._spec.cpu_seconds)
        try:
            first = settle(lane, job, lambda run: self._checker.reference_outputs(run, len(inputs)))
        except UnavailableError as error:
            return _unusable(task, Judgement(Reason.INFRASTRUCTURE, str(error)))
        if first.judgement.reason is not Reason.PASS:
            return _unusable(task, first.judgement)
        reference = Reference(
            task_id=task.id,
            outcome=Outcome.PASS,
            reason=Reason.PASS,
            outputs=first.judgement.outputs,
            inputs_used=used,
            cpu_seconds=first.run.cpu_seconds,
        )
        again = self._check(lane, task, reference, self._checker.canonical(task), job.limits.cpu_seconds)
        if again.outcome is not Outcome.PASS:
            return _unusable(task, Judgement(again.reason, f"second run of the canonical solution: {again.detail}"))
        cpu = min(first.run.cpu_seconds, again.cpu_seconds)
        return Reference(
            task_id=task.id,
            outcome=Outcome.PASS,
            reason=Reason.PASS,
            outputs=reference.outputs,
            inputs_used=used,
            mutant=self._failing(lane, task, reference, mutants),
            cpu_seconds=cpu,
        )

    def _failing(self, lane: Lane, task: Task, reference: Reference, mutants: Iterable[str]) -> str:
        """The first mutant that gives a wrong result, else the first that fails in another way that time does not decide."""
        limit = min(self._limit(reference), max(_MUTANT_SECONDS, _LIMIT_FACTOR * reference.cpu_seconds))
        fallback = ""
        for mutant in mutants:
            check = self._check(lane, task, reference, mutant, limit)
            if check.reason is Reason.MISMATCH:
                return mutant
            if check.outcome is Outcome.FAIL and check.reason not in _BY_TIME:
                fallback = fallback or mutant
        return fallback

    def _check(self, lane: Lane, task: Task, reference: Reference, candidate: str, limit: float) -> Check:
        if reference.outcome is not Outcome.PASS:
            detail = f"the canonical solution cannot serve: {reference.reason.value}"
            return Check(Outcome.UNMEASURED, Reason.REFERENCE_UNUSABLE, detail)
        job = self._checker.job(task, reference, candidate, limit)
        try:
            settled = settle(lane, job, lambda run: self._checker.judge(task, reference, run))
        except UnavailableError as error:
            rechecks = tuple(dict(fault.summary()) for fault in error.faults)
            return Check(Outcome.UNMEASURED, Reason.INFRASTRUCTURE, "no sandbox could run it", rechecks=rechecks)
        return _check(settled)


_BY_TIME = frozenset({Reason.CPU_LIMIT, Reason.WALL_LIMIT, Reason.IDLE})


def _processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _sandbox(spec: VerifierSpec, info: ExecutorInfo) -> Sandbox:
    if info.kind == "docker":
        return ContainerSandbox(info.image_id, spec.memory_mb)
    return ProcessSandbox(spec.memory_mb)


def _unusable(task: Task, judgement: Judgement) -> Reference:
    return Reference(task_id=task.id, outcome=Outcome.UNMEASURED, reason=judgement.reason, detail=judgement.detail)


def _check(settled: Settled) -> Check:
    run, judgement = settled.run, settled.judgement
    return Check(
        outcome=Outcome.PASS if judgement.reason is Reason.PASS else Outcome.FAIL,
        reason=judgement.reason,
        detail=judgement.detail,
        wall_seconds=run.wall_seconds,
        cpu_seconds=run.cpu_seconds,
        peak_memory_bytes=run.peak_bytes,
        cpu_limit_seconds=run.cpu_limit_seconds,
        load=run.load,
        container=run.container,
        rechecks=settled.rechecks,
    )
