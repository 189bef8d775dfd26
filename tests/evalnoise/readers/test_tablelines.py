"""What is wrong with a table file is said in our own words, with its place; no line is read without end."""

from __future__ import annotations

import datetime as dt
import gzip
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalnoise.readers import tablelines
from evalnoise.readers.columns import number_in
from evalnoise.readers.tablefile import Kind, Wanted, column_names, read_table
from schemas.errors import DataError

SCORE = {"score": Wanted("score", Kind.NUMBER)}
_ADVICE = re.compile(
    r"strict|null_padding|ignore_errors|auto_detect|max_line_size|possible fix|try setting|select|cast", re.IGNORECASE
)


def refused(path, wanted=SCORE) -> str:
    with pytest.raises(DataError) as found:
        read_table(path, wanted)
    assert not _ADVICE.search(str(found.value)), found.value
    return str(found.value).removeprefix(str(path))


@pytest.mark.parametrize(("name", "line"), [("x.csv", "{}"), ("x.jsonl", '{{"score": "{}"}}')])
def test_an_underscore_is_in_no_number(tmp_path, name, line):
    path = tmp_path / name
    head = "score\n" if name == "x.csv" else ""
    for text in ("1_0", "0_1", "1e1_0", "0.1_5"):
        path.write_text(head + line.format("+.5e-1") + "\n" + line.format(text) + "\n")
        assert re.match(rf", row 2, column 'score': expected a finite number.*found '{re.escape(text)}'", refused(path))
    path.write_text(head + line.format("+.5e-1") + "\n")
    assert read_table(path, SCORE)["score"].to_pylist() == [0.05]


def test_a_number_is_plain():
    assert [number_in(text) for text in ("1_0", "0_1", "\N{ARABIC-INDIC DIGIT ONE}", "nan", "inf", "1e400", "x", "")] == [None] * 8
    assert [number_in(text) for text in ("1", " .5 ", "-1e-2")] == [1.0, 0.5, -0.01]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1, 2], pa.duration("s")), "duration[s]"),
        (pa.array([dt.date(2026, 1, 1)] * 2), "date32[day]"),
        (pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)] * 2), "timestamp[us, tz=UTC]"),
        (pa.array([1, 2], pa.time64("us")), "time64[us]"),
        (pa.array([[1], [2]]), "list<element: int64>"),
        (pa.array([{"a": 1}] * 2), "struct<a: int64>"),
        (pa.array([b"1", b"0"]), "binary"),
    ],
)
def test_columns_of_parquet_that_are_no_scores(tmp_path, values, kind):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"score": values}), path)
    expected = f", column 'score': expected numbers, booleans or texts, found a column of type {kind}."
    assert refused(path).startswith(expected)


def test_columns_of_parquet_that_are_scores(tmp_path):
    path = tmp_path / "x.parquet"
    columns = [pa.array([1, 0], kind) for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(5, 2))]
    columns += [pa.array([True, False]), pa.array(["pass", "0"]), pa.array(["1", "fail"]).dictionary_encode()]
    columns += [pa.array(["1", "0"], pa.large_string())]
    for column in columns:
        pq.write_table(pa.table({"score": column}), path)
        assert read_table(path, SCORE)["score"].to_pylist() == [1.0, 0.0], column.type
    pq.write_table(pa.table({"score": pa.nulls(2)}), path)
    assert read_table(path, SCORE)["score"].to_pylist() == [None, None]
    pq.write_table(pa.table({"task": pa.array([1], pa.duration("s")), "score": [1]}), path)
    assert refused(path, {"task": Wanted("task")}).startswith(
        ", column 'task': expected texts or numbers, found a column of type dur"
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.csv", b'm,score\n"a\nb",1\nc\n', ", row 2: expected 2 fields, as in the header, found 1."),
        ("x.csv", b"m,score\n\n\na,1\n\nb,1,2\n", ", row 2: expected 2 fields, as in the header, found 3."),
        ("x.tsv", b'm\tscore\na\t1\n"b\t1\n', ", row 2: expected a closing quotation mark for each opening one, found none."),
        ("x.csv", b"m,score\na,1\n\xe9,1\n", ", line 3: expected UTF-8, found the byte 0xe9, as in Latin-1"),
        ("x.csv", b"m,score\n" + b"a,1\n" * 9000 + b"\xe9,1\n", ", line 9002: expected UTF-8, found the byte 0xe9"),
        ("x.csv", "m,score\na,1\n".encode("utf-16"), ": expected UTF-8, found UTF-16. Write the file in UTF-8."),
        ("x.jsonl", '{"score": 1}\n'.encode("utf-16"), ": expected UTF-8, found UTF-16. Write the file in UTF-8."),
        ("x.jsonl", b'{"score": 1}\n' * 9000 + b'\n{"score": "\xe9"}\n', ", row 9001: expected UTF-8, found the byte 0xe9"),
        ("x.jsonl", b'{"score": 1}\n{"score": 1, "score": 0}\n', ", row 2: expected a JSON object, found the key 'score' twice."),
        (
            "x.jsonl",
            b'{"score": 1}\n' + b"[" * 200_000,
            ", row 2: expected a JSON object, found brackets that are nested too deep.",
        ),
        ("x.jsonl", b'[{"score": 1}]', """, row 1: expected a JSON object, found [{"score": 1}]."""),
        ("x.csv.gz", gzip.compress(b"score\n" + os.urandom(9000).hex().encode())[:-3000], ": expected a table in"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    wanted = SCORE if "jsonl" in name or name.endswith(".gz") else SCORE | {"m": Wanted("m")}
    assert refused(path, wanted).startswith(said)


def test_a_mark_before_the_first_line_is_no_fault(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"score": 1}\n{"score": 1, "score": 0}\n')
    assert refused(path).startswith(", row 2")


def test_a_pipe_is_not_waited_for(tmp_path):
    path = tmp_path / "x.csv"
    os.mkfifo(path)
    assert refused(path).startswith(": expected a regular file, found a pipe, socket or device.")


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.jsonl.gz"])
def test_a_line_has_a_limit(tmp_path, monkeypatch, name):
    monkeypatch.setattr(tablelines, "LONGEST_LINE", 1_000_000)
    read = []
    whole = tablelines.opened

    def counted(path, mode="rt"):
        file = whole(path, mode)
        once = file.readline
        file.readline = lambda size: read.append(size) or once(size)
        return file

    monkeypatch.setattr(tablelines, "opened", counted)
    path, content = tmp_path / name, b"0" * 3_000_000
    path.write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
    for look in (lambda: read_table(path, SCORE), lambda: column_names(path)):
        with pytest.raises(DataError, match="line 1: expected lines of at most 1 MB, found a longer one"):
            look()
    assert set(read) <= {1_000_001}


def test_a_long_text_is_read(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"m,score\n{'x' * 3_000_000},1\n")  # longer than what DuckDB takes unasked
    assert read_table(path, SCORE)["score"].to_pylist() == [1.0]
