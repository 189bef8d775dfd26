"""Fixtures that every room's tests share: the public data, the container engine, a browser."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.browser import NAMES, find_browser

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in the background has SIGINT ignored, which every process that a test starts would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the public data. Skips where it is absent; fails where it was promised but cannot be read."""
    named = os.environ.get("EVALNOISE_SHARED")
    folder = Path(named or "../shared").resolve()
    readable = (folder / "data" / "README.md").is_file() and os.access(folder / "data", os.R_OK)
    if named and not readable:
        pytest.fail(f"EVALNOISE_SHARED={named} is set, but {folder / 'data'} cannot be read")
    if not readable:
        pytest.skip(f"no public data in {folder}; set EVALNOISE_SHARED to run this test")
    return folder


@pytest.fixture(scope="session")
def docker_engine() -> str:
    """Version of the container engine. Skips without one; fails under EVALNOISE_REQUIRE_DOCKER=1."""
    import docker

    try:
        client = docker.from_env(timeout=10)
        version = str(client.version()["Version"])
        client.close()
    except docker.errors.DockerException as error:
        if os.environ.get("EVALNOISE_REQUIRE_DOCKER") == "1":
            pytest.fail(f"EVALNOISE_REQUIRE_DOCKER=1, but no container engine answers: {error}")
        pytest.skip(f"no container engine answers: {error}")
    return version


@pytest.fixture(scope="session")
def browser() -> str:
    """Path of a Chromium. Skips without one; fails under EVALNOISE_REQUIRE_BROWSER=1."""
    found = find_browser()
    if found is None:
        missing = f"no browser is found: none of {', '.join(NAMES)}"
        if os.environ.get("EVALNOISE_REQUIRE_BROWSER") == "1":
            pytest.fail(f"EVALNOISE_REQUIRE_BROWSER=1, but {missing}")
        pytest.skip(missing)
    return found
