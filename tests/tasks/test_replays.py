"""Live, recorded, then replayed with the network cut: the same outcomes; recordings of others, which nobody here has asked."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.recordings.compare import coupling
from evalnoise.recordings.importing import Form, read_files, seal_imported
from evalnoise.store.recordings import RecordingFolder
from evalnoise.store.store import Store
from schemas.errors import (
    DataError,
    ReplayMissError,
)
from schemas.study import StarterBenchmark, Study
from tasks.freeze import resolve
from tasks.record import seal_condition
from tasks.selection import find_protocol, find_side
from tests.flows.conftest import ROOT
from tests.support import stages
from tests.support.recorded import OPENAI, lines, study
from tests.wire.dialects import OpenAIDialect
from tests.wire.server import Received, Reply, serve

WIRE = OpenAIDialect()
N, R = 5, 3
TASKS = load_benchmark(StarterBenchmark(name="starter")).tasks[:N]
RETRIES = ("none", "resample", "with-feedback")


class Unsteady:
    """Answers a task rightly or wrongly, by how often it was asked so far: no two tasks alike, and some never right at first."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, received: Received) -> Reply:
        prompt = received.body["messages"][0]["content"]
        position, task = next((n, task) for n, task in enumerate(TASKS) if task.prompt in prompt)
        self.asked[task.id] += 1
        right = (self.asked[task.id] * (position + 2)) % 3 != 0
        code = task.reference if right else f"def {task.entry_point}(*args):\n    return 'wrong {self.asked[task.id]}'\n"
        return WIRE.answer(f"```python\n{code}\n```", answer_id=f"{task.id}-{self.asked[task.id]}")


@pytest.fixture(scope="module", params=RETRIES)
def live(request, tmp_path_factory) -> tuple[str, Path]:
    """A live study of each retry rule, with all replicates of its live condition recorded."""
    retry, root = request.param, tmp_path_factory.mktemp("live") / "s"
    conditions = [
        {"name": "live", "kind": "live"},
        {"name": "again", "kind": "replay", "source": {"condition": "live", "replicate": 1}},
    ]
    with pytest.MonkeyPatch.context() as patch, serve(script=Unsteady()) as server:
        patch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
        # One call at a time, so that the server's count decides the answers and not the order of arrival.
        limits = {"concurrency": 1}
        stages.run(study("s", OPENAI | {"base_url": f"{server.url}/v1"}, retry, conditions, limits=limits), root, limit=N)
    store = Store.open(root)
    found, protocol = find_protocol(store, "s")
    seal_condition(store, found, protocol, stack="a", condition="live", replicates=range(R), name="kept")
    return retry, root


def recording(root: Path, **more) -> dict:
    return {"name": "recording", "path": str(root / "recordings" / "kept"), "of": OPENAI} | more


def outcomes(root: Path, condition: str) -> list[tuple]:
    columns = "task_id, replicate, outcome, attempts, candidate_sha256"
    return stages.rows(root, f"select {columns} from outcomes where condition = '{condition}' order by 1, 2")


GUARDED = """
import socket, sys

def cut(*arguments, **options):
    raise SystemExit(f"the network was asked for: {arguments!r}")

for name in ("connect", "connect_ex", "sendto", "sendmsg"):
    setattr(socket.socket, name, cut)
for name in ("getaddrinfo", "gethostbyname", "create_connection"):
    setattr(socket, name, cut)

from pathlib import Path
from schemas.study import Study
from tests.support import stages

stages.run(Study.model_validate_json(Path(sys.argv[1]).read_text()), Path(sys.argv[2]), limit=int(sys.argv[3]))
print(sorted({"openai", "anthropic", "httpx"} & {name.partition(".")[0] for name in sys.modules}))
"""


def test_live_recorded_replayed_with_the_network_cut(live, tmp_path):
    """Every replicate of its own: the same outcomes; one replicate for all: w is 0. No SDK is even imported."""
    retry, root = live
    spread = outcomes(root, "live")
    if retry == "none":
        assert {row[2] for row in spread} == {"pass", "fail"}
    else:
        assert {row[3] for row in spread} == {1, 2}
    conditions = [{"name": "live", "kind": "live"}]
    if retry != "resample":
        conditions.append({"name": "frozen", "kind": "replay", "provider": {"pairing": "fixed"}})
    plan = tmp_path / "study.json"
    plan.write_text(study("replayed", recording(root), retry, conditions).model_dump_json(exclude_unset=True))
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, plan, tmp_path / "s", str(N)],
        capture_output=True, text=True, check=False, cwd=ROOT, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert outcomes(tmp_path / "s", "live") == spread
    assert stages.rows(tmp_path / "s", "select count(*) from calls") == [(0,)]
    same = "select list(distinct text_sha256 || request_key || attempt || task_id) from generations where condition = 'live'"
    assert sorted(stages.rows(tmp_path / "s", same)[0][0]) == sorted(stages.rows(root, same)[0][0])
    if retry != "resample":
        first = [row[2:] for row in spread if row[1] == 0]
        frozen = outcomes(tmp_path / "s", "frozen")
        assert [[row[2:] for row in frozen if row[1] == replicate] for replicate in range(R)] == [first] * R
        assert stages.rows(tmp_path / "s", "select w, variable_tasks from noise_floor where condition = 'frozen'") == [(0.0, 0)]


def test_a_replay_inside_the_study_repeats_its_source(live):
    _, root = live
    source = [row[2:] for row in outcomes(root, "live") if row[1] == 1]
    assert [[row[2:] for row in outcomes(root, "again") if row[1] == r] for r in range(R)] == [source] * R
    (kept,) = [path for path in (root / "recordings").iterdir() if path.name.endswith("~r0001")]
    folder = RecordingFolder(kept)
    folder.verify()
    assert (folder.manifest.source["replicates"], {row.replicate for row in folder.read()}) == ([1], {0})


def test_what_a_live_condition_sent_and_got_is_kept_whole(live):
    retry, root = live
    rows = RecordingFolder(root / "recordings" / "kept").read()
    firsts = [row for row in rows if not row.attempt]
    assert len(firsts) == N * R
    assert (len(rows) > len(firsts)) == (retry != "none")
    keys = {row.request_key for row in rows}
    assert len(keys) == N if retry != "with-feedback" else len(keys) > N
    one = firsts[0]
    assert one.response.raw.startswith("{")
    assert json.loads(one.response.raw)["id"] == one.response.response_id
    assert json.loads(one.request)["body"]["temperature"] == 0.7
    assert one.response.served_model
    assert one.response.input_tokens is not None


def test_a_configuration_couples_with_its_own_replay(live):
    _, root = live
    side = find_side(root, "s/a/live/r1")
    assert coupling(side.rows, find_side(root, "s/a/again/r2").rows).valid
    assert all(row.request for row in find_side(root, "s/a/again/r2").rows)
    assert coupling(find_side(root, "s/a/live").rows, find_side(root, "kept").rows).valid
    assert not coupling(side.rows, find_side(root, "kept").rows).valid


# Found before anything is run.


def test_answers_of_which_nobody_knows_what_was_asked_stay_so(tmp_path):
    """They are not coupled with others, and a recording of them claims no requests and no order of time."""
    path = lines(tmp_path / "g.jsonl", [{"task_id": task.id, "generations": [task.reference] * 2} for task in TASKS])
    stack = {"name": "a", "model": "m", "provider": {"name": "recording", "path": str(path)}, "verifier": stages.PROCESS}
    conditions = [
        {"name": "live", "kind": "live"},
        {"name": "other", "kind": "live"},
        {"name": "replay", "kind": "replay", "source": {"condition": "live"}},
    ]
    plan = Study.model_validate(stages.body(stacks=[stack], conditions=conditions, replicates=2))
    stages.run(plan, tmp_path / "s", limit=N)
    sides = [find_side(tmp_path / "s", f"small/a/{name}") for name in ("live", "other")]
    with pytest.raises(DataError, match="answers of which nobody knows what was asked"):
        coupling(sides[0].rows, sides[1].rows)
    store = Store.open(tmp_path / "s")
    _, manifest = seal_condition(store, *find_protocol(store, "small"), stack="a", condition="live", replicates=[0, 1])
    assert (manifest.keyed, manifest.order, manifest.requests, manifest.request_normaliser) == (False, "unknown", None, None)
    assert stages.rows(tmp_path / "s", "select count(*) filter (where outcome = 'pass') from outcomes") == [(3 * 2 * N,)]


def test_recorded_answers_that_make_no_replicates_block(tmp_path):
    """A replay has no calls to look at, so what the recording says of its answers is looked at, of those that were used."""

    def rows(*, models: tuple[str, ...], cached: bool = False, repeated: bool = False) -> list[dict]:
        told = [{"task_id": task.id, "text": f"```python\n{task.reference}\n```"} for task in TASKS for _ in range(3)]
        for number, row in enumerate(told):
            row |= {"served_model": models[number % 3 % len(models)], "from_cache": cached and number % 3 == 2}
            row |= {"response_id": f"r-{number - number % 3 if repeated else number}"}
        return told

    def blocking(name: str, replicates: int, told: list[dict]) -> list[tuple]:
        folder = RecordingFolder.named(tmp_path, name)
        seal_imported(folder, Form.JSONL, read_files(Form.JSONL, [lines(tmp_path / name, told)]), order="unknown")
        stack = {"name": "a", "model": "m", "provider": {"name": "recording", "path": str(folder.path)}, "verifier": stages.PROCESS}
        plan = stages.body(stacks=[stack], conditions=[{"name": "live", "kind": "live"}], replicates=replicates)
        stages.run(Study.model_validate(plan), tmp_path / f"s{name}", limit=N)
        return stages.rows(tmp_path / f"s{name}", 'select "check", value from checks where blocks order by 1')

    assert blocking("good", 3, rows(models=("m-1",))) == []
    odd = rows(models=("m-1", "m-1", "m-2"), cached=True)
    assert blocking("unused", 2, odd) == []
    assert blocking("mixed", 3, odd) == [("from_cache", N), ("served_model", 2)]
    assert blocking("repeated", 3, rows(models=("",), repeated=True)) == [("repeated_ids", 3 * N)]


# Real data.


def imported(root: Path, form: Form, path: Path) -> dict:
    folder = RecordingFolder.named(root, form.value)
    seal_imported(folder, form, read_files(form, [path]), order="unknown")
    return {"name": "recording", "path": str(folder.path)}


@pytest.mark.realdata
def test_public_generations_replay_from_a_folder_to_their_published_verdicts(shared, tmp_path):
    data = shared / "data" / "cruxeval"
    path = data / "codellama-7b_temp0.8_output.jsonl"
    provider = imported(tmp_path / "s", Form.CRUXEVAL, path)
    stack = {"name": "a", "model": "codellama-7b", "provider": provider, "verifier": stages.PROCESS | {"checker": "published"}}
    plan = stages.body(
        benchmark={"name": "cruxeval", "path": str(data / "tasks.jsonl")},
        stacks=[stack],
        conditions=[{"name": "live", "kind": "live"}],
    )
    stages.run(Study.model_validate(plan | {"replicates": 4}), tmp_path / "s", limit=25, analysed=False)
    published = {}
    for line in path.read_text().splitlines()[:25]:
        row = json.loads(line)
        published |= {(row["task_id"], r): passed for r, passed in enumerate(row["passed"][:4])}
    measured = stages.rows(tmp_path / "s", "select task_id, replicate, outcome from outcomes")
    assert {(task, r): outcome == "pass" for task, r, outcome in measured} == published


@pytest.mark.realdata
def test_evalplus_samples_replay_from_a_folder(shared, tmp_path):
    """Two samples a task: its canonical solution, and one that raises."""
    official = shared / "data" / "evalplus" / "HumanEvalPlus.jsonl.gz"
    tasks = [json.loads(line) for line in gzip.decompress(official.read_bytes()).splitlines()][:3]
    path = tmp_path / "samples.jsonl"
    with path.open("w") as file:
        for task in tasks:
            for body in (task["canonical_solution"], "    raise ValueError\n"):
                file.write(json.dumps({"task_id": task["task_id"], "solution": task["prompt"] + body}) + "\n")
    stack = {"name": "a", "model": "m", "provider": imported(tmp_path / "s", Form.EVALPLUS, path), "verifier": stages.PROCESS}
    benchmark = {"name": "evalplus", "dataset": "humaneval", "path": str(official)}
    plan = stages.body(benchmark=benchmark, stacks=[stack], conditions=[{"name": "live", "kind": "live"}], replicates=2)
    stages.run(Study.model_validate(plan), tmp_path / "s", limit=3, analysed=False)
    query = "select replicate, outcome, count(*) from outcomes group by all order by 1"
    assert stages.rows(tmp_path / "s", query) == [(0, "pass", 3), (1, "fail", 3)]
    with pytest.raises(ReplayMissError, match="none of HumanEval/3"):
        resolve(Study.model_validate(plan), limit=4)
