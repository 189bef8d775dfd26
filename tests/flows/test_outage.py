"""A provider that stumbles and a provider that is down, through the whole DAG, counted by the server."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.store.store import Store
from flows import runner
from flows.cli import app
from schemas.study import StarterBenchmark
from tests.support import stages
from tests.wire.dialects import OpenAIDialect
from tests.wire.server import Received, Reply, serve

pytestmark = pytest.mark.prefect
WIRE = OpenAIDialect()
TASKS = load_benchmark(StarterBenchmark(name="starter")).tasks[:6]


class Stumbling:
    """Answers by the canonical solution; fails the first so many calls."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> Reply:
        with self._lock:
            self.calls += 1
            number = self.calls
        if number <= self.failures:
            return WIRE.error(500, "server_error")
        prompt = received.body["messages"][0]["content"]
        task = next(task for task in TASKS if task.prompt in prompt)
        return WIRE.answer(f"```python\n{task.reference}\n```", answer_id=f"id-{number}")


def study_file(folder: Path, url: str) -> Path:
    provider = {"name": "openai", "base_url": f"{url}/v1", "max_retries": 0, "timeout": 10.0}
    stack = {"name": "a", "model": "m", "provider": provider, "verifier": stages.PROCESS}
    conditions = [{"name": "live", "kind": "live"}, {"name": "replay", "kind": "replay", "source": {"condition": "live"}}]
    body = stages.body(stacks=[stack], conditions=conditions, replicates=2)
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(body))
    return path


def test_a_provider_that_is_down_stops_the_run_with_nothing_sealed_and_no_traceback(evalnoise, tmp_path) -> None:
    """And once it is up again, a call that fails is asked again in the same run."""
    model = Stumbling(10_000)
    with serve(script=model) as server:
        path = study_file(tmp_path, server.url)
        key = {"OPENAI_API_KEY": "sk-0123456789abcdef"}
        done = evalnoise("run", path, "--store", tmp_path / "s", "--limit", "6", **key)
        assert done.returncode == 8
        assert "Traceback" not in done.stdout + done.stderr
        assert "run the same command again" in done.stderr
        (study,) = Store.open(tmp_path / "s").studies()
        assert not any(name.startswith("measure~") for name in study.manifest.live)
        before = model.calls
        model.failures = before + 1
        again = evalnoise("run", path, "--store", tmp_path / "s", "--limit", "6", **key)
    assert again.returncode == 0, again.stderr
    assert model.calls - before == 13  # 6 tasks x 2 replicates, and the one that failed
    assert "24/24 cells, 0 unmeasured" in again.stderr
    assert stages.rows(tmp_path / "s", "select outcome, count(*) from outcomes group by 1") == [("pass", 24)]


def test_a_missing_key_is_said_before_anything_is_written_or_started(monkeypatch, tmp_path) -> None:
    path = study_file(tmp_path, "http://127.0.0.1:9")
    started: list[int] = []
    monkeypatch.setattr(runner, "ensure_server", lambda: started.append(1))
    done = CliRunner().invoke(app, ["run", str(path), "--store", str(tmp_path / "s")], env={"OPENAI_API_KEY": ""})
    assert done.exit_code == 8
    assert not started
    assert "OPENAI_API_KEY" in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2, done.stderr
    assert not (tmp_path / "s" / "protocols").exists()


def test_answers_that_are_cut_off_stop_the_run_and_a_raised_limit_goes_on_from_them(evalnoise, tmp_path) -> None:
    """Hard input 11: the run says how many, and what to do, and ends as one whose numbers must not be used."""
    calls: list[int] = []

    def cut_off(_: Received) -> Reply:
        calls.append(1)
        return WIRE.answer("```python\ndef f(", finish="length", answer_id=f"id-{len(calls)}")

    with serve(script=cut_off) as server:
        path = study_file(tmp_path, server.url)
        command = ("run", path, "--store", tmp_path / "s", "--limit", "6")
        key = {"OPENAI_API_KEY": "sk-0123456789abcdef"}
        done = evalnoise(*command, **key)
        assert done.returncode == 9
        assert "Traceback" not in done.stdout + done.stderr
        assert "truncated (limits.max_share.truncated), found 12 of 12, 100 %, so nothing more is asked" in done.stderr
        raised = evalnoise(*command, "--set", "limits.max_share.truncated=1", **key)
    assert len(calls) == 12
    assert raised.returncode == 0, raised.stderr
    assert "live: 12 truncated of 12 answers." in raised.stdout
    assert "The study allows that: limits.max_share.truncated is 1." in raised.stdout
