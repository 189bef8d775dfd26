"""Whole runs of the command line: one background Prefect server for the session, one helper that starts commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Evalnoise = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a user who has never run evalnoise; the background server that it comes to have is stopped."""
    home = tmp_path_factory.mktemp("home")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "EVALNOISE_STORE"))}
    env = clean | {"EVALNOISE_HOME": str(home / "evalnoise"), "PREFECT_HOME": str(home / "prefect"), "COLUMNS": "200"}
    yield env
    subprocess.run([*COMMAND, "server", "stop"], env=env, cwd=ROOT, check=False, capture_output=True, timeout=60)


COMMAND = [sys.executable, "-m", "flows"]


@pytest.fixture(scope="session")
def evalnoise(environment: dict[str, str]) -> Evalnoise:
    """Run a command to its end and return what it printed."""

    def run(*arguments: str | Path, timeout: float = 300, **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            env=environment | extra,
            cwd=ROOT,
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run
