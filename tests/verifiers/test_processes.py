"""How the supervisor takes what it is told of its children: here in a process of its own, which may collect any child."""

from __future__ import annotations

import subprocess
import sys

import pytest

TRACED = """
import ctypes, os, signal, time
from verifiers.supervisor.processes import Tally

pid = os.fork()
if pid == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGUSR1)
    os._exit(0)
tally = Tally(main=pid)
while not tally.reap():
    time.sleep(0.001)
print(tally.status, tally.peak)
os.kill(pid, signal.SIGKILL)
while tally.status is None:
    tally.reap(block=True)
print(os.WIFSIGNALED(tally.status), os.WTERMSIG(tally.status), tally.peak > 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="calls of Linux")
def test_a_stop_is_no_end() -> None:
    """A process that makes its parent its tracer is told of to that parent whenever a signal stops it."""
    found = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=30, check=True)
    assert found.stdout == "None 0\nTrue 9 True\n"
