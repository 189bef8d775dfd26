"""`evalnoise components` as a user types it."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from flows.cli import app

RUNNER = CliRunner(env={"COLUMNS": "2000"})
REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "nested_components.json").read_text(encoding="utf-8"))
PUBLISHED = REFERENCE["two_sources_seed7"]
QUICK = ("--resamples", 200)


def run(*arguments, code=0) -> str:
    result = RUNNER.invoke(app, ["components", *(str(a) for a in arguments)])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert "Traceback" not in result.output
    return result.output if code else result.stdout


def table(path, y, score=str):
    n, k, g = y.shape
    rows = [f"t{i},{j},{m},{score(y[i, j, m])}" for i in range(n) for j in range(k) for m in range(g)]
    path.write_text("\n".join(["task,generation,grade_repeat,score", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def seed7(tmp_path_factory):
    text = "".join(PUBLISHED["hex"])
    bits = "".join(f"{int(text[i : i + 3], 16):012b}" for i in range(0, len(text), 3))
    y = np.array([int(bit) for bit in bits]).reshape(PUBLISHED["shape"])
    return table(tmp_path_factory.mktemp("grades") / "seed7.csv", y)


def small(tmp_path, shape, seed=1):
    return table(tmp_path / "g.csv", np.random.default_rng(seed).integers(0, 2, size=shape))


def test_the_published_example(seed7):
    found = json.loads(run(seed7, "--json", *QUICK))
    assert [part["raw"] for part in found["components"]] == pytest.approx(PUBLISHED["expected"], abs=1e-9)
    for part in found["components"]:
        interval = part["intervals"][0]
        assert interval["lo"] < part["raw"] < interval["hi"]
        assert (interval["covers"], interval["seed"], interval["resamples"]) == ("population", 0, 200)
    assert [len(part["intervals"]) for part in found["components"]] == [1, 2, 2], "Gaffke's, of generation and grader"
    assert found["k_selection"]["k"] == 6
    assert found["repeats_needed"]["k"] == 6
    assert found["flip_compression"]["flip"] == pytest.approx(0.1056, abs=1e-4)
    assert found["advice"]["step"] == "fix the grader"
    said = run(seed7, *QUICK)
    assert "300 tasks, 4 generations of each task, 3 grades of each generation" in said
    assert "0.07966" in said
    assert "Fix the grader first" in said
    assert "6 grades of each" in said
    assert run(seed7, *QUICK) == said
    assert run(seed7, "--seed", 5, *QUICK) != said


def test_prices_and_fixed_tasks_move_the_advice(tmp_path):
    y = np.repeat(np.arange(20)[:, None, None] % 2, 4, axis=1).repeat(2, axis=2)
    y[::3, 0] = 1 - y[::3, 0]
    path = table(tmp_path / "g.csv", y)
    said = run(path, *QUICK)
    assert "next sample should go to tasks" in said
    assert "Prices taken: generation 1.0, grade 0.1, task 0.0." in said
    assert "next sample should go to generations" in run(path, "--fixed-tasks", *QUICK)
    assert "next sample should go to generations" in run(path, "--price-task", 10_000, *QUICK)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (
            (12, 1, 4),
            [
                "]* ",
                "* Gaffke's interval, for that reason",
                "task+generation",
                "confounded with task",
                "grades of each",
                "no task has two generations",
            ],
        ),
        ((12, 4, 1), ["generation+grader", "grades needed: undefined", "no generation has two grades"]),
        ((12, 1, 1), ["task+generation+grader", "No advice", "only the sum"]),
        ((1, 3, 3), ["task: undefined: one task", "one task says nothing about other tasks", "No advice: one task"]),
    ],
)
def test_what_is_undefined_is_said(tmp_path, shape, said):
    path = small(tmp_path, shape)
    text = " ".join(run(path, *QUICK).split())
    for words in said:
        assert words in text
    found = json.loads(run(path, "--json", *QUICK))
    for part in found["components"]:
        assert (part["raw"] is None) == bool(part["undefined"])


def test_clusters_have_the_interval_to_quote(tmp_path):
    path = small(tmp_path, (24, 2, 2))
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    clusters = [f"{row},c{int(row[1 : row.index(',')]) // 2}" for row in rows]
    path.write_text("\n".join([f"{header},cluster", *clusters]) + "\n", encoding="utf-8")
    text = " ".join(run(path, *QUICK).split())
    for words in ("95 % over new clusters", "12 clusters, the largest of 2 tasks", "take tasks as independent"):
        assert words in text
    assert "Gaffke" not in text
    assert "over new tasks, of the raw one" in run(path, "--cluster", "-", *QUICK)
    for part in json.loads(run(path, "--json", *QUICK))["components"]:
        assert part["intervals"][0]["method"] == "cluster bootstrap"


def test_what_looks_like_a_cache_is_said(tmp_path):
    y = np.repeat(np.random.default_rng(2).integers(0, 2, size=(40, 1, 1)), 3, axis=1).repeat(2, axis=2)
    text = " ".join(run(table(tmp_path / "g.csv", y), *QUICK).split())
    assert "no two generations of a task differed: served from a cache" in text
    assert "it never varied: at most" in text
    assert "assumes independent repeats, which a cache is not" in text
    assert "one grade, because the grader's variance came out as 0; that is no proof" in text


def test_reml(tmp_path):
    generator = np.random.default_rng(3)
    y = generator.normal(0.5, 0.08, (10, 1, 1)) + generator.normal(0, 0.08, (10, 2, 1)) + generator.normal(0, 0.05, (10, 2, 2))
    path = table(tmp_path / "g.csv", y)
    said = run(path, "--reml", *QUICK)
    assert "it agrees" in said
    assert "normal limits" in said
    constant = np.repeat(y[:, :, :1], 2, axis=2)
    assert "REML: failed, and so no number: the grades" in run(table(path, constant), "--reml", *QUICK)
    failed = json.loads(run(path, "--reml", "--json", *QUICK))["reml"]
    assert (failed["components"], failed["agrees"]) == (None, None)


def test_misuse(tmp_path):
    path = small(tmp_path, (3, 2, 2))
    assert "the smallest score before the largest" in run(path, "--scale", 1, 0, code=2)
    assert "between 0 and 1" in run(path, "--level", 2, code=2)
    assert "between 0 and 1" in run(path, "--dependability", 1, code=2)
    assert "tol is above 0" in run(path, "--tol", 0, code=2)
    assert "expected a file, found none" in run(tmp_path / "none.csv", code=4)
    path.write_text("task,generation,grade_repeat,score\na\x1b[2J,0,0,3\n", encoding="utf-8")
    said = run(path, code=4)
    assert "row 1, column 'score'" in said
    assert "\x1b" not in said
