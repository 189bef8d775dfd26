"""The facade over containers: a container killed in the middle, a host killed in the middle, many candidates, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from docker import DockerClient
from docker.models.containers import Container

from schemas.records import Check, ExecutorInfo, Outcome, Reason
from schemas.verifier import VerifierSpec
from tests.verifiers.support import HOST, function_task, reference_of
from verifiers.jobs import Job, Limits, Mode
from verifiers.sandbox import engine
from verifiers.sandbox.base import SandboxError
from verifiers.sandbox.container import ContainerSandbox
from verifiers.verify import Verifier, resolve_executor

pytestmark = pytest.mark.docker

SPEC = VerifierSpec(executor="docker", cpu_seconds=1.0, workers=2, memory_mb=128)
TASK = function_task("def f(x):\n    return x * 2\n", (1,), (2,))
BUSY = (
    "import time\ndef f(x):\n    start = time.process_time()\n    while time.process_time() - start < 0.4: pass\n    return x * 2\n"
)


@pytest.fixture(scope="module")
def info(docker_engine: str) -> ExecutorInfo:
    return resolve_executor(SPEC, ["openai"])


@pytest.fixture
def client(docker_engine: str) -> Iterator[DockerClient]:
    client = engine.connect()
    yield client
    client.close()


def mine(client: DockerClient, labels: dict[str, str] | None = None) -> list[Container]:
    """Containers of this process, or of the one with these labels."""
    filters = {"label": [f"{key}={value}" for key, value in (labels or engine.labels()).items()]}
    return client.containers.list(all=True, filters=filters)


def test_one_pool_of_two_containers(info: ExecutorInfo, client: DockerClient) -> None:
    with Verifier(SPEC, "differential", info) as verifier:
        reference = verifier.reference(TASK, ["def f(x): return x"]).result(60)
        assert (reference.outcome, reference.outputs, reference.mutant) == (Outcome.PASS, ("2", "4"), "def f(x): return x")
        candidates = [
            "def f(x): return x + x",
            "def f(x): return x ** 2",
            "def f(x): return 2.0 * x",
            "import os\nos._exit(0)",
        ] * 25
        checks = [future.result(60) for future in [verifier.check(TASK, reference, each) for each in candidates]]
        assert [check.reason.value for check in checks] == ["pass", "mismatch", "mismatch", "early-exit"] * 25
        assert 1 <= len({check.container for check in checks}) <= 2
        assert len(mine(client)) == 2
    assert mine(client) == []


def test_a_container_killed_in_the_middle(info: ExecutorInfo, client: DockerClient) -> None:
    with Verifier(SPEC, "differential", info) as verifier:
        reference = reference_of("2", "4")
        futures = [verifier.check(TASK, reference, BUSY) for _ in range(6)]
        killed: list[str] = []

        def kill() -> None:
            while not killed:
                for container in client.containers.list(filters={"label": [f"{k}={v}" for k, v in engine.labels().items()]}):
                    time.sleep(0.3)
                    container.kill()
                    killed.append(container.short_id)
                    return

        thread = threading.Thread(target=kill)
        thread.start()
        checks: list[Check] = [future.result(120) for future in futures]
        thread.join()
    assert [check.outcome for check in checks] == [Outcome.PASS] * 6
    again = [check for check in checks if check.rechecks]
    assert [(each.rechecks[0]["reason"], each.rechecks[0]["container"]) for each in again] == [("infrastructure", killed[0])]
    assert again[0].container != killed[0]
    assert mine(client) == []


def test_a_container_that_cannot_start_is_no_verdict(
    info: ExecutorInfo, client: DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verifiers.sandbox.pool._START_SECONDS", 0.5)
    broken = ExecutorInfo("docker", "sha256:" + "0" * 64, info.rootfs, info.python)
    with Verifier(SPEC, "differential", broken) as verifier:
        check = verifier.check(TASK, reference_of("2", "4"), BUSY).result(60)
        reference = verifier.reference(TASK).result(60)
    assert (check.outcome, check.reason) == (Outcome.UNMEASURED, Reason.INFRASTRUCTURE)
    assert check.rechecks[0]["reason"] == "infrastructure"
    assert (reference.outcome, reference.reason) == (Outcome.UNMEASURED, Reason.INFRASTRUCTURE)
    assert mine(client) == []


@pytest.fixture
def host(info: ExecutorInfo, client: DockerClient) -> Iterator[tuple[subprocess.Popen[str], Container]]:
    """A process that verifies an endless candidate, and its container."""
    process = subprocess.Popen([sys.executable, "-c", HOST, "docker"], stdout=subprocess.PIPE, cwd=Path.cwd(), text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    home = engine.labels()["evalnoise.owner"].partition("/")[0]
    everyone = client.containers.list(all=True, filters={"label": "evalnoise=1"})
    (container,) = [c for c in everyone if owner_of(c).startswith(f"{home}/{process.pid}/")]
    yield process, container
    process.kill()
    process.wait()


def exists(client: DockerClient, container: Container) -> bool:
    return any(each.id == container.id for each in client.containers.list(all=True))


def test_a_killed_host(host: tuple[subprocess.Popen[str], Container], client: DockerClient) -> None:
    """Its container ends by itself, and the next start removes it."""
    process, container = host
    engine.remove_leftovers(client)
    container.reload()
    assert container.status == "running", "the owner lives"
    process.kill()
    process.wait()
    assert container.wait(timeout=20)["StatusCode"] == 0
    assert exists(client, container)
    engine.remove_leftovers(client)
    assert not exists(client, container)


def test_an_interrupted_host(host: tuple[subprocess.Popen[str], Container], client: DockerClient) -> None:
    process, container = host
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    assert not exists(client, container)


def owner_of(container: Container) -> str:
    return container.labels["evalnoise.owner"]


def test_a_container_of_another_machine_is_left_alone_while_it_runs() -> None:
    assert not engine._is_orphan("elsewhere/7/9", "running")
    assert not engine._is_orphan("elsewhere/7/9", "created")
    assert engine._is_orphan("elsewhere/7/9", "exited")
    here = engine.labels()["evalnoise.owner"]
    assert not engine._is_orphan(here, "exited"), "the owner lives and will remove it"
    home, _, started = here.rsplit("/", 2)
    assert engine._is_orphan(f"{home}/{os.getpid()}/{int(started) + 1}", "running"), "the process id was used again"
    assert engine._is_orphan(f"{home}/4194305/1", "running")


def test_aborting_and_removing(info: ExecutorInfo, client: DockerClient) -> None:
    sandbox = ContainerSandbox(info.image_id, 128)
    failed = threading.Event()

    def run() -> None:
        with pytest.raises(SandboxError):
            sandbox.run(Job(Mode.CALLS, "while True: pass", Limits(30.0)))
        failed.set()

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    sandbox.abort()
    assert failed.wait(10)
    thread.join()
    sandbox.close()
    sandbox.close()
    assert mine(client) == []


@pytest.mark.parametrize(
    ("exit_code", "flag", "events", "out"),
    [(137, True, [], True), (137, False, ["oom"], True), (137, False, [], False), (0, False, ["oom"], False)],
)
def test_the_engine_may_hear_of_memory_after_the_end(exit_code: int, flag: bool, events: list[str], out: bool) -> None:
    class Api:
        def inspect_container(self, _: str) -> object:
            times = {"StartedAt": "2026-01-02T03:04:05.123456789Z", "FinishedAt": "2026-01-02T03:04:06.000000001Z"}
            return {"State": {"OOMKilled": flag, "ExitCode": exit_code, **times}}

        def events(self, since: str, until: int, filters: dict[str, str]) -> list[str]:
            assert (since, until) == ("2026-01-02T03:04:05.123456789Z", 1_767_323_048)
            assert filters == {"container": "c", "event": "oom"}
            return events

    sandbox = object.__new__(ContainerSandbox)
    sandbox._client = SimpleNamespace(api=Api())  # type: ignore[assignment]
    sandbox._id = "c"
    assert sandbox._out_of_memory() is out
