"""`python -m perf.kills`: the starter study killed with -9 three times, against an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from perf.measure import EVALNOISE, ROOT, evalnoise
from tests.support.stores import SAME_BYTES, SAME_ROWS, differences, file_digests, only_study

KILLS = 3


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        calm, killed = Path(folder) / "calm", Path(folder) / "killed"
        begun = time.monotonic()
        evalnoise("run", "studies/starter.yaml", "--store", str(calm))
        whole = time.monotonic() - begun
        rng = random.Random()  # noqa: S311 - moments of a kill, no secret
        for number in range(KILLS):
            run = subprocess.Popen(
                [*EVALNOISE, "run", "studies/starter.yaml", "--store", str(killed)],
                cwd=ROOT, env=os.environ.copy(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            wait = rng.uniform(0.15, 0.6) * whole
            try:
                run.wait(wait)
                print(f"kill {number + 1}: the run had ended before {wait:.1f} s")
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
                run.wait()
                print(f"kill {number + 1}: after {wait:.1f} s, {_sealed(killed)} shards sealed")
        evalnoise("run", "studies/starter.yaml", "--store", str(killed))
        found = differences(calm, killed)
        study = only_study(calm)
        for table in SAME_BYTES:
            print(f"{table.name}: {len(file_digests(study, table))} files, compared byte by byte")
        for table in SAME_ROWS:
            print(f"{table.name}: {study.read(table).num_rows} rows, compared but for measured columns")
        print("differences:", ", ".join(found) or "none")
        return len(found)


def _sealed(store: Path) -> int:
    return len(only_study(store).manifest.live) if list(store.glob("studies/*/*/manifest.jsonl")) else 0


if __name__ == "__main__":
    sys.exit(main())
