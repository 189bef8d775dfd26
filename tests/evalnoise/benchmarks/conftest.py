"""Runs trusted programs in a process of their own, with a time limit on each call."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

from schemas.records import Task

_SCRIPT = """
import json, signal, sys, time
from schemas.values import decode, encode

def late(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, late)
for line in sys.stdin:
    job = json.loads(line)
    results, names, before = [], {}, time.process_time()
    try:
        exec(compile(job["program"], "program", "exec"), names)
        for text in job["inputs"]:
            signal.setitimer(signal.ITIMER_REAL, job["seconds"])
            try:
                arguments = decode(text, max_bytes=1 << 24)
                results.append(encode(names[job["entry_point"]](*arguments), max_bytes=1 << 26))
            except Exception as error:
                results.append("raised " + type(error).__name__)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        results.append("late")
    except Exception as error:
        results.append("raised " + type(error).__name__)
    print(json.dumps([results, time.process_time() - before]), flush=True)
"""

RunTrusted = Callable[..., list[tuple[list[str], float]]]


@pytest.fixture(scope="session")
def run_trusted() -> RunTrusted:
    """Runs (task, program) pairs; gives the encoded results of each, up to a late one, and its CPU seconds."""

    def run(jobs: Sequence[tuple[Task, str]], *, cap: int = 10_000, seconds: float = 5.0) -> list[tuple[list[str], float]]:
        lines = [
            json.dumps(
                {
                    "program": f"{task.code}\n{program}",
                    "entry_point": task.entry_point,
                    "inputs": task.inputs[:cap],
                    "seconds": seconds,
                }
            )
            for task, program in jobs
        ]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _SCRIPT],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=120,
            env={"PYTHONHASHSEED": "0", "TZ": "UTC", "PYTHONPATH": ":".join(sys.path)},
            check=True,
        )
        # A program may print: results are the lines that it cannot have printed by chance.
        found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]
        assert len(found) == len(jobs), done.stderr
        return [(results, cpu) for results, cpu in found]

    return run
