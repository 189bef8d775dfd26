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

from evalnoise.store.store import Store
from perf.measure import EVALNOISE, ROOT, evalnoise
from tests.support.stores import SAME_BYTES, SAME_ROWS, differences, file_digests, only_study

KILLS = 3


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        calm, killed = Path(folder) / "calm", Path(folder) / "killed"
        evalnoise("run", "studies/starter.yaml", "--store", str(calm))
        whole = _sealed(calm)
        rng = random.Random()  # noqa: S311 - moments of a kill, no secret
        for number in range(KILLS):
            run = subprocess.Popen(
                [*EVALNOISE, "run", "studies/starter.yaml", "--store", str(killed)],
                cwd=ROOT, env=os.environ.copy(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            before = _sealed(killed)
            # A share of what is left, so that there is something left to kill the next time.
            target = before + rng.randint(1, (whole - before) // (KILLS + 1 - number))
            while _sealed(killed) < target and run.poll() is None:
                time.sleep(0.05)
            time.sleep(rng.uniform(0.0, 0.5))
            if run.poll() is not None:
                raise SystemExit(f"kill {number + 1}: the run had ended with {run.returncode}")
            run.send_signal(signal.SIGKILL)
            run.wait()
            print(f"kill {number + 1}: with {_sealed(killed)} of {whole} shards sealed")
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
    return sum(len(study.manifest.live) for study in Store.open(store).studies())


if __name__ == "__main__":
    sys.exit(main())
