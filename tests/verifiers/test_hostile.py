"""Hostile candidates in real containers: the right verdict, a supervisor that lives, and nothing left for the next candidate."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from schemas.records import Outcome, Reason, Reference, Task, TaskKind
from schemas.values import decode, encode
from schemas.verifier import VerifierSpec
from tests.verifiers.hostile import ATTACKS, HONEST, INPUTS, Attack
from tests.verifiers.programs import BRIM, SIZE
from tests.verifiers.support import function_task, reference_of
from verifiers.differential import Differential
from verifiers.image.build import ensure_image
from verifiers.jobs import Ended, Job, Limits, Mode, Run
from verifiers.sandbox.base import SandboxError
from verifiers.sandbox.container import ContainerSandbox
from verifiers.verify import Verifier, resolve_executor

pytestmark = pytest.mark.docker

MEMORY_MB = 128
TASK = Task("t", TaskKind.FUNCTION, "", HONEST, "f", inputs=tuple(encode([x]) for x in INPUTS))
REFERENCE = Reference(
    "t", Outcome.PASS, Reason.PASS, outputs=tuple(encode(x * 2 + 1) for x in INPUTS), inputs_used=tuple(range(len(INPUTS)))
)
CHECKER = Differential()
# What the next candidate finds: other processes' ids, files in every place that candidates may write, System V objects.
PROBE = """
import os
def f():
    processes = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]
    sysv = [sum(1 for _ in open(f"/proc/sysvipc/{kind}")) - 1 for kind in ("shm", "sem", "msg")]
    return processes, os.listdir("/tmp"), os.listdir("/tmp/job"), os.listdir("/dev/mqueue"), sysv
"""
CLEAN = ([], ["job"], [], [], [0, 0, 0])


class Room:
    """A container that is replaced only when it must be, so that cleaning up is the supervisor's own work."""

    def __init__(self, image: str) -> None:
        self._image = image
        self.sandbox = ContainerSandbox(image, MEMORY_MB)

    def run(self, source: str) -> Run:
        return self.sandbox.run(CHECKER.job(TASK, REFERENCE, source, 0.3))

    def probe(self) -> object:
        run = self.sandbox.run(Job(Mode.CALLS, PROBE, Limits(5.0), "f", ("[]",)))
        (_, text), _ = run.lines()
        return decode(text)

    def replace(self) -> None:
        self.sandbox.close()
        self.sandbox = ContainerSandbox(self._image, MEMORY_MB)


@pytest.fixture(scope="module")
def image(docker_engine: str) -> str:
    return ensure_image().image_id


@pytest.fixture(scope="module")
def room(image: str) -> Iterator[Room]:
    room = Room(image)
    yield room
    room.sandbox.close()


def check(room: Room, attack: Attack) -> None:
    run = room.run(attack.source)
    judgement = CHECKER.judge(TASK, REFERENCE, run)
    assert judgement.reason.value in attack.reasons.split(), (attack.name, judgement, run)
    assert bool(run.leftovers) == attack.leftovers, (attack.name, run.leftovers)
    try:
        found = None if run.ended is Ended.OOM else room.probe()
    except SandboxError:
        found = None
    if found is None:
        assert run.oom, "only a container that ran out of memory may be gone"
        room.replace()
        return
    if attack.leftovers:
        assert found != CLEAN
        room.replace()
    else:
        assert found == CLEAN, attack.name
    honest = CHECKER.judge(TASK, REFERENCE, room.run(HONEST))
    assert honest.reason is Reason.PASS, (attack.name, honest)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attack(room: Room, attack: Attack) -> None:
    check(room, attack)


def test_attacks_in_two_containers_at_once(image: str) -> None:
    rooms = [Room(image), Room(image)]
    quick = [attack for attack in ATTACKS if not {"cpu-limit", "idle", "oom"} & set(attack.reasons.split())]
    try:
        with ThreadPoolExecutor(2) as threads:
            halves = [
                threads.submit(lambda room, part: [check(room, a) for a in part], room, quick[i::2]) for i, room in enumerate(rooms)
            ]
            for half in halves:
                half.result()
    finally:
        for room in rooms:
            room.sandbox.close()


# Says that what it needs is not there, if the container's memory has been used up by others; else it passes.
HUNGRY = "def f(x):\n    hog = bytes(70 * 2**20)\n    return x * 2 + 1\n"
FILLED = HUNGRY.replace("    hog", "    import os\n    os.write(os.memfd_create('hoard'), bytes(2**20) * 40)\n    hog")


def test_memory_that_ran_out_must_run_out_again_in_a_fresh_container(docker_engine: str) -> None:
    spec = VerifierSpec(executor="docker", workers=1, memory_mb=MEMORY_MB)
    with Verifier(spec, "differential", resolve_executor(spec, ["recording"])) as verifier:
        before = verifier.check(TASK, REFERENCE, HUNGRY).result(60)
        out = verifier.check(TASK, REFERENCE, FILLED).result(60)
        after = verifier.check(TASK, REFERENCE, HUNGRY).result(60)
    assert (before.reason, out.reason, after.reason) == (Reason.PASS, Reason.OOM, Reason.PASS)
    assert [each["reason"] for each in out.rechecks] == ["oom"]
    assert len({before.container, *(each["container"] for each in out.rechecks), out.container}) == 2
    assert after.container not in {before.container, out.container}


# Asks for names that are not there: the kernel keeps each in the account of the container, for no process.
NAMES = """
import os
def f(x):
    for n in range(@):
        try: os.stat("/opt/evalnoise/%0200d" % n)
        except OSError: pass
    return x * 2 + 1
"""


def test_memory_of_the_kernel_that_outlives_a_candidate_ends_the_container(docker_engine: str) -> None:
    spec = VerifierSpec(executor="docker", workers=1, memory_mb=256)
    with Verifier(spec, "differential", resolve_executor(spec, ["recording"])) as verifier:
        few = verifier.check(TASK, REFERENCE, NAMES.replace("@", "1_000")).result(60)
        many = verifier.check(TASK, REFERENCE, NAMES.replace("@", "50_000")).result(60)
        after = verifier.check(TASK, REFERENCE, HONEST).result(60)
    assert (few.reason, few.leftovers) == (Reason.PASS, ())
    assert (many.reason, many.leftovers) == (Reason.PASS, ("memory",))
    assert few.container == many.container != after.container
    assert (after.reason, after.leftovers) == (Reason.PASS, ())


# Leaves so little memory that the supervisor cannot clean up, and then none is left but itself to be killed.
FULL = f"""
import os, struct
PROGRAM, SIZE = {BRIM!r}, {SIZE}
def f(x):
    there = "/sys/fs/cgroup/memory/memory.%s_in_bytes"
    limit, used = (int(open(there % name).read()) for name in ("limit", "usage"))
    size = (limit - used + 1024 * SPARE) // 4096 * 4096
    program = PROGRAM.replace(struct.pack("<Q", SIZE), struct.pack("<Q", size))
    program = program.replace(struct.pack("<Q", SIZE // 4096), struct.pack("<Q", size // 4096))
    file = os.memfd_create("p")
    os.write(file, program)
    os.mkdir("a")
    open("a/b", "w").close()
    os.write(3, b"o%d\\n" % (x * 2 + 1))
    os.execve(file, ["p"], {{}})
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the candidate is a program for it")
def test_a_container_that_is_full_to_the_brim_is_the_candidates_doing(image: str) -> None:
    """A run of it ended in `infrastructure` now and then: the engine hears of the end first, and then of the memory."""
    if not Path("/sys/fs/cgroup/memory").exists():
        pytest.skip("the candidate looks at control groups of version 1")
    ends = set()
    for spare in (*range(1_180, 1_260, 16), 3_000):
        sandbox = ContainerSandbox(image, 96)
        try:
            run = sandbox.run(CHECKER.job(TASK, REFERENCE, f"SPARE = {spare}\n{FULL}", 1.0))
        finally:
            sandbox.close()
        ends.add((CHECKER.judge(TASK, REFERENCE, run).reason, run.ended is Ended.OOM or "sysv" in run.leftovers))
    assert (Reason.OOM, True) in ends
    assert ends <= {(Reason.OOM, True), (Reason.EARLY_EXIT, True)}


# Marks bytes as packets, so that a short read somewhere on their way drops some, and puts frames of its own behind them.
PACKETS = """
import fcntl, json, os, struct, time

def frame(letter, data):
    return struct.pack(">cI", letter, len(data)) + data

def f(x):
    facts = {"ended": "exited", "status": 0, "cpu": 0.01, "wall": 0.02, "peak": 10**7, "oom": False, "leftovers": []}
    end, answer = frame(b"h", json.dumps(facts).encode()), b"o1\\n.\\n"
    flags = fcntl.fcntl(3, fcntl.F_GETFL)
    os.write(3, (answer + b"A" * 32672)[:32672])
    if OWN_PIPE:
        read_end, write_end = os.pipe2(os.O_DIRECT)
        os.write(write_end, b"B" * 4096)
        os.splice(read_end, 3, 4096)
    else:
        fcntl.fcntl(3, fcntl.F_SETFL, flags | os.O_DIRECT)
        os.write(3, b"B" * 4096)
        fcntl.fcntl(3, fcntl.F_SETFL, flags)
    os.write(3, b"C" * 20000)
    time.sleep(0.3)
    os.write(3, b"D" * 4000 + end + (frame(b"o", answer) + end) * 7)
    os._exit(0)
"""


@pytest.mark.docker
@pytest.mark.parametrize("own_pipe", [False, True])
def test_packets_do_not_forge_the_answers_of_later_jobs(docker_engine: str, own_pipe: bool) -> None:
    spec = VerifierSpec(executor="docker", workers=1)
    task, reference = function_task("def f(x): return x", (1,)), reference_of("1")
    wrong, right = "def f(x):\n    return 'wrong'\n", "def f(x):\n    return 1\n"
    with Verifier(spec, "differential", resolve_executor(spec, ["recording"])) as verifier:
        verifier.check(task, reference, f"OWN_PIPE = {own_pipe}\n{PACKETS}").result(120)
        for _ in range(3):
            assert verifier.check(task, reference, wrong).result(120).reason is Reason.MISMATCH
            after = verifier.check(task, reference, right).result(120)
            assert (after.reason, after.rechecks) == (Reason.PASS, ())
