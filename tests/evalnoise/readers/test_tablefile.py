"""Table files: every format gives the same columns; every mistake names row and column; panels of them."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalnoise.readers.panel import panel_of_file
from evalnoise.readers.tablefile import Kind, Wanted, column_names, read_table
from schemas.errors import DataError

ROWS = [
    ("a", "t/1", "0", 1.0), ("a", "t/1", "1", 0.0), ("a", "t/2", "0", None), ("a", "t/2", "1", 1.0),
    ("b", "t/2", "0", 0.0), ("b", "t/1", "0", 0.5),
]  # fmt: skip
COLUMNS = ("model", "task", "sample", "score")


def write(folder, form, rows=ROWS, columns=COLUMNS):
    path = folder / f"x{form}"
    if form == ".parquet":
        pq.write_table(pa.table({name: list(column) for name, column in zip(columns, zip(*rows, strict=True), strict=True)}), path)
        return path
    if form == ".jsonl":
        text = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
    else:
        mark = "\t" if form.startswith(".tsv") else ","
        lines = [columns, *(["" if value is None else str(value) for value in row] for row in rows)]
        text = "".join(mark.join(f'"{value}"' if mark in value else value for value in line) + "\n" for line in lines)
    if form.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("form", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"])
def test_every_format_gives_the_same_panel(tmp_path, form):
    panel = panel_of_file(write(tmp_path, form))
    assert panel.models == ("a", "b")
    assert panel.task_ids == ("t/1", "t/2")
    assert panel.samples.runs.tolist() == [[2, 1], [1, 1]]
    assert panel.samples.unit == 2
    assert panel.samples.means.tolist() == [[0.5, 1.0], [0.5, 0.0]]
    assert (panel.unmeasured, panel.unmatched, panel.notes) == ((1, 0), (0, 0), ())


def test_words_and_booleans_are_scores(tmp_path):
    words = ["PASS", "fail", "True", "FALSE", " 0.25 ", "passed"]
    rows = [("a", f"t{i}", "0", word) for i, word in enumerate(words)]
    assert panel_of_file(write(tmp_path, ".csv", rows)).samples.means.tolist() == [[1.0, 0.0, 1.0, 0.0, 0.25, 1.0]]
    rows = [("a", "t", "0", True), ("b", "t", "0", False)]
    for form in (".jsonl", ".parquet"):
        assert panel_of_file(write(tmp_path, form, rows)).samples.means.tolist() == [[1.0], [0.0]]


def test_other_names_of_columns_and_no_column_of_samples(tmp_path):
    rows = [("a", "t", 1.0), ("a", "t", 0.0), ("b", "t", 1.0)]
    path = write(tmp_path, ".csv", rows, ("who", "id of\"it'", "won"))
    panel = panel_of_file(path, model="who", task="id of\"it'", score="won")
    assert panel.samples.runs.tolist() == [[2], [1]]
    assert "every row counts" in panel.notes[0]


@pytest.mark.parametrize("form", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (3, "1.5", "row 4, column 'score'.*a score from 0 to 1, found.*1.5"),
        (3, "nan", "row 4, column 'score'.*finite number"),
        (2, "inf", "row 3, column 'score'.*finite number"),
    ],
)
def test_bad_scores(tmp_path, form, place, value, said):
    rows = list(ROWS)
    rows[place] = (*rows[place][:3], float(value) if form == ".parquet" else value)
    with pytest.raises(DataError, match=said):
        panel_of_file(write(tmp_path, form, rows))


def test_words_that_are_no_scores(tmp_path):
    rows = [*ROWS, ("b", "t/3", "0", "maybe"), ("b", "t/4", "0", "\x1b[2J")]
    with pytest.raises(DataError, match=r"row 7, column 'score'.*'maybe' \(and 1 more like it\)"):
        panel_of_file(write(tmp_path, ".csv", rows))


def test_missing_names(tmp_path):
    rows = [*ROWS, ("", "t/1", "0", 1.0)]
    with pytest.raises(DataError, match=r"row 7, column 'model'.*nothing"):
        panel_of_file(write(tmp_path, ".csv", rows))


def test_a_sample_that_is_there_twice(tmp_path):
    rows = [*ROWS, ("a", "t/1", "1", 1.0)]
    with pytest.raises(DataError, match=r"row 7, column 'sample'.*the same as in row 2"):
        panel_of_file(write(tmp_path, ".csv", rows))


@pytest.mark.parametrize("form", [".csv", ".jsonl", ".parquet"])
def test_a_missing_column(tmp_path, form):
    with pytest.raises(DataError, match="a column 'won' for the score"):
        panel_of_file(write(tmp_path, form), score="won")


def test_what_is_no_table(tmp_path):
    with pytest.raises(DataError, match="another name"):
        panel_of_file(tmp_path / "x.txt")
    with pytest.raises(DataError, match="expected a file"):
        panel_of_file(tmp_path / "x.csv")
    broken = tmp_path / "x.parquet"
    broken.write_bytes(b"no parquet")
    with pytest.raises(DataError, match="expected a table"):
        panel_of_file(broken)
    torn = tmp_path / "y.jsonl"
    torn.write_text('{"model": "a", "task": "t", "sample": 0, "score": 1}\n{"model": ')
    with pytest.raises(DataError, match="row 2: expected a JSON object"):
        panel_of_file(torn)
    empty = tmp_path / "z.csv"
    empty.write_text("model,task,sample,score\n")
    with pytest.raises(DataError, match="found none"):
        panel_of_file(empty)


def test_headers(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"\xef\xbb\xbfmodel,task,,Score,score,x,x\r\na,t,1,2,0.5,3,3\r\nb,t,1,2,0.25,3,3\r\n")
    assert panel_of_file(path).samples.means.tolist() == [[0.5], [0.25]]
    path.write_text("model,task,score,score\na,t,1,0\n")
    with pytest.raises(DataError, match="one column 'score', found 2"):
        panel_of_file(path)
    path.write_text("model,task,score\na,t,1\nb,t\n")
    with pytest.raises(DataError, match=r"row 2: expected 3 fields, as in the header, found 2"):
        panel_of_file(path)
    path.write_text("")
    with pytest.raises(DataError, match="an empty file"):
        panel_of_file(path)
    path.write_bytes(b"model,task,score\n\xff,t,1\n")
    with pytest.raises(DataError, match=r"(?i)utf-8"):
        panel_of_file(path)
    (tmp_path / "y.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="a header line"):
        panel_of_file(tmp_path / "y.csv.gz")


def test_lines_inside_quotes(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('model,task,score\n"a ""b""\nc","t,1",1\nd,"t,1",7\n')
    with pytest.raises(DataError, match="row 2, column 'score'"):
        panel_of_file(path)
    path.write_text('model,task,score\n"a ""b""\nc","t,1",1\n')
    assert panel_of_file(path).models == ('a "b"\nc',)
    assert panel_of_file(path).task_ids == ("t,1",)


def test_a_name_with_glob_marks_is_a_name(tmp_path):
    (tmp_path / "x1.csv").write_text("model,task,score\nwrong,t,1\n")
    path = tmp_path / "x[1]'*.csv"
    path.write_text("model,task,score\nright,t,1\n")
    assert panel_of_file(path).models == ("right",)


def test_rows_keep_the_files_order(tmp_path):
    n = 300_000
    path = tmp_path / "big.csv"
    path.write_text("m\n" + "".join(f"{i}\n" for i in range(n)))
    found = read_table(path, {"m": Wanted("m", Kind.NUMBER)})
    assert np.array_equal(np.asarray(found["m"]), np.arange(n))


def test_lines_of_json_that_are_no_objects(tmp_path):
    path = tmp_path / "x.jsonl"
    text = {"m": Wanted("m", Kind.HOLES)}
    for content, place in (
        ('{"m": 1}\n\n[\n', "row 2"),
        ('{"m": 1}\n3\n', "row 2"),
        ('{"m": "\\ud835"}\n', "row 1"),
        ('[{"m": 1}]', "row 1"),
    ):
        path.write_text(content)
        with pytest.raises(DataError, match=place):
            read_table(path, text)
    path.write_bytes(b'{"m": 1}\n{"m": "\xff"}\n')
    with pytest.raises(DataError, match="UTF-8"):
        read_table(path, text)
    path.write_text('{"m": "[1]"}\n{"m": [1]}\n')
    with pytest.raises(DataError, match=r"row 2, column 'm': expected a text or a number"):
        read_table(path, text)
    path.write_text('{"m": "[1]"}\n{"n": 2, "M": 3}\n')
    assert read_table(path, text)["m"].to_pylist() == ["[1]", None]
    assert column_names(path) == ["m", "n", "M"]


def test_a_parquet_column_that_is_no_text(tmp_path):
    for values in ([[1]], [{"a": 1}], [b"a"]):
        pq.write_table(pa.table({"m": values}), tmp_path / "x.parquet")
        with pytest.raises(DataError, match=r"row 1, column 'm': expected a text or a number"):
            read_table(tmp_path / "x.parquet", {"m": Wanted("m", Kind.HOLES)})


def test_the_names_that_a_file_has(tmp_path):
    for form in (".csv", ".tsv.gz", ".jsonl", ".parquet"):
        path = write(tmp_path, form)
        assert column_names(path) == list(COLUMNS)
        with pytest.raises(DataError, match=r"columns model, task, sample, score\. Rename 'sample'"):
            read_table(path, {"samples": Wanted("samples")})


def test_a_file_that_may_not_be_read_is_refused_in_words(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path, ".parquet")
    monkeypatch.setattr(pq, "read_schema", refuse)
    with pytest.raises(DataError, match="Permission denied"):
        read_table(path, {"m": Wanted("model")})
