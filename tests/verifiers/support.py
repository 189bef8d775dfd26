"""Tasks, runs and sandboxes for the verifier's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from schemas.records import Outcome, Reason, Reference, Task, TaskKind
from schemas.values import encode
from verifiers.jobs import Ended, Job, Run
from verifiers.sandbox.base import SandboxError

HOST = """
import sys, warnings
warnings.simplefilter("ignore")
from schemas.verifier import VerifierSpec
from tests.verifiers.support import function_task, reference_of
from verifiers.verify import Verifier, resolve_executor
spec = VerifierSpec(executor=sys.argv[1], cpu_seconds=60, workers=1)
verifier = Verifier(spec, "differential", resolve_executor(spec, []))
verifier.check(function_task("", (1,)), reference_of("1"), "def f(x):\\n    while True: pass").add_done_callback(print)
import time
while not (verifier._pool._lanes[0]._sandbox and verifier._pool._lanes[0]._sandbox.name is not None):
    time.sleep(0.01)
time.sleep(0.5)
print("running", flush=True)
time.sleep(60)
"""
"""A program that verifies an endless candidate: argument docker or process. It says `running` and waits."""
PLAIN = Run(Ended.EXITED, 0, b"", 0.01, 0.02, 10, oom=False, cpu_limit_seconds=1.0)


def function_task(reference: str, *arguments: tuple[object, ...], code: str = "", atol: float = 0.0) -> Task:
    """A task whose entry point is `f`."""
    inputs = tuple(encode(list(each)) for each in arguments)
    return Task("t", TaskKind.FUNCTION, "", reference, "f", code=code, inputs=inputs, atol=atol)


def output_task(code: str, output: str) -> Task:
    """A task that asks for an output of `f`."""
    return Task("t", TaskKind.OUTPUT, "", output, "f", code=code)


def reference_of(*outputs: str) -> Reference:
    """A usable reference with these wire-encoded outputs."""
    return Reference("t", Outcome.PASS, Reason.PASS, outputs=outputs, inputs_used=tuple(range(len(outputs))))


def ran(body: str | bytes = b"", **changes: object) -> Run:
    """A run that wrote this."""
    return replace(PLAIN, body=body.encode() if isinstance(body, str) else body, **changes)  # type: ignore[arg-type]


class FakeSandbox:
    """Answers jobs from a script: a run, or the text of a fault."""

    def __init__(self, script: Iterable[Run | str], log: list[str], name: str = "fake") -> None:
        self.name = name
        self._script = iter(script)
        self._log = log

    def run(self, _: Job) -> Run:
        step = next(self._script)
        self._log.append(f"run {self.name}")
        if isinstance(step, str):
            raise SandboxError(step, container=self.name)
        return replace(step, container=self.name)

    def abort(self) -> None:
        self._log.append(f"abort {self.name}")

    def close(self) -> None:
        self._log.append(f"close {self.name}")


def starter(script: Iterable[Run | str], log: list[str]) -> Callable[[], FakeSandbox]:
    """A function that starts sandboxes s0, s1, … which share one script."""
    steps = iter(script)
    started: list[str] = []

    def start() -> FakeSandbox:
        started.append(f"s{len(started)}")
        log.append(f"start {started[-1]}")
        return FakeSandbox(steps, log, started[-1])

    return start
