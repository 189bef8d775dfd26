"""`python -m perf.canonicals`: every canonical solution of HumanEval+ and MBPP+ through the verifier; those that do not pass."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from evalnoise.benchmarks.load import load_benchmark
from schemas.records import Outcome
from schemas.study import EvalplusBenchmark
from schemas.verifier import VerifierSpec
from verifiers.registry import checker_for
from verifiers.verify import Verifier, resolve_executor

FILES = (("humaneval", "HumanEvalPlus.jsonl.gz", 164, 5), ("mbpp", "MbppPlus.jsonl.gz", 378, 8))


def main() -> int:
    folder = Path(os.environ.get("EVALNOISE_SHARED", "../shared")) / "data" / "evalplus"
    spec = VerifierSpec()
    info = resolve_executor(spec, {"recording"} if os.environ.get("EVALNOISE_REQUIRE_DOCKER") else set())
    worse = 0
    for dataset, name, count, most in FILES:
        begun = time.monotonic()
        benchmark = load_benchmark(EvalplusBenchmark(name="evalplus", dataset=dataset, path=str(folder / name)))
        loaded = time.monotonic() - begun
        with Verifier(spec, checker_for(spec, benchmark.tasks[0].kind), info) as verifier:
            futures = [verifier.reference(task) for task in benchmark.tasks]
            references = [future.result() for future in futures]
        failed = [reference for reference in references if reference.outcome is not Outcome.PASS]
        seconds = time.monotonic() - begun - loaded
        print(
            f"{benchmark.name}: {len(benchmark.tasks)} tasks (expected {count}) loaded in {loaded:.1f} s, checked by {info.kind} in"
        )
        print(f"  {seconds:.0f} s; {len(failed)} canonical solutions cannot be a reference (at most {most}):")
        for reference in failed:
            print(f"  {reference.task_id}: {reference.reason.value} {reference.detail}")
        worse += len(failed) > most or len(benchmark.tasks) != count
    return worse


if __name__ == "__main__":
    sys.exit(main())
