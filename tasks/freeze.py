"""Freezing: everything that a study depends on is resolved, pinned and digested before the first call."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.canonical import sha256_text
from schemas.errors import DataError, StudyError
from schemas.protocol import PinnedFile, Protocol, digested_study
from schemas.records import Benchmark, ExecutorInfo
from schemas.study import RecordingProvider, Stack, Study
from schemas.versions import measurement_version
from verifiers.verify import checker_for, resolve_executor


@dataclass(frozen=True, slots=True)
class Plan:
    """A study with all that it depends on at hand, and the protocol that pins it."""

    study: Study
    protocol: Protocol
    digest: str
    """The protocol's name."""
    benchmark: Benchmark
    """Cut to the limit."""
    executors: dict[str, ExecutorInfo]
    """By stack."""
    checkers: dict[str, str]
    """By stack."""


def resolve(study: Study, *, limit: int | None = None, replicates: int | None = None) -> Plan:
    """Load and pin everything; nothing is written and nothing is called.

    Raises StudyError, DataError and ExecutorError.
    """
    if replicates is not None:
        study = _with_replicates(study, replicates)
    benchmark = load_benchmark(study.benchmark)
    if limit is not None and limit >= len(benchmark.tasks):
        limit = None
    if limit is not None:
        benchmark = replace(benchmark, tasks=benchmark.tasks[:limit])
    if not benchmark.tasks:
        raise DataError(benchmark.name, expected="at least one task", found="none", remedy="Check the file and --limit.")
    executors = {stack.name: resolve_executor(stack.verifier, _provider_names(study, stack)) for stack in study.stacks}
    kind = benchmark.tasks[0].kind
    checkers = {stack.name: checker_for(stack.verifier, kind) for stack in study.stacks}
    protocol = Protocol(
        study=digested_study(study),
        replicates=study.replicates,
        limit=limit,
        benchmark=benchmark.name,
        benchmark_sha256=benchmark.sha256,
        benchmark_files=tuple(PinnedFile(sha256=s.sha256, size=s.size) for s in benchmark.sources),
        n_tasks=len(benchmark.tasks),
        recordings=_recordings(study),
        prompts=_prompts(study),
        executors={name: _pinned_executor(info) for name, info in executors.items()},
        checkers=checkers,
        measurement=measurement_version(),
    )
    return Plan(study, protocol, protocol.digest(), benchmark, executors, checkers)


def _with_replicates(study: Study, replicates: int) -> Study:
    try:
        return Study.model_validate(study.model_dump(exclude_unset=True) | {"replicates": replicates})
    except ValidationError as error:
        raise StudyError(
            "--replicates",
            expected="a number of replicates that the study allows",
            found=str(replicates),
            remedy=error.errors()[0]["msg"] + ".",
        ) from None


def _provider_names(study: Study, stack: Stack) -> set[str]:
    return {study.provider(stack, condition).name for condition in study.conditions}


def _pinned_executor(info: ExecutorInfo) -> dict[str, str]:
    return {"kind": info.kind, "rootfs": info.rootfs, "python": info.python}


def _prompts(study: Study) -> dict[str, str]:
    prompts = {stack.name: sha256_text(stack.prompt) for stack in study.stacks}
    if study.judge:
        prompts |= {f"judge/{condition.name}": sha256_text(condition.prompt) for condition in study.judge.conditions}
    return prompts


def _recordings(study: Study) -> dict[str, PinnedFile]:
    specs: dict[str, Any] = {
        f"{stack.name}/{condition.name}": study.provider(stack, condition)
        for stack in study.stacks
        for condition in study.conditions
    }
    files = {spec.path for spec in specs.values() if isinstance(spec, RecordingProvider)}
    pinned = {path: _pin(Path(path)) for path in sorted(files)}
    return {name: pinned[spec.path] for name, spec in specs.items() if isinstance(spec, RecordingProvider)}


def _pin(path: Path) -> PinnedFile:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            str(path),
            expected="a readable file of recorded generations",
            found=error.strerror or str(error),
            remedy="Give the recording's path in the study (relative paths start at the working directory). CRUXEval's recorded "
            "generations are public: repository crux-eval/crux-eval.github.io on GitHub; set EVALNOISE_SHARED to a folder that "
            "holds them as data/cruxeval/, or name the file with --set.",
        ) from None
    return PinnedFile(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
