"""Verifies candidates: chooses the executor and the checker, learns references, and returns checks as futures."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Final, Self

from schemas.errors import ExecutorError
from schemas.records import Check, ExecutorInfo, Outcome, Reason, Reference, Task
from schemas.verifier import VerifierSpec
from verifiers.bench import LaneBench
from verifiers.image.packages import packages_folder
from verifiers.registry import make_checker
from verifiers.sandbox.base import Sandbox
from verifiers.sandbox.container import ContainerSandbox
from verifiers.sandbox.engine import engine_answers, finish_removals, remove_leftovers
from verifiers.sandbox.pool import Lane, Pool, UnavailableError
from verifiers.sandbox.process import ProcessSandbox, interpreter_digest, warn_no_sandbox

_OWN_CODE: Final = frozenset({"oracle"})
_CANONICAL_FACTOR = 6
_LIMIT_FACTOR = 4
_MUTANT_SECONDS = 2.0


def resolve_executor(spec: VerifierSpec, providers: Collection[str], *, runs_code: bool = True) -> ExecutorInfo:
    """What will run the candidates; builds the image when it is missing. Raises ExecutorError.

    Args:
        spec: The stack's verifier.
        providers: Names of the providers whose code will be run.
        runs_code: Whether the checker runs anything; if not, no engine is asked for.
    """
    if not runs_code:
        return ExecutorInfo(kind="none", image_id="", rootfs="", python="")
    kind = spec.executor
    if kind == "auto":
        kind = "docker" if engine_answers() is None else "process"
    if kind == "docker":
        return _docker_executor(spec)
    foreign = sorted(set(providers) - _OWN_CODE - set(spec.unsandboxed_providers))
    if foreign:
        raise ExecutorError(
            "verifier.executor",
            expected="a container engine, because code from elsewhere is not run without a sandbox",
            found=f"executor process with provider {', '.join(foreign)} ({engine_answers() or 'Docker answers, but is not used'})",
            remedy="Start Docker; or, if you would run that code yourself, name the provider in `unsandboxed_providers`.",
        )
    warn_no_sandbox()
    rootfs = interpreter_digest()
    if spec.packages:
        rootfs = hashlib.sha256(f"{rootfs}\n{packages_folder(spec.packages)[1]}".encode()).hexdigest()
    return ExecutorInfo(kind="process", image_id="", rootfs=rootfs, python=platform.python_version())


def _docker_executor(spec: VerifierSpec) -> ExecutorInfo:
    problem = engine_answers()
    if problem is not None:
        raise ExecutorError(
            "verifier.executor",
            expected="a container engine that answers",
            found=problem,
            remedy="Start Docker, or set executor: process for code that you would run yourself.",
        )
    from verifiers.image.build import ensure_image  # noqa: PLC0415 - only those who use Docker need it

    return ensure_image(packages=spec.packages)


class Verifier:
    """Checks candidates in a pool of sandboxes. Close it, or use it as a context manager."""

    def __init__(self, spec: VerifierSpec, checker: str, info: ExecutorInfo) -> None:
        self._spec = spec
        self._checker = make_checker(checker, spec.options)
        if info.kind == "docker":
            remove_leftovers()
        workers = spec.workers or _processors()
        recycle = 1 if spec.isolation == "fresh" else spec.recycle
        self._pool = Pool(_sandbox_maker(spec, info), workers, recycle=recycle)

    def reference(self, task: Task, mutants: Iterable[str] = ()) -> Future[Reference]:
        """Run the canonical solution and known-bad candidates; then mutants, until one fails for a wrong result."""
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
        finish_removals()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _limit(self, reference: Reference) -> float:
        return max(self._checker.cpu_seconds or self._spec.cpu_seconds, _LIMIT_FACTOR * reference.cpu_seconds)

    def _reference(self, lane: Lane, task: Task, mutants: Iterable[str]) -> Reference:
        lane.separate(canonicals=True)
        cap = self._spec.inputs_cap or self._checker.inputs_cap or len(task.inputs)
        limit = _CANONICAL_FACTOR * self._spec.cpu_seconds
        offered = tuple(range(min(len(task.inputs), cap)))
        try:
            lesson = self._checker.learn(LaneBench(lane), task, offered, limit)
        except UnavailableError as error:
            return _unusable(task, Reason.INFRASTRUCTURE, str(error))
        if lesson.reason is not Reason.PASS:
            return _unusable(task, lesson.reason, lesson.detail)
        reference = Reference(
            task_id=task.id,
            outcome=Outcome.PASS,
            reason=Reason.PASS,
            outputs=lesson.outputs,
            inputs_used=lesson.inputs_used,
            n_dropped=lesson.n_dropped,
            cpu_seconds=lesson.cpu_seconds,
            input_seconds=lesson.input_seconds,
        )
        again = self._check(lane, task, reference, self._checker.canonical(task), limit)
        if again.outcome is not Outcome.PASS:
            return _unusable(task, again.reason, f"second run of the canonical solution: {again.detail}")
        known_bad = self._known_bad(lane, task, reference)
        if not known_bad:
            return _unusable(task, Reason.ACCEPTS_ANYTHING, "every candidate that is known to be bad passes")
        reference = replace(reference, known_bad=known_bad, cpu_seconds=min(reference.cpu_seconds, again.cpu_seconds))
        return replace(reference, mutant=self._failing(lane, task, reference, mutants))

    def _known_bad(self, lane: Lane, task: Task, reference: Reference) -> str:
        """What was wrong with the first known-bad candidate that failed; empty where none did."""
        for name, candidate in self._checker.known_bad(task).items():
            check = self._check(lane, task, reference, candidate, self._limit(reference))
            if check.outcome is Outcome.FAIL:
                return name
        return ""

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
        bench = LaneBench(lane)
        try:
            return bench.check(self._checker.check(bench, task, reference, candidate, limit))
        except UnavailableError as error:
            return bench.unavailable(error)


_BY_TIME = frozenset({Reason.CPU_LIMIT, Reason.WALL_LIMIT, Reason.IDLE})


def _processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _no_sandbox() -> Sandbox:
    raise ExecutorError(
        "verifier.checker",
        expected="a checker that runs no code, as it says of itself",
        found="one that asked for a sandbox",
        remedy="Let the checker's `runs_code` be true.",
    )


def _sandbox_maker(spec: VerifierSpec, info: ExecutorInfo) -> Callable[[], Sandbox]:
    if info.kind == "none":
        return _no_sandbox
    if info.kind == "docker":
        return partial(ContainerSandbox, info.image_id, spec.memory_mb)
    return partial(ProcessSandbox, spec.memory_mb, packages_folder(spec.packages)[0] if spec.packages else None)


def _unusable(task: Task, reason: Reason, detail: str) -> Reference:
    return Reference(task_id=task.id, outcome=Outcome.UNMEASURED, reason=reason, detail=detail)
