"""The catalog: fresh, whole, rebuilt when it must be, and readable by several processes at once."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

import evalnoise
from evalnoise.store.catalog import CATALOG_FILE, build_catalog, connect
from evalnoise.store.partition import PartitionWrite
from evalnoise.store.store import Store
from schemas.errors import StoreError
from schemas.tables import CALLS, CHECKS, OUTCOMES, TABLES, TASKS, VERDICTS, Table
from schemas.views import load_views, reader_columns
from tests.support.catalogs import IDS, commit, inode, query


def check_row(study) -> dict[str, object]:
    row = {"study": study.study, "protocol": study.protocol, "benchmark": "b", "check": "c", "stack": "of-the-row"}
    return row | {"condition": "", "severity": "info", "blocks": False, "sentence": "So.", "value": None}


def test_every_view_is_there_with_its_columns_even_when_nothing_is_sealed(store, study):
    connection = evalnoise.connect(store.root)
    for table in TABLES.values():
        described = connection.execute(f"describe {table.name}").fetchall()
        assert [row[0] for row in described] == [column.name for column in reader_columns(table)]
        assert connection.execute(f"from {table.name}").fetchall() == []
    types = {row[0]: row[1] for row in connection.execute("describe calls").fetchall()}
    assert (types["replicate"], types["sent_at"], types["cost_usd"]) == ("BIGINT", "TIMESTAMP WITH TIME ZONE", "DOUBLE")
    for view in load_views():
        connection.execute(f"from {view.name}").fetchall()
    connection.close()


def test_hostile_names_come_back_in_a_store_with_quotes_in_its_path(store, study, outcome_rows):
    assert "'" in str(store.root)
    assert '"' in str(store.root)
    commit(study, outcome_rows)
    found = query(store, "select stack, condition, replicate, task_id, score from outcomes order by position")
    assert found == [("s", "0.7", 0, task, score) for task, score in zip(IDS, (1.0, 0.0, None, 1.0), strict=True)]


@pytest.mark.parametrize(
    "names", [("001", "010"), ("0.7", "temp0"), ("2026-11-01", "2026-11-02"), ("true", "null"), ("1e5", "nan")]
)
def test_partition_values_keep_their_type_whatever_they_look_like(store, study, outcome_rows, names):
    for condition in names:
        commit(study, outcome_rows, condition=condition, replicate=3)
    assert query(store, "select distinct condition, replicate from outcomes order by condition") == [
        (name, 3) for name in sorted(names)
    ]


def test_the_newest_commit_is_seen_and_no_file_that_is_not_sealed(store, study, outcome_rows):
    commit(study, outcome_rows, outcomes="pppp")
    assert query(store, "select sum(score) from outcomes") == [(4.0,)]
    commit(study, outcome_rows, outcomes="ffpp")
    loose = study.path / "outcomes" / "stack=s" / "condition=0.7" / "replicate=9"
    loose.mkdir()
    shutil.copy(study.path / study.files(OUTCOMES)[0].path, loose / "part-a.parquet")
    assert query(store, "select sum(score), count(*) from outcomes") == [(2.0, 4)]


def test_it_is_rebuilt_when_a_manifest_has_moved_on_and_not_otherwise(store, study, outcome_rows):
    commit(study, outcome_rows)
    assert query(store, "select count(*) from outcomes") == [(4,)]
    first = inode(store)
    assert query(store, "select count(*) from outcomes") == [(4,)]
    assert inode(store) == first
    commit(study, outcome_rows, replicate=1)
    assert query(store, "select count(*) from outcomes") == [(8,)]
    assert inode(store) != first


def test_an_open_connection_sees_the_old_store_and_a_new_one_the_new(store, study, outcome_rows):
    commit(study, outcome_rows)
    old = connect(store.root)
    commit(study, outcome_rows, replicate=1)
    new = connect(store.root)
    assert old.execute("select count(*) from outcomes").fetchall() == [(4,)]
    assert new.execute("select count(*) from outcomes").fetchall() == [(8,)]


def test_it_is_read_only(store, study):
    connection = connect(store.root)
    for statement in ("create table t (x int)", "drop view outcomes", "insert into protocols by name select 'x' as study"):
        with pytest.raises(duckdb.Error, match="read-only"):
            connection.execute(statement)
    connection.execute("create temp table mine as select 1 as x")
    assert connection.execute("from mine").fetchall() == [(1,)]


@pytest.mark.parametrize("damage", ["garbage", "empty", "cut", "flips", "other"])
def test_a_damaged_catalog_is_rebuilt(store, study, outcome_rows, damage):
    commit(study, outcome_rows)
    path = build_catalog(store.root)
    whole = path.read_bytes()
    if damage == "flips":
        data = bytearray(whole)
        for place in range(12_288, len(data), 4096):
            data[place + 100] ^= 0xFF
        path.write_bytes(bytes(data))
    elif damage == "other":
        path.unlink()
        duckdb.connect(path).execute("create table mine (x int)").close()
    else:
        path.write_bytes({"garbage": b"not a database" * 1000, "empty": b"", "cut": whole[: len(whole) // 3]}[damage])
    assert query(store, "select count(*) from outcomes") == [(4,)]
    assert not list(store.root.glob("*.tmp"))
    assert not list(store.root.glob(".*.tmp*"))


def test_a_moved_store_is_rebuilt(store, study, outcome_rows, tmp_path):
    commit(study, outcome_rows)
    build_catalog(store.root)
    moved = tmp_path / "moved [s]tore*?{a,b}"
    shutil.copytree(store.root, moved)
    # A decoy that the new path would match if it were taken for a pattern.
    shutil.copytree(moved, tmp_path / "moved storexa")
    shutil.rmtree(store.root)
    assert query(moved, "select count(*) from outcomes") == [(4,)]
    assert query(moved, "select count(*) from protocols") == [(1,)]


@pytest.mark.parametrize("folder", ["run=7", "study=x", "STACK=x/replicate=no", "stack=x/condition=y/replicate=9", "task_id=5"])
def test_folders_above_the_store_that_read_as_partitions_change_nothing(tmp_path, protocol, outcome_rows, folder):
    store = Store.open(tmp_path / folder / "store")
    store.freeze(protocol)
    study = store.study("demo", protocol.digest())
    commit(study, outcome_rows, replicate=2)
    study.commit("analyse", [PartitionWrite(CHECKS, {}, [check_row(study)], "all")])
    found = query(store, "select stack, condition, replicate, study, task_id from outcomes order by position")
    assert found == [("s", "0.7", 2, "demo", task) for task in IDS]
    assert query(store, "select study, stack from checks") == [("demo", "of-the-row")]
    assert query(store, "select count(*) from outcomes where replicate = 2 and condition = '0.7'") == [(4,)]
    columns = [row[0] for row in query(store, "describe outcomes")]
    assert columns == [column.name for column in reader_columns(OUTCOMES)]


def test_a_process_binds_the_views_once_for_all_stores(store, study, outcome_rows, tmp_path, monkeypatch):
    build_catalog(store.root)

    def refuse(*_: object) -> None:
        raise AssertionError("the views were bound again")

    monkeypatch.setattr("evalnoise.store.catalog._frame", refuse)
    commit(study, outcome_rows)
    assert query(store, "select sum(passes), sum(runs) from task_counts") == [(2, 3)]
    other = tmp_path / "other"
    shutil.copytree(store.root, other, ignore=shutil.ignore_patterns(CATALOG_FILE))
    assert query(other, "select count(*) from outcomes") == [(4,)]
    # Other code has other views.
    monkeypatch.setattr("evalnoise.store.catalog._FORMAT", 0)
    with pytest.raises(AssertionError, match="bound again"):
        build_catalog(other)


def test_a_catalog_for_which_there_is_no_space_is_a_store_error(store, study, monkeypatch):
    build_catalog(store.root)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StoreError, match="no space left"):
        build_catalog(store.root)
    assert not list(store.root.glob(".*tmp"))


def test_a_store_that_cannot_be_written_can_be_read(store, study, outcome_rows, monkeypatch):
    commit(study, outcome_rows)

    def refuse(root: Path) -> str:
        raise StoreError(str(root), expected="a place that can be written", found="read-only file system", remedy="…")

    monkeypatch.setattr("evalnoise.store.catalog._build", refuse)
    assert query(store, "select count(*) from outcomes") == [(4,)]
    assert not (store.root / CATALOG_FILE).exists()


@pytest.mark.parametrize("damage", ["missing", "flipped footer", "cut"])
def test_a_damaged_protocol_is_named_and_does_not_hide_the_others(store, study, outcome_rows, make_protocol, damage):
    other = make_protocol("other")
    store.freeze(other)
    commit(store.study("other", other.digest()), outcome_rows)
    commit(study, outcome_rows)
    commit(study, outcome_rows, replicate=1)
    path = study.path / study.files(OUTCOMES)[0].path
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(data[:-9] + b"\xff" + data[-8:] if damage == "cut" else data[:-4] + b"XXXX")
    build_catalog(store.root)
    rows = query(store, "select study, status, problem from protocols order by study")
    assert [row[:2] for row in rows] == [("demo", "damaged"), ("other", "partial")]
    assert str(path) in str(rows[0][2])
    assert "Run the study again" in str(rows[0][2])
    assert query(store, "select study, replicate, count(*) from outcomes group by all order by all") == [
        ("demo", 1, 4),
        ("other", 0, 4),
    ]


def test_a_thousand_files_are_connected_to_at_once(store, study, outcome_rows, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    row = outcome_rows(study, "p", IDS)
    keys = [{"stack": "s", "condition": "c", "replicate": replicate} for replicate in range(1000)]
    study.commit("all", [PartitionWrite(OUTCOMES, key, row, "a") for key in keys])
    build_catalog(store.root)
    begun = time.monotonic()
    connect(store.root).close()
    assert time.monotonic() - begun < 0.5  # about 0.04 s on two cores


def test_a_damaged_manifest_is_named_and_does_not_hide_the_others(store, study, outcome_rows, make_protocol):
    other = make_protocol("other")
    store.freeze(other)
    commit(store.study("other", other.digest()), outcome_rows)
    commit(study, outcome_rows)
    study.mark("note")
    study.manifest.path.write_bytes(study.manifest.path.read_bytes().replace(b'"rows":4', b'"rows":5'))
    rows = query(store, "select study, protocol12, status, problem from protocols order by study")
    assert [row[:3] for row in rows] == [("demo", study.protocol[:12], "damaged"), ("other", other.digest()[:12], "partial")]
    assert "line 2" in str(rows[0][3])
    assert query(store, "select distinct study from outcomes") == [("other",)]


def test_a_folder_that_is_no_store_is_refused_and_left_alone(tmp_path):
    for path, told in ((tmp_path, "a store with at least one study"), (tmp_path / "none", "a store, found no such folder")):
        with pytest.raises(StoreError, match=told):
            connect(path)
    assert list(tmp_path.iterdir()) == []


def test_times_are_utc_and_lineage_is_in_partitions(store, study, outcome_rows):
    commit(study, outcome_rows)
    ((zone, rows, sealed),) = query(store, "select current_setting('TimeZone'), rows, sealed_at from partitions")
    assert (zone, rows) == ("UTC", 4)
    assert sealed.utcoffset().total_seconds() == 0
    assert query(store, "select table_name, n_files, n_rows from progress") == [("outcomes", 1, 4)]


def test_a_column_younger_than_the_files_is_null(store, study, outcome_rows, monkeypatch):
    older = Table("outcomes", OUTCOMES.grain, OUTCOMES.partition, OUTCOMES.sort, OUTCOMES.columns[:-1])
    rows = [{name: value for name, value in row.items() if name != "candidate_sha256"} for row in outcome_rows(study, "pf", IDS)]
    study.commit("old", [PartitionWrite(older, {"stack": "s", "condition": "c", "replicate": 0}, rows, "a")])
    assert query(store, "select distinct candidate_sha256 from outcomes") == [(None,)]
    commit(study, outcome_rows)
    assert query(store, "select count(*), count(candidate_sha256) from outcomes") == [(6, 0)]


def test_an_all_null_file_beside_one_with_values(store, study):
    row = {"study": "demo", "protocol": study.protocol, "benchmark": "b", "stack": "s", "task_id": "t", "position": 0}
    row |= {"candidate_sha256": "x", "verdict": "pass", "reason": "", "text": "", "request_key": "", "reference_outcome": "pass"}
    row |= {"response_class": "complete", "stated": "pass"}
    for repeat, confidence in enumerate((None, 80.0)):
        write = PartitionWrite(VERDICTS, {"condition": "j", "repeat": repeat}, [row | {"confidence": confidence}], "a")
        study.commit(f"judge-{repeat}", [write])
    assert query(store, "select repeat, confidence from verdicts order by repeat") == [(0, None), (1, 80.0)]


def test_tables_without_partition_keys_ignore_folders(store, study):
    row = {"study": "demo", "protocol": study.protocol, "benchmark": "b", "task_id": "t", "position": 0, "kind": "function"}
    row |= {"prompt": "", "reference": "", "entry_point": "", "cluster": "", "n_inputs": 0}
    study.commit("tasks", [PartitionWrite(TASKS, {}, [row], "tasks")])
    assert query(store, "select task_id from tasks") == [("t",)]
    assert query(store, f"select count(*) from {CALLS.name}") == [(0,)]


READER = """
import sys
import evalnoise
for _ in range(8):
    connection = evalnoise.connect(sys.argv[1])
    counts = connection.execute("select replicate, count(*) from outcomes group by 1").fetchall()
    assert all(count == 4 for _, count in counts), counts
    connection.close()
print(len(counts))
"""


def test_readers_and_a_writer_in_several_processes(store, study, outcome_rows):
    commit(study, outcome_rows)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READER, str(store.root)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(2)
    ]
    replicate = 0
    while any(reader.poll() is None for reader in readers):
        replicate += 1
        commit(study, outcome_rows, replicate=replicate)
        time.sleep(0.05)
        if replicate % 3 == 0:
            build_catalog(store.root)
    for reader in readers:
        out, err = reader.communicate()
        assert (reader.returncode, err) == (0, "")
        assert 1 <= int(out) <= replicate + 1
    assert query(store, "select count(distinct replicate) from outcomes") == [(replicate + 1,)]
    assert not list(store.root.glob(".*.tmp*"))


def test_importing_the_package_loads_neither_duckdb_nor_arrow():
    code = "import sys, evalnoise; print(sorted({'duckdb', 'pyarrow'} & set(sys.modules)), callable(evalnoise.connect))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n"
    with pytest.raises(AttributeError):
        evalnoise.nothing  # noqa: B018 - the access is the test
