"""EvalPlus as a peer: starts `perf/evalplus_worker.py` in its own interpreter and asks it for verdicts."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from perf.measure import ROOT

PYTHON = ROOT / ".venv-perf" / "bin" / "python"
FILES = {"humaneval": "HumanEvalPlus.jsonl.gz", "mbpp": "MbppPlus.jsonl.gz"}


def data_file(dataset: str) -> Path:
    """The local file of EvalPlus's data."""
    path = Path(os.environ.get("EVALNOISE_SHARED", "../shared")).resolve() / "data" / "evalplus" / FILES[dataset]
    if not path.is_file():
        raise SystemExit(f"no file {path}: let EVALNOISE_SHARED name the folder whose data/evalplus holds it")
    return path


class Evalplus:
    """The worker process. Close it, or use it as a context manager."""

    def __init__(self, dataset: str, *, workers: int = 1, inputs: int | None = None, small: bool = False) -> None:
        if not PYTHON.exists():
            raise SystemExit("EvalPlus is not installed: make perf-setup")
        command = [str(PYTHON), str(ROOT / "perf" / "evalplus_worker.py"), dataset, str(data_file(dataset))]
        command += ["--workers", str(workers), *(["--inputs", str(inputs)] if inputs else []), *(["--small"] if small else [])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        ready = self._line()
        self.version: str = ready["version"]
        self.tasks: list[str] = ready["tasks"]

    @property
    def pid(self) -> int:
        """Process id of the worker, whose children do the work."""
        return self._process.pid

    def ask(self, verb: str, programs: Sequence[tuple[str, str]], **more: Any) -> dict[str, Any]:
        """Send pairs of task id and program; the answer, as perf/evalplus_worker.py describes it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"verb": verb, "programs": list(programs), **more}) + "\n")
        self._process.stdin.flush()
        return self._line()

    def close(self) -> None:
        """End the worker."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"EvalPlus's worker ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer
