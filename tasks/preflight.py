"""Preflight: every canonical solution through the verifier, once per protocol and stack, before any call."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from evalnoise.mutants import mutants
from evalnoise.store.partition import PartitionWrite
from schemas.errors import DataError, ExecutorError
from schemas.records import Outcome, Reason, Reference, Task
from schemas.tables import PREFLIGHT
from tasks.workshop import Workshop


def shard_name(stack: str) -> str:
    """Name of the stack's preflight shard."""
    return f"preflight~{stack}"


def run_preflight(shop: Workshop, stack: str) -> None:
    """Seal the stack's rows of `preflight`. Raises DataError when no canonical solution passes."""
    shop.progress.stage(shard_name(stack))
    verifier = shop.verifier(stack)
    wanted = _needs_mutants(shop, stack)
    futures: list[tuple[Task, Future[Reference]]] = [
        (task, verifier.reference(task, mutants(task) if wanted else ())) for task in shop.plan.benchmark.tasks
    ]
    references = [(task, future.result()) for task, future in futures]
    _refuse_broken_verifier(stack, references)
    if not any(reference.outcome is Outcome.PASS for _, reference in references):
        task, first = references[0]
        raise DataError(
            f"benchmark {shop.plan.benchmark.name}, stack {stack}",
            expected="canonical solutions that pass their own check",
            found=f"none that does; {task.id}: {first.reason.value} {first.detail}".rstrip(),
            remedy="The verifier or the data is broken: run `evalnoise doctor`, then look at `evalnoise sql 'from preflight'`.",
        )
    rows = [_row(shop, stack, task, reference) for task, reference in references]
    shop.study_store.commit(shard_name(stack), [PartitionWrite(PREFLIGHT, {}, rows, stack)])


def _refuse_broken_verifier(stack: str, references: list[tuple[Task, Reference]]) -> None:
    broken = [(task, reference) for task, reference in references if reference.reason is Reason.INFRASTRUCTURE]
    if broken:
        task, first = broken[0]
        raise ExecutorError(
            f"preflight of stack {stack}",
            expected="the verifier to run every canonical solution",
            found=f"{len(broken)} that it could not run; {task.id}: {first.detail}",
            remedy="Nothing is sealed: mend the engine (`evalnoise doctor`) and run the same command again.",
        )


def _needs_mutants(shop: Workshop, stack: str) -> bool:
    study = shop.plan.study
    return any(study.provider(shop.stack(stack), condition).name == "oracle" for condition in study.conditions)


def _row(shop: Workshop, stack: str, task: Task, reference: Reference) -> dict[str, Any]:
    return {
        **shop.lineage(task),
        "stack": stack,
        "outcome": reference.outcome.value,
        "reason": reference.reason.value,
        "detail": reference.detail,
        "outputs": list(reference.outputs),
        "inputs_used": list(reference.inputs_used),
        "n_dropped": reference.n_dropped,
        "mutant": reference.mutant,
        "known_bad": reference.known_bad,
        "cpu_seconds": reference.cpu_seconds,
        "input_seconds": list(reference.input_seconds),
    }
