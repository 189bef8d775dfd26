"""A candidate's process knows its own job alone: nothing of the jobs before it is in its memory or in its frames."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evalnoise.benchmarks.load import load_benchmark
from schemas.records import Outcome, Reason
from schemas.study import StarterBenchmark
from schemas.values import decode, encode
from schemas.verifier import VerifierSpec
from tests.verifiers.support import function_task, reference_of
from tests.verifiers.thieves import SCANNER, WALKER, thief
from verifiers.image.build import ensure_image
from verifiers.jobs import Ended, Job, Limits, Mode
from verifiers.sandbox import process
from verifiers.sandbox.base import Sandbox, SandboxError
from verifiers.sandbox.container import ContainerSandbox
from verifiers.verify import Verifier, resolve_executor

LIMITS = Limits(10.0)
PLANTED = Job(
    Mode.CALLS,
    "# MARKER-source\ndef f(x):\n    open('MARKER-file', 'w').close()\n    return x + 'MARKER-' + 'output' * 1\n",
    LIMITS,
    "f",
    ('["MARKER-input"]', encode(["x" * 40_000 + " MARKER-long"])),
    preamble="# MARKER-preamble\n",
)
ANSWERED = Job(Mode.EXPRESSION, "# MARKER-code", LIMITS, "f", answer="'MARKER-answer'")


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.docker), "process"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    if request.param == "docker":
        request.getfixturevalue("docker_engine")
        sandbox: Sandbox = ContainerSandbox(ensure_image().image_id, 256)
    else:
        sandbox = process.ProcessSandbox(512)
    yield sandbox
    sandbox.close()


def value(sandbox: Sandbox, source: str) -> object:
    run = sandbox.run(Job(Mode.CALLS, source, LIMITS, "f", ("[]",)))
    lines = list(run.lines())
    assert [letter for letter, _ in lines] == ["o", "."], run
    return decode(lines[0][1])


def plant(sandbox: Sandbox) -> None:
    for _ in range(3):
        assert [letter for letter, _ in sandbox.run(PLANTED).lines()] == ["o", "o", "."]
        assert [letter for letter, _ in sandbox.run(ANSWERED).lines()] == ["o", "."]


def test_the_scanner_finds_what_is_there(sandbox: Sandbox) -> None:
    assert "MARKER-own" in value(sandbox, SCANNER + "\nown = 'MARKER-own'\n")  # type: ignore[operator]
    assert value(sandbox, WALKER + "\nown = 'MARKER-own'\n") != []


def test_memory_holds_nothing_of_earlier_jobs(sandbox: Sandbox) -> None:
    plant(sandbox)
    assert value(sandbox, SCANNER) == []


def test_frames_reach_nothing_of_earlier_jobs(sandbox: Sandbox) -> None:
    plant(sandbox)
    found, names = value(sandbox, WALKER)  # type: ignore[misc]
    assert found == []
    assert not {"serve", "_run"} & set(names), "the supervisor's frames are not below a candidate's"


@pytest.mark.docker
def test_a_thief_never_passes(docker_engine: str) -> None:
    """After preflight and a sibling that is right, in the container where the sibling ran."""
    tasks = load_benchmark(StarterBenchmark(name="starter")).tasks
    spec = VerifierSpec(executor="docker", workers=1)
    with Verifier(spec, "differential", resolve_executor(spec, ["recording"])) as verifier:
        references = [verifier.reference(task).result(60) for task in tasks]
        siblings = [verifier.check(t, r, t.reference) for t, r in zip(tasks, references, strict=True)]
        assert {future.result(60).outcome for future in siblings} == {Outcome.PASS}
        thieves = [verifier.check(t, r, thief(t.entry_point)) for t, r in zip(tasks, references, strict=True)]
        checks = [future.result(60) for future in thieves]
    assert [check.outcome for check in checks].count(Outcome.PASS) == 0
    assert {check.detail.split(" (")[0] for check in checks} == {"LookupError: nothing found"}
    assert {check.container for check in checks} == {siblings[-1].result().container}, "the test is of one container"


@pytest.mark.docker
def test_candidates_run_in_other_containers_than_references(docker_engine: str) -> None:
    task = function_task("def f(x): return x", (1,))
    spec = VerifierSpec(executor="docker", workers=1)
    with Verifier(spec, "differential", resolve_executor(spec, [])) as verifier:
        containers = []
        for source in ("def f(x): return 1", "def f(x): return 1 if __import__('os').uname() else 2"):
            references = [verifier.reference(task), verifier.reference(task)]
            assert {future.result(60).outcome for future in references} == {Outcome.PASS}
            containers += [verifier.check(task, reference_of("1"), source).result(60).container for _ in range(2)]
    assert containers[0] == containers[1] != containers[2] == containers[3]


def test_output_is_capped_in_all(sandbox: Sandbox) -> None:
    """The candidate that floods fails for it, at any size; it cannot make itself a fault of the machine."""
    flood = "import os\nb = b'o' + b'1' * 65000 + b'\\n'\nfor _ in range(1200): os.write(3, b)\nos._exit(0)\n"
    run = sandbox.run(Job(Mode.CALLS, flood, Limits(10.0, total_bytes=2**25), "f"))
    assert (run.ended, len(run.body)) == (Ended.OVERFLOW, 2**25)
    short = "import os\nos.write(3, b'x' * 5000)\nos._exit(0)\n"
    run = sandbox.run(Job(Mode.CALLS, short, Limits(10.0, total_bytes=4999), "f"))
    assert (run.ended, len(run.body)) == (Ended.OVERFLOW, 4999)
    run = sandbox.run(Job(Mode.CALLS, short, Limits(10.0, total_bytes=5000), "f"))
    assert (run.ended, len(run.body)) == (Ended.EXITED, 5000)


def test_many_inputs_do_not_raise_the_cap_without_end() -> None:
    task = function_task("def f(x): return x", *[(n,) for n in range(2000)])
    spec = VerifierSpec(executor="process", inputs_cap=2000, workers=1, cpu_seconds=5)
    flood = "import os\nfor _ in range(1050): os.write(3, b'x' * 65000)\nos._exit(0)\n"
    with pytest.warns(UserWarning, match="no sandbox"):
        info = resolve_executor(spec, [])
    with Verifier(spec, "differential", info) as verifier:
        check = verifier.check(task, reference_of(*map(str, range(2000))), flood).result(60)
    assert (check.outcome, check.reason) == (Outcome.FAIL, Reason.OUTPUT_LIMIT)
    assert check.detail == "more than 33554432 bytes written in all"


def test_a_job_that_its_process_cannot_read_is_a_fault(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that is no job ends the sandbox; it is nobody's verdict."""
    monkeypatch.setattr(Job, "body", lambda _: b"{" * 100_000)
    with pytest.raises(SandboxError, match="JSONDecodeError"):
        sandbox.run(PLANTED)
    with pytest.raises(SandboxError):
        sandbox.run(PLANTED)
