"""The catalog after files have changed behind its back: what is seen, and what is read again."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from evalnoise.store.catalog import CATALOG_FILE, build_catalog
from schemas.tables import OUTCOMES
from tests.support.catalogs import commit, inode, query


def alter(path: Path) -> None:
    """Other bytes, the same size, still a Parquet file, written in place with the times set back."""
    facts, data = path.stat(), path.read_bytes()
    changed = data.replace(b"parquet-cpp", b"parquet-cqp")
    assert len(changed) == len(data)
    assert changed != data
    time.sleep(0.02)  # longer than the tick of the file system's clock
    path.write_bytes(changed)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.mark.parametrize("built", [False, True])
def test_a_file_altered_at_its_size_is_seen_by_the_next_connection(store, study, outcome_rows, built):
    commit(study, outcome_rows)
    commit(study, outcome_rows, replicate=1)
    path = study.path / study.files(OUTCOMES)[0].path
    data = path.read_bytes()
    if built:
        assert query(store, "select count(*) from outcomes") == [(8,)]
    alter(path)
    ((status, problem),) = query(store, "select status, problem from protocols")
    assert status == "damaged"
    assert str(problem).startswith(f"{path} is damaged. Run the study again")
    assert query(store, "select replicate, count(*) from outcomes group by all") == [(1, 4)]
    damaged = inode(store)
    assert query(store, "select count(*) from partitions") == [(1,)]
    assert inode(store) == damaged
    path.write_bytes(data)
    assert query(store, "select status, problem from protocols") == [("partial", "")]
    assert query(store, "select count(*) from outcomes") == [(8,)]


def test_a_file_that_goes_and_comes_back_is_seen(store, study, outcome_rows, tmp_path):
    commit(study, outcome_rows)
    path = study.path / study.files(OUTCOMES)[0].path
    assert query(store, "select status from protocols") == [("partial",)]
    path.rename(tmp_path / "aside")
    assert query(store, "select status from protocols") == [("damaged",)]
    (tmp_path / "aside").rename(path)
    assert query(store, "select status from protocols") == [("partial",)]


def test_an_altered_protocol_is_seen_by_the_next_connection(store, study):
    assert query(store, "select status from protocols") == [("partial",)]
    path = store.root / "protocols" / f"{study.protocol}.json"
    path.write_bytes(path.read_bytes().replace(b"starter", b"stertor"))
    assert query(store, "select status, benchmark from protocols") == [("damaged", None)]


def test_a_rebuild_reads_only_what_has_changed(store, study, outcome_rows, monkeypatch):
    real, read = hashlib.file_digest, []

    def counted(file, name):
        read.append(Path(file.name).parent.name)
        return real(file, name)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    for replicate in range(3):
        commit(study, outcome_rows, replicate=replicate)
    build_catalog(store.root)
    assert sorted(read) == ["replicate=0", "replicate=1", "replicate=2"]
    build_catalog(store.root)
    assert len(read) == 3
    commit(study, outcome_rows, replicate=3)
    alter(study.path / study.files(OUTCOMES, replicate=1)[0].path)
    query(store, "from outcomes")
    assert sorted(read[3:]) == ["replicate=1", "replicate=3"]
    (store.root / CATALOG_FILE).write_bytes(b"damaged")
    query(store, "from outcomes")
    assert sorted(read[5:]) == ["replicate=0", "replicate=1", "replicate=2", "replicate=3"]
