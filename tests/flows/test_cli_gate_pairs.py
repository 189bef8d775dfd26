"""`evalnoise gate` over several benchmarks: by --also or a file of pairs; copies of one another, in whole and in part."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer import testing
from typer.main import get_command
from typer.testing import CliRunner

from flows.cli import app
from tests.support.gate_store import draws, seal

RUNNER = CliRunner()
COMMAND = get_command(app)
N = 60
RATES = np.where(np.arange(N) < 25, 0.5, np.where(np.arange(N) < 50, 1.0, 0.0))
WORSE = np.where(np.arange(N) < 10, 0.1, RATES)
PROMPTS = [f"Say {i}." for i in range(N)]
OLD, LOST = draws(RATES, 8, 11), draws(np.where(np.arange(N) < 4, 0.2, RATES), 8, 13)
"""A second benchmark, on which something was lost: p about 0.03."""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate") / "store"
    seal(folder, "base", draws(RATES, 8, 1))
    seal(folder, "same", draws(RATES, 8, 2), stack={"model": "m2"})
    seal(folder, "worse", draws(WORSE, 6, 3), stack={"model": "m3", "prompt": "other"})
    seal(folder, "short", draws(RATES, 2, 4))
    seal(folder, "blocked", draws(RATES, 4, 1), blocking=["a, live: over half of the answers were cut off."])
    seal(folder, "two-base", draws(RATES, 2, 5), benchmark="second")
    seal(folder, "two-new", draws(RATES, 2, 6), benchmark="second", complete=False)
    # One benchmark, a copy with other ids and another order, and a part of it under other ids.
    for name, scores in (("old", OLD), ("lost", LOST)):
        seal(folder, name, scores, benchmark="third", prompts=PROMPTS)
        seal(
            folder, f"{name}-copy", scores[::-1], benchmark="fourth", tasks=[f"C/{i}" for i in range(N)], benchmark_sha256="2" * 64
        )
        part = {"tasks": [f"P/{i}" for i in range(40)], "prompts": PROMPTS[:40], "benchmark_sha256": "3" * 64}
        seal(folder, f"{name}-part", scores[:40], benchmark="fifth", **part)
    return folder


@pytest.fixture(autouse=True)
def _one_command(monkeypatch):
    monkeypatch.setattr(testing, "_get_command", lambda _app: COMMAND)


def gate(root, *arguments, code):
    result = RUNNER.invoke(app, ["gate", *map(str, arguments), "--store", str(root)], env={"COLUMNS": "1000"})
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert "Traceback" not in result.output
    return result.output if code in {2, 4} else result.stdout


def facts(root, *arguments, code):
    return json.loads(gate(root, *arguments, "--json", code=code))


def test_several_benchmarks(root):
    found = facts(root, "base", "same", "--also", "base,worse", "--margin", "0.09", code=12)
    assert found["decision"] == "block"
    assert [one["decision"] for one in found["benchmarks"]] == ["pass", "block"]
    assert "Holm" in found["family"]
    shown = gate(root, "base", "same", "--also", "base,short", "--margin", "0.09", code=0)
    assert "(primary)" in shown
    assert "(further)" in shown
    assert gate(root, "base", "same", "--also", "base", code=2)
    assert "several" not in gate(root, "base", "same", "--primary", "tiny", "--margin", "0.09", code=0)
    assert "expected the name of one benchmark" in gate(root, "base", "same", "--also", "base,short", "--primary", "tiny", code=2)


def test_the_sentence_begins_with_what_blocks(root):
    said = facts(root, "base", "short", "--also", "base,worse", "--margin", "0.001", code=12)["sentence"]
    assert re.match(r"\*\*block\*\*: on `tiny`, `worse[^`]*` is blocked against [^;]*; difference -0", said)
    assert re.search(r"Of 1 other benchmark: `tiny` \(primary\) is not decided, difference [+-]0\.\d+ \[.*\], p \d", said)


def test_the_primary_may_be_named(root):
    pairs = ("base", "same", "--also", "two-base,two-new", "--margin", "0.09")
    assert facts(root, *pairs, code=13)["primary"] == "tiny"
    assert facts(root, *pairs, "--primary", "second", code=13)["primary"] == "second"


def test_a_pair_counts_once_and_an_unfit_one_lets_nothing_pass(root):
    again = ("--also", "base,base", "--also", "base/a/live,base")
    for more in (again, ("--also", "base/live,same"), ("--also", "same,base")):
        assert "named twice" in gate(root, "base", "same", *more, code=2)
    others = ("--also", "base,base", "--also", "base,blocked", "--also", "base,worse", "--margin", "0.09")
    found = facts(root, "base", "same", *others, code=12)
    assert "1 more by Holm among themselves (2 left out, unfit or without a p)" in found["family"]
    assert found["benchmarks"][3]["p"] == found["benchmarks"][3]["p_two_sided"]
    shown = facts(root, "base", "same", "--also", "two-base,two-new", "--margin", "0.09", code=13)["sentence"]
    assert "The records of `second` cannot bear a decision, so this is no pass." in shown


# --- copies -------------------------------------------------------------------------------------------------------------


def test_a_copy_under_other_names_counts_once(root):
    lost = facts(root, "old", "lost", code=12)["benchmarks"][0]
    assert 0.015 < lost["p"] < 0.05
    pairs = ("base", "same", "--also", "old,lost", "--also", "old-copy,lost-copy", "--margin", "0.09")
    found = facts(root, *pairs, code=12)
    assert "1 more by Holm among themselves; 1 with the same scores as another counted once" in found["family"]
    assert [one["p"] for one in found["benchmarks"][1:]] == [lost["p"]] * 2
    assert found["benchmarks"][1]["data"] == found["benchmarks"][2]["data"]


def test_a_loss_that_others_dilute_is_no_pass(root):
    pairs = ("base", "same", "--also", "old,lost", "--also", "base,short", "--also", "same,short", "--margin", "0.09")
    found = facts(root, *pairs, code=13)
    assert [one["decision"] for one in found["benchmarks"][:2]] == ["pass", "inconclusive"]
    assert "significantly worse alone" in found["benchmarks"][1]["reasons"][0]
    assert found["sentence"].endswith("Alone, `third` speaks against NEW, so this is no pass.")


def test_a_part_of_a_benchmark_is_no_other(root):
    said = gate(root, "base", "same", "--also", "old,lost", "--also", "old-part,lost-part", code=2)
    assert "have runs in common, as a benchmark and a part of it have" in said
    # Other runs on the same tasks are another test.
    assert gate(root, "base", "same", "--also", "old,lost", "--also", "old,lost-copy", "--margin", "0.09", code=12)


def test_tasks_that_repeat_others_are_no_evidence(tmp_path):
    for name, rates, seed in (("b", RATES, 1), ("n", RATES, 2)):
        scores = draws(rates, 8, seed)
        seal(tmp_path, name, np.vstack([scores] * 4), prompts=PROMPTS * 4)
    (one,) = facts(tmp_path, "b", "n", "--margin", "0.09", code=13)["benchmarks"]
    assert one["reasons"][0].startswith("180 of 240 tasks ask the same as another")


# --- a file of pairs ----------------------------------------------------------------------------------------------------


def test_pairs_of_a_file(root, tmp_path):
    table = tmp_path / "pairs.csv"
    table.write_text("new,base,margin,name\nsame,base,0.09,code\nshort,base,,short one\n")
    found = facts(root, "--pairs", table, "--margin", "0.3", code=0)
    assert [(one["benchmark"], one["margin"]) for one in found["benchmarks"]] == [("code", 0.09), ("short one", 0.3)]
    assert found["primary"] == "code"
    assert facts(root, "--pairs", table, "--margin", "0.3", "--primary", "short one", code=0)["primary"] == "short one"
    lines = tmp_path / "pairs.jsonl"
    lines.write_text('{"base": "base", "new": "short"}\n')
    found = facts(root, "base", "same", "--pairs", lines, "--margin", "0.09", code=0)
    assert [one["new"]["study"] for one in found["benchmarks"]] == ["same", "short"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("base,new\n", "row"),
        ("base\nbase\n", "column 'new'"),
        ("base,new\nbase,\n", "row 1, column 'new'"),
        ("base,new,margin\nbase,same,0\n", "row 1, column 'margin': expected a loss of score in (0, 1], or nothing, found '0'"),
        ("base,new,margin\nbase,same,true\n", "found 'true'"),
        ("base,new,margin\nbase,same,nan\n", "found 'nan'"),
        ("base,new,name\nbase,same,x\nbase,short,x\n", "row 2, column 'name': expected another name, found 'x', as in row 1"),
    ],
)
def test_a_file_of_pairs_that_is_none(root, tmp_path, text, said):
    table = tmp_path / "pairs.csv"
    table.write_text(text)
    assert said in " ".join(gate(root, "--pairs", table, code=4).split())


def test_pairs_that_are_missing(root, tmp_path):
    for arguments in ((), ("base",), ("--also", "base,same")):
        assert "expected BASE and NEW, or --pairs FILE" in gate(root, *arguments, code=2)
    assert "nothing.csv" in gate(root, "--pairs", tmp_path / "nothing.csv", code=4)
