"""`evalnoise doctor`: each check with what makes it fail, and the exit code."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
from collections import namedtuple
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalnoise.studyfile.load import load_study
from flows import doctor_checks
from flows.cli import app
from flows.doctor_checks import Level, check_engine, check_keys, check_python, check_recordings, check_server, check_store
from schemas.errors import ExitCode
from schemas.records import Benchmark, Task, TaskKind
from tests.support.small_store import build

RUNNER = CliRunner()
ORACLE = """\
study: small
benchmark: {name: starter}
stacks:
  - {name: a, model: m, provider: {name: oracle}}
conditions:
  - {name: live, kind: live}
"""
ALLOWED = ", verifier: {unsandboxed_providers: [openai]}"


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    """A place without a server, a profile or keys."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("EVALNOISE_HOME", str(tmp_path / "home"))
    for name in ("PREFECT_API_URL", "EVALNOISE_STORE", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def no_engine(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")


def study(text=ORACLE):
    Path("s.yaml").write_text(text)
    return load_study(Path("s.yaml"))


def with_provider(provider: str, more: str = "") -> str:
    return ORACLE.replace("{name: oracle}}", provider + more + "}")


def doctor(*arguments) -> tuple[int, str]:
    result = RUNNER.invoke(app, ["doctor", *map(str, arguments)])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def test_all_is_well_enough_without_an_engine(no_engine):
    study()
    code, text = doctor("s.yaml")
    assert code == 0
    subjects = [line.split(":")[0] for line in text.splitlines() if not line.startswith("      ")]
    assert subjects[:4] == ["ok   Python", "ok   study", "warn Docker engine", "ok   Prefect server"]
    assert subjects[4:] == ["ok   store", "ok   disk of the store", "ok   benchmark", "ok   checker"]
    assert "      Start the engine" in text
    assert not Path("evalnoise-store").exists()


@pytest.mark.parametrize(
    ("options", "place"),
    [((), "s.yaml:4"), (("--set", "stacks.a.verifier.checker=nope"), "--set stacks.a.verifier.checker=nope")],
)
def test_a_checker_that_is_not_there_is_placed_in_the_file(no_engine, options, place) -> None:
    """The study's form is all that the file alone can say, so no line calls it valid."""
    Path("s.yaml").write_text(ORACLE.replace("{name: oracle}}", "{name: oracle}, verifier: {checker: nope}}"))
    code, text = doctor("s.yaml", *options)
    assert code == ExitCode.STUDY
    assert f"fail checker: {place}: stacks.0.verifier.checker: expected a registered checker" in text
    assert "s.yaml is well formed: small" in text
    for command in ("plan", "freeze", "run"):
        result = RUNNER.invoke(app, [command, "s.yaml", *options])
        assert result.exit_code == ExitCode.STUDY
        assert f"error: {place}: stacks.0.verifier.checker: expected a registered checker" in result.output


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("study: 1\n", ExitCode.STUDY, "fail study: "),
        (with_provider("{name: openai}"), ExitCode.EXECUTOR, "none answers, and stack a must not run without a sandbox"),
        (with_provider("{name: openai}", ALLOWED), ExitCode.PROVIDER, "fail key: OPENAI_API_KEY is not set, and stack a needs it"),
        (ORACLE.replace("{name: starter}", "{name: cruxeval, path: x}"), ExitCode.DATA, "fail benchmark: x: expected"),
    ],
)
def test_the_exit_code_is_that_of_the_first_failure(no_engine, text, code, said):
    Path("s.yaml").write_text(text)
    found, output = doctor("s.yaml")
    assert found == code
    assert said in output


def test_overrides_reach_the_study(no_engine):
    study()
    code, text = doctor("s.yaml", "--set", "study=other")
    assert code == 0
    assert "s.yaml is well formed: other" in text


def test_python():
    assert [f.level for f in check_python()] == [Level.OK]
    (old,) = check_python((3, 10))
    assert (old.level, old.exit_code) == (Level.FAIL, ExitCode.USAGE)


@pytest.mark.docker
def test_engine(docker_engine):
    first, *room = check_engine(None)
    assert first.level is Level.OK
    assert first.text.startswith(docker_engine)
    assert [f.subject for f in room][:2] == ["disk of the engine", "verifier image"]


@pytest.mark.docker
def test_images(docker_engine, monkeypatch):
    """Which image each set of packages would use; too many images; a mistake in the packages."""
    monkeypatch.setenv("EVALNOISE_IMAGE_BASE", "evalnoise.invalid/x:1")
    monkeypatch.setattr(doctor_checks, "_MANY_IMAGES", -1)
    text = ORACLE.replace(
        "conditions:\n",
        "  - {name: b, model: m, provider: {name: oracle}, verifier: {packages: [Zed==2, a_b==1]}}\n"
        "  - {name: c, model: m, provider: {name: oracle}, verifier: {executor: process, packages: [x==1]}}\n"
        "  - {name: d, model: m, provider: {name: oracle}, verifier: {packages: [x==1, X==2]}}\n"
        "conditions:\n",
    )
    _, _, plain, packed, wrong, many = check_engine(study(text))
    told = "the first run builds it on evalnoise.invalid/x:1, which a registry must give"
    assert (plain.level, plain.text) == (Level.OK, told)
    assert (packed.level, packed.text) == (Level.OK, f"{told}; packages a-b==1, zed==2")
    assert (wrong.level, wrong.exit_code) == (Level.FAIL, ExitCode.STUDY)
    assert "x with two versions, 1 and 2" in wrong.text
    assert (many.level, many.subject) == (Level.WARN, "verifier images")
    assert "docker image prune --all --filter label=evalnoise.image.inputs --filter until=720h" in many.remedy


@pytest.mark.parametrize(
    ("provider", "more", "level"),
    [
        ("{name: oracle}", "", Level.WARN),
        ("{name: oracle}", ", verifier: {executor: docker}", Level.FAIL),
        ("{name: recording, path: x}", "", Level.FAIL),
        ("{name: recording, path: x}", ", verifier: {unsandboxed_providers: [recording]}", Level.WARN),
        ("{name: recording, path: x}", ", verifier: {unsandboxed_providers: [openai]}", Level.FAIL),
    ],
)
def test_an_engine_is_needed_for_code_of_others(no_engine, provider, more, level):
    (finding,) = check_engine(study(with_provider(provider, more)))
    assert finding.level is level


def test_keys_by_name_only(monkeypatch):
    text = with_provider("{name: openai, api_key_env: MY_KEY}") + (
        "  - {name: r, kind: replay, source: {condition: live}}\n"
        "judge: {conditions: [{name: j, model: m, provider: {name: anthropic}}]}\n"
    )
    monkeypatch.setenv("MY_KEY", "sk-hidden")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    found = list(check_keys(study(text)))
    assert [(f.level, f.text) for f in found] == [
        (Level.FAIL, "ANTHROPIC_API_KEY is not set, and judge j needs it"),
        (Level.OK, "MY_KEY is set (for stack a)"),
    ]
    assert "sk-hidden" not in repr(found)
    assert [f.text for f in check_keys(None)] == [
        "OPENAI_API_KEY is not set; only its own provider needs it",
        "ANTHROPIC_API_KEY is not set; only its own provider needs it",
    ]
    assert list(check_keys(study())) == []


class TestServer:
    def test_none(self):
        (found,) = check_server()
        assert (found.level, found.text) == (Level.OK, "none runs; the first run starts one in the background")

    def test_one_that_does_not_answer(self, monkeypatch):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{port}/api")
        (found,) = check_server()
        assert (found.level, found.exit_code) == (Level.FAIL, ExitCode.SERVER)
        assert found.text.startswith(f"http://127.0.0.1:{port}/api does not answer: set by PREFECT_API_URL; no answer: ")

    def test_one_that_answers(self, monkeypatch):
        class Healthy(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if self.path == "/api/health" else 404)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(b"true")

            def log_message(self, *args):
                pass

        server = HTTPServer(("127.0.0.1", 0), Healthy)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{server.server_port}/api")
            (found,) = check_server()
        finally:
            server.shutdown()
            server.server_close()
        assert found.level is Level.OK
        assert "answers (set by PREFECT_API_URL)" in found.text


class TestStore:
    def levels(self, store, of=None):
        return [(f.level, f.subject) for f in check_store(Path(store), of)]

    def test_one_that_is_not_there_yet_is_not_made(self):
        assert self.levels("a/b") == [(Level.OK, "store"), (Level.OK, "disk of the store")]
        assert not Path("a").exists()

    def test_a_file_and_a_url(self):
        Path("file").write_text("")
        assert self.levels("file") == [(Level.FAIL, "store")]
        assert self.levels("s3://bucket/x") == [(Level.FAIL, "store")]

    def test_one_that_cannot_be_written(self, monkeypatch):
        def refuse(**_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(doctor_checks.tempfile, "TemporaryFile", refuse)
        (found,) = check_store(Path("x"), None)
        assert (found.level, found.exit_code) == (Level.FAIL, ExitCode.STORE)
        assert found.text.endswith("cannot be written: Permission denied")

    @pytest.mark.parametrize(("free", "level"), [(10 << 30, Level.OK), (4 << 30, Level.WARN), (1 << 20, Level.FAIL)])
    def test_room(self, monkeypatch, free, level):
        usage = namedtuple("usage", "total used free")  # noqa: PYI024 - the very type that shutil gives is private
        monkeypatch.setattr(doctor_checks.shutil, "disk_usage", lambda _: usage(0, 0, free))
        assert self.levels("x")[1] == (level, "disk of the store")

    def test_a_lock_that_is_held(self):
        made = build(Path("st"))
        facts = {"host": socket.gethostname(), "pid": os.getpid(), "started": "2026-01-01T00:00:00+00:00", "command": ""}
        (made.path.parent / "lock.json").write_text(json.dumps(facts))
        assert self.levels("st")[2:] == [(Level.WARN, "lock")]
        assert self.levels("st", study())[2:] == []
        assert self.levels("st", study(ORACLE.replace("study: small", "study: demo")))[2:] == [(Level.WARN, "lock")]

    def test_a_damaged_manifest(self):
        made = build(Path("st"))
        lines = made.manifest.path.read_bytes().splitlines(keepends=True)
        made.manifest.path.write_bytes(b"".join([lines[0], b"garbage\n", *lines[1:]]))
        assert self.levels("st")[2:] == [(Level.FAIL, "store")]


BENCHMARK = Benchmark("own", (Task("t", TaskKind.ANSWER, "?", "1", ""),), (), "0" * 64)


class TestRecordings:
    whole = b'{"task_id": "t", "generations": ["1", "2", "3", "4", "5"]}\n'

    def findings(self, sha256="null"):
        return list(check_recordings(study(with_provider(f"{{name: recording, path: r.jsonl, sha256: {sha256}}}")), BENCHMARK))

    def test_missing(self):
        (found,) = self.findings()
        assert (found.level, found.exit_code) == (Level.FAIL, ExitCode.DATA)
        assert found.text.startswith("r.jsonl: expected ")

    def test_digest(self):
        Path("r.jsonl").write_bytes(self.whole)
        digest = hashlib.sha256(self.whole).hexdigest()
        told = f"r.jsonl, 5 responses, pairing occurrence, sha256 {digest[:12]}"
        assert [(f.level, f.text) for f in self.findings()] == [(Level.OK, told)]
        assert [f.level for f in self.findings(digest)] == [Level.OK]
        (found,) = self.findings("b" * 64)
        assert found.level is Level.FAIL
        assert "bbbbbbbbbbbb" in found.text

    def test_torn(self):
        Path("r.jsonl").write_bytes(self.whole[:-9])
        (found,) = self.findings()
        assert (found.level, found.exit_code) == (Level.FAIL, ExitCode.DATA)
        assert found.text.startswith("r.jsonl, line 1: ")


@pytest.mark.realdata
def test_the_public_data_pass(shared, monkeypatch):
    monkeypatch.setenv("EVALNOISE_SHARED", str(shared))
    root = Path(__file__).parents[2]
    _, text = doctor(root / "studies/cruxeval.yaml")
    assert "ok   benchmark: cruxeval, 800 tasks" in text
    assert text.count("ok   recording: ") == 3
