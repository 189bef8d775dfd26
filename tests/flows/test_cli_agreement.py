"""`evalnoise agreement` as a user types it: files of ratings, judges of a study, human labels, mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from schemas.study import Study
from tests.support import stages

RUNNER = CliRunner()
QUICK = ("--resamples", "200")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("agreement") / "store"
    judges = [
        {"name": name, "model": "m", "provider": {"name": "oracle", "seed": 7, "flip": flip}}
        for name, flip in (("sure", 0), ("torn", 0.3))
    ]
    stages.run(Study.model_validate(stages.body(judge={"conditions": judges, "repeats": 4})), root, limit=8)
    return root


def run(*arguments, code=0) -> str:
    result = RUNNER.invoke(app, ["agreement", *map(str, arguments)], env={"COLUMNS": "1000"})
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert "Traceback" not in result.output
    return result.output if code else result.stdout


def written(tmp_path, text, name="r.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def labels(n=50, wrong=(3, 7)):
    rows = ["item,rater,rating"]
    for i in range(n):
        truth = i % 3 > 0
        rows += [f"q{i},human,{int(truth)}", f"q{i},grader,{int(truth != (i in wrong))}"]
    return "\n".join(rows) + "\n"


def test_a_grader_against_fifty_human_labels(tmp_path):
    path = written(tmp_path, labels())
    shown = run(path, "--reference", "human", *QUICK)
    assert "grader against human" in shown
    assert "Landis and Koch's convention" in shown
    found = json.loads(run(path, "--reference", "human", "--json", *QUICK))
    (block,) = found["blocks"]
    numbers = {number["name"]: number for number in block["numbers"] if "percentile" not in number["method"]}
    # q3 is wrong and was passed, q7 is right and was failed.
    assert block["table"]["counts"] == [[32, 1], [1, 16]]
    assert numbers["accuracy"]["value"] == 0.96
    assert numbers["false_accept_rate"]["value"] == pytest.approx(1 / 17)
    assert numbers["kappa"]["lo"] < numbers["kappa"]["value"] < numbers["kappa"]["hi"]
    assert found["seed"] == 0


def test_a_wide_file(tmp_path):
    rows = "\n".join(f"q{i},{int(i % 3 > 0)},{int((i % 3 > 0) != (i == 3))}" for i in range(50))
    path = written(tmp_path, f"item,judge,human\n{rows}\n")
    shown = run(path, "--reference", "human", *QUICK)
    assert "judge against human" in shown
    assert "judge and human" in run(path, "--raters", "judge, human", *QUICK)
    assert "prevalence is an index: share of passes minus share of fails" in run(path, *QUICK)
    assert "'boss'" in run(path, "--raters", "judge,boss", code=4)
    assert "--raters are for a file" in run("study", "--raters", "a,b", code=2)


def test_graded_scales_get_weighted_kappas_and_all_alphas(tmp_path):
    rows = "\n".join(f"q{i},{rater},{1 + (i + (i % 5 == 0) * (rater == 'b')) % 4}" for i in range(30) for rater in "abc")
    found = json.loads(run(written(tmp_path, f"item,rater,rating\n{rows}\n"), "--json", *QUICK))
    assert [block["kind"] for block in found["blocks"]] == ["pair", "pair", "pair", "all"]
    names = {number["name"] for block in found["blocks"] for number in block["numbers"]}
    assert names >= {"kappa_linear", "kappa_quadratic", "fleiss_kappa", "alpha", "alpha_ordinal", "alpha_interval"}


def test_the_judges_of_a_study_have_the_numbers_of_estimates(store):
    found = json.loads(run("small", "--store", store, "--json"))
    assert [block["kind"] for block in found["blocks"]] == ["itself", "reference", "itself", "reference", "pair"]
    torn = {(n["name"], n["method"], n["covers"]): n for block in found["blocks"][2:4] for n in block["numbers"]}
    stored = stages.rows(
        store,
        "select estimate, method, covers, value, lo, hi, note from estimates"
        " where condition = 'torn' and estimate like 'verdict_%'",
    )
    by_name = {(name.removeprefix("verdict_"), method, covers): rest for name, method, covers, *rest in stored}
    assert len(torn) >= 15
    for key, number in torn.items():
        assert by_name[key] == [number["value"], number["lo"], number["hi"], number["note"]]
    pair = {n["name"]: n["value"] for n in found["blocks"][4]["numbers"]}
    rows = dict(stages.rows(store, "select estimate, value from contrasts where estimate like 'judges_%'"))
    assert rows == {f"judges_{name}": pair[name] for name in ("bias", "kappa", "pabak")}


def test_one_judge_against_human_labels(store, tmp_path):
    tasks = [task for (task,) in stages.rows(store, "select distinct task_id from verdicts where condition = 'sure' order by 1")]
    text = "item,rating\n" + "".join(f'"{task}",pass\n' for task in tasks[:5]) + "other,fail\n"
    shown = run("small", "--judge", "sure", "--labels", written(tmp_path, text), "--store", store)
    assert "majority against human labels (5 items with a known answer" in shown
    assert "torn" not in shown
    assert "false_accept_rate  undefined: no item is wrong by the reference" in shown


def test_mistakes_are_sentences(store, tmp_path):
    file = written(tmp_path, labels(5))
    assert "expected a rater 'x'" in run(file, "--reference", "x", code=4)
    assert "one rating per item" in run(written(tmp_path, "item,rating\na,pass\n", "one.csv"), code=4)
    assert "judge conditions sure, torn" in run("small", "--judge", "x", "--store", store, code=2)
    assert "--reference and --raters are for a file" in run("small", "--reference", "x", "--store", store, code=2)
    assert "--judge and --labels are for a study" in run(file, "--judge", "x", code=2)
    assert "expected a number between 0 and 1" in run(file, "--level", "95", code=2)
    assert "none of 5" in run("small", "--labels", file, "--store", store, code=4)
    run("absent", "--store", store, code=6)


def test_hostile_names_are_escaped(tmp_path):
    text = 'item,rater,rating\na,"\x1b[2Jx\ny",good\na,b,bad\nb,b,good\n'
    shown = run(written(tmp_path, text), *QUICK)
    assert "\x1b" not in shown
    assert "\\x1b[2Jx" in shown
