"""Files of grades: every format and name, unbalanced and missing grades, an error with row and column for each mistake."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalnoise.readers.grades import Columns, read_grades
from evalnoise.stats.nested.components import components
from evalnoise.stats.nested.sums import from_array, from_long
from schemas.errors import DataError

ROWS = [
    {"task": "a", "generation": "x", "grade_repeat": "0", "score": 1.0},
    {"task": "b", "generation": "x", "grade_repeat": "0", "score": 0.5},
    {"task": "a", "generation": "x", "grade_repeat": "1", "score": 0.0},
    {"task": "a", "generation": "y", "grade_repeat": "0", "score": None},
    {"task": "a", "generation": "y", "grade_repeat": "7", "score": 1.0},
    {"task": "c", "generation": "x", "grade_repeat": "0", "score": None},
]


def write(path, rows):
    names = list(rows[0])
    text = "\n".join([",".join(names), *(",".join("" if row[name] is None else str(row[name]) for name in names) for row in rows)])
    if path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".csv":
        path.write_text(text + "\n", encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("name", ["g.csv", "g.jsonl", "g.parquet", "g.csv.gz"])
def test_every_format_gives_the_same_grades(tmp_path, name):
    grades = read_grades(write(tmp_path / name, ROWS))
    assert grades.tasks == ("a", "b", "c")
    assert grades.task.tolist() == [0, 1, 0, 0]
    assert len(set(grades.output.tolist())) == 3
    assert grades.output[0] == grades.output[2]
    assert grades.scores.tolist() == [1.0, 0.5, 0.0, 1.0]
    assert grades.missing == 2


def test_clusters_of_tasks(tmp_path):
    named = [row | {"cluster": {"a": "x", "b": None, "c": "x"}[row["task"]]} for row in ROWS]
    path = write(tmp_path / "g.csv", named)
    assert read_grades(path).clusters == ("x", "", "x")
    assert read_grades(path, Columns(cluster="-")).clusters == ()
    assert read_grades(write(tmp_path / "n.csv", ROWS)).clusters == ()
    with pytest.raises(DataError, match="a column"):
        read_grades(path, Columns(cluster="family"))
    path = write(tmp_path / "g.csv", [*named[:2], named[2] | {"cluster": "y"}])
    with pytest.raises(DataError, match=r"row 3, column 'cluster'.*one cluster.*'y', and 'x' in row 1, of the same task 'a'"):
        read_grades(path)


def test_missing_grades_are_absent(tmp_path):
    grades = read_grades(write(tmp_path / "g.csv", ROWS))
    found = components(from_long(grades.task, grades.output, grades.scores, n_tasks=len(grades.tasks)))
    assert (found.n_tasks, found.dropped, found.grades) == (2, 1, 4)
    assert found.mean == pytest.approx(((0.5 + 1.0) / 2 + 0.5) / 2)


def test_numbers_as_keys_and_outputs_that_share_a_name(tmp_path):
    y = np.random.default_rng(1).integers(0, 2, size=(5, 3, 2))
    rows = [{"t": i, "run": j, "judge": k, "s": int(y[i, j, k])} for i in range(5) for j in range(3) for k in range(2)]
    names = Columns(task="t", generation="run", grade="judge", score="s")
    for suffix in ("parquet", "csv"):
        grades = read_grades(write(tmp_path / f"g.{suffix}", rows), names)
        found = components(from_long(grades.task, grades.output, grades.scores))
        assert found == components(from_array(y))


def test_a_level_that_there_is_only_one_of(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("task,run,score\na,0,pass\na,1,fail\nb,0,true\n", encoding="utf-8")
    runs = read_grades(path, Columns(generation="run", grade="-"))
    assert (len(set(runs.output.tolist())), runs.scores.tolist()) == (3, [1.0, 0.0, 1.0])
    grades = read_grades(path, Columns(generation="-", grade="run"))
    assert len(set(grades.output.tolist())) == 2


def test_a_score_that_cannot_be_added_up_is_named(tmp_path):
    path = tmp_path / "x.csv"
    for row, score in ((2, 2.0**53), (3, -1e60)):
        scores = [1.0, 2.0**53 - 1, 1.0 - 2.0**53]
        scores[row - 1] = score
        path.write_text("task,score\n" + "".join(f"t{i},{one!r}\n" for i, one in enumerate(scores)))
        with pytest.raises(DataError, match=rf"row {row}, column 'score': expected a score from -9.*larger unit"):
            read_grades(path, Columns(generation="-", grade="-"), scale=(-1e300, 1e300))
    path.write_text(f"task,score\na,{2.0**53 - 1!r}\nb,{1 - 2.0**53!r}\n")
    found = read_grades(path, Columns(generation="-", grade="-"), scale=(-1e300, 1e300))
    assert from_long(found.task, found.output, found.scores).denominator == 1


def test_another_scale(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("task,generation,grade_repeat,score\na,0,0,-5\na,0,1,10\n", encoding="utf-8")
    assert read_grades(path, scale=(-5, 10)).scores.tolist() == [-5.0, 10.0]
    with pytest.raises(DataError, match=r"row 1, column 'score': expected a score from 0 to 1, found -5.0 \(and 1 more.*--scale"):
        read_grades(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a,0,1,nan", r"row 2, column 'score': expected a finite number.*found 'nan'"),
        ("a,0,1,inf", r"row 2, column 'score': expected a finite number"),
        ("a,0,1,good", r"row 2, column 'score': expected a finite number.*found 'good'"),
        ("a,0,1,1.01", r"row 2, column 'score': expected a score from 0 to 1, found 1.01"),
        ("a,0,0,1", r"row 2, columns task, generation, grade_repeat: expected each grade once, found the same as in row 1"),
        (",0,1,1", r"row 2, column 'task': expected text, found nothing"),
        ("a,,1,1", r"row 2, column 'generation': expected text, found nothing"),
    ],
)
def test_bad_rows_are_named(tmp_path, line, said):
    path = tmp_path / "g.csv"
    path.write_text(f"task,generation,grade_repeat,score\na,0,0,1\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"g\.csv, {said}"):
        read_grades(path)


def test_bad_files_are_named(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("task,generation,score\na,0,1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"expected a column 'grade_repeat'.*found columns task, generation, score.*--grade -"):
        read_grades(path)
    path.write_text("task,generation,grade_repeat,score\n", encoding="utf-8")
    with pytest.raises(DataError, match="expected at least one row, found none"):
        read_grades(path)
    with pytest.raises(DataError, match=r"none\.csv: expected a file, found none"):
        read_grades(tmp_path / "none.csv")
    path.write_text("task,score\na,1\na,0\n", encoding="utf-8")
    with pytest.raises(DataError, match="name the column that numbers them"):
        read_grades(path, Columns(generation="-", grade="-"))
