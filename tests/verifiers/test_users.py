"""Whose rights candidates have where there is no container."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.values import decode
from verifiers.jobs import Job, Limits, Mode
from verifiers.sandbox.process import ProcessSandbox

SUPERVISOR = Path(__file__).parents[2] / "verifiers" / "supervisor" / "supervisor.py"
RIGHTS = """
import os
import wave  # a module that nobody has imported before
def refused(action):
    try: action()
    except PermissionError: return True
    return False
def f(file, parent):
    write = refused(lambda: open(file, "a").close())
    kill = refused(lambda: os.kill(parent, 0))
    back = refused(lambda: os.setuid(0))
    return os.getuid(), os.geteuid(), write, kill, back
"""


def rights(sandbox: ProcessSandbox, file: Path) -> tuple[object, ...]:
    job = Job(Mode.CALLS, RIGHTS, Limits(5.0), "f", (f'["{file}",{os.getpid()}]',))
    lines = list(sandbox.run(job).lines())
    assert [letter for letter, _ in lines] == ["o", "."], lines
    value = decode(lines[0][1])
    assert isinstance(value, tuple)
    return value


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="only root can give candidates users of their own")
def test_candidates_of_roots_processes_are_users_of_their_own_who_may_import_and_not_kill(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x", encoding="ascii")
    first, second = ProcessSandbox(512), ProcessSandbox(512)
    try:
        found = [rights(first, file), rights(first, file), rights(second, file)]
    finally:
        first.close()
        second.close()
    uids = [uid for uid, *_ in found]
    assert len(set(uids)) == 3
    assert min(uids) >= 100_000
    assert found == [(uid, uid, True, True, True) for uid in uids]


def test_a_containers_supervisor_serves_nowhere_else(tmp_path: Path) -> None:
    # It kills whatever it can reach after each candidate: as a plain process of root that would be everything.
    command = [sys.executable, "-S", str(SUPERVISOR), "container", str(tmp_path), "0"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "must be its first process" in done.stderr
    assert done.stdout == ""
