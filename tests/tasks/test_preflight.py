"""What preflight finds and keeps: known-bad candidates that must fail, inputs that were dropped, tasks that cannot be measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalnoise.report.summary import left_out_sentences, read_summary, refuse_blocked
from schemas.errors import BlockedError
from schemas.study import Study
from schemas.values import MAX_BYTES
from tests.support import stages

ONE = "def f(x):\n    return x + 1\n"
LARGE = "def f(x):\n    return 'x' * x\n"


def run(folder: Path, checker: str, tasks: dict[str, dict[str, Any]]) -> Path:
    """A study of these tasks by one replicate of the oracle."""
    lines = [{"id": name, "prompt": "?", "entry_point": "f", "reference": ONE, **task} for name, task in tasks.items()]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    stack = stages.body()["stacks"][0] | {"verifier": {**stages.PROCESS, "checker": checker}}
    body = stages.body(
        benchmark={"name": "jsonl", "path": str(folder / "tasks.jsonl")},
        stacks=[stack],
        conditions=[{"name": "live", "kind": "live"}],
        replicates=1,
    )
    stages.run(Study.model_validate(body), folder / "s", limit=None)
    return folder / "s"


def checks(store: Path, name: str) -> list[tuple[Any, ...]]:
    return stages.rows(store, f"select severity, blocks, value, sentence from checks where \"check\" = '{name}'")


def test_a_task_that_no_wrong_value_fails_is_told_and_one_that_nothing_fails_is_left_out(tmp_path) -> None:
    store = run(
        tmp_path,
        "asserts",
        {
            "strict": {"test": "def check(candidate):\n    assert candidate(1) == 2\n"},
            "lax": {"test": "def check(candidate):\n    candidate(1)\n"},
            "void": {"test": "def check(candidate):\n    try:\n        candidate(1)\n    except BaseException:\n        pass\n"},
        },
    )
    found = stages.rows(store, "select task_id, outcome, reason, known_bad from preflight order by position")
    assert found == [
        ("strict", "pass", "pass", "wrong value"),
        ("lax", "pass", "pass", "raises"),
        ("void", "unmeasured", "accepts-anything", ""),
    ]
    sentence = "Stack a: a value that no task asks for passes, and only a candidate that raises fails, on lax."
    assert checks(store, "every_value_passes") == [("info", False, 1.0, sentence)]
    (left_out,) = checks(store, "preflight_failed")
    assert (left_out[0], "accepts-anything" in left_out[3], "void" in left_out[3]) == ("warning", True, True)
    # One task of three is more than a tenth: what is left is another benchmark.
    sentence = (
        "Stack a: 1 of 3 tasks is not measured, more than a tenth: numbers over the others must not be used as the benchmark's."
    )
    assert checks(store, "preflight_lost") == [("error", True, 1.0, sentence)]
    ((study, protocol),) = stages.rows(store, "select distinct study, protocol from tasks")
    found_summary = read_summary(store, study, protocol)
    assert left_out_sentences(found_summary) == ["1 of 3 tasks is not measured: preflight, see the checks."]
    with pytest.raises(BlockedError, match="1 of 3 tasks"):
        refuse_blocked(found_summary)
    assert stages.rows(store, "select outcome, reason from outcomes where task_id = 'void'") == [
        ("unmeasured", "reference-unusable")
    ]
    assert stages.rows(store, "select count(*) from calls where task_id = 'void'") == [(0,)]


def test_inputs_whose_output_is_too_large_are_counted(tmp_path) -> None:
    tasks = {"whole": {"inputs": [[1], [2]]}, "large": {"reference": LARGE, "inputs": [[1], [MAX_BYTES], [2], [MAX_BYTES + 9]]}}
    store = run(tmp_path, "differential", tasks)
    found = stages.rows(store, "select task_id, inputs_used, n_dropped from preflight order by position")
    assert found == [("whole", [0, 1], 0), ("large", [0, 2], 2)]
    sentence = "Stack a: 1 task is verified without inputs whose output is over a limit (large without 2)."
    assert checks(store, "inputs_dropped") == [("info", False, 1.0, sentence)]


def test_inputs_over_the_cap_are_not_dropped(tmp_path) -> None:
    store = run(tmp_path, "differential", {"many": {"inputs": [[n] for n in range(130)]}, "few": {"inputs": [[1]]}})
    found = stages.rows(store, "select task_id, len(inputs_used), n_dropped from preflight order by position")
    assert found == [("many", 120, 0), ("few", 1, 0)]
    assert checks(store, "inputs_dropped") == []
    assert checks(store, "every_value_passes") == []
