"""A wire server as a process of its own, which outlives the clients that are killed: `python -m wire.process --ledger FILE`.

It prints one line with its address when it listens. Run it with `tests/` on the path.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wire.ledger import Ledger
from wire.scripts import SCRIPTS
from wire.server import WireServer

TESTS = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", choices=SCRIPTS, default="mix")
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, help="share of requests that meet a fault")
    parser.add_argument("--faults", nargs="*", default=(), help="names of the faults to choose from")
    parser.add_argument("--rate", type=float, default=0.7, help="probability that an answer is right")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    told = parser.parse_args()
    script = SCRIPTS[told.script](
        Ledger(told.ledger), seed=told.seed, names=tuple(told.faults), rate=told.rate, latency=told.latency
    )
    if told.share is not None:
        script.share = told.share
    server = WireServer(script, sent=script.sent, keep=False)
    with suppress(KeyboardInterrupt):
        asyncio.run(server.serve(told.port, ready=lambda: print(server.url, flush=True)))


@contextmanager
def wire_process(ledger: Path, *arguments: str) -> Iterator[str]:
    """Start one, give its address, and end it."""
    command = [sys.executable, "-m", "wire.process", "--ledger", str(ledger), *arguments]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths})
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


if __name__ == "__main__":
    main()
