"""Freezing: everything that a study depends on is resolved, pinned and digested before the first call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.canonical import sha256_text
from evalnoise.providers.keys import read_key
from evalnoise.providers.registry import identities as provider_identities
from schemas.errors import DataError, StudyError
from schemas.protocol import PinnedFile, Protocol, digested_study
from schemas.provider import AnthropicProvider, OpenAIProvider, PluginProvider
from schemas.records import Benchmark, ExecutorInfo
from schemas.study import Stack, Study
from schemas.versions import measurement_version
from tasks.answers import check_templates
from tasks.replays import pinned_recordings
from verifiers.image.packages import normalised
from verifiers.registry import checker_for, identity, runs_code
from verifiers.verify import resolve_executor


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
    check_templates(study, benchmark.tasks[0])
    _check_probes(study, benchmark)
    identities = checker_identities(study, benchmark)
    checkers = {name: str(identity["name"]) for name, identity in identities.items()}
    executors = {
        stack.name: resolve_executor(stack.verifier, _provider_names(study, stack), runs_code=runs_code(checkers[stack.name]))
        for stack in study.stacks
    }
    protocol = Protocol(
        study=digested_study(study),
        replicates=study.replicates,
        limit=limit,
        benchmark=benchmark.name,
        benchmark_sha256=benchmark.sha256,
        benchmark_files=tuple(PinnedFile(sha256=s.sha256, size=s.size) for s in benchmark.sources),
        n_tasks=len(benchmark.tasks),
        recordings=pinned_recordings(study, benchmark),
        prompts=_prompts(study),
        executors={name: _pinned_executor(info) for name, info in executors.items()},
        checkers=identities,
        measurement=measurement_version(),
        providers=provider_identities(study),
    )
    return Plan(study, protocol, protocol.digest(), benchmark, executors, checkers)


def _check_probes(study: Study, benchmark: Benchmark) -> None:
    """Raise StudyError for a probe of a task that the benchmark does not have."""
    known = {task.id for task in benchmark.tasks}
    for index, probe in enumerate(study.judge.probes.own if study.judge and study.judge.probes else ()):
        if probe.task is not None and probe.task not in known:
            raise StudyError(
                f"judge.probes.own.{index}.task",
                expected=f"the id of one of the {len(known)} tasks",
                found=repr(probe.task)[:200],
                remedy="Name a task of the benchmark (one within --limit), or leave `task` away.",
            )


def checker_identities(study: Study, benchmark: Benchmark) -> dict[str, dict[str, Any]]:
    """By stack, what the protocol pins of its checker. Raises StudyError and DataError."""
    kinds = sorted({task.kind.value for task in benchmark.tasks})
    if len(kinds) > 1:
        raise DataError(
            benchmark.name,
            expected="tasks of one kind, because a stack has one checker",
            found=f"tasks of kind {' and '.join(kinds)}",
            remedy="Put them into files, and studies, of their own.",
        )
    has = {"inputs": any(task.inputs for task in benchmark.tasks), "test": any(task.test.strip() for task in benchmark.tasks)}
    lacking = [part for part, there in has.items() if not there]
    found = {}
    for index, stack in enumerate(study.stacks):
        place = f"stacks.{index}.verifier"
        name = checker_for(stack.verifier, benchmark.tasks[0].kind, place, lacking=lacking)
        found[stack.name] = identity(name, stack.verifier.options, place)
        _check_packages(stack, f"{place}.packages", runs_code=runs_code(name, place))
    return found


def _check_packages(stack: Stack, place: str, *, runs_code: bool) -> None:
    """Raise StudyError for packages that contradict each other, or that no candidate could import."""
    packages = normalised(stack.verifier.packages, place)
    if packages and not runs_code:
        raise StudyError(
            place,
            expected="no packages, because the stack's checker runs no code",
            found=", ".join(packages),
            remedy="Take the packages away, or change the checker.",
        )


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


def check_keys(plan: Plan) -> None:
    """Raise ProviderError when a key that the run will need is not in the environment: before anything is frozen or started."""
    study = plan.study
    specs = [study.provider(stack, c) for stack in study.stacks for c in study.conditions if c.source is None]
    for spec in (*specs, *(judge.provider for judge in (study.judge.conditions if study.judge else ()))):
        if isinstance(spec, OpenAIProvider | AnthropicProvider | PluginProvider) and spec.api_key_env:
            read_key(spec.name, spec.api_key_env)
