"""Extending a study: what a successor inherits, what it measures, what it says of itself, and what cannot be extended."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evalnoise.store.inherit import inherited_note
from evalnoise.store.store import Store, StudyStore
from flows import study as flow
from schemas.errors import DataError, StudyError, SuccessorError
from schemas.study import Study
from schemas.tables import CALLS, EXECUTIONS, GENERATIONS, OUTCOMES, PREFLIGHT, TABLES, TASKS, VERDICTS, Table
from tasks.freeze import resolve
from tests.support import stages
from tests.support.whole import Whole, serverless, whole
from verifiers.verify import Verifier

__all__ = ["whole"]

CONDITIONS = [
    {"name": "live", "kind": "live"},
    {"name": "cold", "kind": "temperature-zero"},
    {"name": "replay", "kind": "replay", "source": {"condition": "live"}},
    {"name": "reverify", "kind": "reverify", "source": {"condition": "live", "replicate": 1}},
]
JUDGE = {"conditions": [{"name": "j", "model": "m", "provider": {"name": "oracle", "flip": 0.2, "seed": 3}}], "repeats": 2}
EXTEND = {"extend_from": "newest"}


def study(**changes: Any) -> Study:
    plain = {"conditions": CONDITIONS, "judge": JUDGE, "replicates": 2, "limits": {"shard_cells": 4}}
    return Study.model_validate(stages.body(**(plain | changes)))


def protocols(root: Path) -> list[StudyStore]:
    return Store.open(root, create=False).studies()


def stable(one: StudyStore, table: Table) -> list[str]:
    """Rows without what is measured and without the protocol's digest."""
    names = [name for name in (*table.partition, *table.stable_columns) if name != "protocol"]
    return sorted(repr([row[name] for name in names]) for row in one.read(table).to_pylist())


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A store with two replicates; leave it as it is."""
    root = tmp_path_factory.mktemp("two") / "s"
    with serverless() as runs:
        runs.run(study(), root)
    return root


@pytest.fixture
def two(made, tmp_path) -> Path:
    """A store with two replicates."""
    return shutil.copytree(made, tmp_path / "s")


def test_an_extended_study_has_the_rows_of_a_fresh_one(whole, two, tmp_path) -> None:
    done = whole.run(study(), two, replicates=3, why="w is near the limit", **EXTEND)
    fresh = tmp_path / "fresh"
    whole.run(study(), fresh, replicates=3)
    (_, ours), (theirs,) = protocols(two), protocols(fresh)
    assert done.protocol == ours.protocol != theirs.protocol
    for table in (TASKS, PREFLIGHT, OUTCOMES, GENERATIONS, CALLS, EXECUTIONS, VERDICTS):
        assert stable(ours, table) == stable(theirs, table), table.name
    assert done.summary.newest
    numbers = "select condition, score, w, w_lo, w_hi, runs, n_replicates from noise_floor order by condition"
    assert stages.rows(two, numbers) == stages.rows(fresh, numbers)
    # Both protocols have the inherited calls; the view says which were sent but once.
    once = "select sum(sendings - inherited_sendings), sum(inherited_sendings) > 0 from costs"
    ((sent, some),), ((planned, none),) = stages.rows(two, once), stages.rows(fresh, once)
    assert (sent, some, none) == (planned, True, False)
    ((paid,),) = stages.rows(two, f"select sum(inherited_sendings) from costs where protocol <> '{done.protocol}'")
    assert paid == 0


def test_a_plan_that_the_caller_made_is_followed(whole, made, monkeypatch) -> None:
    """The command line plans before it starts a server, and the flow does not do it again."""
    monkeypatch.setattr(flow, "checked_plan", lambda *_, **__: pytest.fail("planned twice"))
    plan = resolve(study(), limit=6)
    token = flow.PLAN.set(plan)
    try:
        assert whole.run(study(), made).protocol == plan.digest
    finally:
        flow.PLAN.reset(token)
    assert whole.ran == ["freeze"]


def test_only_the_new_replicate_is_measured_and_no_call_or_verification_is_repeated(whole, two, monkeypatch) -> None:
    checked: list[str] = []
    honest = Verifier.check

    def counting(self: Verifier, task, *arguments):
        checked.append(task.id)
        return honest(self, task, *arguments)

    monkeypatch.setattr(Verifier, "check", counting)
    done = whole.run(study(), two, replicates=3, **EXTEND)
    shards = [name for name in whole.ran if "~" in name]
    assert len(shards) == 8  # four conditions, two blocks of tasks
    assert all("~r0002~" in name for name in shards)
    assert [name for name in whole.ran if "~" not in name] == ["inherit", "freeze", "record", "analyse"]
    before, after = protocols(two)
    sent = {path.name: path.read_bytes() for path in before.path.glob("journal/*")}
    for name, data in sent.items():
        assert (after.path / "journal" / name).read_bytes() == data
    made = stages.rows(two, f"select count(*) from executions where protocol = '{done.protocol}' and replicate = 2")
    assert len(checked) == made[0][0]


def test_the_manifest_names_the_files_that_were_inherited(whole, two) -> None:
    whole.run(study(), two, replicates=3, **EXTEND)
    before, after = protocols(two)
    for shard, files in before.manifest.live.items():
        if shard != "analyse":
            taken = after.manifest.live[shard]
            assert [file.path for file in taken] == [file.path for file in files]
            assert {file.inputs for file in taken} == {tuple(file.sha256 for file in files)}
            assert {file.lineage["inherited_from"] for file in taken} == {before.protocol}
    query = "select inherited_from is null, count(*) from partitions where protocol = ? group by 1 order by 1"
    found = stages.rows(two, query.replace("?", f"'{after.protocol}'"))
    inherited = sum(len(files) for shard, files in before.manifest.live.items() if shard != "analyse")
    assert found[0] == (False, inherited)
    assert {row[0] for row in stages.rows(two, f"select distinct protocol from outcomes where protocol = '{after.protocol}'")} == {
        after.protocol
    }


def test_a_successor_says_that_it_is_not_blind(whole, two) -> None:
    done = whole.run(study(), two, replicates=3, why="w is near the limit", **EXTEND)
    before, _ = protocols(two)
    found = stages.rows(two, "select blind, predecessor, why from protocols order by frozen_at")
    assert found == [(True, None, None), (False, before.protocol, "w is near the limit")]
    said = stages.rows(two, "select severity, blocks, sentence from checks where \"check\" = 'not_blind'")
    assert [row[:2] for row in said] == [("warning", False)]
    assert said[0][2].startswith(f"Successor of {before.protocol[:12]}, not blind: w is near the limit. ")
    assert any(row["check"] == "not_blind" for row in done.summary.checks)


def test_the_same_command_changes_nothing_and_more_replicates_chain(whole, two) -> None:
    first = whole.run(study(), two, replicates=3, **EXTEND)
    manifest = protocols(two)[1].manifest.path.read_bytes()
    again = whole.run(study(), two, replicates=3, **EXTEND)
    assert again.protocol == first.protocol
    assert whole.ran == ["inherit", "freeze"]
    assert protocols(two)[1].manifest.path.read_bytes() == manifest
    with pytest.raises(SuccessorError, match=r"reason '3 replicates in the place of 2': leave --why away"):
        whole.run(study(), two, replicates=3, why="another", **EXTEND)
    # A protocol that was frozen and never run is not extended.
    Store.open(two).freeze(resolve(study(), limit=6, replicates=9).protocol)
    whole.run(study(), two, replicates=4, **EXTEND)
    shutil.rmtree(protocols(two)[2].path)
    chain = [Store.open(two).protocol(one.protocol).lineage for one in protocols(two)]
    assert [past and past.predecessor for past in chain] == [None, *(one.protocol for one in protocols(two)[:2])]
    assert stages.rows(two, "select distinct n_replicates from noise_floor") == [(4,)]


def test_an_unfinished_predecessor_brings_its_journal(whole, tmp_path) -> None:
    """Hard input 32: a paid answer is not paid again."""
    root = tmp_path / "s"

    def stop(name: str) -> None:
        if name.startswith("judge~"):
            raise KeyboardInterrupt

    whole.before = stop
    with pytest.raises(KeyboardInterrupt):
        whole.run(study(), root)
    whole.before = lambda _name: None
    (before,) = protocols(root)
    # A shard whose answers are journalled and whose files are gone is not sealed.
    victim = "measure~a~cold~r0001~t00000-00003"
    (before.path / before.manifest.live[victim][0].path).unlink()
    paid = before.journal_path(victim).read_bytes()
    whole.run(study(), root, replicates=3, **EXTEND)
    after = protocols(root)[1]
    assert after.journal_path(victim).read_bytes() == paid
    assert victim in whole.ran
    assert len([name for name in whole.ran if name.startswith("judge~")]) == 4  # two repeats of two blocks: none was sealed
    assert victim not in inherited_note(after)["shards"]
    assert before.manifest.others[-1]["kind"] == "quarantined"


def test_an_extension_that_is_killed_while_it_inherits_goes_on(whole, made, two, tmp_path, monkeypatch) -> None:
    seals = StudyStore.commit_bytes
    left = 3

    def dying(self: StudyStore, *arguments: Any, **named: Any) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        seals(self, *arguments, **named)

    monkeypatch.setattr(StudyStore, "commit_bytes", dying)
    with pytest.raises(KeyboardInterrupt):
        whole.run(study(), two, replicates=3, **EXTEND)
    monkeypatch.setattr(StudyStore, "commit_bytes", seals)
    done = whole.run(study(), two, replicates=3, **EXTEND)
    calm = tmp_path / "calm"
    shutil.copytree(made, calm)
    whole.run(study(), calm, replicates=3, **EXTEND)
    ours, theirs = protocols(two)[1], protocols(calm)[1]
    assert done.protocol == ours.protocol == theirs.protocol
    for table in TABLES.values():
        if table.name != "checks":
            assert stable(ours, table) == stable(theirs, table), table.name


def test_run_with_more_replicates_stays_a_protocol_of_its_own(whole, two) -> None:
    done = whole.run(study(), two, replicates=3)
    assert Store.open(two).protocol(done.protocol).lineage is None
    assert "preflight" in whole.ran
    # A fresh protocol is no successor to go on with, and has no fewer replicates.
    with pytest.raises(SuccessorError, match="more than the 3 of protocol"):
        whole.run(study(), two, replicates=3, **EXTEND)
    older = protocols(two)[0].protocol
    whole.run(study(), two, replicates=3, extend_from=older[:8])
    assert stages.rows(two, "select predecessor from protocols where not blind") == [(older,)]


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"analysis": {"resamples": 400}}, r"\$\.study\.analysis\.deltas, \$\.study\.analysis\.resamples\."),
        ({"limits": {"shard_cells": 5}}, r"\$\.study\.limits\.shard_cells\."),
        ({"night": "2026-11-30"}, r"\$\.study\.night\."),
    ],
)
def test_another_study_is_not_extended_and_what_differs_is_said(whole, two, changes, paths) -> None:
    with pytest.raises(SuccessorError, match=f"differs at {paths}"):
        whole.run(study(**changes), two, replicates=3, **EXTEND)
    assert len(protocols(two)) == 1


def test_another_measurement_version_or_limit_is_not_extended(whole, two, monkeypatch) -> None:
    with pytest.raises(SuccessorError, match=r"\$\.limit, \$\.n_tasks"):
        whole.run(study(), two, limit=5, replicates=3, **EXTEND)
    monkeypatch.setattr("schemas.versions.CHECKER", 99)
    with pytest.raises(SuccessorError, match=r"\$\.measurement\.checker"):
        whole.run(study(), two, replicates=3, **EXTEND)


def test_nothing_to_extend(whole, two, tmp_path) -> None:
    with pytest.raises(SuccessorError, match="no protocol of it"):
        whole.run(study(), tmp_path / "empty", replicates=3, **EXTEND)
    with pytest.raises(SuccessorError, match="that begins with '0000'"):
        whole.run(study(), two, replicates=3, extend_from="0000")
    with pytest.raises(SuccessorError, match="more than the 2"):
        whole.run(study(), two, replicates=2, **EXTEND)


@pytest.mark.parametrize("why", ["", "x" * 501, "a\nb", "\udcff"])
def test_a_reason_is_a_line_of_text(whole, two, why) -> None:
    with pytest.raises(SuccessorError, match="--why"):
        whole.run(study(), two, replicates=3, why=why, **EXTEND)


def test_an_imported_recording_with_too_few_occurrences_cannot_be_extended(whole, tmp_path) -> None:
    tasks = [
        {"id": f"t{n}", "prompt": "p", "entry_point": "f", "reference": "def f(x):\n    return x\n", "inputs": [[1], [2]]}
        for n in range(2)
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    rows = [{"task_id": task["id"], "generations": [task["reference"]] * 3} for task in tasks]
    (tmp_path / "recorded.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    stack = {
        "name": "a", "model": "m", "provider": {"name": "recording", "path": str(tmp_path / "recorded.jsonl")},
        "verifier": stages.PROCESS,
    }  # fmt: skip
    benchmark = {"name": "jsonl", "path": str(tmp_path / "tasks.jsonl")}
    plan = study(benchmark=benchmark, stacks=[stack], conditions=CONDITIONS[:1], judge=None)
    whole.run(plan, tmp_path / "s", limit=None)
    with pytest.raises(DataError, match="4"):
        whole.run(plan, tmp_path / "s", limit=None, replicates=4, **EXTEND)
    whole.run(plan, tmp_path / "s", limit=None, replicates=3, **EXTEND)
    assert stages.rows(tmp_path / "s", "select score, n_replicates from noise_floor") == [(1.0, 3)]


def test_one_condition_alone_then_the_rest(whole: Whole, made, tmp_path) -> None:
    part = whole.run(study(), tmp_path / "part", only=("j", "cold"))
    assert part.summary is None
    # The judge needs replicate 0 of the replay, and that replicate 0 of live.
    done = {name for name in whole.ran if "~" in name}
    wanted = ("measure~a~cold~r0000", "measure~a~cold~r0001", "measure~a~live~r0000", "measure~a~replay~r0000", "judge~a~j~r0000")
    assert {name.rsplit("~", 1)[0] for name in done} == {*wanted, "judge~a~j~r0001"}
    assert "analyse" not in whole.ran
    assert {name.rsplit("~", 1)[0] for name in part.left} == {
        "measure~a~live~r0001", "measure~a~replay~r0001", "reverify~a~reverify~r0000", "reverify~a~reverify~r0001",
    }  # fmt: skip
    assert stages.rows(tmp_path / "part", "select status from protocols") == [("partial",)]
    rest = whole.run(study(), tmp_path / "part")
    assert {name for name in whole.ran if "~" in name} == set(part.left)
    assert rest.left == ()
    (ours,), (theirs,) = protocols(tmp_path / "part"), protocols(made)
    assert ours.protocol == theirs.protocol
    for table in TABLES.values():
        if table.name != "checks":
            assert stable(ours, table) == stable(theirs, table), table.name
    said = stages.rows(tmp_path / "part", "select severity, sentence from checks where \"check\" = 'not_interleaved'")
    assert [row[0] for row in said] == ["info"]
    assert said[0][1].startswith("cold, j ran apart from the other conditions")


def test_the_last_condition_alone_ends_with_the_analysis(whole, tmp_path) -> None:
    whole.run(study(), tmp_path / "s", only=("live", "cold", "replay", "reverify"))
    assert "analyse" not in whole.ran
    done = whole.run(study(), tmp_path / "s", only=("j",))
    assert whole.ran[-1] == "analyse"
    assert done.summary is not None
    assert done.left == ()


def test_an_unknown_condition_is_refused_with_the_nearest_name(whole, tmp_path) -> None:
    with pytest.raises(StudyError, match=r"live, cold, replay, reverify, j\), found 'reply'\. Did you mean replay\?"):
        whole.run(study(), tmp_path / "s", only=("reply",))
    assert not (tmp_path / "s" / "protocols").exists()
