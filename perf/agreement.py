"""`python -m perf.agreement`: our `evalplus` and `differential` beside EvalPlus 0.3.1's own check, verdict by verdict.

Every canonical solution of HumanEval+ and MBPP+ and one mutant of each, the first that compiles, through all three. Prints a line
for each program on which they differ, with the rule that explains it, and a summary; `--all` prints every line, `--limit N` takes
the first N tasks of each benchmark, `--write` stores EvalPlus's verdicts in tests/reference/evalplus_0_3_1.json. Each rule is
looked for in the case's own data, not assumed: what none explains is counted, and makes the exit code 1. Needs `make perf-setup`.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.mutants import mutants
from perf.measure import ROOT
from perf.peer import Evalplus, data_file
from schemas.records import Check, Outcome, Reason, Reference, Task
from schemas.study import EvalplusBenchmark
from schemas.verifier import VerifierSpec
from verifiers.evalplus_rules import FIND_ZERO, agrees
from verifiers.verify import Verifier, resolve_executor

STORED = ROOT / "tests" / "reference" / "evalplus_0_3_1.json"
HEAD_SECONDS = 4.0
"""Least limit of one input at the head of EvalPlus's repository; 0.3.1 has 1.0."""
RULES = {
    "find-zero": "0.3.1 counts no input of find_zero as done, and so fails everything; the head of its repository does not",
    "floor": "0.3.1 allows an input 1.0 s at least; with the 4.0 s of the head it says what we say",
    "dropped": "an input that is wrong or slow here was dropped, because the canonical solution's output is too large",
    "types": "the outputs are equal by ==, and differential keeps types",
    "tolerance": "the outputs are equal within EvalPlus's tolerance; differential compares floats exactly where the task has none",
    "oracle": "EvalPlus has a special rule for this task, and differential has not",
    "cap": "the input that is wrong is none of the first 120, and differential looks at no others",
    "no-reference": "the canonical solution's outputs cannot be encoded, so that differential measures nothing",
}
_NUMBER = re.compile(r"(base|plus) input (\d+): ")
_VALUES = re.compile(r"expected (.*), found (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Case:
    """One program of one task, and all that was said of it."""

    task: Task
    kind: str
    """`canonical` or `mutant`."""
    program: str
    theirs: dict[str, Any]
    """EvalPlus 0.3.1's verdicts, `base` and `plus`: pass, fail or timeout."""
    head: dict[str, Any]
    """The same with the head's least limit, where the two were asked for."""
    evalplus: Check
    reference: Reference
    differential: Check

    @property
    def their_outcome(self) -> Outcome:
        return Outcome.PASS if self.theirs["base"] == self.theirs["plus"] == "pass" else Outcome.FAIL

    @property
    def their_base(self) -> Outcome:
        return Outcome.PASS if self.theirs["base"] == "pass" else Outcome.FAIL

    def evalplus_rule(self) -> str:
        """What explains that our `evalplus` says something else; `agrees` where it does not, empty where nothing explains it."""
        if (self.evalplus.outcome, self.evalplus.base_outcome) == (self.their_outcome, self.their_base):
            return "agrees"
        if self.task.oracle == FIND_ZERO and self.their_outcome is Outcome.FAIL and "timeout" not in self.theirs.values():
            return "find-zero"
        head = self.head and (self.head["base"] == "pass", self.head["plus"] == "pass")
        ours = self.evalplus.base_outcome is Outcome.PASS, self.evalplus.outcome is Outcome.PASS
        if head and (head[0], all(head)) == ours:
            return "floor"
        return "dropped" if self.reference.n_dropped and self.evalplus.outcome is Outcome.PASS else ""

    def differential_rule(self) -> str:
        """The same for our `differential`."""
        if self.differential.outcome is self.their_outcome:
            return "agrees"
        if self.differential.reason is Reason.REFERENCE_UNUSABLE:
            return "no-reference"
        if self.differential.outcome is self.evalplus.outcome:
            return self.evalplus_rule()  # what sets it apart from 0.3.1 sets us both apart
        if self.differential.outcome is Outcome.PASS:
            return "cap" if self._wrong_input() >= 120 else ""
        return self._mismatch_rule()

    def _wrong_input(self) -> int:
        """Which of the task's inputs `evalplus` found wrong; -1 where its detail names none."""
        found = _NUMBER.match(self.evalplus.detail)
        return -1 if found is None else int(found[2]) + (self.task.n_base_inputs if found[1] == "plus" else 0)

    def _mismatch_rule(self) -> str:
        """Why `differential` finds a difference where `evalplus` finds none."""
        if self.differential.reason is not Reason.MISMATCH:
            return ""
        if self.task.oracle:
            return "oracle"
        shown = _VALUES.search(self.differential.detail)
        try:
            expected, found = (ast.literal_eval(text) for text in shown.groups()) if shown else (0, 1)
        except (ValueError, SyntaxError):
            return ""
        if expected == found:
            return "types"
        return "tolerance" if agrees("", [], expected, found, self.task.atol or 1e-6) else ""

    def line(self) -> str:
        ours, other = self.evalplus, self.differential
        base = ours.base_outcome.value if ours.base_outcome else "-"
        text = (
            f"{self.task.id:<14} {self.kind:<9} 0.3.1 {self.theirs['base']}/{self.theirs['plus']}; evalplus {base}/"
            f"{ours.outcome.value} ({self.evalplus_rule() or 'UNEXPLAINED'}); differential {other.outcome.value} "
            f"({self.differential_rule() or 'UNEXPLAINED'})"
        )
        details = [f"{name}: {check.reason.value} {check.detail}" for name, check in (("evalplus", ours), ("differential", other))]
        return text if self.agrees else "\n    ".join((text, *details))

    @property
    def agrees(self) -> bool:
        return self.evalplus_rule() == self.differential_rule() == "agrees"

    @property
    def explained(self) -> bool:
        return bool(self.evalplus_rule() and self.differential_rule())


def first_mutant(task: Task) -> str:
    """The first mutant that compiles."""
    for program in mutants(task):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(program, "<mutant>", "exec")
        except SyntaxError:
            continue
        return program
    raise SystemExit(f"{task.id} has no mutant that compiles")


def measure(dataset: str, limit: int | None, workers: int) -> tuple[str, list[Case]]:
    """EvalPlus's version, and what all three say of the benchmark's programs."""
    benchmark = load_benchmark(
        EvalplusBenchmark.model_validate({"name": "evalplus", "dataset": dataset, "path": str(data_file(dataset))})
    )
    tasks = benchmark.tasks[:limit]
    programs = [
        (task, kind, text) for task in tasks for kind, text in (("canonical", task.reference), ("mutant", first_mutant(task)))
    ]
    checks = {checker: _ours(checker, tasks, programs, workers) for checker in ("evalplus", "differential")}
    with Evalplus(dataset, workers=workers, small=True) as peer:
        theirs = peer.ask("check", [(task.id, text) for task, _, text in programs])["results"]
        cases = []
        for number, (task, kind, text) in enumerate(programs):
            reference, check = checks["evalplus"][number]
            case = Case(task, kind, text, theirs[number], {}, check, reference, checks["differential"][number][1])
            if not case.evalplus_rule():
                (head,) = peer.ask("check", [(task.id, text)], min_time_limit=HEAD_SECONDS)["results"]
                case = Case(task, kind, text, theirs[number], head, check, reference, checks["differential"][number][1])
            cases.append(case)
        return peer.version, cases


def _ours(
    checker: str, tasks: Iterable[Task], programs: list[tuple[Task, str, str]], workers: int
) -> list[tuple[Reference, Check]]:
    spec = VerifierSpec(executor="docker", workers=workers)
    with Verifier(spec, checker, resolve_executor(spec, [])) as verifier:
        learning = {task.id: verifier.reference(task) for task in tasks}
        references = {task_id: future.result() for task_id, future in learning.items()}
        checking = [verifier.check(task, references[task.id], text) for task, _, text in programs]
        return [(references[task.id], future.result()) for (task, _, _), future in zip(programs, checking, strict=True)]


def stored_form(version: str, cases: Iterable[Case]) -> dict[str, Any]:
    """What tests/reference keeps of EvalPlus's verdicts."""
    verdicts: dict[str, dict[str, Any]] = {}
    for case in cases:
        row = verdicts.setdefault(case.task.id, {})
        row[case.kind] = [case.theirs["base"], case.theirs["plus"]]
        if case.kind == "mutant":
            row["mutant_sha256"] = hashlib.sha256(case.program.encode()).hexdigest()
    return {"evalplus": version, "verdicts": verdicts}


def write(form: dict[str, Any], path: Path) -> None:
    """One line per task, so that a change shows as one."""
    rows = ",\n".join(f"  {json.dumps(task_id)}: {json.dumps(row)}" for task_id, row in form["verdicts"].items())
    path.write_text(f'{{\n"evalplus": {json.dumps(form["evalplus"])},\n"verdicts": {{\n{rows}\n}}\n}}\n', encoding="utf-8")


def _changed(form: dict[str, Any]) -> list[str]:
    """Tasks of which EvalPlus says something else now than what is stored, or whose mutant is another."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))["verdicts"] if STORED.is_file() else {}
    return [task_id for task_id, row in form["verdicts"].items() if stored.get(task_id) != row]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--limit", type=int, help="tasks of each benchmark; default all")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="a line for every program")
    parser.add_argument("--write", action="store_true", help="store EvalPlus's verdicts for the tests")
    options = parser.parse_args()
    if options.write and options.limit:
        parser.error("--write stores the verdicts on all tasks")
    cases: list[Case] = []
    for dataset in ("humaneval", "mbpp"):
        version, found = measure(dataset, options.limit, options.workers)
        cases += found
    for case in cases:
        if options.all or not case.agrees:
            print(case.line())
    for kind in ("canonical", "mutant"):
        these = [case for case in cases if case.kind == kind]
        passed = Counter(case.their_outcome.value for case in these)
        print(f"\n{kind}: {len(these)} programs, EvalPlus {version} passes {passed['pass']}")
        for name, rule in (("evalplus", Case.evalplus_rule), ("differential", Case.differential_rule)):
            counts = Counter(rule(case) or "UNEXPLAINED" for case in these)
            print(f"  {name:<13}" + ", ".join(f"{reason} {count}" for reason, count in counts.most_common()))
    print("\nrules:")
    for name in sorted({name for case in cases for name in (case.evalplus_rule(), case.differential_rule())} & RULES.keys()):
        print(f"  {name}: {RULES[name]}")
    form = stored_form(version, cases)
    if options.write:
        write(form, STORED)
    elif changed := _changed(form):
        print(f"other than stored in {STORED.relative_to(ROOT)}: {', '.join(changed)}")
    unexplained = sum(not case.explained for case in cases)
    print(f"unexplained: {unexplained} of {len(cases)} programs")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
