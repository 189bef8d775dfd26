"""drift and nights of a user's own tables: the same numbers as of arrays, and mistakes with their place."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from evalnoise.readers.nights import read_nights_file
from evalnoise.readers.order import read_runs
from evalnoise.stats.drift import drift
from evalnoise.stats.nights import control_chart
from flows.cli import app
from schemas.errors import DataError, ExitCode


def run(*arguments, code: int = 0) -> str:
    result = CliRunner(env={"COLUMNS": "2000"}).invoke(app, [*map(str, arguments)])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert "Traceback" not in result.output
    return result.output


def written(folder, form, columns):
    path, table = folder / f"x{form}", pa.table(columns)
    if form == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif form == ".csv":
        pa_csv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    return path


@pytest.mark.parametrize("form", [".csv", ".jsonl", ".parquet"])
def test_drift_of_a_file_is_that_of_its_outcomes(tmp_path, form):
    rng = np.random.default_rng(0)
    outcomes = (rng.random((20, 12)) < rng.random((20, 1))).astype(np.int8)
    outcomes[3, 5] = -1
    rows = [(task, replicate) for replicate in rng.permutation(12) for task in rng.permutation(20)]
    cells = [outcomes[row] for row in rows]
    columns = {"task": [f"t{task}" for task, _ in rows], "replicate": [int(replicate) for _, replicate in rows]}
    named = columns | {"outcome": [{1: "pass", 0: "fail", -1: "unmeasured"}[cell] for cell in cells], "score": [0.5] * 240}
    path = written(tmp_path, form, named)
    found = json.loads(run("drift", "--file", path, "--seed", 3, "--json"))
    expected = drift(outcomes, seed=3)
    assert (found["q"]["statistic"], found["trend"]["statistic"]) == (expected.q.statistic, expected.trend.statistic)
    assert (found["smallest_p"], found["left_out"], found["arm"]) == (expected.smallest_p, 1, str(path))
    assert found["note"] == "replicates are in the order of their numbers"
    scored = columns | {"score": [None if cell < 0 else float(cell) for cell in cells]}
    again = read_runs(written(tmp_path, form, scored))
    order = list(dict.fromkeys(columns["task"]))
    assert np.array_equal(again.outcomes, outcomes[[int(task[1:]) for task in order]])


def test_the_order_of_replicates(tmp_path):
    for labels, first, how in (
        (("10", "9"), "9", "numbers"),
        (("2026-02-01", "2026-01-31"), "2026-01-31", "dates"),
        (("2026-02-01T05:00:00Z", "2026-02-01T04:00:00Z"), "2026-02-01T04:00:00Z", "dates"),
        (("b", "a"), "b", "file"),
    ):
        columns = {"task": ["t", "t"], "replicate": list(labels), "outcome": [str(label == first).lower() for label in labels]}
        found = read_runs(written(tmp_path, ".csv", columns))
        assert found.outcomes.tolist() == [[1, 0]]
        assert how in found.note
    assert "Replicates are in the order of the file" in run("drift", "--file", tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("task,replicate,outcome\na,0,pass\na,1,maybe\n", "row 2, column 'outcome': expected pass or fail, 1 or 0"),
        ("task,replicate,score\na,0,1\na,1,0.5\n", "row 2, column 'score'"),
        ("task,replicate,outcome,score\na,0,pass,1\na,1,pass,0\n", "row 2, column 'score': expected no other outcome"),
        ("task,replicate,outcome,score\na,0,fail,true\n", "which is a failure, found 1"),
        ("task,replicate,outcome,score\na,0,,0\n", "which is none, found 0"),
        ("task,replicate,score\na,0,1\na,0,0\n", "row 2, columns task, replicate: expected each replicate of a task once"),
        ("task,replicate\na,0\n", "a column 'outcome'"),
        ("task,run,outcome\na,0,pass\n", "a column 'replicate'"),
    ],
)
def test_mistakes_of_runs(tmp_path, text, said):
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert said in " ".join(run("drift", "--file", path, code=ExitCode.DATA).split())


def test_nights_of_a_file(tmp_path):
    scores = [*np.random.default_rng(3).normal(0.6, 0.02, 21).round(4), 0.3]
    labels = [f"2026-01-{night + 1:02}" for night in range(22)]
    order = np.random.default_rng(1).permutation(22)
    columns = {"night": [labels[i] for i in order], "score": [scores[i] for i in order], "n": [100 + (i == 4) for i in order]}
    path = written(tmp_path, ".csv", columns)
    found = json.loads(run("nights", "--file", path, "--json", code=ExitCode.GATE))
    chart = control_chart(scores)
    assert [night["night"] for night in found["nights"]] == labels
    assert [night["score"] for night in found["nights"]] == scores
    assert [night["alarm"] for night in found["nights"]] == chart.alarms.tolist()
    assert (found["nights"][-1]["lo"], found["n_tasks"], found["replicates"]) == (pytest.approx(chart.lo[-1]), None, None)
    assert "n differs" in found["note"]
    assert found["nights"][4]["changes"] == ["n is 101"]
    shown = run("nights", "--file", path, code=ExitCode.GATE)
    assert "22 nights, rule t\n  Nights are in the order of their dates; n differs" in shown
    later = json.loads(run("nights", "--file", path, "--since", labels[5], "--json"))
    assert (len(later["nights"]), later["undefined"]) == (17, "baseline: 17 of 20 nights")


def test_a_newest_night_without_a_score(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("night,score\nmon,0.5\ntue,pass\nwed,\n")
    assert "wed: no verdict, because it has no score" in run("nights", "--file", path, code=ExitCode.BLOCKED)
    assert read_nights_file(path).scores.tolist() == [0.5, 1.0]


def test_a_baseline_that_swings_from_end_to_end_sees_no_change(tmp_path):
    path = written(tmp_path, ".csv", {"night": list(range(21)), "score": [float(night % 2) for night in range(21)]})
    shown = run("nights", "--file", path)
    assert "No change that a score can make in one night alone is seen on it" in shown
    assert "points" not in shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("night,score\n1,0.5\n1,0.5\n", "row 2, column 'night': expected each night once"),
        ("night,score\n1,50\n", "row 1, column 'score': expected a score from 0 to 1"),
        ("night,score\n1,\n", "nights with a score"),
        ("night,score,n\n1,0.5,1.5\n", "row 1, column 'n'"),
        ("night\n1\n", "a column 'score'"),
    ],
)
def test_mistakes_of_nights(tmp_path, text, said):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_nights_file(path)
    assert said in str(caught.value)


def test_a_file_or_a_store(tmp_path):
    for command in ("drift", "nights"):
        assert "--file FILE" in run(command, code=2)
        assert "not both" in run(command, "study", "--file", tmp_path / "x.csv", code=2)
