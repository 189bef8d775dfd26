"""Recordings of conditions: sealed once, read back whole, tidy after a kill."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from evalnoise.store.recordings import RecordingFolder
from schemas.errors import StoreError

KILLED = """
import os, signal, sys
from pathlib import Path
from evalnoise.store.recordings import RecordingFolder
os.fsync = lambda descriptor: os.fstat(descriptor).st_size and os.kill(os.getpid(), signal.SIGKILL)
folder = RecordingFolder(Path(sys.argv[1]), "r")
folder.path.mkdir(parents=True)
folder.write([], {})
"""


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    assert killed.returncode == -signal.SIGKILL
    folder = RecordingFolder(tmp_path, "r")
    assert [path.suffix for path in folder.path.iterdir()] == [".tmp"]
    digest = folder.write([], {})
    assert sorted(path.name for path in folder.path.iterdir()) == ["manifest.jsonl", "responses.parquet"]
    assert (folder.digest, folder.read()) == (digest, [])


def test_a_damaged_recording_is_an_error(tmp_path):
    folder = RecordingFolder(tmp_path, "r")
    folder.write([], {})
    path = folder.path / "responses.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreError, match="expected the sealed recording"):
        folder.read()
