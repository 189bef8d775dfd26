"""`python -m perf.canonicals`: every canonical solution of HumanEval+ and MBPP+ through `evalplus` and `differential`.

Prints those that cannot be a reference, each with its reason, and how many inputs were dropped of each task.
"""

from __future__ import annotations

import sys
import time

from evalnoise.benchmarks.load import load_benchmark
from perf.peer import data_file
from schemas.records import Outcome
from schemas.study import EvalplusBenchmark
from schemas.verifier import VerifierSpec
from verifiers.verify import Verifier, resolve_executor

COUNTS = {"humaneval": 164, "mbpp": 378}
MOST_UNUSABLE = {
    ("evalplus", "humaneval"): 0,
    ("evalplus", "mbpp"): 0,
    ("differential", "humaneval"): 0,
    ("differential", "mbpp"): 3,
}


def main() -> int:
    spec = VerifierSpec(executor="docker")
    info = resolve_executor(spec, {"recording"})
    worse = 0
    for dataset, count in COUNTS.items():
        begun = time.monotonic()
        spec_of_data = EvalplusBenchmark.model_validate({"name": "evalplus", "dataset": dataset, "path": str(data_file(dataset))})
        benchmark = load_benchmark(spec_of_data)
        tasks = benchmark.tasks
        print(
            f"{benchmark.name}: {len(tasks)} tasks (expected {count}) with {sum(len(task.inputs) for task in tasks)} inputs, "
            f"loaded in {time.monotonic() - begun:.1f} s"
        )
        worse += len(tasks) != count
        for checker in ("evalplus", "differential"):
            begun = time.monotonic()
            with Verifier(spec, checker, info) as verifier:
                references = [future.result() for future in [verifier.reference(task) for task in tasks]]
            failed = [reference for reference in references if reference.outcome is not Outcome.PASS]
            most = MOST_UNUSABLE[checker, dataset]
            print(
                f"  {checker}, in {time.monotonic() - begun:.0f} s: {len(tasks) - len(failed)} of {len(tasks)} can be a reference "
                f"(at most {most} cannot)"
            )
            for reference in failed:
                print(f"    {reference.task_id}: {reference.reason.value} {reference.detail}")
            for reference in references:
                if reference.n_dropped:
                    print(f"    {reference.task_id}: {reference.n_dropped} inputs dropped, {len(reference.inputs_used)} used")
            worse += len(failed) > most
    return worse


if __name__ == "__main__":
    sys.exit(main())
