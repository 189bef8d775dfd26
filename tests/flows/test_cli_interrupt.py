"""Ctrl-C while DuckDB works: a sentence and exit code 130, and nothing left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.small_store import build

_ENDLESS = "select sum(hash(a.range + b.range)) as n from range(10000000) a, range(10000000) b"
_SCRIPT = """
import os, signal, sys, threading, time
from evalnoise.store.catalog import connect
import flows.cli, flows.views.sql, evalnoise.readers.export
# A process that a shell started in the background ignores SIGINT; this one is in the foreground.
signal.signal(signal.SIGINT, signal.default_int_handler)
connect(sys.argv[sys.argv.index("--store") + 1]).close()
threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
sys.argv[0] = "evalnoise"
flows.cli.app()
"""


@pytest.mark.parametrize("command", [["sql", _ENDLESS], ["export", _ENDLESS, "--csv", "-o", "x.csv"]])
def test_a_query_is_stopped(tmp_path: Path, command: list[str]) -> None:
    build(tmp_path / "store")
    (tmp_path / "here").mkdir()
    found = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *command, "--store", str(tmp_path / "store")],
        cwd=tmp_path / "here", capture_output=True, text=True, timeout=300, check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert found.returncode == 130, found.stderr
    assert found.stderr.startswith("stopped. ")
    assert "Traceback" not in found.stderr
    assert list((tmp_path / "here").iterdir()) == []
