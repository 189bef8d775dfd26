"""Checker `asserts`: test bodies run apart from candidates, whose container only answers calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evalnoise.benchmarks.load import load_benchmark
from schemas.records import Check, Outcome, Reason, Reference, Task, TaskKind
from schemas.study import EvalplusBenchmark
from schemas.values import encode
from schemas.verifier import VerifierSpec
from verifiers.asserts import ROUNDS
from verifiers.bench import LaneBench
from verifiers.jobs import Job, Judgement, Mode, Run
from verifiers.verify import Verifier, resolve_executor

SPEC = VerifierSpec(executor="process", cpu_seconds=0.5, workers=1)
ABS = "def f(x):\n    return x if x >= 0 else -x\n"


def task(test: str, reference: str = ABS, code: str = "") -> Task:
    return Task("t", TaskKind.FUNCTION, "", reference, "f", code=code, test=test)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with pytest.warns(UserWarning, match="no sandbox"):
        info = resolve_executor(SPEC, ["oracle"])
    with Verifier(SPEC, "asserts", info) as verifier:
        yield verifier


def learn(verifier: Verifier, of: Task) -> Reference:
    reference = verifier.reference(of).result(60)
    assert reference.outcome is Outcome.PASS, reference
    return reference


@pytest.fixture(scope="module")
def of_mbpp(verifier: Verifier) -> Reference:
    return learn(verifier, task(MBPP))


def ask(verifier: Verifier, of: Task, candidate: str) -> Check:
    return verifier.check(of, learn(verifier, of), candidate).result(60)


def call(*arguments: object, **keywords: object) -> str:
    return encode([list(arguments), keywords])


HUMANEVAL = """

METADATA = {'author': 'jt'}


def check(candidate):
    assert candidate(3) == 3
    assert candidate(x=-4) == 4, "of a negative number"
"""
MBPP = "import math\nassert f(3) == 3\nassert math.isclose(f(-4.0), 4.0)\n"


def test_both_forms_of_a_test(verifier: Verifier) -> None:
    human, plain = task(HUMANEVAL), task(MBPP)
    reference = learn(verifier, human)
    assert reference.outputs == (call(3), call(x=-4))
    assert (reference.known_bad, reference.inputs_used, len(reference.input_seconds)) == ("wrong value", (), 1)
    assert learn(verifier, plain).outputs == (call(3), call(-4.0))
    right, wrong = "def f(x):\n    return abs(x)\n", "def f(x):\n    return x\n"
    for each in (human, plain):
        check = ask(verifier, each, right)
        assert (check.outcome, check.reason, check.detail, check.mutated_inputs) == (Outcome.PASS, Reason.PASS, "", 0)
        assert 0 < check.cpu_seconds < check.cpu_limit_seconds == 0.5
    assert (
        ask(verifier, human, wrong).detail
        == 'assert on line 8: assert candidate(x=-4) == 4, "of a negative number"; call 1 gave -4'
    )
    check = ask(verifier, plain, wrong)
    assert (check.reason, check.detail) == (
        Reason.MISMATCH,
        "assert on line 3: assert math.isclose(f(-4.0), 4.0); call 1 gave -4.0",
    )


def test_a_test_that_calls_check_itself_is_not_checked_twice(verifier: Verifier) -> None:
    assert learn(verifier, task("def check(g):\n    assert g(1) == 1\n\ncheck(f)\n")).outputs == (call(1),)
    assert learn(verifier, task("def check(g):\n    assert g(1) == 1\n")).outputs == (call(1),)


@pytest.mark.parametrize(
    ("candidate", "reason", "detail"),
    [
        ("def f(x) return x", "syntax-error", "SyntaxError: expected ':' (line 1)"),
        ("def g(x): return x", "missing-entry-point", ""),
        ("import json\nraise RuntimeError('no')", "exception", "RuntimeError: no (line 2)"),
        ("def f(x):\n    return [1][x]", "exception", "call 0: IndexError: list index out of range (line 2)"),
        ("def f(x):\n    return None", "mismatch", "assert on line 2: assert f(3) == 3; call 0 gave None"),
        (
            "def f(x):\n    return x if x > 0 else 'a'",
            "mismatch",
            "TypeError on line 3: assert math.isclose(f(-4.0), 4.0) (must be real number, not str); call 1 gave 'a'",
        ),
        ("class C:\n    pass\ndef f(x):\n    return C()", "unencodable", "call 0: type candidate.C"),
        ("def f(x):\n    return [0] * 10**6", "output-limit", None),
        ("import sys\ndef f(x):\n    sys.exit(0)", "early-exit", "call 0: SystemExit"),
        ("import os\ndef f(x):\n    os._exit(0)", "early-exit", "exit code 0 before the end"),
        ("import os\ndef f(x):\n    if x > 0: return x\n    os._exit(0)", "early-exit", "exit code 0 before the end"),
        ("def f(x):\n    while True: pass", "cpu-limit", "over the CPU limit"),
        ("def f(x):\n    while x < 0: pass\n    return x", "cpu-limit", "over the CPU limit"),
        ("def f(x):\n    while x < 0: pass\n    return -x", "mismatch", "assert on line 2: assert f(3) == 3; call 0 gave -3"),
        (
            "def f(x):\n    if x > 0: return 4\n    raise SystemExit",
            "mismatch",
            "assert on line 2: assert f(3) == 3; call 0 gave 4",
        ),
        ("def f(x):\n    raise MemoryError", "oom", "call 0: MemoryError:  (line 2)"),
    ],
)
def test_what_fails(verifier: Verifier, of_mbpp: Reference, candidate: str, reason: str, detail: str | None) -> None:
    check = verifier.check(task(MBPP), of_mbpp, candidate).result(60)
    assert (check.outcome, check.reason) == (Outcome.FAIL, reason), check
    if detail is not None:
        assert check.detail == detail


def test_exceptions_that_a_test_asks_for(verifier: Verifier) -> None:
    test = (
        "try:\n    f(-1)\n    assert False, 'no exception'\nexcept ValueError as error:\n    assert 'negative' in str(error)\n"
        "assert f(4) == 2\n"
    )
    root = task(test, "import math\ndef f(x):\n    if x < 0:\n        raise ValueError('negative')\n    return math.isqrt(x)\n")
    assert ask(verifier, root, root.reference.replace("'negative'", "f'{x} is negative'")).reason is Reason.PASS
    own = "class Own(ValueError): pass\n" + root.reference.replace("ValueError('", "Own('")
    check = ask(verifier, root, own)
    assert (check.reason, check.detail) == (Reason.EXCEPTION, "call 0: candidate.Own: negative (line 5)")
    assert ask(verifier, root, root.reference.replace("'negative'", "'no'")).detail == (
        "assert on line 5: assert 'negative' in str(error); call 0 gave ValueError raised"
    )
    check = ask(verifier, root, "def f(x):\n    return 2\n")
    assert (check.reason, check.detail) == (Reason.MISMATCH, "assert on line 3: assert False, 'no exception'; call 0 gave 2")


def test_arguments_that_are_changed_in_place(verifier: Verifier) -> None:
    test = (
        "from collections import deque\n"
        "for xs in ([3, 1, 2], {'b': 1}, {1}, bytearray(b'ab'), deque([1])):\n    f(xs)\n    assert not xs\n"
    )
    clear = task(test, "def f(xs):\n    xs.clear()\n")
    check = ask(verifier, clear, clear.reference)
    assert (check.reason, check.mutated_inputs) == (Reason.PASS, 5)
    check = ask(verifier, clear, "def f(xs):\n    xs = []\n")
    assert (check.reason, check.detail) == (Reason.MISMATCH, "assert on line 4: assert not xs; call 0 gave None")
    unsayable = ask(verifier, clear, "def f(xs):\n    xs[:] = [print]\n")
    assert (unsayable.reason, unsayable.detail) == (Reason.UNENCODABLE, "call 0: changed arguments that cannot be encoded")


INVOLUTION = "for x in ('ab', 'xyz', 'q'):\n    assert f(f(x)) == x\n    assert f(x) != x or len(x) < 2\n"
REVERSE = "def f(x):\n    return x[::-1]\n"


def test_results_that_are_passed_on(verifier: Verifier) -> None:
    of = task(INVOLUTION, REVERSE)
    holes = [call("ab"), "", call("ab"), call("xyz"), "", call("xyz"), call("q"), "", call("q")]
    reference = learn(verifier, of)
    assert reference.outputs == tuple(holes), "a call that hangs on a result must not be sent to any candidate"
    other = verifier.check(of, reference, "def f(x):\n    return x.swapcase() if x.isalpha() and len(x) > 1 else x\n").result(60)
    assert other.reason is Reason.PASS, "another involution makes other calls, and is right too"
    assert verifier.check(of, reference, "def f(x):\n    return x[1:] + x[:1]\n").result(60).detail == (
        "assert on line 2: assert f(f(x)) == x; call 4 gave 'zxy'"
    )
    long = task("x = 0\nfor _ in range(40):\n    x = f(x)\nassert x == 40\n", "def f(x):\n    return x + 1\n")
    deep = verifier.reference(long).result(60)
    assert (deep.outcome, deep.reason, deep.detail) == (
        Outcome.UNMEASURED, Reason.MISMATCH, f"the test made other calls in each of {ROUNDS} runs",
    )  # fmt: skip


def test_a_candidate_that_never_answers_the_same_twice(verifier: Verifier) -> None:
    of = task(INVOLUTION, REVERSE)
    check = ask(verifier, of, "import os\ndef f(x):\n    return os.urandom(8).hex()\n")
    assert (check.outcome, check.reason) == (Outcome.FAIL, Reason.MISMATCH)
    counted = "calls = []\ndef f(x):\n    calls.append(x)\n    return x[::-1]\n"
    assert ask(verifier, of, counted).reason is Reason.PASS, "state is kept over the calls of one test"


def test_only_calls_that_the_test_makes_count(verifier: Verifier) -> None:
    of = task("a = f(0)\nb = f(5)\nif a is None:\n    assert b == 5\nelse:\n    assert f(3) == 3\n    assert f(4) == 4\n", ABS)
    reference = learn(verifier, of)
    endless = "def f(x):\n    while x in (3, 4): pass\n    return x or None\n"
    # Found in a run on no answers at all, where `a` is not None: the endless calls are put to it, and do not count.
    assert reference.outputs == (call(0), call(5), call(3), call(4))
    check = verifier.check(of, reference, endless).result(60)
    assert (check.outcome, check.reason) == (Outcome.PASS, Reason.PASS)


@pytest.mark.parametrize(
    ("test", "reference", "reason", "detail"),
    [
        ("", ABS, "reference-unusable", "the task has no test body"),
        ("assert f(1) == 2\n", ABS, "mismatch", "assert on line 1: assert f(1) == 2; call 0 gave 1"),
        ("assert f(1) == (\n", ABS, "syntax-error", "in the test: SyntaxError: '(' was never closed (line 1)"),
        ("x = 1\n", ABS, "accepts-anything", "every candidate that is known to be bad passes"),
        ("f(1)\nassert True\n", ABS, "pass", ""),
        ("assert f(object()) == 1\n", ABS, "unencodable", "in the test: arguments of call 0: type builtins.object"),
        ("assert g(f(1))\n", ABS, "mismatch", "NameError on line 1: assert g(f(1)) (name 'g' is not defined)"),
    ],
)  # fmt: skip
def test_what_can_serve(verifier: Verifier, test: str, reference: str, reason: str, detail: str) -> None:
    found = verifier.reference(task(test, reference)).result(60)
    assert (found.reason, found.detail) == (reason, detail)
    assert (found.known_bad == "raises") == (reason == "pass")


def test_the_test_has_the_tasks_code_and_the_canonical_imports(verifier: Verifier) -> None:
    code = "def square(x):\n    return x * x\n"
    of = task("assert f(square(2)) == 2.0 == math.sqrt(4)\n", "import math\ndef f(x):\n    return math.sqrt(x)\n", code)
    reference = learn(verifier, of)
    assert verifier.check(of, reference, "def f(x):\n    return x ** 0.5\n").result(60).reason is Reason.PASS
    shadowed = "def square(x):\n    return 0\ndef f(x):\n    return square(x)\n"
    assert verifier.check(of, reference, shadowed).result(60).reason is Reason.MISMATCH, "and not the candidate's own"


def test_random_calls_are_the_same_every_time(verifier: Verifier) -> None:
    test = "import random\nfor _ in range(3):\n    n = random.randint(0, 10**9)\n    assert f(n) == n\n"
    of = task(test, "import random\ndef f(x):\n    random.random()\n    return x\n")
    first, second = learn(verifier, of), learn(verifier, of)
    assert first.outputs == second.outputs
    assert len(set(first.outputs)) == 3


SECRET = "a value that only the test knows"


@pytest.mark.parametrize(
    "test", [f"assert f(1) == {SECRET!r}\n", f"y = f(1)\nassert y == {SECRET!r}\nassert f(y) == f(f(1)[:3]) == {SECRET!r}\n"]
)
def test_no_job_of_a_candidate_holds_an_expected_value(test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = task(test, f"def f(x):\n    return {SECRET!r}\n")
    seen: dict[str, list[Job]] = {"run": [], "run_tests": []}

    def watch(name: str) -> Callable[[LaneBench, Job, Callable[[Run], Judgement]], tuple[Judgement, Run]]:
        plain = getattr(LaneBench, name)

        def run(self: LaneBench, job: Job, judge: Callable[[Run], Judgement]) -> tuple[Judgement, Run]:
            seen[name].append(job)
            return plain(self, job, judge)  # type: ignore[no-any-return]

        return run

    for name in seen:
        monkeypatch.setattr(LaneBench, name, watch(name))
    with pytest.warns(UserWarning, match="no sandbox"):
        info = resolve_executor(SPEC, [])
    with Verifier(SPEC, "asserts", info) as verifier:
        reference = learn(verifier, of)
        assert not any(SECRET in text for text in reference.outputs)
        for jobs in seen.values():
            jobs.clear()
        assert verifier.check(of, reference, "def f(x):\n    return 'guess'\n").result(60).outcome is Outcome.FAIL
    assert {job.mode for job in seen["run"]} == {Mode.CALLS}
    assert {job.mode for job in seen["run_tests"]} == {Mode.TESTS}
    assert not any(SECRET.encode() in job.body() for job in seen["run"])
    assert any(SECRET.encode() in job.body() for job in seen["run_tests"])


UNUSABLE = {"Mbpp/120": "mismatch", "Mbpp/737": "unencodable", "Mbpp/787": "unencodable", "Mbpp/794": "unencodable"}
"""120 leans on an import that neither the test nor the canonical solution has; the others give objects of type re.Match."""


def public_tasks(shared: Path, file: str, dataset: Any) -> list[Task]:
    path = shared / "data" / "evalplus" / f"{file}.jsonl.gz"
    return list(load_benchmark(EvalplusBenchmark(name="evalplus", dataset=dataset, path=str(path))).tasks)


@pytest.mark.docker
@pytest.mark.realdata
def test_canonical_solutions_of_public_benchmarks(docker_engine: str, shared: Path) -> None:
    human, mbpp = public_tasks(shared, "HumanEvalPlus", "humaneval"), public_tasks(shared, "MbppPlus", "mbpp")
    sample = [*human[::4], *(each for each in human if each.id in {"HumanEval/33", "HumanEval/53"})]
    sample += [each for place, each in enumerate(mbpp) if place % 6 == 0 or each.id in UNUSABLE]
    spec = VerifierSpec(executor="docker", workers=2)
    with Verifier(spec, "asserts", resolve_executor(spec, [])) as verifier:
        found = [future.result(120) for future in [verifier.reference(each) for each in sample]]
    assert {each.task_id: each.reason.value for each in found if each.outcome is not Outcome.PASS} == UNUSABLE
    assert {each.known_bad for each in found if each.outcome is Outcome.PASS} == {"wrong value"}
    # sort_third is compared with itself on arguments made from its results
    assert {each.task_id for each in found if "" in each.outputs} == {"HumanEval/33"}
