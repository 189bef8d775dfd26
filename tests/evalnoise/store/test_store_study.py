"""Freezing, sealing, damage, recommits, kills and full disks."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalnoise.store.lines import encode_line
from evalnoise.store.partition import PartitionWrite
from evalnoise.store.store import Store
from schemas.errors import LockedError, StoreError
from schemas.tables import CHECKS, ESTIMATES, OUTCOMES, TASKS

IDS = ["HumanEval/0", 'it\'s "x"', "a%2Fb", "ключ ☃ \u2028\n"]


def keys(replicate: int = 0, condition: str = "0.7") -> dict[str, str | int]:
    return {"stack": "s", "condition": condition, "replicate": replicate}


def checks(study, value: float) -> list[PartitionWrite]:
    row = {"study": study.study, "protocol": study.protocol, "benchmark": "b", "check": "c", "stack": "", "condition": ""}
    return [PartitionWrite(CHECKS, {}, [row | {"severity": "info", "blocks": False, "sentence": "So.", "value": value}], "all")]


def test_freeze_writes_the_protocol_once_and_the_first_line(store, protocol):
    path = store.freeze(protocol)
    assert path == store.root / "protocols" / f"{protocol.digest()}.json"
    assert path.read_bytes() == protocol.canonical()
    study = store.study("demo", protocol.digest())
    assert study.path == store.root / "studies" / "demo" / protocol.digest()[:12]
    first = study.manifest.path.read_bytes()
    assert store.freeze(protocol) == path
    assert study.manifest.path.read_bytes() == first
    line = json.loads(first)
    assert (line["kind"], line["protocol"], line["study"]) == ("frozen", protocol.digest(), "demo")
    assert line.keys() >= {"frozen_at", "host", "package_version", "git_commit"}
    assert store.protocol(protocol.digest()) == store.protocol(protocol.digest()[:8]) == protocol


def test_a_changed_protocol_file_is_an_error(store, protocol):
    path = store.freeze(protocol)
    path.write_bytes(path.read_bytes().replace(b'"replicates":3', b'"replicates":4'))
    with pytest.raises(StoreError, match=protocol.digest()[:12]):
        store.freeze(protocol)
    with pytest.raises(StoreError, match="changed after the freeze"):
        store.protocol(protocol.digest())


@pytest.mark.parametrize("wrong", ["", "abc", "../../etc", "f" * 64, "*"])
def test_protocols_that_are_not_there(store, protocol, wrong):
    store.freeze(protocol)
    with pytest.raises(StoreError, match="one frozen protocol"):
        store.protocol(wrong)


@pytest.mark.parametrize(
    ("study", "digest"), [("../x", "0" * 64), ("A", "0" * 64), ("", "0" * 64), ("a", "0" * 12), ("a", "g" * 64)]
)
def test_names_that_cannot_be(store, study, digest):
    with pytest.raises(StoreError):
        store.study(study, digest)


@pytest.mark.parametrize("url", ["s3://bucket/x", "gs://bucket/x", "file:///tmp/x"])
def test_urls_are_refused(url):
    with pytest.raises(StoreError, match="a local folder, found a URL"):
        Store.open(url)


def test_opening(tmp_path):
    with pytest.raises(StoreError, match="no such folder"):
        Store.open(tmp_path / "none", create=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="found a file"):
        Store.open(tmp_path / "file")
    assert Store.open(tmp_path / "new" / "store").root.is_dir()


def test_studies_in_order(store, make_protocol):
    one, two, other = make_protocol(), make_protocol(replicates=5), make_protocol("another")
    for protocol in (two, one, other):
        store.freeze(protocol)
    found = [(study.study, study.protocol) for study in store.studies()]
    assert found == [("another", other.digest()), ("demo", two.digest()), ("demo", one.digest())]


def test_commit_and_read_back(study, outcome_rows):
    rows = outcome_rows(study, "pfup", IDS)
    assert not study.sealed("live")
    writes = [PartitionWrite(OUTCOMES, keys(r), rows[::-1], part) for r, part in ((10, "b"), (2, "a"), (2, "b"))]
    study.commit("live", writes, inputs=["x"], lineage={"extra": 1})
    assert study.sealed("live")
    found = study.read(OUTCOMES).to_pylist()
    assert [row["replicate"] for row in found] == [2] * 8 + [10] * 4
    assert found[8:] == [row | keys(10) for row in rows]
    assert study.read(OUTCOMES, replicate=10).num_rows == 4
    assert study.read(OUTCOMES, replicate=1).num_rows == 0
    assert study.read(OUTCOMES, stack="s", replicate=2).num_rows == 8
    assert study.read(TASKS).column_names[:5] == ["study", "protocol", "benchmark", "task_id", "position"]
    for file in study.manifest.live["live"]:
        data = (study.path / file.path).read_bytes()
        assert (file.sha256, file.bytes, file.rows) == (hashlib.sha256(data).hexdigest(), len(data), 4)
        assert (file.of, file.commit, file.inputs, file.lineage["extra"]) == (3, 2, ("x",), 1)
        assert file.lineage.keys() >= {"package_version", "git_commit", "sealed_at"}
    with pytest.raises(StoreError, match="found task"):
        study.read(OUTCOMES, task="x")


def test_nothing_of_a_refused_commit_is_seen(study, outcome_rows):
    good = PartitionWrite(OUTCOMES, keys(0), outcome_rows(study, "p"), "a")
    bad = PartitionWrite(OUTCOMES, keys(1), [{"study": "x"}], "a")
    for writes in ([good, bad], [good, good], []):
        with pytest.raises(StoreError):
            study.commit("live", writes)
    assert not study.sealed("live")
    assert study.read(OUTCOMES).num_rows == 0
    assert not list(study.path.rglob("*.tmp"))


def test_a_path_of_another_shard_is_refused(study, outcome_rows):
    write = PartitionWrite(OUTCOMES, keys(0), outcome_rows(study, "p"), "a")
    study.commit("one", [write])
    with pytest.raises(StoreError, match="a file of shard one"):
        study.commit("two", [write])


@pytest.mark.parametrize("damage", ["flip", "empty", "cut", "missing"])
def test_a_damaged_file_is_quarantined_and_the_shard_redone(study, outcome_rows, damage):
    writes = [PartitionWrite(OUTCOMES, keys(r), outcome_rows(study, "pf"), "a") for r in (0, 1)]
    study.commit("live", writes)
    study.commit("other", [PartitionWrite(OUTCOMES, keys(7), outcome_rows(study, "pf"), "a")])
    path = study.path / study.files(OUTCOMES)[1].path
    whole = path.read_bytes()
    changed = {"flip": whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], "empty": b"", "cut": whole[:-1]}.get(damage)
    if changed is None:
        path.unlink()
    else:
        path.write_bytes(changed)
        with pytest.raises(StoreError, match="quarantined and redone"):
            study.read(OUTCOMES)
    assert not study.sealed("live")
    assert study.sealed("other")
    assert not path.exists()
    (line,) = study.manifest.others
    assert (line["kind"], line["shard"], line["expected_sha256"]) == ("quarantined", "live", hashlib.sha256(whole).hexdigest())
    kept = list((study.path / "quarantine").glob("*")) if changed is not None else []
    assert [file.read_bytes() for file in kept] == ([changed] if changed is not None else [])
    assert [row["replicate"] for row in study.read(OUTCOMES).to_pylist()] == [7, 7]
    study.commit("live", writes)
    assert study.sealed("live")
    assert path.read_bytes() == whole
    assert study.read(OUTCOMES).num_rows == 6


def test_committing_again_replaces_and_no_sealed_file_changes(study):
    study.commit("analyse", checks(study, 1.0))
    (first,) = study.files(CHECKS)
    data = (study.path / first.path).read_bytes()
    study.commit("analyse", checks(study, 1.0))
    assert [file.path for file in study.files(CHECKS)] == [first.path]
    study.commit("analyse", checks(study, 2.0))
    assert study.read(CHECKS).column("value").to_pylist() == [2.0]
    assert (study.path / first.path).read_bytes() == data
    assert study.files(CHECKS)[0].path != first.path
    study.recover()
    assert not (study.path / first.path).exists()
    assert study.read(CHECKS).column("value").to_pylist() == [2.0]
    study.commit("analyse", checks(study, 1.0))
    study.recover()
    assert study.files(CHECKS)[0].path == first.path
    assert [path.name for path in (study.path / "checks").iterdir()] == ["part-all.parquet"]


def test_a_torn_announcement_leaves_the_earlier_commit_in_force(study):
    study.commit("analyse", checks(study, 1.0))
    before = study.manifest.path.read_bytes()
    two = [*checks(study, 2.0), PartitionWrite(ESTIMATES, {}, [], "all")]
    study.commit("analyse", two)
    after = study.manifest.path.read_bytes()
    for cut in (len(before) + 5, after.rfind(b"\n", 0, -1) + 1, len(after) - 1):
        study.manifest.path.write_bytes(after[:cut])
        again = Store(study.path.parents[2]).study("demo", study.protocol)
        assert again.read(CHECKS).column("value").to_pylist() == [1.0]
        assert again.read(ESTIMATES).num_rows == 0
    again.commit("analyse", two)
    assert again.read(CHECKS).column("value").to_pylist() == [2.0]
    assert again.sealed("analyse")
    reread = Store(study.path.parents[2]).study("demo", study.protocol)
    assert reread.manifest.live == again.manifest.live


def test_a_torn_or_bad_last_line_is_ignored_by_readers_and_cut_by_writers(study):
    study.commit("a", checks(study, 1.0))
    good = study.manifest.path.read_bytes()
    for tail in (b'{"kind":"sealed","sh', b'{"kind":"sealed","sum":"0000000000000000"}\n', b"\0" * 100):
        study.manifest.path.write_bytes(good + tail)
        again = Store(study.path.parents[2]).study("demo", study.protocol)
        assert again.sealed("a")
        assert study.manifest.path.read_bytes() == good + tail
        with again.lock():
            assert study.manifest.path.read_bytes() == good


def test_damage_in_the_middle_of_the_manifest_names_the_line(study):
    study.commit("a", checks(study, 1.0))
    study.mark("note", text="é")
    data = study.manifest.path.read_bytes()
    study.manifest.path.write_bytes(data.replace(b'"rows":1', b'"rows":2'))
    with pytest.raises(StoreError, match=r"manifest\.jsonl, line 2: .*Restore it"):
        Store(study.path.parents[2]).study("demo", study.protocol).sealed("a")


@pytest.mark.parametrize("path", ["../../../x", "/etc/passwd", "checks/../../x", ""])
def test_a_manifest_never_leads_out_of_its_folder(study, path):
    study.commit("a", checks(study, 1.0))
    line = study.files(CHECKS)[0].line() | {"path": path}
    with study.manifest.path.open("ab") as file:
        file.write(encode_line(line))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"line 3: expected .*a path inside the folder"):
            study.sealed("a")


def test_status_follows_the_plan_and_the_order_of_sealing(study, outcome_rows):
    assert not study.status().complete
    study.plan(["a", "b", "analyse"])
    size = study.manifest.path.stat().st_size
    study.plan(["a", "b", "analyse"])
    assert study.manifest.path.stat().st_size == size
    shard = [PartitionWrite(OUTCOMES, keys(0), outcome_rows(study, "p"), "a")]
    study.commit("a", shard)
    study.commit("analyse", checks(study, 1.0))
    assert (study.status().sealed, study.status().complete) == (("a", "analyse"), False)
    study.commit("b", [PartitionWrite(OUTCOMES, keys(1), outcome_rows(study, "p"), "a")])
    assert not study.status().complete, "the analysis is older than shard b"
    study.commit("analyse", checks(study, 2.0))
    assert study.status().complete
    (study.path / study.files(OUTCOMES)[0].path).write_bytes(b"")
    assert not study.sealed("a")
    assert not study.status().complete
    study.commit("a", shard)
    assert not study.status().complete, "shard a was redone after the analysis"
    with pytest.raises(StoreError):
        study.mark("sealed", shard="x")


def test_the_lock_is_one_per_study_and_tidies_up(store, make_protocol, study):
    other = make_protocol(replicates=9)
    store.freeze(other)
    left = study.path / "outcomes" / "stack=s" / ".77-abc.tmp"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    with study.lock(command="x"):
        assert not left.exists()
        with pytest.raises(LockedError, match=r"\(x\)"), store.study("demo", other.digest()).lock():
            pass


@pytest.mark.parametrize("name", ["judge~s~c~r0000~t0-1", "a/b", "%2F", "..", "é x", "q'\"?*"])
def test_journal_names_stay_in_their_folder(study, name):
    if name == "..":
        with pytest.raises(StoreError):
            study.journal(name)
        return
    path = study.journal(name).path
    assert path.parent == study.path / "journal"
    assert path.suffix == ".jsonl"
    assert study.journal(name).path == path
    assert study.journal(name + "0").path != path


@pytest.mark.parametrize(
    ("number", "told"),
    [(28, "Free some space"), (13, "right to write"), (122, "quota"), (30, "can be written"), (5, "Look at the disk")],
)
def test_a_disk_that_refuses_is_told_and_seals_nothing(study, monkeypatch, number, told):
    study.commit("a", checks(study, 1.0))

    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StoreError, match=f"{told}.*nothing that was sealed is lost"):
        study.commit("a", checks(study, 2.0))
    monkeypatch.undo()
    assert not list(study.path.rglob("*.tmp"))
    assert study.read(CHECKS).column("value").to_pylist() == [1.0]
    study.commit("a", checks(study, 2.0))
    assert study.read(CHECKS).column("value").to_pylist() == [2.0]


LIMITED = """
import asyncio, resource, signal, sys
from evalnoise.store.store import Store, PartitionWrite
from schemas.errors import StoreError
from schemas.tables import GENERATIONS
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
study = Store.open(sys.argv[1]).studies()[0]
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
import os
text = os.urandom(50_000).hex()
row = dict(study="s", protocol="p", benchmark="b", task_id="t", position=0, attempt=0, request_key="k", occurrence=0,
           response_class="complete", text=text, text_escaped=False, text_sha256="x", candidate=None, candidate_sha256=None,
           extraction_rule="r")
async def journal():
    j = study.journal("shard")
    await j.answered("small", {"text": "kept"})
    await j.answered("big", {"text": text})
keys = dict(stack="s", condition="c", replicate=0)
for action in (lambda: study.commit("shard", [PartitionWrite(GENERATIONS, keys, [row], "a")]),
               lambda: asyncio.run(journal()), lambda: [study.mark("note", text=text)]):
    try:
        action()
    except StoreError as error:
        print(error)
"""


def test_writes_that_the_system_cuts_short_leave_no_trace(store, study):
    """A file size limit cuts real writes in the middle, as a full disk does."""
    before = study.manifest.path.read_bytes()
    done = subprocess.run([sys.executable, "-c", LIMITED, str(store.root)], capture_output=True, text=True, timeout=60, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stdout + done.stderr
    assert all("found file too large" in line for line in lines)
    assert not list(store.root.rglob("*.tmp"))
    assert study.manifest.path.read_bytes() == before
    assert study.journal("shard").answers() == {"small": {"text": "kept"}}
    assert not study.sealed("shard")


RUN = """
import sys
from evalnoise.store.store import Store, PartitionWrite
from schemas.tables import OUTCOMES
study = Store.open(sys.argv[1]).studies()[0]
with study.lock():
    for r in range(30):
        shard = f"live~r{r:04d}"
        if study.sealed(shard):
            continue
        print("redo", shard, flush=True)
        rows = [dict(study="demo", protocol=study.protocol, benchmark="b", task_id=f"t/{n}", position=n, outcome="pass",
                     reason="pass", response_class="complete", score=1.0, attempts=1,
                     candidate_sha256=f"{r}-{n}") for n in range(50)]
        keys = dict(stack="s", condition="c", replicate=r)
        study.commit(shard, [PartitionWrite(OUTCOMES, keys, rows[part::4], str(part)) for part in range(4)])
        print("sealed", shard, flush=True)
"""


def test_kill_9_at_any_moment_redoes_no_sealed_shard_and_ends_in_the_same_bytes(tmp_path, protocol):
    stores = [Store.open(tmp_path / name) for name in ("killed", "whole")]
    for store in stores:
        store.freeze(protocol)
    chance = random.Random(5)
    sealed: set[str] = set()
    kills = 0
    for attempt in range(40):
        process = subprocess.Popen([sys.executable, "-c", RUN, str(stores[0].root)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        seen = []
        if attempt < 5:
            seen = [process.stdout.readline() for _ in range(chance.randrange(1, 12))]
            time.sleep(chance.random() / 100)
            process.send_signal(signal.SIGKILL)
            kills += 1
        seen += process.stdout.read().splitlines(keepends=True)
        status = process.wait(30)
        for line in (line.split() for line in seen if line.endswith("\n") and line.strip()):
            assert not (line[0] == "redo" and line[1] in sealed)
            if line[0] == "sealed":
                sealed.add(line[1])
        if status == 0:
            break
    assert (kills, status) == (5, 0)
    subprocess.run([sys.executable, "-c", RUN, str(stores[1].root)], check=True, capture_output=True, timeout=60)
    files = [
        {path.relative_to(store.root): path.read_bytes() for path in sorted(store.root.rglob("*.parquet"))} for store in stores
    ]
    assert len(files[0]) == 120
    assert files[0] == files[1]
    assert not list(Path(stores[0].root).rglob("*.tmp"))
    assert stores[0].studies()[0].read(OUTCOMES).equals(stores[1].studies()[0].read(OUTCOMES))
