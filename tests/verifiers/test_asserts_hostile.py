"""Checker `asserts` against candidates that cheat: forged lines, hostile values, and what one could tell the next."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from schemas.records import Outcome, Reason, Reference
from schemas.verifier import VerifierSpec
from tests.verifiers.support import ran
from tests.verifiers.test_asserts import ABS, REVERSE, SPEC, call, learn, task
from verifiers.asserts import ROUNDS, Asserts, _chooses
from verifiers.bench import LaneBench
from verifiers.jobs import Job, Judgement, Run
from verifiers.sandbox.pool import Lane, Pool
from verifiers.sandbox.process import ProcessSandbox
from verifiers.verify import Verifier, resolve_executor


@pytest.mark.parametrize(
    ("lines", "reason", "detail"),
    [
        ("o1\no1\n.\n", "protocol-error", "more results than calls"),
        ("o{}\n.\n", "protocol-error", "call 0: an answer that cannot be decoded"),
        ("x{}\n.\n", "protocol-error", "call 0: a malformed line"),
        ('o1\na["changed"]\n.\n', "protocol-error", "call 0: an answer that cannot be decoded"),
        ('o1\na[[1,2],{"d":[]}]\n.\n', "protocol-error", "call 0: an answer that cannot be decoded"),
        ('o1\na[[1],{"d":[["k",1]]}]\n.\n', "protocol-error", "call 0: an answer that cannot be decoded"),
        ("c0 [[1],{}]\n.\n", "protocol-error", "a line that the supervisor's child never writes"),
        ("f{}\n.\n", "protocol-error", "a line that the supervisor's child never writes"),
        ("k1\n.\n", "protocol-error", "a line that the supervisor's child never writes"),
        ("a[[1],{}]\n.\n", "protocol-error", "a line that the supervisor's child never writes"),
        ("t0.000001\no1\n.\n", "protocol-error", "a line that the supervisor's child never writes"),
        ("n\n.\n", "protocol-error", "a line that the supervisor's child never writes"),
        (".\n", "early-exit", "exit code 0 before the end"),
        ("o1", "early-exit", "exit code 0 before the end"),
    ],
)
def test_lines_that_a_candidate_made_up(lines: str, reason: str, detail: str) -> None:
    class Bench:
        def run(self, _: Job, judge: Callable[[Run], Judgement]) -> tuple[Judgement, Run]:
            run = ran(lines)
            return judge(run), run

        def run_tests(self, *_: object) -> tuple[Judgement, Run]:
            raise AssertionError("no test is run on forged answers")

        def forget(self) -> None:
            raise AssertionError("there was one round")

    reference = Reference("t", Outcome.PASS, Reason.PASS, outputs=(call(1),))
    judgement = Asserts().check(Bench(), task("assert f(1) == 1"), reference, "", 1.0)
    assert (judgement.reason, judgement.detail) == (reason, detail)


@pytest.mark.parametrize(
    ("test", "calls", "rounds", "replaced"),
    [
        ("assert f(1) == 1\nassert f(-2) == 2\n", [call(1), call(-2)], 1, False),
        ("assert f(-2) == 3\n", [call(-2)], 1, False),
        ("assert f(f(-2)) == 2\n", [call(-2), ""], 2, True),
        ("assert f(f(-2)) == 3\n", [call(-2), ""], 2, True),
        ("assert f(-2) == 3\nassert f(f(-2)) == 2\n", [call(-2), call(-2), ""], 1, True),
        ("assert f(f(f(-2)) + 1) == 3\n", [call(-2), "", ""], 3, True),
        ("x = -1\nfor _ in range(30): x = f(x) + 1\n", [call(-1), *[""] * 29], ROUNDS, True),
        # Where an answer decides which calls come, that there was no further round says as much as that there was.
        ("assert f(-2) == 2 or f(3) == 3\n", [call(-2)], 1, True),
        ("assert f(-2) == 3 or f(3) == 3\n", [call(-2)], 2, True),
        ("def check(g):\n    assert g(1) == 1, str(g(2))\n", [call(1)], 1, True),
    ],
)
def test_after_what_tests_the_sandbox_is_replaced(test: str, calls: list[str], rounds: int, replaced: bool) -> None:
    log: list[str] = []

    class Sandboxed:
        """A lane's sandbox that runs its jobs here."""

        def __init__(self) -> None:
            self._inner = ProcessSandbox(512, None)
            self.name = "candidates"

        def run(self, job: Job) -> Run:
            log.append(job.mode.value)
            return self._inner.run(job)

        def abort(self) -> None:
            self._inner.abort()

        def close(self) -> None:
            log.append("close")
            self._inner.close()

    def check(lane: Lane) -> Judgement:
        bench = LaneBench(lane)
        reference = Reference("t", Outcome.PASS, Reason.PASS, outputs=tuple(calls))
        judgement = Asserts().check(bench, task(test), reference, ABS, 1.0)
        log.append("end")
        return judgement

    pool = Pool(Sandboxed, 1)
    try:
        pool.submit(check).result(60)
        during = log[: log.index("end")]
    finally:
        pool.close()
    assert during.count("calls") == rounds
    assert during.count("close") == replaced
    assert not replaced or during[-1] == "close"


@pytest.mark.parametrize(
    ("test", "chooses"),
    [
        ("assert f(1) == 1\nassert f(2) == 2, 'two'\n", False),
        ("def check(candidate):\n    for n in range(9):\n        assert candidate(n) == n\n", False),
        ("def close(a, b): return a == b or abs(a - b) < 1\ndef check(candidate):\n    assert close(candidate(1), 1)\n", False),
        ("assert f(1) == 1 or f(2) == 1\n", True),
        ("if f(1): assert f(2)\n", True),
        ("x = f(1) if f(2) else 3\n", True),
        ("while f(1): pass\n", True),
        ("try: f(1)\nexcept ValueError: pass\n", True),
        ("assert 1 < f(1) < f(2)\n", True),
        ("assert f(1), f'got {f(1)}'\n", True),
        ("assert [f(n) for n in range(9) if f(n + 1)]\n", True),
        ("assert all(f(n) == n for n in range(9))\n", True),
        ("def check(g):\n    assert g(1) or g(2)\n", True),
        ("assert f(1) ==\n", True),
    ],
)
def test_what_stands_where_it_may_be_passed_over(test: str, chooses: bool) -> None:
    assert _chooses(test, "f") is chooses


@pytest.mark.parametrize(
    "test",
    [
        "def check(candidate):\n    assert all(map(lambda n: candidate(n) == n, range(5)))\n",
        "for found, wanted in zip(map(f, range(5)), range(5)):\n    assert found == wanted\n",
    ],
)
def test_a_candidate_cannot_end_a_loop_of_the_test(test: str) -> None:
    of = task(test)
    with pytest.warns(UserWarning, match="no sandbox"):
        info = resolve_executor(SPEC, ["oracle"])
    with Verifier(SPEC, "asserts", info) as verifier:
        check = verifier.check(of, learn(verifier, of), "def f(x):\n    raise StopIteration('enough')\n").result(60)
    assert check.outcome is Outcome.FAIL
    assert (check.reason, check.detail) == (Reason.EXCEPTION, "call 0: StopIteration: enough (line 2)")


# Looks for the arguments of later calls, which a job holds beside those of the present one.
THIEF = """
import sys
def f(x):
    frame, found = sys._getframe(), []
    while frame:
        for value in frame.f_locals.values():
            if not found and isinstance(value, dict) and isinstance(value.get("inputs"), list):
                found = value["inputs"]
        frame = frame.f_back
    import json
    calls = [json.loads(text)[0][0] for text in found]
    return calls[1] if len(calls) > 1 and x == calls[0] else x[::-1]
"""
DEAF = "def f(x):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass\n"
FORGER = "import os\nos.write(3, b'o1\\n{}.\\n')\nos._exit(0)\n"
SAME = "def f(x):\n    return x\n"
TWO = "def f(x):\n    return 2\n"
HOSTILE: list[tuple[str, str, str, str]] = [
    # test, canonical solution, candidate, reasons
    ("assert f('ab') == 'ba'\nassert f(f('xy')) == 'xy'\n", REVERSE, THIEF, "mismatch"),
    ("assert f(f('ab')) == 'ab' and f('ab') == 'ba'\n", REVERSE, THIEF, "pass"),
    ("assert len(list(f(3))) == 3\n", "def f(x):\n    return range(x)\n", "def f(x):\n    return range(10**12)\n", "oom cpu-limit"),
    ("assert f(2) ** f(2) == 4\n", SAME, "def f(x):\n    return 10**9 + 7 * 10**12\n", "oom cpu-limit"),
    ("assert f(1) == 1\n", ABS, "class One(int):\n    __eq__ = lambda *_: True\ndef f(x):\n    return One(2)\n", "unencodable"),
    ("assert f(1) == 1\n", ABS, FORGER.format(""), "pass"),  # it said the right answer, which is all that counts
    ("assert f(1) == 2\n", TWO, FORGER.format(""), "mismatch"),
    ("assert f(1) == 2\n", TWO, FORGER.format("k1\\n"), "mismatch protocol-error"),
    ("assert f(1) == 1\n", ABS, "import builtins\nbuiltins.AssertionError = ValueError\n" + TWO, "mismatch"),
    ("assert f(1) == 1\n", ABS, DEAF, "cpu-limit"),
]  # fmt: skip


@pytest.mark.docker
def test_hostile_candidates(docker_engine: str) -> None:
    spec = VerifierSpec(executor="docker", cpu_seconds=0.5, workers=2, memory_mb=128)
    with Verifier(spec, "asserts", resolve_executor(spec, ["recording"])) as verifier:
        for test, canonical, candidate, reasons in HOSTILE:
            of = task(test, canonical)
            reference = learn(verifier, of)
            check = verifier.check(of, reference, candidate).result(120)
            assert check.reason.value in reasons.split(), (test, candidate, check)
            honest = verifier.check(of, reference, canonical).result(120)
            assert (honest.outcome, honest.rechecks) == (Outcome.PASS, ()), (test, honest)
