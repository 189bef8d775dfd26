"""The facade over plain processes: executors, checkers, references, mutants, checks. What needs a sandbox is tested elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from schemas.errors import ExecutorError, StudyError
from schemas.records import Check, Outcome, Reason, Reference, Task, TaskKind
from schemas.verifier import VerifierSpec
from tests.verifiers.support import HOST, function_task, output_task
from verifiers import verify
from verifiers.registry import checker_for
from verifiers.sandbox.process import NoSandboxWarning
from verifiers.verify import Verifier, resolve_executor

SPEC = VerifierSpec(executor="process", cpu_seconds=0.5, workers=1)
DOUBLE = function_task("def f(x):\n    return x * 2\n", (1,), (2.5,), ("a",))


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with pytest.warns(NoSandboxWarning, match="no sandbox"):
        info = resolve_executor(SPEC, ["oracle"])
    assert info.kind == "process"
    assert info.python == ".".join(map(str, sys.version_info[:3]))
    assert len(info.rootfs) == 64
    with Verifier(SPEC, "differential", info) as verifier:
        yield verifier


def ask(verifier: Verifier, task: Task, candidate: str) -> Check:
    return verifier.check(task, verifier.reference(task).result(60), candidate).result(60)


@pytest.mark.parametrize("provider", ["recording", "openai", "anthropic"])
def test_code_from_elsewhere_is_not_run_without_a_sandbox(provider: str) -> None:
    with pytest.raises(ExecutorError, match=provider) as caught:
        resolve_executor(SPEC, ["oracle", provider])
    assert "unsandboxed_providers" in caught.value.remedy
    allowed = VerifierSpec(executor="process", unsandboxed_providers=(provider,))  # type: ignore[arg-type]
    with pytest.warns(NoSandboxWarning):
        assert resolve_executor(allowed, [provider]).kind == "process"


def test_without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "engine_answers", lambda: "nobody there")
    with pytest.raises(ExecutorError, match="nobody there"):
        resolve_executor(VerifierSpec(executor="docker"), [])
    with pytest.warns(NoSandboxWarning):
        assert resolve_executor(VerifierSpec(), ["oracle"]).kind == "process"
    with pytest.raises(ExecutorError, match="nobody there"):
        resolve_executor(VerifierSpec(), ["openai"])


def test_checker_for() -> None:
    assert checker_for(VerifierSpec(), TaskKind.FUNCTION) == "differential"
    assert checker_for(VerifierSpec(), TaskKind.OUTPUT) == "expression"
    assert checker_for(VerifierSpec(checker="published"), TaskKind.OUTPUT) == "published"
    with pytest.raises(StudyError, match="published"):
        checker_for(VerifierSpec(checker="published"), TaskKind.FUNCTION)


def test_a_reference_and_its_checks(verifier: Verifier) -> None:
    reference = verifier.reference(DOUBLE).result(60)
    assert reference.outcome is Outcome.PASS
    assert reference.outputs == ("2", "5.0", '"aa"')
    assert reference.inputs_used == (0, 1, 2)
    assert reference.mutant == ""
    check = verifier.check(DOUBLE, reference, "def f(x):\n    return x + x\n").result(60)
    assert (check.outcome, check.reason, check.detail, check.rechecks) == (Outcome.PASS, Reason.PASS, "", ())
    assert 0 < check.cpu_seconds < 0.5
    assert check.cpu_limit_seconds == 0.5
    assert check.peak_memory_bytes > 2**20
    check = verifier.check(DOUBLE, reference, "def f(x):\n    return x * 3\n").result(60)
    assert (check.outcome, check.reason, check.detail) == (Outcome.FAIL, Reason.MISMATCH, "input 0: expected 2, found 3")


def test_the_first_mutant_that_is_wrong_is_kept(verifier: Verifier) -> None:
    raises, same, wrong = "def f(x): return x - 1", "def f(x): return 2 * x", "def f(x): return x * 3"
    loops = "def f(x):\n    while True: pass"
    assert verifier.reference(DOUBLE, [same, "def f(x:", wrong, raises]).result(60).mutant == wrong
    assert verifier.reference(DOUBLE, [same, "def f(x: return", same]).result(60).mutant == "def f(x: return"
    assert verifier.reference(DOUBLE, [loops, same]).result(60).mutant == "", "a mutant that time decides on is none"


def test_inputs_are_capped_and_fresh(verifier: Verifier) -> None:
    task = function_task("def f(xs):\n    xs.append(1)\n    return len(xs)\n", *[([],)] * 200)
    reference = verifier.reference(task).result(60)
    assert reference.outputs == ("1",) * 120
    assert ask(verifier, task, task.reference).outcome is Outcome.PASS


def test_a_task_without_inputs_cannot_serve(verifier: Verifier) -> None:
    found = verifier.reference(function_task("def f(x): return x")).result(60)
    assert (found.outcome, found.reason, found.detail) == (
        Outcome.UNMEASURED, Reason.REFERENCE_UNUSABLE, "the task has no inputs",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "reason", "detail"),
    [
        ("def f(x):\n    return object()", "unencodable", "input 0: type builtins.object"),
        ("def f(x):\n    return [0] * 10**6", "output-limit", "every output is over the limit"),
        ("def g(x):\n    return x", "missing-entry-point", ""),
        ("def f(x) return x", "syntax-error", "SyntaxError: expected ':' (line 1)"),
        ("import itertools, os\ndef f(x):\n    return os.getpid()", "mismatch", None),
        ("raise RuntimeError('no')", "exception", "RuntimeError: no (line 1)"),
        ("def f(x):\n    while True: pass", "cpu-limit", "over the CPU limit"),
    ],
)
def test_a_canonical_solution_that_cannot_serve(verifier: Verifier, source: str, reason: str, detail: str | None) -> None:
    task = function_task(source, (1,))
    reference = verifier.reference(task, ["def f(x): return x"]).result(60)
    assert (reference.outcome, reference.reason) == (Outcome.UNMEASURED, reason)
    assert reference.mutant == ""
    if detail is not None:
        assert reference.detail == detail
    check = verifier.check(task, reference, "def f(x): return x").result(60)
    assert (check.outcome, check.reason) == (Outcome.UNMEASURED, Reason.REFERENCE_UNUSABLE)


def test_where_the_canonical_solution_raises(verifier: Verifier) -> None:
    task = function_task("def f(x):\n    if x < 0:\n        raise ValueError(x)\n    return x\n", (-1,), (2,))
    assert verifier.reference(task).result(60).outputs == ('{"!":"ValueError"}', "2")
    assert ask(verifier, task, task.reference.replace("Error(x)", "Error('other words')")).outcome is Outcome.PASS
    assert ask(verifier, task, task.reference.replace("ValueError", "KeyError")).detail == (
        "input 0: expected ValueError raised, found KeyError raised"
    )
    assert ask(verifier, task, "def f(x):\n    return x\n").detail == "input 0: expected ValueError raised, found -1"


def test_lines_count_from_the_candidates_own_first(verifier: Verifier) -> None:
    task = function_task("def f(x):\n    return helper(x)", (1,), code="import math\n\ndef helper(x):\n    return math.floor(x)\n")
    assert (
        ask(verifier, task, "def f(x):\n    y = x\n    return y / 0\n").detail
        == "input 0: ZeroDivisionError: division by zero (line 3)"
    )
    assert ask(verifier, task, "\ndef f(x) return x").detail == "SyntaxError: expected ':' (line 2)"


def test_a_candidate_may_begin_with_a_future_import_behind_a_preamble(verifier: Verifier) -> None:
    task = Task("t", TaskKind.FUNCTION, "", "def f(x):\n    return x + BASE\n", "f", code="BASE = 2\n", inputs=("[1]", "[5]"))
    reference = verifier.reference(task).result()
    candidate = '"""Mine."""\nfrom __future__ import annotations\n\ndef f(x: Unknown) -> Unknown:\n    return BASE + x\n'
    assert verifier.check(task, reference, candidate).result().reason is Reason.PASS


def test_the_limit_follows_the_canonical_solution(verifier: Verifier) -> None:
    busy = (
        "import time\ndef f(x):\n    start = time.process_time()\n    while time.process_time() - start < {}: pass\n    return x\n"
    )
    task = function_task(busy.format(0.3), (1,))
    reference = verifier.reference(task).result(60)
    assert 0.3 <= reference.cpu_seconds < 0.4
    check = verifier.check(task, reference, busy.format(0.8)).result(60)
    assert check.outcome is Outcome.PASS
    assert check.cpu_limit_seconds == 4 * reference.cpu_seconds
    quick = Reference(task.id, Outcome.PASS, Reason.PASS, outputs=reference.outputs, inputs_used=(0,))
    check = verifier.check(task, quick, busy.format(0.7)).result(60)
    assert (check.outcome, check.reason, check.detail) == (Outcome.FAIL, Reason.CPU_LIMIT, "over the CPU limit")
    assert [each["reason"] for each in check.rechecks] == ["cpu-limit"] * 4
    assert check.cpu_seconds <= min(float(str(each["cpu_seconds"])) for each in check.rechecks)


def test_the_environment_is_fixed(verifier: Verifier) -> None:
    source = (
        "import random, time\nfirst = random.random()\ndef f():\n    return hash('a'), first, time.tzname, list({'x', 'y', 'z'})\n"
    )
    task = function_task(source, ())
    first, second = (verifier.reference(task).result(60) for _ in range(2))
    assert first.outcome is Outcome.PASS
    assert first.outputs == second.outputs
    assert '{"t":["UTC","UTC"]}' in first.outputs[0]


def test_tolerance(verifier: Verifier) -> None:
    task = function_task("def f(x):\n    return x / 3\n", (1.0,), atol=1e-6)
    assert ask(verifier, task, "def f(x):\n    return x * 0.3333335\n").outcome is Outcome.PASS
    assert ask(verifier, task, "def f(x):\n    return x * 0.33334\n").outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("checker", "candidate", "reason"),
    [
        ("expression", "[1, 2]", "pass"),
        ("expression", " [1, 2]\n", "pass"),
        ("expression", "[1, len('ab')]", "syntax-error"),
        ("expression", "list(range(1, 3))", "pass"),
        ("expression", "[1, 2.0]", "mismatch"),
        ("expression", "0 or True", "mismatch"),
        ("expression", "[1, 2], 'because'", "mismatch"),
        ("expression", "[1, 2]\nassert True", "syntax-error"),
        ("expression", "f(1)", "syntax-error"),
        ("expression", "1 / 0", "exception"),
        ("published", "[1, 2]", "pass"),
        ("published", "[1, 2.0]", "pass"),
        ("published", "0 or True", "pass"),
        ("published", "[1, 2], 'because'", "pass"),
        ("published", "f(1)", "pass"),
        ("published", "[2, 1]", "mismatch"),
        ("published", "object()", "mismatch"),
        ("published", "1 / 0", "exception"),
        ("published", "[1, 2", "syntax-error"),
        ("published", "exit()", "early-exit"),
        ("published", "[1, 2] if __import__('os')._exit(0) else 1", "early-exit"),
    ],
)
def test_predicted_outputs(checker: str, candidate: str, reason: str) -> None:
    task = output_task("def f(x):\n    return [x, x + 1]\n", "[1, 2]")
    with pytest.warns(NoSandboxWarning):
        info = resolve_executor(SPEC, [])
    with Verifier(SPEC, checker, info) as verifier:
        reference = verifier.reference(task, ["[1, 2]", "[1, 3]"]).result(60)
        assert reference.outputs == ("[1,2]",)
        assert reference.mutant == "[1, 3]"
        check = verifier.check(task, reference, candidate).result(60)
    assert check.reason == reason
    assert check.outcome is (Outcome.PASS if reason == "pass" else Outcome.FAIL)
    assert check.cpu_limit_seconds == (6.0 if checker == "published" else 0.5)


def test_a_killed_host_leaves_no_process_and_no_file() -> None:
    before = set(Path("/tmp").glob("evalnoise-*"))
    host = subprocess.Popen([sys.executable, "-c", HOST, "process"], stdout=subprocess.PIPE, cwd=Path.cwd(), text=True)
    assert host.stdout is not None
    assert host.stdout.readline() == "running\n"
    family = psutil.Process(host.pid).children(recursive=True)
    assert len(family) == 2, "a supervisor and its candidate"
    os.kill(host.pid, signal.SIGKILL)
    host.wait()
    assert psutil.wait_procs(family, timeout=10)[1] == []
    deadline = time.monotonic() + 5
    while set(Path("/tmp").glob("evalnoise-*")) - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert set(Path("/tmp").glob("evalnoise-*")) <= before


def test_closing_leaves_no_process_and_no_file() -> None:
    before = set(Path("/tmp").glob("evalnoise-*"))
    me = psutil.Process()
    children = set(me.children(recursive=True))
    with pytest.warns(NoSandboxWarning):
        verifier = Verifier(SPEC, "differential", resolve_executor(SPEC, []))
    task = function_task("def f(x): return x", (1,))
    daemon = "import os\ndef f(x):\n    if os.fork() == 0:\n        os.setsid()\n        while True: pass\n    return x\n"
    assert ask(verifier, task, daemon).outcome is Outcome.PASS
    assert len(set(me.children(recursive=True)) - children) == 1
    verifier.check(task, verifier.reference(task).result(60), "def f(x):\n    while True: pass")
    verifier.close()
    assert set(me.children(recursive=True)) - children == set()
    assert set(Path("/tmp").glob("evalnoise-*")) <= before
