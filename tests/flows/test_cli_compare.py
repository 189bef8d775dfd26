"""`evalnoise compare` as a user types it: files, arms of a store, JSON, CSV, charts, and every mistake."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from evalnoise.stats.models.pairs import paired_noise
from flows.cli import app
from schemas.study import Study
from tests.support import stages

HOSTILE = "</script><img src=x onerror=alert(1)> \x1b[2Jé"


def run(*arguments, code=0) -> str:
    result = CliRunner().invoke(app, ["compare", *map(str, arguments)])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert "Traceback" not in result.output
    assert "\x1b[2J" not in result.output
    return result.output if code else result.stdout


def table(models: int, tasks: int, samples: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.binomial(1, rng.beta(0.5, 0.5, (1, tasks, 1)), (models, tasks, samples))


def write(path, scores, names, *, skip=()) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["model", "task", "sample", "score"])
        writer.writerows(
            [names[m], f"t{t}", k, int(scores[m, t, k])]
            for m in range(scores.shape[0]) for t in range(scores.shape[1]) for k in range(scores.shape[2]) if (m, t) not in skip
        )  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("compare") / "results.csv"
    scores = table(3, 60, 4)
    write(path, scores, ("a", HOSTILE, "c"), skip={(2, 0)})
    return path, scores


def test_json_has_every_number(results):
    path, scores = results
    found = json.loads(run("--file", path, "--json", "--sort", "name", "--plan-samples", 8, "--plan-tasks", 240))
    assert [one["model"] for one in found["models"]] == ["a", HOSTILE, "c"]
    assert [one["unmatched_tasks"] for one in found["models"]] == [0, 0, 1]
    pair = next(row for row in found["pairs"] if row["a"] == "a" and row["b"] == HOSTILE)
    noise = paired_noise(scores[0], scores[1])
    assert pair["difference"] == pytest.approx(noise.mean, abs=1e-15)
    assert (pair["se_total"], pair["se_prediction"]) == pytest.approx((noise.se_total, noise.se_prediction), abs=1e-15)
    assert (pair["z"], pair["p"]) == pytest.approx((noise.z, noise.p_value))
    assert pair["covers"] == "population"
    assert pair["se_planned"] == pytest.approx(np.sqrt((max(noise.data, 0) + noise.prediction / 8) / 240))
    assert next(row for row in found["pairs"] if row["b"] == "c")["n_tasks"] == 59
    assert (found["family"], found["left_out"]) == (3, 0)
    again = json.loads(run("--file", path, "--json", "--sort", "name", "--covers", "benchmark"))["pairs"]
    assert next(row for row in again if row["b"] == HOSTILE)["z"] == pytest.approx(noise.z_runs)


def test_the_table_says_what_it_means(results):
    said = run("--file", results[0])
    assert "3 models, 60 tasks" in said
    assert "Unmatched tasks, left out of the pairs that they are missing in: c 1" in said
    assert "In a typical pair (median)" in said
    assert "z and p cover new tasks (population); Holm: over 3 pairs" in said
    assert "\\x1b[2J" in said


def test_twenty_pairs_and_all(tmp_path):
    path = tmp_path / "many.csv"
    write(path, table(8, 60, 2), [f"m{i}" for i in range(8)])
    assert "… 8 more pairs" in run("--file", path)
    assert "more pairs" not in run("--file", path, "--all")


def test_csv_and_charts(results, tmp_path):
    path, _ = results
    run("--file", path, "--csv", tmp_path / "out.csv", "--chart", tmp_path / "out.html")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert len(rows) == 3
    assert {row["a"] for row in rows} | {row["b"] for row in rows} == {"a", HOSTILE, "c"}
    page = (tmp_path / "out.html").read_text("utf-8")
    assert page.count("</script>") == 2
    assert "<img" not in page.split("vegaEmbed(")[-1]
    assert "can be written" in run("--file", path, "--csv", tmp_path / "no" / "x.csv", code=4)
    assert "ends in .svg" in run("--file", path, "--chart", tmp_path / "x.pdf", code=4)


def test_one_sample_each(tmp_path):
    path = tmp_path / "one.csv"
    scores = table(2, 80, 1)
    write(path, scores, "ab")
    (pair,) = json.loads(run("--file", path, "--json"))["pairs"]
    assert (pair["se_data"], pair["se_prediction"]) == (None, None)
    assert "needs 2" in pair["undefined"]
    assert (pair["wins"], pair["losses"]) == (int((scores[0] > scores[1]).sum()), int((scores[0] < scores[1]).sum()))
    assert "undefined (-): one sample per task" in run("--file", path)


def test_tasks_with_one_sample_are_named(tmp_path):
    path, scores = tmp_path / "some.csv", table(2, 60, 3)
    with path.open("w", encoding="utf-8") as out:
        out.write("model,task,sample,score\n")
        out.writelines(f"{m},{t},{k},{scores[m, t, k]}\n" for m in (0, 1) for t in range(60) for k in range(3 if t < 20 else 1))
    assert "Note: 40 of 60 tasks have one sample in a model" in run("--file", path, "--covers", "benchmark")
    (pair,) = json.loads(run("--file", path, "--json", "--covers", "benchmark"))["pairs"]
    assert "40 of 60 tasks have one sample" in pair["note"]


def test_averages_and_the_null_check(tmp_path):
    path = tmp_path / "seeds.csv"
    write(path, table(6, 100, 1), [f"run-{side}-{i}" for side in "ab" for i in range(3)])
    said = run("--file", path, "--average", "run-a-*", "--average", "run-b-*", "--null")
    assert "Averages run-a-* - run-b-*:" in said
    assert "Null check: p < 0.05 in" in said
    assert "expected two patterns" in run("--file", path, "--average", "run-a-*", code=2)
    assert "no model of that name" in run("--file", path, "--average", "x*", "--average", "run-b-*", code=2)
    assert "is in both groups" in run("--file", path, "--average", "run-*", "--average", "run-b-*", code=2)


def test_mistakes(results, tmp_path):
    path, _ = results
    assert "expected z, p" in run("--file", path, "--sort", "size", code=2)
    assert "expected population or benchmark" in run("--file", path, "--covers", "all", code=2)
    assert "takes no arms" in run("study", "--file", path, code=2)
    assert "expected arms" in run(code=2)
    assert "a column 'won'" in run("--file", path, "--score", "won", code=4)
    lone = tmp_path / "lone.csv"
    lone.write_text("model,task,sample,score\nm,t,0,1\n")
    assert "expected two models or more, found 1: m" in run("--file", lone, code=2)
    lone.write_text("model,task,sample,score\nm,t,0,2\n")
    assert "row 1, column 'score'" in run("--file", lone, code=4)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("compare") / "s"
    one = stages.body()["stacks"][0]
    stacks = [{**one, "name": name, "provider": {**one["provider"], "seed": n}} for n, name in enumerate("ab")]
    stages.run(Study.model_validate(stages.body(stacks=stacks, replicates=2)), root, limit=4)
    return root


def test_arms_of_a_store(store):
    found = json.loads(run("small", "--store", store, "--json"))
    assert [one["model"] for one in found["models"]] == ["a", "b"]
    (same,) = json.loads(run("small/a/live", "small/b/live", "--store", store, "--json"))["pairs"]
    assert same == found["pairs"][0]
    row = stages.rows(
        store,
        "select value, se, p_value from contrasts where stack = 'a' and stack_b = 'b' and condition_a = 'live' and headline",
    )
    assert same["difference"] == pytest.approx(row[0][0], abs=1e-12)
    # The table's SE has ddof 1 and t, the paper's ddof 0 and z.
    if row[0][1] is not None:
        assert same["se_measured"] == pytest.approx(row[0][1] * np.sqrt(3 / 4))
    other = json.loads(run("small/a/live", "small/b/cold", "--store", store, "--json"))
    assert [one["model"] for one in other["models"]] == ["a/live", "b/cold"]


def test_a_replay_repeats_one_draw(store):
    (pair,) = json.loads(run("small", "--condition", "replay", "--store", store, "--json", "--covers", "benchmark"))["pairs"]
    assert (pair["z"], pair["p"], pair["se_data"], pair["se_prediction"]) == (None, None, None, None)
    assert "repeat one recorded draw" in pair["undefined"]
    assert "repeat one recorded draw" in run("small/replay", "--store", store)


def test_mistakes_with_a_store(store):
    assert "named twice" in run("small/a/live", "small/a/live", "--store", store, code=2)
    assert "found 1: a" in run("small/a/live", "--store", store, code=2)
    assert "no study or protocol" in run("none", "--store", store, code=6)
    assert "one condition of" in run("small/warm", "--store", store, code=6)
