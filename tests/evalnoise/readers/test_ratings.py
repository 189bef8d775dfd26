"""Files of ratings: what is read, and what is refused with its row and column."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalnoise.readers.ratings import read_ratings
from schemas.errors import DataError

LONG = """item,rater,rating,confidence,reference
q1,human,pass,,pass
q1,grader,PASS,90,
q1,grader,fail,55.5,
q2,grader,,,fail
q2,human,No,,fail
"""


def written(tmp_path, text, name="r.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_long_form_with_repeats_words_and_holes(tmp_path):
    found = read_ratings(written(tmp_path, LONG))
    assert (found.items, [rater.name for rater in found.raters]) == (("q1", "q2"), ["human", "grader"])
    assert found.binary
    assert found.rater("human").codes.tolist() == [[1], [0]]
    grader = found.rater("grader")
    assert grader.codes.tolist() == [[1, 0], [-1, -1]]
    assert grader.confidence.tolist() == [[0.9, 0.555], [0.0, 0.0]]
    assert grader.stated.tolist() == [[True, True], [False, False]]
    assert found.reference.tolist() == [1, 0]


def test_three_formats_say_the_same(tmp_path):
    rows = [
        {"item": "a", "rater": "x", "rating": 1},
        {"item": "b", "rater": "x", "rating": 5},
        {"item": "b", "rater": "y", "rating": 2.5},
    ]
    texts = {
        "r.jsonl": "\n".join(map(json.dumps, rows)),
        "r.csv": "item,rater,rating\n" + "\n".join(",".join(map(str, row.values())) for row in rows) + "\n",
    }
    paths = [written(tmp_path, text, name) for name, text in texts.items()]
    paths.append(tmp_path / "r.parquet")
    pq.write_table(pa.table({key: [row[key] for row in rows] for key in rows[0]}), paths[-1])
    for path in paths:
        found = read_ratings(path)
        assert (found.items, found.categories, found.values, found.binary) == (
            ("a", "b"),
            ("1", "2.5", "5"),
            (1.0, 2.5, 5.0),
            False,
        )
        assert [rater.codes.tolist() for rater in found.raters] == [[[0], [2]], [[-1], [1]]]


def test_without_a_rater_column_there_is_one(tmp_path):
    found = read_ratings(written(tmp_path, "item,rating\na,good\na,bad\n"))
    assert (len(found.raters), found.categories, found.values) == (1, ("bad", "good"), None)
    assert found.raters[0].codes.tolist() == [[1, 0]]


def test_a_wide_file_is_the_long_one(tmp_path):
    long = read_ratings(written(tmp_path, "item,rater,rating\na,judge,pass\na,human,fail\nb,judge,\nb,human,pass\n"))
    for text, raters in (
        ("item,judge,human\na,pass,fail\nb,,pass\n", ()),
        ("item,x,judge,human\na,9,1,0\nb,9,,1\n", ("judge", "human")),
    ):
        wide = read_ratings(written(tmp_path, text, "w.csv"), raters=raters)
        assert (wide.items, wide.binary, wide.reference) == (long.items, True, None)
        assert [(one.name, one.codes.tolist()) for one in wide.raters] == [(one.name, one.codes.tolist()) for one in long.raters]
    rows = [{"item": "a", "x": 1, "y": 2, "reference": 2}, {"item": "a", "x": 3, "y": None}]
    found = read_ratings(written(tmp_path, "\n".join(map(json.dumps, rows)), "w.jsonl"))
    assert [one.codes.tolist() for one in found.raters] == [[[0, 2]], [[1, -1]]]
    assert found.reference.tolist() == [1]
    pq.write_table(pa.table({"item": ["a"], "x": [True], "y": [False]}), tmp_path / "w.parquet")
    assert [one.codes.tolist() for one in read_ratings(tmp_path / "w.parquet").raters] == [[[1]], [[0]]]


@pytest.mark.parametrize(
    ("text", "raters", "where", "found"),
    [
        ("item,rater,ratings\na,x,1\n", (), "w.csv", "rater, ratings"),
        ("item,judge,human\na,1,2\nb,3,four\n", (), "row 2, column 'human'", "four"),
        ("item,judge,human\n,1,2\n", (), "row 1, column 'item'", "nothing"),
        ("item,judge,human\na,1,2\n", ("judge", "boss"), "w.csv", "judge, human"),
        ("item,judge,human\na,1,2\n", ("judge", "judge"), "w.csv", "'judge'"),
        ("thing,judge,human\na,1,2\n", (), "w.csv", "thing"),
    ],
)
def test_a_bad_wide_file_is_refused(tmp_path, text, raters, where, found):
    with pytest.raises(DataError) as caught:
        read_ratings(written(tmp_path, text, "w.csv"), raters=raters)
    assert where in caught.value.where
    assert found in caught.value.found


@pytest.mark.parametrize(
    ("text", "where", "found"),
    [
        ("item,rating\n,pass\n", "row 1, column 'item'", "nothing"),
        ("item,rating\na,1\nb,2\nc,three\n", "row 3, column 'rating'", "three"),
        ("item,rating,confidence\na,pass,140\n", "row 1, column 'confidence'", "140"),
        ("item,rating,confidence\na,pass,nan\n", "row 1, column 'confidence'", "nan"),
        ("item,rating,confidence\na,pass,0.9\nb,pass,0.4\n", "column confidence", "0 to 1"),
        ("item,rating,reference\na,pass,pass\na,fail,fail\n", "row 2, column 'reference'", "fail"),
        ("item,score\na,pass\n", "r.csv", "item, score"),
        ("item,rating,rating\na,1,1\n", "r.csv", "2 of that name"),
        ("item,rating\n", "r.csv", "none"),
        ("item,rating\na,\n", "r.csv", "none"),
        ("item,rating\na,1,2\n", "r.csv, row 1", "3"),
        ("", "r.csv", "an empty file"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path, text, where, found):
    with pytest.raises(DataError) as caught:
        read_ratings(written(tmp_path, text))
    assert where in caught.value.where
    assert found in caught.value.found


def test_files_that_are_none(tmp_path):
    (tmp_path / "r.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "bad.csv").write_bytes(b"item,rating\n\xff\xfe,1\n")
    (tmp_path / "bad.jsonl").write_bytes(b'{"item": "\xff"}\n')
    (tmp_path / "d.csv").mkdir()
    for name in ("r.parquet", "bad.csv", "bad.jsonl", "d.csv", "absent.csv", "r.txt"):
        with pytest.raises(DataError):
            read_ratings(tmp_path / name)
