"""One writer per study: refusal at once with the holder's facts, release by any end of the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from evalnoise.store.lock import holder_of, study_lock
from schemas.errors import LockedError, StoreError

HOLD = """
import sys, time
from pathlib import Path
from evalnoise.store.lock import study_lock
with study_lock(Path(sys.argv[1]), command="run starter.yaml"):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_another_process_is_refused_at_once_until_the_holder_ends(tmp_path, end):
    process = holder(tmp_path)
    try:
        begun = time.monotonic()
        with pytest.raises(LockedError) as caught, study_lock(tmp_path):
            pass
        assert time.monotonic() - begun < 1
        assert f"process {process.pid} on {os.uname().nodename} since 20" in caught.value.found
        assert "(run starter.yaml)" in caught.value.found
    finally:
        process.send_signal(end)
        process.wait(10)
    with study_lock(tmp_path, command="next") as held:
        assert held.pid == os.getpid()
        assert holder_of(tmp_path) == held
    assert holder_of(tmp_path) is None


def test_another_part_of_the_same_process_is_refused(tmp_path):
    refused = []

    def other() -> None:
        try:
            with study_lock(tmp_path):
                pass
        except LockedError as error:
            refused.append(error)

    with study_lock(tmp_path):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(10)
        with pytest.raises(LockedError), study_lock(tmp_path):
            pass
    assert len(refused) == 1
    with study_lock(tmp_path):
        pass


def test_an_error_inside_releases_it(tmp_path):
    with pytest.raises(KeyError), study_lock(tmp_path):
        raise KeyError
    with study_lock(tmp_path):
        pass


def test_a_damaged_note_of_the_holder_does_not_hide_the_lock(tmp_path):
    with study_lock(tmp_path):
        (tmp_path / "lock.json").write_text("{")
        with pytest.raises(LockedError, match="not written who it is"), study_lock(tmp_path):
            pass


def test_a_folder_that_cannot_be_written_is_a_store_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="a place that can be written"), study_lock(tmp_path / "file" / "study"):
        pass
