"""Checkers by entry point: ours, those of other distributions, and every way in which those can be wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evalnoise.benchmarks.starter import load_starter
from flows.cli import app
from flows.views.plan import checker_text
from schemas.errors import StudyError
from schemas.plugins import registered
from schemas.records import Outcome, Reason, TaskKind
from schemas.study import Study
from schemas.verifier import VerifierSpec
from tasks.freeze import resolve
from tests.support.distributions import install, install_the_guides_example
from tests.support.stages import body
from tests.verifiers.support import function_task
from verifiers.registry import GROUP, checker_for, identity, make_checker, runs_code
from verifiers.verify import Verifier, resolve_executor

OURS = ["asserts", "differential", "evalplus", "exact", "expression", "published"]
RULE = """
from pydantic import BaseModel
from schemas.records import TaskKind
class Options(BaseModel):
    level: int = 1
class Rule:
    Options = Options
    kinds = frozenset({TaskKind.FUNCTION})
    version = 7
    inputs_cap = cpu_seconds = None
    runs_code = True
    def __init__(self, options):
        if options.level > 9:
            raise RuntimeError("too high")
    def canonical(self, task): ...
    def known_bad(self, task): ...
    def learn(self, bench, task, inputs, cpu_seconds): ...
    def check(self, bench, task, reference, candidate, cpu_seconds): ...
"""


def test_ours() -> None:
    found = registered(GROUP)
    assert sorted(name for name, point in found.items() if point.dist and point.dist.name == "evalnoise") == OURS
    for name in OURS:
        assert identity(name, {})["distribution"] == ""
    assert [name for name in OURS if not runs_code(name)] == ["exact"]
    assert [checker_for(VerifierSpec(), kind) for kind in TaskKind] == ["differential", "expression", "exact"]
    assert checker_for(VerifierSpec(), TaskKind.FUNCTION, lacking=["inputs"]) == "asserts"
    assert checker_for(VerifierSpec(), TaskKind.FUNCTION, lacking=["test"]) == "differential"
    assert checker_for(VerifierSpec(), TaskKind.ANSWER, lacking=["inputs", "test"]) == "exact"
    assert checker_for(VerifierSpec(), TaskKind.OUTPUT, lacking=["inputs", "test"]) == "expression"


@pytest.mark.parametrize(
    ("name", "part", "text", "fitting"),
    [
        ("differential", "inputs", "inputs", "asserts, mine, or auto"),
        ("evalplus", "inputs", "inputs", "asserts, mine, or auto"),
        ("asserts", "test", "test bodies", "differential, evalplus, mine, or auto"),
    ],
)
def test_a_checker_for_which_the_tasks_lack_something(packages: Path, name: str, part: str, text: str, fitting: str) -> None:
    install(
        packages, "my-rules", "0.1", {"mine": "rule:Rule", "other": "picky:Rule"}, rule=RULE, picky=f"{RULE}    needs = {part!r}\n"
    )
    for refused in (name, "other"):
        with pytest.raises(StudyError) as caught:
            checker_for(VerifierSpec(checker=refused), TaskKind.FUNCTION, "stacks.0.verifier", lacking=[part])
        assert (caught.value.where, caught.value.found) == ("stacks.0.verifier.checker", f"{refused}, which needs them")
        assert caught.value.expected == f"a checker for tasks without {text} ({fitting})"
    assert checker_for(VerifierSpec(checker="mine"), TaskKind.FUNCTION, lacking=[part]) == "mine"


@pytest.mark.parametrize(
    ("part", "checker", "refused"),
    [("test", "evalplus", True), ("test", "auto", False), ("inputs", "asserts", True), ("inputs", "auto", False)],
)
def test_a_plan_is_refused_when_no_task_has_what_the_checker_needs(tmp_path: Path, part: str, checker: str, refused: bool) -> None:
    parts = {"test": "assert f(1) == 1\n", "inputs": [[1]]}
    task = {"prompt": "?", "entry_point": "f", "reference": "def f(x):\n    return x\n", part: parts[part]}
    tasks, file = tmp_path / "tasks.jsonl", tmp_path / "study.json"
    tasks.write_text("".join(json.dumps({"id": name, **task}) + "\n" for name in "ab"))
    stack = body()["stacks"][0] | {"verifier": {"executor": "process", "checker": checker}}
    file.write_text(json.dumps(body(stacks=[stack], benchmark={"name": "jsonl", "path": str(tasks)})))
    result = CliRunner().invoke(app, ["plan", str(file), "--store", str(tmp_path / "store")])
    assert result.exit_code == (3 if refused else 0), result.output
    assert ("stacks.0.verifier.checker" in result.output) is refused


def test_the_guides_example_is_found_and_pinned(packages: Path) -> None:
    install_the_guides_example(packages)
    found = identity("unordered", {"duplicates": False})
    assert found == {
        "name": "unordered", "version": 1, "options": {"duplicates": False}, "distribution": "unordered-checker 1.2",
    }  # fmt: skip
    assert checker_text(found) == "unordered 1 of unordered-checker 1.2 (duplicates false)"
    assert checker_text(identity("asserts", {})) == "asserts 1"


def test_its_version_release_and_options_change_the_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for release, options in (("1.2", {}), ("1.3", {}), ("1.3", {"duplicates": False})):
        with monkeypatch.context() as patch:
            folder = tmp_path / f"{release}{len(options)}"
            install_the_guides_example(folder, release)
            patch.syspath_prepend(str(folder))
            verifier = {"executor": "process", "checker": "unordered", "options": options}
            stack = body()["stacks"][0] | {"verifier": verifier}
            with pytest.warns(UserWarning, match="no sandbox"):
                plan = resolve(Study.model_validate(body(stacks=[stack])), limit=2)
            assert plan.checkers == {"a": "unordered"}
            assert plan.protocol.checkers["a"]["distribution"] == f"unordered-checker {release}"
            digests.add(plan.digest)
    sys.modules.pop("unordered_checker")
    assert len(digests) == 3


@pytest.mark.docker
def test_the_guides_example_verifies_in_containers(packages: Path, docker_engine: str) -> None:
    install_the_guides_example(packages)
    task = function_task("def f(xs):\n    return sorted(xs)\n", ([3, 1, 1],), ([],), ([2],))
    wrong = {
        "def f(xs):\n    return xs[:1]": ("mismatch", "input 0: expected [1, 1, 3] in any order, found [3]"),
        "def f(xs):\n    return {*xs}": ("mismatch", "input 0: expected [1, 1, 3] in any order, found {1, 3}"),
        "def f(xs):\n    return xs[9]": ("exception", "input 0: IndexError: list index out of range (line 2)"),
        "def f(xs):\n    return 1 if xs == [] else xs": ("mismatch", "input 1: expected [] in any order, found 1"),
        "import os\nos.write(3, b'o{}\\no[]\\no[2]\\n.\\n')\nos._exit(0)": (
            "protocol-error",
            "input 0: a value that cannot be decoded",
        ),
        "import os\nos.write(3, b'o[]\\n.\\n')\nos._exit(0)": ("early-exit", "exit code 0 before the end"),
        "def f(xs):\n    while True: pass": ("cpu-limit", "over the CPU limit"),
    }
    spec = VerifierSpec(executor="docker", checker="unordered", workers=1, cpu_seconds=0.5)
    with Verifier(spec, "unordered", resolve_executor(spec, ["recording"])) as verifier:
        reference = verifier.reference(task).result(60)
        assert (reference.outcome, reference.known_bad, reference.outputs) == (
            Outcome.PASS,
            "wrong value",
            ("[1,1,3]", "[]", "[2]"),
        )
        assert verifier.check(task, reference, "def f(xs):\n    return xs[::-1]").result(60).reason is Reason.PASS
        for candidate, told in wrong.items():
            check = verifier.check(task, reference, candidate).result(60)
            assert (check.reason.value, check.detail) == told, candidate


def test_no_distribution_replaces_ours(packages: Path) -> None:
    install(packages, "aaa-evil", "0", dict.fromkeys([*OURS, "mine"], "evil:Rule"), evil=RULE)
    install(packages, "bbb-later", "0", {"mine": "later:Rule"}, later=RULE)
    for name in OURS:
        assert registered(GROUP)[name].value.startswith("verifiers.")
        assert identity(name, {})["distribution"] == ""
    assert identity("mine", {})["distribution"] == "aaa-evil 0", "of two others, the first by name, whatever the path says"


def error_of(name: str, **options: Any) -> StudyError:
    spec = VerifierSpec(checker=name, options=options)
    with pytest.raises(StudyError) as caught:
        identity(checker_for(spec, TaskKind.FUNCTION, "stacks.1.verifier"), options, "stacks.1.verifier")
    assert caught.value.exit_code == 3
    return caught.value


def test_a_name_that_nobody_registers() -> None:
    near = error_of("assert")
    assert near.where == "stacks.1.verifier.checker"
    assert (near.found, near.remedy) == ("'assert'", "Did you mean asserts?")
    assert ", ".join(OURS) in near.expected
    assert error_of("qqqq").remedy == "Install the package that registers it under evalnoise.checkers."
    assert error_of("exact").expected == "a checker for tasks of kind function (asserts, differential, evalplus, or auto)"


@pytest.mark.parametrize(
    ("point", "source", "found"),
    [
        ("rule:Rule", "import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("rule:Rule", "def f(:", "SyntaxError: invalid syntax (rule.py, line 1)"),
        ("rule:Rule", "1 / 0", "ZeroDivisionError: division by zero"),
        ("rule:Other", RULE, "AttributeError: module 'rule' has no attribute 'Other'"),
        ("nowhere:Rule", RULE, "ModuleNotFoundError: No module named 'nowhere'"),
        ("rule:Rule", "Rule = 3", "an object that lacks a class"),
        ("rule:Rule", RULE.replace("    Options = Options\n", ""), "an object that lacks a pydantic model `Options`"),
        (
            "rule:Rule",
            RULE.replace("frozenset({TaskKind.FUNCTION})", "'function'"),
            "an object that lacks a frozenset of TaskKind `kinds`",
        ),
        ("rule:Rule", RULE.replace("version = 7", "version = '7'"), "an object that lacks a whole number `version`"),
        ("rule:Rule", RULE.replace("runs_code = True", "runs_code = None"), "an object that lacks a truth value `runs_code`"),
        ("rule:Rule", RULE.replace("inputs_cap = ", ""), "an object that lacks `inputs_cap`"),
        ("rule:Rule", f"{RULE}    needs = 'tests'\n", "an object that lacks `needs` of 'inputs', 'test' or ''"),
        ("rule:Rule", RULE.replace("def known_bad", "def bad"), "an object that lacks a method `known_bad`"),
    ],
)
def test_checkers_that_cannot_be_loaded(packages: Path, point: str, source: str, found: str) -> None:
    install(packages, "my-rules", "0.1", {"mine": point}, rule=source)
    error = error_of("mine")
    assert (error.where, error.found) == ("stacks.1.verifier.checker", found)
    assert f"from {point} of my-rules" in error.expected
    assert "mine" not in error_of("published").expected, "an error about another checker does not hang on this one"


@pytest.mark.parametrize(
    ("options", "where", "expected", "found"),
    [
        ({"level": "high"}, ".level", "a valid integer, unable to parse string as an integer", "'high'"),
        ({"level": 10}, "", "options of which checker mine can be made", "RuntimeError: too high"),
        ({"level": 2**60}, "", "options that JSON can carry: finite numbers, whole ones below 2**53", None),
    ],
)
def test_options_that_a_checker_refuses(
    packages: Path, options: dict[str, Any], where: str, expected: str, found: str | None
) -> None:
    install(packages, "my-rules", "0.1", {"mine": "rule:Rule"}, rule=RULE)
    error = error_of("mine", **options)
    assert (error.where, error.expected) == (f"stacks.1.verifier.options{where}", expected)
    assert error.remedy == "See the documentation of my-rules."
    assert found is None or error.found == found
    assert make_checker("mine", {"level": 3})


@pytest.mark.parametrize(
    ("options", "where", "expected", "found"),
    [
        (
            {"tolerence": 1},
            "tolerence",
            "an option of checker exact (compare, case, tolerance)",
            "tolerence; did you mean tolerance?",
        ),
        ({"tolerance": -1}, "tolerance", "greater than or equal to 0", "-1"),
        ({"compare": "regex"}, "compare", "'auto', 'text' or 'number'", "'regex'"),
        ({"case": "yes"}, "case", "a valid boolean", "'yes'"),
    ],
)
def test_options_of_ours_are_named_with_their_place(options: dict[str, Any], where: str, expected: str, found: str) -> None:
    with pytest.raises(StudyError) as caught:
        identity("exact", options, "stacks.0.verifier")
    assert (caught.value.where, caught.value.expected, caught.value.found) == (
        f"stacks.0.verifier.options.{where}",
        expected,
        found,
    )
    assert caught.value.remedy == "docs/reference/checkers.md lists every option."
    assert ("?. " in str(caught.value), ".. " in str(caught.value)) == (False, False)


@pytest.mark.parametrize("command", ["plan", "freeze", "run"])
@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("stacks.0.verifier.checker=diferential", "stacks.0.verifier.checker: expected a registered checker"),
        (
            "stacks.0.verifier.options={x: 1}",
            "stacks.0.verifier.options.x: expected an option of checker differential (it has none)",
        ),
        ("stacks.0.verifier.packages=[x==1, X==2]", "stacks.0.verifier.packages: expected each package once, found x with two"),
        ("stacks.0.verifier.checker=exact", "stacks.0.verifier.checker: expected a checker for tasks of kind function"),
    ],
)
def test_the_command_line_says_so_and_ends_with_3(tmp_path: Path, command: str, setting: str, told: str) -> None:
    result = CliRunner().invoke(app, [command, "studies/starter.yaml", "--store", str(tmp_path), "--set", setting])
    assert result.exit_code == 3
    assert told in result.output
    assert "Traceback" not in result.output
    assert load_starter().name == "starter"


def test_packages_for_a_checker_that_runs_no_code_are_refused(tmp_path: Path) -> None:
    tasks, file = tmp_path / "tasks.jsonl", tmp_path / "study.json"
    tasks.write_text(json.dumps({"id": "a", "kind": "answer", "prompt": "?", "reference": "1"}) + "\n")
    rest = {"isolation": "fresh", "inputs_cap": 3, "unsandboxed_providers": ["recording"]}
    for packages, code in (["numpy==2.2.6"], 3), ([], 0):
        stack = body()["stacks"][0] | {"verifier": {**rest, "packages": packages}}
        file.write_text(json.dumps(body(stacks=[stack], benchmark={"name": "jsonl", "path": str(tasks)})))
        result = CliRunner().invoke(app, ["plan", str(file), "--store", str(tmp_path / "store")])
        assert result.exit_code == code, result.output
        assert ("stacks.0.verifier.packages: expected no packages" in result.output) is (code == 3)
