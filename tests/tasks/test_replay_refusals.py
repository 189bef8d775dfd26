"""What is wrong with a recording, or with what a study makes of it, is found before anything is called."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.prompts import render
from evalnoise.providers.base import CallContext
from evalnoise.providers.make import request_maker
from evalnoise.recordings.row import Recorded
from evalnoise.store.recordings import RecordingFolder
from evalnoise.store.store import Store
from schemas.errors import (
    RecordingDigestError,
    RecordingFormatError,
    ReplayExhaustedError,
    ReplayMissError,
    ReplayOrderError,
    RequestNormaliserError,
    ResponseMappingError,
    StoreError,
    StudyError,
)
from schemas.provider import OpenAIProvider
from schemas.records import Response, ResponseClass
from schemas.study import DEFAULT_PROMPT, StarterBenchmark
from tasks.freeze import resolve
from tasks.progress import NoWatcher, Progress
from tasks.selection import find_protocol, find_recording, find_side
from tasks.workshop import Workshop
from tests.support import stages
from tests.support.recorded import OPENAI, study

TASKS = load_benchmark(StarterBenchmark(name="starter")).tasks[:3]
REPLAY = [{"name": "r", "kind": "replay"}]


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    """A recording of two tasks and two replicates, made by hand."""
    make = request_maker(OpenAIProvider(**OPENAI), model="m", max_tokens=300)
    rows = []
    for position, task in enumerate(TASKS[:2]):
        request = make(render(DEFAULT_PROMPT, task=task), CallContext(task, "a", "live", 0, 0))
        for replicate in range(2):
            response = Response(text=f"{task.id} {replicate}", response_class=ResponseClass.COMPLETE, cost_usd=0.0)
            rows.append(Recorded(task.id, replicate, 0, response, request.key(), request.canonical().decode(), position))
    folder = RecordingFolder(tmp_path_factory.mktemp("kept") / "r")
    folder.write(rows, source={}, order="time")
    return folder.path


def frozen(path: Path, *, limit: int = 2, retry: str = "none", of: dict | None = None, **changes):
    provider = {"name": "recording", "path": str(path), "of": OPENAI | (of or {})} | changes.pop("provider", {})
    conditions = changes.pop("conditions", [{"name": "live", "kind": "live"}])
    return resolve(study("r", provider, retry, conditions, **({"replicates": 2} | changes)), limit=limit)


def test_a_good_recording_is_pinned_by_its_manifests_digest_wherever_it_lies(kept, tmp_path):
    plan = frozen(kept)
    pinned = plan.protocol.recordings["a/live"]
    assert pinned.sha256 == RecordingFolder(kept).manifest.digest
    shutil.copytree(kept, tmp_path / "elsewhere")
    assert frozen(tmp_path / "elsewhere").digest == plan.digest
    assert frozen(kept, of={"base_url": "http://127.0.0.1:9/v1", "timeout": 3.0}).protocol.recordings == plan.protocol.recordings


@pytest.mark.parametrize(("order", "said"), [("time", []), ("unknown", ["live"])])
def test_a_folder_says_itself_whether_its_order_is_that_of_time(kept, tmp_path, order, said):
    folder = RecordingFolder(tmp_path / "r")
    folder.write(RecordingFolder(kept).read(), source={}, order=order)
    provider = {"name": "recording", "path": str(folder.path), "of": OPENAI}
    stages.run(study("r", provider, "none", [{"name": "live", "kind": "live"}], replicates=2), tmp_path / "s", limit=2)
    found = stages.rows(tmp_path / "s", "select condition from checks where \"check\" = 'order_unknown'")
    assert [name for (name,) in found] == said


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"of": {"temperature": 0.8}}, ReplayMissError, r"differs at \$\.body\.temperature"),
        ({"conditions": [{"name": "cold", "kind": "temperature-zero"}]}, ReplayMissError, r"differs at \$\.body\.temperature"),
        ({"limit": 3}, ReplayMissError, r"replicate 0, attempt 0: expected a recorded answer"),
        ({"replicates": 3}, ReplayExhaustedError, "found replicates 0 to 1"),
        ({"provider": {"pairing": "fixed", "occurrence": 2}, "conditions": REPLAY}, ReplayExhaustedError, "found 2 recorded"),
        ({"provider": {"sha256": "0" * 64}}, RecordingDigestError, "which the study names"),
        ({"provider": {"of": None}}, StudyError, "whose requests the stack makes"),
        ({"provider": {"pairing": "fixed"}, "conditions": REPLAY, "retry": "resample"}, StudyError, r"stacks\.0\.retry"),
    ],
)  # fmt: skip
def test_each_way_of_failing_is_found_by_plan(kept, options, error, said):
    with pytest.raises(error, match=said) as caught:
        frozen(kept, **options)
    assert type(caught.value) is error


def test_a_changed_order_is_found_by_plan(kept, tmp_path):
    """The prompts of the two tasks have changed places: each request is recorded, for another cell."""
    names = {TASKS[0].id: TASKS[1].id, TASKS[1].id: TASKS[0].id}
    rows = [replace(row, task_id=names[row.task_id], position=1 - row.position) for row in RecordingFolder(kept).read()]
    folder = RecordingFolder(tmp_path / "swapped")
    folder.write(rows, source={}, order="time")
    with pytest.raises(ReplayOrderError, match=f"one that task {TASKS[1].id}, replicate 0, attempt 0 asked then"):
        frozen(folder.path)
    # With one answer for each request, whoever asks, the order does not matter.
    assert frozen(folder.path, provider={"pairing": "fixed"}, conditions=REPLAY).protocol.recordings


@pytest.mark.parametrize(
    ("version", "error"), [({"request_normaliser": 1}, RequestNormaliserError), ({"response_mapping": 1}, ResponseMappingError)]
)
def test_a_recording_of_other_rules_is_found_by_plan(kept, tmp_path, version, error):
    folder = RecordingFolder(tmp_path / "old")
    folder.write(RecordingFolder(kept).read(), source={}, order="time", **version)
    with pytest.raises(error, match="found version 1"):
        frozen(folder.path)


def test_damage_and_other_folders_are_found_by_plan(kept, tmp_path):
    damaged = shutil.copytree(kept, tmp_path / "damaged")
    (damaged / "responses.parquet").write_bytes(b"PAR1")
    with pytest.raises(RecordingDigestError, match="found 4 bytes"):
        frozen(damaged)
    old = tmp_path / "old"
    old.mkdir()
    (old / "manifest.jsonl").write_text("{}")
    with pytest.raises(RecordingFormatError, match="format 1"):
        frozen(old)


def test_a_recording_that_changes_between_plan_and_use_is_refused(kept, tmp_path):
    moving = shutil.copytree(kept, tmp_path / "moving")
    plan = frozen(moving)
    other = RecordingFolder(tmp_path / "other")
    rows = [replace(row, response=replace(row.response, text="another")) for row in RecordingFolder(kept).read()]
    other.write(rows, source={}, order="time")
    shutil.rmtree(moving)
    shutil.copytree(other.path, moving)
    with (
        Workshop(plan, Store.open(tmp_path / "s"), Progress(NoWatcher())) as shop,
        pytest.raises(RecordingDigestError, match="which the protocol pins"),
    ):
        shop.provider("a", plan.study.condition("live"))


def test_a_retry_that_was_not_recorded_leaves_its_cell_unmeasured(kept, tmp_path):
    """The recorded cells passed at once, and this verification does not agree: no second answer is invented."""
    provider = {"name": "recording", "path": str(kept), "of": OPENAI}
    stages.run(
        study("r", provider, "resample", [{"name": "live", "kind": "live"}], replicates=2), tmp_path / "s", limit=2, analysed=False
    )
    told = stages.rows(tmp_path / "s", "select distinct outcome, reason, attempts from outcomes")
    assert told == [("unmeasured", "replay-miss", 2)]


def test_names_and_selectors_that_name_nothing(kept, tmp_path):
    store = Store.open(tmp_path)
    for text in ("nothing", "../no-such-recording", "a" * 5000, "\x00"):
        with pytest.raises(StoreError):
            find_recording(tmp_path, text)
    for text in ("x/y/z", "x/y/z/r0", "x/y/z/0", "a/b"):
        with pytest.raises(StoreError):
            find_side(tmp_path, text)
    with pytest.raises(StoreError, match="found no such thing"):
        find_protocol(store, "x")
    assert find_side(tmp_path, str(kept)).rows == RecordingFolder(kept).read()
