"""The shipped deployments, end to end: deployed, scheduled, run by a worker, and sealed in the store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.server import ensure_server, stop_server
from flows.server_process import SERVER_SETTINGS

pytestmark = pytest.mark.prefect

ROOT = Path(__file__).resolve().parents[2]
NIGHTLY = "nightly-noise-study"
AD_HOC = "ad-hoc-study"
TASKS = 3
REPLICATES = 2
STUDY = """
study: small-nightly
benchmark: {name: starter}
stacks:
  - name: oracle
    model: oracle-1
    provider: {name: oracle, seed: 7, latency: 1.0}
    verifier: {executor: process, workers: 1}
conditions:
  - {name: live, kind: live}
replicates: 5
analysis: {resamples: 100}
limits: {concurrency: 1}
"""
ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


@dataclass(frozen=True)
class Night:
    """What one evening with the worker left."""

    store: Path
    deployments: list[dict[str, Any]]
    upcoming: list[dict[str, Any]]
    scheduled: dict[str, Any]
    overlapping: dict[str, Any]
    worker_log: str


class Client:
    """The few calls of Prefect's API that the test makes; importing Prefect here would fix its settings for other tests."""

    def __init__(self, api_url: str) -> None:
        self._api_url = api_url

    def call(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._api_url + path, data=data, method=method, headers=headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for attempt in range(10):
            try:
                with opener.open(request, timeout=30) as reply:
                    text = reply.read()
                return json.loads(text) if text else None
            except urllib.error.HTTPError as error:
                # The database was busy; Prefect's own client asks again as well.
                if error.code != 503 or attempt == 9:
                    raise AssertionError(f"{method} {path}: {error.code} {error.read()[:500]!r}") from None
                time.sleep(0.5)
        raise AssertionError

    def runs(self, deployment: str) -> list[dict[str, Any]]:
        query = {"deployments": {"id": {"any_": [deployment]}}, "sort": "EXPECTED_START_TIME_ASC"}
        return list(self.call("POST", "/flow_runs/filter", query))


def until(what: str, seconds: float, found: Callable[[], Any], log: Path) -> Any:
    end = time.monotonic() + seconds
    while not (value := found()):
        if time.monotonic() > end:
            pytest.fail(f"no {what} within {seconds:.0f} s; the worker's log:\n{log.read_text(encoding='utf-8')[-6000:]}")
        time.sleep(0.3)
    return value


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    folder = tmp_path_factory.mktemp("night")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("PREFECT_")]:
            patch.delenv(name)
        patch.setenv("EVALNOISE_HOME", str(folder / "home"))
        patch.setenv("PREFECT_HOME", str(folder / "prefect"))
        # Interpreters that start without compiled bytecode would take half of this test's time.
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        # Three runs ahead of a schedule are enough; the default is a hundred, which the server makes one by one.
        patch.setitem(SERVER_SETTINGS, "PREFECT_SERVER_SERVICES_SCHEDULER_MAX_RUNS", "3")
        try:
            yield spend_a_night(folder, ensure_server().api_url, patch)
        finally:
            stop_server(seconds=5)


def spend_a_night(folder: Path, api_url: str, patch: pytest.MonkeyPatch) -> Night:
    patch.setenv("PREFECT_API_URL", api_url)
    patch.setenv("PREFECT_WORKER_QUERY_SECONDS", "1")
    prefect("work-pool", "create", "evalnoise", "--type", "process")
    prefect("--no-prompt", "deploy", "--all")
    client = Client(api_url)
    deployments = sorted(client.call("POST", "/deployments/filter", {}), key=lambda item: str(item["name"]))
    nightly = next(item for item in deployments if item["name"] == NIGHTLY)
    log = folder / "worker.log"
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [sys.executable, "-m", "prefect", "worker", "start", "--pool", "evalnoise", "--type", "process", "--limit", "2"],
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        upcoming = until("run at two in the morning", 120, lambda: client.runs(nightly["id"]), log)
        parameters = small_study(folder)
        scheduled = schedule_once(client, nightly["id"], parameters, log)
        overlapping = client.call("POST", f"/deployments/{nightly['id']}/create_flow_run", {"parameters": parameters})
        overlapping = until("end of the second run", 120, lambda: ended(client, overlapping["id"]), log)
        scheduled = until("end of the first run", 120, lambda: ended(client, scheduled["id"]), log)
    finally:
        os.killpg(worker.pid, signal.SIGTERM)
        try:
            worker.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait(20)
    text = log.read_text(encoding="utf-8", errors="replace")
    return Night(folder / "store", deployments, upcoming, scheduled, overlapping, text)


def small_study(folder: Path) -> dict[str, object]:
    (folder / "small.yaml").write_text(STUDY, encoding="utf-8")
    return {"study": str(folder / "small.yaml"), "store": str(folder / "store"), "limit": TASKS, "replicates": REPLICATES}


def schedule_once(client: Client, deployment: str, parameters: dict[str, object], log: Path) -> dict[str, Any]:
    """Schedule the deployment in ten seconds, and every twenty, until a run of it is at work; that run."""
    schedule = {"interval": 20, "anchor_date": (datetime.now(UTC) + timedelta(seconds=10)).isoformat(), "timezone": "UTC"}
    (made,) = client.call("POST", f"/deployments/{deployment}/schedules", [{"schedule": schedule, "active": True}])
    # A changed deployment gets its runs within seconds, an unchanged one once a minute.
    client.call("PATCH", f"/deployments/{deployment}", {"parameters": parameters})

    def running() -> dict[str, Any] | None:
        started = [run for run in client.runs(deployment) if run["state_type"] in {"RUNNING", *ENDED}]
        return started[0] if started else None

    run = until("scheduled run at work", 120, running, log)
    client.call("DELETE", f"/deployments/{deployment}/schedules/{made['id']}")
    return dict(run)


def ended(client: Client, run: str) -> dict[str, Any] | None:
    found = client.call("GET", f"/flow_runs/{run}")
    return dict(found) if found["state_type"] in ENDED else None


def prefect(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "prefect", *arguments],
        check=False,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_both_deployments_are_there_with_their_schedule_and_limits(night):
    assert [item["name"] for item in night.deployments] == [AD_HOC, NIGHTLY]
    on_demand, nightly = night.deployments
    assert on_demand["schedules"] == []
    assert nightly["schedules"][0]["schedule"] == {"cron": "0 2 * * *", "timezone": "UTC", "day_or": True}
    assert nightly["global_concurrency_limit"]["limit"] == 1
    assert nightly["concurrency_options"]["collision_strategy"] == "CANCEL_NEW"
    assert on_demand["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    assert nightly["parameters"] == {"study": "studies/starter.yaml", "store": "evalnoise-store"}
    assert set(nightly["parameter_openapi_schema"]["properties"]) == {"study", "store", "night", "limit", "replicates"}
    more = {"only", "retry_unmeasured", "extend_from", "why", "overrides"}
    assert set(on_demand["parameter_openapi_schema"]["properties"]) == {"study", "store", "limit", "replicates"} | more


def test_the_shipped_schedule_makes_runs_at_two_in_the_morning(night):
    assert {run["expected_start_time"][11:16] for run in night.upcoming} == {"02:00"}


def test_a_scheduled_run_completes(night):
    assert night.scheduled["auto_scheduled"] is True
    assert night.scheduled["state_type"] == "COMPLETED", night.worker_log[-6000:]


def test_its_partitions_are_sealed_under_the_label_of_the_night(night):
    date = night.scheduled["expected_start_time"][:10]
    assert night.scheduled["name"] == f"small {date}"
    (protocol,) = (night.store / "protocols").iterdir()
    assert json.loads(protocol.read_text(encoding="utf-8"))["study"]["night"] == date
    study = night.store / "studies" / "small-nightly" / protocol.stem[:12]
    lines = [json.loads(line) for line in (study / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = {"outcomes": 0, "generations": 0, "tasks": 0}
    for line in lines:
        if line.get("table") in rows:
            rows[line["table"]] += line["rows"]
            assert (study / line["path"]).is_file()
    assert rows == {"outcomes": TASKS * REPLICATES, "generations": TASKS * REPLICATES, "tasks": TASKS}


def test_a_night_that_overlaps_is_cancelled(night):
    assert night.overlapping["state_type"] == "CANCELLED"
    assert night.overlapping["total_run_time"] == 0
