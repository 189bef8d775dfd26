"""`run --only`, `extend` and `retry` from the command line: what they print, whom they lock out, and kill -9 in the middle."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.report.summary import read_summary, refuse_blocked
from evalnoise.store.store import Store
from evalnoise.studyfile.load import load_study
from flows import runner
from flows.cli import app
from schemas.errors import BlockedError
from schemas.study import StarterBenchmark
from schemas.tables import GENERATIONS, OUTCOMES, VERDICTS
from tests.flows.conftest import COMMAND, ROOT
from tests.support import stages
from tests.support.stores import file_digests
from tests.wire.dialects import OpenAIDialect
from tests.wire.server import Received, Reply, serve

CHANGES = ["stacks.0.verifier.executor=process", "limits.shard_cells=2", "judge.repeats=2", "analysis.resamples=200"]
SMALL = ("--limit", "4", *(word for change in CHANGES for word in ("--set", change)))
SLOW = ("--set", "stacks.0.provider.latency=0.05", "--set", "limits.concurrency=1")
STUDY = "studies/starter.yaml"


def in_process(*arguments: str | Path) -> Result:
    """A command that needs no server, without the second that an interpreter takes to start."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def two(evalnoise, tmp_path_factory) -> Path:
    """A store with two replicates, of which one condition was run first."""
    store = tmp_path_factory.mktemp("two") / "s"
    options = ("--store", store, "--replicates", "2", *SMALL)
    part = evalnoise("run", STUDY, *options, "--only", "temperature-zero")
    assert part.returncode == 0, part.stderr
    assert part.stdout.strip() == (
        "Sealed: 4 of 24 shards. Left: live 4, replay 4, reverify 4, judge-noisy 4, judge-exact 4. The rest, and the analysis:"
        f" evalnoise run studies/starter.yaml --store {store} --limit 4 --replicates 2 --set stacks.0.verifier.executor=process"
        " --set limits.shard_cells=2 --set judge.repeats=2 --set analysis.resamples=200"
    )
    done = evalnoise("run", STUDY, *options)
    assert done.returncode == 0, done.stderr
    assert "temperature-zero ran apart from the other conditions" in done.stdout
    return store


@pytest.mark.prefect
def test_an_extension_is_killed_twice_and_goes_on_and_says_what_it_is(two, environment, evalnoise) -> None:
    extend = ["extend", STUDY, "--store", str(two), "--replicates", "4", "--why", "w was not resolved", *SMALL, *SLOW]
    (before,) = Store.open(two).studies()
    for _ in range(2):
        begun = len(sealed(two))
        run = subprocess.Popen([*COMMAND, *extend], env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while run.poll() is None and len(sealed(two)) < begun + 2:
            time.sleep(0.02)
        if not begun:
            second = in_process("retry", STUDY, "--unmeasured", "--store", two, "--replicates", "2", *SMALL)
            assert second.exit_code == 5
            assert f"process {run.pid}" in second.stderr
        run.send_signal(signal.SIGKILL)
        run.wait()
    done = evalnoise(*extend)
    assert done.returncode == 0, done.stderr
    assert f"Successor of {before.protocol[:12]}, not blind: w was not resolved." in done.stdout
    _, after = Store.open(two).studies()
    once = [shard for shard, times in after.manifest.live.items() if len({file.commit for file in times}) == 1]
    assert len(once) == len(after.manifest.planned) == 3 + 2 * 4 * 4 + 8
    status = in_process("status", "--store", two).stdout
    line = f"starter {after.protocol[:12]}: successor of {before.protocol[:12]}, not blind: w was not resolved; "
    assert re.search(rf"^{line}\d+ of its requests were sent there$", status, re.MULTILINE)
    # A study that was planned with four replicates has the same cells.
    digest = stages.run(load_study(Path(STUDY), [*CHANGES, "replicates=4"]), two, limit=4)
    assert digest != after.protocol
    cells = "select condition, replicate, task_id, outcome, reason, attempts, candidate_sha256 from outcomes where protocol"
    ours, theirs = (stages.rows(two, f"{cells} = '{one}' order by all") for one in (after.protocol, digest))
    assert ours == theirs


def sealed(store: Path) -> list[str]:
    """Shards that a successor sealed itself."""
    found = []
    for one in Store.open(store).studies()[1:]:
        found += [shard for shard, files in one.manifest.live.items() if "inherited_from" not in files[0].lineage]
    return found


@pytest.mark.prefect
def test_one_condition_first_gives_the_bytes_of_an_undisturbed_run(two, tmp_path) -> None:
    stages.run(load_study(Path(STUDY), [*CHANGES, "replicates=2"]), tmp_path / "calm", limit=4)
    ours, (theirs,) = Store.open(two).studies()[0], Store.open(tmp_path / "calm").studies()
    assert ours.protocol == theirs.protocol
    for table in (OUTCOMES, GENERATIONS, VERDICTS):
        assert file_digests(ours, table) == file_digests(theirs, table)


def test_what_cannot_be_is_said_before_a_server_is_started(monkeypatch, tmp_path) -> None:
    store, started = tmp_path / "s", []
    monkeypatch.setattr(runner, "ensure_server", lambda: started.append(1))
    cases = {
        3: [
            (["run", STUDY, "--only", "temprature-zero"], "Did you mean temperature-zero?"),
            (["extend", STUDY, "--replicates", "12"], "no protocol of it"),
        ],
        6: [(["retry", STUDY, "--unmeasured"], "expected a run of study starter as it stands")],
        2: [
            (["retry", STUDY], "--unmeasured"),
            (["extend", STUDY, "--replicates", "12", "--from", "x"], "--from x"),
            (["extend", STUDY], "--replicates"),
        ],
    }
    for code, commands in cases.items():
        for command, said in commands:
            done = in_process(*command, "--store", store, *SMALL)
            assert done.exit_code == code, (command, done.output, done.exception)
            assert isinstance(done.exception, SystemExit)  # no traceback
            assert said in done.stderr
            assert "dashboard" not in done.stderr
    assert not started
    assert not (store / "studies").exists()


@pytest.mark.prefect
def test_nothing_to_ask_again_is_no_error(two) -> None:
    done = in_process("retry", STUDY, "--unmeasured", "--store", two, "--replicates", "2", *SMALL)
    assert done.exit_code == 0, done.output
    assert re.fullmatch(
        r"Nothing to ask again: every sealed cell of study starter, protocol [0-9a-f]{12} has an outcome\.\n", done.stdout
    )
    assert "dashboard" not in done.stderr


TASKS = load_benchmark(StarterBenchmark(name="starter")).tasks[:4]


class Model:
    """Answers by the canonical solution; for two tasks by what is no answer, until it is mended and slow."""

    def __init__(self) -> None:
        self.mended = False
        self.asked: Counter[str] = Counter()
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> Reply:
        prompt = received.body["messages"][0]["content"]
        task = next(task for task in TASKS if task.prompt in prompt)
        with self._lock:
            self.asked[task.id] += 1
            number = next(self._numbers)
        if task in TASKS[:2] and not self.mended:
            return Reply(body=b"<html>Bad gateway</html>", content_type="text/html")
        answer = OpenAIDialect().answer(f"```python\n{task.reference}\n```", answer_id=f"id-{number}")
        return replace(answer, delay=0.5 if self.mended else 0.0)


@pytest.mark.prefect
def test_a_retry_is_killed_and_goes_on_without_paying_twice(environment, evalnoise, monkeypatch, tmp_path) -> None:
    model, store = Model(), tmp_path / "s"
    with serve(script=model) as server:
        provider = {"name": "openai", "base_url": f"{server.url}/v1", "max_retries": 0, "timeout": 10.0}
        body = stages.body(
            stacks=[{"name": "a", "model": "m", "provider": provider, "verifier": stages.PROCESS}],
            conditions=[{"name": "live", "kind": "live"}, {"name": "replay", "kind": "replay", "source": {"condition": "live"}}],
            replicates=2,
            limits={"max_share": {"malformed": 1.0}, "concurrency": 1},
        )
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(body))
        options = [str(tmp_path / "study.yaml"), "--store", str(store), "--limit", "4"]
        key = {"OPENAI_API_KEY": "sk-0123456789abcdef"}
        monkeypatch.setenv("OPENAI_API_KEY", key["OPENAI_API_KEY"])
        digest = stages.run(load_study(tmp_path / "study.yaml"), store, limit=4)
        with pytest.raises(BlockedError):  # half of the cells has no outcome
            refuse_blocked(read_summary(store, body["study"], digest))
        model.mended = True
        model.asked.clear()
        retry = ["retry", *options, "--unmeasured"]
        run = subprocess.Popen(
            [*COMMAND, *retry], env=environment | key, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while run.poll() is None and model.asked.total() < 2:
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
        run.wait()
        done = evalnoise(*retry, **key)
    assert done.returncode == 0, done.stderr
    assert "4 cells without an outcome were asked again on " in done.stdout
    assert model.asked.keys() == {TASKS[0].id, TASKS[1].id}
    assert model.asked.total() in (4, 5)  # the one in flight may come twice
    assert stages.rows(store, "select condition, outcome, count(*) from outcomes group by all order by all") == [
        ("live", "pass", 8),
        ("replay", "pass", 8),
    ]
