"""The background Prefect server: found, started once, replaced when dead, and never in the way of a configured one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from flows import server_process
from flows.cli_server import app
from flows.server import ServerInfo, ServerState, apply_client_environment, ensure_server, server_status, stop_server
from schemas.errors import ServerError

CLOSED = "http://127.0.0.1:9/api"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home of its own, no Prefect settings from outside, and no server left behind."""
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EVALNOISE_HOME", str(tmp_path / "home of mine"))
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    yield tmp_path / "home of mine"
    stop_server(seconds=2)


class Api(HTTPServer):
    """Answers every request in the way that a test wants, and keeps the headers it saw."""

    status = 200
    kind = "application/json"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api"


class _Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        self.send_response(self.server.status)
        self.send_header("Content-Type", self.server.kind)
        self.end_headers()
        self.wfile.write(b"true")

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def use_profile(tmp_path: Path, **settings: str) -> None:
    folder = tmp_path / "prefect"
    folder.mkdir(exist_ok=True)
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    (folder / "profiles.toml").write_text(f'active = "mine"\n[profiles.mine]\n{lines}', encoding="utf-8")


def in_process(code: str, **extra: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code], env=os.environ | extra, stdout=subprocess.PIPE, text=True)


def state(home: Path) -> dict[str, object]:
    return dict(json.loads((home / "server" / "server.json").read_text(encoding="utf-8")))


# --- a configured server ---------------------------------------------------------------------------------------------


def test_the_configured_server_is_used(api: Api, monkeypatch, home):
    monkeypatch.setenv("PREFECT_API_URL", api.url + "/")
    assert ensure_server() == ServerInfo(api.url, api.url.removesuffix("/api"), started=False)
    assert api.seen == [("/api/health", None)]
    assert server_status().state is ServerState.CONFIGURED
    assert not (home / "server" / "server.json").exists()


def test_a_configured_server_that_does_not_answer_is_an_error_with_a_remedy(monkeypatch, home):
    monkeypatch.setenv("PREFECT_API_URL", CLOSED)
    with pytest.raises(ServerError, match=r"9/api \(from PREFECT_API_URL\).*Connection refused.*Start that server") as caught:
        ensure_server()
    assert caught.value.exit_code == 10
    assert server_status().state is ServerState.UNREACHABLE
    assert not (home / "server" / "server.json").exists()


@pytest.mark.parametrize(
    ("status", "kind", "found"),
    [
        (200, "text/html", "ends in /api"),  # the dashboard answers any path with its page
        (401, "application/json", "PREFECT_API_KEY"),
        (404, "application/json", "HTTP status 404"),
        (503, "application/json", "HTTP status 503"),
    ],
)
def test_what_is_no_prefect_api_is_told_apart(api: Api, monkeypatch, status, kind, found):
    api.status, api.kind = status, kind
    monkeypatch.setenv("PREFECT_API_URL", api.url)
    with pytest.raises(ServerError, match=found):
        ensure_server()


def test_an_address_without_a_scheme_is_no_traceback(monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "localhost:4200/api")
    with pytest.raises(ServerError, match="not http"):
        ensure_server()


def test_credentials_are_sent_to_the_configured_server(api: Api, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", api.url)
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "admin:pass")
    ensure_server()
    monkeypatch.setenv("PREFECT_API_KEY", "pnu_1")
    ensure_server()
    assert api.seen == [("/api/health", "Basic YWRtaW46cGFzcw=="), ("/api/health", "Bearer pnu_1")]


def test_a_prefect_profile_counts_as_configuration(api: Api, tmp_path):
    use_profile(tmp_path, PREFECT_API_URL=api.url, PREFECT_API_KEY="pnu_2")
    assert ensure_server().api_url == api.url
    assert api.seen == [("/api/health", "Bearer pnu_2")]
    assert "active Prefect profile" in server_status().detail
    assert "pnu_2" not in server_status().detail


def test_an_empty_variable_wins_over_the_profile(tmp_path, monkeypatch):
    use_profile(tmp_path, PREFECT_API_URL=CLOSED)
    monkeypatch.setenv("PREFECT_API_URL", "")
    assert server_status().state is ServerState.STOPPED


def test_a_broken_profile_is_left_to_prefect(tmp_path):
    (tmp_path / "prefect").mkdir()
    (tmp_path / "prefect" / "profiles.toml").write_text("active = [", encoding="utf-8")
    assert server_status().state is ServerState.STOPPED


def test_the_cloud_dashboard_has_its_own_address():
    api_url = "https://api.prefect.cloud/api/accounts/a1/workspaces/w1"
    assert server_process.probe("ftp://x/api") == "an address that is not http:// or https://"
    from flows.server_api import dashboard

    assert dashboard(api_url) == "https://app.prefect.cloud/account/a1/workspace/w1"


# --- the command line ------------------------------------------------------------------------------------------------


def test_the_command_line_says_where_the_server_is(api: Api, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", api.url)
    exported = CliRunner().invoke(app, ["start", "--export"])
    assert (exported.exit_code, exported.stdout) == (0, f"export PREFECT_API_URL={api.url}\n")
    status = CliRunner().invoke(app, ["status"])
    assert status.exit_code == 0
    assert status.stdout.splitlines()[:2] == ["state      configured", f"api        {api.url}"]


def test_the_command_line_ends_with_code_10_when_the_server_does_not_answer(monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", CLOSED)
    assert CliRunner().invoke(app, ["status"]).exit_code == 10
    start = CliRunner().invoke(app, ["start"])
    assert start.exit_code == 10
    assert start.stderr.startswith(f"error: Prefect server {CLOSED}")


def test_the_command_line_stops_nothing_when_nothing_runs():
    stop = CliRunner().invoke(app, ["stop"])
    assert (stop.exit_code, stop.stdout) == (0, "No background Prefect server runs\n")


# --- the client's environment ----------------------------------------------------------------------------------------


def test_the_client_environment_reaches_prefect():
    code = """
import sys
from flows.server import ServerInfo, apply_client_environment
assert "prefect" not in sys.modules
apply_client_environment(ServerInfo("http://127.0.0.1:9/api", "http://127.0.0.1:9", False))
from prefect.settings import get_current_settings
s = get_current_settings()
print(s.api.url, s.server.ephemeral.enabled, s.server.analytics_enabled, s.logging.level)
"""
    out, _ = in_process(code).communicate(timeout=60)
    assert out.split() == ["http://127.0.0.1:9/api", "False", "False", "WARNING"]


def test_a_chosen_log_level_is_kept(monkeypatch):
    for name in ("PREFECT_API_URL", "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE", "PREFECT_SERVER_ANALYTICS_ENABLED", "DO_NOT_TRACK"):
        monkeypatch.setenv(name, "before")  # so that the fixture puts it back
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "DEBUG")
    apply_client_environment(ServerInfo(CLOSED, "", started=False))
    assert os.environ["PREFECT_LOGGING_LEVEL"] == "DEBUG"
    assert os.environ["DO_NOT_TRACK"] == "1"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "127.0.0.1,localhost,::1"),
        ({"NO_PROXY": "corp, localhost"}, "corp,localhost,127.0.0.1,::1"),
        ({"no_proxy": "lower", "NO_PROXY": "upper"}, "lower,127.0.0.1,localhost,::1"),
    ],
)
def test_a_proxy_is_not_asked_for_this_machine(api: Api, monkeypatch, given, expected):
    for name in ("no_proxy", "NO_PROXY", "PREFECT_API_URL"):
        monkeypatch.setenv(name, given.get(name, ""))
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    apply_client_environment(ServerInfo(f"{api.url}/api", "", started=False))
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == expected
    assert httpx.get(f"{api.url}/api/health").status_code == 200


@pytest.mark.parametrize("proxy", ["ftp://user:word@127.0.0.1", "http://127.0.0.1:port", "socks4://127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_an_error_with_a_remedy(monkeypatch, proxy):
    for name in ("no_proxy", "NO_PROXY", "PREFECT_API_URL"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ServerError, match="HTTP_PROXY") as told:
        apply_client_environment(ServerInfo(CLOSED, "", started=False))
    assert "word" not in str(told.value)


# --- the background server -------------------------------------------------------------------------------------------


def test_nothing_runs_and_nothing_is_made_by_looking(home):
    status = server_status()
    assert (status.state, status.api_url) == (ServerState.STOPPED, None)
    assert stop_server() is None
    assert not (home / "server" / "server.json").exists()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"port": 1, "unknown": 2}'])
def test_a_damaged_state_file_counts_as_none(home, text):
    (home / "server").mkdir(parents=True)
    (home / "server" / "server.json").write_text(text, encoding="utf-8")
    assert server_status().state is ServerState.STOPPED


def test_a_foreign_process_with_the_same_id_is_not_touched(home):
    (home / "server").mkdir(parents=True)
    server_process.write_record(server_process.Record(port=9, pid=os.getpid(), identity="another boot:1"))
    assert server_status().state is ServerState.STOPPED
    assert stop_server() is None
    assert state(home) == {"port": 9, "pid": None, "identity": None, "started": "", "prefect": ""}


def test_the_old_port_is_waited_for_and_given_up_when_another_took_it(api: Api):
    assert server_process.settled_port(api.server_port, 0.2) != api.server_port
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        threading.Timer(0.3, listener.close).start()
        assert server_process.settled_port(port) == port


def test_a_zombie_is_dead():
    child = subprocess.Popen([sys.executable, "-c", ""])
    end = time.monotonic() + 30
    while Path(f"/proc/{child.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.01)
    assert server_process._identity(child.pid) is None
    child.wait()


def test_a_silent_server_is_replaced_and_a_failed_start_leaves_no_process(home):
    (home / "server").mkdir(parents=True)
    silent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], start_new_session=True)
    server_process._children[silent.pid] = silent
    port = server_process.free_port()
    server_process.write_record(server_process.Record(port, silent.pid, server_process._identity(silent.pid)))
    assert server_status().state is ServerState.UNREACHABLE
    said: list[str] = []
    # Half a second is too short for the start, so the replacement fails as well.
    with pytest.raises(ServerError, match=r"server\.log: expected a server that answers within 0 s, found no answer") as caught:
        ensure_server(said.append, seconds=0.4)
    assert caught.value.exit_code == 10
    assert silent.poll() == -signal.SIGTERM
    assert [line for line in said if "replaced" in line] == [
        f"The Prefect server (process {silent.pid}) lives but does not answer; it is replaced"
    ]
    assert state(home)["pid"] is None
    assert all(child.poll() is not None for child in server_process._children.values())


def test_a_home_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setenv("EVALNOISE_HOME", str(tmp_path / "file"))
        with pytest.raises(ServerError, match="EVALNOISE_HOME"):
            ensure_server()


@pytest.mark.prefect
def test_two_runs_start_one_server_which_is_reused_and_started_anew_after_kill_9(home):
    code = """
import json, sys
from flows.server import ensure_server
info = ensure_server()
assert "prefect" not in sys.modules
print(json.dumps([info.api_url, info.started]))
"""
    racers = [in_process(code, OPENAI_API_KEY="secret-of-mine") for _ in range(2)]
    answers = [json.loads(racer.communicate(timeout=200)[0]) for racer in racers]
    assert sorted(started for _, started in answers) == [False, True]
    assert answers[0][0] == answers[1][0]
    first = state(home)
    assert (home / "server" / "prefect.db").is_file()
    assert "secret-of-mine" not in Path(f"/proc/{first['pid']}/environ").read_text(encoding="utf-8")
    assert os.getsid(int(str(first["pid"]))) == first["pid"]  # an interrupted run takes nothing down with it

    began = time.monotonic()
    assert ensure_server() == ServerInfo(answers[0][0], answers[0][0].removesuffix("/api"), started=False)
    assert time.monotonic() - began < 2

    os.kill(int(str(first["pid"])), signal.SIGKILL)
    os.environ["PREFECT_API_URL"] = answers[0][0]  # as a run that has applied it; the address still counts as evalnoise's own
    try:
        again = ensure_server()
    finally:
        del os.environ["PREFECT_API_URL"]
    assert again == ServerInfo(answers[0][0], answers[0][0].removesuffix("/api"), started=True)
    second = state(home)
    assert second["pid"] != first["pid"]
    assert second["port"] == first["port"]
    assert server_status().state is ServerState.RUNNING

    assert stop_server() == second["pid"]
    assert server_process._identity(int(str(second["pid"]))) is None
    assert server_status().state is ServerState.STOPPED
    assert state(home)["port"] == first["port"]
