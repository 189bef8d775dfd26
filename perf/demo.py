"""`python -m perf.demo`: the starter study, measured w beside true w, and the same command again, which resumes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from perf.measure import evalnoise, run


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "demo-store")
        first, cost = run(["run", "studies/starter.yaml", "--store", store])
        print(first.stdout)
        print(first.stderr, file=sys.stderr)
        if first.returncode:
            return first.returncode
        query = (
            "select e.condition, e.value as w, e.lo, e.hi, t.value as true_w, t.value between e.lo and e.hi as covered "
            "from estimates e join estimates t using (protocol, stack, condition) "
            "where e.estimate = 'w' and e.covers = 'benchmark' and t.estimate = 'w_true' order by 1"
        )
        print(evalnoise("sql", query, "--store", store))
        again, second = run(["run", "studies/starter.yaml", "--store", store])
        ratio = second.wall_seconds / cost.wall_seconds
        print(f"first run {cost.wall_seconds:.0f} s, second run {second.wall_seconds:.0f} s (ratio {ratio:.2f})")
        print("second run:", again.stderr.strip().splitlines()[-1])
        return again.returncode


if __name__ == "__main__":
    sys.exit(main())
