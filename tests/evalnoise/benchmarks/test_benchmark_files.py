from __future__ import annotations

import dataclasses
import gzip
import hashlib
from pathlib import Path

import pytest

from evalnoise.benchmarks.base import benchmark, check_fields, data_path, decompress, json_lines, read_source, tasks_sha256
from schemas.errors import DataError, ExitCode
from schemas.records import SourceFile, Task, TaskKind

TASK = Task(
    id="a/1",
    kind=TaskKind.FUNCTION,
    prompt="p",
    reference="r",
    entry_point="f",
    code="c",
    inputs=("[1]",),
    n_base_inputs=1,
    atol=0.5,
    cluster="k",
)


def lines(data: bytes) -> list[tuple[str, dict]]:
    return list(json_lines(data, Path("x.jsonl"), remedy="Get it."))


def test_home_is_expanded_and_other_paths_stay_relative(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_path("~/a.jsonl") == tmp_path / "a.jsonl"
    assert data_path("../a.jsonl") == Path("../a.jsonl")


def test_source_has_digest_and_size_of_the_file_as_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"abc")
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert read_source(path, remedy="") == (b"abc", SourceFile(str(path), digest, 3))
    assert read_source(path, remedy="", sha256=digest.upper())[0] == b"abc"


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda path: path.parent, "no such file"),
        (lambda path: path.mkdir(), "IsADirectoryError: Is a directory"),
        (lambda path: path.touch(), "an empty file"),
    ],
)
def test_unreadable_source_names_the_file_and_the_remedy(tmp_path: Path, make, found: str) -> None:
    path = tmp_path / "data"
    make(path)
    with pytest.raises(DataError) as caught:
        read_source(path, remedy="Get it.")
    assert (caught.value.where, caught.value.found, caught.value.remedy) == (str(path), found, "Get it.")
    assert caught.value.exit_code is ExitCode.DATA


def test_another_digest_is_an_error_that_shows_both(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"abd")
    with pytest.raises(DataError) as caught:
        read_source(path, remedy="Get it.", sha256="AB" * 32)
    assert caught.value.expected == f"SHA-256 {'ab' * 32}, as the study says"
    assert hashlib.sha256(b"abd").hexdigest() in caught.value.found


def test_gzip_is_told_by_its_first_bytes() -> None:
    assert decompress(gzip.compress(b"abc") + gzip.compress(b"def"), Path("x"), remedy="") == b"abcdef"
    assert decompress(b"abc", Path("x.gz"), remedy="") == b"abc"


@pytest.mark.parametrize("damage", ["cut", "flip", "tail", "header only"])
def test_damaged_gzip_is_an_error(damage: str) -> None:
    whole = gzip.compress(bytes(range(256)) * 8)
    data = {
        "cut": whole[:-9],
        "flip": whole[:40] + bytes([whole[40] ^ 255]) + whole[41:],
        "tail": whole + b"x",
        "header only": whole[:6],
    }
    with pytest.raises(DataError, match=r"x\.gz: expected a whole gzip file, found a damaged one: .+\. Get it\.$"):
        decompress(data[damage], Path("x.gz"), remedy="Get it.")


def test_lines_without_final_newline_with_bom_crlf_blank_lines_and_separators() -> None:
    text = '\ufeff{"a": 1}\r\n\r\n  \n{"a": "\u2028\x85"}\n{"a": 3}'
    assert lines(text.encode()) == [("x.jsonl:1", {"a": 1}), ("x.jsonl:4", {"a": "\u2028\x85"}), ("x.jsonl:5", {"a": 3})]


def test_integers_over_the_digit_limit_and_names_of_floats() -> None:
    ((_, row),) = lines(b'{"a": ' + b"9" * 5000 + b', "b": [Infinity, -Infinity], "c": -' + b"7" * 4301 + b"}")
    assert row["a"] == 10**5000 - 1
    assert row["b"] == [float("inf"), float("-inf")]
    assert row["c"] == -7 * (10**4301 - 1) // 9


@pytest.mark.parametrize(
    ("bad", "expected", "found"),
    [
        (b'{"a": 1, "b', "a whole line of JSON", "11 bytes that are not: JSONDecodeError"),
        (b'{"a": "\xff"}', "a whole line of JSON", "UnicodeDecodeError"),
        (b"[1]", "a JSON object", "a list"),
        (b"[" * 100_000, "a whole line of JSON", "RecursionError"),
    ],
)
def test_bad_line_is_named(bad: bytes, expected: str, found: str) -> None:
    with pytest.raises(DataError) as caught:
        lines(b'{"a": 0}\n' + bad + b'\n{"a": 2}')
    assert caught.value.where == "x.jsonl:2"
    assert caught.value.expected == expected
    assert found in caught.value.found


@pytest.mark.parametrize(
    ("row", "where", "expected", "found"),
    [
        ({"id": "a"}, "x:1", "fields 'id', 'size'", "fields 'id'"),
        ({}, "x:1", "fields 'id', 'size'", "an empty object"),
        ({"id": "a", "size": 1, "nots": 2}, "x:1", "field 'note'", "unknown field 'nots'"),
        ({"id": "a", "size": 1, "zzz": 2}, "x:1", "only fields 'id', 'size', 'note'", "unknown field 'zzz'"),
        ({"id": 3, "size": 1}, "x:1, field 'id'", "str", "int"),
        ({"id": "a", "size": None}, "x:1, field 'size'", "int or float", "NoneType"),
        ({"id": "a", "size": True}, "x:1, field 'size'", "int or float", "bool"),
    ],
)
def test_wrong_fields(row: dict, where: str, expected: str, found: str) -> None:
    with pytest.raises(DataError) as caught:
        check_fields(row, "x:1", required={"id": str, "size": (int, float)}, optional={"note": str}, remedy="")
    assert (caught.value.where, caught.value.expected, caught.value.found) == (where, expected, found)


def test_right_fields_pass() -> None:
    check_fields(
        {"id": "a", "size": 1.5, "note": ""}, "x:1", required={"id": str, "size": (int, float)}, optional={"note": str}, remedy=""
    )


def test_repeated_id_names_both_places() -> None:
    with pytest.raises(DataError) as caught:
        benchmark("b", [("x:1", TASK), ("x:7", TASK)], [], remedy="")
    assert (caught.value.where, caught.value.found) == ("x:7", "'a/1' again, after x:1")


def test_no_tasks_is_an_error() -> None:
    with pytest.raises(DataError, match="x: expected at least one task, found none"):
        benchmark("b", [], [SourceFile("x", "", 1)], remedy="")


def test_digest_covers_every_field_and_the_order() -> None:
    changed = {
        "id": "a/2", "kind": TaskKind.OUTPUT, "prompt": "q", "reference": "s", "entry_point": "g", "code": "d", "inputs": ("[2]",),
        "n_base_inputs": 0, "atol": 0.25, "cluster": "l", "test": "assert f", "oracle": "o", "in_place": True,
    }  # fmt: skip
    assert set(changed) == {field.name for field in dataclasses.fields(Task)}
    others = [dataclasses.replace(TASK, **{name: value}) for name, value in changed.items()]
    digests = {tasks_sha256([task]) for task in [TASK, *others]}
    assert len(digests) == 14
    assert tasks_sha256([TASK, others[0]]) != tasks_sha256([others[0], TASK])


def test_digest_is_this_one_and_takes_lone_surrogates() -> None:
    assert tasks_sha256([TASK]) == "db681efc909c2bc26b63ea3086f790a0e82b4d5e819ba3ad5ba34c624a356a60"
    assert tasks_sha256([dataclasses.replace(TASK, prompt="\ud835")]) != tasks_sha256([dataclasses.replace(TASK, prompt="\ud834")])
