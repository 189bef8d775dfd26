"""kill -9 at random moments, then the same command: nothing sealed is redone, nothing journalled is paid again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from evalnoise.studyfile.load import load_study
from tests.flows.conftest import COMMAND, ROOT
from tests.support import stages
from tests.support.stores import differences, only_study

pytestmark = pytest.mark.prefect
KILLS = 3


STUDY, LIMIT = "studies/starter.yaml", 12
CHANGES = [
    "stacks.0.verifier.executor=process", "limits.shard_cells=6", "stacks.0.provider.latency=0.02", "judge.probes.required=false",
    "judge.repeats=2", "analysis.resamples=200", "replicates=3",
]  # fmt: skip


def arguments(store: Path) -> list[str]:
    options = [item for change in CHANGES for item in ("--set", change)]
    return ["run", STUDY, "--store", str(store), "--limit", str(LIMIT), *options]


def journal_records(store: Path, kind: str) -> Counter[str]:
    """How often each call was written to a journal as sent or answered."""
    found: Counter[str] = Counter()
    for path in (only_study(store).path / "journal").glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            record = json.loads(line)
            if record["kind"] == kind:
                found[f"{path.stem} {record['id']}"] += 1
    return found


def answers(store: Path) -> Counter[str]:
    """How often each call was answered, whichever of its sendings it was."""
    return Counter(sending.rpartition("/")[0] for sending in journal_records(store, "answered").elements())


def sealing(store: Path) -> Counter[str]:
    """How often each shard was sealed."""
    return Counter(
        record["shard"]
        for line in (only_study(store).path / "manifest.jsonl").read_bytes().splitlines()
        if (record := json.loads(line))["kind"] == "sealed" and record["table"] in {"outcomes", "verdicts", "probes"}
    )


def started(environment: dict[str, str], store: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *arguments(store)], env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.fixture(scope="module")
def calm(tmp_path_factory) -> Path:
    """The store of the same stages, which nobody disturbed."""
    store = tmp_path_factory.mktemp("calm") / "s"
    stages.run(load_study(Path(STUDY), CHANGES), store, limit=LIMIT)
    return store


def test_a_killed_run_resumes_to_the_same_store(environment, evalnoise, calm, tmp_path) -> None:
    killed = tmp_path / "killed"
    rng = random.Random(os.getpid())
    for _ in range(KILLS):
        run = started(environment, killed)
        begun = journal_size(killed)
        while run.poll() is None and journal_size(killed) == begun:
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 1.5))
        run.send_signal(signal.SIGKILL)
        run.wait()
    done = evalnoise(*arguments(killed))
    assert done.returncode == 0, done.stderr
    assert differences(calm, killed) == []
    assert set(sealing(killed).values()) == {1}
    assert set(answers(killed).values()) == {1}
    assert answers(killed) == answers(calm)


def journal_size(store: Path) -> int:
    return sum(path.stat().st_size for path in store.glob("studies/*/*/journal/*.jsonl"))


def test_a_run_killed_among_reverifications_does_only_the_missing_ones(environment, evalnoise, calm, tmp_path) -> None:
    killed = tmp_path / "killed"
    run = started(environment, killed)
    while run.poll() is None and b'"reverify~' not in seals(killed):
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.wait()
    before = {shard for shard in sealing(killed) if shard.startswith("reverify~")}
    assert 0 < len(before) < 6
    done = evalnoise(*arguments(killed))
    assert done.returncode == 0, done.stderr
    assert differences(calm, killed) == []
    assert set(sealing(killed).values()) == {1}


def seals(store: Path) -> bytes:
    """The manifest's lines that are no plan."""
    lines = [line for path in store.glob("studies/*/*/manifest.jsonl") for line in path.read_bytes().splitlines()]
    return b"\n".join(line for line in lines if b'"kind":"sealed"' in line)
