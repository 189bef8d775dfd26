"""`evalnoise compare` as a user types it: files, arms of a store, JSON, CSV, charts, and every mistake."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from typer.testing import CliRunner

from evalnoise.readers.panel import panel_of_file
from evalnoise.stats.models.pairs import paired_noise
from flows.cli import app
from flows.views import compare_columns
from flows.views.compare_data import Asked, Sort, compared, order
from schemas.study import Study
from tests.support import stages

HOSTILE = "</script><img src=x onerror=alert(1)> \x1b[2Jé"


def run(*arguments, code=0) -> str:
    result = CliRunner().invoke(app, ["compare", *map(str, arguments)], env={"COLUMNS": "1000"})
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
    assert "z and p cover new tasks (population); p: paired t; Holm: this p over 3 pairs" in said
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
    assert "a folder that is there" in run("--file", path, "--csv", tmp_path / "no" / "x.csv", code=2)
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


def test_no_share_above_one(tmp_path):
    """Both models keep to one score in nearly every task, but their samples vary: the data variance is below 0."""
    path = tmp_path / "below.csv"
    a = np.array([[[1, 0]] * 60, [[0, 1]] * 30 + [[1, 0]] * 29 + [[1, 1]]])
    write(path, a, "ab")
    said = run("--file", path)
    assert "prediction noise dominates: no data noise can be told from chance, so more samples a task help." in said
    assert "% of the total variance" not in said
    assert "undefined (-): the estimate of the data variance is below 0, which is chance" in said
    (pair,) = json.loads(run("--file", path, "--json"))["pairs"]
    assert (pair["prediction_share"], pair["se_data"]) == (None, None)
    assert "data variance is below 0" in pair["undefined"]
    assert "predicted" not in said + pair["undefined"]
    for more, planned in (("--plan-samples", 10**12), False), (("--plan-samples", 1), True), (("--plan-tasks", 10**12), True):
        (pair,) = json.loads(run("--file", path, "--json", *more))["pairs"]
        assert (pair["se_planned"] is not None) is planned
        assert ("no SE of more samples can be predicted" in pair["undefined"]) is not planned
    assert "no SE of more samples can be predicted" in " ".join(run("--file", path, "--plan-samples", 8).split())


def test_averages_that_differ_alike_in_every_task(tmp_path):
    path = tmp_path / "alike.csv"
    rows = [
        f"{side}{seed},{task},{k},{int(k <= task % 6 + 3 * (side == 'a'))}\n"
        for side in "ab" for seed in range(3) for task in range(60) for k in range(1, 11)
    ]  # fmt: skip
    path.write_text("model,task,sample,score\n" + "".join(rows))
    said = run("--file", path, "--average", "a*", "--average", "b*")
    assert "Averages a* - b*: +0.3000; SE of one checkpoint each 0.0000 (z -), of the averages 0.0000 (z -: every task" in said
    found = json.loads(run("--file", path, "--json", "--average", "a*", "--average", "b*"))["averaging"]
    assert (found["z_single"], found["z_averaged"], found["reduction"]) == (None, None, None)
    assert found["undefined"].startswith("every task differs by the same amount")


def test_averages_and_the_null_check(tmp_path):
    path = tmp_path / "seeds.csv"
    write(path, table(6, 100, 1), [f"run-{side}-{i}" for side in "ab" for i in range(3)])
    said = run("--file", path, "--average", "run-a-*", "--average", "run-b-*", "--null")
    assert "Averages run-a-* - run-b-*:" in said
    assert "Null check: p < 0.05 (paired t) in" in said
    assert "takes tasks for independent of one another" in said
    found = json.loads(run("--file", path, "--null", "--json"))["null_check"]
    assert (found["method"], found["covers"]) == ("within-task permutation", "population")
    assert (found["resamples"], found["seed"]) == (499, 0)
    assert "expected two patterns" in run("--file", path, "--average", "run-a-*", code=2)
    assert "no model of that name" in run("--file", path, "--average", "x*", "--average", "run-b-*", code=2)
    assert "is in both groups" in run("--file", path, "--average", "run-*", "--average", "run-b-*", code=2)


def test_models_of_a_file_by_name(results):
    path, scores = results
    found = json.loads(run("c", "a", "--file", path, "--json"))
    assert [one["model"] for one in found["models"]] == ["c", "a"]
    assert (found["family"], found["n_tasks"]) == (1, 60)
    (pair,) = found["pairs"]
    assert pair["p_holm"] == pair["p"]
    noise = paired_noise(scores[2, 1:], scores[0, 1:])
    theirs = stats.ttest_rel(scores[2, 1:].mean(axis=1), scores[0, 1:].mean(axis=1))
    assert (pair["difference"], pair["se_total"]) == pytest.approx((noise.mean, noise.se_total))
    assert pair["p"] == pytest.approx(theirs.pvalue)
    assert pair["p_method"] == "paired t"
    assert (pair["lo"], pair["hi"]) == pytest.approx(tuple(theirs.confidence_interval()))
    assert f"[{pair['lo']:+.3f}, {pair['hi']:+.3f}]" in run("c", "a", "--file", path)


def test_benchmark_shows_the_se_that_z_is_made_with(results):
    found = json.loads(run("--file", results[0], "--json", "--covers", "benchmark"))
    assert "new runs of these tasks" in found["method"]
    for pair in found["pairs"]:
        assert pair["se"] == pair["se_runs"]
        assert pair["z"] == pytest.approx(pair["difference"] / pair["se"])
        assert (pair["hi"] - pair["lo"]) / 2 == pytest.approx(1.959963984540054 * pair["se"])
    assert "SE now: the samples at hand, over new runs of these tasks" in run("--file", results[0], "--covers", "benchmark")
    shown = run("a", "c", "--file", results[0], "--covers", "benchmark")
    se = next(row["se"] for row in found["pairs"] if {row["a"], row["b"]} == {"a", "c"})
    assert f" {se:.4f} " in shown


def test_missing_samples_and_rows_are_named(tmp_path):
    path, scores = tmp_path / "holes.csv", np.concatenate([table(1, 80, 2, seed) for seed in range(3)])
    write(path, scores, "abc", skip={(1, 0), (1, 1)})
    text = path.read_text().replace(f"c,t5,0,{scores[2, 5, 0]}\n", "c,t5,0,\n")
    path.write_text(text.replace(f"a,t7,1,{scores[0, 7, 1]}\n", ""))
    said = run("--file", path)
    assert "Tasks without any row of a model: b 2" in said
    assert "1 sample without a score: in no number, never a failure (c 1)" in said
    assert "stand on the tasks that both have twice (a and " in said
    found = json.loads(run("--file", path, "--json"))
    a, b, c = found["models"]
    assert (a["samples"], a["fewest_samples_of_a_task"], a["most_samples_of_a_task"]) == (159, 1, 2)
    assert (b["samples"], b["tasks_without_a_row"], c["samples"], c["unmeasured_samples"]) == (156, 2, 159, 1)
    for pair in found["pairs"]:
        parts = pair["se_data"] ** 2 + pair["se_prediction"] ** 2
        assert pair["prediction_share"] == pytest.approx(pair["se_prediction"] ** 2 / parts)


def test_one_p_to_quote_and_to_adjust(tmp_path):
    """The paired t's, at any number of tasks, in table, JSON and CSV; under 50 a normal p is too small."""
    path = tmp_path / "few.csv"
    scores = table(4, 12, 3)
    write(path, scores, "abcd")
    found = json.loads(run("--file", path, "--json", "--csv", tmp_path / "out.csv"))
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as opened:
        written = list(csv.DictReader(opened))
    p = [
        stats.ttest_rel(scores["abcd".index(pair["a"])].mean(axis=1), scores["abcd".index(pair["b"])].mean(axis=1)).pvalue
        for pair in found["pairs"]
    ]
    assert [pair["p"] for pair in found["pairs"]] == pytest.approx(p)
    for name, method in (("p_holm", "holm"), ("p_benjamini_hochberg", "fdr_bh")):
        theirs = multipletests(p, method=method)[1]
        assert [pair[name] for pair in found["pairs"]] == pytest.approx(theirs)
        assert [float(row[name]) for row in written] == pytest.approx(theirs)
    assert {row["p_method"] for row in written} == {"paired t"}
    assert "p_t" not in written[0]
    assert "this p, adjusted" in found["method"]
    said = run("--file", path)
    assert f" {min(p):.2g} " in said
    assert "p: paired t; Holm: this p over 6 pairs" in said
    runs = json.loads(run("--file", path, "--json", "--covers", "benchmark"))["pairs"]
    assert {pair["p_method"] for pair in runs} == {"normal"}
    assert [pair["p"] for pair in runs] == pytest.approx([2 * stats.norm.sf(abs(pair["z"])) for pair in runs])


def test_a_copy_is_named_and_gives_no_advice(tmp_path):
    path = tmp_path / "copy.csv"
    write(path, table(1, 60, 4).repeat(2, axis=0), "ab")
    said = run("--file", path, "--plan-samples", 8)
    assert "Note: a and b: both have the same score in every task, so they may be the same samples twice" in said
    assert "In a typical pair" not in said
    assert "Beta line" not in said
    assert "which is chance" not in said
    (pair,) = json.loads(run("--file", path, "--json", "--plan-samples", 8))["pairs"]
    assert (pair["p"], pair["se_planned"], pair["se_over_beta_line"]) == (None, None, None)
    assert pair["undefined"].startswith("both have the same score in every task")
    assert "below 0" not in pair["undefined"] + pair["note"]
    # A pair beside it gives the advice alone.
    scores = table(2, 60, 4)
    write(path, scores[[0, 0, 1]], "abc")
    advice = run("--file", path).split("In a typical pair (median) ")[1].splitlines()[0]
    write(path, scores, "ac")
    assert f"In a - c {advice}" in run("--file", path)


def test_one_pair_is_no_typical_one(tmp_path):
    path = tmp_path / "two.csv"
    write(path, table(2, 60, 4), "ab")
    said = run("--file", path, "--covers", "benchmark")
    assert "In a - b " in said
    assert "typical pair" not in said
    assert "5 to 95 %" not in said
    (pair,) = json.loads(run("--file", path, "--json"))["pairs"]
    assert f"SE over new tasks: with one sample {pair['se_total']:.4f}, with those at hand {pair['se']:.4f}" in said


def test_columns_are_what_each_pair_says(tmp_path, monkeypatch):
    """A block at a time, pairs of every kind: the numbers are those of the pairs one by one, in JSON and in CSV."""
    path = tmp_path / "kinds.csv"
    scores = np.concatenate([table(4, 12, 3), np.ones((2, 12, 3), int)])
    names = ("=a", "b\n", "", 'd"', "e", "f")
    skip = {(1, t) for t in range(11)} | {(0, 3), (2, 5)}
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["model", "task", "sample", "score"])
        writer.writerows(
            [names[m] or "c", t, k, scores[m, t, k]]
            for m in range(6) for t in range(12) for k in range(1 if t == m else 3) if (m, t) not in skip
        )  # fmt: skip
    panel = panel_of_file(path)
    found = compared(panel, Asked("population", Sort.NAME, None, None, (), null=False))
    monkeypatch.setattr(compare_columns, "_BLOCK", 4)
    made = list(compare_columns.rows(found))
    assert [(row["a"], row["b"]) for row in made] == sorted((row["a"], row["b"]) for row in made)
    for row, place in zip(made, order(found).tolist(), strict=True):
        pair = found.pairs.pair(place)
        for name, value in {
            "n_tasks": pair.n_tasks, "difference": pair.mean, "se_total": pair.se_total, "se_data": pair.se_data,
            "se_prediction": pair.se_prediction, "se_measured": pair.se_mean, "se_runs": pair.se_runs, "p": pair.p_value,
            "wins": pair.wins, "p_sign_test": pair.p_sign, "win_rate_a": pair.q_a, "note": pair.note,
        }.items():  # fmt: skip
            assert row[name] == value, name
        assert all(reason in row["undefined"] for reason in (pair.undefined, pair.parts_undefined, pair.z_undefined))
        assert bool(row["undefined"]) == (None in (pair.total, pair.z, pair.se_data))
    assert len({row["undefined"] for row in made}) > 3
    compare_columns.write_csv(tmp_path / "out.csv", found, spreadsheet_safe=True)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as opened:
        written = list(csv.DictReader(opened))
    assert {row["a"] for row in written} == {"'=a", "b\n", "c", 'd"', "e"}
    for row, cells in zip(made, written, strict=True):
        assert {name: cells[name] for name, value in row.items() if value is None} == dict.fromkeys(
            (name for name, value in row.items() if value is None), ""
        )
        assert all(float(cells[name]) == value for name, value in row.items() if isinstance(value, int | float))
        assert (cells["undefined"], cells["note"]) == (row["undefined"], row["note"])


def test_models_with_nothing_in_common(tmp_path):
    path = tmp_path / "apart.csv"
    path.write_text("model,task,score\na,t1,1\na,t2,0\nb,u1,1\nb,u2,\n")
    assert "no two models have a task in common" in run("--file", path, code=4)


def test_says_what_it_wrote(results, tmp_path):
    path = tmp_path / "c.svg"
    result = CliRunner().invoke(app, ["compare", "--file", str(results[0]), "--json", "--chart", str(path)])
    assert f"Wrote {path}" in result.stderr
    assert json.loads(result.stdout)["pairs"]


def test_mistakes(results, tmp_path):
    path, _ = results
    assert "expected z, p" in run("--file", path, "--sort", "size", code=2)
    assert "expected population or benchmark" in run("--file", path, "--covers", "all", code=2)
    assert "expected a model 'study', found models a," in run("study", "a", "--file", path, code=4)
    assert "named twice" in run("a", "a", "--file", path, code=2)
    assert "expected arms" in run(code=2)
    assert "a column 'won'" in run("--file", path, "--score", "won", code=4)
    lone = tmp_path / "lone.csv"
    lone.write_text("model,task,sample,score\nm,t,0,1\n")
    assert "expected two models or more, found one: m" in run("--file", lone, code=2)
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
    said = run("small/a/live", "--store", store, code=2)
    assert "found one: small/a/live" in said
    two = said.split("`evalnoise compare ")[1].split("`")[0].split()
    assert len(json.loads(run(*two, "--store", store, "--json"))["models"]) == 2
    assert "no study or protocol" in run("none", "--store", store, code=6)
    assert "one condition of" in run("small/warm", "--store", store, code=6)
