"""A candidate that is proved wrong while it runs is stopped; what it shows meanwhile is nothing to judge by."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from schemas.records import Outcome, Reason
from schemas.verifier import VerifierSpec
from tests.verifiers.support import function_task, reference_of
from verifiers.image.build import ensure_image
from verifiers.jobs import Ended, Job, Limits, Mode
from verifiers.sandbox.base import Sandbox
from verifiers.sandbox.container import ContainerSandbox
from verifiers.sandbox.process import ProcessSandbox
from verifiers.supervisor.wires import STOP
from verifiers.verify import Verifier, resolve_executor

WRONG_THEN_ENDLESS = "def f(x):\n    while x == 2: pass\n    return x * 3\n"
RIGHT_THEN_ENDLESS = "def f(x):\n    while x == 2: pass\n    return x * 2\n"
TAKEN_BACK = """
import os, time
os.write(3, b"o1\\n")
time.sleep(0.5)
os.lseek(3, 0, 0)
os.write(3, b"o2\\no4\\n.\\n")
time.sleep(60)
"""
# The file shrinks and grows while it is shown.
SHAKEN = """
import os, time
end = time.monotonic() + 1.5
while time.monotonic() < end:
    os.pwrite(3, b"o2\\n" * 100_000, 0)
    os.ftruncate(3, 3)
os.ftruncate(3, 0)
def f(x): return x
"""
HONEST = Job(Mode.CALLS, "def f(x): return x * 2", Limits(5.0), "f", ("[1]", "[2]"))
TASK, REFERENCE = function_task("def f(x): return x * 2", (1,), (2,)), reference_of("2", "4")


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.docker), "process"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    if request.param == "docker":
        request.getfixturevalue("docker_engine")
        sandbox: Sandbox = ContainerSandbox(ensure_image().image_id, 128)
    else:
        sandbox = ProcessSandbox(512)
    yield sandbox
    sandbox.close()


def job(source: str, cpu_seconds: float = 20.0) -> Job:
    return Job(Mode.CALLS, source, Limits(cpu_seconds), "f", ("[1]", "[2]"))


def assert_in_step(sandbox: Sandbox) -> None:
    run = sandbox.run(HONEST, lambda _: True)
    assert (run.ended, run.body) == (Ended.EXITED, b"o2\no4\n.\n")


def test_it_is_stopped_once_its_output_is_enough(sandbox: Sandbox) -> None:
    seen: list[bytes] = []
    run = sandbox.run(job(WRONG_THEN_ENDLESS), lambda output: seen.append(output) or output == b"o3\n")  # type: ignore[func-returns-value]
    assert (run.ended, run.body, seen) == (Ended.STOPPED, b"o3\n", [b"o3\n"])
    assert run.cpu_seconds < 10
    assert_in_step(sandbox)


def test_it_runs_on_while_its_output_is_not_enough(sandbox: Sandbox) -> None:
    seen: list[bytes] = []
    run = sandbox.run(job(RIGHT_THEN_ENDLESS, 0.5), lambda output: bool(seen.append(output)))  # type: ignore[func-returns-value]
    assert (run.ended, run.body, seen) == (Ended.CPU, b"o2\n", [b"o2\n"])


def test_without_a_question_nothing_is_shown(sandbox: Sandbox) -> None:
    assert sandbox.run(job(WRONG_THEN_ENDLESS, 0.3)).ended is Ended.CPU
    assert_in_step(sandbox)


def test_a_word_that_comes_too_late_means_nothing(sandbox: Sandbox) -> None:
    for _ in range(2):
        sandbox._conversation._channel.send(STOP, time.monotonic() + 10)  # type: ignore[attr-defined]
        assert_in_step(sandbox)


def test_a_file_that_shrinks_while_it_is_shown(sandbox: Sandbox) -> None:
    sizes: list[int] = []
    run = sandbox.run(job(SHAKEN), lambda output: bool(sizes.append(len(output))))  # type: ignore[func-returns-value]
    assert (run.ended, run.body) == (Ended.EXITED, b"o1\no2\n.\n")
    assert sizes
    assert sizes == sorted(sizes)
    assert_in_step(sandbox)


@pytest.mark.docker
def test_verdicts(docker_engine: str) -> None:
    spec = VerifierSpec(executor="docker", workers=1, memory_mb=128, cpu_seconds=20)
    with Verifier(spec, "differential", resolve_executor(spec, ["recording"])) as verifier:
        first = verifier.check(TASK, REFERENCE, HONEST.source).result(60)
        wrong, taken_back, last = (
            verifier.check(TASK, REFERENCE, source).result(60) for source in (WRONG_THEN_ENDLESS, TAKEN_BACK, HONEST.source)
        )
    assert (wrong.reason, wrong.detail, wrong.rechecks) == (Reason.MISMATCH, "input 0: expected 2, found 3", ())
    assert taken_back.outcome is Outcome.FAIL, "it cannot change what it has shown"
    assert taken_back.reason in (Reason.MISMATCH, Reason.PROTOCOL_ERROR)
    assert first.container == wrong.container == taken_back.container == last.container, "a container that was fit stays"
