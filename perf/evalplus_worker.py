"""EvalPlus 0.3.1 behind a pipe: checks programs as its own command does. Runs in the interpreter that `make perf-setup` makes.

    .venv-perf/bin/python perf/evalplus_worker.py humaneval HumanEvalPlus.jsonl.gz --workers 2 --inputs 120

Tasks come from EvalPlus's own loader, which reads the given file; expected outputs and times from its `trusted_exec`. Each line of
standard input is a request, each line of standard output its answer, both JSON. A request names one of two verbs and the programs:

    {"verb": "check", "programs": [["HumanEval/0", "def …"], …]}

`check` is the official rule: one fork for the base inputs, one for the plus inputs. `merged` runs both in a single fork. The answer
has `seconds`, `cpu_seconds` (of the workers and their forks) and one result per program: `base` and `plus` (`pass`, `fail` or
`timeout`; under `merged` both are the same), `seconds`, `cpu_seconds`. `min_time_limit` in the request replaces the 1.0 s of 0.3.1.
The first line of output, {"ready": …}, says the version and which tasks there are.

The process holds what EvalPlus's command holds when it forks (Arrow, Transformers and all). `--small` leaves that out, which makes
its forks cheaper than users of the command ever have them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from typing import Any

from evalplus.eval import untrusted_check
from evalplus.eval._special_oracle import MBPP_OUTPUT_NOT_NONE_TASKS
from evalplus.gen.util import trusted_exec

MIN_TIME_LIMIT = 1.0
_OVERRIDES = {"humaneval": "HUMANEVAL_OVERRIDE_PATH", "mbpp": "MBPP_OVERRIDE_PATH"}
_dataset = ""
_problems: dict[str, dict[str, Any]] = {}
_truths: dict[str, dict[str, Any]] = {}
"""Base and plus inputs, outputs and times by task. Workers get them by being forked, not over a pipe."""


def load(dataset: str) -> dict[str, dict[str, Any]]:
    """The tasks, by EvalPlus's loader. In a process of its own."""
    from evalplus.data import get_human_eval_plus, get_mbpp_plus  # noqa: PLC0415 - not with --small

    return get_human_eval_plus() if dataset == "humaneval" else get_mbpp_plus()


def learn(task_id: str, cap: int | None) -> None:
    """The task's expected outputs, once."""
    if task_id in _truths:
        return
    problem = _problems[task_id]
    base = problem["base_input"][:cap]
    plus = list(problem["plus_input"])[: None if cap is None else cap - len(base)]
    not_none = _dataset == "mbpp" and problem["entry_point"] in MBPP_OUTPUT_NOT_NONE_TASKS
    program = problem["prompt"] + problem["canonical_solution"]
    truth = {}
    for name, inputs in (("base", base), ("plus", plus)):
        expected, seconds = trusted_exec(program, inputs, problem["entry_point"], record_time=True, output_not_none=not_none)
        truth[name] = (inputs, expected, seconds)
    truth["merged"] = tuple(first + second for first, second in zip(truth["base"], truth["plus"], strict=True))
    _truths[task_id] = truth


def check(item: tuple[str, str, str, float]) -> dict[str, Any]:
    """One program, in a worker."""
    verb, task_id, program, min_time_limit = item
    problem = _problems[task_id]
    begun, cpu = time.monotonic(), _cpu()
    verdicts = {}
    for part in ("base", "plus") if verb == "check" else ("merged",):
        inputs, expected, seconds = _truths[task_id][part]
        verdicts[part], _ = untrusted_check(
            _dataset,
            program,
            inputs,
            problem["entry_point"],
            expected=expected,
            atol=problem["atol"],
            ref_time=seconds,
            fast_check=True,  # as the command does without --test-details: stop at the first failure
            min_time_limit=min_time_limit,
        )
    return {
        "task": task_id,
        "base": verdicts.get("base", verdicts.get("merged")),
        "plus": verdicts.get("plus", verdicts.get("merged")),
        "seconds": time.monotonic() - begun,
        "cpu_seconds": _cpu() - cpu,
    }


def answer(request: dict[str, Any], pool: ProcessPoolExecutor) -> dict[str, Any]:
    """What a request's programs come to."""
    limit = float(request.get("min_time_limit", MIN_TIME_LIMIT))
    items = [(request["verb"], task_id, program, limit) for task_id, program in request["programs"]]
    begun = time.monotonic()
    results = list(pool.map(check, items))
    return {"seconds": time.monotonic() - begun, "cpu_seconds": sum(each["cpu_seconds"] for each in results), "results": results}


def _cpu() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main() -> None:
    global _dataset  # noqa: PLW0603 - what forks inherit
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset", choices=sorted(_OVERRIDES))
    parser.add_argument("path")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--inputs", type=int, help="inputs per task at most, base before plus; default all")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    _dataset = options.dataset
    os.environ[_OVERRIDES[_dataset]] = options.path
    if not options.small:
        import evalplus.evaluate  # noqa: F401, PLC0415 - what the command's process holds
    with multiprocessing.get_context("spawn").Pool(1) as loader:
        _problems.update(loader.apply(load, (options.dataset,)))
    print(json.dumps({"ready": True, "version": version("evalplus"), "tasks": list(_problems)}), flush=True)
    pool = None
    for line in sys.stdin:
        request = json.loads(line)
        fresh = [task_id for task_id, _ in request["programs"] if task_id not in _truths]
        if fresh or pool is None:
            if pool is not None:
                pool.shutdown()
            for task_id in fresh:
                with contextlib.redirect_stdout(sys.stderr):
                    learn(task_id, options.inputs)
            # Forked from here, as EvalPlus's own command forks its workers, once they know the tasks.
            pool = ProcessPoolExecutor(options.workers, mp_context=multiprocessing.get_context("fork"))
            list(pool.map(time.sleep, [0.05] * options.workers))
        print(json.dumps(answer(request, pool)), flush=True)
    if pool is not None:
        pool.shutdown()


if __name__ == "__main__":
    main()
