"""`evalnoise show` in a narrow terminal: judges by their whole names, attempts explained, text broken at words."""

from __future__ import annotations

import dataclasses
import json

import pytest
from rich.console import Console

from flows.views.show import print_task
from flows.views.show_data import TaskView, find_task, with_inputs
from schemas.records import Task, TaskKind
from schemas.study import Study
from schemas.values import encode
from tests.support import stages

PROMPT = "Replace every vowel by the next one and leave everything else precisely as it stands, accented letters included."


def view(*, repeats: int = 5, attempts: int = 2) -> TaskView:
    cell = {"stack": "oracle", "condition": "live", "replicate": 0}
    generations = [
        {**cell, "attempt": i, "candidate": f"x = {i}\n# {PROMPT}", "candidate_sha256": f"{i}" * 64, "response_class": "complete"}
        for i in range(attempts)
    ]
    verdicts = [
        {
            "stack": "oracle",
            "condition": judge,
            "repeat": repeat,
            "candidate_sha256": "0" * 64,
            "verdict": "fail",
            "confidence": 80.0 + repeat,
            "reason": "",
            "reference_outcome": "fail",
        }
        for judge in ("judge-noisy", "judge-exact")
        for repeat in range(repeats)
    ]
    return TaskView(
        study="s",
        protocol="f" * 64,
        task={"task_id": "t/1", "benchmark": "b", "position": 1, "kind": "function", "prompt": PROMPT},
        preflight=[],
        outcomes=[
            {**cell, "outcome": "fail", "reason": "mismatch"},
            {**cell, "condition": "cold", "outcome": "pass", "reason": ""},
        ],
        generations=generations,
        executions=[],
        verdicts=verdicts,
    )


def shown(found: TaskView, width: int = 80) -> str:
    console = Console(width=width, force_terminal=True, color_system=None, highlight=False)
    with console.capture() as capture:
        print_task(found, console)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def test_verdicts_stand_upright_where_they_do_not_fit():
    text = shown(view())
    assert "…" not in text
    for judge in ("judge-noisy", "judge-exact"):
        heading = f"\n{judge} on candidate A of oracle, executed: fail\n"
        assert f"{heading}  repeat 0  fail 80\n  repeat 1  fail 81\n" in text
    assert max(map(len, text.splitlines())) <= 80


def test_verdicts_are_a_table_where_they_fit():
    lines = shown(view(), 120).splitlines()
    header = next(line for line in lines if line.startswith("stack"))
    repeats = [word for i in range(5) for word in ("repeat", str(i))]
    assert header.split() == ["stack", "judge", "candidate", "executed", *repeats]
    rows = [line.split()[:4] for line in lines[lines.index(header) + 1 :]]
    assert rows == [["oracle", judge, "A", "fail"] for judge in ("judge-exact", "judge-noisy")]


def test_a_chain_of_attempts_is_explained_once():
    text = shown(view())
    assert "\nreplicate 0  fail    A > B  mismatch\n" in text
    assert text.count("X > Y: the first attempt's candidate, then that of the retry.") == 1
    assert "X > Y" not in shown(view(attempts=1))


def test_free_text_breaks_at_words():
    text = shown(view(), 60)
    words = set(PROMPT.split()) | {"#"}
    lines = text.splitlines()
    start = lines.index("Prompt") + 1
    assert " ".join(lines[start : start + 2]) == PROMPT
    candidate = lines[lines.index("x = 0") + 1 :][:3]
    assert {word for line in candidate for word in line.split()} <= words


CODE = "def f(text):\n    return '" + "ab " * 60 + "'\n\n\nassert f(1)\n"


def test_into_a_pipe_no_line_is_broken_or_gets_blanks():
    found = view()
    found.generations[0]["candidate"] = CODE
    console = Console(width=80, force_terminal=False, highlight=False)
    with console.capture() as capture:
        print_task(found, console)
    text = capture.get()
    assert f"\n{CODE}" in text
    assert f"\n{PROMPT}\n" in text
    assert not [line for line in text.splitlines() if line.endswith(" ")]


def failed(detail: str, given: Task | None) -> str:
    cell = {"stack": "oracle", "condition": "live", "candidate_sha256": "0" * 64, "outcome": "fail", "reason": "mismatch"}
    return shown(dataclasses.replace(view(attempts=1), executions=[{**cell, "detail": detail}], given=given), 600)


@pytest.mark.parametrize(
    ("detail", "call"),
    [
        ("input 2: expected 1, found 2", "input 2: f((1, 2), {'a': 0.5})"),
        ("base input 0: expected 1, found 2", "base input 0: f(1)"),
        ("plus input 0: ValueError: no", "plus input 0: f('\\x1b[2J')"),
        ("plus input 2: ValueError: no", f"plus input 2: f('{'x' * 397}…"),
        ("plus input 3: of another benchmark", None),
        ("test: AssertionError: input 0: no", None),
    ],
)
def test_the_input_that_failed_is_shown_as_a_call(detail: str, call: str | None):
    arguments = ([1], ["\x1b[2J"], [(1, 2), {"a": 0.5}], ["x" * 1000])
    given = Task("t/1", TaskKind.FUNCTION, "?", "", "f", inputs=tuple(map(encode, arguments)), n_base_inputs=1)
    lines = failed(detail, given).splitlines()
    below = "\n".join(lines[lines.index(f"fail: mismatch: {detail}") + 1 :][:2])
    assert below.startswith(f"  {call}" if call else "x = 0\n")
    assert "\x1b" not in below


def test_inputs_come_from_the_benchmark_that_was_run(reverified, tmp_path):
    found = find_task(reverified, "starter/01-alternating-digits")
    assert with_inputs(found, reverified, None).given.inputs
    away = dataclasses.replace(found, protocol="0" * 64)
    assert (with_inputs(away, reverified, None).given, with_inputs(away, reverified, None).not_given) == (
        None,
        "the protocol cannot be read",
    )
    assert "Failing inputs are not shown: the protocol cannot be read." in shown(with_inputs(away, reverified, None))


def test_another_file_than_the_one_that_was_run_gives_no_inputs(tmp_path):
    file = tmp_path / "tasks.jsonl"
    line = {"id": "t", "prompt": "?", "entry_point": "f", "reference": "def f(x):\n    return x\n", "inputs": [[7]]}
    file.write_text(json.dumps(line) + "\n")
    body = stages.body(benchmark={"name": "jsonl", "path": str(file)}, conditions=[{"name": "live", "kind": "live"}], replicates=2)
    study, store = Study.model_validate(body), tmp_path / "s"
    stages.run(study, store, limit=None)
    found = find_task(store, "t")
    assert with_inputs(found, store, study).given.inputs == ("[7]",)
    assert "--study FILE" in with_inputs(found, store, None).not_given
    file.write_text(json.dumps(line | {"inputs": [[8]]}) + "\n")
    assert with_inputs(found, store, study).not_given == "the benchmark is not the one that was run"
    file.unlink()
    assert "tasks.jsonl" in with_inputs(found, store, study).not_given


@pytest.fixture(scope="module")
def reverified(tmp_path_factory):
    """A store with a condition that generates nothing."""
    root = tmp_path_factory.mktemp("show") / "s"
    conditions = [{"name": "live", "kind": "live"}, {"name": "then", "kind": "reverify", "source": {"condition": "live"}}]
    stages.run(Study.model_validate(stages.body(conditions=conditions, replicates=2)), root, limit=3)
    return root


def test_a_reverification_is_shown_with_its_source(reverified):
    lines = shown(find_task(reverified, "starter/01-alternating-digits")).splitlines()
    section = lines[lines.index("a, then") :]
    assert [line.split()[:2] for line in section[1:4]] == [
        ["passed", section[1].split()[1]],
        ["replicate", "0"],
        ["replicate", "1"],
    ]
    assert "as under a, live" in section


def test_a_reverification_alone_shows_what_it_verified(reverified):
    found = find_task(reverified, "starter/01-alternating-digits", condition="then")
    text = shown(found)
    assert "a, live" not in text
    (candidate,) = {row["candidate"] for row in found.generations}
    assert candidate.splitlines()[0] in text
    assert [row["condition"] for row in found.outcomes] == ["then", "then"]


def test_no_other_generations_are_brought_in_where_there_are_own(reverified):
    found = find_task(reverified, "starter/01-alternating-digits", condition="live")
    assert {row["condition"] for row in found.generations} == {"live"}
