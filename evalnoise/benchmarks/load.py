"""Loads the benchmark that a study names."""

from __future__ import annotations

from typing import assert_never

from evalnoise.benchmarks.cruxeval import load_cruxeval
from evalnoise.benchmarks.evalplus import load_evalplus
from evalnoise.benchmarks.jsonl import load_jsonl
from evalnoise.benchmarks.starter import load_starter
from schemas.records import Benchmark
from schemas.study import BenchmarkSpec, CruxevalBenchmark, EvalplusBenchmark, JsonlBenchmark, StarterBenchmark


def load_benchmark(spec: BenchmarkSpec) -> Benchmark:
    """The benchmark with all its tasks, in its own order.

    Raises:
        DataError: A file is missing, truncated, altered or malformed.
    """
    match spec:
        case StarterBenchmark():
            return load_starter()
        case CruxevalBenchmark():
            return load_cruxeval(spec)
        case EvalplusBenchmark():
            return load_evalplus(spec)
        case JsonlBenchmark():
            return load_jsonl(spec)
    assert_never(spec)
