"""Folders of recordings: sealed once, read back whole, portable, tidy after a kill; damage and other versions are told apart."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

import evalnoise.store.recordings as module
from evalnoise.recordings.row import numbered
from evalnoise.store.recordings import RecordingFolder, is_name, recordings_in
from schemas.errors import DataError, RecordingDigestError, RecordingFormatError, StoreError
from tests.support.recorded import recorded, request

SOURCE = {"kind": "import", "format": "jsonl", "files": []}
ROWS = [
    recorded("a/1", 0, 0, "\ud835 x", request("a"), served_model="m-1", input_tokens=3),
    recorded("a/1", 0, 1, "y", request("a")),
    recorded("b", 0, 0, "z", request("b"), position=1),
]

KILLED = """
import os, signal, sys
from pathlib import Path
from evalnoise.store.recordings import RecordingFolder
real = os.fsync
left = int(sys.argv[2])
def fsync(descriptor):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(descriptor)
os.fsync = fsync
RecordingFolder(Path(sys.argv[1]) / "recordings" / "r").write([], source={}, order="time")
"""


def folder(root, name="r", rows=ROWS, **options):
    made = RecordingFolder.named(root, name)
    made.write(rows, **({"source": SOURCE, "order": "time"} | options))
    return made


def test_rows_come_back_with_their_occurrences_counted(tmp_path):
    made = folder(tmp_path, rows=ROWS[::-1])
    assert made.read() == numbered(ROWS, source="x")
    manifest = made.manifest
    assert (manifest.tasks, manifest.replicates, manifest.requests, manifest.occurrences) == (2, 1, 2, 3)
    assert (manifest.keyed, manifest.order, manifest.source) == (True, "time", SOURCE)
    assert sorted(path.name for path in made.path.iterdir()) == ["manifest.json", "responses.parquet"]
    made.verify()


def test_the_same_rows_have_the_same_bytes_wherever_they_lie(tmp_path):
    one, other = folder(tmp_path / "x"), folder(tmp_path / "y", name="other", rows=ROWS[::-1])
    for name in ("manifest.json", "responses.parquet"):
        assert (one.path / name).read_bytes() == (other.path / name).read_bytes()
    shutil.copytree(one.path, tmp_path / "a 'copy' \u202e")
    copied = RecordingFolder(tmp_path / "a 'copy' \u202e")
    copied.verify()
    assert (copied.manifest, copied.read()) == (one.manifest, one.read())


def test_sealing_it_again_changes_nothing_and_another_one_never_replaces_it(tmp_path):
    made = folder(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in made.path.iterdir()}
    folder(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in made.path.iterdir()} == before
    with pytest.raises(StoreError, match="A recording is never replaced"):
        folder(tmp_path, rows=ROWS[:2])
    with pytest.raises(StoreError, match="A recording is never replaced"):
        folder(tmp_path, order="unknown")
    assert {path: path.stat().st_mtime_ns for path in made.path.iterdir()} == before


def test_the_same_responses_in_other_parquet_bytes_are_the_same_recording(tmp_path, monkeypatch):
    made = folder(tmp_path)
    sealed = made.manifest.file
    # As a newer Parquet library may write it.
    monkeypatch.setattr(module, "parquet_bytes", lambda *_: b"PAR1 of another kind")
    assert folder(tmp_path).manifest == made.manifest
    assert (made.manifest.file, made.read()) == (sealed, numbered(ROWS, source="x"))


@pytest.mark.parametrize("fsyncs", range(8))
def test_a_killed_writer_leaves_the_whole_or_nothing(tmp_path, fsyncs):
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path, str(fsyncs)], check=False)
    assert killed.returncode in (-signal.SIGKILL, 0)
    made = RecordingFolder(tmp_path / "recordings" / "r")
    if made.path.exists():
        made.verify()
    assert made.write([], source={}, order="time").occurrences == 0
    left = [path for path in made.path.parent.iterdir() if path.name.startswith(".")]
    for path in left:
        os.utime(path, (0, 0))
    folder(tmp_path, name="next")
    assert [path.name for path in sorted(made.path.parent.iterdir())] == ["next", "r"]
    assert [one.path.name for one in recordings_in(tmp_path)] == ["next", "r"]


def test_a_young_unfinished_folder_may_belong_to_one_at_work(tmp_path):
    young = tmp_path / "recordings" / ".1-x.tmp"
    young.mkdir(parents=True)
    folder(tmp_path)
    assert young.is_dir()


def test_two_writers_of_one_name_make_one_recording(tmp_path, monkeypatch):
    made = RecordingFolder.named(tmp_path, "r")
    real = module.write_file

    def slow(path, data):
        real(path, data)
        if path.name == "manifest.json":
            monkeypatch.setattr(module, "write_file", real)
            folder(tmp_path)

    monkeypatch.setattr(module, "write_file", slow)
    folder(tmp_path)
    assert made.read() == numbered(ROWS, source="x")
    with pytest.raises(StoreError, match="never replaced"):
        folder(tmp_path, rows=[])


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("responses.parquet", lambda data: data[:-1] + b"?", "bytes with the SHA-256"),
        ("responses.parquet", lambda _: b"", "found 0 bytes"),
        ("manifest.json", lambda data: data.replace(b'"order":"time"', b'"order":"unknown"'), "expected the facts"),
        ("manifest.json", lambda data: data.replace(b'"tasks":2', b'"tasks":-2'), "tasks: Input should be"),
        ("manifest.json", lambda data: data.replace(b'"tasks":2', b'"odd":2'), "expected the facts of a recording"),
        ("manifest.json", lambda data: data[:-20], "expected one JSON object"),
        ("manifest.json", lambda _: b"[" * 100_000, "expected one JSON object"),
    ],
)
def test_damage_is_an_error_that_names_the_file(tmp_path, name, change, said):
    made = folder(tmp_path)
    path = made.path / name
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(RecordingDigestError, match=said) as caught:
        RecordingFolder(made.path).read()
    assert str(path) in caught.value.where
    assert caught.value.exit_code == 4


def test_other_responses_under_a_corrected_seal_are_refused(tmp_path):
    """The seal of the bytes is in no digest: whoever changes both must not get a replay under the digest that a protocol pins."""
    made = folder(tmp_path)
    other = folder(tmp_path / "x", rows=[*ROWS[:2], recorded("b", 0, 0, "forged", request("b"), position=1)])
    shutil.copy(other.path / "responses.parquet", made.path / "responses.parquet")
    forged = made.manifest.model_copy(update={"file": other.manifest.file})
    (made.path / "manifest.json").write_text(json.dumps(forged.model_dump(mode="json")))
    again = RecordingFolder(made.path)
    assert again.manifest.digest == made.manifest.digest
    with pytest.raises(RecordingDigestError, match=r"responses\.parquet, contents: expected responses with the digest"):
        again.read()


def test_verify_counts_what_the_manifest_says(tmp_path):
    made = folder(tmp_path)
    forged = made.manifest.model_copy(update={"replicates": 7})
    forged = forged.model_copy(update={"digest": module._digest(forged)})
    (made.path / "manifest.json").write_text(json.dumps(forged.model_dump(mode="json")))
    again = RecordingFolder(made.path)
    again.read()
    with pytest.raises(RecordingDigestError, match=r"replicates: expected 7, as the manifest says, found 1"):
        again.verify()


def test_other_formats_and_other_folders_are_told_apart(tmp_path):
    old = tmp_path / "recordings" / "old"
    old.mkdir(parents=True)
    (old / "manifest.jsonl").write_text("{}\n")
    (old / "responses.parquet").write_bytes(b"PAR1")
    for act in (lambda: RecordingFolder(old).manifest, lambda: folder(tmp_path, name="old")):
        with pytest.raises(RecordingFormatError, match=r"found one of format 1.* Move the folder aside"):
            act()
    assert (old / "manifest.jsonl").read_text() == "{}\n"
    with pytest.raises(RecordingFormatError, match="found no manifest"):
        RecordingFolder(tmp_path / "recordings").manifest  # noqa: B018
    made = folder(tmp_path, name="new")
    path = made.path / "manifest.json"
    path.write_text(path.read_text().replace('"format":2', '"format":3'))
    with pytest.raises(RecordingFormatError, match="found format 3"):
        RecordingFolder(made.path).manifest  # noqa: B018


def test_two_answers_of_one_asker_are_refused(tmp_path):
    with pytest.raises(DataError, match="found two"):
        folder(tmp_path, rows=[*ROWS, ROWS[0]])
    assert not (tmp_path / "recordings" / "r").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "A", "-a", "a b", "a\n", "\u202e", "a" * 201, "é", "a\x00b"])
def test_hostile_names_are_refused(tmp_path, name):
    assert not is_name(name)
    with pytest.raises(StoreError, match="expected a name"):
        RecordingFolder.named(tmp_path, name)


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(path, data):
        raise StoreError(str(path), expected="room", found="no space left on device", remedy="Free some space.")

    monkeypatch.setattr(module, "write_file", full)
    with pytest.raises(StoreError, match="no space left"):
        folder(tmp_path)
    assert list((tmp_path / "recordings").iterdir()) == []
