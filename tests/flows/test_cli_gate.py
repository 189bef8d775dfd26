"""`evalnoise gate` as a user types it, on small stores, some of them hostile."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from typer import testing
from typer.main import get_command
from typer.testing import CliRunner

from flows.cli import app
from flows.views.gate import code
from schemas.errors import ExitCode, StoreError
from schemas.study import Study
from tests.support import stages
from tests.support.gate_store import PROVIDER, draws, seal

RUNNER = CliRunner()
COMMAND = get_command(app)
N = 60
RATES = np.where(np.arange(N) < 25, 0.5, np.where(np.arange(N) < 50, 1.0, 0.0))
WORSE = np.where(np.arange(N) < 10, 0.1, RATES)


CHANGES = {
    "suite": {"benchmark_sha256": "2" * 64},
    "grader": {"checkers": {"a": {"name": "differential", "version": 2}}},
    "judge": {"judge": {"repeats": 3}},
    "sampling": {"stack": {"provider": PROVIDER | {"temperature": 0.2}}},
}
SAMPLING = {
    "tokens": {"stack": {"max_tokens": 50}},
    "retry": {"stack": {"retry": "resample"}},
    "responses": {"stack": {"responses": {"empty": "unmeasured"}}},
    "cold": {"condition": {"kind": "temperature-zero"}},
    "cooler": {"condition": {"provider": {"temperature": 0.1}}},
    "seeded": {"stack": {"provider": PROVIDER | {"seed": 7}}},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate") / "store"
    first = seal(folder, "base", draws(RATES, 8, 1))
    seal(folder, "same", draws(RATES, 8, 2), stack={"model": "m2"})
    seal(folder, "worse", draws(WORSE, 6, 3), stack={"model": "m3", "prompt": "other"})
    seal(folder, "short", draws(RATES, 2, 4))
    for name, change in (CHANGES | SAMPLING).items():
        seal(folder, name, draws(RATES, 3, 2), **change)
    seal(folder, "blocked", draws(RATES, 4, 1), blocking=["a, live: over half of the answers were cut off."])
    seal(folder, "open", draws(RATES, 4, 2), complete=False)
    second = seal(folder, "more", draws(RATES, 4, 3), predecessor=first)
    seal(folder, "most", draws(RATES, 4, 6), predecessor=second)
    seal(folder, "replayed", draws(RATES, 4, 2), condition={"kind": "replay", "source": {"condition": "x", "replicate": 0}})
    seal(folder, "two-base", draws(RATES, 2, 5), benchmark="second")
    seal(folder, "two-new", draws(RATES, 2, 6), benchmark="second", complete=False)
    return folder


@pytest.fixture(autouse=True)
def _one_command(monkeypatch):
    """The runner makes every command of the application anew for each call, which takes longer than a gate."""
    monkeypatch.setattr(testing, "_get_command", lambda _app: COMMAND)


def invoke(*arguments):
    return RUNNER.invoke(app, [str(a) for a in arguments], env={"COLUMNS": "1000"})


def run(*arguments, code):
    result = invoke(*arguments)
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert "Traceback" not in result.output
    return result.output if code == ExitCode.USAGE else result.stdout


def gate(root, *arguments, code):
    return run("gate", *arguments, "--store", root, code=code)


def facts(root, *arguments, code):
    return json.loads(gate(root, *arguments, "--json", code=code))


# --- decisions ----------------------------------------------------------------------------------------------------------


def test_block_pass_and_inconclusive_have_codes_of_their_own(root):
    assert "Decision: block" in gate(root, "base", "worse", code=12)
    assert "Decision: pass" in gate(root, "base", "same", "--margin", "0.09", code=0)
    shown = gate(root, "base", "short", code=13)
    assert "Decision: inconclusive" in shown
    assert re.search(r"about \d+ runs per arm would settle it", shown)


def test_the_output_says_what_the_decision_rests_on(root):
    shown = gate(root, "base", "worse", code=12)
    for part in (
        "benchmark: new runs of these tasks", "Cochran-Mantel-Haenszel", "8 of base, 6 of new", "margin 0.02",
        "power at the margin", "by simulation", "model: model is m in BASE and m3 in NEW", "prompt is p in BASE and other in NEW",
        "alpha 0.05",
    ):  # fmt: skip
        assert part in shown


def test_the_json_has_every_fact(root):
    found = facts(root, "base/a/live", "worse/live", code=12)
    assert (found["format"], found["decision"], found["exit_code"], found["primary"]) == (1, "block", 12, "tiny")
    (one,) = found["benchmarks"]
    assert one["decision"] == "block"
    assert one["p"] == one["p_two_sided"] < 0.05
    assert one["difference"] < 0
    assert one["lo"] < one["difference"] < one["hi"]
    assert (one["claim"], one["covers"], one["margin"], one["alpha"]) == ("benchmark", "benchmark", 0.02, 0.05)
    assert (one["n_tasks"], one["runs_base"], one["runs_new"], one["only_base"], one["only_new"]) == (N, 8, 6, 0, 0)
    assert one["base"]["study"] == "base"
    assert {power["effect"] for power in one["power_simulated"]} == {"spread", "concentrated", "mixed"}
    assert all(0 <= power["value"] <= 1 for power in one["power_simulated"])
    assert 0 < one["power_at_margin"] < 1
    assert one["reasons"] == ["significant and worse"]


def test_population_and_one_sided_and_tolerance(root):
    found = facts(root, "base", "worse", "--claim", "population", code=12)["benchmarks"][0]
    assert (found["covers"], found["test"]) == ("population", "paired t over tasks")
    one = facts(root, "base", "worse", "--one-sided", code=12)["benchmarks"][0]
    assert one["p"] == one["p_worse"]
    assert gate(root, "base", "worse", "--margin", "0.3", "--tolerate-within-margin", code=0)
    assert gate(root, "base", "worse", "--margin", "0.3", code=12)


def test_clusters_of_the_benchmark_count_for_the_population(tmp_path):
    groups = [f"g{i // 5}" for i in range(N)]
    for name, rates, seed in (("b", RATES, 1), ("n", WORSE, 2)):
        seal(tmp_path, name, draws(rates, 4, seed), clusters=groups)
    found = facts(tmp_path, "b", "n", "--claim", "population", code=13)["benchmarks"][0]
    assert (found["test"], found["clusters"]) == ("t over clusters of tasks", 12)
    assert found["tasks_to_settle"] > N


def test_scores_beside_pass_and_fail_are_permuted(tmp_path):
    rng = np.random.default_rng(0)
    seal(tmp_path, "b", rng.uniform(0.4, 0.9, (30, 6)).round(2))
    seal(tmp_path, "n", rng.uniform(0.2, 0.7, (30, 6)).round(2))
    one = facts(tmp_path, "b", "n", code=12)["benchmarks"][0]
    assert (one["test"], one["seed"], one["resamples"], one["power_simulated"]) == ("permutation within tasks", 0, 9999, [])
    assert facts(tmp_path, "b", "n", code=12)["benchmarks"][0] == one
    assert facts(tmp_path, "b", "n", "--seed", "5", code=12)["benchmarks"][0]["seed"] == 5


def test_the_published_rule_says_what_it_is(root):
    # A loss of over six points that the claim blocks lies below what its A/A interval came to.
    shown = gate(root, "base", "worse", "--rule", "article", code=0)
    assert "every other time" in shown
    assert "A/A effect" in shown
    # Nothing of the claim.
    assert not any(part in shown for part in ("claim", "margin", "limit of the loss", "excluded"))
    assert "the A/B difference is not above the A/A effect" in shown
    assert "seed 7" in shown
    assert re.search(r"mean of the resamples -\d.\d+, as measured -\d", shown)
    assert "seed 0" in gate(root, "base", "worse", "--rule", "article", "--seed", "0", code=0)
    found = facts(root, "base", "same", "--rule", "article", code=0)
    assert found["rule"] == "article"
    (one,) = found["benchmarks"]
    assert one["article"]["mde"] > 0
    assert one["decision_by_claim"] == "inconclusive"
    assert (one["claim"], one["p"], one["loss_limit"], one["covers"], one["seed"]) == (None, None, None, "population", 7)
    assert one["difference"] == one["article"]["difference"]
    assert one["article"]["measured"] == pytest.approx(one["difference"], abs=0.005)
    assert one["reasons"] == ["the A/B difference is not above the A/A effect"]
    # Too few tasks are too few for it, too.
    assert facts(root, "base", "base", "--rule", "article", code=13)["decision"] == "inconclusive"


def test_two_stores(root, tmp_path):
    seal(tmp_path, "elsewhere", draws(RATES, 8, 9))
    assert "Decision: pass" in run(
        "gate", "base", "elsewhere", "--store", tmp_path, "--base-store", root, "--margin", "0.09", code=0
    )


def test_a_gain_is_said_as_a_gain(root):
    said = gate(root, "worse", "base", code=0)
    assert "no loss, a gain of at least 0." in said
    assert "loss up to -" not in said
    assert ": difference +- z SE over new runs" in said


# --- records that cannot bear a decision --------------------------------------------------------------------------------


def test_an_arm_against_itself_is_no_comparison(root):
    found = facts(root, "base", "base", code=13)
    assert found["decision"] == "inconclusive"
    assert found["benchmarks"][0]["reasons"][0].startswith("BASE and NEW are the same cells")


@pytest.mark.parametrize("aspect", CHANGES)
def test_another_measurement_demands_recalibration(root, aspect):
    found = facts(root, "base", aspect, "--margin", "0.3", code=13)["benchmarks"][0]
    assert found["reasons"][0].startswith(f"{aspect} changed, so recalibrate")
    assert found["reasons"][-1] == "without that it would be pass"
    assert found["recalibrate"]
    allowed = facts(root, "base", aspect, "--margin", "0.3", "--allow", aspect, code=0)["benchmarks"][0]
    assert allowed["differs"][0].startswith(f"{aspect}: ")


@pytest.mark.parametrize("name", SAMPLING)
def test_every_part_of_sampling_counts(root, name):
    assert "sampling changed" in gate(root, "base/live", f"{name}/live", code=13)


def test_unfinished_blocked_and_inherited_records(root):
    shown = facts(root, "blocked", "open", "--margin", "0.3", code=13)["benchmarks"][0]["reasons"]
    assert "BASE: a, live: over half of the answers were cut off." in shown
    assert any("NEW: its protocol is not complete" in reason for reason in shown)
    for heir in ("more", "most"):
        newest = facts(root, "base", heir, code=13)["benchmarks"][0]["reasons"]
        assert any("inherits cells" in reason for reason in newest)


def test_replays_are_no_new_runs(root):
    assert "NEW repeats one recorded run (replay)" in gate(root, "base/live", "replayed/live", "--allow", "sampling", code=13)


def test_unmatched_and_unmeasured_are_counted(tmp_path):
    seal(tmp_path, "base", draws(RATES, 10, 1), tasks=[f"T/{i}" for i in range(N)])
    holed = draws(RATES, 10, 2)
    holed[:, 0] = np.nan
    seal(tmp_path, "new", holed, tasks=[f"T/{i + 2}" for i in range(N)])
    one = facts(tmp_path, "base", "new", "--margin", "0.0001", code=13)["benchmarks"][0]
    assert (one["n_tasks"], one["only_base"], one["only_new"]) == (N - 2, 2, 2)
    assert (one["unmeasured_base"], one["unmeasured_new"], one["runs_new"]) == (0, pytest.approx(0.1), 9)
    assert "2 only in base, 2 only in new" in gate(tmp_path, "base", "new", "--margin", "0.0001", code=13)
    strict = facts(tmp_path, "base", "new", "--max-unmeasured", "0.05", code=13)["benchmarks"][0]
    assert any("10.0% of the cells of NEW are unmeasured" in reason for reason in strict["reasons"])


@pytest.mark.parametrize("rule", ["claim", "article"])
def test_missing_cells_that_could_be_failures_are_no_pass(root, tmp_path, rule):
    holed = draws(RATES, 8, 2)
    holed[42:50, :6] = np.nan
    seal(tmp_path, "new", holed)
    arguments = ("gate", "base", "new", "--base-store", root, "--store", tmp_path, "--margin", "0.09", "--rule", rule)
    found = json.loads(run(*arguments, "--json", code=13))
    said = "48 of 480 cells of NEW are unmeasured; were they failures, "
    assert "unmeasured 0.0% of the cells of base and 10.0% of new" in found["sentence"]
    assert said in found["sentence"]
    assert said in found["benchmarks"][0]["reasons"][0]
    assert found["benchmarks"][0]["loss_limit_if_failed"] > 0.09


# --- what a user may get wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--margin", "0"), "margin"),
        (("--alpha", "0.9"), "alpha"),
        (("--alpha", "1e-300"), "alpha"),
        (("--claim", "both"), "--claim both"),
        (("--rule", "mine"), "--rule mine"),
        (("--allow", "model"), "--allow model"),
        (("--also", "a,b,c"), "--also a,b,c"),
        (("--primary", "gone"), "--primary gone"),
    ],
)
def test_misuse_is_told(root, arguments, said):
    assert said in gate(root, "base", "same", *arguments, code=2)


def test_an_arm_that_is_not_there(root, tmp_path):
    for arguments in (("base", "gone"), ("base", "same/b/live")):
        result = invoke("gate", *arguments, "--store", root)
        assert (result.exit_code, "Traceback" in result.output) == (6, False)
    assert invoke("gate", "a", "b", "--store", tmp_path / "none").exit_code == 6


# --- hostile names, and files for machines ------------------------------------------------------------------------------

HOSTILE = "x ##[error]`](http://evil)</testsuite>|@all\x1b[2J\x07 %\r\n::error::owned\u2028<b>\u202e&\x00"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "store"
    seal(folder, "base", draws(RATES, 3, 1), benchmark=HOSTILE, blocking=[f"a, live: {HOSTILE}."])
    seal(folder, "new", draws(WORSE, 3, 2), benchmark=HOSTILE, stack={"model": HOSTILE[:40], "prompt": "q"})
    return folder


def test_hostile_names_are_printed_as_text(hostile):
    shown = gate(hostile, "base", "new", code=13)
    assert not set(shown) & set("\x1b\x07\x00\u202e\u2028\r")
    # What a CI system would take for a command of its own: a line that begins so, or the older form anywhere.
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())
    assert "##[" not in shown
    found = facts(hostile, "base", "new", code=13)
    said = found["sentence"]
    assert "\n" not in said
    # Outside code spans there is nothing of theirs.
    outside = "".join(said.split("`")[::2])
    assert "evil" not in outside
    assert "<" not in outside
    assert "@" not in outside
    assert said.count("`") % 2 == 0


def test_junit_is_xml_that_says_the_same(hostile, root, tmp_path):
    report = tmp_path / "gate.xml"
    gate(hostile, "base", "new", "--junit", report, code=13)
    suite = ET.parse(report).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("1", "1", "0")
    case = suite.find("testcase")
    assert case.get("name").startswith("x ##[error]`](http://evil)</testsuite>|@all")
    assert case.find("error").get("type") == "inconclusive"
    gate(root, "base", "worse", "--also", "base,same", "--margin", "0.09", "--junit", report, code=12)
    suite = ET.parse(report).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("2", "0", "1")
    values = {one.get("name"): one.get("value") for one in suite.find("testcase").iter("property")}
    assert values["n_tasks"] == str(N)
    assert float(values["p"]) < 0.05
    assert "block" in suite.find("system-out").text
    result = invoke("gate", "base", "same", "--store", root, "--junit", root)
    assert (result.exit_code, "found a folder" in result.stderr) == (2, True)


@pytest.mark.parametrize(("arguments", "code"), [(("gone", "base"), 6), (("base", "same", "--margin", "7"), 2)])
def test_a_junit_report_does_not_outlive_its_gate(root, tmp_path, arguments, code):
    report = tmp_path / "gate.xml"
    gate(root, "base", "same", "--margin", "0.09", "--junit", report, code=0)
    gate(root, *arguments, "--junit", report, code=code)
    suite = ET.parse(report).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("1", "1", "0")
    assert "failed before it decided" in suite.find("testcase").find("error").text


def test_a_report_that_cannot_be_written_is_no_success(root, tmp_path, monkeypatch):
    def full(*_):
        raise StoreError("gate.xml", expected="room", found="none", remedy="Make room.")

    monkeypatch.setattr("flows.views.gate_files.write_junit", full)
    result = invoke("gate", "base", "worse", "--store", root, "--junit", tmp_path / "gate.xml")
    assert result.exit_code == 12
    assert "Decision: block" in result.stdout


def test_another_measurement_names_its_remedy(root):
    assert "run BASE again as NEW was measured, or accept the change with --allow sampling" in gate(
        root, "base", "sampling", code=13
    )


def test_help_is_whole_at_80_columns():
    shown = RUNNER.invoke(app, ["gate", "--help"], env={"COLUMNS": "80"}).output
    assert "--tolerate-within-margin" in shown


def test_annotations_cannot_be_broken_out_of(hostile, root):
    shown = gate(hostile, "base", "new", "--github", code=13)
    commands = [line for line in shown.splitlines() if line.startswith("::")]
    (line,) = commands
    level, title, message = re.fullmatch(r"::(\w+) title=([^:,]*)::(.*)", line).groups()
    assert level == "warning"
    assert "%3A%3Aerror" in title
    assert message.count("%") == len(re.findall(r"%(?:25|0A|0D)", message))
    assert [line.split(" ")[0] for line in gate(root, "base", "worse", "--github", code=12).splitlines() if line[:2] == "::"] == [
        "::error"
    ]
    result = invoke("gate", "base", "worse", "--store", root, "--github", "--json")
    assert json.loads(result.stdout)["decision"] == "block"


def test_code_spans():
    assert code("a`b\n c\x1b") == "`a'b c\\x1b`"


# --- a study that was run -----------------------------------------------------------------------------------------------


def test_studies_of_simulated_models(tmp_path):
    """Two oracle models through every stage, and a gate between them."""
    for name, alpha, beta in (("old", 8.0, 1.0), ("bad", 1.0, 8.0)):
        stack = stages.body()["stacks"][0]
        stack["provider"] = {"name": "oracle", "seed": len(name), "stable": 0.0, "alpha": alpha, "beta": beta}
        changes = {"study": name, "conditions": [{"name": "live", "kind": "live"}], "stacks": [stack], "replicates": 2}
        stages.run(Study.model_validate(stages.body(**changes)), tmp_path, limit=20)
    found = facts(tmp_path, "old", "bad", code=12)["benchmarks"][0]
    assert found["difference"] < -0.3
    assert any(re.search(r"alpha is 8(\.0)? in BASE and 1(\.0)? in NEW", text) for text in found["differs"])
    assert not found["recalibrate"]
    assert not found["unfit"]
