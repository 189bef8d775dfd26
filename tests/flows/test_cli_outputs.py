"""Files that commands write: whole or as they were, never among the store's own, and safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalnoise.store.files import write_result
from flows.cli import app
from flows.shipped import shipped_studies
from flows.views.gate_files import _xml
from schemas.errors import StoreError
from tests.support.small_store import build

_LIMITED = """
import resource, signal, sys
sys.dont_write_bytecode = True  # a module cut off by the limit would break whoever imports it next
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
sys.argv[0] = "evalnoise"
from flows.cli import app
app()
"""


def invoke(*arguments: object):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "results.csv"
    rows = [
        f'"{m}",t{t},{k},{(t + k) % 2}\n'
        for m in ("=cmd()", "\n+b", "\N{FULLWIDTH EQUALS SIGN}c")
        for t in range(9)
        for k in (0, 1)
    ]
    path.write_text("model,task,sample,score\n" + "".join(rows), encoding="utf-8")
    return path


def test_a_full_disk_leaves_the_old_file_and_the_table_is_printed(table, tmp_path):
    old = tmp_path / "old.csv"
    old.write_text("old")
    command = [sys.executable, "-c", _LIMITED, "compare", "--file", str(table), "--csv", str(old)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 6, found.stderr
    assert "Traceback" not in found.stderr
    assert "3 models" in " ".join(found.stdout.split())  # the folder's name may be long
    assert {path.name for path in tmp_path.iterdir()} == {"old.csv", "results.csv"}
    assert old.read_text() == "old"


def test_places_are_checked_before_the_work(table, tmp_path):
    for option in ("--csv", "--chart"):
        found = invoke("compare", "--file", table, option, tmp_path / "none" / "x.svg")
        assert (found.exit_code, found.stdout) == (2, "")
        assert "expected a folder that is there" in found.stderr
        found = invoke("compare", "--file", table, option, tmp_path / f"{'x' * 300}.svg")
        assert (found.exit_code, found.stdout) == (2, "")
        assert "a place that can be written, found: File name too long" in found.stderr


def test_no_output_is_an_input_or_another_output(table, tmp_path):
    before, pairs, study = table.read_bytes(), tmp_path / "pairs.csv", shipped_studies()["starter"]
    link, hard, far, page = (tmp_path / name for name in ("link.svg", "hard.csv", "far.html", "x.html"))
    pairs.write_text("base,new\na,b\n")
    link.symlink_to(table)
    hard.hardlink_to(table)
    far.symlink_to(page)  # to nothing: both names would make one file
    (tmp_path / "below").mkdir()
    commands = [
        ("compare", "--file", table, "--csv", table),
        ("compare", "--file", table, "--csv", tmp_path / "below" / ".." / table.name),
        ("compare", "--file", table, "--csv", hard),
        ("compare", "--file", table, "--chart", link),
        ("compare", "--file", link, "--csv", table),
        ("compare", "--file", table, "--csv", page, "--chart", page),
        ("compare", "--file", table, "--csv", page, "--chart", far),
        ("compare", "--file", table, "--csv", tmp_path / "X.html", "--chart", page),
        ("gate", "--pairs", pairs, "--junit", pairs),
        ("init", study, "--template", "starter", "--force"),
    ]
    text = study.read_bytes()
    for command in commands:
        found = invoke(*command)
        assert (found.exit_code, found.stdout) == (2, ""), (command, found.output)
        assert "which would be overwritten" in found.stderr
    assert (table.read_bytes(), pairs.read_text(), study.read_bytes()) == (before, "base,new\na,b\n", text)
    assert not page.exists()
    page.write_text("old")
    found = invoke("compare", "--file", table, "--csv", page, "--chart", far)
    assert (found.exit_code, page.read_text()) == (2, "old")


def test_a_report_of_a_gate_goes_where_a_file_can_be(tmp_path):
    for place, said in ((tmp_path / "none" / "x.xml", "expected a folder that is there"), (tmp_path, "found a folder")):
        found = invoke("gate", "a", "b", "--junit", place, "--store", tmp_path)
        assert (found.exit_code, found.stdout, said in found.stderr) == (2, "", True), found.output
    assert not list(tmp_path.iterdir())


def test_formulas_in_a_comparison(table, tmp_path):
    names = {}
    for name, more in (("plain", ()), ("safe", ("--spreadsheet-safe",))):
        assert invoke("compare", "--file", table, "--csv", tmp_path / name, *more).exit_code == 0
        with (tmp_path / name).open(encoding="utf-8", newline="") as file:
            names[name] = {row[side] for row in csv.DictReader(file) for side in "ab"}
    assert names["safe"] == {f"'{name}" for name in names["plain"]}
    assert len(names["safe"]) == 3
    assert invoke("compare", "--file", table, "--spreadsheet-safe").exit_code == 2


def test_export_stays_out_of_the_store_and_escapes_names_and_newlines(tmp_path):
    root = tmp_path / "store"
    build(root)
    whole = {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and "duckdb" not in path.name}
    for target in ("evalnoise.duckdb", "evalnoise.duckdb.wal", "studies/x.csv", "protocols/x.csv", "studies/../protocols/x.csv"):
        found = invoke("export", "tasks", "--csv", "-o", root / target, "--force", "--store", root)
        assert (found.exit_code, "outside the store's own files" in found.stderr) == (2, True), found.output
    assert invoke("export", "--csv", "-o", root / "studies" / "new", "--store", root).exit_code == 2
    assert {path: path.read_bytes() for path in whole} == whole
    query = "select unnest(['\n=1', '\N{FULLWIDTH PLUS SIGN}1', '\N{FULLWIDTH COMMERCIAL AT}a', 'x']) as \"=t\", 1 as \"-n\""
    assert invoke("export", query, "--csv", "-o", tmp_path / "x.csv", "--spreadsheet-safe", "--store", root).exit_code == 0
    with (tmp_path / "x.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["'=t", "'-n"]
    assert {row[0] for row in rows} == {"'\n=1", "'\N{FULLWIDTH PLUS SIGN}1", "'\N{FULLWIDTH COMMERCIAL AT}a", "x"}


def test_what_a_killed_process_left_is_removed(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left, mine, other = (tmp_path / f".{name}.tmp" for name in (f"{gone.pid}-{'0' * 32}", f"{os.getpid()}-{'0' * 32}", "notes"))
    for path in (left, mine, other):
        path.write_text("half")
    write_result(tmp_path / "x", b"new")
    assert {path.name for path in tmp_path.iterdir()} == {"x", mine.name, other.name}


def test_a_device_is_written_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_result(pipe, b"new")
    assert os.read(reading, 10) == b"new"
    assert pipe.is_fifo()
    os.close(reading)
    with pytest.raises(StoreError):
        write_result(tmp_path, b"new")


def test_marks_of_direction_are_escaped_in_junit():
    element = ET.Element("a", name=_xml("x\u202e\u2066y\x00"))
    assert element.get("name") == "x\\u202e\\u2066y\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(("decided", "code"), [("block", 12), ("pass", 6)])
def test_a_report_that_cannot_be_written_hides_no_block(tmp_path, monkeypatch, capsys, decided, code):
    import typer

    from flows import cli_gate
    from flows.cli_errors import guarded
    from schemas.errors import ExitCode

    def fails(*_: object) -> None:
        raise StoreError("x.xml", expected="a place that can be written", found="no space", remedy="Free some.")

    monkeypatch.setattr("flows.views.gate_files.write_junit", fails)
    monkeypatch.setattr("flows.views.gate.exit_code", lambda _: ExitCode.GATE if decided == "block" else ExitCode.OK)

    @guarded
    def ends() -> None:
        cli_gate._report(None, tmp_path / "x.xml")
        raise typer.Exit(ExitCode.GATE)

    with pytest.raises(typer.Exit) as found:
        ends()
    assert found.value.exit_code == code
    assert "no space" in capsys.readouterr().err
