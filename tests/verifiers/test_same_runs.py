"""A candidate is run as often when it is wrong as when it is right, and in the same containers, so the next one learns nothing."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from schemas.records import Reason
from schemas.verifier import VerifierSpec
from tests.verifiers.support import function_task, ran, reference_of
from tests.verifiers.test_evalplus import PLUS, TASK
from verifiers.evalplus import judge
from verifiers.jobs import Ended
from verifiers.verify import Verifier, resolve_executor

SLOW = "import time\ndef f(x):\n    start = time.process_time()\n    while time.process_time() - start < 0.4: pass\n    return @\n"
LOOKS = "import os\ndef f(x): return os.getpid()\n"
"""Finds out whether its container is a new one."""


@pytest.mark.parametrize(
    ("body", "changes", "share"),
    [
        ("t0.100000\no@\nt1.500000\n" + 'o{"t":[1,2]}\n.\n', {}, 1.5),
        ("t0.100000\no@\nt1.500000\no3\n.\n", {}, 1.5),
        ("t0.100000\no@\nt0.200000\nt1.500000\no3\n", {}, 0.2),
        ("t0.100000\no@\nt1.500000\n", {}, 1.5),
        ("t0.100000\no@\nt1.500000\n", {"ended": Ended.SIGNALLED, "status": signal.SIGSEGV}, 1.5),
        ("t0.100000\no@\n!\nt1.500000\n", {}, 1.5),
        ("t0.100000\no@\nt0.100000\no3\n!\nt1.500000\n", {}, 0.1),
    ],
)
def test_the_share_of_a_limit_does_not_hang_on_the_answer(body: str, changes: dict[str, object], share: float) -> None:
    """It decides whether the candidate is run again, which the next one may notice."""
    part = replace(PLUS, limits=(1.0, 1.0))
    found = [judge(TASK, part, ran(body.replace("@", answer), **changes)) for answer in ("1", "2", "7")]
    assert [each.limit_share for each in found] == [share] * 3
    assert [each.reason for each in found[1:]] == [Reason.MISMATCH] * 2


@pytest.mark.docker
def test_the_next_candidate_cannot_tell(docker_engine: str) -> None:
    """Slow on purpose, a candidate was run again in a new container if it was right, and the next one had that or another."""
    spec = VerifierSpec(executor="docker", workers=1, memory_mb=128, cpu_seconds=0.3)
    task, reference = function_task("", (1,)), reference_of("1")
    seen = []
    with Verifier(spec, "differential", resolve_executor(spec, ["recording"])) as verifier:
        for answer in ("1", "2"):
            for _ in range(3):
                verifier.check(task, reference, LOOKS).result(60)
            slow = verifier.check(task, reference, SLOW.replace("@", answer)).result(60)
            after = verifier.check(task, reference, LOOKS).result(60)
            assert slow.reason is (Reason.CPU_LIMIT if answer == "1" else Reason.MISMATCH)
            containers = [str(each["container"]) for each in slow.rechecks] + [slow.container]
            seen.append((len(slow.rechecks), len(set(containers)), after.container in containers, after.detail))
    assert seen[0][:3] == seen[1][:3] == (4, 5, True)
