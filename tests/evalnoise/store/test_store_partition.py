"""Partition files: the table's checks, and the same rows as the same bytes."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalnoise.store.partition import PartitionWrite, arrow_table, keys_of, parquet_bytes, read_partition
from schemas.errors import StoreError
from schemas.tables import CHECKS, OUTCOMES, TABLES, VERDICTS, Column, Table

INT, FLOAT, TEXT = pa.int64(), pa.float64(), pa.string()
LINEAGE = (Column("study", TEXT, "."), Column("protocol", TEXT, "."), Column("benchmark", TEXT, "."))
MIXED = Table(
    "mixed",
    "row",
    (),
    ("n",),
    (
        *LINEAGE,
        Column("n", INT, "."),
        Column("x", FLOAT, ".", nullable=True),
        Column("text", TEXT, "."),
        Column("flag", pa.bool_(), "."),
        Column("at", pa.timestamp("us", "UTC"), "."),
        Column("words", pa.list_(TEXT), "."),
        Column("numbers", pa.list_(INT), "."),
    ),
)
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def row(place: int = 0, **changes):
    facts = {"study": "s", "protocol": "p", "benchmark": "b", "n": place, "x": 0.5, "text": "t", "flag": True, "at": NOW}
    return facts | {"words": ["a"], "numbers": [1]} | changes


class Word(StrEnum):
    PASS = "pass"


@given(st.permutations([row(n % 4, text=text, x=None if n == 2 else n / 7) for n, text in enumerate("abcdef\x00")]))
def test_same_rows_in_any_order_are_the_same_bytes(rows):
    reference = [row(n % 4, text=text, x=None if n == 2 else n / 7) for n, text in enumerate("abcdef\x00")]
    assert parquet_bytes(MIXED, rows) == parquet_bytes(MIXED, reference)


def test_rows_are_ordered_and_hold_the_very_values():
    data = parquet_bytes(MIXED, [row(2, text=Word.PASS), row(1, x=1, at=NOW.astimezone(timezone(timedelta(hours=5))))])
    found = read_partition(MIXED, {}, data).to_pylist()
    assert found == [row(1, x=1.0), row(2, text="pass")]


@settings(max_examples=50)
@given(st.text(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1))
def test_values_come_back_exactly(text, x, n):
    (found,) = read_partition(MIXED, {}, parquet_bytes(MIXED, [row(n, text=text, x=x)])).to_pylist()
    assert (found["text"], found["x"], found["n"]) == (text, x, n)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"x": float("nan")}, "column x.*double or null.*nan"),
        ({"x": float("inf")}, "column x.*inf"),
        ({"x": 2**53 + 1}, "column x.*no float holds"),
        ({"x": True}, "column x.*bool True"),
        ({"x": "1"}, "column x.*str '1'"),
        ({"n": 1.0}, "column n.*int64.*float 1.0"),
        ({"n": True}, "column n.*bool True"),
        ({"n": 2**63}, "column n.*64 bits"),
        ({"text": None}, "column text.*expected string, found null"),
        ({"text": b"x"}, "column text.*bytes"),
        ({"text": "ab\ud835"}, "column text.*lone surrogate at character 2.*escape_surrogates"),
        ({"flag": 1}, "column flag.*int 1"),
        ({"at": NOW.replace(tzinfo=None)}, "column at.*without a time zone"),
        ({"at": "2026-01-01"}, "column at.*str"),
        ({"words": "abc"}, "column words.*str"),
        ({"words": ["a", None]}, "column words.*item 1: null"),
        ({"words": ["\ud800"]}, "column words.*item 0: a lone surrogate"),
        ({"numbers": [1, 2.5]}, "column numbers.*item 1: float 2.5"),
    ],
)
def test_a_value_that_the_column_cannot_hold_is_refused(change, told):
    with pytest.raises(StoreError, match=f"table mixed, {told}"):
        arrow_table(MIXED, [row(0, **change)])


def test_missing_and_unknown_columns_are_named():
    bad = row(0)
    del bad["flag"]
    with pytest.raises(StoreError, match=r"table mixed, row 1: .*missing: flag; not in the table: replicate"):
        arrow_table(MIXED, [row(0), bad | {"replicate": 3}])


def test_partition_keys_are_never_in_the_file(study, outcome_rows):
    rows = [outcome | {"condition": "live"} for outcome in outcome_rows(study, "p")]
    with pytest.raises(StoreError, match="not in the table: condition"):
        arrow_table(OUTCOMES, rows)
    for table in TABLES.values():
        assert not set(table.partition) & {column.name for column in table.columns}


def test_an_empty_file_has_the_whole_schema():
    schema = pq.read_schema(io.BytesIO(parquet_bytes(OUTCOMES, [])))
    assert schema.names == [column.name for column in OUTCOMES.columns]
    assert schema.field("score").type == pa.float64()
    assert schema.metadata[b"evalnoise.table"] == b"outcomes"
    assert schema.field("outcome").metadata[b"doc"] == b"pass, fail or unmeasured."


def test_an_all_null_column_keeps_its_type(study, outcome_rows):
    schema = pq.read_schema(io.BytesIO(parquet_bytes(OUTCOMES, outcome_rows(study, "uu"))))
    assert schema.field("score").type == pa.float64()


def test_a_column_younger_than_the_file_reads_as_null():
    older = Table("mixed", "row", (), ("n",), MIXED.columns[:-1])
    data = parquet_bytes(older, [{key: value for key, value in row(5).items() if key != "numbers"}])
    (found,) = read_partition(MIXED, {}, data).to_pylist()
    assert found == row(5, numbers=None)


@pytest.mark.parametrize(
    ("table", "keys", "path"),
    [
        (
            OUTCOMES,
            {"stack": "s", "condition": "0.7", "replicate": 12},
            "outcomes/stack=s/condition=0.7/replicate=12/part-0.parquet",
        ),
        (VERDICTS, {"condition": "001", "repeat": 0}, "verdicts/condition=001/repeat=0/part-0.parquet"),
        (CHECKS, {}, "checks/part-0.parquet"),
    ],
)
def test_paths_and_back(table, keys, path):
    assert PartitionWrite(table, keys, [], "0").path() == path
    assert keys_of(table, path) == keys


@pytest.mark.parametrize(
    "keys",
    [
        {"stack": "s", "condition": "c"},
        {"stack": "s", "condition": "c", "replicate": "1"},
        {"stack": "s", "condition": "c", "replicate": -1},
        {"stack": "s", "condition": "c", "replicate": True},
        {"stack": "..", "condition": "c", "replicate": 1},
        {"stack": "a/b", "condition": "c", "replicate": 1},
        {"stack": "", "condition": "c", "replicate": 1},
        {"stack": "é", "condition": "c", "replicate": 1},
        {"stack": "s", "condition": "c", "replicate": 1, "task": "x"},
    ],
)
def test_keys_that_cannot_be_a_path_are_refused(keys):
    with pytest.raises(StoreError, match="table outcomes"):
        PartitionWrite(OUTCOMES, keys, [], "0").path()
