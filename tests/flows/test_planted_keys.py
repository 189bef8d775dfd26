"""A key that a hostile server echoes in every way, through a whole run: it is in no file, no log, no database and no output."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from evalnoise.benchmarks.load import load_benchmark
from evalnoise.providers.keys import forms
from flows.cli import app
from schemas.study import StarterBenchmark
from tests.support import stages
from tests.wire.dialects import HTML, AnthropicDialect, Dialect, OpenAIDialect, ResponsesDialect, event
from tests.wire.server import Received, Reply, serve

pytestmark = pytest.mark.prefect
KEY = 'sk-planted/"k\\ey"<&>-0123456789abcdef'
TASKS = load_benchmark(StarterBenchmark(name="starter")).tasks[:4]
STACKS: dict[str, Dialect] = {"chat": OpenAIDialect(), "responses": ResponsesDialect(), "messages": AnthropicDialect()}


class Hostile:
    """Meets each call with another echo of its key first, and answers the next sending of it, with echoes all over the answer."""

    def __init__(self) -> None:
        self.calls = 0
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> Reply:
        with self._lock:
            self.calls += 1
            number = self.calls
        wire = next((dialect for dialect in STACKS.values() if received.path == dialect.path), None)
        if wire is None:
            return OpenAIDialect().error(401, "authentication_error", f"{KEY} is no key; {json.dumps({'key': KEY})}")
        streams = bool(received.body.get("stream"))
        headers = {"x-request-id": KEY, "x-ratelimit-limit-requests": f"Bearer {KEY}", "server": quote(KEY, safe="")}
        echoes = [
            wire.error(500, "server_error", f"headers were {json.dumps({'authorization': f'Bearer {KEY}'})}"),
            Reply(502, HTML + KEY.encode(), headers, content_type="text/html"),
            Reply(200, HTML + base64.b64encode(KEY.encode()), headers, content_type="text/html"),
            Reply(200, json.dumps({"error": {"message": KEY, "type": KEY}}).encode(), headers),
            wire.answer(f"{KEY} that breaks off here: {KEY}", cut_after=130, headers=headers),
            Reply(events=(event({"x": KEY}), wire.error_event("server_error", KEY)), content_type="text/event-stream"),
        ]
        if number % 3 == 0:
            return echoes[number // 3 % len(echoes)]
        prompt = (received.body.get("messages") or received.body["input"])[0]["content"]
        task = next(task for task in TASKS if task.prompt in prompt)
        text = f"Your key is {KEY}, or {base64.b64encode(KEY.encode()).decode()}.\n```python\nKEY = {KEY!r}\n{task.reference}\n```"
        make = wire.stream if streams else wire.answer
        return make(text, reasoning=f"the key {KEY} it is", answer_id=f"{KEY}-{number}", model=f"served by {KEY}", headers=headers)


def study_file(folder: Path, url: str, dialects: Mapping[str, Dialect] = STACKS) -> Path:
    stacks = []
    for name, wire in dialects.items():
        for stream in (False, True):
            provider = {
                "name": wire.name,
                "base_url": url + wire.prefix,
                "stream": stream,
                "api_key_env": "PLANTED",
                **wire.options,
            }
            verifier = stages.PROCESS | {"unsandboxed_providers": ["openai", "anthropic"]}
            stack = {
                "name": f"{name}-{'streamed' if stream else 'whole'}",
                "model": "m",
                "provider": provider,
                "verifier": verifier,
            }
            stacks.append(stack | {"retry": "resample"})
    conditions = [{"name": "live", "kind": "live"}, {"name": "replay", "kind": "replay", "source": {"condition": "live"}}]
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(stages.body(stacks=stacks, conditions=conditions, replicates=1)))
    return path


def holders(needles: list[bytes], folders: list[Path]) -> list[str]:
    """Files that hold one of the texts; Parquet files are looked at as they are and decompressed."""
    found = []
    for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.suffix == ".parquet":
            data += json.dumps(pq.read_table(path).to_pylist(), default=str, ensure_ascii=False).encode("utf-8", "surrogatepass")
        found += [str(path) for needle in needles if needle in data]
    return found


def test_a_planted_key_is_nowhere(evalnoise, environment, tmp_path) -> None:
    model, home = Hostile(), Path(environment["EVALNOISE_HOME"])
    with serve(script=model) as server:
        path, store = study_file(tmp_path, server.url), tmp_path / "s"
        run = evalnoise("run", path, "--store", store, "--limit", "4", PLANTED=KEY, PREFECT_LOGGING_LEVEL="DEBUG")
        commands = (["show", TASKS[0].id], ["sql", "select * from calls", "--format", "csv"])
        shown = [CliRunner().invoke(app, [*command, "--store", str(store)]) for command in commands]
        # And one that ends with an error that echoes it: the first call's, so one dialect is enough.
        bad = study_file(tmp_path, f"{server.url}/nothing", {"chat": STACKS["chat"]})
        failed = evalnoise("run", bad, "--store", tmp_path / "t", "--limit", "4", PLANTED=KEY)
    assert run.returncode == 0, run.stderr
    assert [one.exit_code for one in shown] == [0, 0]
    assert model.calls > 30  # 24 calls, and sendings that failed among them
    assert failed.returncode != 0
    (redacted,) = stages.rows(store, "select count(*) from calls where response like '%[redacted]%'")[0]
    (calls,) = stages.rows(store, "select count(*) from calls")[0]
    assert calls > 30
    assert redacted >= calls - 3  # all but bodies that broke off before the key
    # A form of a few letters could stand anywhere; the whole key's many forms, and its two ends, cannot.
    needles = [
        form.encode() for form in {*forms(KEY), "sk-planted", "0123456789abcdef", base64.b64encode(KEY.encode()).decode()[:16]}
    ]
    printed = "".join(done.stdout + done.stderr for done in (run, failed, *shown))
    assert [needle for needle in needles if needle in printed.encode()] == []
    database = Path(environment["PREFECT_HOME"])
    assert any(database.rglob("*.db*")) or any(home.rglob("*.db*"))
    assert holders(needles, [store, tmp_path / "t", home, database]) == []
