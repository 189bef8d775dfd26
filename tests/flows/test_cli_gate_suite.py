"""`evalnoise gate` between suites that have not the same tasks, and on stores whose table of tasks was cut."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from typer.testing import CliRunner

from flows.cli import app
from tests.support.gate_store import draws, seal

N, BROKEN = 200, 19
KEPT = N - BROKEN
CUT = {"benchmark_sha256": "2" * 64}


def scores(seed):
    found = draws(np.where(np.arange(N) % 5 == 0, 0.7, 1.0), 4, seed)
    found[KEPT:] = float(seed == 1)
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """BASE passes its last 19 tasks and NEW fails them; `cut` and `forged` lack them, `one` lacks one that passes."""
    folder = tmp_path_factory.mktemp("suite") / "store"
    seal(folder, "b", scores(1))
    seal(folder, "cut", scores(2)[:KEPT], **CUT)
    seal(folder, "forged", scores(2)[:KEPT], n_tasks=N)
    same = scores(3)
    same[KEPT:] = 1.0
    seal(folder, "one", same[:-1], **CUT)
    return folder


def gate(root, *arguments, code):
    result = CliRunner().invoke(app, ["gate", *map(str, arguments), "--store", str(root)], env={"COLUMNS": "1000"})
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout if code != 6 else result.output


@pytest.mark.parametrize("options", [("--claim", "population"), ("--rule", "article")])
def test_a_suite_without_the_tasks_that_new_fails_does_not_pass(root, options):
    found = json.loads(gate(root, "b", "cut", "--allow", "suite", "--margin", "0.06", *options, "--json", code=13))
    assert "19 tasks of BASE are not in NEW; were they failures, " in found["sentence"]
    assert "run both arms on one suite" in found["sentence"]
    assert "decided on the 181 tasks that both measured: 19 only in base not covered" in found["sentence"]
    (one,) = found["benchmarks"]
    assert (one["only_base"], one["unmeasured_new"], one["n_tasks"]) == (BROKEN, 0, KEPT)
    assert any("19 tasks of BASE are not in NEW" in reason for reason in one["reasons"])


def test_a_pass_on_fewer_tasks_says_so_everywhere(root, tmp_path):
    report = tmp_path / "gate.xml"
    pair = ("b", "one", "--allow", "suite", "--margin", "0.06", "--claim", "population")
    said = "decided on the 199 tasks that both measured: 1 only in base not covered"
    found = json.loads(gate(root, *pair, "--json", "--junit", report, code=0))
    assert said in found["sentence"]
    assert found["benchmarks"][0]["not_covered"] == said
    properties = {one.get("name"): one.get("value") for one in ET.parse(report).iter("property")}
    assert properties["not_covered"] == said
    for rule in ("claim", "article"):
        assert gate(root, *pair, "--rule", rule, code=0).count(said) == 2  # in the table and in the sentence


def test_a_table_with_fewer_tasks_than_its_protocol_is_refused(root):
    said = gate(root, "b", "forged", "--margin", "0.06", code=6)
    assert "expected the 200 tasks of its protocol" in said
    assert "181 tasks in its table" in said
