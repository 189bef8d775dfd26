"""`evalnoise export` as a user types it: what is in the files, and that they are whole or not there."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import evalnoise
from evalnoise.readers.export import exportable
from flows.cli import app
from schemas.tables import TABLES
from schemas.views import load_views
from tests.support.small_store import HOSTILE, build

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "store"
    build(folder)
    return folder


def run(root: Path, *arguments: object, code: int = 0) -> str:
    result = RUNNER.invoke(app, ["export", *map(str, arguments), "--store", str(root)])
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert "Traceback" not in result.output
    return result.output


def test_csv_tells_null_from_the_empty_text_and_keeps_digits(root, tmp_path) -> None:
    query = "select 0.1::double + 0.2 a, 1e-7 b, null c, '' d, 'x,\"y\"' e, true f, [1, 2] g, {'k': 'v'} h, 'ab'::blob j"
    said = run(root, query, "--csv", "-o", tmp_path / "x.csv")
    assert said.endswith("x.csv  1 row\n")
    head, line = (tmp_path / "x.csv").read_text("utf-8").splitlines()
    assert head == "a,b,c,d,e,f,g,h,j"
    assert line == ('0.30000000000000004,1e-07,,"","x,""y""",true,"[1,2]","{""k"":""v""}",6162')


def test_texts_of_models_come_back_to_the_letter(root, tmp_path) -> None:
    run(root, "generations", "--csv", "-o", tmp_path / "g.csv")
    with (tmp_path / "g.csv").open(newline="", encoding="utf-8") as file:
        texts = {row["text"] for row in csv.DictReader(file)}
    assert HOSTILE in texts
    back = duckdb.sql(f"select distinct text from read_csv('{tmp_path / 'g.csv'}', header = true, all_varchar = true)").fetchall()
    assert {text for (text,) in back} == texts


def test_parquet_has_types_and_the_rows_of_the_store(root, tmp_path) -> None:
    run(root, "--parquet", "-o", tmp_path / "all")
    assert {path.name for path in (tmp_path / "all").iterdir()} == {f"{name}.parquet" for name in exportable()}
    assert set(exportable()) == {view.name for view in load_views()} | set(TABLES)
    connection = evalnoise.connect(root)
    for name in exportable():
        there = duckdb.sql(f"from '{tmp_path / 'all' / name}.parquet'")
        here = connection.execute(f'from "{name}" order by all')
        assert [column[0] for column in there.description] == [column[0] for column in here.description]
        assert [column[1] for column in there.description] == [column[1] for column in here.description]
        assert there.fetchall() == here.fetchall()
    connection.close()
    run(root, "select sum(9007199254740993::bigint) as n", "--parquet", "-o", tmp_path / "sum.parquet")
    assert pq.read_table(tmp_path / "sum.parquet").to_pylist() == [{"n": 9007199254740993}]


def test_rows_are_in_one_order_or_in_the_query_s(root, tmp_path) -> None:
    query = "select * from (values (3), (1), (2)) t(x)"
    for order, expected in (("", ["1", "2", "3"]), ("order by x desc", ["3", "2", "1"]), ("-- order by x desc", ["1", "2", "3"])):
        run(root, f"{query} {order}", "--csv", "-o", tmp_path / "o.csv", "--force")
        assert (tmp_path / "o.csv").read_text().split() == ["x", *expected]
    run(root, "select 'order by x' as x; ", "--csv", "-o", tmp_path / "o.csv", "--force")
    run(root, "from outcomes", "--csv", "-o", tmp_path / "a.csv")
    run(root, "outcomes", "--csv", "-o", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_columns_of_one_name_are_all_there(root, tmp_path) -> None:
    run(root, "select 1 as a, 2 as a", "--csv", "-o", tmp_path / "x.csv")
    head, line = (tmp_path / "x.csv").read_text().splitlines()
    assert len(set(head.split(","))) == 2
    assert line == "1,2"


def test_formulas_are_left_alone_unless_a_spreadsheet_is_meant(root, tmp_path) -> None:
    query = "select unnest(['=1+1', '+x', '-x', '@x', '\tx', 'x=1', '']) as t, -1 as n"
    run(root, query, "--csv", "-o", tmp_path / "plain.csv")
    run(root, query, "--csv", "-o", tmp_path / "safe.csv", "--spreadsheet-safe")
    texts = {}
    for name in ("plain", "safe"):
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            texts[name] = {(row["t"], row["n"]) for row in csv.DictReader(file)}
    assert texts["plain"] == {(t, "-1") for t in ("=1+1", "+x", "-x", "@x", "\tx", "x=1", "")}
    assert texts["safe"] == {(t, "-1") for t in ("'=1+1", "'+x", "'-x", "'@x", "'\tx", "x=1", "")}


def test_what_is_there_is_not_overwritten_without_force(root, tmp_path) -> None:
    target = tmp_path / "x.csv"
    target.write_text("mine")
    said = run(root, "tasks", "--csv", "-o", target, code=2)
    assert "x.csv: there already; --force replaces them" in said
    assert target.read_text() == "mine"
    (tmp_path / "all").mkdir()
    for name in ("tasks", "calls"):
        (tmp_path / "all" / f"{name}.csv").write_text("mine")
    assert "and 1 more: there already" in run(root, "--csv", "-o", tmp_path / "all", code=2)
    assert len(list((tmp_path / "all").iterdir())) == 2
    run(root, "tasks", "--csv", "-o", target, "--force")
    assert target.read_text().startswith("study,protocol,")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tasks"], "expected one of --csv and --parquet"),
        (["tasks", "--csv", "--parquet"], "expected one of --csv and --parquet"),
        (["tasks", "--parquet", "--spreadsheet-safe"], "--spreadsheet-safe is about CSV"),
        (["nothing", "--csv"], "expected a query, or one of noise_floor, noise_floor_all"),
        (["select nothing", "--csv"], 'column "nothing" was not found'),
        (["drop view tasks", "--csv"], "export takes a SELECT"),
        (["copy tasks to 'x.csv'", "--csv"], "export takes a SELECT"),
        (["select 1; select 2", "--csv"], "expected one query, found 2"),
        (["  ", "--csv"], "expected one query, found nothing"),
        (["sel ect", "--csv"], "syntax error"),
        (["select 1) to 'x' --", "--csv"], "syntax error"),
        (["select 'a'::int", "--csv"], "Could not convert string 'a' to INT32"),
    ],
)
def test_mistakes_are_said_and_leave_nothing_behind(root, tmp_path, arguments, said) -> None:
    assert said.lower() in run(root, *arguments, "-o", tmp_path / "x.csv", code=2).lower()
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be(root, tmp_path) -> None:
    (tmp_path / "file").write_text("x")
    assert "found a folder" in run(root, "tasks", "--csv", "-o", tmp_path, code=2)
    assert "expected a folder" in run(root, "--csv", "-o", tmp_path / "file", code=2)
    assert "found no " in run(root, "tasks", "--csv", "-o", tmp_path / "none" / "x.csv", code=2)
    assert "files that can be read" in run(root, "from 'none.parquet'", "--csv", "-o", tmp_path / "x", code=6)


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from evalnoise.store.catalog import connect
connect(sys.argv[1]).close()
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
sys.argv = ["evalnoise", "export", "select range as n, hash(range) as h from range(1000000)", *sys.argv[2:]]
from flows.cli import app
app()
"""


@pytest.mark.parametrize("form", ["--csv", "--parquet"])
def test_a_full_disk_is_said_and_the_old_file_is_as_it_was(root, tmp_path, form) -> None:
    """A limit on the size of files stands in for the disk."""
    target = tmp_path / "x"
    target.write_text("old")
    command = [sys.executable, "-c", LIMITED, str(root), form, "-o", str(target), "--force", "--store", str(root)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 6, found.stderr
    assert "Traceback" not in found.stderr
    assert "the file that was there is as it was" in found.stderr
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "old")]
