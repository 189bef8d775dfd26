"""Whole runs from the command line, in containers, against a real Prefect server: what is printed, sealed, refused and resumed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalnoise.store.store import Store
from flows.cli import app
from tests.flows.conftest import COMMAND, ROOT
from tests.support import stages
from tests.support.stores import only_study

pytestmark = [pytest.mark.prefect, pytest.mark.docker]
STUDY = "studies/starter.yaml"
CHANGES = ["judge.repeats=2", "analysis.resamples=200"]
SMALL = ("--limit", "5", "--replicates", "2", *(word for change in CHANGES for word in ("--set", change)))


@pytest.fixture(scope="module")
def finished(docker_engine, evalnoise, tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A small starter study, run to its end in containers."""
    store = tmp_path_factory.mktemp("run") / "store of mine"
    done = evalnoise("run", STUDY, "--store", store, *SMALL)
    assert done.returncode == 0, done.stderr
    return store, done


def test_a_run_ends_with_its_numbers_its_sentences_and_where_the_results_lie(finished) -> None:
    store, done = finished
    for condition in ("live", "replay", "reverify", "temperature-zero", "judge-noisy", "judge-exact"):
        assert re.search(rf"^{condition} ", done.stdout, re.MULTILINE), condition
    sentences = re.findall(r"^  (?:score|w), \S+ - \S+: (real|not resolved|proves nothing)", done.stdout, re.MULTILINE)
    assert len(sentences) == 12  # six pairs of conditions, score and w
    assert re.search(r"^  verifier noise, reverify: 0 of 5 tasks flipped in 2 verifications \(w 0 \[0, ", done.stdout, re.MULTILINE)
    assert f"Results: {store}" in done.stdout
    assert "true w" in done.stdout
    assert re.search(r"60/60 cells, 0 unmeasured or unparsed, \d+ calls, \$0\.0000", done.stderr)
    assert "Traceback" not in done.stdout + done.stderr


def test_candidates_ran_in_containers_and_none_is_left(finished) -> None:
    store, _ = finished
    assert stages.rows(store, "select distinct executor, rootfs <> '', image_id <> '' from executions") == [("docker", True, True)]
    containers = {row[0] for row in stages.rows(store, "select distinct container from executions")}
    alive = subprocess.run(["docker", "ps", "-aq", "--no-trunc"], check=True, capture_output=True, text=True).stdout.split()
    assert containers
    assert not any(full.startswith(name) or name.startswith(full) for name in containers for full in alive)


def test_the_same_command_resumes_and_repeats_nothing(finished, evalnoise) -> None:
    store, done = finished
    manifest = only_study(store).path / "manifest.jsonl"
    before = manifest.read_bytes()
    again = evalnoise("run", STUDY, "--store", store, *SMALL)
    assert again.returncode == 0, again.stderr
    assert "60/60 cells, 60 resumed" in again.stderr
    assert manifest.read_bytes() == before
    assert again.stdout == done.stdout


def test_the_frozen_protocol_stands_before_every_call(finished) -> None:
    store, _ = finished
    frozen = stages.rows(store, "select frozen_at from protocols")[0][0]
    assert stages.rows(store, "select min(sent_at) from calls")[0][0] > frozen
    (study,) = Store.open(store).studies()
    assert Store.open(store).protocol(study.protocol).digest() == study.protocol


def test_prefect_shows_the_dag_and_the_result(finished, environment) -> None:
    _ = finished
    state = json.loads(next(Path(environment["EVALNOISE_HOME"]).rglob("*.json")).read_text())
    api = f"http://127.0.0.1:{state['port']}/api"

    def ask(path: str, **body: object) -> list[dict]:
        request = urllib.request.Request(f"{api}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    runs_of_study = [run["id"] for run in ask("flow_runs/filter") if run["name"] == "starter"]
    assert runs_of_study
    for _ in range(100):  # task runs reach the server's table a little later
        runs = ask("task_runs/filter", flow_runs={"id": {"any_": runs_of_study}}, limit=200)
        if any(run["name"].startswith("analyse") for run in runs):
            break
        time.sleep(0.2)
    names = {run["name"] for run in runs}
    assert "measure~oracle~temperature-zero~r0001~t00000-00004" in names
    assert "preflight oracle" in names
    assert any(re.fullmatch(r"freeze [0-9a-f]{12}", name) for name in names)
    assert "record oracle replay" in names
    assert "reverify~oracle~reverify~r0001~t00000-00004" in names
    ours = [found for found in ask("artifacts/filter") if (found["key"] or "").startswith("evalnoise-starter")]
    assert {artifact["type"] for artifact in ours} == {"markdown", "table"}
    page = next(artifact["data"] for artifact in ours if artifact["type"] == "markdown")
    assert "Noise floor" in page


def test_a_damaged_partition_is_quarantined_and_redone_without_a_call(finished, evalnoise) -> None:
    store, done = finished
    study = only_study(store)
    victim = next(study.path.glob("outcomes/stack=oracle/condition=live/replicate=1/*.parquet"))
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-20] + b"x" * 20)
    journals = {path: path.read_bytes() for path in study.path.glob("journal/*")}
    again = evalnoise("run", STUDY, "--store", store, *SMALL)
    assert again.returncode == 0, again.stderr
    assert victim.read_bytes() == whole
    assert again.stdout == done.stdout
    assert len(list((study.path / "quarantine").iterdir())) == 1
    assert {path: path.read_bytes() for path in study.path.glob("journal/*")} == journals


def slow(store: Path) -> list[str]:
    latency = ("--set", "stacks.oracle.provider.latency=1.0", "--set", "limits.concurrency=2")
    return ["run", STUDY, "--store", str(store), *SMALL, *latency]


def wait_for_calls(store: Path, calls: int) -> None:
    for _ in range(1200):
        lines = sum(path.read_bytes().count(b"\n") for path in store.glob("studies/*/*/journal/*.jsonl"))
        if lines >= calls:
            return
        time.sleep(0.05)
    pytest.fail("the run made no calls")


def test_ctrl_c_keeps_what_was_paid_and_a_second_run_is_told_who_is_there(docker_engine, environment, evalnoise, tmp_path) -> None:
    store = tmp_path / "s"
    run = subprocess.Popen(
        [*COMMAND, *slow(store)], env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_calls(store, 6)
    second = evalnoise(*slow(store))
    assert second.returncode == 5
    assert f"process {run.pid}" in second.stderr
    assert "Traceback" not in second.stderr
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=120)
    assert run.returncode == 130, said
    assert "Traceback" not in said
    assert "the same command continues" in said
    # Every call that was sent has its answer in the journal.
    kinds = [
        json.loads(line)["kind"] for path in store.glob("studies/*/*/journal/*.jsonl") for line in path.read_bytes().splitlines()
    ]
    assert kinds.count("sent") == kinds.count("answered") >= 3
    done = evalnoise(*slow(store))
    assert done.returncode == 0, done.stderr
    assert re.search(r"[1-9]\d* answers from the journal", done.stderr)


@pytest.mark.realdata
def test_public_recordings_get_their_published_verdicts(docker_engine, shared, evalnoise, tmp_path) -> None:
    store = tmp_path / "S"
    done = evalnoise(
        "run",
        "studies/cruxeval.yaml",
        "--store",
        store,
        "--limit",
        "30",
        "--set",
        "analysis.resamples=200",
        EVALNOISE_SHARED=str(shared),
    )
    assert done.returncode == 0, done.stderr
    measured = stages.rows(store, "select condition, task_id, replicate, outcome from outcomes where condition <> 'replay'")
    assert len(measured) == 600
    published = {}
    for temperature in ("0.2", "0.8"):
        path = shared / "data" / "cruxeval" / f"codellama-7b_temp{temperature}_output.jsonl"
        for line in path.read_text().splitlines()[:30]:
            row = json.loads(line)
            published |= {(f"sampled-{temperature}", row["task_id"], r): passed for r, passed in enumerate(row["passed"])}
    ours = {(condition, task, replicate): outcome == "pass" for condition, task, replicate, outcome in measured}
    assert ours == published
    replayed = (
        "select count(distinct candidate_sha256) = count(distinct task_id), count(*) from generations where condition = 'replay'"
    )
    assert stages.rows(store, replayed)[0][1] == 300
    assert stages.rows(store, "select w, variable_tasks from noise_floor where condition = 'replay'") == [(0.0, 0)]
    query = ["sql", "select condition, score from noise_floor order by 1", "--store", str(store), "--format", "csv"]
    csv = CliRunner().invoke(app, query).stdout
    assert csv.splitlines()[0] == "condition,score"
