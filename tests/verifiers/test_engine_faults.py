"""Faults in the middle of work: killed containers, a killed engine, full folders, killed hosts. Same outcomes, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from docker import DockerClient
from docker.models.containers import Container

from schemas.records import Check, ExecutorInfo, Outcome, Reason
from schemas.values import decode
from schemas.verifier import VerifierSpec
from tests.verifiers.engines import DisposableEngine
from tests.verifiers.support import HOST, function_task, reference_of
from verifiers.jobs import Ended, Job, Limits, Mode
from verifiers.sandbox import engine
from verifiers.sandbox.container import ContainerSandbox
from verifiers.sandbox.pool import Pool
from verifiers.verify import Verifier, resolve_executor

pytestmark = pytest.mark.docker

SPEC = VerifierSpec(executor="docker", cpu_seconds=5.0, workers=2, memory_mb=128)
TASK, REFERENCE = function_task("def f(x): return x * 2", (1,), (2,)), reference_of("2", "4")
BUSY = "import time\ndef f(x):\n    end = time.process_time() + 0.1\n    while time.process_time() < end: pass\n    return x * 2\n"
SHARD = [BUSY, "def f(x): return x ** 2", BUSY, "def f(x): raise KeyError(x)", "import os\nos._exit(0)"] * 5
REASONS = ["pass", "mismatch", "pass", "exception", "early-exit"] * 5
QUICK = Job(Mode.CALLS, "def f(x): return x", Limits(5.0), "f", ("[1]",))
ENDLESS = Job(Mode.CALLS, "while True: pass", Limits(60.0), "f", ("[1]",))


@pytest.fixture(scope="module")
def info(docker_engine: str) -> ExecutorInfo:
    return resolve_executor(SPEC, ["openai"])


@pytest.fixture
def client(docker_engine: str) -> Iterator[DockerClient]:
    client = engine.connect()
    yield client
    client.close()


def containers(client: DockerClient, pid: int) -> list[Container]:
    """Containers of that process, whatever their state."""
    home = engine.labels()["evalnoise.owner"].partition("/")[0]
    everyone = client.containers.list(all=True, filters={"label": "evalnoise=1"}, ignore_removed=True)
    return [each for each in everyone if each.labels["evalnoise.owner"].startswith(f"{home}/{pid}/")]


def mine(client: DockerClient) -> list[Container]:
    return containers(client, os.getpid())


def wait_for(client: DockerClient, pid: int, count: int) -> list[Container]:
    """The process's running containers, once there are so many."""
    deadline = time.monotonic() + 30
    while len(found := [each for each in containers(client, pid) if each.status == "running"]) != count:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return found


def results(futures: list[Future[Check]]) -> tuple[list[str], list[Check]]:
    """Reasons, and the checks that had to be run again for a fault."""
    checks = [future.result(120) for future in futures]
    again = [check for check in checks if check.rechecks]
    assert {each["reason"] for check in again for each in check.rechecks} <= {"infrastructure"}
    return [check.reason.value for check in checks], again


def test_a_container_killed_in_the_middle_of_a_job(info: ExecutorInfo, client: DockerClient) -> None:
    pool = Pool(lambda: ContainerSandbox(info.image_id, 128), 1)
    try:
        future = pool.submit(lambda lane: lane.run(Job(Mode.CALLS, BUSY, Limits(5.0), "f", tuple(f"[{n}]" for n in range(10)))))
        (victim,) = wait_for(client, os.getpid(), 1)
        time.sleep(0.3)
        victim.kill()
        run, faults = future.result(60)
    finally:
        pool.close()
    assert (run.ended, run.body.count(b"o")) == (Ended.EXITED, 10)
    assert [(fault.container, bool(fault.detail)) for fault in faults] == [(victim.id[:12], True)]
    assert run.container != victim.id[:12]
    assert mine(client) == []


def test_containers_killed_in_the_middle_of_a_shard(info: ExecutorInfo, client: DockerClient) -> None:
    with Verifier(SPEC, "differential", info) as verifier:
        futures = [verifier.check(TASK, REFERENCE, source) for source in SHARD]
        futures[1].result(60)
        victims = {each.id[:12] for each in wait_for(client, os.getpid(), 2)}
        for each in mine(client):
            each.kill()
        reasons, again = results(futures)
    assert reasons == REASONS
    assert 1 <= len(again) <= 2
    assert {check.rechecks[0]["container"] for check in again} <= victims
    assert mine(client) == []


@pytest.fixture
def disposable_engine(docker_engine: str, tmp_path: Path) -> Iterator[DisposableEngine]:
    if os.environ.get("EVALNOISE_DISPOSABLE_ENGINE") != "1":
        pytest.skip("EVALNOISE_DISPOSABLE_ENGINE=1 is not set: the engine may be somebody's")
    disposable = DisposableEngine(tmp_path / "dockerd.log")
    yield disposable
    disposable.start()


def test_an_engine_killed_in_the_middle_of_a_shard(info: ExecutorInfo, disposable_engine: DisposableEngine) -> None:
    with Verifier(SPEC, "differential", info) as verifier:
        futures = [verifier.check(TASK, REFERENCE, source) for source in SHARD]
        futures[1].result(60)
        disposable_engine.kill()
        time.sleep(0.5)
        disposable_engine.start()
        reasons, again = results(futures)
    assert reasons == REASONS
    assert 1 <= len(again) <= 2, "what was in flight, and nothing else"
    client = engine.connect()
    left = mine(client)
    client.close()
    assert left == [], "the engine restarted with containers that could not be removed when it was away"


def test_an_engine_that_is_back_only_after_the_end(info: ExecutorInfo, disposable_engine: DisposableEngine) -> None:
    """Nobody runs any more who could remove the container at the next chance but the next verifier."""
    verifier = Verifier(SPEC, "differential", info)
    assert verifier.check(TASK, REFERENCE, BUSY).result(60).outcome is Outcome.PASS
    disposable_engine.kill()
    verifier.close()
    disposable_engine.start()
    client = engine.connect()
    assert len(mine(client)) == 1
    Verifier(SPEC, "differential", info).close()
    left = mine(client)
    client.close()
    assert left == []


FILL = """
def f(x):
    count = 0
    try:
        while True:
            with open(f"/tmp/job/{count}", "wb") as file: file.write(bytes(2**20))
            count += 1
    except OSError as error:
        return [error.errno, 32 < count <= 64]
"""
LOOK = "import os\ndef f(x): return os.listdir('/tmp'), os.listdir('/tmp/job')\n"


def test_a_full_scratch_folder(info: ExecutorInfo) -> None:
    sandbox = ContainerSandbox(info.image_id, 256)
    try:
        for source, expected in ((FILL, [28, True]), (LOOK, (["job"], [])), (FILL, [28, True])):
            run = sandbox.run(Job(Mode.CALLS, source, Limits(10.0), "f", ("[1]",)))
            (_, text), _ = run.lines()
            assert (decode(text), run.leftovers, run.oom) == (expected, (), False)
    finally:
        sandbox.close()


def test_a_scratch_folder_without_room_for_the_job(info: ExecutorInfo, client: DockerClient) -> None:
    """The candidate never started, so it is nobody's verdict: it runs elsewhere, and the record says so."""
    pool = Pool(lambda: ContainerSandbox(info.image_id, 128), 1)
    try:
        before, _ = pool.submit(lambda lane: lane.run(QUICK)).result(60)
        container = client.containers.get(before.container)
        full = "import itertools\nfor n in itertools.count(): open(f'/tmp/{n}', 'w').close()"
        assert b"No space left" in container.exec_run(["python3", "-c", full]).output
        run, faults = pool.submit(lambda lane: lane.run(QUICK)).result(60)
    finally:
        pool.close()
    assert [letter for letter, _ in run.lines()] == ["o", "."]
    assert [fault.container for fault in faults] == [before.container] != [run.container]
    assert "No space left" in faults[0].detail
    assert mine(client) == []


TWO_LANES = """
import time
from tests.verifiers.test_engine_faults import ENDLESS, QUICK
from verifiers.image.build import ensure_image
from verifiers.sandbox.container import ContainerSandbox
from verifiers.sandbox.pool import Pool
image = ensure_image().image_id
pool = Pool(lambda: ContainerSandbox(image, 128), 1)
pool.submit(lambda lane: (lane.run(QUICK), lane.tests.run(ENDLESS)))
time.sleep(60)
"""
"""Holds a container for candidates and one for tests."""


@pytest.mark.parametrize(("number", "removes"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGKILL, False)])
def test_a_host_that_ends(info: ExecutorInfo, client: DockerClient, number: signal.Signals, removes: bool) -> None:
    """Its containers, of both lanes, are gone at its end or at the next start; no volume is ever made."""
    volumes = {each.id for each in client.volumes.list()}
    process = subprocess.Popen([sys.executable, "-c", TWO_LANES], cwd=Path.cwd())
    try:
        both = wait_for(client, process.pid, 2)
        process.send_signal(number)
        assert process.wait(30) != 0
    finally:
        process.kill()
        process.wait()
    if not removes:
        assert [each.wait(timeout=20)["StatusCode"] for each in both] == [0, 0], "they end by themselves"
        engine.remove_leftovers(client)
    assert containers(client, process.pid) == []
    assert {each.id for each in client.volumes.list()} == volumes


def test_two_verifiers_in_one_process(info: ExecutorInfo, client: DockerClient) -> None:
    one = Verifier(SPEC, "differential", info)
    first = [one.check(TASK, REFERENCE, source) for source in SHARD[:10]]
    wait_for(client, os.getpid(), 2)
    other = Verifier(SPEC, "differential", info)
    second = [other.check(TASK, REFERENCE, source) for source in SHARD[:10]]
    wait_for(client, os.getpid(), 4)
    assert results(first) == (REASONS[:10], [])
    one.close()
    assert len(mine(client)) == 2
    assert results(second) == (REASONS[:10], [])
    other.close()
    assert mine(client) == []


def test_two_processes(info: ExecutorInfo, client: DockerClient) -> None:
    """Each start removes what dead owners left, and nothing of the living."""
    with Verifier(SPEC, "differential", info) as verifier:
        assert results([verifier.check(TASK, REFERENCE, source) for source in SHARD[:4]]) == (REASONS[:4], [])
        ours = {each.id for each in mine(client)}
        process = subprocess.Popen([sys.executable, "-c", HOST, "docker"], stdout=subprocess.PIPE, cwd=Path.cwd(), text=True)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            (theirs,) = containers(client, process.pid)
            assert {each.id for each in mine(client)} == ours
            Verifier(SPEC, "differential", info).close()
            theirs.reload()
            assert theirs.status == "running"
            assert results([verifier.check(TASK, REFERENCE, source) for source in SHARD[:4]]) == (REASONS[:4], [])
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    assert theirs.wait(timeout=20)["StatusCode"] == 0
    engine.remove_leftovers(client)
    assert containers(client, process.pid) == mine(client) == []


def test_fresh_isolation(info: ExecutorInfo, client: DockerClient) -> None:
    """A container for each candidate, whatever the one before it did."""
    leaves = "import ctypes, os\ndef f(x):\n    ctypes.CDLL(None).shmget(7, 4096, 0o1666)\n    return x * 2\n"
    finds = "import ctypes\ndef f(x):\n    return x * 2 if ctypes.CDLL(None).shmget(7, 4096, 0) < 0 else 'found'\n"
    spec = SPEC.model_copy(update={"isolation": "fresh"})
    with Verifier(spec, "differential", info) as verifier:
        futures = [verifier.check(TASK, REFERENCE, source) for source in [leaves, finds, "def f(x): return 0"] * 2]
        checks = [future.result(120) for future in futures]
        assert len(mine(client)) <= SPEC.workers, "those that wait for the next candidates"
    assert [check.reason for check in checks] == [Reason.PASS, Reason.PASS, Reason.MISMATCH] * 2
    assert len({check.container for check in checks}) == 6
    assert mine(client) == []
